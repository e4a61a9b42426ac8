"""Lines against a projection in NumPy: where they are, how wide, and when they are dimmed."""

from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at
from engine.view.lines import FORMAT, HIDDEN_ALPHA, LineRenderer

SIZE = (96, 64)
CAMERA = look_at(np.array([3.0, 2.0, 5.0]), np.array([0.2, -0.1, 0.0]), 0.8)
WHITE = np.ones((1, 4), np.float32)


class Picture:
    """A black picture that lines are drawn over."""

    def __init__(self, device: Any, size: tuple[int, int] = SIZE) -> None:
        self.device, self.size = device, size
        self.texture = device.wgpu.create_texture(
            size=(*size, 1),
            format=FORMAT,
            usage="RENDER_ATTACHMENT|COPY_SRC|TEXTURE_BINDING",
        )
        self.view = self.texture.create_view()

    def draw(self, renderer: LineRenderer, *batches: Any, camera: Any = CAMERA, **more: Any) -> Any:
        """[h, w, 4] float64 0 to 1."""
        encoder = self.device.wgpu.create_command_encoder()
        clear = {"view": self.view, "load_op": "clear", "store_op": "store"}
        encoder.begin_render_pass(color_attachments=[{**clear, "clear_value": (0, 0, 0, 1)}]).end()
        renderer.encode(encoder, self.view, self.size, camera, batches, **more)
        self.device.wgpu.queue.submit([encoder.finish()])
        w, h = self.size
        data = self.device.wgpu.queue.read_texture(
            {"texture": self.texture}, {"bytes_per_row": 4 * w, "rows_per_image": h}, (w, h, 1)
        )
        return np.frombuffer(data, np.uint8).reshape(h, w, 4).astype(np.float64) / 255


@pytest.fixture(scope="module")
def renderer(device: Any) -> LineRenderer:
    return LineRenderer(device, softness=0.5)


def depth_view(device: Any, values: Any) -> Any:
    """An r32float texture of `values [h, w]`."""
    values = np.ascontiguousarray(values, np.float32)
    h, w = values.shape
    texture = device.wgpu.create_texture(
        size=(w, h, 1), format="r32float", usage="TEXTURE_BINDING|COPY_DST"
    )
    device.wgpu.queue.write_texture(
        {"texture": texture}, values, {"bytes_per_row": 4 * w, "rows_per_image": h}, (w, h, 1)
    )
    return texture.create_view()


def project(points: Any) -> tuple[Any, Any]:
    """(pixels [n, 2] from the top left, distances along the view axis [n]) of world points."""
    given = np.column_stack([points, np.ones(len(points))])
    clip = given @ (CAMERA.projection(SIZE[0] / SIZE[1]) @ CAMERA.view_matrix()).T
    flat = clip[:, :2] / clip[:, 3:]
    return (flat * (1, -1) + 1) / 2 * SIZE, clip[:, 3]


def coverage(segments: Any, width: float, softness: float = 0.5) -> Any:
    """[h, w] the most that any segment `[n, 2, 2]` in pixels covers of each pixel's middle, with
    an edge that fades over a pixel, as the shader draws it, as far as the quad goes."""
    x, y = np.meshgrid(np.arange(SIZE[0]) + 0.5, np.arange(SIZE[1]) + 0.5)
    grid = np.stack([x, y], axis=-1)
    best = np.zeros(SIZE[::-1])
    for a, b in segments:
        length = np.linalg.norm(b - a)
        along = (b - a) / length
        at = (grid - a) @ along
        across = np.abs((grid - a) @ np.array([-along[1], along[0]]))
        inside = (at > -0.5) & (at < length + 0.5) & (across < 0.5 * width + softness)
        best = np.maximum(best, np.where(inside, np.clip(0.5 * width + 0.5 - across, 0, 1), 0))
    return best


def box_edges(box: Any) -> Any:
    """[12, 2, 3] the edges of a box [2, 3]."""
    corners = np.array([[box[i][0], box[j][1], box[k][2]] for i, j, k in np.ndindex(2, 2, 2)])
    pairs = [(a, b) for a in range(8) for b in range(a) if bin(a ^ b).count("1") == 1]
    return corners[pairs]


def agrees(drawn: Any, expected: Any) -> None:
    """All but pixels that lie on the quads' own outlines, where rounding decides."""
    wrong = np.abs(drawn - expected) > 0.06
    lit = (expected > 0).sum()
    assert lit > 25 and wrong.sum() < 0.06 * lit, (wrong.sum(), lit)


@pytest.mark.parametrize("softness", [0.0, 0.5])
@pytest.mark.parametrize("width", [1.0, 2.5])
def test_segments_are_where_numpy_projects_them(device: Any, width: float, softness: float) -> None:
    renderer = LineRenderer(device, softness)
    for a, b in (((-1.5, -1, 0.5), (1.2, 1.4, -1)), ((0.3, -1.2, 0), (0.1, 1.5, 0.4))):
        ends = np.array([[a, b]], np.float32)
        pixels = project(ends[0])[0][None]
        picture = Picture(device).draw(renderer, renderer.segments(ends, WHITE, width=width))
        agrees(picture[..., 0], coverage(pixels, width, softness))


def test_a_box_is_its_twelve_edges_in_its_space(device: Any, renderer: LineRenderer) -> None:
    boxes = np.array([[[9, 9, 9], [10, 10, 10]], [[-0.6, -0.3, -0.9], [0.7, 0.5, 0.4]]], np.float32)
    move = np.array([[0.0, -0.8, 0.1, 0.3], [1.1, 0.0, 0, -0.2], [0, 0.1, 0.9, 0.5]], np.float32)
    transforms = np.stack([np.zeros((3, 4), np.float32), move])
    colours = np.array([[1, 0, 0, 1], [0, 1, 0, 1]], np.float32)
    batch = renderer.boxes(
        boxes, np.array([0, 1]), colours, transforms=transforms, transform_index=np.array([0, 1])
    )
    renderer.choose(batch, np.array([1]))
    picture = Picture(device).draw(renderer, batch)
    world = box_edges(boxes[1]).reshape(-1, 3) @ move[:, :3].T + move[:, 3]
    expected = coverage(project(world)[0].reshape(-1, 2, 2), batch.width)
    # Where edges meet in a corner, they blend over each other.
    drawn = picture[..., 1]
    assert ((drawn > 0.2) == (expected > 0.2)).mean() > 0.97
    strong = expected > 0.9
    assert strong.sum() > 40 and (drawn[strong] > 0.85).all()
    assert (drawn[expected == 0] == 0).mean() > 0.99
    assert not picture[..., 0].any() and not picture[..., 2].any()
    assert (picture[..., 3] == 1).all()


def test_what_is_not_chosen_is_not_drawn(device: Any, renderer: LineRenderer) -> None:
    batch = renderer.boxes(np.array([[[-1] * 3, [1] * 3]], np.float32), np.zeros(1), WHITE)
    picture = Picture(device)
    assert picture.draw(renderer, batch)[..., 0].any()
    renderer.choose(batch, np.zeros(0))
    assert not picture.draw(renderer, batch)[..., 0].any()


@pytest.mark.parametrize("depth_size", [(96, 64), (24, 16), (192, 30)])
def test_what_is_hidden_is_dimmed(
    device: Any, renderer: LineRenderer, depth_size: tuple[int, int]
) -> None:
    ends = np.array([[[-3.0, 0.1, 0.0], [3.0, 0.1, 0.0]]], np.float32)
    pixels, distances = project(ends[0])
    line = renderer.segments(ends, WHITE, width=2.0)
    picture = Picture(device)
    plain = picture.draw(renderer, line)[..., 0]
    columns = (np.arange(depth_size[0]) + 0.5) / depth_size[0]
    # A wall in front in the left half, one behind it or nothing in the right half.
    for behind in (1.5 * distances.max(), 0.0):
        wall = np.where(columns < 0.5, 0.5 * distances.min(), behind)
        depth = depth_view(device, np.broadcast_to(wall, depth_size[::-1]))
        drawn = picture.draw(renderer, line, depth=depth)[..., 0]
        half = SIZE[0] // 2
        np.testing.assert_allclose(drawn[:, :half], HIDDEN_ALPHA * plain[:, :half], atol=0.01)
        np.testing.assert_array_equal(drawn[:, half:], plain[:, half:])


def test_depth_is_that_along_the_view_axis(device: Any, renderer: LineRenderer) -> None:
    """A line in a wall that faces the camera: never hidden by it, wherever it is in the picture,
    and hidden by one a little nearer."""
    right, up, forward = CAMERA.transform[:3, 0], CAMERA.transform[:3, 1], CAMERA.forward
    middle = CAMERA.position + 4.0 * forward
    ends = np.array([[middle - 3 * right - up, middle + 3 * right + up]], np.float32)
    line = renderer.segments(ends, WHITE, width=2.0)
    picture = Picture(device)
    plain = picture.draw(renderer, line)[..., 0]
    same = picture.draw(renderer, line, depth=depth_view(device, np.full((1, 1), 4.0)))[..., 0]
    near = picture.draw(renderer, line, depth=depth_view(device, np.full((1, 1), 3.95)))[..., 0]
    np.testing.assert_array_equal(same, plain)
    np.testing.assert_allclose(near, HIDDEN_ALPHA * plain, atol=0.01)


def test_a_line_that_begins_behind_the_camera(device: Any, renderer: LineRenderer) -> None:
    eye, forward, right = CAMERA.position, CAMERA.forward, CAMERA.transform[:3, 0]
    ahead = eye + 5.0 * forward + 0.5 * right
    for behind in (eye - 2.0 * forward + 0.1 * right, eye - 50.0 * forward + 8 * right):
        ends = np.array([[behind, ahead]])
        cut = (0.001 + 1e-3 - (behind - eye) @ forward) / ((ahead - behind) @ forward)
        seen = np.array([behind + cut * (ahead - behind), ahead])
        expected = coverage(project(seen)[0][None], 2.0)
        for order in (ends, ends[:, ::-1]):
            line = renderer.segments(order.astype(np.float32), WHITE, width=2.0)
            agrees(Picture(device).draw(renderer, line)[..., 0], expected)
    both = np.array([[eye - forward, eye - 2 * forward + right]], np.float32)
    assert not Picture(device).draw(renderer, renderer.segments(both, WHITE))[..., 0].any()


def test_colours_blend(device: Any, renderer: LineRenderer) -> None:
    ends = np.array([[[-3.0, 0.1, 0.0], [3.0, 0.1, 0.0]]] * 2, np.float32)
    rgba = np.array([[0.8, 0.2, 0.0, 1.0], [0.0, 0.0, 1.0, 0.25]], np.float32)
    drawn = Picture(device).draw(renderer, renderer.segments(ends, rgba, width=4.0))
    middle = drawn[drawn[:, SIZE[0] // 2, 2].argmax(), SIZE[0] // 2]
    np.testing.assert_allclose(middle, [0.6, 0.15, 0.25, 1.0], atol=0.01)


def test_lines_are_seen_from_a_given_eye_and_nothing_is_written(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer, picture = LineRenderer(device, softness=0.5), Picture(device)
    box = np.array([[[-1.0, -0.5, 0.0], [0.5, 1.0, 0.5]]], np.float32)
    batch = renderer.boxes(box, np.zeros(1, np.uint32), WHITE, width=2.0)
    other = look_at(np.array([-2.0, 1.0, 4.0]), np.zeros(3), 0.6)
    expected = picture.draw(renderer, batch)
    elsewhere = picture.draw(renderer, batch, camera=other)
    assert not np.array_equal(expected, elsewhere)
    # A uniform that goes on behind the matrix, as a frame's does.
    record = np.zeros(64, np.float32)
    matrix = CAMERA.projection(SIZE[0] / SIZE[1]) @ CAMERA.view_matrix()
    record[:16] = matrix.reshape(-1)
    eye = device.upload("eye", record, "UNIFORM|COPY_DST")
    written: list[Any] = []
    monkeypatch.setattr(device, "write", lambda *args: written.append(args))
    seen = picture.draw(renderer, batch, camera=other, eye=eye)
    np.testing.assert_array_equal(seen, expected)
    assert not written
