"""Is a build the same every time, and valid, on hardware that really runs in parallel?

`python -m benchmarks.build_stress SCENES... [--runs 200] [--cases ...] [--out F.json]`

Every case over every scene is built `--runs` times without and as often with a second process that
keeps the device busy. Each result is validated on the GPU (`bvh.gpu.validate`) and reduced there to
a 64-bit fingerprint of its bytes and links. A run that is invalid, or whose fingerprint is not the
first one's, counts as a fault; any fault ends the command with exit code 1. llvmpipe runs
workgroups one after the other and shows no such fault: this is for GPUs.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.validate import GpuValidate
from engine.gpu.device import Device, open_device
from engine.gpu.primitives.fingerprint import Fingerprint
from engine.gpu.primitives.radix_sort import RadixSort
from engine.gpu.stage import submit_pass
from treeline.bench_build import Case, parse_case
from treeline.scenes import baked_triangles, load

CASES = "lbvh,ploc,sah,spatial,ploc+10"
LOAD_ITEMS = 1 << 20  # keys that the second process sorts, over and over


def stress(device: Device, triangles: Any, case: Case, runs: int) -> dict[str, Any]:
    """`runs` builds: how many differ from the first, how many are invalid, and why."""
    count = len(triangles)
    builder = GpuBlasBuilder(device, count, case.options)
    numbers = np.arange(count, dtype=np.uint32)
    builder.upload(triangles, np.zeros(count, np.uint32), numbers, np.ones(1, np.bool_))
    most_uses = count if case.options.builder == "spatial" else 1
    validator, printer = GpuValidate(device, count, most_uses), Fingerprint(device)
    words, links = builder.resources["words"], builder.resources["parent_links"]
    submit_pass(device, builder.encode)
    units = len(builder.read().words) // 16
    spans = [device.upload("span", np.array([0, size], np.uint32)) for size in (16 * units, units)]
    prints: list[int] = []
    invalid, reason = 0, ""
    for _ in range(runs):
        printer.clear()
        submit_pass(
            device,
            builder.encode,
            lambda scope: printer.encode(scope, words, spans[0]),
            lambda scope: printer.encode(scope, links, spans[1]),
        )
        findings = validator.check(words, links)
        prints.append(printer.read())
        if findings:
            invalid += 1
            reason = reason or "; ".join(str(f) for f in findings)
    return {
        "case": case.name,
        "runs": runs,
        "different": sum(p != prints[0] for p in prints),
        "invalid": invalid,
        "first_fault": reason,
        "fingerprint": f"{prints[0]:016x}",
    }


@contextmanager
def loaded(adapter: str | None) -> Iterator[None]:
    """A second process sorts on the same adapter until the block ends."""
    command = [sys.executable, "-m", "benchmarks.build_stress", "--load"]
    if adapter is not None:
        command += ["--adapter", adapter]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdin is not None
        if process.stdout.readline().strip() != "busy":
            raise RuntimeError("the second process did not start")
        yield
        if process.poll() is not None:
            raise RuntimeError("the second process ended early")
    finally:
        process.terminate()
        process.wait()


def keep_busy(device: Device) -> None:
    """Sorts until it is stopped."""
    sort = RadixSort(device, LOAD_ITEMS)
    rng = np.random.default_rng(0)
    keys = device.upload("keys", rng.integers(0, 2**32, LOAD_ITEMS, dtype=np.uint32))
    payload = device.upload("payload", np.arange(LOAD_ITEMS, dtype=np.uint32))
    announced = False
    while True:
        submit_pass(device, *[lambda scope: sort.encode(scope, keys, payload)] * 20)
        device.wait()
        if not announced:
            print("busy", flush=True)
            announced = True


def main(
    scenes: Annotated[list[Path] | None, typer.Argument(help="Default: the embedded hall")] = None,
    runs: Annotated[int, typer.Option(min=1)] = 200,
    cases: Annotated[str, typer.Option(help="as for `treeline bench build`")] = CASES,
    nodes: Annotated[str, typer.Option()] = "auto",
    leaf: Annotated[int, typer.Option()] = 2,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    load_only: Annotated[bool, typer.Option("--load", hidden=True)] = False,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints one line a case, and the record or where it was written."""
    device = open_device(adapter)
    if load_only:
        keep_busy(device)
    wanted = [parse_case(text, leaf, nodes) for text in cases.split(",")]
    loaded_scenes = [
        ("hall" if path is None else path.name, load(path)) for path in scenes or (None,)
    ]
    rows = []
    for second_process in (False, True):
        with loaded(adapter) if second_process else nullcontext():
            for name, scene in loaded_scenes:
                triangles = baked_triangles(scene)
                for case in wanted:
                    start = time.perf_counter()
                    row = {
                        "scene": name,
                        "scene_sha256": scene.sha256,
                        "triangles": len(triangles),
                        "second_process": second_process,
                        **stress(device, triangles, case, runs),
                    }
                    rows.append(row)
                    print(
                        f"{name}, {case.name}, {'loaded' if second_process else 'alone'}: "
                        f"{runs} runs, {row['different']} different, {row['invalid']} invalid "
                        f"({time.perf_counter() - start:.1f} s) {row['first_fault']}",
                        flush=True,
                    )
    faults = sum(row["different"] + row["invalid"] for row in rows)
    record = {
        "context": make_context(device),
        "nodes": nodes,
        "leaf": leaf,
        "builds": sum(row["runs"] for row in rows),
        "faults": faults,
        "rows": rows,
    }
    put_out(record, out)
    raise typer.Exit(1 if faults else 0)


if __name__ == "__main__":
    typer.run(main)
