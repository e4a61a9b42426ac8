"""A BLAS that is built anew while the TLAS of the frame before names the old one: the same
submission leads every instance to the new one, in a place that no build outgrows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.decode import decode
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.build_capacity import build_capacity
from bvh.layout import INSTANCE_BLAS_BASE_WORD, INSTANCE_ID_WORD, UNIT_BYTES
from bvh.validate import validate
from engine.gpu.errors import LimitError
from passes import gpu_scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rebuilding import room_bytes


def named_base(frame: Any) -> int:
    """Where the figure's instance node leads, by the bytes on the GPU."""
    leaves = decode(frame.bvh().tlas_words).leaves
    number = next(i for i, x in enumerate(frame.bvh().instances) if x.name == "figure")
    (row,) = leaves[leaves[:, INSTANCE_ID_WORD] == number]
    return int(row[INSTANCE_BLAS_BASE_WORD]) * UNIT_BYTES


def figure_bytes(frame: Any) -> int:
    bvh = frame.bvh()
    return bvh.blas_stats[next(i.blas for i in bvh.instances if i.name == "figure")].bytes


def test_the_tlas_names_the_tree_of_its_own_frame(
    device: Any, figure: Any, same_frames: Any
) -> None:
    """Refit, build, refit and build again in turn, of one scene on the GPU."""
    prepared = prepare(figure.scene, BuildOptions("lbvh", reinsertion=0), "object")
    on_gpu = gpu_scene.GpuScene(device, prepared)
    frames = {
        update: HybridFrame(device, prepared, FrameOptions(*figure.size, update=update), on_gpu)
        for update in ("refit", "rebuild")
    }
    bases = []
    for update, time in (("refit", 0.7), ("rebuild", 0.7), ("refit", 1.3), ("rebuild", 1.3)):
        frame = figure.show(frames[update], time)
        bases.append(named_base(frame))
        assert validate(frame.bvh()) == []
        still = figure.frame(figure.still(time))
        same_frames(figure.see(frame), figure.see(figure.show(still, None)))
    assert bases[0] == bases[2] != bases[1] == bases[3]


def test_a_larger_tree_than_before_takes_its_place(
    device: Any, figure: Any, same_frames: Any
) -> None:
    """Prepared in blocks of up to four triangles in halves, built anew in single ones of floats."""
    small = prepare(figure.scene, BuildOptions("lbvh", reinsertion=0, nodes="fp16"), "object")
    large = replace(small.bvh, options=replace(small.bvh.options, nodes="fp32", leaf=1))
    scene = replace(small, bvh=large)
    frame = HybridFrame(device, scene, FrameOptions(*figure.size, update="rebuild"))
    before = figure_bytes(frame)
    for time in (0.7, 1.3):
        figure.show(frame, time)
        assert figure_bytes(frame) > 1.3 * before
        assert validate(frame.bvh()) == [] and frame.moving.messages() == []
        still = figure.frame(figure.still(time))
        same_frames(figure.see(frame), figure.see(figure.show(still, None)))


@pytest.mark.parametrize("count", [1, 2, 7, 300])
@pytest.mark.parametrize("builder", ["lbvh", "spatial"])
def test_no_build_outgrows_its_room(device: Any, rng: Any, builder: str, count: int) -> None:
    """Triangles that share nothing and cross each other, one a block, all nodes of floats."""
    options = BuildOptions(builder, reinsertion=0, nodes="fp32", leaf=1)
    gpu = GpuBlasBuilder(device, build_capacity(count), options)
    corners = rng.normal(size=(count, 3, 3)).astype(np.float32)
    ids = np.zeros(count, np.uint32), np.arange(count, dtype=np.uint32)
    blas = gpu.build(corners, *ids, np.ones(1, np.bool_))
    assert 4 * len(blas.words) <= room_bytes(count, options)


def test_a_place_that_is_too_small_is_said_and_not_read(
    device: Any, figure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames of it are invalid, waited for or not, until another tree is there."""
    monkeypatch.setattr(gpu_scene, "room_bytes", lambda triangles, options: 1024)
    prepared = prepare(figure.scene, BuildOptions("lbvh", reinsertion=0), "object")
    on_gpu = gpu_scene.GpuScene(device, prepared)
    frame, refitted = (
        HybridFrame(device, prepared, FrameOptions(*figure.size, update=update), on_gpu)
        for update in ("rebuild", "refit")
    )
    moment = replace(frame.inputs, clip=figure.clip, time=0.9)
    stats = frame.run(0, inputs=moment)
    (line,) = frame.moving.messages()
    assert not stats.valid and line in stats.failures
    assert frame.submit(0, inputs=moment)
    while (late := frame.poll()) is None:
        pass
    assert not late.valid and line in late.failures
    figure.show(refitted, 0.9)  # which asserts that it is valid
    assert not frame.run(0, inputs=moment).valid
    assert "mesh 0" in line and "has room for 1,024" in line
    with pytest.raises(LimitError, match="has room for 1,024"):
        frame.bvh()
