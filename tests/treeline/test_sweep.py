"""`treeline sweep`: which cases a file has, that a good record is kept and everything else is
measured, what becomes of a case or a process that fails, and the same on two Dask workers."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from engine.gpu.device import open_device
from engine.gpu.errors import UserError
from treeline import sweep, sweep_case, sweep_workers
from treeline.cli.profile import pick_profile
from treeline.compare import read_series
from treeline.scenes import load
from treeline.sweep import Case, Job, good_record, read_sweep

CASE = Case("box.obj", None, (("builder", "lbvh"),), (8, 6), 2, 0, None, None)
JOB = Job(CASE, "/scenes/box.obj", "a" * 64, "llvmpipe", "c0ffee")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit of this process and of those it starts is one that is not modified."""
    monkeypatch.setattr(sweep, "commit", lambda: "c0ffee")
    monkeypatch.setattr(sweep_case, "commit", lambda: "c0ffee")
    monkeypatch.setattr("treeline.version.commit", lambda: "c0ffee")


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def to_file(text: str) -> Path:
        path = tmp_path / "sweep.toml"
        path.write_text(text)
        return path

    return to_file


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cases are measured in this process; what was measured, in order."""
    measured: list[str] = []

    def run(jobs: Any) -> Iterator[Any]:
        for job in jobs:
            measured.append(job.case.text())
            yield job, sweep_case.attempt(job)

    monkeypatch.setattr(sweep_workers, "on_this_machine", run)
    return measured


def test_every_combination_is_a_case_once(write: Any) -> None:
    path = write(
        'scenes = ["hall", "a.obj"]\nadapters = ["x", "y"]\nsize = "8x6"\nframes = 3\nwarmup = 0\n'
        "[[options]]\nleaf = [1, 2]\nocclusion = [false, true]\n"
        "[[options]]\nleaf = 2\nocclusion = true\n[[options]]\n"
    )
    cases = read_sweep(path, "unused")
    assert len(cases) == len(set(cases)) == 2 * 2 * 5
    assert [(c.adapter, c.scene) for c in cases[::5]] == [
        *(("x", "hall"), ("x", "a.obj"), ("y", "hall"), ("y", "a.obj"))
    ]
    assert [c.text() for c in cases[:5]] == [
        *("leaf=1 occlusion=False", "leaf=1 occlusion=True", "leaf=2 occlusion=False"),
        *("leaf=2 occlusion=True", "defaults"),
    ]
    settings = cases[1].settings()
    assert settings.build.leaf == 1 and settings.frame.occlusion is True
    assert (cases[0].size, cases[0].frames, cases[0].warmup) == ((8, 6), 3, 0)
    (only,) = read_sweep(write('scenes = ["hall"]'), "llvm")
    assert (only.adapter, only.size, only.frames, only.options) == ("llvm", (320, 180), 5, ())


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "scenes is no list of texts"),
        ("scenes = []", "scenes is no list"),
        ('scenes = ["hall", "hall"]', "'hall' a second time"),
        ('scenes = ["hall"]\nsize = "8"', "size: a size is WIDTHxHEIGHT"),
        ('scenes = ["hall"]\nsize = ["8x8"]', "sweep.toml: size is ['8x8'], not a text"),
        ('scenes = ["hall"]\nframes = 0', "frames is 0, not a whole number from 1"),
        ('scenes = ["hall"]\nscheduler = "x"', "scheduler is no key"),
        ('scenes = ["hall"]\nprofile = "Best"', "profile: no profile is named 'Best'"),
        ('scenes = ["hall"]\nprofile = []', "profile is no list of texts"),
        ('scenes = ["hall"]\nprofile = 3', "profile is no list of texts"),
        ('scenes = ["hall"]\n[options]\nbuildr = "sah"', "options.buildr: no option is named"),
        ('scenes = ["hall"]\n[options]\nleaf = [1, 3]', "options.leaf: leaf is one of 1, 2, 4"),
        ('scenes = ["hall"]\n[options]\nleaf = []', "options.leaf: has no value"),
        ('scenes = ["hall"]\n[options]\nleaf = true', "options.leaf: is no choice: True"),
        ('scenes = ["hall"]\n[options]\nocclusion = 1', "options.occlusion: is no flag: 1"),
        ('scenes = ["hall"]\n[options]\nreinsertion = 2.5', "reinsertion: is no number"),
        ('scenes = ["hall"]\n[[options]]\nexposure = 99', "options[0].exposure: exposure is"),
        ("scenes = [", "no TOML"),
    ],
)
def test_mistakes_are_named(write: Any, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read_sweep(write(text), None)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_more_cases_than_the_limit_are_refused(write: Any) -> None:
    seeds = ", ".join(map(str, range(101)))
    masks = ", ".join(map(str, range(100)))
    with pytest.raises(UserError, match="more than 10,000"):
        read_sweep(
            write(f'scenes = ["hall"]\n[options]\nseed = [{seeds}]\n"mask/shadow" = [{masks}]'),
            None,
        )


def test_a_key_follows_what_is_measured_and_nothing_else() -> None:
    alike = replace(JOB, path="/elsewhere.obj", case=replace(CASE, scene="x.obj", adapter="llvm"))
    assert alike.key == JOB.key
    others = [
        replace(JOB, sha256="b" * 64),
        replace(JOB, device="llvmpipe 2"),
        replace(JOB, commit="beef"),
        *(
            replace(JOB, case=replace(CASE, **change))
            for change in (
                *({"options": ()}, {"options": (("builder", "sah"),)}, {"size": (6, 8)}),
                *({"frames": 3}, {"warmup": 1}, {"clip": "Walk"}, {"time": 0.0}),
            )
        ),
    ]
    assert len({JOB.key, *(job.key for job in others)}) == 1 + len(others)


def test_only_a_good_record_is_kept(
    run: Any, write: Any, box: Path, tmp_path: Path, here: list[str], monkeypatch: Any
) -> None:
    """Of two cases that were measured the second one's is damaged; then a third case is new."""
    text = f'scenes = ["{box.name}"]\nsize = "8x6"\nframes = 2\nwarmup = 0\n[options]\n'
    text += 'gbuffer = "rays"\nseed = '
    command = ("sweep", write(text + "[1, 2]"), "--out", tmp_path / "out", "--json", "-")
    first = json.loads(run(*command).stdout)["cases"]
    assert [row["state"] for row in first] == ["measured", "measured"] and len(here) == 2
    files = [tmp_path / "out" / row["file"] for row in first]
    assert sorted((tmp_path / "out").iterdir()) == sorted(files)
    series = read_series(files[0])  # which `treeline compare` reads
    assert series.context["options"] == {"gbuffer": "rays", "seed": 1}
    record = json.loads(files[0].read_text())
    assert record["sweep"]["key"] in files[0].name and record["context"]["seed"] == 1
    assert first[0]["frame_ms"] == pytest.approx(series.rows["frame/total"].mean(), rel=1e-4)

    monkeypatch.setattr(
        sweep_case,
        "measure_case",
        lambda job: {"benchmarks": [{"name": "frame/total", "real_time": 1.0}]},
    )
    files[1].write_text(files[1].read_text()[:-200])
    write(text + "[1, 2, 3]")
    again = json.loads(run(*command).stdout)["cases"]
    assert [row["state"] for row in again] == ["kept", "measured", "measured"]
    assert here[2:] == ["gbuffer=rays seed=2", "gbuffer=rays seed=3"]
    assert again[0]["frame_ms"] == first[0]["frame_ms"]
    # Another scene under the same name is another case.
    box.write_text(box.read_text() + "v 9 9 9\n")
    assert [row["state"] for row in json.loads(run(*command).stdout)["cases"]] == ["measured"] * 3


def test_a_modified_checkout_keeps_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"name": "frame/total", "real_time": 1.0}
    sweep.write_record(tmp_path, JOB, {"benchmarks": [row]})
    path = tmp_path / JOB.file_name
    assert good_record(path, JOB.key) is not None
    assert good_record(path, replace(JOB, sha256="b").key) is None
    monkeypatch.setattr(sweep, "commit", lambda: "c0ffee-modified")
    assert good_record(path, JOB.key) is None


def test_profiles_are_cases(write: Any, box: Path) -> None:
    """Each draws what its profile sets, or is recorded as refused; none stands for another."""
    names = ["ComputeHalf", "HardwareRT_High", "RasterFallback", "auto"]
    path = write(
        f'scenes = ["{box}"]\nsize = "8x6"\nframes = 1\nwarmup = 0\nprofile = {names}\n'
        '[options]\nbuilder = "lbvh"\nreinsertion = 0\n'
    )
    cases = read_sweep(path, None)
    assert [case.profile for case in cases] == names
    assert cases[0].text() == "profile=ComputeHalf builder=lbvh reinsertion=0"
    keys = {Job(case, "/box.obj", "a" * 64, "llvmpipe", "c0ffee").key for case in cases}
    assert len(keys) == 4
    sha256, adapter = load(box).sha256, sweep_case.adapter_name(None)
    refused, raster, half = (
        sweep_case.attempt(Job(case, str(box), sha256, adapter, "c0ffee"))
        for case in (cases[1], cases[2], replace(cases[0], options=(("history", 0),)))
    )
    assert raster["context"]["profile"] == {"name": "RasterFallback", "refused": {}}
    assert raster["context"]["reflections"] == "screen"
    assert not any(row["name"].startswith("pass/traverse") for row in raster["benchmarks"])
    assert "this profile does not run here: HardwareRT_High" in refused["error"]
    assert "ComputeHalf sets history to 32: leave it out" in half["error"]
    best = pick_profile("auto", open_device(), {}, {}).context["profile"]
    assert best["name"] == "ComputeFull" and len(best["refused"]) == 2


def test_what_fails_is_recorded_and_tried_again(
    run: Any, write: Any, box: Path, tmp_path: Path, here: list[str], monkeypatch: Any
) -> None:
    """A scene that is not there, an option that the scene refuses, a bug: one line each, and the
    case between them is measured."""
    measure = sweep_case.measure_case

    def with_a_bug(job: Job) -> Any:
        if dict(job.case.options)["leaf"] == 4:
            raise ZeroDivisionError("two\nlines")
        return measure(job)

    monkeypatch.setattr(sweep_case, "measure_case", with_a_bug)
    path = write(
        f'scenes = ["no.obj", "{box.name}"]\nsize = "8x6"\nframes = 1\nwarmup = 0\n'
        '[options]\ngbuffer = "rays"\nleaf = [4, 1]'
    )
    for _ in range(2):
        result = run("sweep", path, "--out", tmp_path / "out")
        assert result.exit_code == 1
        (line,) = (text for text in result.stderr.splitlines() if "error:" in text)
        assert "3 of 4 cases failed, the first: no.obj gbuffer=rays leaf=4" in line
    records = [json.loads(p.read_text()) for p in (tmp_path / "out").iterdir()]
    errors = sorted(record["error"] for record in records if "error" in record)
    assert len(records) == 4 and errors[2] == "ZeroDivisionError: two lines"
    assert all("no.obj: no such file" in text for text in errors[:2])
    assert here == ["gbuffer=rays leaf=4", "gbuffer=rays leaf=1", "gbuffer=rays leaf=4"]


def test_a_process_finds_what_is_not_what_was_asked_for() -> None:
    from treeline.sweep_case import adapter_name, attempt

    asked = Job(CASE, None, "0" * 64, adapter_name(None), "c0ffee")
    wrong = attempt(asked)["error"]
    assert "another scene" in wrong and "0" * 64 in wrong
    assert "another adapter" in attempt(replace(asked, device="Voodoo"))["error"]


def end_itself(job: Job) -> dict[str, Any]:
    """Stands for a driver that takes its process along."""
    if job.case.frames == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"pid": os.getpid()}


def test_a_process_that_ends_fails_one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next ones of its adapter have a new one; those of another adapter go on in theirs."""
    monkeypatch.setattr(sweep_workers, "attempt", end_itself)
    context = sweep_workers.multiprocessing.get_context("fork")  # which takes the stand-in along
    monkeypatch.setattr(sweep_workers.multiprocessing, "get_context", lambda _: context)
    jobs = [
        replace(JOB, device=device, case=replace(CASE, frames=frames))
        for device, frames in (("a", 1), ("a", 2), ("a", 13), ("a", 3), ("b", 1), ("b", 2))
    ]
    found = dict(sweep_workers.on_this_machine(jobs))
    assert len(found) == 6
    assert found[jobs[2]] == {"error": "its process ended, exit code -9"}
    pids = [found[job].get("pid") for job in jobs]
    assert pids[0] == pids[1] and pids[4] == pids[5]
    assert len({pids[0], pids[3], pids[4]}) == 3


def test_without_dask_a_scheduler_is_refused(
    run: Any, one_line: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = run("sweep", write('scenes = ["hall"]'), "--scheduler", "tcp://127.0.0.1:1")
    assert "pip install 'treeline[cluster]'" in one_line(result, 2)


def test_a_scheduler_that_does_not_answer_is_one_line(run: Any, one_line: Any, write: Any) -> None:
    pytest.importorskip("distributed", reason="the extra 'cluster' (Dask) is not installed")
    for address in ("tcp://127.0.0.1:9", "tcp://127.0.0.1:nine", "127.0.0.1:9"):
        result = run("sweep", write('scenes = ["hall"]'), "--scheduler", address)
        assert f"no Dask scheduler answers at {address}" in one_line(result, 2)


def test_two_workers_of_a_cluster(run: Any, write: Any, box: Path, tmp_path: Path) -> None:
    """Measure all cases, those that fail among them."""
    distributed = pytest.importorskip(
        "distributed", reason="the extra 'cluster' (Dask) is not installed"
    )
    text = f'scenes = ["{box.name}", "no.obj"]\nsize = "8x6"\nframes = 1\nwarmup = 0\n'
    path = write(text + '[options]\ngbuffer = "rays"\nseed = [1, 2]')
    out = tmp_path / "out"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        command = ("sweep", path, "--out", out, "--scheduler", cluster.scheduler_address)
        cluster.wait_for_workers(2)
        with distributed.Client(cluster) as client:
            client.run(_same_commit)
        for states in (["measured"] * 2, ["kept"] * 2):
            result = run(*command, "--json", tmp_path / "rows.json")
            assert result.exit_code == 1 and "no.obj: no such file" in result.stderr
            rows = json.loads((tmp_path / "rows.json").read_text())["cases"]
            assert [row["state"] for row in rows] == [*states, "failed", "failed"]
    assert len(list(out.iterdir())) == 4


def _same_commit() -> None:
    """In a worker: as `clean` in this process."""
    from treeline import sweep_case

    mock.patch.object(sweep_case, "commit", return_value="c0ffee").start()
