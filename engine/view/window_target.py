"""A texture of the window's size that the interface is drawn into where there is no display, and
that a picture of it is read from."""

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.gpu.device import Device

U8 = npt.NDArray[np.uint8]


class WindowTarget:
    """`texture_format` is rgba8 or bgra8, as the window presents."""

    def __init__(self, device: Device, texture_format: str) -> None:
        self._device = device.wgpu
        self._format = texture_format
        self._texture: Any = None
        self._view: Any = None

    def view(self, size: tuple[int, int]) -> Any:
        """A view of the texture of (width, height) pixels; the same until the size changes."""
        if self._texture is None or self._texture.size[:2] != size:
            self._texture = self._device.create_texture(
                label="interface picture",
                size=(*size, 1),
                format=self._format,
                usage="RENDER_ATTACHMENT|COPY_SRC",
            )
            self._view = self._texture.create_view()
        return self._view

    def read(self) -> U8:
        """[h, w, 3]: what was drawn into it last. Waits for the GPU."""
        width, height = self._texture.size[:2]
        row = -(-width * 4 // 256) * 256
        data = self._device.queue.read_texture(
            {"texture": self._texture},
            {"bytes_per_row": row, "rows_per_image": height},
            (width, height),
        )
        pixels = np.frombuffer(data, np.uint8).reshape(height, row // 4, 4)[:, :width]
        order = [2, 1, 0] if self._format.startswith("bgra") else [0, 1, 2]
        return np.ascontiguousarray(pixels[..., order])
