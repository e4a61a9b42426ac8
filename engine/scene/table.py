"""Typed reading of TOML tables: every mistake becomes one line with the file, the key, the limit.

    table = Table("a.toml", "lights[0]", values, known=("center", "size"))
    table.vector("center", 3)
    # UserError: a.toml: lights[0].center is 'up', not 3 finite numbers

Keys that nobody knows are refused when the table is opened. Of numbers, `true` is none.
"""

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.gpu.errors import UserError

Limits = tuple[float, float]
ANY: Limits = (-math.inf, math.inf)


class Table:
    """The values of one table. `where` is its place in the file, empty for the file's own."""

    def __init__(self, path: object, where: str, values: Any, known: Iterable[str]) -> None:
        self.path = path
        self.where = where
        if not isinstance(values, dict):
            raise UserError(f"{path}: {where} is {_shown(values)}, not a table")
        self.values: Mapping[str, Any] = values
        names = list(known)
        for key in values:
            if key not in names:
                raise self.error(key, f"is no key here{nearest(key, names)}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def error(self, key: str, problem: str) -> UserError:
        """The error to raise about a key."""
        return UserError(f"{self.path}: {self.label(key)} {problem}")

    def label(self, key: str) -> str:
        """A key's place in the file, such as `lights[0].center`."""
        return f"{self.where}.{key}" if self.where else key

    def _wrong(self, key: str, what: str) -> UserError:
        if key not in self.values:
            return self.error(key, f"is missing: {what}")
        return self.error(key, f"is {_shown(self.values[key])}, not {what}")

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; without a default the key has to be there."""
        if key not in self.values and default is not None:
            return default
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise self._wrong(key, "a text")
        return value

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of some texts."""
        value = self.text(key, default)
        if value not in choices:
            raise self._wrong(key, f"one of {', '.join(choices)}{nearest(value, choices)}")
        return value

    def choices(self, key: str, choices: Sequence[str]) -> list[str]:
        """A list of some of these texts."""
        values = self.values.get(key)
        if not isinstance(values, list) or not all(v in choices for v in values):
            raise self._wrong(key, f"a list of some of {', '.join(choices)}")
        return list(values)

    def boolean(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number within limits."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(key, f"a whole number from {low:,} to {high:,}")
        return value

    def number(
        self, key: str, default: float | None = None, limits: Limits = ANY, *, above: bool = False
    ) -> float:
        """A finite number within limits, the lower one left out where it has to be `above` it."""
        value = self.values.get(key, default)
        fits = _is_number(value) and limits[0] <= value <= limits[1]
        if not fits or (above and value == limits[0]):
            raise self._wrong(key, f"a finite number{_limits_text(limits, above)}")
        return float(value)

    def vector(
        self,
        key: str,
        count: int,
        default: tuple[float, ...] | None = None,
        limits: Limits = ANY,
    ) -> tuple[float, ...]:
        """`count` finite numbers within limits."""
        values = self.values.get(key, default)
        fits = isinstance(values, list | tuple) and len(values) == count
        if not fits or not all(_is_number(v) and limits[0] <= v <= limits[1] for v in values):
            raise self._wrong(key, f"{count} finite numbers{_limits_text(limits)}")
        return tuple(float(v) for v in values)

    def table(self, key: str, known: Iterable[str]) -> "Table":
        """The table of a key."""
        if key not in self.values:
            raise self._wrong(key, "a table")
        return Table(self.path, self.label(key), self.values[key], known)

    def tables(self, key: str, known: Iterable[str]) -> list["Table"]:
        """The tables of a list; none where the key is not there."""
        values, names = self.values.get(key, []), list(known)
        if not isinstance(values, list):
            raise self._wrong(key, "a list of tables")
        return [
            Table(self.path, f"{self.label(key)}[{i}]", value, names)
            for i, value in enumerate(values)
        ]

    def at_most_one(self, *keys: str) -> str | None:
        """Which of these keys is there."""
        found = [key for key in keys if key in self.values]
        if len(found) > 1:
            raise self.error(found[1], f"stands beside {found[0]}; one of them says it all")
        return found[0] if found else None


def nearest(word: str, known: Iterable[str]) -> str:
    """What to add to an error about an unknown word: the nearest known one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there are {', '.join(names[:12])}" if names else ""


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _limits_text(limits: Limits, above: bool = False) -> str:
    low, high = limits
    if math.isinf(high):
        return "" if math.isinf(low) else f" {'above' if above else 'from'} {low:g}"
    return f" {'above' if above else 'from'} {low:g} {'up to' if above else 'to'} {high:g}"


def _shown(value: Any) -> str:
    text = repr(value)
    if isinstance(value, bool):
        text = text.lower()
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
