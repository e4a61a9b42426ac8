"""Random contract cases on the GPU against the NumPy definition, word for word, as a JSON record.

    python -m benchmarks.contract_random --count 1000000 --out F.json

Distribution: `bvh.contract.random_cases`. The domain is every input: denormals, infinities and NaN
included. Each rule set also runs with the adapter's unprotected arithmetic, which is allowed to
differ: that count says what the protection is for.
"""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import make_context, write_record
from bvh.contract.cases import RULES, U32, Cases, Rules
from bvh.contract.gpu import Intersector
from bvh.contract.intersect import intersect_cases
from bvh.contract.random_cases import SHARES, kind_names, random_cases
from engine.gpu.device import Device, open_device
from engine.gpu.probe import probe

PART = 1 << 17  # cases at a time
LISTED = 100  # differing cases that a record spells out

DOMAIN = "every input: all float32 bit patterns, every node type, descriptor and pointer"


def compare(device: Device, rules: Rules, count: int, seed: int) -> dict[str, Any]:
    """Counts a kind, and every differing case (spelled out up to LISTED)."""
    exact, plain = Intersector(device, rules), Intersector(device, rules, "plain")
    totals = {name: {"cases": 0, "hits": 0, "differ": 0, "plain_differ": 0} for name in SHARES}
    listed: list[dict[str, Any]] = []
    gpu_s = cpu_s = 0.0
    refused = Counter[str]()
    for number, begin in enumerate(range(0, count, PART)):
        cases, kinds = random_cases(min(PART, count - begin), seed + number)
        start = time.perf_counter()
        expected = intersect_cases(cases, rules).words
        cpu_s += time.perf_counter() - start
        start = time.perf_counter()
        got, refusals = exact.run_counted(cases)
        refused.update(asdict(refusals))
        gpu_s += time.perf_counter() - start
        differ = (got != expected).any(1)
        plain_differ = (plain.run(cases) != expected).any(1)
        triangle = cases.pointer_low & 7 < 4
        hit = np.where(triangle, expected[:, 0] != 0x7F800000, (expected != 0xFFFFFFFF).any(1))
        for kind, name in enumerate(kind_names()):
            of_kind = kinds == kind
            row = totals[name]
            row["cases"] += int(of_kind.sum())
            row["hits"] += int(hit[of_kind].sum())
            row["differ"] += int(differ[of_kind].sum())
            row["plain_differ"] += int(plain_differ[of_kind].sum())
        for at in np.flatnonzero(differ)[: LISTED - len(listed)]:
            kind_name = kind_names()[kinds[at]]
            listed.append(spell(cases, int(at), got, expected, kind_name, seed + number))
        print(f"{rules}: {begin + len(cases):,} cases", file=sys.stderr)
    return {
        "rules": rules,
        "cases": count,
        "differ": sum(row["differ"] for row in totals.values()),
        "plain_differ": sum(row["plain_differ"] for row in totals.values()),
        "refused_by_the_kernel": dict(refused),
        "kinds": totals,
        "differing_cases": listed,
        "gpu_s": round(gpu_s, 3),
        "cpu_s": round(cpu_s, 3),
    }


def spell(cases: Cases, at: int, got: U32, expected: U32, kind: str, seed: int) -> dict[str, Any]:
    """One differing case, whole, as hexadecimal words."""

    def text(values: Any) -> list[str]:
        return [f"{int(word):08x}" for word in np.atleast_1d(values)]

    fields = {name: text(getattr(cases, name)[at]) for name in Cases.__slots__}
    return {
        "kind": kind,
        "seed": seed,
        "index": at,
        "got": text(got[at]),
        "expected": text(expected[at]),
        **fields,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--adapter", help="part of an adapter's name, or its number")
    parser.add_argument("--out", type=Path, required=True, help="the JSON record to write")
    arguments = parser.parse_args()
    device = open_device(arguments.adapter)
    rows = [compare(device, rules, arguments.count, arguments.seed) for rules in RULES]
    record = {
        "context": {
            **make_context(device),
            "seed": arguments.seed,
            "domain": DOMAIN,
            "shares": SHARES,
            "distribution": "bvh/contract/random_cases.py",
            "probe": probe(device).facts(),
        },
        "benchmarks": rows,
    }
    write_record(arguments.out, record)
    summary = {row["rules"]: {"cases": row["cases"], "differ": row["differ"]} for row in rows}
    print(json.dumps(summary))
    if any(row["differ"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
