"""Structures of one scene's variants, for commands that compare many of them.

A BLAS that is in several is built once: the user's cache on disk keeps those that last, memory
those of figures that deform, which that cache leaves out. Textures' mips are shared, too. What the
GPU can build is built there, to the same bytes.
"""

from dataclasses import dataclass, field
from typing import Any

from bvh.blas import Blas, BuildOptions
from bvh.blas_cache import BlasCache, blas_key
from bvh.gpu.blas_builder import refusal
from engine.gpu.device import Device
from engine.scene.scene import Scene
from passes.build_blases import Build
from passes.prepare import PreparedScene
from treeline import structures

MOST_BYTES = 512 << 20  # of remembered BLASes

Key = tuple[tuple[str, ...], BuildOptions, str]


@dataclass(slots=True)
class SharedBuilds:
    """`device` to build on, None for the CPU, where those go, too, that no GPU can build. `or_cpu`
    as of `treeline.structures.build`. Of structures those asked for last are kept, `most`."""

    device: Device | None
    cache: BlasCache | None
    or_cpu: bool = True
    most: int = 8
    _prepared: dict[Key, PreparedScene] = field(default_factory=dict)
    _blases: dict[str, Blas] = field(default_factory=dict)

    def prepare(self, scene: Scene, options: BuildOptions, group: str) -> PreparedScene:
        """As `passes.prepare.prepare`. Scenes of the same instances are taken for the same."""
        key = (tuple(instance.name for instance in scene.instances), options, group)
        found = self._prepared.pop(key, None)
        if found is None:
            found = structures.build(
                scene,
                options,
                group,
                device=None if refusal(options) else self.device,
                cache=self.cache,
                or_cpu=self.or_cpu,
                like=next(iter(self._prepared.values()), None),
                through=self._remember,
            ).prepared
        self._prepared[key] = found
        for old in list(self._prepared)[: -self.most]:
            del self._prepared[old]
        return found

    def _remember(self, build: Build) -> Build:
        """The same, but for BLASes that were built before."""

        def remembered(
            triangles: Any, geometry: Any, primitive: Any, opaque: Any, options: BuildOptions
        ) -> Blas:
            given = (triangles, geometry, primitive, opaque, options)
            key = blas_key(*given)
            found = self._blases.pop(key, None)
            self._blases[key] = found = build(*given) if found is None else found
            while sum(blas.words.nbytes for blas in self._blases.values()) > MOST_BYTES:
                del self._blases[next(iter(self._blases))]  # that was asked for longest ago
            return found

        return remembered
