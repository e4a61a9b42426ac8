"""`treeline replay`: a capture on this adapter, word for word, or one of its rays step by step."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.console import emit_json, note, steps
from treeline.cli.options import Common, with_common

SHOWN = 20  # differences printed; the JSON has all of them


@with_common
def replay(
    common: Common,
    file: Annotated[Path, typer.Argument(help="A capture.")],
    ray: Annotated[int | None, typer.Option(min=0, help="Log this ray of a queue.")] = None,
    queue: Annotated[
        str | None, typer.Option(help="The queue of --ray. Default: the capture's first.")
    ] = None,
    events: Annotated[int, typer.Option(min=1, help="Steps that the log has room for.")] = 4096,
) -> None:
    """Trace a capture again and compare; exit code 1 where a word differs.

    With --ray: that ray's steps from the GPU, and where the oracle's differ. Scene options are not
    used: everything comes from the file.
    """
    from treeline.capture import find_queues, load
    from treeline.replay import replay_queue, replay_ray

    taken = load(file)
    with steps(common.quiet) as progress:
        device = common.open_device()
        for key, here in (("adapter", device.info.adapter), ("driver", device.info.driver)):
            if taken.identity.get(key) != here:
                note(f"captured with {key} {taken.identity.get(key)}", quiet=common.quiet)
        if ray is None:
            progress.begin(f"tracing on {device.info.adapter}")
            done = [replay_queue(device, taken, q) for q in taken.queues]
    if ray is not None:
        wanted = find_queues([queue or taken.queues[0].ray.name])[0]
        chosen = [q for q in taken.queues if q.ray is wanted]
        if not chosen:
            raise UserError(f"{file} holds no {wanted.name} queue")
        _show_ray(common, replay_ray(device, taken, chosen[0], ray, events))
        return
    rows = [
        {
            "queue": d.name,
            "rays": d.rays,
            "words": d.words,
            "different": d.different.tolist(),
            "failures": list(d.failures),
        }
        for d in done
    ]
    identity = {"adapter": device.info.adapter, "driver": device.info.driver}
    emit_json({"captured": taken.identity, "here": identity, "queues": rows}, common.json)
    if not common.to_stdout:
        for d in done:
            print(f"{d.name}: {d.rays:,} rays, {d.words:,} words, {len(d.different):,} rays differ")
    for d in done:
        if d.failures:
            raise CheckFailed(f"{d.name}: {'; '.join(d.failures)}")
        if d.first is not None:
            then, now = (" ".join(f"{word:08x}" for word in words) for words in d.first)
            raise CheckFailed(f"{d.name} ray {d.different[0]}: captured {then}, here {now}")


def _show_ray(common: Common, result: Any) -> None:
    ray = result.log.ray
    data = {
        "queue": result.queue,
        "ray": result.ray_index,
        "origin": ray["origin"].tolist(),
        "direction": ray["direction"].tolist(),
        "t_max": float(ray["t_max"]),
        "dropped": result.log.dropped,
        "steps": [line for step in result.log.steps for line in step.lines()],
        "oracle_steps": len(result.oracle),
        "differences": [asdict(d) for d in result.differences],
        "same": result.same,
    }
    emit_json(data, common.json)
    if not common.to_stdout:
        origin, direction = (" ".join(f"{x:.9g}" for x in ray[k]) for k in ("origin", "direction"))
        print(f"{result.queue} ray {result.ray_index}: from {origin} along {direction}")
        if result.log.start_byte:
            print(f"starts in the only instance, byte {result.log.start_byte}")
        for number, step in enumerate(result.log.steps):
            first, *rest = step.lines()
            print(f"{number:4} {first}")
            for line in rest:
                print(f"     {line}")
            if step.words:
                print("       words " + " ".join(f"{word:08x}" for word in step.words))
        if result.log.dropped:
            print(f"{result.log.dropped} steps did not fit the log")
        print(f"{len(result.log.steps)} steps, the oracle's {len(result.oracle)}")
        for difference in result.differences[:SHOWN]:
            mark = "differs" if difference.serious else "note"
            print(f"{mark}: {difference.message}")
    if not result.same:
        told = [d.message for d in result.differences if d.serious]
        reason = told[0] if told else f"{result.log.dropped} steps were dropped; see --events"
        raise CheckFailed(f"{result.queue} ray {result.ray_index}: {reason}")
