"""The contract on the GPU: batches of single instructions through the WGSL twin of `bvh.contract`.

The shader does every check itself (descriptor type, size and address limit, ray validity,
memory that is not there) and computes on bits, so its words are exact for every input: denormals,
infinities and NaN included, contraction or not. See shaders/arithmetic_exact.wgsl.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bvh.contract.cases import RULES, U32, Cases, Rules
from engine.gpu.device import Device
from engine.gpu.stage import Stage

GROUP_SIZE = 64
CASE_WORDS = 52  # node 32, descriptor 4, pointer 2, backed 1, extent 1, three vectors, 3 unused
BATCH = 1 << 17  # cases a dispatch: 27 MB of records

Arithmetic = Literal["exact", "plain"]


def pack(cases: Cases) -> U32:
    """`[n, 52]` records as `intersect_cases.wgsl` reads them."""
    count = len(cases)
    parts = (
        cases.node_words,
        cases.descriptor,
        cases.pointer_low[:, None],
        cases.pointer_high[:, None],
        cases.backed[:, None],
        cases.extent[:, None],
        cases.origin,
        cases.direction,
        cases.inverse_direction,
        np.zeros((count, 3), np.uint32),
    )
    records = np.concatenate(parts, axis=1)
    assert records.shape[1] == CASE_WORDS and records.dtype == np.uint32
    return records


@dataclass(frozen=True, slots=True)
class Refusals:
    """How many instructions the kernel itself refused, by reason. None of them read its node."""

    descriptor: int = 0  # its type, or a pointer beyond its size or beyond 48 bits
    ray: int = 0  # a NaN, or an infinite origin
    memory: int = 0  # blocks that are not there


class Intersector:
    """One rule set compiled on one device."""

    def __init__(
        self, device: Device, rules: Rules = "chapter", arithmetic: Arithmetic = "exact"
    ) -> None:
        if rules not in RULES:
            raise ValueError(f"unknown rules {rules!r}, there are {', '.join(RULES)}")
        self.device = device
        self.rules = rules
        self.stage = Stage(
            device,
            f"contract/{rules}",
            "bvh/contract/shaders/intersect_cases.wgsl",
            slots={
                "arithmetic": f"bvh/contract/shaders/arithmetic_{arithmetic}.wgsl",
                "memory": "bvh/contract/shaders/case_memory.wgsl",
            },
            constants={"GPURT_RULES": rules == "gpurt"},
        )

    def run(self, cases: Cases) -> U32:
        """Result words `[n, 4]`."""
        return self.run_counted(cases)[0]

    def run_counted(self, cases: Cases) -> tuple[U32, Refusals]:
        """Result words `[n, 4]` and what the kernel refused."""
        out = np.zeros((len(cases), 4), np.uint32)
        refused = self.device.buffer("refused", 12)
        for begin in range(0, len(cases), BATCH):
            part = slice(begin, begin + BATCH)
            records = pack(cases.take(np.arange(len(cases))[part]))
            out[part] = self._run_batch(records, refused)
        counts = self.device.read(refused, np.uint32, count=3)
        return out, Refusals(*counts.tolist())

    def _run_batch(self, records: U32, refused: Any) -> U32:
        device, count = self.device, len(records)
        words = device.buffer("words", 16 * count)
        resources = {
            "parameters": device.upload(
                "parameters", np.array([count, 0, 0, 0], np.uint32), "UNIFORM|COPY_DST"
            ),
            "cases": device.upload("cases", records),
            "words": words,
            "refused": refused,
        }
        self.stage.run(resources, -(-count // GROUP_SIZE))
        return np.asarray(device.read(words, np.uint32, count=4 * count)).reshape(count, 4)


def intersect(device: Device, cases: Cases, rules: Rules = "chapter") -> U32:
    """Result words `[n, 4]` of a batch: `bvh.contract.intersect.intersect_cases` on the GPU."""
    return Intersector(device, rules).run(cases)
