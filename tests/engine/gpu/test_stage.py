"""Stage: bindings by name, the limit of storage buffers, dispatch, the twin."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.shader import ShaderError

SUM = """
override FACTOR: u32 = 1u;
// Out of order on purpose: the index decides, not the place.
@group(0) @binding(2) var<storage, read_write> total: array<u32>;
@group(0) @binding(0) var<uniform> offset: vec4u;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&values)) { total[id.x] = FACTOR * values[id.x] + offset.y; }
}
"""


def resources(device: Any, values: Any) -> dict[str, Any]:
    return {
        "unused": device.buffer("unused", 16),
        "total": device.buffer("total", 4 * len(values)),
        "values": device.upload("values", np.asarray(values, np.uint32)),
        "offset": device.upload("offset", np.array([0, 7, 0, 0], np.uint32), "UNIFORM|COPY_DST"),
    }


def test_buffers_are_bound_by_name(device: Any, stage: Any) -> None:
    item = stage(SUM, constants={"FACTOR": 3})
    assert [b.name for b in item.bindings] == ["offset", "values", "total"]
    assert [b.space for b in item.bindings] == ["uniform", "storage, read", "storage, read_write"]
    bound = resources(device, range(8))
    item.run(bound, 2)
    assert device.read(bound["total"])[:8].tolist() == [3 * n + 7 for n in range(8)]


def test_other_buffers_of_the_same_names_are_used(device: Any, stage: Any) -> None:
    item = stage(SUM)
    first, second = resources(device, [1, 2, 3, 4]), resources(device, [10, 20, 30, 40])
    for bound in (first, second, first):
        item.run(bound, 1)
    assert device.read(second["total"]).tolist() == [17, 27, 37, 47]
    assert device.read(first["total"]).tolist() == [8, 9, 10, 11]


def test_a_missing_buffer_is_named(device: Any, stage: Any) -> None:
    bound = resources(device, [1])
    del bound["values"]
    with pytest.raises(KeyError, match="values"):
        stage(SUM).run(bound, 1)


def bindings(count: int, uniforms: int = 0) -> str:
    lines = [
        f"@group(0) @binding({i}) var<storage, read_write> b{i}: array<u32>;" for i in range(count)
    ]
    lines += [f"@group(0) @binding({count + i}) var<uniform> u{i}: vec4u;" for i in range(uniforms)]
    uses = "".join(f"b{i}[0] = {i + 1}u; " for i in range(count))
    return "\n".join(lines) + f"\n@compute @workgroup_size(1) fn main() {{ {uses} }}\n"


def test_eight_storage_buffers_are_allowed_and_nine_refused(device: Any, stage: Any) -> None:
    item = stage(bindings(8, uniforms=1))
    bound = {f"b{i}": device.buffer(f"b{i}", 16) for i in range(8)}
    bound["u0"] = device.buffer("u0", 16, "UNIFORM")
    item.run(bound, 1)
    assert [int(device.read(bound[f"b{i}"])[0]) for i in range(8)] == list(range(1, 9))
    with pytest.raises(ShaderError, match="more than 8 storage buffers"):
        stage(bindings(9))


def test_a_gap_in_the_binding_numbers_is_refused(stage: Any) -> None:
    with pytest.raises(ShaderError, match=r"not numbered 0\.\.0"):
        stage(
            "@group(0) @binding(1) var<storage, read_write> a: array<u32>;\n"
            "@compute @workgroup_size(1) fn main() { a[0] = 1u; }\n"
        )


def test_no_groups_is_no_dispatch(device: Any, stage: Any) -> None:
    bound = resources(device, [5])
    stage(SUM).run(bound, 0)
    assert device.read(bound["total"])[0] == 0


def test_the_twin_gets_the_buffers_in_binding_order(device: Any, stage: Any) -> None:
    def twin(offset: Any, values: Any, total: Any) -> None:
        total[:] = values + offset[1]

    item = stage(SUM, twin=twin)
    arrays = {
        "values": np.array([4, 5], np.uint32),
        "total": np.zeros(2, np.uint32),
        "offset": np.array([0, 7, 0, 0], np.uint32),
    }
    item.run_cpu(arrays)
    bound = resources(device, [4, 5])
    item.run(bound, 1)
    assert arrays["total"].tolist() == device.read(bound["total"])[:2].tolist() == [11, 12]
    with pytest.raises(ValueError, match="test has no twin"):
        stage(SUM).run_cpu(arrays)


def test_textures_are_bound_by_name(device: Any, stage: Any) -> None:
    item = stage(
        """
        @group(0) @binding(0) var source: texture_2d<u32>;
        @group(0) @binding(1) var target_texture: texture_storage_2d<rgba32uint, write>;
        @compute @workgroup_size(2, 2)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            textureStore(target_texture, id.xy, textureLoad(source, id.xy, 0) + vec4u(id, 1u));
        }
        """
    )
    usage = "TEXTURE_BINDING|STORAGE_BINDING|COPY_SRC|COPY_DST"
    textures = [
        device.wgpu.create_texture(size=(2, 2, 1), format="rgba32uint", usage=usage)
        for _ in range(2)
    ]
    where = {"texture": textures[0], "mip_level": 0, "origin": (0, 0, 0)}
    layout = {"offset": 0, "bytes_per_row": 32, "rows_per_image": 2}
    device.wgpu.queue.write_texture(where, np.full((2, 2, 4), 10, np.uint32), layout, (2, 2, 1))
    views = [texture.create_view() for texture in textures]
    item.run({"source": views[0], "target_texture": views[1]}, 1)
    data = device.wgpu.queue.read_texture({**where, "texture": textures[1]}, layout, (2, 2, 1))
    got = np.frombuffer(data, np.uint32).reshape(2, 2, 4)
    assert got[1, 0].tolist() == [10, 11, 10, 11] and got[0, 1].tolist() == [11, 10, 10, 11]
