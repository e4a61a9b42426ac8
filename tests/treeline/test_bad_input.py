"""What a user may get wrong: one clear line, the right exit code, nothing half-written."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
Process = Callable[..., "subprocess.Popen[str]"]


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
def test_bad_scene_files(
    run: Run, tmp_path: Path, name: str, content: bytes, told: str, one_line: OneLine
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert told in one_line(run("inspect", "--scene", path), 2)


def test_scene_files_that_place_models(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine
) -> None:
    """Their mistakes are one line of every command, and two options say where models may be."""
    folder = tmp_path / "scenes"
    folder.mkdir()
    path = folder / "scene.toml"
    path.write_text('[files]\nb = "box.obj"\n[[objects]]\nfile = "b"\nscale = 0\n')
    assert "objects[0] 'b'.scale is 0" in one_line(run("inspect", "--scene", path), 2)
    text = f'[files]\nb = "{box.name}"\n[[objects]]\nfile = "b"\n'
    path.write_text(text)
    assert "no such file" in one_line(run("inspect", "--scene", path), 2)
    told = one_line(run("inspect", "--scene", path, "--assets", "nowhere"), 2)
    assert told.endswith("--assets nowhere: nowhere is no folder")
    found = run("inspect", "--scene", path, "--assets", box.parent, "--json", "-")
    assert json.loads(found.stdout)["blas"][0]["primitives"] == 12
    path.write_text(text.replace(box.name, str(box)))
    assert "--allow-outside permits it" in one_line(run("inspect", "--scene", path), 2)
    assert run("inspect", "--scene", path, "--allow-outside").exit_code == 0
    path.write_text(text.replace(box.name, f"kit:{box.name}"))
    assert run("inspect", "--scene", path, "--assets", f"kit={box.parent}").exit_code == 0


def test_missing_files(run: Run, tmp_path: Path, one_line: OneLine) -> None:
    missing = tmp_path / "nowhere.glb"
    assert "nowhere.glb" in one_line(run("render", "--scene", missing, "--out", "x.png"), 2)
    assert "no.npz" in one_line(run("validate", "--bvh", tmp_path / "no.npz"), 2)
    assert "no.npz" in one_line(run("bench", "trace", "--rays", tmp_path / "no.npz"), 2)
    assert tmp_path.name in one_line(run("inspect", "--scene", tmp_path), 2)


def test_nan_triangles_are_skipped_counted_and_told(run: Run, box: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.obj"
    path.write_text(box.read_text() + "v nan 0 0\nf 1 2 9\n")
    result = run("inspect", "--scene", path, "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["blas"][0]["primitives"] == 12
    assert re.search(r"\b1\b.*triangle", result.stderr)


def test_degenerate_triangles_are_counted(run: Run, box: Path, tmp_path: Path) -> None:
    path = tmp_path / "thin.obj"
    path.write_text(box.read_text() + "f 1 1 2\n")
    blas = json.loads(run("inspect", "--scene", path, "--json", "-").stdout)["blas"][0]
    assert (blas["primitives"], blas["dropped_degenerate"]) == (12, 1)


def _soup(path: Path, size: float) -> Path:
    """Twenty triangles, up to about 5 * `size` from the origin."""
    rng = np.random.default_rng(1)
    points = (rng.random((20, 1, 3)) * 4 + 0.3 * rng.normal(size=(20, 3, 3))).reshape(-1, 3) * size
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in points.tolist()]
    lines += [f"f {3 * i + 1} {3 * i + 2} {3 * i + 3}" for i in range(20)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("size", [1e9, 1e15, 5e37, 1e-15, 1e-39])
def test_coordinates_out_of_range(run: Run, tmp_path: Path, size: float, one_line: OneLine) -> None:
    """Named, with the limit; nothing is left behind."""
    path = _soup(tmp_path / "soup.obj", size)
    told = "'soup.obj' reaches .* up to 5.4e" if size > 1 else "nothing in .* from 9.5e-07 on"
    for words in (("validate",), ("build", "--out", tmp_path / "s.npz"), ("inspect",)):
        assert re.search(told, one_line(run(*words, "--scene", path), 2))
    if size != 1e9:
        words = ("bench", "build", "--repeats", 1, "--cases", "lbvh", "--scene", path)
        assert "the range of the triangle test" in one_line(run(*words), 2)
    assert [p.name for p in tmp_path.iterdir()] == ["soup.obj"]


def test_scenes_beyond_halves_and_without_area_are_valid(run: Run, tmp_path: Path) -> None:
    flat = tmp_path / "flat.obj"
    flat.write_text("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n")
    for path in (_soup(tmp_path / "far.obj", 1e5), flat):
        for nodes in ("auto", "fp16"):
            result = run("validate", "--scene", path, "--nodes", nodes)
            assert result.exit_code == 0 and result.stdout.startswith("valid: 1 BLAS")


@pytest.mark.parametrize("size", ["0x0", "0x10", "640", "axb", "-3x4", "10x", "1e3x10"])
def test_bad_sizes(run: Run, box: Path, tmp_path: Path, size: str, one_line: OneLine) -> None:
    for words in (("render", "--out", tmp_path / "f.png"), ("report", "--out", tmp_path / "out")):
        assert size in one_line(run(*words, "--scene", box, f"--size={size}"), 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["box.obj"]


def test_json_that_cannot_be_written_is_refused_first(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine
) -> None:
    """Not after the work, and with nothing of it left."""
    words = ("render", "--scene", box, "--size", "8x8", "--out", tmp_path / "f.png", "--json")
    assert f"cannot write {tmp_path}: it is a folder" in one_line(run(*words, tmp_path), 2)
    assert "box.obj: it is a file, not a folder" in one_line(run(*words, box / "f.json"), 2)
    assert [p.name for p in tmp_path.iterdir()] == ["box.obj"]


def test_places_that_cannot_be_written_are_refused_first(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine
) -> None:
    """Before the scene is read: here there is none."""
    inside, nowhere = box / "a", tmp_path / "nowhere.glb"
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(f'scenes = ["{nowhere}"]\n')
    frames = ("--scene", nowhere, "--offscreen", "--frames", 1)
    for words in (
        ("tune", "--scene", nowhere, "--out", inside / "p.json"),
        ("tune", "--scene", nowhere, "--out", tmp_path),
        ("view", *frames, "--screenshot", inside / "a.png"),
        ("view", *frames, "--stats", inside / "a.json"),
        ("capture", "--scene", nowhere, "--out", inside / "a.npz"),
        ("sweep", sweep, "--out", box),
    ):
        assert "cannot write" in one_line(run(*words), 2)
    told = one_line(run("render", "--scene", nowhere, "--out", "."), 2)
    assert told.endswith("is written as .png, .exr or .npz, not .")


def test_what_the_window_cannot_be(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
    words = ("view", "--scene", tmp_path / "nowhere.glb")
    told = one_line(run(*words, "--offscreen", "--frames", 1, "--size", "99999x20"), 2)
    assert "99999x20 is beyond" in told
    camera = tmp_path / "camera.json"
    camera.write_text("{}")
    words = ("view", "--scene", box, "--offscreen", "--frames", 1, "--camera", camera)
    assert f"{camera}: camera text: not a camera" in one_line(run(*words), 2)


def test_options_are_refused_before_the_scene_is_read(run: Run, one_line: OneLine) -> None:
    for words in (("--builder", "fast"), ("--light", "0,1,0,1e30"), ("--light", "0,1,1e10,1")):
        told = one_line(run("inspect", "--scene", "nowhere.glb", *words), 2)
        assert words[1] in told and "nowhere" not in told


def test_profiles_are_refused_before_the_scene_is_read(
    run: Run, tmp_path: Path, one_line: OneLine
) -> None:
    text = tmp_path / "p.json"
    text.write_text("{}")
    for words in (("report", "--out", tmp_path / "out"), ("view", "--offscreen", "--frames", 1)):
        words = (*words, "--scene", tmp_path / "nowhere.glb")
        assert "no profile is named 'Fast'" in one_line(run(*words, "--profile", "Fast"), 2)
        assert "is no tuned profile" in one_line(run(*words, "--tuned", text), 2)
        assert "no.json" in one_line(run(*words, "--tuned", tmp_path / "no.json"), 2)


def test_numbers_that_no_frame_can_hold(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine
) -> None:
    words = ("render", "--scene", box, "--out", tmp_path / "f.png")
    assert run(*words, "--seed", 2**32).exit_code == 2
    assert "at most 1,048,576 samples" in one_line(run(*words, "--samples", 2**20 + 1), 2)
    for seed in (-1, 2**32):
        with pytest.raises(UserError, match=f"a seed is 0 to 4294967295, not {seed}"):
            FrameOptions(8, 8, seed=seed)


def test_a_picture_beyond_the_limits(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine
) -> None:
    words = ("render", "--scene", box, "--size", "900000x900000", "--out", tmp_path / "f.png")
    assert re.search(r"900000x900000.*\d", one_line(run(*words), 2))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("render --out f.png --upsampel edge", "no such option: --upsampel"),
        ("render", "missing option '--out' (see treeline render --help)"),
        ("render --out", "option '--out' requires an argument"),
        ("render f.png --out f.png", "unexpected extra argument(s) (f.png)"),
        ("compare a.json", "missing argument 'b' (see treeline compare --help)"),
        ("report --frames 0 --out x", "'--frames': Input should be greater than or equal to 1"),
        ("report --frames two --out x", "'--frames': Input should be a valid integer"),
        ("rays --kind glossy --out f.npz", "'--kind': 'glossy' is not one of 'primary', 'mirror'"),
        ("rendr", "no such command 'rendr'. Did you mean 'render'? (see treeline --help)"),
        ("bench traces", "no such command 'traces'. Did you mean 'trace'?"),
        ("--verbose", "no such option: --verbose (Possible options: --version) (see"),
    ],
)
def test_wrong_usage_is_one_line(run: Run, one_line: OneLine, words: str, told: str) -> None:
    result = run(*words.split())
    assert told in one_line(result, 2)
    assert len(result.stderr.splitlines()) == 1


def test_words_that_are_left_out_are_no_mistake_to_tell(run: Run) -> None:
    """Of a command with commands: its help, and the exit code of wrong usage."""
    for words in ((), ("bench",), ("contract",)):
        result = run(*words)
        assert result.exit_code == 2
        assert "Usage: treeline" in result.stdout and result.stderr == ""


def test_wrong_values_are_one_line(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
    png, scene = tmp_path / "f.png", ("--scene", box)
    assert "magic" in one_line(run("inspect", *scene, "--builder", "magic"), 2)
    assert "fp8" in one_line(run("inspect", *scene, "--nodes", "fp8"), 2)
    assert "leaf must be 1, 2 or 4" in one_line(run("inspect", *scene, "--leaf", 3), 2)
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


def test_a_window_without_a_display_is_exit_3(
    run: Run, monkeypatch: pytest.MonkeyPatch, one_line: OneLine
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "no display" in one_line(run("example", "triangle"), 3)
    # Said before the scene is read.
    assert "no display" in one_line(run("view", "--scene", "nowhere.glb"), 3)


def test_unwritable_places(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
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


def test_damaged_and_foreign_files(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
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
