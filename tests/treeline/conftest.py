"""Commands to run, and a made-up measurement whose every number is known.

The measurement is for tests of what reports make of it; commands run on the real thing.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bvh.counters import OBJECT_COUNTERS
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats, RayStats
from passes.outputs import Output, frame_outputs
from passes.ray_spread import RaySpread, ray_spread
from passes.rays import REFLECTION, SHADOW
from passes.slot_counts import SLOT_COUNTS
from treeline.chrome_trace import chrome_trace
from treeline.cli.commands import app
from treeline.json_text import json_text
from treeline.measure import SizeRun, measure_size
from treeline.phase_log import PhaseLog

BOX = """o box
v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nv -1 2 -1\nv 1 2 -1\nv 1 2 1\nv -1 2 1
f 1 3 2\nf 1 4 3\nf 5 6 7\nf 5 7 8\nf 1 2 6\nf 1 6 5\nf 2 3 7\nf 2 7 6\nf 3 4 8\nf 3 8 7\nf 4 1 5
f 4 5 8
"""


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A scene of 12 triangles."""
    path = tmp_path / "box.obj"
    path.write_text(BOX)
    return path


@pytest.fixture
def run() -> Callable[..., Any]:
    """Runs a command in this process; a bug keeps its traceback. What it says on stderr is among
    what pytest shows of a test that fails."""

    def invoke(*words: object) -> Any:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception  # a bug, not a user's mistake
        sys.stderr.write(result.stderr)
        return result

    return invoke


@pytest.fixture
def one_line() -> Callable[[Any, int], str]:
    """The error of a command that failed as it should: one line, nothing on stdout."""

    def error_of(result: Any, exit_code: int) -> str:
        assert result.exit_code == exit_code, result.output
        assert result.stdout == ""
        lines = [line for line in result.stderr.splitlines() if line.startswith("treeline: error:")]
        assert len(lines) == 1 and "Traceback" not in result.stderr
        return lines[0]

    return error_of


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[str]]:
    """Starts a command as a process of its own."""

    def start(*words: object, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from treeline.cli import main; main()", *map(str, words)],
            cwd=Path(__file__).resolve().parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    return start


COUNTERS = dict(
    nodes=20_000,
    nodes_hit=15_750,
    nodes_miss=4_250,
    nodes_p50=18.0,
    nodes_p95=41.0,
    nodes_p99=60.0,
    nodes_max=77,
    nodes_fp16=12_000,
    leaf_blocks=3_000,
    subgroup_steps=1_000,
    subgroup_nodes=4_000,
    subgroup_lanes=32,
    box_tests=70_000,
    box_hits=30_000,
    triangle_tests=5_000,
    triangle_hits=1_000,
    instance_hits=2_000,
    any_hits=0,
    rejected=0,
    alpha_samples=0,
    texture_fetches=1_500,
    stack_max=9,
    overflows=0,
)


def fake_stats(width: int, height: int, count: bool = False) -> FrameStats:
    """Of a frame whose times go with its pixels, so that the cost model is exact."""
    scale = width * height / 1000
    rays = int(1000 * scale)
    base = RayStats(rays=rays, dropped=0, payload_bytes=32, replaced=0, lost=0, failed=0)
    shadow = base
    if count:
        hits, misses = int(750 * scale), int(250 * scale)
        base = replace(base, hits=hits, misses=misses, **COUNTERS)
        shadow = replace(base, hits=0, misses=base.rays)
    none = dict.fromkeys(OBJECT_COUNTERS, 0)
    objects = {
        ("columns", "reflection"): {**none, "nodes": 15_000, "triangle_tests": 4_000},
        ("floor", "reflection"): {**none, "nodes": 5_000, "triangle_tests": 1_000},
        ("columns", "shadow"): none,
    }
    return FrameStats(
        passes={
            "gbuffer": 2.0 * scale,
            "traverse/reflection/0": 4.0 * scale,
            "shade/reflection/0": 2.0 * scale,
            "traverse/shadow/0": 1.0 * scale,
            "composite": 1.0 * scale,
        },
        rays={"reflection": base, "shadow": shadow},
        frame_total_ms=11.0 * scale,
        frame_gaps_ms=1.0,
        cpu_ms=0.5,
        dropped=0,
        valid=True,
        counted=count,
        timing_source="wall-clock",
        upload_bytes=256,
        readback_bytes=4096,
        forced_waits=2,
        objects=objects if count else {},
    )


class FakeFrame:
    """A HybridFrame that returns fake_stats; `hashes` gives each frame's hash in turn."""

    alive = 0
    most_alive = 0
    compile_ms = 123.0

    def __init__(self, width: int, height: int, count: bool, result_hash: str = "h") -> None:
        self.size, self.count, self.hash = (width, height), count, result_hash
        FakeFrame.alive += 1
        FakeFrame.most_alive = max(FakeFrame.most_alive, FakeFrame.alive)

    def __del__(self) -> None:
        FakeFrame.alive -= 1

    def run(self, frame_index: int = 0) -> FrameStats:
        return fake_stats(*self.size, self.count)

    def image(self) -> Any:
        return np.full((self.size[1], self.size[0], 3), 128, np.uint8)

    def aov(self, name: str) -> Any:
        return np.arange(self.size[0] * self.size[1]).reshape(self.size[1], self.size[0])

    def outputs(self) -> tuple[Output, ...]:
        return frame_outputs(FrameOptions(*self.size, count=self.count))

    def result_hash(self) -> str:
        return self.hash

    def updates(self) -> tuple[Any, ...]:
        return ()

    def hit_table(self) -> None:
        return None

    def ray_spreads(self) -> dict[str, RaySpread]:
        """Of ten rays each, the shadow rays at the first bounce; 20 of every count a ray."""
        sent = np.zeros(20, np.uint32)
        sent[::2] = 20
        planes = dict.fromkeys(SLOT_COUNTS, sent)
        return {ray.name: ray_spread(ray, planes) for ray in (REFLECTION, SHADOW)}


class Silent:
    """Progress that nobody sees, with what began."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.advances = 0

    def begin(self, text: str, total: int = 1) -> None:
        self.texts.append(text)

    def advance(self, detail: str = "") -> None:
        self.advances += 1


@pytest.fixture
def fake_frame() -> type[FakeFrame]:
    FakeFrame.alive = FakeFrame.most_alive = 0
    return FakeFrame


@pytest.fixture
def make_stats() -> Callable[..., FrameStats]:
    return fake_stats


@pytest.fixture
def silent() -> Silent:
    return Silent()


@pytest.fixture
def document(fake_frame: type[FakeFrame], silent: Silent) -> tuple[dict[str, Any], Any]:
    """(report, measurement) of a fake frame of 50x20 pixels."""
    from bvh.build import BuildOptions, build_blas
    from passes.frame_options import FrameOptions
    from treeline.measure import measure
    from treeline.report import make_report
    from treeline.report_context import Setting

    measurement = measure(fake_frame, 50, 20, 4, 1, silent)
    light = SimpleNamespace(
        center=np.zeros(3), half_u=np.eye(3)[0], half_v=np.eye(3)[2], radiance=(1.0, 1.0, 1.0)
    )
    scene = SimpleNamespace(
        sha256="ab" * 32,
        triangle_count=12,
        light=light,
        more_lights=(),
        light_source="default",
        camera_source="file",
        camera=SimpleNamespace(transform=np.eye(4)),
        notes=("2 triangles skipped",),
    )
    info = SimpleNamespace(
        adapter="llvmpipe", adapter_type="CPU", backend="Vulkan", driver="Mesa", is_cpu=True
    )
    device = SimpleNamespace(info=info, timing_source="timestamp-query")
    options = BuildOptions()
    none = np.zeros(1, np.uint32)
    corners = np.eye(3, dtype=np.float32)[None]
    real = build_blas(corners, none, none, np.array([True]), BuildOptions()).stats
    stats = replace(real, triangles=12, bytes=4096, nodes_fp16=3, nodes_fp32=1, build_ms=7.0)
    placed = SimpleNamespace(blas=0)
    bvh = SimpleNamespace(blas_names=("static",), blas_stats=(stats,), instances=3 * [placed])
    setting = Setting(scene, "box.glb", device, options, "static", FrameOptions(0, 0))
    return make_report(setting, bvh, measurement), measurement


TRACE_CONTEXT = {
    "adapter": "made up",
    "adapter_type": "DiscreteGPU",
    "timing_source": "timestamp-query",
}


@pytest.fixture
def traced(fake_frame: Any, silent: Any) -> Callable[..., tuple[SizeRun, Any]]:
    """(run, its trace) with a frame that changes each frame's statistics by `change`."""

    def make(change: Callable[[Any], Any] = lambda stats: stats) -> tuple[SizeRun, Any]:
        class Frame(fake_frame):
            def run(self, frame_index: int = 0) -> Any:
                stats = super().run(frame_index)
                lengths = list(stats.passes.values())
                stats = replace(stats, begins=tuple(np.cumsum([0.5, *lengths[:-1]]).tolist()))
                return change(stats)

        ticks = iter(range(1000))
        log = PhaseLog(silent, lambda: 0.1 * next(ticks))
        log.begin("loading the scene")
        run = measure_size(Frame, 50, 20, 3, 2, log)
        log.begin("writing the report")
        log.close()
        return run, json.loads(json_text(chrome_trace(run, log.phases, TRACE_CONTEXT)))

    return make
