"""A made-up machine: what each kernel and build costs is known, and so is the clock."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bvh.blas import BuildOptions
from passes.ray_kernel import RayKernel
from treeline.tune.agreement import Agreement
from treeline.tune.blocks import Block, Measured
from treeline.tune.cases import Case, Recipe

BASE = Recipe(BuildOptions())
COSTS = {"bvh_bytes": 1e6, "geometry_bytes": 2e6, "build_ms": 100.0}
HITS = {"near": Agreement(20_000, 1, 7), "dark": Agreement(40_000, 0)}
ANY_HIT = {"near": False, "dark": True}


class Machine:
    """`kernel_costs[(ray, kernel)]` and `costs[(axis, value)]` are factors of 10 ms; `noise`
    is the relative spread. Every block takes `seconds`. It breaks in block `breaks`."""

    def __init__(self, **settings: Any) -> None:
        self.kernel_costs: dict[tuple[str, RayKernel], float] = {}
        self.costs: dict[tuple[str, Any], float] = {}
        self.refused: Callable[[Case], str | None] = lambda case: None
        self.noise, self.seconds, self.breaks = 0.001, 1.0, -1
        self.blocks: list[tuple[str, list[Case], int]] = []
        self.__dict__.update(settings)

    def cost(self, case: Case, ray: str) -> float:
        cost = 10.0 if ray == "near" else 5.0
        for (name, value), factor in self.costs.items():
            cost *= factor if case.recipe.value(name) == value else 1.0
        return cost * self.kernel_costs.get((ray, dict(case.kernels).get(ray, RayKernel())), 1.0)

    def measure(self, phase: str, cases: Sequence[Case], turns: int) -> Block:
        if len(self.blocks) == self.breaks:
            raise KeyboardInterrupt
        self.blocks.append((phase, list(cases), turns))
        results = []
        for case in cases:
            seed = zlib.crc32(repr((phase, case, turns)).encode())
            random = np.random.default_rng(seed)
            spread = {ray: 1 + self.noise * random.standard_normal(turns) for ray in ANY_HIT}
            refused = self.refused(case)
            ms = {ray: (self.cost(case, ray) * spread[ray]).tolist() for ray in ANY_HIT}
            results.append(Measured(case, {} if refused else ms, HITS, refused, COSTS))
        return Block(tuple(results), self.seconds)


class Quiet:
    """A Progress that says nothing."""

    def begin(self, text: str, total: int = 1) -> None: ...

    def advance(self, detail: str = "") -> None: ...


@pytest.fixture
def machine() -> type[Machine]:
    return Machine


@pytest.fixture
def search() -> Callable[..., Any]:
    """search(measure, budget_s) over a made-up machine's two ray types."""
    from treeline.tune.search import Search

    def make(measure: Any, budget_s: float = 1e9, **settings: Any) -> Search:
        return Search(measure, BASE, ANY_HIT, "one", budget_s, Quiet(), **settings)

    return make
