"""What a search did and found, as evidence in JSON's types and as sentences."""

from collections.abc import Mapping
from typing import Any

from treeline.tune.cases import Case, build_text, kernels_text
from treeline.tune.search import Search, Tried

EQUAL = 0.01  # times this close to the default's are called equal among what was tried


def evidence(search: Search, journal: Mapping[str, int]) -> dict[str, Any]:
    """What was tried, what was equal, what won; `journal` counts blocks."""
    return {
        "seconds": search.spent_s,
        "budget_seconds": search.budget_s,
        "blocks": dict(journal),
        "builds_not_tried": search.not_tried,
        "left_out": "two-wide traversal of the same bytes: not proven to hit the same",
        "tried": [item.facts() for item in search.tried],
        "decisions": [
            {"question": d.question, "taken": d.taken, **d.gain.facts()} for d in search.decisions
        ],
    }


def sentences(search: Search, case: Case, confirmed: Mapping[str, Any] | None) -> list[str]:
    """In the order of the search; the choice last."""
    found = []
    for phase in dict.fromkeys(item.phase for item in search.tried):
        for ray in dict.fromkeys(t.ray for t in search.tried if t.phase == phase):
            found.append(_of_phase(phase, ray, [t for t in search.tried if t.phase == phase]))
    if search.not_tried:
        found.append(
            f"{search.not_tried} builds were not tried: time was out, or the effects of their "
            "single changes add up to something slower"
        )
    found.append("left out: two-wide traversal of the same bytes, not proven to hit the same")
    for d in search.decisions:
        g = d.gain
        result = "taken" if d.taken else "not taken: within noise" if not g.certain else "not taken"
        found.append(
            f"{d.question}: {g.ratio:.3f} times as fast ({g.low:.3f} .. {g.high:.3f}, {g.pairs} "
            f"pairs), {result}"
        )
    found.append(choice_text(search, case, confirmed))
    return found


def choice_text(search: Search, case: Case, confirmed: Mapping[str, Any] | None) -> str:
    if confirmed is None:
        return "the default is kept: nothing was certainly faster"
    total = confirmed["total"]
    gain = f"{total['gain']:.3f} ({total['interval'][0]:.3f} .. {total['interval'][1]:.3f})"
    if total["result"] != "faster":
        noise = ", within noise" if total["result"] == "equal" else ""
        return f"the default is kept: a process of its own found {gain} times its speed{noise}"
    what = f"build {build_text(case.build, search.base)}; kernels {kernels_text(case.kernels)}"
    return f"chosen: {what}: {gain} times as fast in a process of its own"


def _of_phase(phase: str, ray: str, tried: list[Tried]) -> str:
    of = [item for item in tried if item.ray == ray]
    last = {item.what: item for item in of}  # the longest race of each
    there = [item for item in last.values() if not item.refused]
    text = f"{phase}, {ray}: {len(last)} tried"
    refused = [item for item in last.values() if item.refused]
    if refused:
        text += f", {len(refused)} refused ({refused[0].what}: {refused[0].refused})"
    if there:
        best = min(there, key=lambda item: item.ratio)
        equal = sum(abs(item.ratio - 1) <= EQUAL for item in there)
        text += f", {equal} equal to the default, best {best.what} at {best.ratio:.3f} of its time"
    return text
