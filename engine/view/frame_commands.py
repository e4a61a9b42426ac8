"""The commands of the window's frame that is being built: one encoder and one submission for all,
as each of them costs the host as much as many calls."""

from collections.abc import Callable
from typing import Any

from engine.gpu.device import Device


class FrameCommands:
    """What is put into `encoder()` comes before the interface, in the same submission."""

    def __init__(self, device: Device) -> None:
        self._device = device.wgpu
        self._encoder: Any = None
        self._told: list[Callable[[], None]] = []

    def encoder(self) -> Any:
        """The frame's command encoder."""
        if self._encoder is None:
            self._encoder = self._device.create_command_encoder(label="window")
        return self._encoder

    def when_submitted(self, tell: Callable[[], None]) -> None:
        """`tell` is called after the submission of what the encoder has been given."""
        self._told.append(tell)

    def drop(self) -> None:
        """After an error: nobody can say what the encoder holds."""
        self._encoder = None
        self._told.clear()

    def flush(self) -> None:
        """Submits now what the encoder was given, for who is about to read it."""
        if self._encoder is not None:
            self.submit(self._encoder.finish())

    def submit(self, commands: Any) -> None:
        """Of the finished encoder."""
        self._encoder = None
        told, self._told = self._told, []
        self._device.queue.submit([commands])
        for tell in told:
            tell()
