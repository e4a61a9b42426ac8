"""Captures of a frame and their replay: same words, one ray's steps, and files that are refused."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.gpu.trace_rays import HIT
from bvh.rays import MISS_ID
from engine.gpu.errors import LimitError, UserError
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import prepare
from passes.rays import RAY_TYPES, REFLECTION, with_every_ray
from treeline.capture import Capture, QueueCapture, capture_frame, find_queues, load, save
from treeline.replay import kernel_of, replay_queue, replay_ray
from treeline.scenes import load as load_scene

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]


@pytest.fixture(scope="module")
def frame(device: Any) -> HybridFrame:
    """The hall, which has alpha-tested leaves and hundreds of instances."""
    prepared = prepare(load_scene(), BuildOptions(reinsertion=0))
    frame = HybridFrame(device, prepared, with_every_ray(FrameOptions(64, 36, seed=3)))
    stats = frame.run(5)
    assert stats.valid
    return frame


@pytest.fixture(scope="module")
def taken(frame: HybridFrame) -> Capture:
    return capture_frame(frame, RAY_TYPES, scene_name="hall", scene_sha256="00ff")


@pytest.fixture(scope="module")
def file(taken: Capture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "Aufnahme \u00e4\u2192.npz"
    save(path, taken)
    return path


def test_replay_gives_the_same_words(device: Any, file: Path, frame: HybridFrame) -> None:
    loaded = load(file)
    assert [q.ray for q in loaded.queues] == list(RAY_TYPES)
    for queue in loaded.queues:
        result = replay_queue(device, loaded, queue)
        assert result.rays == len(queue.records) > 500
        assert result.words == queue.results.size
        assert len(result.different) == 0 and result.first is None and result.failures == ()
    hits = loaded.queues[0].results.view(HIT.dtype)[:, 0]
    pixels = frame.data.read_records(REFLECTION)["pixel"]
    assert len(pixels) == len(hits) and (hits["object"] != MISS_ID).mean() > 0.5
    lit = loaded.queues[1].results
    assert set(np.unique(lit)) == {0, 1}


def test_frame_is_not_changed_by_its_capture(frame: HybridFrame) -> None:
    before = frame.result_hash()
    capture_frame(frame, RAY_TYPES, scene_name="hall", scene_sha256="")
    assert frame.result_hash() == before


def test_logged_rays_take_the_oracles_steps(device: Any, taken: Capture) -> None:
    asked = 0
    for queue in taken.queues:
        for ray in range(7, len(queue.records), len(queue.records) // 6):
            result = replay_ray(device, taken, queue, ray, 4096)
            assert result.same, [d for d in result.differences if d.serious]
            assert result.log.steps[-1].kind == "end"
            if queue.ray is REFLECTION:
                hit = queue.results[ray].view(HIT.dtype)[0]
                found = np.isfinite(result.log.steps[-1].t)
                assert found == (hit["object"] != MISS_ID)
                assert not found or np.float32(result.log.steps[-1].t) == hit["t"]
            else:
                missed = not np.isfinite(result.log.steps[-1].t)
                assert missed == bool(queue.results[ray, 0])
            asked += any(s.kind == "instance" and s.hit[0] for s in result.log.steps)
    assert asked > 6


def test_identity_says_who_and_what(taken: Capture, device: Any) -> None:
    identity = json.loads(json.dumps(taken.identity))
    assert identity["adapter"] == device.info.adapter and identity["driver"]
    assert identity["scene_sha256"] == "00ff" and identity["frame_index"] == 5
    assert identity["frame_options"]["seed"] == 3
    assert identity["build_options"]["reinsertion"] == 0
    assert set(identity["libraries"]) == {"numpy", "wgpu"}
    assert len(identity["camera"]["transform"]) == 4 and identity["camera"]["y_fov"] > 0
    guest = identity["guest"]
    assert guest["format_version"] == 1 and guest["tlas"]["instances"] > 100
    for number, blas in enumerate(guest["blas"]):
        assert (blas["allocation"], blas["generation"], blas["content_version"]) == (number, 0, 0)
        assert blas["root_offset"] % 256 == 128
        words = taken.buffers["bvh"][blas["root_offset"] // 4 - 32 :][: blas["bytes"] // 4]
        assert blas["sha256"] == hashlib.sha256(words.tobytes()).hexdigest()


def test_captures_are_bounded(frame: HybridFrame) -> None:
    some = capture_frame(
        frame, find_queues(["shadow"]), scene_name="", scene_sha256="", max_rays=100
    )
    assert [q.ray.name for q in some.queues] == ["shadow"]
    assert len(some.queues[0].records) == 100
    every = len(frame.data.read_records(some.queues[0].ray))
    assert some.identity["kernels"]["shadow"]["rays_left_out"] == every - 100
    with pytest.raises(LimitError, match="the limit is 1 MB"):
        capture_frame(frame, RAY_TYPES, scene_name="", scene_sha256="", limit_mb=1)


def test_part_of_a_queue_replays_too(device: Any, frame: HybridFrame) -> None:
    for queue in capture_frame(
        frame, RAY_TYPES, scene_name="", scene_sha256="", max_rays=77
    ).queues:
        whole = capture_frame(frame, RAY_TYPES, scene_name="", scene_sha256="", max_rays=77)
        assert len(replay_queue(device, whole, queue).different) == 0


def rewritten(path: Path, file: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a capture whose arrays went through `change`, digests set right again."""
    with np.load(file) as opened:
        arrays = {key: opened[key] for key in opened.files}
    change(arrays)
    if "identity" in arrays and arrays["identity"].dtype.kind == "U":
        identity = json.loads(str(arrays["identity"]))
        for name in identity.get("sha256", {}):
            if name in arrays:
                raw = np.ascontiguousarray(arrays[name]).tobytes()
                identity["sha256"][name] = hashlib.sha256(raw).hexdigest()
        arrays["identity"] = np.array(json.dumps(identity))
    np.savez(path, **arrays)
    return path


def test_uniforms_that_end_before_newer_fields_replay(device: Any, taken: Capture) -> None:
    older = replace(taken, buffers={**taken.buffers, "frame": taken.buffers["frame"][:-4]})
    # Rays of a type that reads the newest ones were not there either.
    for queue in (queue for queue in older.queues if queue.ray.option is None):
        assert len(replay_queue(device, older, queue).different) == 0


def test_a_changed_word_is_named(run: Run, one_line: OneLine, file: Path, tmp_path: Path) -> None:
    def change(arrays: dict[str, Any]) -> None:
        arrays["reflection_results"][42, 4] ^= 1

    result = run("replay", rewritten(tmp_path / "c.npz", file, change), "--quiet")
    assert result.exit_code == 1
    assert "reflection ray 42: captured" in result.stderr
    assert "reflection" in result.stdout and "1 rays differ" in result.stdout


def test_a_changed_guest_word_changes_results(device: Any, taken: Capture) -> None:
    """The replay reads the file's bytes, not the scene: without the TLAS nothing is hit."""
    words = taken.buffers["bvh"].copy()
    words[32:36] = 0xFFFFFFFF
    changed = Capture(taken.identity, {**taken.buffers, "bvh": words}, taken.queues)
    hits = taken.queues[0].results.view(HIT.dtype)[:, 0]["object"] != MISS_ID
    result = replay_queue(device, changed, taken.queues[0])
    assert len(result.different) == hits.sum()


def test_corrupt_guest_bytes_end_with_their_failure(device: Any, taken: Capture) -> None:
    words = taken.buffers["bvh"].copy()
    words[32:36] = 0x0FFFFFFD
    changed = Capture(taken.identity, {**taken.buffers, "bvh": words}, taken.queues)
    result = replay_queue(device, changed, taken.queues[1])
    assert result.failures == ("a node pointer left the buffer",)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a: a.update(version=np.array(0)), "capture version 0, this reads 1"),
        (lambda a: a.update(version=np.array(2)), "capture version 2, this reads 1"),
        (lambda a: a.update(format=np.array("treeline-bvh")), "not a Treeline capture"),
        (lambda a: a.pop("format"), "not a Treeline capture"),
        (lambda a: a.pop("bvh"), "damaged capture, 'bvh' is missing"),
        (lambda a: a.pop("shadow_results"), "damaged capture, 'shadow_results' is missing"),
        (lambda a: a.update(frame=np.zeros(4, np.float32)), "'frame' has type float32"),
        (lambda a: a.update(identity=np.array("{")), "'identity' cannot be read"),
        (lambda a: a.update(identity=np.array("[]")), "'identity' cannot be read"),
        (
            lambda a: a.update(reflection_records=a["reflection_records"][:-1]),
            "reflection has records",
        ),
    ],
)
def test_older_and_damaged_files(
    run: Run, one_line: OneLine, file: Path, tmp_path: Path, change: Any, told: str
) -> None:
    path = tmp_path / "bad.npz"
    with np.load(file) as opened:
        arrays = {key: opened[key] for key in opened.files}
    change(arrays)
    np.savez(path, **arrays)
    message = one_line(run("replay", path), 2)
    assert told in message and "bad.npz" in message


def test_flipped_and_cut_files(run: Run, one_line: OneLine, file: Path, tmp_path: Path) -> None:
    raw = bytearray(file.read_bytes())
    path = tmp_path / "cut.npz"
    path.write_bytes(raw[: len(raw) // 2])
    assert "not a Treeline capture, or damaged" in one_line(run("replay", path), 2)
    raw[len(raw) // 3] ^= 0x10
    path.write_bytes(raw)
    assert "damaged" in one_line(run("replay", path), 2)
    path.write_bytes(b"")
    assert "cut.npz" in one_line(run("replay", path), 2)
    assert "no such file" in one_line(run("replay", tmp_path / "none.npz"), 2)
    np.save(tmp_path / "lone.npy", np.zeros(3))
    assert "not a Treeline capture" in one_line(run("replay", tmp_path / "lone.npy"), 2)


def test_digest_names_the_array(taken: Capture, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    save(path, taken)
    with np.load(path) as opened:
        arrays = {key: opened[key] for key in opened.files}
    arrays["bvh"][1000] ^= 1
    np.savez(path, **arrays)
    with pytest.raises(UserError, match="the bytes of 'bvh' are not those written"):
        load(path)


def test_only_our_own_kernels_are_run(taken: Capture) -> None:
    for change, told in (
        ({"slots": {"record": "passes/shaders/shade.wgsl"}}, "slot record"),
        ({"slots": {"other": "x"}}, "slot other"),
        ({"constants": {"EVIL": 1.0}}, "constant EVIL"),
    ):
        kernels = json.loads(json.dumps(taken.identity["kernels"]))
        for part, values in change.items():
            kernels["reflection"][part].update(values)
        foreign = Capture({**taken.identity, "kernels": kernels}, taken.buffers, taken.queues)
        with pytest.raises(UserError, match=told):
            kernel_of(foreign, REFLECTION)


def test_empty_queue(device: Any, frame: HybridFrame, taken: Capture) -> None:
    empty = capture_frame(frame, RAY_TYPES, scene_name="hall", scene_sha256="00ff", max_rays=0)
    assert [len(queue.records) for queue in empty.queues] == [0] * len(RAY_TYPES)
    queue = taken.queues[0]
    none = QueueCapture(queue.ray, queue.records[:0], queue.results[:0])
    assert replay_queue(device, taken, none).rays == 0
    with pytest.raises(UserError, match="there is no ray 0"):
        replay_ray(device, taken, none, 0, 16)


def test_commands(run: Run, one_line: OneLine, box: Path, tmp_path: Path) -> None:
    out = tmp_path / "box.npz"
    made = run(
        "capture", "--scene", box, "--size", "48x32", "--queue", "shadow", "--out", out,
        "--json", "-", "--quiet",
    )  # fmt: skip
    data = json.loads(made.stdout)
    assert made.exit_code == 0 and data["rays"] == {"shadow": data["rays"]["shadow"]}
    assert data["rays"]["shadow"] > 50 and data["identity"]["scene"] == "box.obj"
    again = run("replay", out, "--quiet")
    assert again.exit_code == 0 and "0 rays differ" in again.stdout
    log = run("replay", out, "--ray", 5, "--quiet")
    assert log.exit_code == 0
    for word in ("shadow ray 5: from", "box, byte", "words ", "end: ", "the oracle's"):
        assert word in log.stdout
    as_json = json.loads(run("replay", out, "--ray", 5, "--json", "-", "--quiet").stdout)
    assert as_json["same"] and as_json["dropped"] == 0 and as_json["steps"]
    short = run("replay", out, "--ray", 5, "--events", 1, "--quiet")
    assert short.exit_code == 1 and "steps did not fit the log" in short.stdout
    assert "there is no ray 99999" in one_line(run("replay", out, "--ray", 99999), 2)
    told = one_line(run("replay", out, "--ray", 1, "--queue", "reflection"), 2)
    assert "holds no reflection queue" in told
    assert "no ray queue is named 'x'" in one_line(
        run("replay", out, "--ray", 1, "--queue", "x"), 2
    )
    assert "no ray queue is named 'x'" in one_line(run("capture", "--queue", "x", "--out", out), 2)
    small = tmp_path / "small.npz"
    refused = run("capture", "--scene", box, "--limit", 0.001, "--out", small)
    assert "the limit is 0.001 MB" in one_line(refused, 2)
    assert not small.exists()
    assert "not out.txt" in one_line(run("capture", "--out", "out.txt"), 2)
    assert "no rays" in one_line(
        run("capture", "--out", small, "--reflections", "screen", "--shadows", "map"), 2
    )
    for flag, value in (("--limit", "nan"), ("--frame-index", 2**32)):
        assert run("capture", "--out", small, flag, value).exit_code == 2


def test_fuzz_command(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "fuzz.json"
    result = run("bench", "fuzz", "--count", 20, "--gpu", 4, "--workers", 1, "--out", out, "-q")
    assert result.exit_code == 0, result.output
    data = json.loads(out.read_text())
    assert data["passed"] and data["cpu"]["mutations"] == 20 and data["gpu"]["mutations"] == 4
    assert min(b["box_nodes"] for b in data["context"]["buffers"]) >= 1000
