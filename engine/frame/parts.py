"""How large the parts of a pass are, and what a render pass's attachments do between them.

A part should take the time that is left of a step. What a unit costs is known from the parts before
it, of this frame or an earlier one; it changes across the picture, so that a part grows to at most
twice the one before.
"""

from typing import Any

FIRST_PART = 1 / 64  # of a pass whose units were never timed


class PartSizes:
    """What each pass's units cost so far, in milliseconds."""

    def __init__(self) -> None:
        self._unit_ms: dict[str, float] = {}

    def unit_ms(self, name: str) -> float:
        """What one unit of the pass is expected to take; 0 before any was timed."""
        return self._unit_ms.get(name, 0.0)

    def choose(self, name: str, total: int, before: int, room_ms: float) -> int:
        """How many of a pass's `total` units fit into `room_ms`, at least one; `before` is the
        size of the part before it in this frame, 0 for the first."""
        known = self._unit_ms.get(name)
        if room_ms <= 0:
            return 1
        if known is None:
            return max(1, int(total * FIRST_PART))
        fits = int(min(room_ms / max(known, 1e-9), total))
        return max(1, min(fits, 2 * before if before else fits))

    def measured(self, name: str, units: int, took_ms: float) -> None:
        """Rises at once, falls by halves: a part that is too long is worse than two short ones."""
        unit_ms = took_ms / units
        known = self._unit_ms.get(name, unit_ms)
        self._unit_ms[name] = max(unit_ms, 0.5 * (known + unit_ms))


def part_attachments(attachments: dict[str, Any], first: bool, last: bool) -> dict[str, Any]:
    """What `begin_render_pass` takes for one part: only the first part clears, and only the last
    may drop what it drew."""
    changed = dict(attachments)
    changed["color_attachments"] = [
        _keep(target, "", first, last) for target in attachments["color_attachments"]
    ]
    if "depth_stencil_attachment" in attachments:
        depth = attachments["depth_stencil_attachment"]
        changed["depth_stencil_attachment"] = _keep(depth, "depth_", first, last)
    return changed


def _keep(target: dict[str, Any], prefix: str, first: bool, last: bool) -> dict[str, Any]:
    changes = {} if first else {f"{prefix}load_op": "load"}
    if not last:
        changes[f"{prefix}store_op"] = "store"
    return {**target, **changes}
