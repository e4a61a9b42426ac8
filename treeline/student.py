"""Student's t for whole degrees of freedom: how much of it lies within a distance of 0, and the
distance that holds a given part (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""

import math


def within(t: float, free: int) -> float:
    """The part between -t and t."""
    angle = math.atan(t / math.sqrt(free))
    square = math.cos(angle) ** 2
    term, total = (1.0, 0.0) if free % 2 == 0 else (math.cos(angle), 0.0)
    for step in range(1 + free % 2, free, 2):
        total += term
        term *= square * step / (step + 1)
    if free % 2 == 0:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)


def quantile(free: int, coverage: float = 0.95) -> float:
    """The t with `coverage` between -t and t."""
    low, high = 0.0, 1.0
    while within(high, free) < coverage:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, free) < coverage else (low, middle)
    return high
