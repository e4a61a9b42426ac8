"""Every vertex on the GPU is where the pose in double precision has it, at moments that say
something about morph weights, joints and nodes, whatever the tree and the grouping."""

from typing import Any

import numpy as np
import pytest

MOMENTS = {
    "no morph weight": 0.5,
    "one target whole": 1.0,
    "two targets": 2.0,
    "between keys": 1.37,
}


def check(figure: Any, frame: Any, time: float | None) -> None:
    found = figure.vertices(frame)
    for body in figure.bodies(time):
        np.testing.assert_allclose(
            found[body.name], body.positions, atol=3e-6, err_msg=f"{body.name} at {time}"
        )


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("update", ["refit", "rebuild"])
def test_morphed_then_skinned_or_carried(figure: Any, update: str, moment: str) -> None:
    frame = figure.show(figure.frame(figure.scene, update=update), MOMENTS[moment])
    check(figure, frame, MOMENTS[moment])


def test_at_rest_it_stands_as_in_the_file(figure: Any) -> None:
    """Joints where their nodes are, no weight, and no place or size of the skinned mesh's node."""
    frame = figure.frame(figure.scene)
    for time in (None, 1.2, None):
        check(figure, figure.show(frame, time), time)


def test_nodes_carry_instances_of_one_mesh(figure: Any) -> None:
    """Four boxes of one BLAS: three turn with their carrier, squeezed or mirrored; one stands."""
    frame = figure.show(figure.frame(figure.scene), 1.5)
    bvh = frame.bvh()
    boxes = [i for i in bvh.instances if i.name in ("box", "squeezed", "mirrored", "still")]
    assert len(boxes) == 4 and len({i.blas for i in boxes}) == 1
    rest = {body.name: body for body in figure.bodies(None)}
    for body in figure.bodies(1.5):
        moved = np.abs(body.positions - rest[body.name].positions).max() > 0.1
        assert moved == (body.name not in ("still", "floor"))
    check(figure, frame, 1.5)


# (time shown, loop, time of the clip, which lasts from 0.5 to 2 seconds and begins at 0)
TIMES = [
    (0.0, True, 0.5),
    (-1.0, True, 0.5),
    (-1.0, False, 0.5),
    (2.0, True, 2.0),
    (2.0, False, 2.0),
    (2.9, True, 0.9),
    (2.9, False, 2.0),
    (7.25, True, 1.25),
    (1e12, False, 2.0),
]


@pytest.mark.parametrize(("time", "loop", "local"), TIMES)
def test_a_clip_that_ends_repeats_or_keeps_its_last_pose(
    figure: Any, time: float, loop: bool, local: float
) -> None:
    frame = figure.show(figure.frame(figure.scene), time, loop=loop)
    check(figure, frame, local)
