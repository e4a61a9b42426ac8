"""The records of one adapter that tables and pages read, made by one command.

`python -m benchmarks.card_records --tag NAME [--assets D] [--only WORDS] [--minutes N] [--out D]`

Each step is a command of its own in a fresh process, bounded in time, and its record is put into
the folder as RECORD-TAG.json as soon as it is whole (default: `benchmarks/records`, the committed
ones): what was measured before a step fails, or the time is up, stays. RECORD-TAG.part beside it
has what a long step has measured so far: the same command goes on with it, at the same commit.
Steps stand in the order of what most readers ask for. `--assets` holds the models that
kitchen_frame.toml names, and kitchen.glb; without it only the hall is measured. `--only` takes
steps whose name has one of the words, comma-separated; `--list` names them. Exit code 1: a record
is missing, or lacks something. Pictures are `benchmarks.frame_pictures` and
`benchmarks.view_pictures`; tables are made from the records by `benchmarks.readme_tables`.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.committed_records import RECORDS, ROOT
from engine.gpu.device import open_device
from treeline.cli import interrupts
from treeline.outputs import whole_file
from treeline.quality_variants import variants

SCENES = ROOT / "benchmarks" / "scenes"
TREELINE = (sys.executable, "-m", "treeline")
PYTHON = (sys.executable, "-m")
# What is asked first: where the time is up, the others are left out.
CURVES_FIRST = ("samples", "reflection scale", "history", "denoiser, history 16", "no rays")
# Of a step's seconds, what its command may plan with: it ends what it has begun.
OWN_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class Step:
    """A command that makes a record. `{made}` in it stands for a folder, in which it writes the
    file `made`; after `limit_s` seconds it is stopped and has made nothing. `{minutes}` stands for
    what it should take of that by itself. One that `resumes` goes on with what it finds in the
    folder, which is kept until the record is whole: until it has no `left_out`."""

    record: str
    command: tuple[str, ...]
    made: str
    limit_s: float
    needs_assets: bool = False
    resumes: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is measured at which size: a CPU driver takes some hundred times as long."""

    report: dict[str, str]
    frames: str
    path_frames: str  # of a camera path
    curve: dict[str, str]
    curve_reference: str
    curve_turns: str
    small: dict[str, str]
    fit: dict[str, str]
    pairs: str
    tune_minutes: str
    limit: float  # of every step's seconds, as a factor


SCENE_NAMES = ("hall", "kitchen", "hall-frame", "kitchen-frame")
GPU = Sizes(
    report=dict.fromkeys(SCENE_NAMES, "1920x1080"),
    frames="60",
    path_frames="240",
    curve=dict.fromkeys(SCENE_NAMES, "1280x720"),
    curve_reference="256",
    curve_turns="8",
    small=dict.fromkeys(SCENE_NAMES, "1280x720"),
    fit=dict.fromkeys(SCENE_NAMES, "1280x720"),
    pairs="12",
    tune_minutes="0.6",
    limit=1.0,
)
CPU = Sizes(
    report={
        "hall": "640x360",
        "kitchen": "480x270",
        "hall-frame": "480x270",
        "kitchen-frame": "240x135",
    },
    frames="5",
    path_frames="12",
    curve={"hall": "160x90", "kitchen-frame": "112x63"},
    curve_reference="64",
    curve_turns="4",
    small={"hall": "96x54", "kitchen-frame": "96x54"},
    # Of fits and tuning. Larger: what is to be explained has to stand above the noise.
    fit={"hall": "256x144", "kitchen-frame": "192x108"},
    pairs="12",
    tune_minutes="3",
    limit=8.0,
)


def scene_of(name: str, assets: Path | None) -> tuple[str, ...]:
    """The options that name a scene, and the moment at which those that move are measured."""
    return {
        "hall": (),
        "kitchen": ("--scene", f"{assets}/kitchen.glb"),
        "hall-frame": ("--scene", f"{SCENES}/hall_frame.toml"),
        "kitchen-frame": (
            *("--scene", f"{SCENES}/kitchen_frame.toml"),
            *("--assets", str(assets)),
        ),
    }[name]


def moment_of(name: str) -> tuple[str, ...]:
    return {"hall-frame": ("--time", "1"), "kitchen-frame": ("--time", "1.1")}.get(name, ())


def make_steps(sizes: Sizes, assets: Path | None) -> list[Step]:
    """Every step, in order; those that need models say so."""

    def step(
        record: str, scene: str, made: str, limit_s: float, *command: str, resumes: bool = False
    ) -> Step:
        needs = scene.startswith("kitchen")
        return Step(f"{record}-{scene}", command, made, limit_s * sizes.limit, needs, resumes)

    steps = []
    how: tuple[str, ...]
    size: tuple[str, ...]
    for name in SCENE_NAMES:
        whole = (*TREELINE, "report", *scene_of(name, assets), *moment_of(name))
        size = ("--size", sizes.report[name], "--frames", sizes.frames)
        steps.append(step("report", name, "report.json", 40, *whole, *size, "--out", "{made}"))
    pair = ("hall", "kitchen-frame")
    curves = dict.fromkeys((*CURVES_FIRST, *(variant.curve for variant in variants()[1:])))
    for name in pair:
        whole = (*TREELINE, "curve", *scene_of(name, assets), *moment_of(name))
        whole = (*whole, "--only", ";".join(curves))
        how = ("--reference", sizes.curve_reference, "--turns", sizes.curve_turns)
        how = (*how, "--minutes", "{minutes}", "--resume")
        size = ("--size", sizes.curve[name], "--pictures", "2", "--out", "{made}")
        steps.append(step("curve", name, "curve.json", 360, *whole, *how, *size, resumes=True))
    along = ("--frames", sizes.path_frames, "--camera-path")
    for record, name, seconds, how in (
        ("fallback", "hall", 60, ("--frames", sizes.frames)),
        ("fallback-path", "hall-frame", 150, along),
        ("fallback-path-new-probe", "hall-frame", 150, (*along, "--probe-distance", "0")),
    ):
        whole = (*TREELINE, "report", *scene_of(name, assets), "--size", sizes.report[name])
        whole = (*whole, "--reflections", "screen", "--shadows", "map", *how)
        steps.append(step(record, name, "report.json", seconds, *whole, "--out", "{made}"))
    for name in pair:
        whole = (*TREELINE, "ablate", *scene_of(name, assets), "--pairs", sizes.pairs)
        whole = (*whole, "--minutes", f"{1 * sizes.limit:g}")
        size = ("--size", sizes.small[name], "--out", "{made}/ablate.json")
        steps.append(step("ablate", name, "ablate.json", 85, *whole, *size))
    for name in pair:
        whole = (*TREELINE, "tune", *scene_of(name, assets), "--minutes", sizes.tune_minutes)
        size = ("--size", sizes.fit[name], "--out", "{made}/tune.json")
        steps.append(step("tune", name, "tune.json", 110, *whole, *size))
    for name in pair:
        whole = (*TREELINE, "fit", *scene_of(name, assets), "--frames", "12")
        size = ("--size", sizes.fit[name], "--json", "{made}/fit.json")
        steps.append(step("fit", name, "fit.json", 60, *whole, *size))
    for name in ("hall", "kitchen"):
        whole = (*PYTHON, "benchmarks.view_cost", *scene_of(name, assets), "--no-paced")
        how = ("--frames", "120", "--blocks", "2", "--out", "{made}/view-cost.json")
        steps.append(step("view-cost", name, "view-cost.json", 60, *whole, *how))
    alarms = (*PYTHON, "benchmarks.compare_false_alarms", "--scene", f"{assets}/spot.obj")
    how = ("--size", sizes.small["hall"], "--frames", "40", "--out", "{made}/alarms.json")
    limit_s = 60 * sizes.limit
    steps.append(Step("compare-false-alarms", (*alarms, *how), "alarms.json", limit_s, True))
    return steps


def run_step(step: Step, place: Path, limit_s: float) -> str:
    """Runs a step and puts its record at `place`. Says what is amiss, or nothing: a step that ends
    with an exit code makes no record, whatever it wrote."""
    if not step.resumes:
        with tempfile.TemporaryDirectory() as made:
            return _run(step, Path(made), place, limit_s)
    parts = place.with_suffix(".part")
    parts.mkdir(parents=True, exist_ok=True)
    fault = _run(step, parts, place, limit_s)
    if not fault:
        left_out = json.loads(place.read_text(encoding="utf-8")).get("left_out")
        if left_out:
            return f"{len(left_out)} left out for want of time; the same command goes on with it"
        shutil.rmtree(parts)
    return fault


def _run(step: Step, made: Path, place: Path, limit_s: float) -> str:
    """The same, in the folder `made`."""
    minutes = f"{OWN_SHARE * limit_s / 60:.3g}"
    filled = [part.replace("{made}", str(made)) for part in step.command]
    command = [part.replace("{minutes}", minutes) for part in filled]
    with open(made / "log", "a+") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the step holds it as its output
        except BlockingIOError:
            return f"{made} is in use: an earlier run of this step has not ended"
        log.truncate(0)
        # A group of its own, which `stop` ends; in this session, with which it ends, too.
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, process_group=0
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            stop(process)
            return f"not done within {limit_s:.3g} s"
        except BaseException:
            stop(process)
            raise
        log.seek(0)
        lines = [line for line in log.read().splitlines() if line.strip()]
    result = made / step.made
    if code != 0 or not result.exists():
        return f"exit code {code}: {lines[-1] if lines else 'nothing was printed'}"
    with whole_file(place) as path:
        shutil.copyfile(result, path)
    return ""


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the step and what it started: builds and fresh processes of its own."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(
    tag: Annotated[str, typer.Option(help="Names the adapter in the records' names: h200.")] = "",
    assets: Annotated[Path | None, typer.Option(help="kitchen.glb and the figures.")] = None,
    only: Annotated[str, typer.Option(help="Steps whose name has one of these words.")] = "",
    minutes: Annotated[float, typer.Option(help="For all steps together.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Where the records go.")] = RECORDS,
    list_steps: Annotated[bool, typer.Option("--list", help="Name the steps; run none.")] = False,
) -> None:
    interrupts.install()  # a step ends with this command, however that is ended
    # Opened in a call of its own: the steps have the adapter for themselves.
    sizes = CPU if open_device().info.is_cpu else GPU
    words = [word.strip() for word in only.split(",") if word.strip()]
    steps = [
        step
        for step in make_steps(sizes, assets.resolve() if assets else None)
        if not words or any(word in step.record for word in words)
    ]
    if not steps:
        raise typer.BadParameter(f"--only: no step's name has one of these words: {only}")
    if list_steps:
        for step in steps:
            print(step.record)
        return
    if not tag:
        raise typer.BadParameter("--tag names this adapter: records are RECORD-TAG.json")
    end = time.monotonic() + 60 * minutes
    failed = 0
    for step in steps:
        if step.needs_assets and assets is None:
            print(f"{step.record}: needs --assets")
            failed += 1
            continue
        left = end - time.monotonic()
        if left < 1:
            print(f"{step.record}: no time left")
            failed += 1
            continue
        start = time.monotonic()
        fault = run_step(step, out / f"{step.record}-{tag}.json", min(step.limit_s, left))
        failed += bool(fault)
        print(f"{step.record}: {fault or 'done'} ({time.monotonic() - start:.0f} s)", flush=True)
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    typer.run(main)
