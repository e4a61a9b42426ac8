"""What the update passes of a moving scene encode: skinning, refits, builds, the BLAS table and the
TLAS, over the scene's buffers. What each does in a frame is said before (`passes.moving`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bvh.gpu.tlas import GpuTlas
from bvh.gpu.tlas_records import BLAS_RECORD, pack_instance_records, scene_blas_records
from bvh.layout import UNIT_BYTES
from bvh.tlas import BvhInstance
from engine.gpu.device import Device
from engine.gpu.readback_ring import ReadbackRing
from engine.gpu.stage import submit_pass
from passes.deforming import DeformingObjects, deforming_blases
from passes.deforming_tree import COST_BYTES, DeformingTree
from passes.prepare import PreparedScene
from passes.rebuilding import Place, rebuild_options
from passes.skinned import vertex_count


class UpdateStages:
    """`buffers` are a `GpuScene`'s: bvh, parents, tables, geometry. A pass empties its own of
    `skin`, `refitted`, `rebuilt`, `tlas_stale` as it encodes them."""

    def __init__(
        self,
        device: Device,
        prepared: PreparedScene,
        buffers: Mapping[str, Any],
        vertex_first: int,
        places: Mapping[int, Place],
    ) -> None:
        self.device, self.buffers = device, buffers
        blases = scene_blas_records(prepared.bvh)
        self.table = device.upload("blases", blases)
        instances = prepared.bvh.instances
        self.tlas = GpuTlas(device, len(instances), self.table, len(blases))
        self.place_instances(instances)
        self.objects: DeformingObjects | None = None
        self.trees: list[DeformingTree] = []
        deforming = deforming_blases(prepared)
        if deforming:
            self.objects = DeformingObjects(device, prepared, vertex_first)
            self._add_trees(prepared, deforming, places)
        self.skin = self.tlas_stale = self.measured = False
        self.refitted: list[DeformingTree] = []
        self.rebuilt: list[DeformingTree] = []
        self._unread: list[DeformingTree] = []  # measured by the last frame
        self._ring: ReadbackRing | None = None

    def _add_trees(self, prepared: PreparedScene, deforming: Any, places: Any) -> None:
        assert self.objects is not None
        alike = self.objects.table.alike(vertex_count(prepared.scene))
        scene, bvh = prepared.scene, prepared.bvh
        first_objects = {item.blas: item.first_object for item in bvh.instances}
        names: list[str] = []
        options = rebuild_options(bvh)
        for number, triangles in deforming.items():
            parts = scene.instances[first_objects[number] :][: len(triangles)]
            name = bvh.blas_names[number]
            names.append(name if name not in names else f"{name} ({number})")
            tree = DeformingTree(
                self.device,
                names[-1],
                number,
                triangles,
                [prepared.opacity[part.mesh] for part in parts],
                options,
                self.buffers,
                self.objects.refits[number],
                int(bvh.blas_bases[number]),
                places.get(number),
                alike,
            )
            self.trees.append(tree)

    def place_instances(self, instances: Sequence[BvhInstance]) -> None:
        """What the next TLAS is built over."""
        self.records = pack_instance_records(instances)
        self.device.write(self.tlas.resources["instances"], self.records)

    @property
    def waiting(self) -> bool:
        """Whether something is to be encoded yet."""
        return bool(self.skin or self.refitted or self.rebuilt or self.tlas_stale)

    def forget(self) -> None:
        """Nothing is to be encoded."""
        self.skin = self.tlas_stale = False
        self.refitted, self.rebuilt = [], []

    def write_base(self, tree: DeformingTree) -> None:
        """Into the BLAS table, from where the TLAS takes it."""
        at = BLAS_RECORD.size * tree.number + BLAS_RECORD.offsets["base_unit"]
        self.device.write(self.table, np.array([tree.base // UNIT_BYTES], np.uint32), at)

    # -- passes --------------------------------------------------------------------------------

    def encode_skin(self, scope: Any) -> None:
        if self.skin and self.objects:
            self.objects.skinning.encode(scope, {"vertices": self.buffers["geometry"]})
        self.skin = False

    def encode_refits(self, scope: Any) -> None:
        for tree in self.refitted:
            tree.encode_refit(scope, self.measured)
        if self.measured:
            self._unread = self.refitted
        self.refitted = []

    def encode_builds(self, scope: Any) -> None:
        for tree in self.rebuilt:
            tree.encode_build(scope)
        self.rebuilt = []

    def encode_tlas(self, scope: Any) -> None:
        if self.tlas_stale:
            if self.objects:
                words = {"words": self.buffers["bvh"], "blases": self.table}
                self.objects.bounds.encode(scope, words)
            self.tlas.encode(
                scope, {"words": self.buffers["bvh"], "parents": self.buffers["parents"]}
            )
        self.tlas_stale = False

    # -- what trees cost -----------------------------------------------------------------------

    def measured_sah(self) -> list[tuple[str, float]]:
        """(name, SAH) of refits of earlier frames that has arrived; never waits. A number of a
        tree that was built anew since is left out."""
        found = []
        if self._ring:
            for trees, data in self._ring.poll():
                for i, (tree, builds) in enumerate(trees):
                    if tree.refitted and tree.builds == builds:
                        found.append((tree.name, tree.sah(data[COST_BYTES * i :][:COST_BYTES])))
        unread = [tree for tree in self._unread if tree.cost_sums is not None]
        if unread:
            self._ring = self._ring or ReadbackRing(self.device, COST_BYTES * len(self.trees))
            encoder = self.device.wgpu.create_command_encoder(label="update/sah")
            copies = [(tree.cost_sums, 0, COST_BYTES) for tree in unread]
            if self._ring.encode(encoder, copies, [(tree, tree.builds) for tree in unread]):
                self.device.wgpu.queue.submit([encoder.finish()])
                self._ring.submitted()
        self._unread = []
        return found

    def sah(self) -> dict[str, float]:
        """Of every tree that was refitted last; submits and waits."""
        trees = [tree for tree in self.trees if tree.refitted]
        if trees:
            submit_pass(self.device, *(tree.encode_cost for tree in trees), label="update/sah")
        sums = [self.device.read(tree.cost_sums, np.uint8, count=COST_BYTES) for tree in trees]
        return {t.name: t.sah(s.tobytes()) for t, s in zip(trees, sums, strict=True)}

    def messages(self) -> list[str]:
        """One line a fault of what was encoded last; waits."""
        lines = self.tlas.read(self.buffers["bvh"]).messages
        for tree in self.trees:
            nonfinite, beyond = tree.faults()
            if nonfinite:
                lines.append(f"{tree.name}: {nonfinite} blocks have a corner that is not finite")
            if beyond:
                lines.append(f"{tree.name}: {beyond} boxes reach beyond FP16's range: slower")
            if line := tree.no_room():
                lines.append(line)
        return lines
