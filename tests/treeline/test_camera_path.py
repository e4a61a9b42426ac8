"""`--camera-path`: pictures and reports along a scene's path, its animation running along."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.gpu.errors import UserError
from engine.scene.camera_path import CameraPath
from treeline.animated_picture import (
    ANIMATED,
    check_animation,
    durations,
    save_pictures,
    series_path,
)
from treeline.playback import play
from treeline.scenes import load

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
QUICK = ("--optimize", 0, "--builder", "lbvh", "--no-cache", "-q", "--size", "48x27")
FOX = """
[files]
fox = "Fox.glb"
[[objects]]
file = "fox"
scale = 0.01
clip = "Walk"
[camera_path]
loop = {loop}
keys = [
    {{ time = 1, position = [3, 1.0, 0], target = [0, 0.5, 0], fov = 40 }},
    {{ time = 1.5, position = [0, 1.0, 3], target = [0, 0.5, 0], fov = 40 }},
    {{ time = 2, position = [3, 1.0, 0], target = [0, 0.5, 0], fov = 40 }},
]
"""


@pytest.fixture
def fox(tmp_path: Path, shared_scenes: Path) -> Callable[[str], tuple[object, ...]]:
    def write(loop: str = "true") -> tuple[object, ...]:
        file = tmp_path / "fox.toml"
        file.write_text(FOX.format(loop=loop))
        return ("--scene", file, "--assets", shared_scenes, *QUICK)

    return write


def test_frames_of_a_path(fox: Any, shared_scenes: Path) -> None:
    closed = load(fox("true")[1], [str(shared_scenes)])
    assert play(closed, fps=8).offsets == tuple(
        i / 8 for i in range(8)
    )  # the last key is the first
    assert play(closed, count=4).offsets == (0.0, 0.25, 0.5, 0.75)
    still = play(closed, fps=0.5)
    assert still.offsets == (0.0,) and (still.clip, still.time) == ("scene", 0.0)
    opened = load(fox("false")[1], [str(shared_scenes)])
    assert play(opened, fps=8).offsets == tuple(i / 8 for i in range(9))
    assert play(opened, count=3).offsets == (0.0, 0.5, 1.0)
    assert play(opened, count=1).offsets == (0.0,)
    with pytest.raises(UserError, match="the camera path has 900,001 frames, at most 100,000"):
        play(opened, fps=900_000)


def test_the_animation_runs_along(fox: Any, shared_scenes: Path) -> None:
    from passes.frame_options import FrameOptions
    from passes.frame_uniforms import frame_inputs
    from passes.prepare import prepare

    scene = load(fox()[1], [str(shared_scenes)])
    assert isinstance(scene.camera_path, CameraPath)
    inputs = frame_inputs(prepare(scene), FrameOptions(4, 4))
    third = play(scene, "scene", 0.3, fps=4).inputs(inputs, 2)
    assert (third.clip, third.time) == ("scene", 0.8)
    assert third.camera.same_as(scene.camera_path.at(1.5))
    # What was drawn before a path began is none of its frames' concern.
    steps = [play(scene, fps=4).inputs(third, number) for number in range(3)]
    assert [step.camera_moves for step in steps] == [False, True, True]


def test_a_series_of_pictures(run: Run, fox: Any, tmp_path: Path) -> None:
    words = (*fox(), "--camera-path", "--samples", 1, "--json", "-")
    made = json.loads(run("render", *words, "--fps", 4, "--out", tmp_path / "a/walk.png").stdout)
    names = [f"walk-{i:04d}.png" for i in range(4)]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    assert (made["frames"], made["files"], made["fps"], made["valid"]) == (4, 4, 4.0, True)
    pictures = [np.asarray(Image.open(tmp_path / "a" / name)) for name in names]
    assert len({picture.tobytes() for picture in pictures}) == 4  # it goes on and the fox walks


def test_animated_pictures(tmp_path: Path, rng: Any) -> None:
    pictures = rng.integers(0, 256, (3, 8, 12, 3), np.uint8)
    for suffix in ANIMATED:
        out = Path(f"walk{suffix}")
        assert save_pictures(tmp_path, out, iter(pictures), 3, 4.0) == 1
        image: Any = Image.open(tmp_path / out)
        assert image.n_frames == 3 and image.size == (12, 8)
        assert image.info["loop"] == 0
        image.seek(2)
        image.load()
        assert image.info["duration"] == 250
        far = np.abs(np.asarray(image.convert("RGB"), int) - pictures[2])
        assert far.mean() < (1 if suffix == ".apng" else 60)


def test_durations_add_up() -> None:
    assert durations(3, 4, 10) == [250, 250, 250]
    assert sum(durations(48, 24, 10)) == 2000 and set(durations(48, 24, 10)) == {40, 50}
    assert min(durations(10, 1000, 10)) == 10
    assert series_path(Path("x/walk.png"), 7, 20_000) == Path("x/walk-00007.png")
    with pytest.raises(UserError, match="1,000 frames of 1920x1080 take 5.8 GiB until a.gif"):
        check_animation(Path("a.gif"), 1000, 1920, 1080)
    check_animation(Path("a.png"), 1000, 1920, 1080)


def test_a_report_along_the_path(run: Run, fox: Any, tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = run("report", *fox(), "--camera-path", "--frames", 3, "--warmup", 0, "--out", out)
    assert "Along the camera path: 3 frames, the slowest at" in result.stdout
    rows = {row["name"]: row for row in json.loads((out / "report.json").read_text())["benchmarks"]}
    frames = [rows[f"path/frame/{i:04d}"] for i in range(3)]
    assert [round(row["path_seconds"], 6) for row in frames] == [0.0, 0.333333, 0.666667]
    assert all(row["valid"] and row["shadow_rays"] > 0 for row in frames)
    assert len({row["reflection_rays"] for row in frames}) > 1
    total = [row["real_time"] for row in frames]
    assert rows["path/total"]["real_time"] == pytest.approx(np.median(total))
    assert rows["path/total"]["real_time_max"] == max(total)
    assert rows["path/pass/update/tlas"]["iterations"] == 3
    assert frames[1]["update_ms"] > 0 and frames[1]["gbuffer_ms"] > 0
    assert "Along the camera path" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--camera-path",), "--camera-path: box has no camera path"),
        (("--fps", 5), "--fps is of --camera-path"),
        (("--camera-path", "--oracle", "pyrender"), "--oracle compares one picture"),
    ],
)
def test_what_cannot_be_played(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine, words: Any, message: str
) -> None:
    result = run("render", "--scene", box, "--out", tmp_path / "a.png", *words)
    assert message in one_line(result, 2)
    assert list(tmp_path.glob("a*.png")) == []


def test_other_files_are_no_pictures(run: Run, fox: Any, tmp_path: Path, one_line: OneLine) -> None:
    result = run("render", *fox(), "--camera-path", "--out", tmp_path / "a.mp4")
    assert "an animated one .apng, .gif, .webp, not a.mp4" in one_line(result, 2)
    assert "no camera path" in one_line(
        run("report", "--camera-path", "--out", tmp_path / "r", "--size", "8x8"), 2
    )
