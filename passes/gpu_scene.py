"""A prepared scene in storage buffers. Several frames may share one.

* `bvh`: the scene's guest-layout bytes.
* `tables`: objects, then materials, then textures, as vec4s (engine/scene/records.py).
* `geometry`: all indices, then all vertices, as words.
* `texels`: every texture and mip. `alpha`: what alpha tests need (passes/alpha.py).
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from passes.alpha import pack_alpha
from passes.prepare import PreparedScene

MATERIAL_LIMIT = 1 << 16  # a pixel's material has 16 bits, see passes/shaders/gbuffer.wgsl


def scene_arrays(prepared: PreparedScene) -> tuple[dict[str, Any], tuple[int, int, int]]:
    """What the buffers hold, and where each table begins: material_base, texture_base (vec4s) and
    vertex_base (words)."""
    pack = prepared.pack
    tables = (pack.objects, pack.materials, pack.texture_table)
    rows = [np.ascontiguousarray(table).view(np.uint32).reshape(-1, 4) for table in tables]
    arrays = {
        "bvh": prepared.bvh.words,
        "tables": np.concatenate(rows),
        "geometry": np.concatenate(
            [pack.indices, np.ascontiguousarray(pack.vertices).view(np.uint32)]
        ),
        "texels": pack.texels,
        "alpha": pack_alpha(prepared.scene, pack),
    }
    return arrays, (len(rows[0]), len(rows[0]) + len(rows[1]), len(pack.indices))


class GpuScene:
    """Uploads at creation; LimitError names a buffer that the adapter cannot bind, before any of
    them is allocated, or too many materials."""

    def __init__(self, device: Device, prepared: PreparedScene) -> None:
        self.device = device
        self.prepared = prepared
        if len(prepared.pack.materials) > MATERIAL_LIMIT:
            raise LimitError(
                f"{prepared.scene.name} has {len(prepared.pack.materials):,} materials, the "
                f"G-buffer names at most {MATERIAL_LIMIT:,}"
            )
        start = time.perf_counter()
        arrays, self.bases = scene_arrays(prepared)
        for name, array in arrays.items():
            device.check_binding(f"{prepared.scene.name}: the {name} buffer", array.nbytes)
        self.arrays: Mapping[str, Any] = arrays
        usage = "STORAGE|COPY_SRC|COPY_DST"
        self.buffers = {
            # The rasteriser indexes with the same words that kernels read.
            name: device.upload(name, array, usage + "|INDEX" if name == "geometry" else usage)
            for name, array in arrays.items()
        }
        self.upload_ms = 1e3 * (time.perf_counter() - start)
        self.has_alpha = any(not material.opaque for material in prepared.scene.materials)
