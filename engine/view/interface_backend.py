"""Draws Dear ImGui's draw lists with wgpu.

In place of wgpu's own `ImguiWgpuBackend`, which makes a new bind group for every draw (its cache is
asked under another name than it stores: three times the host's time for 60 draws), repeats textures
and raises every colour to a power (a quarter of a CPU driver's time), and aborts when a lost
device's textures are made anew.
"""

import ctypes
from typing import Any

import numpy as np
from imgui_bundle import imgui

from engine.gpu.device import Device
from engine.gpu.shader import compose

_INDEX_FORMAT = "uint32" if imgui.INDEX_SIZE == 4 else "uint16"
_VERTEX_ATTRIBUTES = (("float32x2", 0), ("float32x2", 8), ("unorm8x4", 16))  # ImDrawVert
_SMALLEST_BUFFER = 1 << 16


class InterfaceBackend:
    """One per device and target format; `draws` counts the draw calls of the last render."""

    def __init__(self, device: Device, target_format: str) -> None:
        io = imgui.get_io()
        io.backend_flags |= imgui.BackendFlags_.renderer_has_vtx_offset
        io.backend_flags |= imgui.BackendFlags_.renderer_has_textures
        self.draws = 0
        self._device = device.wgpu
        self._vertices: Any = None
        self._indices: Any = None
        self._views: dict[int, Any] = {}  # by the number that imgui knows a texture by
        self._glyphs: dict[int, Any] = {}  # imgui's own textures among them
        self._bind_groups: dict[int, Any] = {}
        self._images: dict[int, tuple[Any, Any]] = {}  # id of a view -> (view, imgui's reference)
        self._next_number = 1  # 0 is imgui's "no texture"
        self._make_pipeline(device, target_format)

    def _make_pipeline(self, device: Device, target_format: str) -> None:
        module = device.compile(compose("engine/view/shaders/interface.wgsl"))
        blend = {"src_factor": "one", "dst_factor": "one-minus-src-alpha"}
        self._pipeline = self._device.create_render_pipeline(
            label="interface",
            layout="auto",
            vertex={
                "module": module,
                "entry_point": "corner",
                "buffers": [
                    {
                        "array_stride": imgui.VERTEX_SIZE,
                        "attributes": [
                            {"format": kind, "offset": offset, "shader_location": place}
                            for place, (kind, offset) in enumerate(_VERTEX_ATTRIBUTES)
                        ],
                    }
                ],
            },
            primitive={"topology": "triangle-list"},
            fragment={
                "module": module,
                "entry_point": "shade",
                "constants": {"target_encodes": float(target_format.endswith("-srgb"))},
                "targets": [
                    {
                        "format": target_format,
                        "blend": {"color": blend | {"src_factor": "src-alpha"}, "alpha": blend},
                    }
                ],
            },
        )
        self._screen = self._device.create_buffer(
            label="interface screen", size=16, usage="UNIFORM|COPY_DST"
        )
        sampler = self._device.create_sampler(mag_filter="linear", min_filter="linear")
        self._globals = self._device.create_bind_group(
            layout=self._pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": 0, "resource": {"buffer": self._screen}},
                {"binding": 1, "resource": sampler},
            ],
        )
        self._texture_layout = self._pipeline.get_bind_group_layout(1)

    # ---- textures ---------------------------------------------------------------------------

    def image(self, view: Any) -> Any:
        """imgui's reference to a texture view, the same for the same view."""
        known = self._images.get(id(view))
        if known is None:
            number = self._take_number()
            self._views[number] = view
            known = self._images[id(view)] = (view, imgui.ImTextureRef(number))
        return known[1]

    def forget(self, view: Any) -> None:
        """Drops a view that `image` was given; unknown ones are no error."""
        known = self._images.pop(id(view), None)
        if known is not None:
            self._drop(known[1].get_tex_id())

    def release_textures(self) -> None:
        """Makes imgui ask for its textures anew: this backend's device is gone, or soon will be."""
        for texture in imgui.get_platform_io().textures:
            texture.set_tex_id(0)
            texture.set_status(imgui.ImTextureStatus.destroyed)

    def _update_texture(self, texture: Any) -> None:
        """Makes, updates or drops one of imgui's own textures (glyphs), as imgui asks."""
        status = imgui.ImTextureStatus
        if texture.status in (status.want_create, status.want_updates):
            x, y, w, h = 0, 0, texture.width, texture.height
            if texture.status == status.want_create:
                made = self._device.create_texture(
                    label="interface glyphs",
                    size=(w, h, 1),
                    format="rgba8unorm",
                    usage="COPY_DST|TEXTURE_BINDING",
                )
                number = self._take_number()
                self._glyphs[number], self._views[number] = made, made.create_view()
                texture.set_tex_id(number)
            else:
                box = texture.update_rect
                x, y, w, h = box.x, box.y, box.w, box.h
            row = texture.width * texture.bytes_per_pixel
            self._device.queue.write_texture(
                {"texture": self._glyphs[texture.tex_id], "origin": (x, y, 0)},
                texture.get_pixels_array()[y * row + x * texture.bytes_per_pixel :],
                {"bytes_per_row": row, "rows_per_image": h},
                (w, h, 1),
            )
            texture.set_status(status.ok)
        elif texture.status == status.want_destroy and texture.unused_frames > 0:
            self._drop(texture.tex_id)
            texture.set_tex_id(0)
            texture.set_status(status.destroyed)

    def _take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _drop(self, number: int) -> None:
        for table in (self._glyphs, self._views, self._bind_groups):
            table.pop(number, None)

    def _bind_group_of(self, number: int) -> Any:
        """None for an image that was forgotten after the interface used it."""
        group = self._bind_groups.get(number)
        if group is None and number in self._views:
            group = self._bind_groups[number] = self._device.create_bind_group(
                layout=self._texture_layout,
                entries=[{"binding": 0, "resource": self._views[number]}],
            )
        return group

    # ---- drawing ----------------------------------------------------------------------------

    def _upload(self, draw_data: Any) -> None:
        """All lists' vertices in one buffer and all indices in another: two writes a frame."""
        vertices = [
            ctypes.string_at(v.data_address(), v.size() * imgui.VERTEX_SIZE)
            for v in (commands.vtx_buffer for commands in draw_data.cmd_lists)
            if v.size()
        ]
        indices = [
            ctypes.string_at(i.data_address(), i.size() * imgui.INDEX_SIZE)
            for i in (commands.idx_buffer for commands in draw_data.cmd_lists)
            if i.size()
        ]
        self._vertices = self._write(self._vertices, b"".join(vertices), "VERTEX")
        self._indices = self._write(self._indices, b"".join(indices), "INDEX")
        size, corner = draw_data.display_size, draw_data.display_pos
        scale = np.array([2.0 / size.x, -2.0 / size.y])
        shift = np.array([-1.0, 1.0]) - scale * [corner.x, corner.y]
        screen = np.concatenate([scale, shift]).astype(np.float32)
        self._device.queue.write_buffer(self._screen, 0, screen)

    def _write(self, buffer: Any, data: bytes, usage: str) -> Any:
        data += bytes(-len(data) % 4)  # a write's size is a multiple of four
        if buffer is None or buffer.size < len(data):
            # Not destroyed: the frame before may still be in flight; it goes when that is done.
            buffer = self._device.create_buffer(
                label=f"interface {usage.lower()}",
                size=max(_SMALLEST_BUFFER, 1 << len(data).bit_length()),
                usage=f"{usage}|COPY_DST",
            )
        self._device.queue.write_buffer(buffer, 0, data)
        return buffer

    def render(self, draw_data: Any, render_pass: Any, size: tuple[int, int]) -> None:
        """Encodes `draw_data` into a render pass whose target has `size` pixels."""
        self.draws = 0
        if draw_data is None:  # nothing was built yet
            return
        for texture in draw_data.textures or ():
            if texture.status != imgui.ImTextureStatus.ok:
                self._update_texture(texture)
        if not draw_data.total_idx_count:
            return
        self._upload(draw_data)
        render_pass.set_pipeline(self._pipeline)
        render_pass.set_vertex_buffer(0, self._vertices)
        render_pass.set_index_buffer(self._indices, _INDEX_FORMAT)
        render_pass.set_bind_group(0, self._globals)

        width, height = size
        scale_x, scale_y = draw_data.framebuffer_scale
        left, top = draw_data.display_pos
        bound: int | None = None
        scissor: tuple[int, int, int, int] | None = None
        first_vertex = first_index = 0
        for commands in draw_data.cmd_lists:
            for command in commands.cmd_buffer:
                clip = command.clip_rect
                x0 = max(0, int((clip.x - left) * scale_x))
                y0 = max(0, int((clip.y - top) * scale_y))
                x1 = min(width, int((clip.z - left) * scale_x))
                y1 = min(height, int((clip.w - top) * scale_y))
                if x1 <= x0 or y1 <= y0 or not command.elem_count:
                    continue
                number = command.tex_ref.get_tex_id()
                if number != bound:
                    group = self._bind_group_of(number)
                    if group is None:
                        continue
                    render_pass.set_bind_group(1, group)
                    bound = number
                if scissor != (x0, y0, x1, y1):
                    scissor = (x0, y0, x1, y1)
                    render_pass.set_scissor_rect(x0, y0, x1 - x0, y1 - y0)
                render_pass.draw_indexed(
                    command.elem_count,
                    1,
                    command.idx_offset + first_index,
                    command.vtx_offset + first_vertex,
                    0,
                )
                self.draws += 1
            first_vertex += commands.vtx_buffer.size()
            first_index += commands.idx_buffer.size()
