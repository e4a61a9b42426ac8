"""Files and folders appear whole or not at all."""

import errno
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import typer

from engine.gpu.errors import UserError
from treeline.cli.options import Common, with_common
from treeline.outputs import whole_file, whole_folder
from treeline.radiance_file import RadiancePicture, save_radiance


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_appears_with_its_folders(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "picture.png"
    with whole_file(target) as path:
        assert path.suffix == ".png"
        path.write_text("new")
        assert not target.exists() and not target.parent.exists()
    assert target.read_text() == "new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_file_leaves_the_old_one(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "f.npz"
    target.write_text("old")
    with pytest.raises(error), whole_file(target) as path:
        path.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["f.npz"]


@pytest.fixture
def little_room() -> Iterator[None]:
    """Files of this process hold 1,000 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("little_room")
def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    """Not with the temporary one, and with nothing left behind."""
    target = tmp_path / "f.npz"
    with pytest.raises(UserError, match=f"^cannot write {target}: File too large"):
        with whole_file(target) as path:
            path.write_bytes(bytes(2000))
    with pytest.raises(UserError, match=f"^cannot write {tmp_path / 'out'}: File too large"):
        with whole_folder(tmp_path / "out") as folder:
            (folder / "a").write_bytes(bytes(2000))
    picture = RadiancePicture(np.random.default_rng(1).random((40, 40, 3), np.float32), {})
    with pytest.raises(UserError, match=r"^cannot write f\.exr: .*File too large"):
        with whole_file(tmp_path / "f.exr") as path:
            save_radiance(path, picture)
    assert names(tmp_path) == []


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "out" / "a").mkdir(parents=True)
    with pytest.raises(UserError, match=f"^cannot write {tmp_path / 'out'}: Is a directory"):
        with whole_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("a file")
    assert names(tmp_path) == ["out"] and names(tmp_path / "out") == ["a"]


def test_a_full_disk_behind_stdout_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    def command(common: Common) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(typer.Exit) as caught:
        with_common(command)(**asdict(Common()))
    assert caught.value.exit_code == 2
    told = "treeline: error: cannot write to stdout: No space left on device\n"
    assert capfd.readouterr().err == told


def test_a_folder_is_merged_into_an_older_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    (out / "report.json").write_text("old")
    with whole_folder(out) as folder:
        (folder / "report.json").write_text("new")
        assert (out / "report.json").read_text() == "old"
    assert (out / "report.json").read_text() == "new"
    assert names(out) == ["mine.txt", "report.json"]


def test_an_interrupted_folder_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "x" / "out") as folder:
        (folder / "report.json").write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, as in a terminal: a shell starts what runs in the background with the signal
    ignored, and Python leaves that as it is."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_during_the_renames_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    replace = os.replace

    def interrupted(source: Path, target: Path) -> None:
        # To this thread: a driver's thread that got it would tell of it too late.
        signal.raise_signal(signal.SIGINT)
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("a")
        (folder / "b").write_text("b")
    assert names(tmp_path / "out") == ["a", "b"]


def test_places_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for target in (file / "f.png", file / "deep" / "f.png", Path("/proc/nowhere/f.png")):
        with pytest.raises(UserError, match="cannot write"), whole_file(target):
            pytest.fail("the work must not start")
    with pytest.raises(UserError, match="is a folder"), whole_file(tmp_path):
        pytest.fail("the work must not start")
    with pytest.raises(UserError, match="is a file"), whole_folder(file):
        pytest.fail("the work must not start")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(UserError, match="cannot write"), whole_folder(locked / "out"):
        pytest.fail("the work must not start")


def test_a_unicode_path(tmp_path: Path) -> None:
    target = tmp_path / "Küche 図" / "Bild ü.png"
    with whole_file(target) as path:
        path.write_text("x")
    assert target.exists()
