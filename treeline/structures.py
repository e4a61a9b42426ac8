"""Structures for the commands: read from a file, or built from the scene as options say."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bvh.blas_cache import BlasCache
from bvh.build import BuildOptions, build_blas
from bvh.container import load as load_container
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.gpu.errors import LimitError, UserError
from engine.scene.scene import Scene
from passes.build_blases import Build, SharedBuilder
from passes.prepare import PreparedScene, prepare
from treeline.measure import Progress

if TYPE_CHECKING:
    from treeline.cli.options import Common


@dataclass(frozen=True, slots=True)
class Structure:
    """A prepared scene, where its BLASes were built, and how many of them the cache had."""

    prepared: PreparedScene
    on: str  # cpu, gpu, or cpu+gpu: small meshes on the CPU, where the GPU is a CPU driver
    cached: int

    @property
    def bvh(self) -> SceneBvh:
        return self.prepared.bvh

    def context(self) -> dict[str, Any]:
        """What a report says of it, beside its options."""
        return {
            "on": self.on,
            "blas_built": len(self.bvh.blas_stats) - self.cached,
            "blas_cached": self.cached,
            "triangle_opacity": self.prepared.opacity_counts(),
        }


def read(path: Path) -> SceneBvh:
    """The structure saved in an .npz. Raises UserError for a missing, damaged or foreign one."""
    if not path.exists():
        raise UserError(f"{path}: no such file")
    return load_container(path)


def build(
    scene: Scene,
    options: BuildOptions,
    group: str,
    *,
    device: Device | None = None,
    cache: BlasCache | None = None,
    progress: Progress | None = None,
    or_cpu: bool = False,
    like: PreparedScene | None = None,
    through: Callable[[Build], Build] | None = None,
) -> Structure:
    """The scene's structure, as a frame would trace it, built on the `device` if there is one and
    options allow it (see `passes.prepare`); with `or_cpu`, on the CPU where that has no room, and
    small meshes where that is faster. Textures are taken from `like`, if they are the same;
    `through` gives what is called to build a BLAS that no cache has."""
    place = device if options.pairing == "near" else None
    where = "the CPU" if place is None else place.info.adapter

    def told(index: int, name: str, done: int, total: int) -> None:
        if progress is not None and done:
            progress.advance(name)
        elif progress is not None:
            progress.begin(f"building {total} BLAS on {where}", total)

    shared = None if place is None else SharedBuilder(place, all_there=not or_cpu)
    try:
        how = build_blas if shared is None else shared.build
        how = how if through is None else through(how)
        prepared = prepare(scene, options, group, cache, build=how, told=told, like=like)
    except LimitError:
        if place is None or not or_cpu:
            raise
        more: dict[str, Any] = {"progress": progress, "like": like, "through": through}
        return build(scene, options, group, cache=cache, **more)
    cached = 0 if cache is None else cache.counts.hits
    places = {"cpu"} if shared is None else shared.places or {"gpu"}
    return Structure(prepared, "+".join(sorted(places)), cached)


def build_for(
    common: "Common",
    scene: Scene,
    progress: Progress,
    *,
    device: Device | None = None,
    cached: bool = True,
) -> Structure:
    """As the command's options say; `device` is the one that the command has opened already, and
    `cached` whether it uses the cache unless told otherwise."""
    return build(
        scene,
        common.build_options(),
        common.group,
        device=common.build_device(device),
        cache=common.blas_cache(cached),
        progress=progress,
        or_cpu=common.on == "auto",
    )


def read_or_build(
    path: Path | None, common: "Common", progress: Progress, *, cached: bool = True
) -> SceneBvh:
    """The structure saved there, or without a path the one that `build_for` makes of the scene."""
    progress.begin("reading" if path else "loading the scene")
    if path:
        return read(path)
    return build_for(common, common.load_scene(), progress, cached=cached).bvh
