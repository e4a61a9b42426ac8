"""A pass below wgpu-py's interface draws what one of wgpu-py's does, and loses no error."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.render_scope import RenderPasses

SHADER = """
@vertex fn corner(@builtin(vertex_index) v: u32, @builtin(instance_index) i: u32)
    -> @builtin(position) vec4f {
    let at = vec2f(f32(v % 2u), f32(v / 2u)) * 0.5;
    return vec4f(at - 1.0 + 0.75 * f32(i), 0.0, 1.0);
}
@group(0) @binding(0) var<storage, read> colour: array<vec4f>;
@fragment fn shade() -> @location(0) vec4f { return colour[0]; }
"""
SIZE = 16
CLEAR = (0.0, 0.0, 1.0, 1.0)


class Target:
    """A small picture, a pipeline, and what it is drawn with."""

    def __init__(self, device: Any) -> None:
        gpu = device.wgpu
        self.gpu = gpu
        self.texture = gpu.create_texture(
            size=(SIZE, SIZE, 1), format="rgba8unorm", usage="RENDER_ATTACHMENT|COPY_SRC"
        )
        self.view = self.texture.create_view()
        module = gpu.create_shader_module(code=SHADER)
        self.pipeline = gpu.create_render_pipeline(
            layout="auto",
            vertex={"module": module, "entry_point": "corner"},
            primitive={"topology": "triangle-list"},
            fragment={
                "module": module,
                "entry_point": "shade",
                "targets": [{"format": "rgba8unorm"}],
            },
        )
        colour = device.upload("colour", np.array([1.0, 0.0, 0.0, 1.0], np.float32))
        self.group = gpu.create_bind_group(
            layout=self.pipeline.get_bind_group_layout(0),
            entries=[{"binding": 0, "resource": {"buffer": colour}}],
        )
        self.indices = device.upload(
            "corners", np.array([0, 1, 2, 2, 1, 3], np.uint32), "INDEX|COPY_DST"
        )

    def read(self) -> Any:
        data = self.gpu.queue.read_texture(
            {"texture": self.texture},
            {"bytes_per_row": 4 * SIZE, "rows_per_image": SIZE},
            (SIZE, SIZE, 1),
        )
        return np.frombuffer(data, np.uint8).reshape(SIZE, SIZE, 4).copy()


def encode(target: Target, scope: Any, *, native: bool) -> None:
    scope.set_pipeline(target.pipeline)
    scope.set_bind_group(0, target.group)
    scope.draw(3, 1, 1)
    if native:
        scope.set_index_buffer(target.indices)
    else:
        scope.set_index_buffer(target.indices, "uint32")
    scope.draw_indexed(6, 2)
    scope.end()


@pytest.mark.parametrize("clear", [CLEAR, None])
def test_it_draws_what_wgpu_draws(device: Any, clear: Any) -> None:
    pictures = []
    for native in (True, False):
        target = Target(device)
        passes = RenderPasses("here", clear)
        for _ in range(2):  # the second time with the descriptor of the first
            encoder = target.gpu.create_command_encoder()
            if native:
                scope = passes.begin(encoder, target.view)
            else:
                how = {"load_op": "clear", "clear_value": clear} if clear else {"load_op": "load"}
                attachment = {"view": target.view, "store_op": "store", **how}
                scope = encoder.begin_render_pass(color_attachments=[attachment])
            encode(target, scope, native=native)
            target.gpu.queue.submit([encoder.finish()])
        pictures.append(target.read())
    np.testing.assert_array_equal(*pictures)
    colours = np.unique(pictures[0].reshape(-1, 4), axis=0).tolist()
    ground = [0, 0, 255, 255] if clear else [0, 0, 0, 0]
    assert sorted(colours) == sorted([[255, 0, 0, 255], ground])


def test_errors_are_raised_at_the_end(device: Any) -> None:
    target = Target(device)
    encoder = target.gpu.create_command_encoder()
    scope = RenderPasses("here", CLEAR).begin(encoder, target.view)
    scope.draw(3)  # no pipeline
    scope.end()
    with pytest.raises(Exception, match="ipeline"):
        encoder.finish()
