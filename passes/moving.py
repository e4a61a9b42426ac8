"""A scene that moves, on the GPU: the passes that a frame begins with, and what they decided.

    update/skin   vertices, morphed and skinned, into the buffer that raster and shading read, too
    update/refit  the boxes of every deforming BLAS follow its vertices, in place
    update/build  or the BLAS is built anew, behind the scene's BLASes
    update/tlas   the TLAS is built anew at byte 0, over what has moved

The pose is worked out on the host before a frame is encoded (`MovingScene.begin`): one matrix a
joint, one transform a rigid instance. The state is the scene's, not a frame's: several frames may
show one scene at different times, each posing it when it begins. Where every frame refits, the tree
that was prepared, a pose depends on its clip and time alone; a rebuild makes another tree, by which
a ray may choose the other of two triangles that it meets at one distance. At rest (no clip) the
buffers hold what was prepared, byte for byte, and the passes are empty.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.encode_records import ENCODE_SUMMARY
from bvh.layout import UNIT_BYTES, UNIT_WORDS
from bvh.rebuild_policy import Decision, RebuildPolicy
from bvh.scene_bvh import SceneBvh
from engine.frame.render_pass import Pass, Resources
from engine.gpu.device import Device
from engine.gpu.stage import submit_pass
from engine.scene.animation import Clip
from engine.scene.mesh import F64
from engine.scene.pose import check_time
from passes.deforming import deforming_blases
from passes.deforming_tree import DeformingTree
from passes.moved_bvh import read_moved_bvh
from passes.prepare import PreparedScene
from passes.rebuilding import Place
from passes.rigid import RigidObjects, place_objects
from passes.update_stages import UpdateStages

Key = tuple[str, float]
REST: Key = ("", -1.0)
FRAMES_LATE = 3  # that statistics may be, see passes/frames_in_flight.py


@dataclass(frozen=True, slots=True)
class Pose:
    """Where everything is: a clip at a time within it, and the nodes' worlds `[n, 4, 4]`. Without a
    clip, as the file stands."""

    clip: Clip | None
    time: float
    worlds: F64

    @property
    def key(self) -> Key:
        return (self.clip.name, self.time) if self.clip else REST


class MovingScene:
    """`buffers` are those of a `GpuScene` (bvh, parents, tables, geometry), `arrays` what they held
    at first, `vertex_first` the word of vertex record 0, `places` where BLASes may be built anew.
    Nothing is compiled before the first pose."""

    def __init__(
        self,
        device: Device,
        prepared: PreparedScene,
        buffers: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        vertex_first: int,
        places: Mapping[int, Place],
    ) -> None:
        assert prepared.scene.animation is not None
        self.device, self.prepared, self.buffers = device, prepared, buffers
        self.animation = prepared.scene.animation
        self.pose = self.previous_pose = Pose(None, 0.0, self.animation.worlds())
        self.decisions: list[Decision] = []  # of the last frame that was posed
        self.policy = RebuildPolicy()
        self.deforming = len(deforming_blases(prepared))  # BLASes
        self.rigid = RigidObjects(prepared)
        self._arrays, self._vertex_first, self._places = arrays, vertex_first, places
        self._objects = prepared.pack.objects.copy()
        self._stages: UpdateStages | None = None
        self._prepared_summary: Any = None
        self.serial = 0  # of the frame that posed the scene last
        self._frame = 0
        self._held: Key | None = REST  # the pose that the buffers hold; None: some of one

    def _make_stages(self) -> UpdateStages:
        if self._stages is None:
            self._stages = UpdateStages(
                self.device, self.prepared, self.buffers, self._vertex_first, self._places
            )
            for tree in self._stages.trees:
                sah = self.prepared.bvh.blas_stats[tree.number].sah
                self.policy.add(tree.name, "deforming").built(0, sah)
        return self._stages

    def follow(self, prepared: PreparedScene, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The same scene with other instances hidden (`passes.hidden`); the next frame poses it
        anew."""
        self.prepared, self._arrays = prepared, arrays
        self._objects = prepared.pack.objects.copy()
        self.serial += 1
        if self._stages is not None:
            self._stages.place_instances(prepared.bvh.instances)
            self._held = None

    # -- the pose of a frame -------------------------------------------------------------------

    def begin(self, clip: str | None, time: float, *, loop: bool, update: str, again: bool) -> int:
        """Before a frame is encoded: its pose to the GPU, and what its passes will do. `again`: a
        further sample of a picture, which needs nothing where the scene is in that pose already.
        The new `serial`. UserError for a clip that there is not, or a time that is not finite."""
        self.serial += 1
        if clip is None:
            self._put_to_rest()
        else:
            self._pose(clip, time, loop, update, again)
        return self.serial

    def _pose(self, clip: str, time: float, loop: bool, update: str, again: bool) -> None:
        found = self.animation.clip(clip)
        at = found.wrapped(check_time(time), loop)
        stages = self._make_stages()
        stages.forget()
        changed = self._held != (found.name, at)
        if again and not changed:
            return
        self._frame += 1
        worlds = self.animation.worlds(found, at, loop=False)
        self.previous_pose, self.pose = self.pose, Pose(found, at, worlds)
        self._held = None
        self._place_rigid(stages, found, worlds)
        if stages.objects:
            matrices = stages.objects.table.matrices(self.animation, worlds)
            weights = self.animation.morph_weights(found, at, loop=False)
            stages.objects.skinning.pose(matrices, weights)
            self._decide(stages, update, changed)
        stages.skin = stages.tlas_stale = True

    def hold(self, clip: str | None, time: float, *, loop: bool) -> int:
        """For a frame that goes on after others of the scene began: puts the scene into its pose
        again, by refits in a submission of their own, where it is in another. The new `serial`."""
        serial = self.begin(clip, time, loop=loop, update="refit", again=True)
        self._catch_up()
        return serial

    def _catch_up(self) -> None:
        """Submits what no frame has encoded yet: all of a pose, or what one that traces nothing
        left out."""
        stages = self._stages
        if stages and stages.waiting:
            submit_pass(self.device, *self._encodes(stages).values(), label="update")

    def _place_rigid(self, stages: UpdateStages, clip: Clip, worlds: F64) -> None:
        """The transforms of rigid instances, as instances and as objects."""
        rigid = self.rigid
        if not len(rigid.instances):
            return
        transforms = rigid.transforms(clip, worlds)
        for row in range(3):
            stages.records[f"row_{row}"][rigid.instances] = transforms[:, row]
        moved = self._objects[rigid.objects]
        hidden = ~self.prepared.pack.objects["object_to_world"][rigid.objects].any(axis=(1, 2))
        place_objects(moved, transforms[rigid.whole])
        moved["object_to_world"][hidden] = 0
        self._objects[rigid.objects] = moved
        instances = stages.tlas.resources["instances"]
        _write_span(self.device, instances, stages.records, rigid.instances)
        _write_span(self.device, self.buffers["tables"], self._objects, rigid.objects)

    def _decide(self, stages: UpdateStages, update: str, changed: bool) -> None:
        """Fills `decisions`, and tells the stages."""
        for name, sah in stages.measured_sah():
            self.policy.trackers[name].measured(sah=sah)
        names = [tree.name for tree in stages.trees]
        if update == "policy":
            decisions = self.policy.decide(self._frame, names if changed else ())
        else:
            reason = f"every frame is told to {update}"
            decisions = [Decision(self._frame, n, "deforming", update, reason) for n in names]
        self.decisions = []
        for tree, decision in zip(stages.trees, decisions, strict=True):
            if update == "refit" and tree.base != tree.prepared_base:
                self._put_back(stages, tree)  # another frame of the scene had it built anew
            elif decision.action == "refit" and not tree.can_refit():
                reason = "a block of the last build joins corners that part"
                decision = replace(decision, action="rebuild", reason=reason)
            if decision.action == "rebuild":
                tree.begin_build()
                stages.write_base(tree)
                stages.rebuilt.append(tree)
                self.policy.trackers[tree.name].built(self._frame)
            elif decision.action == "refit":
                stages.refitted.append(tree)
            self.decisions.append(decision)
        stages.measured = update == "policy"

    def _put_to_rest(self) -> None:
        """Every byte that a pose may have changed, as it was prepared."""
        if self._held == REST:
            return
        stages, bvh = self._make_stages(), self.prepared.bvh
        self._held = None
        stages.forget()
        self._write_prepared(0, int(bvh.blas_bases.min()))
        for tree in stages.trees:
            self._put_back(stages, tree)
        if stages.objects:
            geometry = self._arrays["geometry"][self._vertex_first :]
            self.device.write(self.buffers["geometry"], geometry, 4 * self._vertex_first)
        self._objects = self.prepared.pack.objects.copy()
        self.device.write(self.buffers["tables"], self._objects)
        self.previous_pose, self.pose = self.pose, Pose(None, 0.0, self.animation.worlds())
        self.decisions = []
        self._held = REST

    def _put_back(self, stages: UpdateStages, tree: DeformingTree) -> None:
        """The tree becomes the one that was prepared."""
        stats = self.prepared.bvh.blas_stats[tree.number]
        tree.put_back()
        stages.write_base(tree)
        self._write_prepared(tree.base, stats.bytes)
        self.policy.trackers[tree.name].built(self._frame, stats.sah)

    def _write_prepared(self, base: int, size: int) -> None:
        """Words and links of so many bytes from byte `base` on."""
        first, last = base // UNIT_BYTES, (base + size) // UNIT_BYTES
        words = self.prepared.bvh.words[UNIT_WORDS * first : UNIT_WORDS * last]
        self.device.write(self.buffers["bvh"], words, base)
        self.device.write(self.buffers["parents"], self.prepared.bvh.parents[first:last], 4 * first)

    # -- passes --------------------------------------------------------------------------------

    def _encodes(self, stages: UpdateStages) -> dict[str, Callable[[Any], None]]:
        return {
            "update/skin": stages.encode_skin,
            "update/refit": stages.encode_refits,
            "update/build": stages.encode_builds,
            "update/tlas": self._encode_tlas,
        }

    def _encode_tlas(self, scope: Any) -> None:
        assert self._stages is not None
        if self._stages.tlas_stale:
            self._stages.encode_tlas(scope)
            self._held = self.pose.key

    def passes(self, update: str, *, traced: bool = True) -> list[Pass]:
        """What a frame with `FrameOptions.update` begins with. Without rays nobody reads the BVH:
        unless the frame is `traced` it is left as it was."""
        uses = {
            "update/skin": (("geometry",), ("geometry",)),
            "update/refit": (("geometry", "bvh"), ("bvh",)),
            "update/build": (("geometry", "bvh", "parents"), ("bvh", "parents")),
            "update/tlas": (("bvh", "parents"), ("bvh", "parents")),
        }
        left_out = {"refit": {"update/build"}, "rebuild": {"update/refit"}}.get(update, set())
        if not self.deforming:
            left_out = set(uses) - {"update/tlas"}
        if not traced:
            left_out |= {"update/refit", "update/build", "update/tlas"}
        return [self._pass(name, *uses[name]) for name in uses if name not in left_out]

    def _pass(self, name: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> Pass:
        def encode(scope: Any, resources: Resources) -> None:
            if self._stages is not None:
                self._encodes(self._stages)[name](scope)

        return Pass(name, reads, writes, encode)

    # -- what became of it ---------------------------------------------------------------------

    @property
    def refits_since_build(self) -> dict[str, int]:
        """Of every deforming BLAS, by its name."""
        trees = self._stages.trees if self._stages else []
        return {tree.name: tree.refits_since_build for tree in trees}

    def builds(self) -> list[tuple[str, int]]:
        """Every deforming BLAS, and how often it was built anew on the GPU."""
        trees = self._stages.trees if self._stages else []
        return [(tree.name, tree.builds) for tree in trees]

    def note_visits(self, objects: Mapping[tuple[str, str], Mapping[str, int]], late: bool) -> None:
        """Tells the policy how many nodes a ray visits each time that it enters a tree, from a
        counted frame's `FrameStats.objects`. Numbers that came `late`, some frames after the frame,
        may be those of the tree before: they are left out right after a build."""
        names = self.prepared.bvh.blas_names
        for tree in self._stages.trees if self._stages else []:
            rows = [row for (name, _), row in objects.items() if name == names[tree.number]]
            entered = sum(row["instance_hits"] for row in rows)
            tracker = self.policy.trackers[tree.name]
            age = self._frame - (tracker.built_frame or 0)
            if entered and not (late and age < FRAMES_LATE):
                tracker.measured(visits=sum(row["nodes"] for row in rows) / entered)

    def sah(self) -> dict[str, float]:
        """Of every deforming BLAS that was refitted last, by exact boxes; submits and waits."""
        return self._stages.sah() if self._stages else {}

    def messages(self) -> list[str]:
        """One line a fault of the last pose: instances that could not be placed, vertices that are
        not finite, boxes beyond FP16's range, builds without room. Waits."""
        if self._stages is None or self._held == REST:
            return []
        self._catch_up()
        return self._stages.messages()

    def build_summaries(self) -> list[Any]:
        """Of every deforming BLAS: the buffer of the ENCODE_SUMMARY of the build that it is from,
        or one that says that the prepared tree had room."""
        trees = self._stages.trees if self._stages else []
        found = [tree.build_summary for tree in trees] or [None] * self.deforming
        if self._prepared_summary is None:
            record = np.zeros(1, ENCODE_SUMMARY.dtype)
            record["fits"] = 1
            self._prepared_summary = self.device.upload("update/prepared", record)
        return [self._prepared_summary if buffer is None else buffer for buffer in found]

    def unbuilt(self, summaries: Sequence[Any]) -> list[str]:
        """One line for each of the ENCODE_SUMMARY records that `build_summaries` held of a tree
        that had no room: rays may have met anything in its place."""
        trees = self._stages.trees if self._stages else []
        lines = (tree.no_room(record) for tree, record in zip(trees, summaries, strict=False))
        return [line for line in lines if line is not None]

    def bvh(self) -> SceneBvh:
        """The structure as it is on the GPU now, read back if it is not the one prepared."""
        if self._stages is None or self._held == REST:
            return self.prepared.bvh
        self._catch_up()
        moved: dict[int, F64] = {}
        if self.pose.clip is not None:
            transforms = self.rigid.transforms(self.pose.clip, self.pose.worlds)
            moved = dict(zip(self.rigid.instances.tolist(), transforms, strict=True))
        return read_moved_bvh(
            self.device, self.prepared.bvh, self.buffers, self._stages.trees, moved
        )


def _write_span(
    device: Device, buffer: Any, records: NDArray[Any], changed: NDArray[np.int64]
) -> None:
    """Records `changed` of those that begin the buffer, and what lies between them: one write."""
    first, last = int(changed.min()), int(changed.max())
    device.write(buffer, records[first : last + 1], first * records.itemsize)
