"""Render passes of one colour target, encoded at little cost to the host: as engine/gpu/
compute_scope.py does for compute passes, below wgpu-py's public interface (0.32) and with the same
promise. What is wrong in a pass raises at its encoder's `finish`.
"""

from typing import Any

Colour = tuple[float, float, float, float]


class RenderScope:
    """One render pass: what this project uses of a `GPURenderPassEncoder`."""

    __slots__ = ("_ffi", "_lib", "_pass")

    def __init__(self, ffi: Any, lib: Any, native: Any) -> None:
        self._ffi, self._lib, self._pass = ffi, lib, native

    def set_pipeline(self, pipeline: Any) -> None:
        self._lib.wgpuRenderPassEncoderSetPipeline(self._pass, pipeline._internal)

    def set_bind_group(self, index: int, group: Any) -> None:
        set_group = self._lib.wgpuRenderPassEncoderSetBindGroup
        set_group(self._pass, index, group._internal, 0, self._ffi.NULL)

    def set_index_buffer(self, buffer: Any) -> None:
        """All of a buffer of 32-bit indices."""
        lib = self._lib
        kind, whole = lib.WGPUIndexFormat_Uint32, lib.WGPU_WHOLE_SIZE
        lib.wgpuRenderPassEncoderSetIndexBuffer(self._pass, buffer._internal, kind, 0, whole)

    def draw(self, vertices: int, instances: int = 1, first_vertex: int = 0) -> None:
        self._lib.wgpuRenderPassEncoderDraw(self._pass, vertices, instances, first_vertex, 0)

    def draw_indexed(self, indices: int, instances: int = 1) -> None:
        self._lib.wgpuRenderPassEncoderDrawIndexed(self._pass, indices, instances, 0, 0, 0)

    def end(self) -> None:
        """Once; the pass takes no command after it."""
        self._lib.wgpuRenderPassEncoderEnd(self._pass)
        self._lib.wgpuRenderPassEncoderRelease(self._pass)


class RenderPasses:
    """Begins a pass that comes again and again. It is cleared to `clear` first; None: it keeps what
    the target holds."""

    def __init__(self, label: str, clear: Colour | None) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        self._ffi, self._lib = ffi, lib
        # A descriptor points into the other two, which cffi frees with the last reference.
        self._text = ffi.new("char []", label.encode())
        self._target = ffi.new("WGPURenderPassColorAttachment *")
        self._target.depthSlice = lib.WGPU_DEPTH_SLICE_UNDEFINED
        self._target.loadOp = lib.WGPULoadOp_Load if clear is None else lib.WGPULoadOp_Clear
        self._target.storeOp = lib.WGPUStoreOp_Store
        value = self._target.clearValue
        value.r, value.g, value.b, value.a = clear or (0.0, 0.0, 0.0, 0.0)
        self._descriptor = ffi.new("WGPURenderPassDescriptor *")
        self._descriptor.label.data, self._descriptor.label.length = self._text, lib.WGPU_STRLEN
        self._descriptor.colorAttachmentCount = 1
        self._descriptor.colorAttachments = self._target

    def begin(self, encoder: Any, view: Any) -> RenderScope:
        """In a command encoder of wgpu, into a texture view."""
        self._target.view = view._internal
        begin = self._lib.wgpuCommandEncoderBeginRenderPass
        return RenderScope(self._ffi, self._lib, begin(encoder._internal, self._descriptor))
