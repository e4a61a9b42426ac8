"""Which pixel sends a pixel's rays: itself, or where rays are sent at a part of the picture's size
the one of its block whose turn it is (passes/shaders/reflection_block.wgsl), if its own
reflection is not too sharp for that (`FrameOptions.narrow_lobes`); so does what starts at such a
ray's hit. Light is upsampled from the rays of the blocks nearby, too
(passes/shaders/upsample.wgsl)."""

from collections.abc import Sequence

from passes.frame_options import FrameOptions
from passes.rays import RayType


def block_side(options: FrameOptions, ray: RayType) -> int:
    """Of the block of pixels that share one of the type's own rays."""
    return getattr(options, ray.block) if ray.block else 1


def slot_block(options: FrameOptions, rays: Sequence[RayType], ray: RayType, kind: int) -> int:
    """Side of the block of pixels that share the ray in slot `kind` of a pixel's; `rays` are the
    frame's types."""
    starts_at = ray.starts_at[kind]
    parents = [block_side(options, other) for other in rays if other.name == starts_at]
    return max(block_side(options, ray), *parents, 1)


def shared_slots(options: FrameOptions, rays: Sequence[RayType], ray: RayType) -> int:
    """The bits of the slots of a pixel's whose rays may be another's of its block."""
    sides = [slot_block(options, rays, ray, kind) for kind in range(ray.slots_per_pixel)]
    return sum(1 << kind for kind, side in enumerate(sides) if side > 1)
