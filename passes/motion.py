"""Motion vectors: how far what a pixel shows has moved on the picture since the picture before.

In pixels, x to the right and y down, from where the point was to where it is; where nothing is
seen, as the sky moves when the camera turns. A frame that is asked for it (`FrameOptions.motion`)
remembers the camera and the pose of its last picture, whatever other frames of the scene do
meanwhile, and poses that once more: what was rigid by its transforms, what deforms by its vertices.
"""

from typing import Any

from engine.frame.render_pass import Pass, Resources
from engine.gpu.device import Device
from engine.scene.camera import Camera
from engine.scene.skinning import GpuSkinning
from passes.frame_uniforms import FrameInputs
from passes.gpu_scene import GpuScene
from passes.motion_records import PREVIOUS_VIEW, pack_previous
from passes.moving import Pose
from passes.rigid import place_objects
from passes.skinned import skinned_table


class PreviousPicture:
    """Of a frame: its camera, and the scene's objects and vertices in its pose. While nothing
    moves, `previous_objects` and `previous_vertices` are not read."""

    def __init__(self, device: Device, scene: GpuScene, aspect: float) -> None:
        self.device, self.scene, self.aspect = device, scene, aspect
        view = device.buffer("previous view", PREVIOUS_VIEW.size, "UNIFORM|COPY_DST")
        self.resources = {
            "previous_view": view,
            "previous_objects": scene.buffers["tables"],
            "previous_vertices": scene.buffers["geometry"],
        }
        self._skinning: GpuSkinning | None = None
        self._stale = False
        if scene.moving:
            pack = scene.prepared.pack
            for name, array in (("objects", pack.objects), ("vertices", pack.vertices)):
                self.resources[f"previous_{name}"] = device.upload(f"previous {name}", array)
            if scene.moving.deforming:
                self._skinning = GpuSkinning(device, skinned_table(scene.prepared.scene))
        self._shown: tuple[Camera, Pose | None] | None = None
        self._previous: tuple[Camera, Pose | None] | None = None
        self._view = pack_previous(scene.prepared.scene.camera, aspect, True)

    def begin(self, inputs: FrameInputs, *, again: bool) -> None:
        """After the scene's pose of a frame is known (`MovingScene.begin`), before the frame is
        encoded. `again`: it is a further sample of the last frame's picture, or takes its place.
        The first picture comes after itself."""
        pose = self.scene.moving.pose if self.scene.moving else None
        shown = (inputs.camera, pose)
        if not again or self._previous is None:
            self._previous = self._shown or shown
        self._shown = shown
        camera, before = self._previous
        still = before is None or pose is None or before.key == pose.key
        self._view = pack_previous(inputs.previous_camera or camera, self.aspect, still)
        self.device.write(self.resources["previous_view"], self._view.reshape(1))
        self._stale = False
        if not still and before is not None:
            self._pose(before)

    def _pose(self, pose: Pose) -> None:
        moving = self.scene.moving
        assert moving is not None
        rigid, objects = moving.rigid, self.scene.prepared.pack.objects.copy()
        if pose.clip is not None and len(rigid.instances):
            moved = objects[rigid.objects]
            place_objects(moved, rigid.transforms(pose.clip, pose.worlds)[rigid.whole])
            objects[rigid.objects] = moved
        self.device.write(self.resources["previous_objects"], objects)
        if self._skinning is not None:
            animation = moving.animation
            matrices = self._skinning.table.matrices(animation, pose.worlds)
            weights = animation.morph_weights(pose.clip, pose.time, loop=False)
            self._skinning.pose(matrices, weights)
            self._stale = True

    def passes(self) -> list[Pass]:
        """What a frame encodes before the pass `motion`."""

        def encode(scope: Any, resources: Resources) -> None:
            if self._stale and self._skinning is not None:
                self._skinning.encode(scope, {"vertices": resources["previous_vertices"]})
            self._stale = False

        used = ("previous_vertices",)
        return [Pass("motion/skin", used, used, encode)] if self._skinning else []

    def read_arrays(self) -> dict[str, Any]:
        """The resources as a twin takes them; waits."""
        names = ("previous_objects", "previous_vertices")
        read = {name: self.device.read(self.resources[name]) for name in names}
        return {"previous_view": self._view, **read}
