"""What an ablation may turn off, and what a frame is with it off.

A switch changes one thing of a `Setup` and claims the terms of the cost that it changes: those that
passes/option_list.py declares for its option, and with a reason each those that must follow. Taking
content out of the picture also takes away the rays' work there. "Off" of a choice that has no such
word is the other way to do it: what is not the default is compared with the default, the default
with the best known alternative.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bvh import build_defaults as default
from engine.gpu.errors import UserError
from engine.scene.scene import Instance, Scene
from passes.frame_uniforms import FrameInputs
from passes.option_list import ViewSettings, find_option
from passes.rays import RayType, frame_rays
from treeline.causes import BOUNCE_LIMIT, HALF_RESOLUTION, SHADOW_BUDGET

# What a tree is, whatever the layout of its nodes.
TREE_OPTIONS = {
    "builder": default.BUILDER,
    "reinsertion": default.REINSERTION,
    "collapse": default.COLLAPSE,
}
# What else changes where something is taken out of the picture.
LESS_CONTENT = {
    "rays": "what is behind it is seen, and sends other rays",
    "any-hit": "it has no candidates any more",
    "nodes": "its nodes are not visited any more",
    "build and update": "it is not updated any more",
    "layout bytes": "its part of the structure is gone",
    "raster": "it is not drawn any more",
}
BETTER_BUILDER = "spatial"  # than the default: it splits triangles


@dataclass(frozen=True, slots=True)
class Setup:
    """All that decides a frame. `silent` are functions of the inputs that keep ray types from
    being sent."""

    scene: Scene
    settings: ViewSettings
    silent: tuple[Callable[[FrameInputs], FrameInputs], ...] = field(default=())

    def inputs(self, given: FrameInputs) -> FrameInputs:
        for change in self.silent:
            given = change(given)
        return given


@dataclass(frozen=True, slots=True)
class Switch:
    """`what` a frame is with it off, in words. `terms` of passes.option.COST_TERMS are what it
    claims to change; `follows` maps those that change with them to the reason."""

    name: str
    what: str
    terms: tuple[str, ...]
    off: Callable[[Setup], Setup]
    follows: Mapping[str, str] = field(default_factory=dict)


def find_switches(setup: Setup, moves: bool) -> tuple[list[Switch], dict[str, str]]:
    """Those that change something of this frame, and why others do not. `moves`: whether the frame
    updates its scene."""
    found: list[Switch] = []
    left_out: dict[str, str] = {}
    settings, scene = setup.settings, setup.scene
    build, frame = settings.build, settings.frame

    def add(name: str, switch: Switch | None, reason: str) -> None:
        if switch is None:
            left_out[name] = reason
        else:
            found.append(switch)

    characters = _content(scene, "characters", "what deforms", "build and update", deforms)
    add("characters", characters, "nothing here deforms, or it is all there is")
    foliage = _content(scene, "foliage", "vegetation and holes", "any-hit", is_foliage(scene))
    add("foliage", foliage, "no vegetation and nothing with holes, or it is all there is")
    half = _option(HALF_RESOLUTION, settings, reflection_scale="half")
    add(HALF_RESOLUTION, half if frame.reflection_scale == "full" else None, "it is so already")
    blocks = _option("upsample", settings, upsample="plain") if frame.finds_edges else None
    add("upsample", blocks, "no light is upsampled at edges")
    narrow = _option("narrow_lobes", settings, narrow_lobes="shared")
    add("narrow_lobes", narrow if frame.sends_narrow else None, "no pixel has a ray besides others")
    # The other way to find them, whichever this frame uses.
    screen = "screen" if frame.reflections == "rays" else "rays"
    found.append(_option("reflections", settings, reflections=screen))
    shadow_map = "map" if frame.shadows == "rays" else "rays"
    found.append(_option("shadows", settings, shadows=shadow_map))
    for name in ("history", "denoiser"):
        used = getattr(frame, name) > 0
        add(name, _option(name, settings, **{name: 0}) if used else None, "there is none")
    fewer = _option(SHADOW_BUDGET, settings, shadow_rays=1) if frame.shadow_rays > 1 else None
    add(SHADOW_BUDGET, fewer, "surfaces send one shadow ray")
    choice = "uniform" if frame.light_choice == "importance" else "importance"
    chooses = len(scene.lights) > frame.shadow_rays
    switch = _option("light_choice", settings, light_choice=choice) if chooses else None
    add("light_choice", switch, "surfaces send a shadow ray to every light")
    stands = frame.rough_fallback != "environment"
    plain = _option("rough_fallback", settings, rough_fallback="environment") if stands else None
    add("rough_fallback", plain, "the environment stands for rays that are not sent already")
    asks = frame.any_hit != "opaque" and any(has_holes(scene, i) for i in scene.instances)
    any_hit = _option("any_hit", settings, any_hit="opaque") if asks else None
    add("any_hit", any_hit, "no ray tests for holes")
    bounces = 1 if frame.reflection_bounces > 1 else 2
    limit = _option(BOUNCE_LIMIT, settings, reflection_bounces=bounces)
    add(BOUNCE_LIMIT, limit if frame.reflections == "rays" else None, "no reflection rays")
    for ray in frame_rays(frame):
        if ray.bounce_of:
            continue  # silent with the first
        found.append(Switch(ray.name, f"no {ray.name} rays", ("rays",), _without_rays(ray)))
    is_default = all(getattr(build, name) == value for name, value in TREE_OPTIONS.items())
    tree = {**TREE_OPTIONS, "builder": BETTER_BUILDER} if is_default else TREE_OPTIONS
    found.append(_option("builder", settings, **tree))
    nodes = "fp32" if build.nodes == default.NODES else default.NODES
    found.append(_option("nodes", settings, nodes=nodes))
    updates = moves and any(deforms(instance) for instance in scene.instances)
    update = "refit" if frame.update != "refit" else "rebuild"
    switch = _option("update", settings, update=update) if updates else None
    add("update", switch, "nothing is updated")
    hit_table = "coarse" if frame.hit_table == "fine" else "fine"
    found.append(_option("hit_grouping", settings, hit_table=hit_table))
    return found, left_out


def deforms(instance: Instance) -> bool:
    return instance.lifetime == "deforming"


def has_holes(scene: Scene, instance: Instance) -> bool:
    """Whether it is alpha-tested."""
    return not scene.materials[scene.meshes[instance.mesh].material].opaque


def is_foliage(scene: Scene) -> Callable[[Instance], bool]:
    """Vegetation, and what has holes."""
    return lambda instance: instance.lifetime == "vegetation" or has_holes(scene, instance)


def without(scene: Scene, dropped: Callable[[Instance], bool]) -> Scene:
    """The scene without some instances and what moves them. UserError where none is left."""
    kept = [i for i, instance in enumerate(scene.instances) if not dropped(instance)]
    if not kept:
        raise UserError(f"{scene.name}: nothing is left")
    instances = tuple(scene.instances[i] for i in kept)
    animation = scene.animation
    if animation is not None:
        meshes = {instance.mesh: instance.mesh for instance in instances}
        animation = animation.renumbered(meshes, kept)
    return replace(scene, instances=instances, animation=animation)


def _content(
    scene: Scene, name: str, what: str, term: str, dropped: Callable[[Instance], bool]
) -> Switch | None:
    parts = [dropped(instance) for instance in scene.instances]
    if not any(parts) or all(parts):
        return None
    return Switch(
        name,
        f"without {what}",
        (term,),
        lambda old: replace(old, scene=without(old.scene, dropped)),
        {other: why for other, why in LESS_CONTENT.items() if other != term},
    )


def _option(name: str, settings: ViewSettings, **values: Any) -> Switch:
    """Options of `settings` set to other values, by their names in passes/option_list.py."""
    options = {find_option(option): value for option, value in values.items()}

    def off(setup: Setup) -> Setup:
        changed = setup.settings
        for option, value in options.items():
            changed = option.set(changed, value)
        return replace(setup, settings=changed)

    changed = {o: value for o, value in options.items() if o.get(settings) != value}
    what = ", ".join(f"{option.label} {value}" for option, value in changed.items())
    terms = tuple(dict.fromkeys(o.cost_term for o in changed))
    follows = {term: why for o in changed for term, why in o.follows if term not in terms}
    return Switch(name, what, terms, off, follows)


def _without_rays(ray: RayType) -> Callable[[Setup], Setup]:
    def off(setup: Setup) -> Setup:
        if ray.option is not None:
            return replace(setup, settings=find_option(ray.option).set(setup.settings, False))
        assert ray.silence is not None  # what has no option has this
        return replace(setup, silent=(*setup.silent, ray.silence))

    return off
