"""Rays of one frame traced by another hit what they hit there."""

from typing import Any

import numpy as np
import pytest

from passes.retrace import retrace

SIZE = (24, 18)


def sent(frame: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Records and results by ray type."""
    data = frame.data
    records = {ray.name: data.read_records(ray) for ray in data.rays}
    return records, {ray.name: data.read_results(ray, records[ray.name]) for ray in data.rays}


def test_other_rays_hit_what_they_hit_in_their_own_frame(draw: Any, room: Any) -> None:
    frame = draw(room, *SIZE).frame
    other = draw(room, *SIZE, frame_index=7).frame
    before, (records, results) = frame.result_hash(), sent(other)
    assert before != other.result_hash()
    found = retrace(frame, records)
    for name, expected in results.items():
        assert len(expected) > 50
        np.testing.assert_array_equal(found[name], expected)
    few = {name: rays[::-3] for name, rays in records.items()}
    for name, hits in retrace(frame, few).items():
        np.testing.assert_array_equal(hits, results[name][::-3])
    frame.run(0)
    assert frame.result_hash() == before  # nothing of the others is left


def test_more_rays_than_a_queue_holds_are_refused(draw: Any, room: Any) -> None:
    frame = draw(room, *SIZE).frame
    records, _ = sent(frame)
    many = np.resize(records["reflection"], SIZE[0] * SIZE[1] + 1)
    with pytest.raises(ValueError, match="433 reflection rays, the queue holds 432"):
        retrace(frame, records | {"reflection": many})
