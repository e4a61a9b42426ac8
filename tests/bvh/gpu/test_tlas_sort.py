from typing import Any

import numpy as np
import pytest

from bvh.gpu.build_records import BUILD_STATE, LARGEST
from bvh.gpu.cluster_records import SEGMENT
from bvh.gpu.scene_box import centroids
from bvh.gpu.sorted_boxes import sort_boxes
from bvh.gpu.tlas_records import INSTANCE_GROUP, TLAS_PARAMETERS
from bvh.gpu.tlas_sort import GRID_BITS, MOST_TILES, SIZE_BITS, TWINS, TileSort
from engine.gpu.stage import Stage

CAPACITY = 5 * SEGMENT + 40


@pytest.mark.parametrize("lanes", [64, 256])
@pytest.mark.parametrize("kept", [0, 1, 511, 512, 513, 1500, CAPACITY])
@pytest.mark.parametrize("kind", ["random", "few", "equal", "descending"])
def test_twins_and_the_order_of_sorted_boxes(
    device: Any, rng: np.random.Generator, lanes: int, kept: int, kind: str
) -> None:
    low = rng.normal(size=(CAPACITY, 3)) * [100, 30, 1]
    if kind == "few":
        low = np.floor(low / 50)
    if kind == "equal":
        low[:] = 3
    if kind == "descending":
        low = -np.arange(CAPACITY)[:, None] * np.array([1.0, 2.0, 0.1])
    size = 0 if kind == "equal" else 10.0 ** rng.uniform(-4, 1, (CAPACITY, 1)) * rng.random(3)
    boxes = np.stack([low, low + size], axis=1).astype(np.float32)
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = kept
    parameters = np.zeros(1, TLAS_PARAMETERS.dtype)
    parameters["bound"] = CAPACITY
    # What is kept lies anywhere in what was given: only the box around all matters.
    summaries = np.zeros(-(-CAPACITY // 256), INSTANCE_GROUP.dtype)
    summaries["low"], summaries["high"] = LARGEST, -LARGEST
    for i in range(len(summaries)):
        centre = centroids(boxes[:kept][i :: len(summaries)])
        summaries["low"][i] = centre.min(axis=0, initial=LARGEST)
        summaries["high"][i] = centre.max(axis=0, initial=-LARGEST)
    sort = TileSort(device, CAPACITY)
    slots = {"lanes": f"bvh/gpu/shaders/lanes_{lanes}.wgsl"}
    for name, twin in TWINS.items():
        path = f"bvh/gpu/shaders/{name}.wgsl"
        sort.stages[name] = Stage(device, name, path, twin=twin, slots=slots)
    dirt = rng.integers(0, 2**32, CAPACITY, np.uint32)
    cpu = {
        "parameters": parameters,
        "state": state,
        "boxes": boxes.reshape(-1),
        "summaries": summaries,
        "order": dirt.copy(),
        "tile_keys": np.zeros(6 * SEGMENT, np.uint32),
        "tile_items": np.zeros(6 * SEGMENT, np.uint32),
    }
    gpu = {
        name: device.upload(name, cpu[name]) for name in ("state", "boxes", "summaries", "order")
    }
    gpu["parameters"] = device.upload("parameters", parameters, "UNIFORM|COPY_DST")
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    sort.encode(scope, CAPACITY, gpu)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
    for stage in sort.stages.values():
        stage.run_cpu(cpu)
    for name in ("tile_keys", "tile_items"):
        assert (device.read(sort.resources[name]) == cpu[name]).all(), name
    got = device.read(gpu["order"])
    assert (got == cpu["order"]).all()
    if kept:
        assert (got[:kept] == sort_boxes(boxes[:kept], GRID_BITS, SIZE_BITS)[3]).all()
    assert (got[kept:] == dirt[kept:]).all()


def test_over_capacity(device: Any) -> None:
    with pytest.raises(ValueError, match="a sort by tiles takes 16,384"):
        TileSort(device, MOST_TILES * SEGMENT + 1)
