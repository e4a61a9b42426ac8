"""Bind groups are kept while they are used, and let go of their resources after that."""

import weakref

import pytest

from engine.gpu.stage import BindGroups, Binding

BINDINGS = (Binding(0, "words", "storage, read_write", "array<u32>"),)


@pytest.fixture
def groups(device):
    return BindGroups(device, BINDINGS, "COMPUTE", most=3)


def test_the_same_resources_give_the_same_group(device, groups):
    one, other = device.buffer("one", 16), device.buffer("other", 16)
    group = groups.get({"words": one})
    assert groups.get({"words": other}) is not group
    assert groups.get({"words": one}) is group


def test_the_longest_unused_is_let_go_with_its_resources(device, groups):
    buffers = [device.buffer(f"buffer {i}", 16) for i in range(4)]
    first = groups.get({"words": buffers[0]})
    for buffer in buffers[1:3]:
        groups.get({"words": buffer})
    assert groups.get({"words": buffers[0]}) is first  # used again: the second is the oldest
    seen = [weakref.ref(buffer) for buffer in buffers]
    groups.get({"words": buffers[3]})
    del buffer, buffers
    assert seen[1]() is None
    assert all(seen[i]() is not None for i in (0, 2, 3))


def test_forgotten_resources_are_free(device, groups):
    buffer = device.buffer("buffer", 16)
    groups.get({"words": buffer})
    seen = weakref.ref(buffer)
    groups.forget()
    del buffer
    assert seen() is None
