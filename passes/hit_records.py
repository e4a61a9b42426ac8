"""The records of a fine hit table: the material's record of every object, by the object's number.

They lie in a texture, of which a stage may bind more than of storage buffers, one texel of four
words for every 16 bytes and RECORDS_A_ROW records a row.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.scene.records import MATERIAL
from passes.prepare import PreparedScene

RECORD_TEXELS = MATERIAL.size // 16
RECORDS_A_ROW = 1024  # a row is no wider than any adapter's textures


def pack_hit_records(prepared: PreparedScene) -> NDArray[np.uint32]:
    """[rows, RECORDS_A_ROW * RECORD_TEXELS, 4]; rows are made whole with zeros."""
    pack = prepared.pack
    records = np.ascontiguousarray(pack.materials[pack.objects["material"]]).view(np.uint32)
    rows = -(-len(pack.objects) // RECORDS_A_ROW)
    words = np.zeros((rows, RECORDS_A_ROW * RECORD_TEXELS, 4), np.uint32)
    words.reshape(-1)[: records.size] = records.reshape(-1)
    return words


def upload_hit_records(device: Device, prepared: PreparedScene) -> Any:
    """The texture. LimitError for more objects than the adapter's textures have rows for."""
    texels = pack_hit_records(prepared)
    rows = len(texels)
    most = device.limits["max-texture-dimension-2d"]
    if rows > most:
        raise LimitError(
            f"a fine hit table of {len(prepared.pack.objects):,} objects is beyond "
            f"{device.info.adapter}'s textures, which hold {most * RECORDS_A_ROW:,}"
        )
    return device.upload_texels("hit_records", texels)


def wgsl() -> str:
    return f"const HIT_RECORDS_A_ROW: u32 = {RECORDS_A_ROW}u;\n"
