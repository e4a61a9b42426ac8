"""What a hybrid frame is built with; a change of any of these makes new pipelines or buffers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bvh.gpu.trace_rays import STACK_SIZES
from bvh.rays import RayFlags
from engine.gpu.errors import UserError
from passes.ray_kernel import AS_FRAME, BY_ADAPTER, FRAME_LOOPS, RayKernel
from passes.sampler import SAMPLERS

GBUFFERS = ("raster", "rays")
HIT_TABLES = ("coarse", "fine")
# Side of the block of pixels that share a reflection ray (passes/shaders/reflection_block.wgsl).
REFLECTION_BLOCKS = {"full": 1, "half": 2, "quarter": 4}
UPSAMPLES = ("edge", "plain")
NARROW_LOBES = ("own", "shared")
MOST_BOUNCES = 4  # of reflections
MOST_SHADOW_RAYS = 4  # from one surface
ROUGH_FALLBACKS = ("environment", "lobe", "probe")
LIGHT_CHOICES = ("importance", "uniform")
UPDATES = ("refit", "rebuild", "policy")
# How reflections and shadows of the area light are found: by rays, or by the rasteriser.
REFLECTIONS = ("rays", "screen")
SHADOWS = ("rays", "map")
SHADOW_STEPS = 65535  # of a map's results
BY_PICTURE = 0  # of a size: in relation to the picture's
SHADOW_MAP_SIZES = (BY_PICTURE, 128, 256, 512, 1024, 2048, 4096)
PROBE_SIZES = (BY_PICTURE, 32, 64, 128, 256, 512)
# Of a map that is chosen for a picture. Maps are kept, so that a frame like the one before takes as
# long with large ones; those as wide as a small picture have twice the error (hall at 160x90,
# relative MSE: 0.0087 with 256 pixels, 0.0042 with 1,024, by rays 0.0034).
LEAST_MAP, LARGEST_MAP = 1024, 2048
# Of all shadow maps together, where their size is chosen: 256 MiB, and as much again where things
# move, for the layers of what stands still.
MAP_TEXELS = 1 << 26
LIGHT_FACES = 5  # of a shadow map: half a cube
PROBE_POSITIONS = ("camera", "scene")
MOST_SCREEN_STEPS = 4096
# What becomes of a candidate on a triangle that is not opaque, by the ray flags that say so.
ANY_HITS = {"test": RayFlags.NONE, "opaque": RayFlags.OPAQUE, "reject": RayFlags.REJECT}
ANY_HIT_MODES = ("inline", "queue")
MOST_ROUNDS = 8
# Of filters (passes/light_history.py): frames remembered, and rounds of the denoiser, of which the
# last one's samples lie 16 pixels apart.
MOST_HISTORY = 256
MOST_DENOISER = 5
MOST_SEED = 2**32 - 1
# How the frame goes through its queues; see passes/mixed.py and passes/sorting.py.
PASSES = ("own", "mixed")
COMPACTIONS = ("workgroup", "subgroup")
RAY_SORTS = ("none", "coarse", "fine")
EVERY_TYPE = "all"  # of `sorted_rays`, which else is a ray type's name
HIT_SORTS = ("none", "material")
FULL_MASK = 0xFF  # sees every instance
PRIMARY = "primary"  # in masks, the name of what the G-buffer sees: rasterised or by rays


def reflection_name(bounce: int) -> str:
    """Of the ray type of a path's `bounce`th reflection ray, 1 and on."""
    return "reflection" if bounce == 1 else f"reflection_{bounce}"


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """`width` and `height` in pixels. `roughness_cutoff`: smoother surfaces send a reflection
    ray. `count` builds counted pipelines: their counts are true, their times are not.
    `count_lanes` has them tell, too, how many lanes of a subgroup are at work together and how many
    nodes these fetch, if the adapter has subgroup operations: half as slow again (llvmpipe).
    `queue_fraction` scales the queues' capacity; below 1 rays may be dropped (and counted).
    `stack` is the entries of a traversal stack that the frame starts with (one of STACK_SIZES).
    `traversal` is one of bvh.gpu.trace_rays.TRAVERSALS: "contract" sends every node through the
    instruction. `masks` are pairs of a ray type's name and the 8 bits its rays carry: they see the
    TLAS instances whose own mask shares a bit. A type that is not named sees all. `kernels` are
    pairs of a ray type's name and what its traversal kernel is built with instead of `sort_shadow`,
    `loops` and `stack` (passes/ray_kernel.py); types mixed in one pass share the frame's
    loops and the larger stack. `occlusion`
    sends rays that find out how much of the ambient light arrives; what is nearer than
    `occlusion_radius` metres is in its way (0: a part of the scene's size, see
    passes/frame_uniforms.py). It is off by default: at one sample a pixel, which nothing denoises,
    it adds noise wherever ambient light falls, and in the hall half as many node visits again.

    `motion` adds a pass for how far each pixel's surface has moved on the picture since the one
    before (passes/motion.py).

    `any_hit` is what rays do with a candidate on a triangle that is not opaque, one of ANY_HITS:
    "test" its alpha; take it for "opaque"; or "reject" it untested, which makes the most any-hit
    calls that there can be. Triangles that the build left out stay out, and the rasteriser, which
    has no rays, always tests. `any_hit_mode` says where rays test: "inline", or in passes between
    `any_hit_rounds` rounds of traversal and a last one, inline again ("queue", see
    passes/candidates.py; contract traversal has no rounds). Both give the same hits.

    `hit_table` says where a hit finds its material: by way of its object ("coarse"), or in a record
    that the object has of its own ("fine", see passes/hit_table.py). Pictures are equal.

    `reflection_scale` is of the picture's sides, one of REFLECTION_BLOCKS: at "half" each block of
    2x2 pixels sends one reflection ray, at "quarter" each of 4x4, from another of its pixels in
    every frame (passes/shaders/reflection_block.wgsl). `upsample` says what its other pixels are
    shown: what arrives at the senders nearby on surfaces like their own ("edge", see
    passes/shaders/upsample.wgsl), or the block's ray as it is ("plain"). `narrow_lobes` says
    whether pixels whose reflection is sharper than a block's rays can show, mirrors first of all,
    send a ray of their "own" besides, in every frame, or take turns like all others ("shared").

    `reflection_bounces` is the most rays of a path of reflections, 1 to MOST_BOUNCES: where a ray
    hits a surface up to `roughness_cutoff` the next one starts; what the last one hits reflects the
    environment (passes/rays/bounce.py).

    `history` is how many frames light is remembered for, 0 for none; it switches `motion` on.
    `denoiser` is how many rounds of an edge-avoiding filter smooth it, 0 for none: see
    passes/light_history.py.

    `reflections` come by "rays", or from the "screen" (passes/screen_passes.py): reflected
    directions are followed over the picture's own depth, each through at most `screen_steps` cells
    of its pyramid (passes/depth_pyramid.py), and what is not found there is looked up in a probe of
    `probe_size` pixels a side (passes/probe_passes.py), taken where the camera stands or in the
    middle of the scene's box (`probe_position`); that of a moving camera is kept for
    `probe_distance`, a part of the scene's diagonal (passes/probe_place.py). `shadows` come by
    "rays", or by a "map" of depths about each light's centre, `shadow_map_size` pixels a side
    (passes/shadow_map_passes.py); a probe is always lit by maps. Both sizes may be BY_PICTURE.
    `map_lights` is how many lights have a map: a frame puts in its scene's (`sized`).
    Where one of them does not use rays, the frame has no queue, traversal or shading of that ray
    type, and options of its rays mean nothing.

    `rough_fallback` stands for the ray of a surface rougher than `roughness_cutoff`: the
    "environment" in the mirrored direction, its mean over the surface's "lobe", or what a "probe"
    shows there (passes/rough_fallback.py).

    `shadow_rays` is the shadow budget: how many rays to the lights a surface sends, 1 to
    MOST_SHADOW_RAYS. Where there are more lights than that each ray draws one, by "importance" or
    "uniform" among those that may reach the surface (`light_choice`); else they take turns.

    `sampler` says what the random numbers are, one of SAMPLERS (passes/sampler.py).

    `update` is what happens to a BLAS whose vertices move, each frame: "refit", "rebuild" or what
    the "policy" decides (bvh.rebuild_policy). Refits are the default: then a frame depends on its
    time alone, not on the frames before it, and the trees of walking figures stay within a few
    percent of new ones (benchmarks/records/refit-drift-*)."""

    width: int
    height: int
    seed: int = 0
    sampler: str = SAMPLERS[0]
    gbuffer: str = "raster"
    roughness_cutoff: float = 0.6
    exposure: float = 1.0
    count: bool = False
    count_lanes: bool = False
    sort_shadow: bool = False
    loops: str = BY_ADAPTER
    queue_fraction: float = 1.0
    stack: int = STACK_SIZES[0]
    traversal: str = "fast"
    masks: tuple[tuple[str, int], ...] = ()
    update: str = "refit"
    any_hit: str = "test"
    occlusion: bool = False
    occlusion_radius: float = 0.0
    motion: bool = False
    any_hit_mode: str = "inline"
    any_hit_rounds: int = 2
    hit_table: str = "coarse"
    reflection_scale: str = "full"
    upsample: str = UPSAMPLES[0]
    narrow_lobes: str = NARROW_LOBES[0]
    reflection_bounces: int = 1
    history: int = 0
    denoiser: int = 0
    rough_fallback: str = "environment"
    shadow_rays: int = 1
    light_choice: str = "importance"
    passes: str = "own"
    compaction: str = "workgroup"
    ray_sort: str = "none"
    sorted_rays: str = EVERY_TYPE
    hit_sort: str = "none"
    kernels: tuple[tuple[str, RayKernel], ...] = ()
    reflections: str = "rays"
    shadows: str = "rays"
    shadow_map_size: int = BY_PICTURE
    map_lights: int = 1
    probe_size: int = BY_PICTURE
    probe_position: str = "camera"
    probe_distance: float = 0.02
    screen_steps: int = 512

    def __post_init__(self) -> None:
        for label, value, known in (
            ("reflections", self.reflections, REFLECTIONS),
            ("shadows", self.shadows, SHADOWS),
            ("shadow map size", self.shadow_map_size, SHADOW_MAP_SIZES),
            ("probe size", self.probe_size, PROBE_SIZES),
            ("probe position", self.probe_position, PROBE_POSITIONS),
            ("sampler", self.sampler, SAMPLERS),
            ("loops", self.loops, FRAME_LOOPS),
            ("passes", self.passes, PASSES),
            ("compaction", self.compaction, COMPACTIONS),
            ("ray sort", self.ray_sort, RAY_SORTS),
            ("hit sort", self.hit_sort, HIT_SORTS),
            ("rough fallback", self.rough_fallback, ROUGH_FALLBACKS),
            ("light choice", self.light_choice, LIGHT_CHOICES),
            ("reflection scale", self.reflection_scale, tuple(REFLECTION_BLOCKS)),
            ("upsampling", self.upsample, UPSAMPLES),
            ("narrow lobes", self.narrow_lobes, NARROW_LOBES),
        ):
            if value not in known:
                there = ", ".join(map(str, known))
                raise UserError(f"unknown {label} '{value}', there are {there}")
        if not 0 <= self.seed <= MOST_SEED:
            raise UserError(f"a seed is 0 to {MOST_SEED}, not {self.seed}")
        if not 1 <= self.screen_steps <= MOST_SCREEN_STEPS:
            raise UserError(f"screen steps are 1 to {MOST_SCREEN_STEPS}, not {self.screen_steps}")
        if not 0 <= self.probe_distance <= 1:
            raise UserError(
                "the probe distance is a part of the scene's diagonal, 0 to 1, not "
                f"{self.probe_distance:g}"
            )
        if self.any_hit not in ANY_HITS:
            raise UserError(f"unknown any-hit '{self.any_hit}', there are {', '.join(ANY_HITS)}")
        if self.any_hit_mode not in ANY_HIT_MODES:
            there = ", ".join(ANY_HIT_MODES)
            raise UserError(f"unknown any-hit mode '{self.any_hit_mode}', there are {there}")
        if not 1 <= self.any_hit_rounds <= MOST_ROUNDS:
            raise UserError(f"any-hit rounds are 1 to {MOST_ROUNDS}, not {self.any_hit_rounds}")
        if not 1 <= self.reflection_bounces <= MOST_BOUNCES:
            raise UserError(
                f"reflection bounces are 1 to {MOST_BOUNCES}, not {self.reflection_bounces}"
            )
        if not 1 <= self.shadow_rays <= MOST_SHADOW_RAYS:
            raise UserError(f"shadow rays are 1 to {MOST_SHADOW_RAYS}, not {self.shadow_rays}")
        if self.hit_table not in HIT_TABLES:
            there = ", ".join(HIT_TABLES)
            raise UserError(f"unknown hit table '{self.hit_table}', there are {there}")
        if self.update not in UPDATES:
            raise UserError(f"unknown update '{self.update}', there are {', '.join(UPDATES)}")
        radius = self.occlusion_radius
        if not 0 <= radius < math.inf:
            raise UserError(f"the occlusion radius is in metres, 0 for its default, not {radius:g}")
        if not 0 <= self.history <= MOST_HISTORY:
            raise UserError(f"history is 0 to {MOST_HISTORY} frames, not {self.history}")
        if not 0 <= self.denoiser <= MOST_DENOISER:
            raise UserError(f"the denoiser has 0 to {MOST_DENOISER} rounds, not {self.denoiser}")
        for ray_type, mask in self.masks:
            if not 0 <= mask <= FULL_MASK:
                raise UserError(f"the mask of {ray_type} rays is 8 bits, 0 to 255, not {mask}")

    @property
    def reflection_block(self) -> int:
        """Side of the block of pixels that share a reflection ray."""
        return REFLECTION_BLOCKS[self.reflection_scale]

    @property
    def finds_edges(self) -> bool:
        """Whether reflections are upsampled by surfaces."""
        return self.reflection_block > 1 and self.upsample == "edge"

    @property
    def sends_narrow(self) -> bool:
        """Whether pixels with a narrow lobe send a reflection ray of their own besides the
        block's."""
        return self.reflection_block > 1 and self.narrow_lobes == "own"

    @property
    def lights_apart(self) -> bool:
        """Whether passes work on light between the rays and the composite
        (passes/lights_apart.py)."""
        return self.reflection_scale != "full" or self.filtered

    @property
    def filtered(self) -> bool:
        """Whether light is filtered before the composite (passes/light_history.py)."""
        return self.history > 0 or self.denoiser > 0

    @property
    def finds_motion(self) -> bool:
        """Whether the frame has the pass `motion`; what is remembered is found by it."""
        return self.motion or self.history > 0

    @property
    def has_probe(self) -> bool:
        """Whether the frame captures a reflection probe."""
        return self.reflections == "screen" or self.rough_fallback == "probe"

    @property
    def has_shadow_map(self) -> bool:
        """Whether it draws a shadow map: for what is seen, or for what a probe sees."""
        return self.shadows == "map" or self.has_probe

    @property
    def probe_face(self) -> int:
        """Pixels a side of a probe's faces: the six have about as many as the probe has texels."""
        return self.probe_size // 2

    @property
    def shadow_steps(self) -> int:
        """What shadow results are parts of (passes/shaders/shadow_visibility.wgsl)."""
        return SHADOW_STEPS if self.shadows == "map" else 1

    @property
    def traces(self) -> bool:
        """Whether any of its passes traverses the BVH."""
        rays = "rays" in (self.gbuffer, self.reflections, self.shadows)
        return rays or self.occlusion

    def mask(self, ray_type: str) -> int:
        return dict(self.masks).get(ray_type, FULL_MASK)

    def kernel(self, ray_type: str) -> RayKernel:
        return dict(self.kernels).get(ray_type, RayKernel())

    def kernel_sorts(self, ray_type: str, any_hit: bool) -> bool:
        """Whether rays of this type visit the nearest child first."""
        own = self.kernel(ray_type).sort
        if own == AS_FRAME:
            return self.sort_shadow if any_hit else True
        return own == "on"

    def kernel_stack(self, ray_type: str) -> int:
        """Entries of the stack that rays of this type start with."""
        own = self.kernel(ray_type).stack
        return self.stack if own == AS_FRAME else int(own)

    def kernel_loops(self, ray_type: str) -> str:
        """Of FRAME_LOOPS, the one that the type's kernel is built with."""
        own = self.kernel(ray_type).loops
        return self.loops if own == AS_FRAME else own

    def with_larger_stack(self, sizes: Sequence[int] = STACK_SIZES) -> "FrameOptions | None":
        """After an overflow: without the types' own stacks, or where there are none with the next
        of `sizes`; None where that was the last."""
        options = self
        for name, kernel in self.kernels:
            options = options.with_kernel(name, replace(kernel, stack=AS_FRAME))
        if options != self:
            largest = max(self.stack, *(self.kernel_stack(name) for name, _ in self.kernels))
            return replace(options, stack=largest)
        larger = [size for size in sizes if size > self.stack]
        return replace(self, stack=larger[0]) if larger else None

    @property
    def ray_flags(self) -> RayFlags:
        """Of every ray of the frame."""
        return ANY_HITS[self.any_hit]

    def within(self, ray_bits: Sequence[tuple[str, int]]) -> "FrameOptions":
        """The same for a scene whose objects name the ray types that see them: rays of each type
        keep of their mask what the scene gives that type (`Scene.ray_bits`)."""
        options = self
        for ray_type, bits in ray_bits:
            options = options.with_mask(ray_type, options.mask(ray_type) & bits)
        return options

    def sized(self, lights: int) -> "FrameOptions":
        """The same for a scene of so many lights, with the sizes that are BY_PICTURE chosen: a
        face of a map at least as wide as the picture, from LEAST_MAP to LARGEST_MAP and as far as
        MAP_TEXELS go, a probe at least half as high."""
        options = self
        if self.has_shadow_map:
            size = self.shadow_map_size
            if size == BY_PICTURE:
                longer = max(self.width, self.height)
                size = next((s for s in SHADOW_MAP_SIZES if longer <= s >= LEAST_MAP), LARGEST_MAP)
                size = min(size, LARGEST_MAP)
                while LIGHT_FACES * lights * size**2 > MAP_TEXELS:
                    size //= 2
            options = replace(options, map_lights=lights, shadow_map_size=size)
        if self.has_probe and self.probe_size == BY_PICTURE:
            size = next((s for s in PROBE_SIZES if self.height / 2 <= s >= 128), PROBE_SIZES[-1])
            options = replace(options, probe_size=size)
        return options

    def with_mask(self, ray_type: str, mask: int) -> "FrameOptions":
        """The same with another mask for one ray type. Equal masks make equal options, whatever
        the order they were set in."""
        masks = {**dict(self.masks), ray_type: mask}
        named = sorted((name, bits) for name, bits in masks.items() if bits != FULL_MASK)
        return replace(self, masks=tuple(named))

    def with_kernel(self, ray_type: str, kernel: RayKernel) -> "FrameOptions":
        """The same with another kernel for one ray type; equal ones make equal options."""
        kernels = {**dict(self.kernels), ray_type: kernel}
        named = sorted(name for name, own in kernels.items() if own != RayKernel())
        return replace(self, kernels=tuple((name, kernels[name]) for name in named))
