"""An ablation as a table: what a frame or a pass takes, and what it takes with one thing off.

As JSON, times in milliseconds; `base_ms` and one switch are all that is needed:

    {
      "base_ms": 6.8,               with everything on
      "before_ms": 2.1,             what it took before it got slow
      "noise_ms": 0.05,             differences up to this are none
      "without_ms": {"characters": 5.9, "foliage": 3.2},
      "half_resolution_ms": 2.0,    with half the width and height of rays
      "half_resolution_ray_ratio": 0.25,                       the rays that were left, 0 to 1
      "switches": {"any_hit": {"off_ms": 3.0, "on_ms": 6.8, "effect_ms": 3.7,
                               "interval_ms": [3.6, 4.0], "noise_ms": 0.1, "ray_ratio": 0.9}},
      "interactions": [{"switches": ["any_hit", "half_resolution"], "effect_ms": -2.1}],
      "context": {}                 where it was measured: anything
    }

`switches` is what a measurement writes: `on_ms` beside `off_ms` is the median of the runs that were
interleaved with those (default: base_ms), `effect_ms` what they say pair by pair (default: the
medians' difference), `interval_ms` holds it, `noise_ms` is of these runs. `ray_ratio` belongs to
switches that leave a part of the rays. The effect of an interaction is what two switches save
together beyond the sum of what each saves: negative where they overlap.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.gpu.errors import UserError
from treeline.causes import HALF_RESOLUTION, HALF_RESOLUTION_RAY_RATIO, switch_causes

KEYS = (
    *("base_ms", "before_ms", "noise_ms", "without_ms", "half_resolution_ms"),
    *("half_resolution_ray_ratio", "switches", "interactions", "context"),
)
SWITCH_KEYS = ("off_ms", "on_ms", "effect_ms", "interval_ms", "noise_ms", "ray_ratio")
# Fewer rays that take longer by more than this part of the frame are a mistake in a table of single
# times. Interleaved runs with an interval are taken as they are: where a frame has few rays, half
# the resolution may cost more than it saves.
CONTRADICTION_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Switch:
    """One thing turned off. `effect_ms` is what that saves, negative where it costs; `low_ms` and
    `high_ms` hold it, or are None where one run is all that is known. `ray_ratio` of the rays are
    left, None where the switch is not about a part of them."""

    name: str
    cause: str
    off_ms: float
    effect_ms: float
    low_ms: float | None = None
    high_ms: float | None = None
    noise_ms: float = 0.0
    ray_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class AblationTable:
    """`interactions` maps two switches, sorted by name, to what both save beyond the sum."""

    base_ms: float
    switches: tuple[Switch, ...]
    before_ms: float | None = None
    interactions: Mapping[tuple[str, str], float] | None = None

    def interaction(self, first: str, second: str) -> float | None:
        """What two switches save together beyond the sum of both; None where nobody measured."""
        known = self.interactions or {}
        return known.get((min(first, second), max(first, second)))


def read_table(path: Path) -> AblationTable:
    """The table in a JSON file. UserError, one line, for what is missing or cannot be."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON: {error}") from error
    try:
        return parse_table(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def parse_table(data: Any) -> AblationTable:
    """The table in JSON's types. UserError for what is missing, contradictory or no time."""
    table = _object(data, "the table")
    _known(table, KEYS, "key")
    base = _time(table, "base_ms", required=True)
    assert base is not None
    if base == 0:
        raise UserError("base_ms is 0: there is nothing to explain")
    noise = _time(table, "noise_ms") or 0.0
    switches: dict[str, Switch] = {}

    def put(name: str, fields: Mapping[str, Any], where: str) -> None:
        if name in switches:
            raise UserError(f"{where}: {name} is in the table twice")
        switches[name] = _switch(name, fields, where, base, noise)

    for name, off in _object(table.get("without_ms", {}), "without_ms").items():
        put(name, {"off_ms": off}, f"without_ms.{name}")
    for name, fields in _object(table.get("switches", {}), "switches").items():
        where = f"switches.{name}"
        put(name, _known(_object(fields, where), SWITCH_KEYS, f"key of {where}"), where)
    ratio = table.get("half_resolution_ray_ratio")
    if "half_resolution_ms" in table:
        fields = {"off_ms": table["half_resolution_ms"]}
        fields |= {} if ratio is None else {"ray_ratio": ratio}
        put(HALF_RESOLUTION, fields, "half_resolution_ms")
    elif ratio is not None:
        raise UserError("half_resolution_ray_ratio without half_resolution_ms")
    if not switches:
        raise UserError("nothing is switched off: give without_ms, half_resolution_ms or switches")
    return AblationTable(
        base_ms=base,
        switches=tuple(switches.values()),
        before_ms=_time(table, "before_ms"),
        interactions=_interactions(table.get("interactions", []), switches),
    )


def _switch(name: str, fields: Mapping[str, Any], where: str, base: float, noise: float) -> Switch:
    causes = switch_causes()
    if name not in causes:
        raise UserError(f"{where}: no switch is named '{name}'; known: {', '.join(causes)}")
    off = _time(fields, "off_ms", required=True, where=where)
    assert off is not None
    on = _time(fields, "on_ms", where=where)
    on = base if on is None else on
    own_noise = _time(fields, "noise_ms", where=where)
    ratio = fields.get("ray_ratio", HALF_RESOLUTION_RAY_RATIO if name == HALF_RESOLUTION else None)
    if ratio is not None and not 0 <= _number(ratio, f"{where}: the ray ratio") < 1:
        raise UserError(f"{where}: a ray ratio is the part of the rays left, 0 to below 1: {ratio}")
    noise = noise if own_noise is None else own_noise
    low, high = None, None
    if "interval_ms" in fields:
        interval = fields["interval_ms"]
        if not isinstance(interval, list) or len(interval) != 2:
            raise UserError(f"{where}: interval_ms is [low, high], not {interval!r}")
        low, high = (_number(v, f"{where}: interval_ms") for v in interval)
        if low > high:
            raise UserError(f"{where}: interval_ms ends at {high:g} before it begins at {low:g}")
    wrong = high is None and off - on > max(noise, CONTRADICTION_SHARE * on)
    if name == HALF_RESOLUTION and wrong:
        raise UserError(f"{where}: {off:g} ms with fewer rays, but {on:g} ms with all of them")
    effect = on - off
    if "effect_ms" in fields:
        effect = _number(fields["effect_ms"], f"{where}: effect_ms")
    return Switch(name, causes[name], off, effect, low, high, noise, ratio)


def _interactions(data: Any, switches: Mapping[str, Switch]) -> dict[tuple[str, str], float]:
    if not isinstance(data, list):
        raise UserError(f"interactions is a list, not {data!r}")
    found = {}
    for index, item in enumerate(data):
        where = f"interactions[{index}]"
        fields = _known(
            _object(item, where), ("switches", "effect_ms", "interval_ms"), f"key of {where}"
        )
        pair = fields.get("switches")
        if not isinstance(pair, list) or len(pair) != 2 or not all(n in switches for n in pair):
            raise UserError(f"{where}: switches is a pair of the table's switches, not {pair!r}")
        if "effect_ms" not in fields:
            raise UserError(f"{where}: effect_ms is missing")
        effect = _number(fields["effect_ms"], f"{where}: effect_ms")
        found[(min(pair), max(pair))] = effect
    return found


def _object(data: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise UserError(f"{what} is a JSON object, not {type(data).__name__}")
    return data


def _known(fields: Mapping[str, Any], known: tuple[str, ...], what: str) -> Mapping[str, Any]:
    for name in fields:
        if name not in known:
            raise UserError(f"unknown {what} '{name}'; known: {', '.join(known)}")
    return fields


def _time(
    fields: Mapping[str, Any], key: str, *, required: bool = False, where: str = ""
) -> float | None:
    """Milliseconds, 0 or more; None where the key is missing and not required."""
    what = f"{where}: {key}" if where else key
    if fields.get(key) is None:
        if required:
            raise UserError(f"{what} is missing")
        return None
    value = _number(fields[key], what)
    if value < 0:
        raise UserError(f"{what} is {value:g}: a time is not negative")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{what} is a finite number, not {value!r}")
    return float(value)
