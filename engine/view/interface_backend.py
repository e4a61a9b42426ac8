"""Draws Dear ImGui's draw lists with wgpu.

In place of wgpu's own `ImguiWgpuBackend`, which makes a new bind group for every draw (its cache is
asked under another name than it stores: three times the host's time for 60 draws), repeats textures
and raises every colour to a power (a quarter of a CPU driver's time), and aborts when a lost
device's textures are made anew.

What costs the host's time is calls into wgpu, some microseconds each. So all that a frame has to
say goes up in one write, and the shader finds its vertices and clips by itself: consecutive
commands with one texture are one draw, whatever windows and clip rectangles they belong to.
"""

import ctypes
import struct
from array import array
from typing import Any

import numpy as np
from imgui_bundle import imgui

from engine.gpu.device import Device
from engine.gpu.shader import compose
from engine.gpu.structs import Field, Struct

_SMALLEST_WORDS = 1 << 15
assert array("I").itemsize == 4
assert (imgui.VERTEX_SIZE, imgui.INDEX_SIZE) == (20, 4), "the shader reads them as words"

# A frame's words: this, the commands, all lists' vertices, then all lists' indices.
INTERFACE_HEADER = Struct(
    "InterfaceHeader",
    Field("scale", "vec2f"),  # logical pixels to clip space
    Field("shift", "vec2f"),
    Field("commands", "u32"),  # how many
    Field("vertices", "u32"),  # where they begin, in words behind the header
    Field("indices", "u32"),
    Field("padding", "u32"),
)
# Of a command: left, top, right, bottom of its clip rectangle in pixels, the first of its indices
# among those of all lists (ascending), and the vertex that they count from.
_COMMAND_WORDS = 6
_HEADER_WORDS = INTERFACE_HEADER.size // 4
_HEADER = struct.Struct("<4f4I")  # the same, which a frame packs faster than NumPy's fields
assert _HEADER.size == INTERFACE_HEADER.size


class InterfaceBackend:
    """One per device and target format; `draws` counts the draw calls of the last render."""

    def __init__(self, device: Device, target_format: str) -> None:
        io = imgui.get_io()
        io.backend_flags |= imgui.BackendFlags_.renderer_has_vtx_offset
        io.backend_flags |= imgui.BackendFlags_.renderer_has_textures
        self.draws = 0
        self._device = device.wgpu
        self._views: dict[int, Any] = {}  # by the number that imgui knows a texture by
        self._glyphs: dict[int, Any] = {}  # imgui's own textures among them
        self._bind_groups: dict[int, Any] = {}
        self._images: dict[int, tuple[Any, Any]] = {}  # id of a view -> (view, imgui's reference)
        self._runs: list[tuple[int, int, int]] = []  # of the last render
        self._next_number = 1  # 0 is imgui's "no texture"
        self._make_pipeline(device, target_format)
        self._make_room(_SMALLEST_WORDS)

    def _make_pipeline(self, device: Device, target_format: str) -> None:
        module = device.compile(compose("engine/view/shaders/interface.wgsl"))
        blend = {"src_factor": "one", "dst_factor": "one-minus-src-alpha"}
        self._pipeline = self._device.create_render_pipeline(
            label="interface",
            layout="auto",
            vertex={"module": module, "entry_point": "corner"},
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
        self._sampler = self._device.create_sampler(mag_filter="linear", min_filter="linear")
        self._texture_layout = self._pipeline.get_bind_group_layout(1)

    def _make_room(self, words: int) -> None:
        """For as many words a frame, here and on the device. The old buffer is not destroyed: the
        frame before may still be in flight."""
        self._words = np.zeros(words, np.uint32)
        self._buffer = self._device.create_buffer(
            label="interface", size=4 * words, usage="STORAGE|COPY_DST"
        )
        self._frame_group = self._device.create_bind_group(
            layout=self._pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": 0, "resource": {"buffer": self._buffer}},
                {"binding": 1, "resource": self._sampler},
            ],
        )

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

    def render(self, draw_data: Any, render_pass: Any) -> None:
        """Encodes `draw_data` into a render pass."""
        self.draws, self._runs = 0, []
        if draw_data is None:  # nothing was built yet
            return
        for texture in draw_data.textures or ():
            if texture.status != imgui.ImTextureStatus.ok:
                self._update_texture(texture)
        if not draw_data.total_idx_count:
            return
        commands, self._runs = _read_commands(draw_data)
        self._upload(draw_data, commands)
        self.render_again(render_pass)

    def render_again(self, render_pass: Any) -> None:
        """What the last `render` has uploaded, with what its images show by now."""
        self.draws = 0
        render_pass.set_pipeline(self._pipeline)
        render_pass.set_bind_group(0, self._frame_group)
        for number, begin, end in self._runs:
            group = self._bind_group_of(number)
            if group is not None:
                render_pass.set_bind_group(1, group)
                render_pass.draw(end - begin, 1, begin)
                self.draws += 1

    def _upload(self, draw_data: Any, commands: "array[int]") -> None:
        """All of the frame in one write."""
        vertices = len(commands)
        indices = vertices + draw_data.total_vtx_count * imgui.VERTEX_SIZE // 4
        used = _HEADER_WORDS + indices + draw_data.total_idx_count
        if used > len(self._words):
            self._make_room(1 << used.bit_length())
        size, corner = draw_data.display_size, draw_data.display_pos
        x, y = 2.0 / size.x, -2.0 / size.y
        shift = -1.0 - x * corner.x, 1.0 - y * corner.y
        _HEADER.pack_into(
            self._words.data, 0, x, y, *shift, vertices // _COMMAND_WORDS, vertices, indices, 0
        )
        self._words[_HEADER_WORDS : _HEADER_WORDS + vertices] = np.frombuffer(commands, np.uint32)
        start = self._words.ctypes.data + INTERFACE_HEADER.size
        vertex, index = start + 4 * vertices, start + 4 * indices
        for made in draw_data.cmd_lists:
            data = made.vtx_buffer
            size_bytes = data.size() * imgui.VERTEX_SIZE
            ctypes.memmove(vertex, data.data_address(), size_bytes)
            vertex += size_bytes
            data = made.idx_buffer
            size_bytes = data.size() * imgui.INDEX_SIZE
            ctypes.memmove(index, data.data_address(), size_bytes)
            index += size_bytes
        self._device.queue.write_buffer(self._buffer, 0, self._words[:used])


def _read_commands(draw_data: Any) -> tuple["array[int]", list[tuple[int, int, int]]]:
    """The words of all lists' commands in order; and what can be drawn at once, as the number of a
    texture with the first index and the one behind the last."""
    scale_x, scale_y = draw_data.framebuffer_scale
    left, top = draw_data.display_pos
    words = array("I")
    runs: list[tuple[int, int, int]] = []
    first_vertex = first_index = 0
    for made in draw_data.cmd_lists:
        for command in made.cmd_buffer:
            count = command.elem_count
            if not count:
                continue
            clip = command.clip_rect
            begin = first_index + command.idx_offset
            words.extend(
                (
                    max(0, int((clip.x - left) * scale_x)),
                    max(0, int((clip.y - top) * scale_y)),
                    max(0, int((clip.z - left) * scale_x)),
                    max(0, int((clip.w - top) * scale_y)),
                    begin,
                    first_vertex + command.vtx_offset,
                )
            )
            number = command.tex_ref.get_tex_id()
            if runs and runs[-1][0] == number:
                runs[-1] = (number, runs[-1][1], begin + count)
            else:
                runs.append((number, begin, begin + count))
        first_vertex += made.vtx_buffer.size()
        first_index += made.idx_buffer.size()
    return words, runs


def wgsl() -> str:
    """The header that the shader reads."""
    return INTERFACE_HEADER.wgsl()
