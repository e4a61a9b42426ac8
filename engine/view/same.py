"""Whether what was drawn from would be drawn from again, without looking into large things."""

from operator import is_
from typing import Any

_PLAIN = (str, int, float, tuple, frozenset)


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether both hold the same things: plain values compare, others have to be identical."""
    if len(one) != len(other):
        return False
    if all(map(is_, one, other)):  # nearly always
        return True
    for a, b in zip(one, other, strict=True):
        if a is not b and not (isinstance(a, _PLAIN) and isinstance(b, _PLAIN) and a == b):
            return False
    return True
