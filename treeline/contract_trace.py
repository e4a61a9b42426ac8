"""`treeline contract open --trace`: one ray through a dump, every instruction logged."""

from typing import Any

import numpy as np

from bvh.contract.cases import Rules
from bvh.contract.trace import Ended, Options
from bvh.contract.trace_log import Step
from bvh.contract.traverse import traverse
from engine.gpu.errors import UserError
from treeline.contract_dump import Opened

STEP_LIMIT = 10_000  # a log beyond that is of no use, and a cycle ends


def parse_ray(origin: str, direction: str) -> tuple[list[float], list[float]]:
    """Two vectors of three numbers."""
    found = []
    for text in (origin, direction):
        parts = text.split(",")
        try:
            values = [float(np.float32(part)) for part in parts]
        except ValueError:
            values = []
        if len(values) != 3:
            raise UserError(f"a ray's vector is X,Y,Z, not '{text}'")
        found.append(values)
    return found[0], found[1]


def trace(
    opened: Opened,
    origin: list[float],
    direction: list[float],
    rules: Rules,
    enter_instances: bool,
) -> dict[str, Any]:
    """The steps as data and as text. User nodes of a foreign dump are not entered, their layout
    is the builder's; `enter_instances` says that they are ours."""
    steps: list[Step] = []
    out = traverse(
        opened.memory,
        opened.descriptor,
        opened.root,
        np.array([origin], np.float32),
        np.array([direction], np.float32),
        np.zeros(1, np.float32),
        np.full(1, np.inf, np.float32),
        Options(rules=rules, instances=enter_instances, step_limit=STEP_LIMIT, log=steps.append),
    )
    ended = Ended(out.ended[0])
    hit = bool(np.isfinite(out.t[0]))
    lines = [line for step in steps for line in step.lines()]
    if hit:
        lines.append(
            f"hit: t {out.t[0]:.9g}, u {out.u[0]:.9g}, v {out.v[0]:.9g}, "
            f"node {int(out.pointer[0]):x}; {len(steps)} instructions, {ended}"
        )
    else:
        lines.append(f"no hit; {len(steps)} instructions, {ended}")
    return {
        "rules": rules,
        "ended": str(ended),
        "error": out.error_count > 0,
        "hit": {
            "t": float(out.t[0]),
            "u": float(out.u[0]),
            "v": float(out.v[0]),
            "node_pointer": f"0x{int(out.pointer[0]):x}",
        }
        if hit
        else None,
        "instruction_count": len(steps),
        "steps": [
            {
                "node_pointer": f"0x{step.node_pointer:x}",
                "address": f"0x{step.address:x}",
                "status": step.status.name,
                "words": [f"{word:08x}" for word in step.raw],
                "result": [f"{word:08x}" for word in step.result],
                "pushed": [f"{pointer:x}" for pointer in step.pushed],
                "note": step.note,
            }
            for step in steps
        ],
        "lines": lines,
    }
