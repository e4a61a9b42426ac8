"""Compute passes of a frame, encoded at little cost to the host.

wgpu-py makes two C structures anew for each pass, and checks arguments and looks for an error at
each command: about 25 us a pass and 6 us a dispatch, which for a dozen passes and two dozen
dispatches is half of what encoding a frame takes. Here a pass's descriptor is made once, and its
commands go to wgpu-native as they are. No error is lost: WebGPU keeps what was wrong in a pass
until its encoder's `finish`, which raises it.

Only this, render_scope.py and buffer_map.py go below wgpu-py's public interface (0.32) each frame.
"""

from typing import Any


class ComputeScope:
    """One compute pass: what this project uses of a `GPUComputePassEncoder`."""

    __slots__ = ("_ffi", "_lib", "_pass")

    def __init__(self, ffi: Any, lib: Any, native: Any) -> None:
        self._ffi, self._lib, self._pass = ffi, lib, native

    def set_pipeline(self, pipeline: Any) -> None:
        self._lib.wgpuComputePassEncoderSetPipeline(self._pass, pipeline._internal)

    def set_bind_group(self, index: int, group: Any) -> None:
        set_group = self._lib.wgpuComputePassEncoderSetBindGroup
        set_group(self._pass, index, group._internal, 0, self._ffi.NULL)

    def dispatch_workgroups(self, x: int, y: int = 1, z: int = 1) -> None:
        self._lib.wgpuComputePassEncoderDispatchWorkgroups(self._pass, x, y, z)

    def dispatch_workgroups_indirect(self, arguments: Any, offset: int) -> None:
        dispatch = self._lib.wgpuComputePassEncoderDispatchWorkgroupsIndirect
        dispatch(self._pass, arguments._internal, offset)

    def end(self) -> None:
        """Once; the pass takes no command after it."""
        self._lib.wgpuComputePassEncoderEnd(self._pass)
        self._lib.wgpuComputePassEncoderRelease(self._pass)


class ComputePasses:
    """Begins passes that come again and again: by a label one and the same, with timestamps or
    without."""

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        self._ffi, self._lib = ffi, lib
        # A descriptor points into the other two, which cffi frees with the last reference.
        self._descriptors: dict[tuple[str, bool], tuple[Any, Any, Any]] = {}

    def begin(self, encoder: Any, label: str, timestamps: Any = None) -> ComputeScope:
        """In a command encoder of wgpu; `timestamps` are `PassTimer.writes`, or none."""
        key = (label, timestamps is not None)
        if key not in self._descriptors:
            self._descriptors[key] = self._descriptor(label, timestamps)
        begin = self._lib.wgpuCommandEncoderBeginComputePass
        native = begin(encoder._internal, self._descriptors[key][0])
        return ComputeScope(self._ffi, self._lib, native)

    def _descriptor(self, label: str, timestamps: Any) -> tuple[Any, Any, Any]:
        text = self._ffi.new("char []", label.encode())
        found = self._ffi.new("WGPUComputePassDescriptor *")
        found.label.data, found.label.length = text, self._lib.WGPU_STRLEN
        writes = self._ffi.NULL
        if timestamps is not None:
            writes = self._ffi.new("WGPUPassTimestampWrites *")
            writes.querySet = timestamps["query_set"]._internal
            writes.beginningOfPassWriteIndex = timestamps["beginning_of_pass_write_index"]
            writes.endOfPassWriteIndex = timestamps["end_of_pass_write_index"]
        found.timestampWrites = writes
        return found, text, writes
