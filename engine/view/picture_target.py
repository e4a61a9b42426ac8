"""The texture that a window shows as its picture: a frame's pixels, scaled, with lines over them.

It has the size of the place on the screen, so that lines stay sharp over a picture that was
rendered smaller. Colours are sRGB bytes, as PNG files hold them.
"""

from collections.abc import Callable
from typing import Any

from engine.gpu.device import Device
from engine.gpu.render_scope import RenderPasses
from engine.gpu.shader import compose

FORMAT = "rgba8unorm"


class PictureTarget:
    """`view` is a texture view of `size` (width, height), made anew by `resize`."""

    def __init__(self, device: Device, size: tuple[int, int]) -> None:
        self.device = device
        gpu = device.wgpu
        module = device.compile(compose("engine/view/shaders/blit.wgsl"))
        self._layout = gpu.create_bind_group_layout(
            entries=[
                {"binding": 0, "visibility": "FRAGMENT", "texture": {"sample_type": "float"}},
                {"binding": 1, "visibility": "FRAGMENT", "sampler": {"type": "filtering"}},
            ]
        )
        self._pipeline = gpu.create_render_pipeline(
            label="blit",
            layout=gpu.create_pipeline_layout(bind_group_layouts=[self._layout]),
            vertex={"module": module, "entry_point": "vertex_main"},
            primitive={"topology": "triangle-list"},
            fragment={
                "module": module,
                "entry_point": "fragment_main",
                "targets": [{"format": FORMAT}],
            },
        )
        self._samplers = {
            filtering: gpu.create_sampler(mag_filter=filtering, min_filter=filtering)
            for filtering in ("nearest", "linear")
        }
        self._source: tuple[Any, str, Any] | None = None
        self._passes = RenderPasses("blit", clear=(0.0, 0.0, 0.0, 0.0))
        self.resize(size)

    def resize(self, size: tuple[int, int]) -> None:
        """A new texture, cleared to black by WebGPU; the old one lives while somebody draws it."""
        self.size = (max(1, size[0]), max(1, size[1]))
        self.texture = self.device.wgpu.create_texture(
            label="picture target",
            size=(*self.size, 1),
            format=FORMAT,
            usage="RENDER_ATTACHMENT|TEXTURE_BINDING|COPY_SRC",
        )
        self.view = self.texture.create_view()

    def blit(
        self,
        encoder: Any,
        source: Any,
        *,
        smooth: bool,
        over: Callable[[Any], None] | None = None,
    ) -> None:
        """Fills the target with the texture view `source` of any size. `smooth` blends between
        source pixels: for colours, never for ids or counts. `over` draws over it in the same render
        pass."""
        filtering = "linear" if smooth else "nearest"
        if self._source is None or self._source[:2] != (source, filtering):
            group = self.device.wgpu.create_bind_group(
                layout=self._layout,
                entries=[
                    {"binding": 0, "resource": source},
                    {"binding": 1, "resource": self._samplers[filtering]},
                ],
            )
            self._source = (source, filtering, group)
        scope = self._passes.begin(encoder, self.view)
        scope.set_pipeline(self._pipeline)
        scope.set_bind_group(0, self._source[2])
        scope.draw(3)
        if over is not None:
            over(scope)
        scope.end()
