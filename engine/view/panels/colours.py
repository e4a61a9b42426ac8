"""Colours of named series, the same in every plot of a run."""

from engine.view.theme import Rgb

# Paul Tol's "light" and "bright" sets: told apart by colour-blind readers, readable on dark grey.
PALETTE: tuple[Rgb, ...] = (
    (0.47, 0.67, 0.87),
    (0.93, 0.53, 0.40),
    (0.73, 0.80, 0.20),
    (1.00, 0.67, 0.73),
    (0.27, 0.73, 0.60),
    (0.93, 0.87, 0.53),
    (0.67, 0.49, 0.80),
    (0.60, 0.87, 1.00),
    (0.67, 0.67, 0.30),
    (0.87, 0.60, 0.80),
    (0.55, 0.76, 0.51),
    (0.78, 0.70, 0.60),
)

_assigned: dict[str, Rgb] = {}


def series_colour(name: str) -> Rgb:
    """By order of first use; after the last colour the first comes again."""
    if name not in _assigned:
        _assigned[name] = PALETTE[len(_assigned) % len(PALETTE)]
    return _assigned[name]
