from typing import Any

import numpy as np
import pytest

from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.cluster_records import SEGMENT
from bvh.gpu.tlas_sort import MOST_TILES, TWINS, TileSort
from engine.gpu.stage import Stage

CAPACITY = 5 * SEGMENT + 40


@pytest.mark.parametrize("lanes", [64, 256])
@pytest.mark.parametrize("kept", [0, 1, 511, 512, 513, 1500, CAPACITY])
@pytest.mark.parametrize("keys_of", ["random", "few", "equal", "descending"])
def test_twins_and_the_stable_order(
    device: Any, rng: np.random.Generator, lanes: int, kept: int, keys_of: str
) -> None:
    keys = rng.integers(0, 2**31, CAPACITY).astype(np.uint32)
    if keys_of == "few":
        keys %= 7
    if keys_of == "equal":
        keys[:] = 2**31 - 1
    if keys_of == "descending":
        keys = np.sort(keys)[::-1].copy()
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = kept
    sort = TileSort(device, CAPACITY)
    slots = {"lanes": f"bvh/gpu/shaders/lanes_{lanes}.wgsl"}
    for name, twin in TWINS.items():
        path = f"bvh/gpu/shaders/{name}.wgsl"
        sort.stages[name] = Stage(device, name, path, twin=twin, slots=slots)
    dirt = rng.integers(0, 2**32, CAPACITY, np.uint32)
    cpu = {
        "state": state,
        "keys": keys,
        "order": dirt.copy(),
        "tile_keys": np.zeros(6 * SEGMENT, np.uint32),
        "tile_items": np.zeros(6 * SEGMENT, np.uint32),
    }
    gpu = {name: device.upload(name, cpu[name]) for name in ("state", "keys", "order")}
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
    assert (got[:kept] == np.argsort(keys[:kept], kind="stable")).all()
    assert (got[kept:] == dirt[kept:]).all()


def test_over_capacity(device: Any) -> None:
    with pytest.raises(ValueError, match="a sort by tiles takes 16,384"):
        TileSort(device, MOST_TILES * SEGMENT + 1)
