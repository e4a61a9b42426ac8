"""A sweep: scenes x options x adapters as cases, and one record a case, by which it is resumed.

The file is TOML:

| key | meaning |
| --- | --- |
| `scenes` | list: `hall`, the embedded one, or paths from this file's folder |
| `adapters` | list: parts of adapters' names; without it that of `--adapter` |
| `size` | `WIDTHxHEIGHT`; 320x180 |
| `frames`, `warmup` | timed frames of a case, and frames before them; 5 and 1 |
| `clip`, `time` | the pose, as `treeline report` takes it |
| `profile` | a profile of `treeline doctor`, `auto`, or a list of them: a case each |
| `[options]` | NAME = value or list of values: every combination is a case |
| `[[options]]` | several such tables: the cases of all of them |

Options have the names of `passes.option_list`: builder, nodes, leaf, any_hit_mode, ray_sort, ...

A record is a file SCENE-KEY.json: a report (so that `treeline compare` reads two of them) with
`sweep`, what was asked for; of a case that failed `sweep` and `error`, its one line. KEY is a hash
of the scene's files, the options, the commit and the adapter with its driver: whatever of these
changes makes another record. A record without an error is kept and not measured again, unless the
checkout is modified, whose commit says nothing of what ran.
"""

import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.gpu.errors import UserError
from engine.scene.table import Table
from passes.option import Option, ViewSettings
from passes.option_list import find_option
from treeline.cli.options import parse_size
from treeline.cli.profile import check_profile
from treeline.json_text import json_text
from treeline.outputs import whole_file
from treeline.scenes import EMBEDDED
from treeline.version import commit

MOST_CASES = 10_000
HALL = "hall"
_KEYS = (
    "scenes",
    "adapters",
    "size",
    "frames",
    "warmup",
    "clip",
    "time",
    "profile",
    "options",
)


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be measured. `scene` as the file names it, `adapter` as `open_device` takes it;
    `options` are (name, value)."""

    scene: str
    adapter: str | None
    options: tuple[tuple[str, Any], ...]
    size: tuple[int, int]
    frames: int
    warmup: int
    clip: str | None
    time: float | None
    profile: str | None = None

    def settings(self) -> ViewSettings:
        """The defaults with the options. UserError for a value that is not allowed."""
        settings = ViewSettings()
        for name, value in self.options:
            settings = find_option(name).set(settings, value)
        return settings

    def text(self) -> str:
        """Profile and options as a person reads them."""
        parts = [] if self.profile is None else [f"profile={self.profile}"]
        parts += [f"{name}={value}" for name, value in self.options]
        return " ".join(parts) or "defaults"


@dataclass(frozen=True, slots=True)
class Job:
    """A case and all that a process needs to measure it. `device` is the adapter with its driver,
    `sha256` the scene's; what is found to be another is not measured."""

    case: Case
    path: str | None  # of the scene's file, None: the embedded one
    sha256: str
    device: str
    commit: str
    assets: tuple[str, ...] = ()
    allow_outside: bool = False
    cached: bool = True

    def facts(self) -> dict[str, Any]:
        """What was asked for, as a record holds it, in JSON's types."""
        asked = asdict(self.case) | {"options": dict(self.case.options)}
        asked |= {"scene_sha256": self.sha256, "device": self.device, "commit": self.commit}
        return asked | {"key": self.key}

    @property
    def key(self) -> str:
        """16 hexadecimal digits."""
        case = asdict(self.case)
        # What they are called is not what they are.
        asked = {name: case[name] for name in case if name not in ("scene", "adapter")}
        asked |= {"sha256": self.sha256, "device": self.device, "commit": self.commit}
        asked["options"] = sorted(self.case.options)
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def file_name(self) -> str:
        stem = re.sub(r"[^\w.-]+", "_", Path(self.case.scene).stem)
        return f"{stem}-{self.key}.json"


def read_sweep(path: Path, adapter: str | None) -> list[Case]:
    """The cases of a file, those of one adapter and one scene together; `adapter` where it names
    none. UserError for the first mistake."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no TOML: {error}") from error
    table = Table(path, "", values, _KEYS)
    scenes = _texts(table, "scenes")
    adapters = _texts(table, "adapters") if "adapters" in table else [adapter]
    size_text = table.text("size", "320x180")
    try:
        size = parse_size(size_text)
    except UserError as error:
        raise UserError(f"{path}: size: {error}") from error
    frames = table.integer("frames", 1, 10_000, 5)
    warmup = table.integer("warmup", 0, 10_000, 1)
    clip = table.text("clip") if "clip" in table else None
    time = table.number("time") if "time" in table else None
    profiles = _profiles(table)
    choices = list(_option_sets(table))
    count = len(adapters) * len(scenes) * len(profiles) * len(choices)
    if count > MOST_CASES:
        raise UserError(f"{path}: {count:,} cases, at most {MOST_CASES:,} are swept")
    return [
        Case(scene, name, options, size, frames, warmup, clip, time, profile)
        for name, scene, profile, options in itertools.product(adapters, scenes, profiles, choices)
    ]


def _profiles(table: Table) -> list[str] | list[None]:
    """Those that are named, or none. What a profile sets is known where its adapter is."""
    if "profile" not in table:
        return [None]
    value = table.values["profile"]
    names = [value] if isinstance(value, str) else _texts(table, "profile")
    for name in names:
        try:
            check_profile(name)
        except UserError as error:
            raise UserError(f"{table.path}: profile: {error}") from error
    return names


def _texts(table: Table, key: str) -> list[str]:
    values = table.values.get(key)
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise table.error(key, "is no list of texts")
    if twice := [v for i, v in enumerate(values) if v in values[:i]]:
        raise table.error(key, f"has '{twice[0]}' a second time")
    return values


def _option_sets(table: Table) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Every combination, once."""
    tables = table.values.get("options", {})
    seen = set()
    for number, values in enumerate(tables if isinstance(tables, list) else [tables]):
        where = f"options[{number}]" if isinstance(tables, list) else "options"
        if not isinstance(values, dict):
            raise table.error(where, "is no table")
        lists = [_values(table, where, name, value) for name, value in values.items()]
        if math.prod(map(len, lists)) > MOST_CASES:
            raise table.error(where, f"has more than {MOST_CASES:,} combinations")
        for combination in itertools.product(*lists):
            found = tuple(zip(values, combination, strict=True))
            if repr(found) not in seen:
                seen.add(repr(found))
                yield found


def _values(table: Table, where: str, name: str, value: Any) -> list[Any]:
    """An option's values, each of which is allowed."""
    try:
        option = find_option(name)
        values = value if isinstance(value, list) else [value]
        if not values:
            raise UserError("has no value")
        for item in values:
            if not _fits(option, item):
                raise UserError(f"is no {option.kind}: {item!r}")
            option.set(ViewSettings(), item)
    except UserError as error:
        raise UserError(f"{table.path}: {where}.{name}: {error}") from error
    return values


def _fits(option: Option, value: Any) -> bool:
    if option.kind == "flag" or isinstance(value, bool):
        return option.kind == "flag" and isinstance(value, bool)
    if option.kind == "choice":
        return isinstance(value, str | int)
    whole = option.kind == "bits" or option.step == 1
    return isinstance(value, int if whole else int | float)


def scene_file(sweep: Path, scene: str) -> Path:
    """The file of a scene that a sweep's file names."""
    return EMBEDDED if scene == HALL else sweep.parent / scene


def good_record(path: Path, key: str) -> dict[str, Any] | None:
    """The record of a case that was measured; None where there is none, or none that can be
    used."""
    if commit().endswith("-modified"):
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        good = record["sweep"]["key"] == key and "error" not in record
        return record if good and frame_ms(record) is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(folder: Path, job: Job, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a case from a worker's answer, a report or `error`; written whole."""
    record = {**answer, "sweep": job.facts()}
    with whole_file(folder / job.file_name) as path:
        path.write_text(json_text(record), encoding="utf-8")
    return record


def frame_ms(record: Mapping[str, Any]) -> float | None:
    """The median frame of a record; None where the case failed."""
    rows = [row for row in record.get("benchmarks", ()) if row["name"] == "frame/total"]
    return rows[0]["real_time"] if rows else None
