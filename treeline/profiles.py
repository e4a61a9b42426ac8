"""Profiles: what a class of machines is asked to do, and which capabilities that needs.

After the ray tracing chapter, section 37.5. They are ordered, the best first; `negotiate` takes the
first one whose needs are met and says of every better one why it was refused. A profile that needs
parts which this program does not have yet is refused for that, and never replaced by something
that looks alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from passes.frame_options import FrameOptions

RAY_QUERY = "ray-query"  # wgpu-native's name of the feature
PRIMITIVE_INDEX = "primitive-index"
# WebGPU's guaranteed limits, which the frame's kernels and the hall's structure stay within.
GUARANTEED = {
    "max-storage-buffers-per-shader-stage": 8,
    "max-storage-buffer-binding-size": 128 << 20,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-storage-size": 16384,
}
# Of these a frame without rays needs, which binds no structure and has no queues.
WITHOUT_RAYS = {
    "max-storage-buffers-per-shader-stage": 8,
    "max-compute-invocations-per-workgroup": 64,
}
LARGE_BINDING = 1 << 30  # bytes: structures of some ten million triangles


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an adapter offers through wgpu. `builds_structures`: the interface has calls that make
    acceleration structures, which ray queries read."""

    adapter: str
    interface: str
    features: frozenset[str]
    limits: Mapping[str, int]
    builds_structures: bool


@dataclass(frozen=True, slots=True)
class Need:
    """`refusal` says what is missing, or None where it is there."""

    name: str
    refusal: Callable[[Capabilities], str | None]


@dataclass(frozen=True, slots=True)
class Profile:
    """One line of the table. `rays`: rays a pixel by type, at full resolution; `scale` is of their
    picture's sides; `bounces` of reflection. `options` are fields of FrameOptions. `not_there` are
    parts that it needs and that do not exist here yet."""

    name: str
    tracing: str
    rays: Mapping[str, float]
    scale: float
    bounces: int
    any_hit: str
    denoiser: str
    materials: str
    options: Mapping[str, Any]
    needs: tuple[Need, ...]
    not_there: tuple[str, ...] = ()

    def frame(self, options: FrameOptions) -> FrameOptions:
        """The options with what the profile sets."""
        return replace(options, **self.options)

    def refusals(self, here: Capabilities) -> list[str]:
        """Why it cannot run: what the machine lacks, then what this program does."""
        lacking = [text for need in self.needs if (text := need.refusal(here)) is not None]
        return lacking + [f"{part}: not there yet" for part in self.not_there]

    def facts(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "name": self.name,
            "tracing": self.tracing,
            "rays": dict(self.rays),
            "scale": self.scale,
            "bounces": self.bounces,
            "any_hit": self.any_hit,
            "denoiser": self.denoiser,
            "materials": self.materials,
            "options": dict(self.options),
            "needs": [need.name for need in self.needs],
            "not_there": list(self.not_there),
        }


def _ray_query(here: Capabilities) -> str | None:
    reasons = []
    if RAY_QUERY not in here.features:
        reasons.append(f"{here.adapter} does not offer the feature {RAY_QUERY}")
    if not here.builds_structures:
        reasons.append(f"{here.interface} has no call that builds an acceleration structure")
    return ", and ".join(reasons) or None


def _raster_ids(here: Capabilities) -> str | None:
    if PRIMITIVE_INDEX in here.features:
        return None
    return f"{here.adapter} does not offer the feature {PRIMITIVE_INDEX}"


def _limits(needed: Mapping[str, int]) -> Need:
    def refusal(here: Capabilities) -> str | None:
        short = [
            f"{name} is {here.limits.get(name, 0):,}, {least:,} needed"
            for name, least in needed.items()
            if here.limits.get(name, 0) < least
        ]
        return "; ".join(short) or None

    return Need("limits " + ", ".join(f"{name} {least}" for name, least in needed.items()), refusal)


RAY_QUERIES = Need("hardware ray queries", _ray_query)
COMPUTE = _limits(GUARANTEED)
RASTER_IDS = Need("numbers of rasterised triangles", _raster_ids)

PROFILES = (
    Profile(
        "HardwareRT_High",
        tracing="hardware ray queries",
        rays={"reflection": 1, "reflection_2": 1, "shadow": 3, "occlusion": 1},
        scale=1.0,
        bounces=2,
        any_hit="inline",
        denoiser="spatial and temporal",
        materials="all textures",
        options={
            "occlusion": True,
            "roughness_cutoff": 1.0,
            "any_hit_mode": "inline",
            "history": 32,
            "denoiser": 4,
            "reflection_bounces": 2,
        },
        needs=(
            RAY_QUERIES,
            _limits({**GUARANTEED, "max-storage-buffer-binding-size": LARGE_BINDING}),
        ),
        not_there=("ray queries in the kernels",),
    ),
    Profile(
        "HardwareRT_Limited",
        tracing="hardware ray queries",
        rays={"reflection": 1, "shadow": 2},
        scale=1.0,
        bounces=1,
        any_hit="inline",
        denoiser="running mean",
        materials="base colour, roughness, metalness",
        options={"occlusion": False, "roughness_cutoff": 0.6, "any_hit_mode": "inline"},
        needs=(RAY_QUERIES, COMPUTE),
        not_there=("ray queries in the kernels",),
    ),
    Profile(
        "ComputeFull",
        tracing="compute over the guest layout",
        rays={"reflection": 1, "shadow": 2},
        scale=1.0,
        bounces=1,
        any_hit="inline",
        denoiser="running mean",
        materials="base colour, roughness, metalness",
        options={"occlusion": False, "roughness_cutoff": 0.6, "any_hit_mode": "inline"},
        needs=(COMPUTE,),
    ),
    Profile(
        "ComputeHalf",
        tracing="compute over the guest layout",
        rays={"reflection": 0.25, "shadow": 1.25},
        scale=0.5,
        bounces=1,
        any_hit="queue",
        denoiser="spatial and temporal",
        materials="base colour, roughness, metalness",
        options={
            "occlusion": False,
            "roughness_cutoff": 0.4,
            "any_hit_mode": "queue",
            "reflection_scale": "half",
            "history": 32,
            "denoiser": 3,
        },
        needs=(COMPUTE,),
    ),
    Profile(
        "RasterFallback",
        tracing="none",
        rays={},
        scale=1.0,
        bounces=0,
        any_hit="raster's alpha test",
        denoiser="none",
        materials="base colour, roughness, metalness",
        options={
            "occlusion": False,
            "roughness_cutoff": 0.6,
            "gbuffer": "raster",
            "reflections": "screen",
            "shadows": "map",
        },
        needs=(_limits(WITHOUT_RAYS), RASTER_IDS),
    ),
)


@dataclass(frozen=True, slots=True)
class Negotiation:
    """`chosen` is None where no profile can run. `refused` has the reasons of every other that
    cannot, better or not."""

    chosen: Profile | None
    refused: Mapping[str, tuple[str, ...]]

    def lines(self) -> list[tuple[str, str]]:
        """Name and answer of every profile, the best first."""
        answers = []
        for profile in PROFILES:
            if profile is self.chosen:
                answer = "CHOSEN"
            elif profile.name in self.refused:
                answer = f"refused: {'; '.join(self.refused[profile.name])}"
            else:
                answer = "possible, a better one was chosen"
            answers.append((profile.name, answer))
        return answers


def negotiate(here: Capabilities) -> Negotiation:
    """The best profile whose needs are met here."""
    reasons = {profile.name: tuple(profile.refusals(here)) for profile in PROFILES}
    chosen = next((profile for profile in PROFILES if not reasons[profile.name]), None)
    return Negotiation(chosen, {name: why for name, why in reasons.items() if why})


def capabilities(device: Any) -> Capabilities:
    """Those of an engine.gpu.device.Device's adapter."""
    from wgpu.backends import wgpu_native

    calls = (name for name in dir(wgpu_native.lib) if name.startswith("wgpu"))
    return Capabilities(
        adapter=device.info.adapter,
        interface=f"wgpu-native {wgpu_native.__version__}",
        features=frozenset(device.wgpu.adapter.features),
        limits=device.limits,
        builds_structures=any("Blas" in name or "AccelerationStructure" in name for name in calls),
    )
