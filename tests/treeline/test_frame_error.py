"""Errors are means over pictures of which no two have the same random numbers."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from treeline.frame_error import HISTORY_FRAMES, SEED_STEP, draw_pictures


@dataclass(frozen=True)
class Inputs:
    seed: int
    exposure: float = 1.0
    camera: str = "at rest"


class Frame:
    """Its picture is the seed and how many frames led up to it."""

    def __init__(self, history: int) -> None:
        self.options = SimpleNamespace(history=history)
        self.inputs = Inputs(7)
        self.drawn: list[Inputs] = []

    def run(self, index: int, sample: int, inputs: Inputs | None) -> Any:
        if sample == 1 and not self.options.history:
            self.drawn.clear()
        self.drawn.append(inputs or self.inputs)
        return SimpleNamespace(valid=True)

    def radiance(self) -> Any:
        (seed,) = {inputs.seed for inputs in self.drawn}
        return seed, len(self.drawn)


@pytest.mark.parametrize(("history", "frames"), [(0, 2), (4, HISTORY_FRAMES)])
def test_each_picture_has_a_seed_of_its_own(history: int, frames: int) -> None:
    """Also where each begins with a frame that remembers nothing."""

    def make() -> Any:
        return Frame(history)

    found: Any = [picture for picture, _ in draw_pictures(make, 4, samples=2)]
    assert found == [(7 + SEED_STEP * number, frames) for number in range(4)]


def test_a_frame_that_remembers_follows_the_inputs_it_is_given() -> None:
    made: list[Frame] = []

    def make() -> Any:
        made.append(Frame(4))
        return made[-1]

    way: Any = [Inputs(0, camera="far"), Inputs(0, camera="near")]
    assert len(list(draw_pictures(make, 2, inputs=way))) == 2
    assert [[i.camera for i in frame.drawn] for frame in made] == [["far", "near"]] * 2
