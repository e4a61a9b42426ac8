"""What a search did and found, as evidence in JSON's types and as sentences."""

from collections.abc import Mapping
from typing import Any

from treeline.tune.agreement import Agreement, agreement_text
from treeline.tune.cases import Case, recipe_count
from treeline.tune.search import EQUAL, Search, Tried

LEFT_OUT = "two-wide traversal of the same bytes: not proven to hit the same"


def evidence(search: Search, journal: Mapping[str, int]) -> dict[str, Any]:
    """What was tried, what was equal, what won; `journal` counts blocks."""
    return {
        "seconds": search.spent_s,
        "budget_seconds": search.budget_s,
        "blocks": dict(journal),
        "structures_not_tried": search.not_tried,
        "same_groups": dict(search.same_groups),
        "left_out": LEFT_OUT,
        "tried": [item.facts() for item in search.tried],
        "decisions": [
            {"question": d.question, "taken": d.taken, **d.gain.facts()} for d in search.decisions
        ],
    }


def sentences(search: Search, case: Case, confirmed: Mapping[str, Any] | None) -> list[str]:
    """In the order of the search; the choice last."""
    found = [
        f"group {group}: merges the same as {same} in this scene, not tried"
        for group, same in search.same_groups.items()
    ]
    for phase in dict.fromkeys(item.phase for item in search.tried):
        for ray in dict.fromkeys(t.ray for t in search.tried if t.phase == phase):
            found += _of_phase(phase, ray, [t for t in search.tried if t.phase == phase])
    count = recipe_count()
    found.append(
        f"{count - search.not_tried} of {count} structures were tried, a choice at a time changed "
        "from the best so far"
    )
    found.append(f"left out: {LEFT_OUT}")
    for d in search.decisions:
        g = d.gain
        result = "taken" if d.taken else "not taken: within noise" if not g.certain else "not taken"
        found.append(
            f"{d.question}: {g.ratio:.3f} times as fast ({g.low:.3f} .. {g.high:.3f}, {g.pairs} "
            f"pairs), {result}"
        )
    found.append(choice_text(search, case, confirmed))
    if confirmed is not None and confirmed["total"]["result"] == "faster":
        found += gain_texts(confirmed)
    return found


def choice_text(search: Search, case: Case, confirmed: Mapping[str, Any] | None) -> str:
    if confirmed is None:
        return "the default is kept: nothing was certainly faster"
    total = confirmed["total"]
    gain = _gain(total)
    if total["result"] != "faster":
        noise = ", within noise" if total["result"] == "equal" else ""
        return f"the default is kept: a process of its own found {gain} times its speed{noise}"
    return f"chosen: {case.text(search.base)}: {gain} times as fast in a process of its own"


def gain_texts(confirmed: Mapping[str, Any]) -> list[str]:
    """Of what was chosen, as its own process found it: each ray type, its hits, and its price."""
    found = [
        f"{ray}: {of['tuned_ms']:.3g} ms instead of {of['default_ms']:.3g}, {_gain(of)} times as "
        "fast"
        for ray, of in confirmed["rays"].items()
    ]
    hits = {name: Agreement(**facts) for name, facts in confirmed["hits"].items()}
    found.append(f"hits: {agreement_text(hits)}")
    tuned, default = confirmed["costs"]["tuned"], confirmed["costs"]["default"]
    if tuned != default:
        found.append(f"its price: {cost_text(tuned, default)}")
    return found


def confirmed_texts(confirmed: Mapping[str, Any]) -> list[str]:
    """Of a profile that was measured by itself (treeline.tune.confirm.confirmation)."""
    if "refused" in confirmed:
        return [f"refused: {confirmed['refused']}"]
    total = confirmed["total"]
    return [f"all rays: {_gain(total)} times as fast: {total['result']}", *gain_texts(confirmed)]


def _gain(facts: Mapping[str, Any]) -> str:
    low, high = facts["interval"]
    return f"{facts['gain']:.3f} ({low:.3f} .. {high:.3f})"


def cost_text(costs: Mapping[str, float], default: Mapping[str, float]) -> str:
    """A structure's treeline.tune.blocks.COSTS beside the default's."""
    return (
        f"structure {_megabytes(costs, default, 'bvh_bytes')}, vertices and indices "
        f"{_megabytes(costs, default, 'geometry_bytes')}, built in {costs['build_ms'] / 1e3:.2f} s "
        f"instead of {default['build_ms'] / 1e3:.2f}"
    )


def _megabytes(costs: Mapping[str, float], default: Mapping[str, float], name: str) -> str:
    return f"{costs[name] / 1e6:.1f} MB instead of {default[name] / 1e6:.1f}"


def _of_phase(phase: str, ray: str, tried: list[Tried]) -> list[str]:
    of = [item for item in tried if item.ray == ray]
    last = {item.what: item for item in of}  # the longest race of each
    there = [item for item in last.values() if not item.refused]
    text = f"{phase}, {ray}: {len(last)} tried"
    if there:
        best = min(there, key=lambda item: item.ratio)
        equal = sum(abs(item.ratio - 1) <= EQUAL for item in there)
        text += f", best {best.what} at {best.ratio:.3f} of the default's time, {equal} equal to it"
        if best.hits:
            text += f" ({agreement_text(best.hits)})"
    return [text, *_refusals(f"{phase}, {ray}", list(last.values()))]


def _refusals(where: str, items: list[Tried]) -> list[str]:
    """A line a reason."""
    reasons: dict[str, list[str]] = {}
    for item in items:
        if item.refused:
            reasons.setdefault(item.refused, []).append(item.what)
    return [
        f"{where}: refused {whats[0]}{f' and {len(whats) - 1} more' if whats[1:] else ''}: {reason}"
        for reason, whats in reasons.items()
    ]
