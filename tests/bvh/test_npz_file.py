"""Our .npz files: what is no such file, or cannot be read, is one line with its reason."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bvh.npz_file import read_npz
from engine.gpu.errors import UserError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, format="ours", version=1, data=np.arange(100))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_npz(path, "ours", 1, "file")
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


def test_arrays_come_back(path: Path) -> None:
    assert read_npz(path, "ours", 1, "file")["data"].tolist() == list(range(100))


def test_an_array_beyond_memory_is_not_only_called_damaged(path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 55,)}
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("huge.npy", header.getvalue())
    assert "larger than memory" in refusal(path)


def test_an_unknown_compression_is_damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.index(signature)
        while at >= 0:
            data[at + offset] = 99
            at = data.find(signature, at + 4)
    path.write_bytes(data)
    assert "damaged file" in refusal(path)
