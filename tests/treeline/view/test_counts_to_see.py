"""Counts are seen at once at rest, and only that there are some while the view moves."""

from types import SimpleNamespace
from typing import Any

from engine.view.same import same
from treeline.view.counts_to_see import counts_to_see


def test_newer_counts_are_another_thing_to_see_at_rest_alone() -> None:
    def seen(counted: Any, *, moving: bool) -> tuple[Any]:
        session: Any = SimpleNamespace(counted=counted, moving=moving)
        return (counts_to_see(session),)

    one, other = object(), object()
    assert seen(one, moving=False) == (one,)
    assert not same(seen(one, moving=False), seen(other, moving=False))
    assert same(seen(one, moving=True), seen(other, moving=True))
    for moving in (False, True):
        assert not same(seen(None, moving=moving), seen(one, moving=moving))
