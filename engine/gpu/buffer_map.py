"""Maps a buffer for reading again and again, at little cost to the host.

wgpu-py makes a promise, a C function and two structures anew for each mapping, and wakes a thread
that polls by waiting; while that waits it holds the lock that a submit needs, so that on an H200
every submit took as long as the frame before it. Here one C function serves all, and nobody polls
but the caller. Below wgpu-py's public interface, as engine/gpu/compute_scope.py is.
"""

from itertools import count
from typing import Any

# What is on its way, by the number that its callback is told. It stays here, with its buffer, until
# wgpu has called back, whoever has forgotten it by then.
_pending: dict[int, "BufferMap"] = {}
_numbers = count(1)
_callback: Any = None


def _make_callback() -> Any:
    from wgpu.backends.wgpu_native import ffi

    pending = _pending  # a module's names are gone before the last device is, when Python ends

    @ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")
    def told(status: int, message: Any, number: Any, _unused: Any) -> None:
        mapping = pending.pop(int(ffi.cast("intptr_t", number)), None)
        if mapping is not None:
            mapping._end(status, message)

    return told


class BufferMap:
    """Of one buffer with the usage MAP_READ. `begin` and, once it has `ended`, `take`."""

    def __init__(self, buffer: Any) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        global _callback
        if _callback is None:
            _callback = _make_callback()
        self.buffer = buffer
        self.ended = False
        self.size = 0
        self._ffi, self._lib = ffi, lib
        self._error: str | None = None
        self._info = ffi.new("WGPUBufferMapCallbackInfo *")
        self._info.mode = lib.WGPUCallbackMode_AllowProcessEvents
        self._info.callback = _callback

    def begin(self, size: int) -> None:
        """Of the first `size` bytes, whose copy has been submitted; a later `advance`, or any
        submission, ends it. An error of wgpu's where the device was lost."""
        from wgpu.backends.wgpu_native._api import libf

        number = next(_numbers)
        self.ended, self.size, self._error = False, size, None
        self._info.userdata1 = self._ffi.cast("void *", number)
        _pending[number] = self
        read = self._lib.WGPUMapMode_Read
        try:
            libf.wgpuBufferMapAsync(self.buffer._internal, read, 0, size, self._info[0])
        except Exception:
            _pending.pop(number, None)
            raise

    def _end(self, status: int, message: Any) -> None:
        self.ended = True
        if status != self._lib.WGPUMapAsyncStatus_Success:
            known = message.data != self._ffi.NULL and message.length > 0
            length = -1 if message.length == self._lib.WGPU_STRLEN else message.length
            text = self._ffi.string(message.data, length) if known else b"no reason was given"
            self._error = text.decode(errors="replace")

    def take(self) -> bytes:
        """What was mapped; the buffer is free again. RuntimeError where it could not be mapped."""
        if self._error is not None:
            raise RuntimeError(f"a buffer could not be mapped: {self._error}")
        mapped = self._lib.wgpuBufferGetConstMappedRange(self.buffer._internal, 0, self.size)
        if mapped == self._ffi.NULL:
            raise RuntimeError("a mapped buffer could not be read")
        data = bytes(self._ffi.buffer(mapped, self.size))
        self._lib.wgpuBufferUnmap(self.buffer._internal)
        return data


def advance(device: Any) -> None:
    """Lets wgpu end what is done by now; does not wait. `device` is wgpu's."""
    device._poll(block=False)
