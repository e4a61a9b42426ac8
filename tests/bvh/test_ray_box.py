"""Rays against boxes, solved by hand."""

import numpy as np

from bvh.ray_box import flush_components, intersect_boxes, invert_components
from bvh.rays import make_rays


def one_box(rays, low, high):
    """Entry and hit of each ray with one box."""
    n = len(rays)
    bounds = np.broadcast_to(np.array([low, high], np.float32)[None, :, :, None], (1, 2, 3, n))
    inverse = invert_components(flush_components(rays["direction"].T))
    entry, hit = intersect_boxes(bounds, rays["origin"].T, inverse, rays["t_min"], rays["t_max"])
    return entry[0], hit[0]


def test_box_interval_is_in_units_of_the_given_direction():
    rays = make_rays([[0, 0, 0]] * 3, [0, 0, 2], [0, 0, 2.1], [10, 0.9, 10])
    entry, hit = one_box(rays, (-1, -1, 2), (1, 1, 4))
    assert hit.tolist() == [True, False, False]
    assert entry[0] == 1  # not 2: the direction is not normalised


def test_parallel_axis_outside_the_slab_misses_and_on_its_plane_hits():
    rays = make_rays([[2, 0, 0], [1, 0, 0], [-1, -1, 0], [1.0000001, 0, 0]], [0, 0, 2], 0, 10)
    assert one_box(rays, (-1, -1, 2), (1, 1, 4))[1].tolist() == [False, True, True, False]
    negative = make_rays([[1, 0, 0]], [-0.0, -0.0, 2])
    assert one_box(negative, (-1, -1, 2), (1, 1, 4))[1].all()


def test_origin_inside_clips_the_entry_to_t_min():
    rays = make_rays([[0, 0, 3]] * 2, [0.5, 0.1, 2], [0, 0.25])
    entry, hit = one_box(rays, (-1, -1, 2), (1, 1, 4))
    assert hit.all() and entry.tolist() == [0, 0.25]


def test_flat_box_is_hit_and_nan_box_is_not():
    rays = make_rays([[0, 0, 0]], [0, 0, 1])
    assert one_box(rays, (-1, -1, 2), (1, 1, 2))[1].all()
    with np.errstate(invalid="ignore"):
        assert not one_box(rays, (np.nan,) * 3, (np.nan,) * 3)[1].any()


def test_denormal_direction_component_counts_as_zero():
    rays = make_rays([[1, 0, 0]], [[1e-40, 0, 1]])
    entry, hit = one_box(rays, (1, -1, 2), (3, 1, 4))  # 1/1e-40 is infinite: 0 * inf is NaN
    assert hit.all() and entry[0] == 2
