"""The kinds of compute passes that a frame is made of, by what they are dispatched over."""

from collections.abc import Mapping
from typing import Any

from engine.frame.render_pass import Pass, stage_pass
from engine.gpu.device import Device
from engine.gpu.stage import Stage
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.gpu_scene import GpuScene
from passes.rays import RayType
from passes.shadow_slots import shadow_slots
from passes.twins.frame import cpu_passes

SHADERS = "passes/shaders/"
# Those that look at surfaces, which may be spheres (passes/shaders/surface.wgsl).
SURFACE_SHADERS = (
    "resolve",
    "motion",
    "motion_depth",
    "reflection",
    "bounce",
    "shadow",
    "shade",
    "occlusion",
    "shadow_map_visible",
    "shadow_map_reflection",
    "probe_light",
)
# Those that choose lights (passes/shaders/choose_light.wgsl).
LIGHT_SHADERS = ("shadow", "shade")
# By FrameOptions.compaction: how a workgroup's records get their places in a queue.
PUSH_SHADERS = {
    "workgroup": f"{SHADERS}queue_push.wgsl",
    "subgroup": f"{SHADERS}queue_push_subgroup.wgsl",
}


def path_shader(ray: RayType) -> str:
    """How a stage learns what the path of a reflection ray is worth when it arrives."""
    return f"{SHADERS}paths/{'first' if ray.bounce == 1 else 'later'}.wgsl"


def path_constants(options: FrameOptions, ray: RayType) -> dict[str, float]:
    """Of that shader."""
    return {"WITHOUT_COLOR": options.finds_edges} if ray.bounce == 1 else {}


class StagePasses:
    """Makes passes of one frame. `file` is a shader's name in passes/shaders; `bind` maps a
    binding's name in it to the frame's resource where they differ. Twins are found by name."""

    def __init__(self, device: Device, scene: GpuScene, options: FrameOptions) -> None:
        self.device, self.scene, self.options = device, scene, options
        self._twins = {item.name: item.twin for item in cpu_passes(options, scene.rays_ask)}

    def over_tiles(
        self,
        name: str,
        file: str,
        *,
        slots: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
        block: int = 1,
        trusted: bool = False,
        **bind: str,
    ) -> Pass:
        """One workgroup for each 8x8 pixels of the picture, or 8x8 blocks of that side. `trusted`
        as `Stage` has it."""
        stage = self._stage(name, file, slots=slots, constants=constants, trusted=trusted)
        first = "frame", FRAME_UNIFORMS.offsets["first_tile_row"]
        side = 8 * block
        tiles = (-(-self.options.width // side), -(-self.options.height // side))
        return stage_pass(name, stage, tiles, bind=bind, first_unit=first)

    def over_queue(
        self,
        name: str,
        file: str,
        arguments: str,
        *,
        slots: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
        trusted: bool = False,
        **bind: str,
    ) -> Pass:
        """One lane for each record of a queue; the pass `arguments/<arguments>` counted its groups.
        `trusted` as `Stage` has it."""
        stage = self._stage(name, file, slots=slots, constants=constants, trusted=trusted)
        first = "frame", FRAME_UNIFORMS.offsets["first_group"]
        written = f"{arguments}_arguments"
        return stage_pass(name, stage, arguments=written, bind=bind, first_unit=first)

    def over_items(
        self,
        name: str,
        file: str,
        count: int,
        *,
        constants: Mapping[str, float] | None = None,
        kept: str = "",
        **bind: str,
    ) -> Pass:
        """One lane for each of `count` items, in groups of 64; `kept` as `Pass` has it."""
        stage = self._stage(name, file, constants=constants)
        first = bind.get("frame", "frame"), FRAME_UNIFORMS.offsets["first_group"]
        groups = -(-count // 64)
        return stage_pass(name, stage, groups, bind=bind, first_unit=first, kept=kept)

    def arguments(
        self, name: str, queue: str, other_queue: str | None = None, again: str = ""
    ) -> Pass:
        """Counts the workgroups that what is left of `queue` needs; of two queues, see
        `passes.mixed`. `again` tells passes that count the same queue apart."""
        file = "arguments" if other_queue is None else "arguments_mixed"
        stage = self._stage(f"arguments/{name}{again}", file)
        bind = {"queue": queue, "arguments": f"{name}_arguments"}
        if other_queue is not None:
            bind["other_queue"] = other_queue
        return stage_pass(stage.name, stage, (1, 1), bind=bind)

    def _stage(
        self, name: str, file: str, slots: Mapping[str, str] | None = None, **settings: Any
    ) -> Stage:
        twin = self._twins.get(name)
        if file in SURFACE_SHADERS and self.scene.has_spheres:
            settings["constants"] = {**(settings.get("constants") or {}), "HAS_SPHERES": True}
        if more := shadow_slots(self.options).constants(file):
            settings["constants"] = {**(settings.get("constants") or {}), **more}
        if file in LIGHT_SHADERS and self.options.light_choice == "uniform":
            settings["constants"] = {**(settings.get("constants") or {}), "UNIFORM_LIGHTS": True}
        filled = {"push": PUSH_SHADERS[self.options.compaction], **(slots or {})}
        path = f"{SHADERS}{file}.wgsl"
        return Stage(self.device, name, path, twin=twin, slots=filled, **settings)
