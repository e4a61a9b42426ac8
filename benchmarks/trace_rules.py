"""Reads a trace (`treeline report --trace F.json`) by the rules of Perfetto's JSON importer, as its
documentation and sources have them: what becomes slices, counters and names, and what would be
dropped or counted as an error. Perfetto itself is not run: its trace processor is a binary that no
package holds.

`python -m benchmarks.trace_rules F.json`: exit code 1 where there is an error.

- `ts` and `dur` are microseconds, numbers or texts of numbers, rounded to whole nanoseconds.
- Events are sorted by time, those of one time in the file's order.
- A complete event lies in the open event of its thread that contains it; one that begins inside of
  another and ends after it is dropped ("slice_drop_overlapping_complete_event").
- A counter is a track for each of its args, named by event and arg; values are numbers.
- Thread 0 and process 0 stand for what is idle, and have no events of their own.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

NS = 1000  # in a microsecond


@dataclass(slots=True)
class Imported:
    """`slices` (process, thread, name, begin in ns, length in ns, depth); `counters` by track (pid,
    event, arg) the values with their times; `errors` what Perfetto would count as one."""

    slices: list[tuple[str, str, str, int, int, int]] = field(default_factory=list)
    counters: dict[tuple[int, str, str], list[tuple[int, float]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def read_trace(text: str) -> Imported:
    """ValueError for what is no JSON, or has a key twice, or numbers that are none."""
    data = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    found = Imported()
    if not isinstance(data, dict) or not isinstance(data.get("traceEvents"), list):
        found.errors.append("no list of traceEvents")
        return found
    if data.get("displayTimeUnit", "ms") not in ("ms", "ns"):
        found.errors.append("displayTimeUnit")
    processes: dict[int, str] = {}
    threads: dict[tuple[int, int], str] = {}
    timed: list[tuple[int, int, dict[str, Any]]] = []
    for place, event in enumerate(data["traceEvents"]):
        phase = event.get("ph")
        if not (isinstance(event.get("pid"), int) and isinstance(event.get("tid"), int)):
            found.errors.append(f"event {place} has no pid and tid")
        elif phase == "M":
            name = event.get("args", {}).get("name")
            if not isinstance(name, str):
                found.errors.append(f"event {place} names nothing")
            elif event["name"] == "process_name":
                processes[event["pid"]] = name
            elif event["name"] == "thread_name":
                threads[event["pid"], event["tid"]] = name
        elif phase in ("X", "C"):
            begin = nanoseconds(event.get("ts"))
            if begin is None or begin < 0:
                found.errors.append(f"event {place} has no time")
            else:
                timed.append((begin, place, event))
        else:
            found.errors.append(f"event {place} is of a phase that nobody wrote: {phase}")
    open_until: dict[tuple[int, int], list[int]] = {}
    for begin, place, event in sorted(timed, key=lambda item: item[:2]):
        if event["ph"] == "X":
            _slice(found, event, place, begin, open_until, processes, threads)
        else:
            _counter(found, event, place, begin)
    return found


def _slice(
    found: Imported,
    event: dict[str, Any],
    place: int,
    begin: int,
    open_until: dict[tuple[int, int], list[int]],
    processes: dict[int, str],
    threads: dict[tuple[int, int], str],
) -> None:
    thread = event["pid"], event["tid"]
    length = nanoseconds(event.get("dur"))
    if length is None or length < 0 or not isinstance(event.get("name"), str):
        found.errors.append(f"event {place} has no length or name")
        return
    if 0 in thread or thread not in threads or event["pid"] not in processes:
        found.errors.append(f"event {place} is of a thread without a name")
        return
    stack = open_until.setdefault(thread, [])
    while stack and stack[-1] <= begin:
        stack.pop()
    if stack and begin + length > stack[-1]:
        found.errors.append(f"slice_drop_overlapping_complete_event: {event['name']}")
        return
    stack.append(begin + length)
    where = processes[event["pid"]], threads[thread]
    found.slices.append((*where, event["name"], begin, length, len(stack) - 1))


def _counter(found: Imported, event: dict[str, Any], place: int, at: int) -> None:
    args = event.get("args")
    if not isinstance(args, dict) or not args:
        found.errors.append(f"event {place} counts nothing")
        return
    for name, value in args.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            found.errors.append(f"event {place}: {name} is no number")
            continue
        track = found.counters.setdefault((event["pid"], event["name"], name), [])
        track.append((at, float(value)))


def nanoseconds(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return round(float(value) * NS)
    except ValueError:
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def main(path: Path) -> None:
    found = read_trace(path.read_text(encoding="utf-8"))
    threads = {slice_[:2] for slice_ in found.slices}
    print(f"{len(found.slices)} slices on {len(threads)} threads, {len(found.counters)} counters")
    for error in found.errors:
        print(error)
    if found.errors:
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
