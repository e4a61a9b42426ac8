"""The commands: what they print where and what they leave behind."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.main import get_command

from bvh.gpu.default_kernel import default_kernel
from treeline.cli.commands import app

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
Process = Callable[..., "subprocess.Popen[str]"]


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


def _commands(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command below `group`."""
    found = []
    for name, command in group.commands.items():
        found += _commands(command, (*words, name)) if hasattr(command, "commands") else []
        found.append((*words, name))
    return found


def test_every_command_has_a_help_page(run: Run) -> None:
    commands = _commands(get_command(app))
    assert len(commands) > 25 and ("bench", "build") in commands
    for words in commands:
        result = run(*words, "--help")
        assert result.exit_code == 0 and f"{' '.join(words)} " in result.stdout


def test_render_writes_the_picture_asked_for(run: Run, box: Path, tmp_path: Path) -> None:
    out = tmp_path / "Bild ü 図.png"
    result = run("render", "--scene", box, "--size", "64x48", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out)
    pixels = np.asarray(Image.open(out))
    assert pixels.shape == (48, 64, 3)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([out.name, "box.obj"])


@pytest.mark.parametrize(
    "aov",
    ["depth", "normal", "roughness", "material", "nodes/shadow", "any_hits/shadow", "nodes/all"],
)
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
        *("report", "--scene", box, "--size", "64x48", "--frames", 1, "--warmup", 1),
        *("--out", out, "--light", "0,5,0,0.5", "--group", "object"),
    )
    assert result.exit_code == 0, result.output
    names = ["frame.png", "report.csv", "report.html", "report.json"]
    assert sorted(p.name for p in out.iterdir()) == names
    assert all(name in result.stdout for name in names)
    assert "reflection" in result.stdout and "Passes" in result.stdout
    report = json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)
    context = report["context"]
    assert (context["width"], context["height"], context["frames"]) == (64, 48, 1)
    assert context["scene"] == "box.obj" and len(context["scene_sha256"]) == 64
    assert context["light"]["source"] == "flag" and context["light"]["center"] == [0, 5, 0]
    assert context["group"] == "object" and context["triangles"] == 12
    rows = {row["name"]: row for row in report["benchmarks"]}
    shadow = rows["ray/shadow"]
    assert shadow["hits"] + shadow["misses"] == shadow["rays"] > 0
    passes = sum(r["real_time"] for n, r in rows.items() if n.startswith("pass/"))
    total = rows["frame/total"]["real_time"]
    assert passes + rows["frame/gaps"]["real_time"] == pytest.approx(total, rel=1e-3)
    assert str(tmp_path) not in (out / "report.json").read_text()


def test_report_json_alone_on_stdout(run: Run, box: Path, tmp_path: Path) -> None:
    result = run(
        *("report", "--scene", box, "--size", "32x32", "--frames", 1, "--warmup", 0),
        *("--out", tmp_path / "out", "--json", "-", "--force-reject", "--sampler", "sobol"),
    )
    context = json.loads(result.stdout)["context"]
    assert (context["any_hit"], context["sampler"]) == ("reject", "sobol")
    assert json.loads(result.stdout) == json.loads((tmp_path / "out/report.json").read_text())
    assert "CPU adapter" not in result.stderr  # everything was asked for


def test_rays_are_forced_one_way(run: Run, box: Path, tmp_path: Path) -> None:
    both = ("--force-opaque", "--force-reject", "--scene", box)
    for command in (("render", "--out", tmp_path / "a.png"), ("report", "--out", tmp_path / "b")):
        result = run(*command, *both)
        assert result.exit_code == 2
        assert (
            result.stderr
            == "treeline: error: --force-opaque and --force-reject exclude each other\n"
        )
    assert not list(tmp_path.glob("[ab]*.png"))


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
    assert tables["blas"][0]["leaf_histogram"] == [0, 12, 0, 0, 0]
    text = run("inspect", "--scene", box).stdout
    assert "TLAS" in text and "SAH" in text and "overlap" in text


def test_json_goes_to_a_file_too(run: Run, box: Path, tmp_path: Path) -> None:
    result = run("inspect", "--scene", box, "--json", tmp_path / "tables.json")
    assert json.loads((tmp_path / "tables.json").read_text())["blas"]
    assert "TLAS" in result.stdout


def test_rays_and_bench(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
    files = []
    for kind in ("primary", "shadow"):
        files += ["--rays", tmp_path / f"{kind}.npz"]
        words = ("rays", "--scene", box, "--size", "40x30", "--kind", kind, "--out", files[-1])
        assert run(*words).exit_code == 0
    words = ("bench", "trace", "--scene", box, *files, "--repeats", 2, "--json", "-")
    result = run(*words)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    rows = {row["name"]: row for row in data["benchmarks"]}
    other = "one loop" if data["context"]["adapter_type"] == "CPU" else "while-while"
    assert {"trace/primary/sorted", f"trace/shadow/{other}"} <= set(rows)
    assert rows["trace/primary/sorted"]["rays"] == 1200
    assert all(row["unexplained"] == 0 and row["passed"] for row in rows.values())
    assert rows["trace/primary/sorted"]["iterations"] == 2
    # The same bytes of rays under another name belong to another scene.
    other = tmp_path / "other.obj"
    other.write_text(box.read_text().replace("v 1 2 1", "v 1 2 1.5"))
    assert "another scene" in one_line(run("bench", "trace", "--scene", other, *files), 2)


def test_bench_notices_wrong_hits(run: Run, box: Path, tmp_path: Path) -> None:
    from bvh.raysets import load, save

    file = tmp_path / "primary.npz"
    run("rays", "--scene", box, "--size", "40x30", "--kind", "primary", "--out", file)
    rayset = load(file)
    # A structure that misses a triangle of the scene it was made for.
    smaller = tmp_path / "box.obj"
    smaller.write_text(box.read_text().replace("f 5 6 7\n", ""))
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


def test_doctor_compiles_every_kernel(run: Run, device: Any) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for word in ("adapter 0", "driver", "limit max-storage-buffer-binding-size", "display"):
        assert word in result.stdout
    default = default_kernel(device.info)
    kernel = next(x for x in result.stdout.splitlines() if x.startswith("default kernel"))
    assert f"loops: {default.loops}" in kernel and default.reason in kernel
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
    # One sort of frame is enough of them.
    monkeypatch.setattr("treeline.kernels.GBUFFERS", ("raster",))
    monkeypatch.setattr("treeline.kernels.ANY_HIT_MODES", ("inline",))
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
