"""`treeline doctor`: what this machine offers and whether every kernel compiles on it."""

import os
from dataclasses import asdict
from typing import Annotated, Any

import typer

from treeline.cli.console import emit_json, note
from treeline.cli.options import Common, with_common

SHOWN_LIMITS = (
    "max-storage-buffer-binding-size",
    "max-buffer-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroups-per-dimension",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-texture-dimension-2d",
)


@with_common
def doctor(
    common: Common,
    faults: Annotated[
        bool, typer.Option("--faults", help="Check the known faults of drivers instead.")
    ] = False,
) -> None:
    """Show adapters, driver, limits, features and display; compile every kernel.

    With --faults: the known faults of drivers and libraries, each through the faulty path and
    through the workaround; exit code 1 if a workaround does not work. One of them is turned off by
    its name in the environment variable TREELINE_WITHOUT_WORKAROUNDS.
    """
    if faults:
        check_faults(common)
        return
    from bvh.gpu.default_kernel import default_kernel
    from bvh.gpu.litmus import litmus
    from engine.gpu.device import WANTED, list_adapters
    from engine.gpu.probe import probe
    from treeline.kernels import compile_all
    from treeline.profiles import PROFILES, capabilities, negotiate
    from treeline.version import commit, version

    def line(key: str, value: Any) -> None:
        if not common.to_stdout:
            print(f"{key:<40} {value}", flush=True)

    line("treeline", f"{version()} (commit {commit()})")
    adapters = list_adapters()
    for index, info in enumerate(adapters):
        line(f"adapter {index}", info)
    device = common.open_device()
    line("chosen", device.info.adapter)
    line("driver", device.info.driver)
    line("timing source", device.timing_source)
    limits = {name: device.limits[name] for name in SHOWN_LIMITS if name in device.limits}
    for name, value in limits.items():
        line(f"limit {name}", f"{value:,}")
    features = {name: name in device.features for name in WANTED}
    for name, offered in features.items():
        line(f"feature {name}", "yes" if offered else "no")
    kernel = default_kernel(device.info)
    line("default kernel", f"loops: {kernel.loops} ({kernel.reason})")
    arithmetic = probe(device)
    for name, text in arithmetic.lines():
        line(name, text)
    arrivals = litmus(device)
    line("arrival counters", arrivals)
    negotiation = negotiate(capabilities(device))
    for name, answer in negotiation.lines():
        line(f"profile {name}", answer)
    display = find_display()
    line("display", display or "none (windows need one; pictures and reports do not)")
    results = []
    for name, error in compile_all(device):
        results.append({"kernel": name, "passed": error is None, "error": error})
        line(f"kernel {name}", "PASS" if error is None else f"FAIL {error}")
    emit_json(
        {
            "version": version(),
            "commit": commit(),
            "adapters": [str(info) for info in adapters],
            "adapter": device.info.adapter,
            "adapter_type": device.info.adapter_type,
            "backend": device.info.backend,
            "driver": device.info.driver,
            "timing_source": device.timing_source,
            "limits": limits,
            "features": features,
            "default_kernel": {"loops": kernel.loops, "reason": kernel.reason},
            "arithmetic": arithmetic.facts(),
            "arrival_counters": asdict(arrivals),
            "display": display,
            "profile": negotiation.chosen.name if negotiation.chosen else None,
            "profiles": [
                {**p.facts(), "refused": list(negotiation.refused.get(p.name, ()))}
                for p in PROFILES
            ],
            "kernels": results,
        },
        common.json,
    )
    if not all(result["passed"] for result in results):
        raise typer.Exit(1)


def check_faults(common: Common) -> None:
    """`doctor --faults`: a line a path."""
    from engine.gpu.device import AdapterInfo
    from engine.gpu.faults import FAULT_BY_NAME, turned_off
    from treeline.fault_checks import check_all, fault_facts

    off = turned_off()
    info: AdapterInfo = common.open_device().info
    if not common.to_stdout:
        print(f"{'adapter':<44} {info}", flush=True)
    results = []
    for result in check_all(common.adapter):
        results.append(result)
        if common.to_stdout:
            continue
        seen = "" if result.is_workaround or not result.fault.expected_on(str(info)) else ", known"
        name = f"{result.fault.name}: {result.path}"
        print(f"{name:<44} {result.text}{seen} ({result.outcome.detail})", flush=True)
    for name in sorted(off):
        note(f"turned off: {name}: {FAULT_BY_NAME[name].workaround}", quiet=common.quiet)
    facts = {"adapter": str(info), "turned_off": sorted(off), "faults": fault_facts(results)}
    emit_json(facts, common.json)
    if any(r.is_workaround and r.outcome.works is False for r in results):
        raise typer.Exit(1)


def find_display() -> str | None:
    """The display that a window would open on."""
    return os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or None
