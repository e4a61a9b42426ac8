"""The commands: what they print where, what they leave behind, and how they end."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageGrab
from typer.testing import CliRunner

from treeline.cli import app

BOX = """o box
v -1 0 -1\nv 1 0 -1\nv 1 0 1\nv -1 0 1\nv -1 2 -1\nv 1 2 -1\nv 1 2 1\nv -1 2 1
f 1 3 2\nf 1 4 3\nf 5 6 7\nf 5 7 8\nf 1 2 6\nf 1 6 5\nf 2 3 7\nf 2 7 6\nf 3 4 8\nf 3 8 7\nf 4 1 5
f 4 5 8
"""
Run = Callable[..., Any]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "box.obj"
    path.write_text(BOX)
    return path


@pytest.fixture
def run() -> Run:
    def invoke(*words: object) -> Any:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception  # a bug, not a user's mistake
        return result

    return invoke


def one_line(result: Any, exit_code: int) -> str:
    """The error of a command that failed as it should: one line, nothing on stdout."""
    assert result.exit_code == exit_code, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("treeline: error:")]
    assert len(lines) == 1 and "Traceback" not in result.stderr
    return lines[0]


def process(*words: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from treeline.cli import main; main()", *map(str, words)],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# ---- what works ------------------------------------------------------------------------------


def test_version_names_the_commit(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert re.match(r"treeline \S+ \(commit \S+\)", result.stdout)


def test_every_command_takes_the_shared_options(run: Run) -> None:
    commands = ["render", "report", "build", "inspect", "validate", "rays", "doctor"]
    for words in [*([c] for c in commands), ["bench", "trace"], ["example", "triangle"]]:
        text = run(*words, "--help").stdout
        for option in ("--scene", "--adapter", "--json", "--quiet", "--builder", "--nodes"):
            assert option in text, f"{words} lacks {option}"


def test_render_writes_the_picture_asked_for(run: Run, box: Path, tmp_path: Path) -> None:
    out = tmp_path / "Bild ü 図.png"
    result = run("render", "--scene", box, "--size", "64x48", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out)
    pixels = np.asarray(Image.open(out))
    assert pixels.shape == (48, 64, 3)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([out.name, "box.obj"])


@pytest.mark.parametrize("aov", ["depth", "normal", "roughness", "material", "nodes/shadow"])
def test_render_writes_outputs(run: Run, box: Path, tmp_path: Path, aov: str) -> None:
    out = tmp_path / "a.png"
    result = run("render", "--scene", box, "--size", "64x48", "--aov", aov, "--out", out, "-q")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    pixels = np.asarray(Image.open(out))
    assert pixels.shape[1:] == (64, 3) and pixels.shape[0] >= 48
    assert pixels.min() < pixels.max()


def test_both_gbuffers_give_the_same_picture(run: Run, box: Path, tmp_path: Path) -> None:
    pictures = []
    for gbuffer in ("raster", "rays"):
        out = tmp_path / f"{gbuffer}.png"
        run("render", "--scene", box, "--size", "64x48", "--gbuffer", gbuffer, "--out", out)
        pictures.append(np.asarray(Image.open(out)).astype(int))
    # Edges of triangles may go either way.
    assert (np.abs(pictures[0] - pictures[1]).max(axis=2) > 8).mean() < 0.01


def test_report_leaves_four_files_and_prints_tables(run: Run, box: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(
        *("report", "--scene", box, "--size", "64x48", "--frames", 3, "--warmup", 1),
        *("--out", out, "--light", "0,5,0,0.5", "--group", "object"),
    )
    assert result.exit_code == 0, result.output
    names = ["frame.png", "report.csv", "report.html", "report.json"]
    assert sorted(p.name for p in out.iterdir()) == names
    assert all(name in result.stdout for name in names)
    assert "reflection" in result.stdout and "Passes" in result.stdout
    report = json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)
    context = report["context"]
    assert (context["width"], context["height"], context["frames"]) == (64, 48, 3)
    assert context["scene"] == "box.obj" and len(context["scene_sha256"]) == 64
    assert context["light"]["source"] == "flag" and context["light"]["center"] == [0, 5, 0]
    assert context["group"] == "object" and context["triangles"] == 12
    rows = {row["name"]: row for row in report["benchmarks"]}
    shadow = rows["ray/shadow"]
    assert shadow["hits"] + shadow["misses"] == shadow["rays"] > 0
    passes = sum(r["real_time"] for n, r in rows.items() if n.startswith("pass/"))
    # Medians of three frames need not add up exactly.
    total = rows["frame/total"]["real_time"]
    assert 0.5 * total < passes + rows["frame/gaps"]["real_time"] < 1.5 * total
    assert str(tmp_path) not in (out / "report.json").read_text()


def test_report_json_alone_on_stdout(run: Run, box: Path, tmp_path: Path) -> None:
    result = run(
        *("report", "--scene", box, "--size", "32x32", "--frames", 1, "--warmup", 0),
        *("--out", tmp_path / "out", "--json", "-"),
    )
    assert json.loads(result.stdout) == json.loads((tmp_path / "out/report.json").read_text())
    assert "CPU adapter" not in result.stderr  # everything was asked for


def test_report_says_when_it_runs_small_on_a_cpu(run: Run, box: Path, tmp_path: Path) -> None:
    words = ("report", "--scene", box, "--frames", 1, "--size", "16x16", "--out", tmp_path / "out")
    result = run(*words)
    context = json.loads((tmp_path / "out/report.json").read_text())["context"]
    if context["adapter_type"] != "CPU":
        pytest.skip(f"{context['adapter']} is no CPU adapter")
    assert "CPU adapter" in result.stderr and context["warmup"] == 1
    assert "not with a GPU's" in " ".join(result.stdout.split())
    quiet = run(*words, "--quiet")
    assert quiet.stderr == ""


def test_build_validate_inspect(run: Run, box: Path, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "box.npz"
    built = run("build", "--scene", box, "--out", file, "--json", "-", "--leaf", 1)
    assert built.exit_code == 0, built.output
    assert json.loads(built.stdout)["blas"][0]["triangles"] == 12
    valid = run("validate", "--bvh", file)
    assert (valid.exit_code, valid.stdout.startswith("valid:")) == (0, True)
    tables = json.loads(run("inspect", "--bvh", file, "--json", "-").stdout)
    assert tables["blas"][0]["leaf_histogram"] == [0, 12, 0]
    text = run("inspect", "--scene", box).stdout
    assert "TLAS" in text and "SAH" in text and "overlap" in text


def test_json_goes_to_a_file_too(run: Run, box: Path, tmp_path: Path) -> None:
    result = run("inspect", "--scene", box, "--json", tmp_path / "tables.json")
    assert json.loads((tmp_path / "tables.json").read_text())["blas"]
    assert "TLAS" in result.stdout


def test_rays_and_bench(run: Run, box: Path, tmp_path: Path) -> None:
    files = []
    for kind in ("primary", "shadow"):
        files += ["--rays", tmp_path / f"{kind}.npz"]
        words = ("rays", "--scene", box, "--size", "40x30", "--kind", kind, "--out", files[-1])
        assert run(*words).exit_code == 0
    words = ("bench", "trace", "--scene", box, *files, "--repeats", 2, "--json", "-")
    result = run(*words)
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["benchmarks"]}
    assert {"trace/primary/sorted", "trace/shadow/while-while"} <= set(rows)
    assert rows["trace/primary/sorted"]["rays"] == 1200
    assert all(row["unexplained"] == 0 and row["passed"] for row in rows.values())
    assert rows["trace/primary/sorted"]["iterations"] == 2
    # The same bytes of rays under another name belong to another scene.
    other = tmp_path / "other.obj"
    other.write_text(BOX.replace("v 1 2 1", "v 1 2 1.5"))
    assert "another scene" in one_line(run("bench", "trace", "--scene", other, *files), 2)


def test_bench_notices_wrong_hits(run: Run, box: Path, tmp_path: Path) -> None:
    from bvh.raysets import load, save

    file = tmp_path / "primary.npz"
    run("rays", "--scene", box, "--size", "40x30", "--kind", "primary", "--out", file)
    rayset = load(file)
    # A structure that misses a triangle of the scene it was made for.
    smaller = tmp_path / "box.obj"
    smaller.write_text(BOX.replace("f 5 6 7\n", ""))
    rayset = type(rayset)(
        **{
            **{name: getattr(rayset, name) for name in type(rayset).__dataclass_fields__},
            "scene_sha256": "",
        }
    )
    save(file, rayset)
    row = json.loads(
        run("bench", "trace", "--scene", smaller, "--rays", file, "--json", "-").stdout
    )["benchmarks"][0]
    assert row["different"] > 0


def test_doctor_compiles_every_kernel(run: Run) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for word in ("adapter 0", "driver", "limit max-storage-buffer-binding-size", "display"):
        assert word in result.stdout
    kernels = [line for line in result.stdout.splitlines() if line.startswith("kernel ")]
    assert len(kernels) > 10 and all(line.endswith("PASS") for line in kernels)


def test_doctor_names_a_kernel_that_does_not_compile(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import engine.gpu.shader as shader

    read = shader._read
    monkeypatch.setattr(
        shader,
        "_read",
        lambda source: read(source) + ("fn broken( {" if source.endswith("composite.wgsl") else ""),
    )
    result = run("doctor")
    assert result.exit_code == 1
    failed = [line for line in result.stdout.splitlines() if "FAIL" in line]
    assert failed and all("composite.wgsl" in line for line in failed)


def test_triangle_example(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "triangle.png"
    assert run("example", "triangle", "--out", out).exit_code == 0
    pixels = np.asarray(Image.open(out)).astype(int)
    assert pixels.shape == (720, 1280, 3)
    # Corners in the order of the vertices: red, green, blue; nothing outside.
    assert pixels[640, 330].argmax() == 0
    assert pixels[640, 950].argmax() == 1
    assert pixels[90, 640].argmax() == 2
    assert pixels[0, 0].max() < 60
    source = Path(__file__).resolve().parents[2] / "treeline" / "triangle.py"
    assert len(source.read_text().splitlines()) < 80


# ---- what a user may get wrong ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("text.glb", b"this is no scene", "text.glb"),
        ("half.glb", b"glTF\x02\x00\x00\x00\xff\x00\x00\x00", "half.glb"),
        ("empty.obj", b"", "empty.obj"),
        ("points.obj", b"v 0 0 0\nv 1 0 0\n", "points.obj"),
        ("nan.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "nan.obj"),
        ("range.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "range.obj"),
        ("scene.xyz", b"0 0 0", "xyz"),
    ],
)
def test_bad_scene_files(run: Run, tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert told in one_line(run("inspect", "--scene", path), 2)


def test_missing_files(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.glb"
    assert "nowhere.glb" in one_line(run("render", "--scene", missing, "--out", "x.png"), 2)
    assert "no.npz" in one_line(run("validate", "--bvh", tmp_path / "no.npz"), 2)
    assert "no.npz" in one_line(run("bench", "trace", "--rays", tmp_path / "no.npz"), 2)
    assert tmp_path.name in one_line(run("inspect", "--scene", tmp_path), 2)


def test_nan_triangles_are_skipped_counted_and_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "some.obj"
    path.write_text(BOX + "v nan 0 0\nf 1 2 9\n")
    result = run("inspect", "--scene", path, "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["blas"][0]["primitives"] == 12
    assert re.search(r"\b1\b.*triangle", result.stderr)


def test_degenerate_triangles_are_counted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "thin.obj"
    path.write_text(BOX + "f 1 1 2\n")
    blas = json.loads(run("inspect", "--scene", path, "--json", "-").stdout)["blas"][0]
    assert (blas["primitives"], blas["dropped_degenerate"]) == (12, 1)


@pytest.mark.parametrize("size", ["0x0", "0x10", "640", "axb", "-3x4", "10x", "1e3x10"])
def test_bad_sizes(run: Run, box: Path, tmp_path: Path, size: str) -> None:
    for words in (("render", "--out", tmp_path / "f.png"), ("report", "--out", tmp_path / "out")):
        assert size in one_line(run(*words, "--scene", box, f"--size={size}"), 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj"]


def test_a_picture_beyond_the_limits(run: Run, box: Path, tmp_path: Path) -> None:
    words = ("render", "--scene", box, "--size", "900000x900000", "--out", tmp_path / "f.png")
    assert re.search(r"900000x900000.*\d", one_line(run(*words), 2))


@pytest.mark.parametrize(
    "words",
    [
        ["render", "--nodes", "fp8", "--out", "f.png"],
        ["render", "--leaf", "3", "--out", "f.png"],
        ["render", "--no-such-option", "--out", "f.png"],
        ["render"],
        ["report", "--frames", "0", "--out", "x"],
        ["rays", "--kind", "glossy", "--out", "f.npz"],
        ["no-such-command"],
    ],
)
def test_wrong_usage_is_exit_2(run: Run, words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 2 and "Traceback" not in result.output


def test_wrong_values_are_one_line(run: Run, box: Path, tmp_path: Path) -> None:
    png, scene = tmp_path / "f.png", ("--scene", box)
    assert "magic" in one_line(run("inspect", *scene, "--builder", "magic"), 2)
    assert "smell" in one_line(run("render", *scene, "--aov", "smell", "--out", png), 2)
    assert "f.jpg" in one_line(run("render", *scene, "--out", tmp_path / "f.jpg"), 2)
    assert "f.bin" in one_line(run("build", *scene, "--out", tmp_path / "f.bin"), 2)
    for light in ("1,2,3", "a,b,c,d", "0,0,0,0", "0,0,0,-1", "nan,0,0,1"):
        assert light in one_line(run("inspect", *scene, "--light", light), 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj"]


def test_an_unknown_adapter_is_exit_3(run: Run, box: Path, tmp_path: Path) -> None:
    for words in (
        ("render", "--out", tmp_path / "f.png"),
        ("report", "--out", tmp_path / "out"),
        ("doctor",),
        ("example", "triangle", "--out", tmp_path / "f.png"),
    ):
        result = run(*words, "--scene", box, "--adapter", "Voodoo 3")
        assert result.exit_code == 3 and "Voodoo 3" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj"]


def test_a_window_without_a_display_is_exit_3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "no display" in one_line(run("example", "triangle"), 3)


def test_unwritable_places(run: Run, box: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    scene = ("--scene", box, "--size", "16x16")
    for words in (
        ("render", *scene, "--out", file / "f.png"),
        ("render", *scene, "--out", "/proc/f.png"),
        ("report", *scene, "--frames", 1, "--out", file),
        ("report", *scene, "--frames", 1, "--out", file / "out"),
        ("rays", *scene, "--kind", "primary", "--out", file / "f.npz"),
        ("build", "--scene", box, "--out", file / "f.npz"),
        ("inspect", "--scene", box, "--json", file / "f.json"),
    ):
        assert "cannot write" in one_line(run(*words), 2)
    assert file.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj", "file"]


def test_damaged_and_foreign_files(run: Run, box: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.npz"
    run("build", "--scene", box, "--out", good)
    rays = tmp_path / "rays.npz"
    run("rays", "--scene", box, "--size", "8x8", "--kind", "primary", "--out", rays)
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, words=np.zeros(4, np.uint32))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, words=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    half = tmp_path / "half.npz"
    half.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    text = tmp_path / "text.npz"
    text.write_text("hello")
    for path in (foreign, pickled, half, text, rays):
        assert path.name in one_line(run("validate", "--bvh", path), 2)
        assert path.name in one_line(run("inspect", "--bvh", path), 2)
    half.write_bytes(rays.read_bytes()[: rays.stat().st_size // 2])
    for path in (foreign, pickled, half, text, good):
        assert path.name in one_line(run("bench", "trace", "--scene", box, "--rays", path), 2)


def test_validate_names_the_bad_node(run: Run, box: Path, tmp_path: Path) -> None:
    from bvh.container import load, save

    file = tmp_path / "box.npz"
    run("build", "--scene", box, "--out", file)
    bvh = load(file)
    root = int(bvh.blas_bases[0]) // 4 + 32
    bvh.words[root] = (int(bvh.words[root]) + (1 << 12)) & 0xFFFFFFFF  # child 0 points far away
    save(file, bvh)
    result = run("validate", "--bvh", file)
    assert result.exit_code == 1
    assert "byte" in result.stdout and f"{bvh.words[root]:08x}" in result.stdout
    faults = json.loads(run("validate", "--bvh", file, "--json", "-").stdout)["faults"]
    assert faults[0]["byte_offset"] >= int(bvh.blas_bases[0])


# ---- Ctrl-C, pipes, colour -------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_report_leaves_nothing(
    box: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    out = tmp_path / "out"
    child = process(
        *("report", "--scene", box, "--size", "64x64", "--frames", 100000, "--out", out)
    )
    assert child.stderr is not None
    for line in child.stderr:
        if "timing" in line:
            break
    time.sleep(0.5)
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=30)
    assert child.returncode == code
    assert stdout == "" and "Traceback" not in stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj"]


def test_plain_text_where_nobody_looks(box: Path) -> None:
    child = process("inspect", "--scene", box, env={**os.environ, "NO_COLOR": "1"})
    stdout, stderr = child.communicate(timeout=50)
    assert child.returncode == 0
    assert "\x1b" not in stdout + stderr


def test_a_mistake_in_a_real_process_is_one_line(tmp_path: Path) -> None:
    child = process("inspect", "--scene", tmp_path / "gone.glb")
    stdout, stderr = child.communicate(timeout=50)
    assert child.returncode == 2
    assert stdout == ""
    assert [line for line in stderr.splitlines() if "gone.glb" in line] == [
        stderr.strip().splitlines()[-1]
    ]


def test_triangle_example_in_a_window(tmp_path: Path) -> None:
    if not (shutil.which("Xvfb") and shutil.which("xauth")):
        pytest.skip("a window needs a display: xvfb and xauth are not installed")
    # -displayfd: the server picks a free display and says which.
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", "1400x800x24"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        display = f":{server.stdout.readline().strip()}"
        child = process("example", "triangle", env={**os.environ, "DISPLAY": display})
        assert child.stderr is not None
        assert "window is open" in child.stderr.readline()
        deadline = time.monotonic() + 30
        shown = np.zeros((800, 1400, 3), int)
        while shown[640, 330, 0] < 100:  # the red corner
            assert child.poll() is None and time.monotonic() < deadline, "nothing was drawn"
            time.sleep(0.2)
            shown = np.asarray(ImageGrab.grab(xdisplay=display)).astype(int)
        assert shown[640, 330].argmax() == 0
        assert shown[640, 950].argmax() == 1
        assert shown[90, 640].argmax() == 2
        child.send_signal(signal.SIGINT)
        stdout, stderr = child.communicate(timeout=30)
        assert child.returncode == 130, stderr
        assert "Traceback" not in stderr
    finally:
        server.terminate()
        server.wait(timeout=10)
