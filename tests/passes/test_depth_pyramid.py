"""Rays through the depth pyramid against a walk through every pixel that they touch, over pictures
of planes at random depths."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from passes.depth_pyramid import TOP, corner, padded, texture_size
from passes.twins.camera import camera_direction
from passes.twins.depth_pyramid import depth_pyramid
from passes.twins.octahedral import decode_normal, encode_normal
from passes.twins.screen_march import ScreenHit, ScreenRay, march_screen, next_pixel

THICKNESS = 0.02
# Odd and even, smaller than a cell of the top level and a pixel more than some.
SIZES = [(1, 1), (7, 5), (33, 31), (64, 33), (95, 64), (129, 97)]


@dataclass(frozen=True)
class Picture:
    """Planes in blocks of pixels, with holes; `depth` [height, width], 0 where nothing is."""

    frame: dict[str, Any]
    surface: Any
    depth: Any
    pyramid: Any

    def march(self, rays: Any, **settings: Any) -> ScreenHit:
        return march_screen(self.frame, self.pyramid, *rays, **{"steps": 4096, **settings})


def make_frame(rng: Any, width: int, height: int) -> dict[str, Any]:
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    right, up, forward = turned.astype(np.float32)
    return {
        "width": width,
        "height": height,
        "camera_origin": np.float32([0.3, 1.5, -0.7]),
        "camera_forward": forward,
        "camera_right": right * np.float32(0.6 * width / height),
        "camera_up": up * np.float32(0.6),
    }


def make_picture(frame: dict[str, Any], depth: Any, normal: Any) -> Picture:
    """`normal` [height, width, 3] of any length, turned to the camera here."""
    height, width = depth.shape
    y, x = (a.ravel() for a in np.indices(depth.shape))
    view = camera_direction(frame, x, y).reshape(height, width, 3)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    normal = np.where(((normal * view).sum(-1) > 0)[..., None], -normal, normal)
    surface = np.zeros((height, width, 4), np.uint32)
    surface[..., 1] = encode_normal(normal.reshape(-1, 3).astype(np.float32)).reshape(depth.shape)
    across, down = texture_size(width, height)
    pyramid = np.full((down, across, 2), 0x7E1DAB1E, np.uint32)
    depth_pyramid(frame, surface, depth, pyramid)
    return Picture(frame, surface, depth, pyramid)


def random_picture(rng: Any, width: int, height: int) -> Picture:
    """Blocks of planes before each other, edge-on ones and holes among them; between blocks of one
    plane, its depths."""
    frame = make_frame(rng, width, height)
    depth, normal = np.zeros((height, width)), np.ones((height, width, 3))
    y, x = np.indices(depth.shape)
    view = camera_direction(frame, x.ravel(), y.ravel()).reshape(height, width, 3)
    for number in range(40):
        size = rng.integers(1, max(2, (width + height) // (2 if number < 4 else 8)), 2)
        left, top = rng.integers(0, width), rng.integers(0, height)
        block = (slice(top, top + size[1]), slice(left, left + size[0]))
        plane = rng.normal(size=3)
        at = rng.uniform(0.5, 12.0)
        reach = at * (view[top, left] @ plane) / (view[block] @ plane)
        depth[block] = np.where((reach > 0.2) & (reach < 60.0), reach, 0.0)
        normal[block] = plane
    return make_picture(frame, depth.astype(np.float32), normal)


def random_rays(rng: Any, picture: Picture, count: int) -> Any:
    """From pixels that show something, most of them along the picture."""
    y, x = np.nonzero(picture.depth)
    chosen = rng.integers(0, len(x), count)
    direction = rng.normal(size=(count, 3))
    flat = rng.random(count) < 0.6
    forward = picture.frame["camera_forward"]
    direction[flat] -= np.outer(0.9 * direction[flat] @ forward, forward)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return x[chosen], y[chosen], direction.astype(np.float32)


@pytest.mark.parametrize("width,height", SIZES)
def test_the_pyramid_loses_nothing(rng: Any, width: int, height: int) -> None:
    """What is found is what a walk through every touched pixel finds, to the bit."""
    found = 0
    for _ in range(3):
        picture = random_picture(rng, width, height)
        if not picture.depth.any():
            continue
        rays = random_rays(rng, picture, 600)
        quick, whole = picture.march(rays), picture.march(rays, top=0)
        for name in ("found", "x", "y", "t"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(whole, name))
        assert not quick.cut.any() and not whole.cut.any()
        found += quick.found.sum()
    assert found > 100 or width * height < 100


def first_pixel(picture: Picture, ray: Any) -> tuple[int, int] | None:
    """The pixel whose plane a ray goes into first, in double precision, from the surfaces
    themselves: every pixel between two borders that the ray crosses is looked at."""
    frame, (x, y, direction) = picture.frame, ray
    width, height = frame["width"], frame["height"]
    right, up, forward = (
        frame[f"camera_{name}"].astype(float) for name in ("right", "up", "forward")
    )

    def place(point: Any) -> Any:
        z = point @ forward
        flat = np.stack([point @ right / (right @ right), -point @ up / (up @ up)], -1)
        return (flat / z[..., None] + 1) / 2 * [width, height]

    def seen(x: Any, y: Any) -> Any:
        return camera_direction(frame, np.atleast_1d(x), np.atleast_1d(y))[0].astype(float)

    origin = float(picture.depth[y, x]) * seen(x, y)
    # Reciprocal depths are linear over the picture, and so is t / depth.
    start, dz, z = place(origin[None])[0], direction @ forward, origin @ forward
    step = 1e-3 * z
    moves = (place((origin + step * direction)[None])[0] - start) / (step / (z + step * dz))
    with np.errstate(all="ignore"):
        sides = (np.where(moves > 0, [width, height], 0.0) - start) / moves
        end = min(*sides, 1 / dz if dz > 0 else np.inf)
        cuts = [
            (np.arange(size + 1) - start[axis]) / moves[axis]
            for axis, size in enumerate((width, height))
        ]
    crossings = np.concatenate(cuts)
    crossings = np.unique(crossings[(crossings > 0) & (crossings < end)])
    ends = np.concatenate([[0.0], crossings, [end]])
    for entered, leaves in zip(ends[1:-1], ends[2:], strict=True):
        column, row = np.floor(start + 0.5 * (entered + leaves) * moves).astype(int)
        depth = float(picture.depth[row, column])
        if depth == 0:
            continue
        normal = decode_normal(picture.surface[row : row + 1, column, 1])[0].astype(float)
        near = np.array([entered, leaves])
        t = near * z / np.maximum(1 - near * dz, 1e-12)
        points = origin + t[:, None] * direction
        above = (points - depth * seen(column, row)) @ normal
        comes = above[0] >= 0 or points[0] @ forward <= (1 + THICKNESS) * depth
        if comes and above[1] <= 0 and direction @ normal < 0:
            return int(column), int(row)
    return None


def test_what_is_found_is_what_the_planes_say(rng: Any) -> None:
    """Against pixels, planes and thickness worked out anew; roundings and packed tilts may lead a
    ray in some hundreds elsewhere."""
    apart = found = 0
    for width, height in ((61, 43), (40, 71)):
        picture = random_picture(rng, width, height)
        rays = random_rays(rng, picture, 300)
        hit = picture.march(rays)
        for number, ray in enumerate(zip(*rays, strict=True)):
            expected = first_pixel(picture, ray)
            got = (int(hit.x[number]), int(hit.y[number])) if hit.found[number] else None
            apart += got != expected
            found += expected is not None
    assert found > 150 and apart <= 2, (found, apart)


def test_every_cell_bounds_the_pixels_under_it(rng: Any) -> None:
    width, height = 77, 41
    picture = random_picture(rng, width, height)

    def level(number: int) -> Any:
        x, y = corner(number, width, height)
        rows, columns = padded(height) >> number, padded(width) >> number
        return picture.pyramid[y : y + rows, x : x + columns].copy().view(np.float32)

    for number in range(2, TOP + 1):
        below, cells = level(number - 1), level(number)
        blocks = below.reshape(len(cells), 2, -1, 2, 2)
        np.testing.assert_array_equal(cells[..., 0], blocks[..., 0].max((1, 3)))
        np.testing.assert_array_equal(cells[..., 1], blocks[..., 1].min((1, 3)))
    shown = picture.depth > 0
    nearness = np.divide(1, picture.depth, out=np.zeros_like(picture.depth), where=shown)
    first = level(1)
    for y, x in np.argwhere(shown):
        nearest, farthest = first[y // 2, x // 2]
        assert farthest < nearness[y, x] / (1 + THICKNESS) * 1.00001 < nearness[y, x] < nearest
    assert (first[(height + 1) // 2 :, :, 0] < 0).all()  # where the picture is not


def test_no_rounding_leads_past_a_pixel(rng: Any) -> None:
    """Over a border of a column a ray comes into the row whose border it has crossed and whose next
    one it has not, by the very numbers that it finds those borders with: also where both are
    crossed at once."""
    count = 4000
    start = (rng.integers(0, 8000, (count, 2)) + 0.5).astype(np.float32)
    moves = (rng.normal(size=(count, 2)) * 10 ** rng.uniform(-2, 3, (count, 1))).astype(np.float32)
    ray = ScreenRay(start, moves, np.ones(count, np.float32), np.zeros(count, np.float32))
    forward, inverse = (moves > 0).astype(np.int64), np.float32(1) / moves
    turn = 2 * forward[:, 1] - 1
    row = start[:, 1].astype(np.int64) + turn * rng.integers(1, 4000, count)

    def crossed_at(border: Any) -> Any:
        return (border.astype(np.float32) - start[:, 1]) * inverse[:, 1]

    s = crossed_at(row)
    columns = np.full(count, 7)
    beyond = np.stack([columns, columns], -1)
    found = next_pixel(ray, inverse, forward, beyond, np.ones(count, bool), s)
    assert (found[:, 0] == 7).all()
    assert (crossed_at(found[:, 1] + 1 - forward[:, 1]) <= s).all()
    assert (crossed_at(found[:, 1] + forward[:, 1]) > s).all()


def test_what_lies_in_front_is_left_at_once(rng: Any) -> None:
    """A near wall over the whole picture, and rays far behind it: they look at a few large cells,
    not at every pixel."""
    width, height = 512, 64
    frame = make_frame(rng, width, height)
    depth = np.full((height, width), 1.0, np.float32)
    depth[:, :8] = 30.0
    normal = np.broadcast_to(frame["camera_forward"], (height, width, 3))
    picture = make_picture(frame, depth, normal)
    direction = frame["camera_right"] / np.linalg.norm(frame["camera_right"])
    rays = np.array([2, 3]), np.array([20, 40]), np.stack([direction, direction])
    hit, slow = picture.march(rays), picture.march(rays, top=0)
    assert not hit.found.any() and (hit.steps < 40).all() and (slow.steps > 500).all()
    cut = picture.march(rays, steps=10)
    assert cut.cut.all() and not cut.found.any()
