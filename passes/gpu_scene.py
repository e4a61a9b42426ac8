"""A prepared scene in storage buffers. Several frames may share one.

* `bvh`: the scene's guest-layout bytes.
* `tables`: objects, then materials, then textures, then blue noise (passes/sampler.py), as vec4s
  (engine/scene/records.py).
* `geometry`: all indices, then all vertices, as words.
* `texels`: every texture and mip. `alpha`: what alpha tests need (passes/alpha.py).

A scene that moves (`passes.moving`) has `parents`, too, the parent links of `bvh`, and room behind
the BLASes in both where deforming ones may be built anew.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from bvh.layout import BASE_ALIGN_BYTES, UNIT_BYTES
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.gpu.errors import LimitError, UserError
from engine.scene.pose import moves
from passes.alpha import pack_alpha
from passes.deforming import deforming_blases
from passes.hidden import hidden_objects, hide, mask_words, root_words
from passes.moving import MovingScene
from passes.prepare import PreparedScene
from passes.rebuilding import Place, room_bytes
from passes.sampler import blue_noise_rows

MATERIAL_LIMIT = 1 << 16  # a pixel's material has 16 bits, see passes/shaders/gbuffer.wgsl


def _table_rows(prepared: PreparedScene) -> list[Any]:
    """Objects, materials, textures and blue noise as `[n, 4]` words."""
    pack = prepared.pack
    tables = (pack.objects, pack.materials, pack.texture_table)
    rows = [np.ascontiguousarray(table).view(np.uint32).reshape(-1, 4) for table in tables]
    return [*rows, blue_noise_rows()]


def pack_tables(prepared: PreparedScene) -> Any:
    """[n, 4] words: all objects, then all materials, all textures and the blue noise."""
    return np.concatenate(_table_rows(prepared))


def scene_arrays(prepared: PreparedScene) -> tuple[dict[str, Any], tuple[int, ...]]:
    """What the buffers hold, and where each table begins: `frame_uniforms.BASES`, in vec4s, of
    vertices in words."""
    pack = prepared.pack
    rows = _table_rows(prepared)
    arrays = {
        "bvh": prepared.bvh.words,
        "tables": pack_tables(prepared),
        "geometry": np.concatenate(
            [pack.indices, np.ascontiguousarray(pack.vertices).view(np.uint32)]
        ),
        "texels": pack.texels,
        "alpha": pack_alpha(prepared.scene, pack),
    }
    materials, textures, noise = np.cumsum([len(table) for table in rows[:3]]).tolist()
    return arrays, (materials, textures, len(pack.indices), noise)


class GpuScene:
    """Uploads at creation; LimitError names a buffer that the adapter cannot bind, before any of
    them is allocated, or too many materials."""

    def __init__(self, device: Device, prepared: PreparedScene) -> None:
        self.device = device
        self.prepared = self._whole = prepared
        self.hidden: frozenset[int] = frozenset()  # TLAS instances
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
        room: dict[str, int] = {}
        places: dict[int, Place] = {}
        if moves(prepared.scene):
            arrays["parents"] = prepared.bvh.parents
            places, end = self._rebuild_places()
            room = {"bvh": end, "parents": end // UNIT_BYTES * 4}
        usage = "STORAGE|COPY_SRC|COPY_DST"
        self.buffers: dict[str, Any] = {}
        for name, array in arrays.items():
            # The rasteriser indexes with the same words that kernels read.
            own = usage + "|INDEX" if name == "geometry" else usage
            buffer = device.buffer(name, max(array.nbytes, room.get(name, 0)), own)
            device.write(buffer, array)
            self.buffers[name] = buffer
        self.moving: MovingScene | None = None
        if moves(prepared.scene):
            self.moving = MovingScene(device, prepared, self.buffers, arrays, self.bases[2], places)
        self.upload_ms = 1e3 * (time.perf_counter() - start)
        # The rasteriser draws every triangle of a material; rays ask only where one is mixed.
        self.has_alpha = any(not material.opaque for material in prepared.scene.materials)
        self.rays_ask = prepared.asks
        self.has_spheres = any(mesh.radii is not None for mesh in prepared.scene.meshes)

    def _rebuild_places(self) -> tuple[dict[int, Place], int]:
        """Where each deforming BLAS may be built anew, and the bytes of `bvh` with that; nowhere
        where the adapter does not bind as much."""
        bvh, places = self.prepared.bvh, {}
        end = bvh.words.nbytes
        for number, triangles in deforming_blases(self.prepared).items():
            base = -(-end // BASE_ALIGN_BYTES) * BASE_ALIGN_BYTES
            room = room_bytes(sum(len(part) for part in triangles), bvh.options)
            places[number], end = Place(base, room), base + room
        limits = ("max-storage-buffer-binding-size", "max-buffer-size")
        if end > min(self.device.limits[name] for name in limits):
            return {}, bvh.words.nbytes
        return places, end

    def bvh(self) -> SceneBvh:
        """The structure as the last frame left it: read back where it has moved."""
        return self.moving.bvh() if self.moving else self.prepared.bvh

    def read_arrays(self) -> dict[str, Any]:
        """`arrays` as the last frame left them: read back where the scene moves."""
        found = dict(self.arrays)
        if self.moving:
            bvh = self.bvh()
            found.update(bvh=bvh.words, parents=bvh.parents)
            for name in ("tables", "geometry"):
                words = self.device.read(self.buffers[name], count=found[name].size)
                found[name] = words.reshape(found[name].shape)
        return found

    def set_hidden(self, instances: Collection[int]) -> None:
        """Takes these TLAS instances out, and puts all others back, from the next frame on (see
        `passes.hidden`); `prepared` and `arrays` follow. UserError for one that there is not, or
        that cannot be hidden."""
        hidden = frozenset(instances)
        changed = hidden ^ self.hidden
        if not changed:
            return
        whole, shown = self._whole, hide(self._whole, hidden)
        masks, roots = mask_words(whole.bvh, changed), root_words(whole.bvh, changed)
        if len(roots) and self.moving and self.moving.deforming:
            name = whole.bvh.instances[0].name
            raise UserError(f"'{name}' deforms and is the only instance: it cannot be hidden")
        words, objects = shown.bvh.words, shown.pack.objects
        for place in (*masks, *roots):
            self.device.write(self.buffers["bvh"], words[place : place + 1], 4 * int(place))
        for index in hidden_objects(whole.bvh, changed):
            row = objects[index : index + 1]
            self.device.write(self.buffers["tables"], row, objects.itemsize * int(index))
        self.hidden, self.prepared = hidden, shown
        self.arrays = {**self.arrays, "bvh": words, "tables": pack_tables(shown)}
        if self.moving:
            self.moving.follow(shown, self.arrays)
