"""`treeline sweep`: scenes x options, one record a case, resumed where it was left."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.console import emit_json, print_table, steps
from treeline.cli.options import Common, with_common

if TYPE_CHECKING:
    from treeline.sweep import Case, Job


@with_common
def sweep(
    common: Common,
    file: Annotated[Path, typer.Argument(metavar="F.toml", help="What is swept.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the records.")] = Path(
        "sweep"
    ),
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A Dask scheduler, such as tcp://host:8786, whose workers measure (extra "
            "cluster). Default: a process an adapter on this machine.",
        ),
    ] = None,
) -> None:
    """Measure every combination of scenes and options; exit code 1 names a case that failed.

    F.toml: scenes (a list: hall, or paths from its folder), adapters (a list of parts of names; by
    default that of --adapter), size ("WxH", 320x180), frames (5), warmup (1), clip, time, and
    options: a table of NAME = value or list of values, every combination of which is a case, or a
    list of such tables, for the cases of each. Options are those of the viewer's controls: builder,
    nodes, leaf, reinsertion, group, gbuffer, any_hit_mode, passes, ray_sort, hit_table, ...

    DIR gets a file SCENE-KEY.json a case: a report, or the one line of why there is none. KEY is
    made of the scene's files, the options, the commit and the adapter: a case that has a good
    record is not measured again. The scene and builder options of this command are not used.
    """
    from treeline.outputs import check_writable
    from treeline.sweep import good_record, read_sweep, write_record
    from treeline.sweep_case import adapter_name
    from treeline.sweep_workers import Cluster, on_this_machine

    cases = read_sweep(file, common.adapter)
    check_writable(out / "record.json")
    cluster = None if scheduler is None else Cluster(scheduler)
    try:
        with steps(common.quiet) as progress:
            progress.begin("reading the scenes", len(cases))
            rows: dict[Case, dict[str, Any]] = {}
            jobs: list[Job] = []
            make = _JobMaker(common, file, cluster.adapter_name if cluster else adapter_name)
            for case in cases:
                job, problem = make.job(case)
                if problem:
                    rows[case] = _row(job, "failed", write_record(out, job, {"error": problem}))
                elif record := good_record(out / job.file_name, job.key):
                    rows[case] = _row(job, "kept", record)
                else:
                    jobs.append(job)
                progress.advance(case.text())
            progress.begin(f"measuring {len(jobs)} of {len(cases)} cases", len(jobs))
            for job, answer in cluster.run(jobs) if cluster else on_this_machine(jobs):
                record = write_record(out, job, answer)
                state = "failed" if "error" in record else "measured"
                rows[job.case] = _row(job, state, record)
                progress.advance(f"{job.case.scene} {job.case.text()}")
    finally:
        if cluster is not None:
            cluster.close()
    found = [rows[case] for case in cases]
    emit_json({"cases": found}, common.json)
    if not common.to_stdout:
        _print(found, out)
    failed = [row for row in found if row["state"] == "failed"]
    if failed:
        first = failed[0]
        raise CheckFailed(
            f"{len(failed)} of {len(found)} cases failed, the first: {first['scene']} "
            f"{first['text']}: {first['error']}"
        )


class _JobMaker:
    """Jobs of cases; each scene is read once for its hash, each adapter opened once for its
    name."""

    def __init__(self, common: Common, file: Path, name_of: Any) -> None:
        self._common, self._file, self._name_of = common, file, name_of
        self._hashes: dict[str, tuple[str, str]] = {}  # scene -> its hash, or why there is none
        self._names: dict[str | None, str] = {}

    def job(self, case: "Case") -> "tuple[Job, str]":
        """And the one line of why the scene cannot be read, if it cannot. AdapterError for an
        adapter that is not there."""
        from treeline.sweep import Job, scene_file
        from treeline.version import commit

        common = self._common
        path = scene_file(self._file, case.scene).resolve()
        if case.scene not in self._hashes:
            try:
                self._hashes[case.scene] = common.load_file(path).sha256, ""
            except UserError as error:
                self._hashes[case.scene] = "", str(error)
            except OSError as error:
                self._hashes[case.scene] = "", f"{path}: {error.strerror or error}"
        if case.adapter not in self._names:
            self._names[case.adapter] = self._name_of(case.adapter)
        sha256, problem = self._hashes[case.scene]
        job = Job(
            case=case,
            path=str(path),
            sha256=sha256,
            device=self._names[case.adapter],
            commit=commit(),
            assets=tuple(_whole_path(text) for text in common.assets or ()),
            allow_outside=common.allow_outside,
            cached=common.cache is not False,
        )
        return job, problem


def _whole_path(text: str) -> str:
    """`FOLDER` or `NAME=FOLDER` of --assets, for a process that runs elsewhere."""
    name, equals, folder = text.rpartition("=")
    return f"{name}{equals}{Path(folder).resolve()}"


def _row(job: "Job", state: str, record: dict[str, Any]) -> dict[str, Any]:
    from treeline.sweep import frame_ms

    return {
        "scene": job.case.scene,
        "adapter": job.device,
        "options": dict(job.case.options),
        "text": job.case.text(),
        "state": state,
        "frame_ms": frame_ms(record),
        "error": record.get("error"),
        "file": job.file_name,
    }


def _print(rows: list[dict[str, Any]], out: Path) -> None:
    from treeline.report_table import make_table, number

    several = len({row["adapter"] for row in rows}) > 1
    cells = [
        (
            row["scene"],
            *((row["adapter"],) if several else ()),
            row["text"],
            row["state"],
            number(row["frame_ms"], 3),
            row["error"] or row["file"],
        )
        for row in rows
    ]
    adapter = ("adapter",) if several else ()
    columns = ("scene", *adapter, "options", "state", "frame, ms", "record, or why there is none")
    print_table(make_table(f"{len(rows)} cases, records in {out}", columns, cells))
