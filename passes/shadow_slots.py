"""Where a pixel's shadow rays have their places: of each pixel those from its visible surface (kind
0), then those from its k-th reflection hit (kind k), `rays` each. What shadow rays bring lies in
`direct` and `reflected` in the same order (passes/shaders/shadow_slot.wgsl)."""

from dataclasses import dataclass

from passes.frame_options import MOST_BOUNCES, MOST_SHADOW_RAYS, FrameOptions, reflection_name

MOST_SLOTS = MOST_SHADOW_RAYS * (1 + MOST_BOUNCES)  # of a pixel
# Shaders that know slots.
SLOT_SHADERS = (
    "reflection",
    "shadow",
    "shade",
    "light_reflection",
    "light_direct",
    "composite",
    "display_shadow",
    "display_reflection",
    "shadow_map_visible",
    "shadow_map_reflection",
    "screen_reflection",
)
RADIANCE_BYTES = 8  # packed, see passes/shaders/tone_map.wgsl


@dataclass(frozen=True, slots=True)
class ShadowSlots:
    """`rays` are sent from each surface, and a pixel has surfaces up to its last of `bounces`. What
    they find are so many of `steps` parts of the light: 1 of rays, which arrive or do not."""

    rays: int = 1
    bounces: int = 1
    steps: int = 1

    @property
    def starts_at(self) -> tuple[str, ...]:
        """What each slot's ray starts at (`RayType.starts_at`)."""
        hits = [reflection_name(1 + bounce) for bounce in range(self.bounces)]
        return tuple(start for start in ("primary", *hits) for _ in range(self.rays))

    @property
    def direct_bytes(self) -> int:
        """A pixel in `direct`."""
        return RADIANCE_BYTES * self.rays

    @property
    def reflected_bytes(self) -> int:
        """A pixel in `reflected`."""
        return RADIANCE_BYTES * (1 + self.rays * self.bounces)

    def constants(self, shader: str) -> dict[str, float]:
        """What a shader, by its name in passes/shaders, is told where it is not 1."""
        if shader not in SLOT_SHADERS:
            return {}
        values = {
            "SHADOW_RAYS": self.rays,
            "REFLECTION_BOUNCES": self.bounces,
            "SHADOW_STEPS": self.steps,
        }
        return {name: value for name, value in values.items() if value > 1}


ONE_RAY = ShadowSlots()


def shadow_slots(options: FrameOptions) -> ShadowSlots:
    """Of a frame with these options."""
    bounces = options.reflection_bounces if options.reflections == "rays" else 1
    return ShadowSlots(options.shadow_rays, bounces, options.shadow_steps)
