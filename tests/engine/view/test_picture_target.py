"""A picture blitted into the window's target: orientation, scaling, filters, new sources."""

import numpy as np
import pytest

from engine.view.picture_target import PictureTarget


def make_source(device, pixels):
    height, width = pixels.shape[:2]
    texture = device.wgpu.create_texture(
        size=(width, height, 1), format="rgba8unorm", usage="TEXTURE_BINDING|COPY_DST"
    )
    device.wgpu.queue.write_texture(
        {"texture": texture}, pixels, {"bytes_per_row": 4 * width}, (width, height, 1)
    )
    return texture.create_view()


def blit(device, target, source, smooth):
    encoder = device.wgpu.create_command_encoder()
    target.blit(encoder, source, smooth=smooth)
    device.wgpu.queue.submit([encoder.finish()])
    width, height = target.size
    data = device.wgpu.queue.read_texture(
        {"texture": target.texture}, {"bytes_per_row": 4 * width}, (width, height, 1)
    )
    return np.frombuffer(data, np.uint8).reshape(height, width, 4)


@pytest.fixture
def pixels(rng):
    data = rng.integers(0, 256, (5, 7, 4), dtype=np.uint8)
    data[..., 3] = 255
    return data


@pytest.mark.parametrize("smooth", [False, True])
def test_same_size_is_a_copy(device, pixels, smooth):
    target = PictureTarget(device, (7, 5))
    assert np.array_equal(blit(device, target, make_source(device, pixels), smooth), pixels)


def test_nearest_repeats_pixels_and_never_mixes(device, pixels):
    target = PictureTarget(device, (21, 15))
    got = blit(device, target, make_source(device, pixels), False)
    assert np.array_equal(got, pixels.repeat(3, axis=0).repeat(3, axis=1))


def test_linear_mixes_between_pixels(device):
    row = np.array([[[0, 0, 0, 255], [200, 100, 50, 255]]], np.uint8)
    target = PictureTarget(device, (8, 1))
    got = blit(device, target, make_source(device, row), True)[0, :, 0].astype(int)
    assert got[0] == 0 and got[-1] == 200
    assert np.all(np.diff(got) >= 0) and len(set(got.tolist())) > 3


def test_a_new_source_and_a_new_size_are_seen(device, pixels):
    target = PictureTarget(device, (7, 5))
    blit(device, target, make_source(device, pixels), False)
    other = 255 - pixels
    other[..., 3] = 255
    assert np.array_equal(blit(device, target, make_source(device, other), False), other)
    target.resize((14, 10))
    assert target.size == (14, 10)
    doubled = other.repeat(2, axis=0).repeat(2, axis=1)
    assert np.array_equal(blit(device, target, make_source(device, other), False), doubled)
