"""How much of what was submitted the device has not finished, told without a copy.

wgpu-py 0.32's `on_submitted_work_done` has a callback of the wrong C type; here is the right one,
made once. Below wgpu-py's public interface, as engine/gpu/buffer_map.py is.
"""

from itertools import count
from typing import Any

from engine.gpu.buffer_map import advance
from engine.gpu.device import Device
from engine.gpu.errors import AdapterError

# Whose work a callback is about, by the number that it is told: it may come after its owner's end.
_pending: dict[int, "SubmittedWork"] = {}
_numbers = count(1)
_callback: Any = None


def _make_callback() -> Any:
    from wgpu.backends.wgpu_native import ffi

    @ffi.callback("void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)")
    def done(_status: int, _message: Any, number: Any, _unused: Any) -> None:
        work = _pending.pop(int(ffi.cast("intptr_t", number)), None)
        if work is not None:
            work.unfinished -= 1

    return done


class SubmittedWork:
    """`unfinished` is how many of the submissions that `mark` followed have not ended."""

    def __init__(self, device: Device) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        global _callback
        if _callback is None:
            _callback = _make_callback()
        self.unfinished = 0
        self._device = device
        self._ffi = ffi
        self._info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        self._info.mode = lib.WGPUCallbackMode_AllowProcessEvents
        self._info.callback = _callback

    def mark(self) -> None:
        """Counts what was submitted last, and all before it, as one. AdapterError where the device
        was lost."""
        from wgpu.backends.wgpu_native._api import libf

        number = next(_numbers)
        self._info.userdata1 = self._ffi.cast("void *", number)
        _pending[number] = self
        self.unfinished += 1
        try:
            libf.wgpuQueueOnSubmittedWorkDone(self._device.wgpu.queue._internal, self._info[0])
        except Exception as error:
            if _pending.pop(number, None) is not None:
                self.unfinished -= 1
            raise self._lost(error) from error

    def poll(self) -> None:
        """Looks what has ended; never waits. AdapterError where the device was lost."""
        try:
            advance(self._device.wgpu)
        except Exception as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> AdapterError:
        return AdapterError(f"{self._device.info.adapter}: the device was lost: {error}")
