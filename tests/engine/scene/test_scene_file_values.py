"""Every value of a scene file, replaced by one of a wrong kind: one line that names its key."""

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.gpu.errors import UserError
from engine.scene.describe import describe

BITS = {"primary": 1, "reflection": 2, "shadow": 4}
WHOLE = """
[files]
one = "one.glb"
[[objects]]
file = "one"
name = "first"
node = "node"
translation = [1, 2, 3]
euler = [10, 20, 30]
scale = [1, 2, 3]
visible_to = ["shadow", "primary"]
lifetime = "rigid"
clip = "walk"
start = 0.5
speed = 1.5
loop = false
instances = [{translation = [1, 0, 0]}, {scale = 2, rotation = [0, 0, 0, 1]}]
[[objects]]
file = "one"
name = "second"
mesh = "tri"
mask = 7
animate = false
[objects.scatter]
count = 3
seed = 5
least_distance = 0.1
scale = [1, 2]
yaw = [0, 90]
area = {shape = "disc", center = [0, 0, 0], radius = 9}
[camera]
position = [0, 1, 5]
target = [0, 0, 0]
fov = 50
[camera_path]
loop = true
keys = [
    {time = 0, position = [0, 1, 5], target = [0, 0, 0], fov = 40},
    {time = 1, position = [1, 1, 5], target = [0, 0, 0]},
]
[[lights]]
center = [0, 3, 0]
target = [0, 0, 0]
size = [1, 2]
radiance = [1, 2, 3]
[environment]
zenith = [0, 0, 1]
horizon = 0.5
ground = [0.1, 0.1, 0.1]
"""
VALUES = tomllib.loads(WHOLE)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every value within."""
    if way:
        yield way
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*way, key))
    elif isinstance(value, list) and value and not isinstance(value[0], int | float | str):
        for index, inner in enumerate(value):
            yield from places(inner, (*way, index))


def mistake(way: tuple[Any, ...], wrong: Any) -> str:
    """What is said of the file with that value in that place."""
    changed = copy.deepcopy(VALUES)
    inner: Any = changed
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = wrong
    with pytest.raises(UserError) as caught:
        describe(Path("scene.toml"), changed, BITS)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_the_file_itself_is_right() -> None:
    found = describe(Path("scene.toml"), VALUES, BITS)
    assert [placed.name for placed in found.objects] == ["first", "second"]


@pytest.mark.parametrize("way", list(places(VALUES)), ids=lambda way: ".".join(map(str, way)))
def test_a_value_of_a_wrong_kind_is_one_line_that_names_the_key(way: tuple[Any, ...]) -> None:
    for wrong in (float("nan"), {"strange": 1}, [[]], b"bytes"):
        line = mistake(way, wrong)
        key = next(part for part in reversed(way) if isinstance(part, str))
        assert "\n" not in line and line.startswith("scene.toml") and key in line, line


@pytest.mark.parametrize(
    "way",
    [way for way in places(VALUES) if isinstance(way[-1], str)],
    ids=lambda way: ".".join(map(str, way)),
)
def test_a_key_with_a_letter_too_many_is_named(way: tuple[Any, ...]) -> None:
    """Everywhere but among the names that the file gives itself."""
    if way[:-1] == ("files",):
        return
    typo = way[-1] + "x"
    line = mistake((*way[:-1], typo), 1)
    assert "\n" not in line and typo in line, line
