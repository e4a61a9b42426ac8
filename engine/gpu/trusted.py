"""Shader modules without run-time checks, for kernels over buffers that were validated before.

By default naga clamps every index and counts every loop iteration; on a traversal kernel that
costs several percent. wgpu-native can leave the checks out, which wgpu-py does not expose: this
is the one place that reaches past its public interface. A trusted kernel that reads a corrupt
buffer can read anything, so only our own builders' bytes and validated files may come near one.
"""

from typing import Any


def create_trusted_module(device: Any, label: str, code: str) -> Any:
    """The module of WGSL `code` on a wgpu device, with neither bounds nor loop checks.

    The code is compiled with checks first, so that a shader error is raised as usual."""
    from wgpu.backends.wgpu_native import ffi, lib
    from wgpu.backends.wgpu_native._api import GPUShaderModule as NativeModule

    device.create_shader_module(label=label, code=code)
    text = ffi.new("char []", code.encode())
    name = ffi.new("char []", label.encode())
    source = ffi.new("WGPUShaderSourceWGSL *")
    source.chain.next = ffi.NULL
    source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
    source.code.data = text
    source.code.length = len(code.encode())
    descriptor = ffi.new("WGPUShaderModuleDescriptor *")
    descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
    descriptor.label.data = name
    descriptor.label.length = len(label.encode())
    module_id = lib.wgpuDeviceCreateShaderModuleTrusted(device._internal, descriptor, 0)
    return NativeModule(label, module_id, device)
