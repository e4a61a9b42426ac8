"""Opens an adapter by name and says what it is; owns the device, its limits and its shader cache.

Asks for every feature in `WANTED` that the adapter offers and for all of its limits, and refuses
by name what does not fit before anything is allocated. Times are milliseconds, sizes bytes.
"""

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import AdapterError, LimitError
from engine.gpu.faults import works_around
from engine.gpu.host_memory import return_large_blocks
from engine.gpu.pipelines import PipelineCache
from engine.gpu.shader import ComposedShader, Composer

# Everything here is optional: a kernel that needs one asks `feature in device.features`.
WANTED = ("timestamp-query", "timestamp-query-inside-passes", "subgroup", "primitive-index")
STORAGE_BUFFERS_PER_STAGE = 8  # WebGPU's guaranteed default; no stage of ours binds more
OPENGL = "OpenGL"  # wgpu's name of the backend
VULKAN_PACKAGES = "Debian: libvulkan1 and mesa-vulkan-drivers"
WORKGROUPS_PER_DIMENSION = 65535  # WebGPU's guaranteed default; past it a dispatch does nothing


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """What an adapter says of itself. `adapter_type` is "CPU" for a software driver."""

    adapter: str
    adapter_type: str
    backend: str
    driver: str

    @property
    def is_cpu(self) -> bool:
        return self.adapter_type == "CPU"

    def __str__(self) -> str:
        return f"{self.adapter} ({self.adapter_type}, {self.backend}, {self.driver})"


def _import_wgpu() -> Any:
    # Mesa and wgpu look for XDG_RUNTIME_DIR and complain on stderr where it is missing
    # (a container, a CI job); nothing of ours is stored there.
    if not os.environ.get("XDG_RUNTIME_DIR"):
        os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    import wgpu

    return wgpu


def _info(adapter: Any) -> AdapterInfo:
    info = adapter.info
    return AdapterInfo(
        adapter=info["device"] or info["vendor"] or "unnamed adapter",
        adapter_type=info["adapter_type"],
        backend=info["backend_type"],
        driver=info["description"] or "driver not stated",
    )


def _ranked_adapters() -> list[Any]:
    """All adapters, the one a user would want first: real GPUs before CPU drivers, Vulkan
    before the OpenGL copy of the same device."""
    kinds = ["DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU"]
    backends = ["Vulkan", "Metal", "D3D12", OPENGL]

    def rank(adapter: Any) -> tuple[int, int]:
        info = adapter.info
        kind, backend = info["adapter_type"], info["backend_type"]
        return (
            kinds.index(kind) if kind in kinds else len(kinds),
            backends.index(backend) if backend in backends else len(backends),
        )

    try:
        adapters = _import_wgpu().gpu.enumerate_adapters_sync()
    except Exception as error:
        raise AdapterError(f"no adapter: the Vulkan loader failed ({error})") from error
    return sorted(adapters, key=rank)


def list_adapters() -> list[AdapterInfo]:
    """Every adapter, best first, as `open_device` would choose."""
    return [_info(adapter) for adapter in _ranked_adapters()]


def open_device(name: str | None = None, canvas: Any = None) -> "Device":
    """The best adapter, or the one that `name` picks: an index into `list_adapters()` or a
    part of the adapter's name (any case).

    Raises AdapterError (exit code 3) when there is none or `name` matches none; the message
    lists what there is. And for one that is only reached by OpenGL, as every adapter is where the
    Vulkan loader finds no driver: wgpu offers no storage textures there.
    """
    adapters = _ranked_adapters()
    if not adapters:
        raise AdapterError(f"no adapter: install a Vulkan driver ({VULKAN_PACKAGES})")
    chosen = [a for a in adapters if _info(a).backend != OPENGL] or adapters
    if name is not None:
        if name.isdigit():
            chosen = adapters[int(name) : int(name) + 1]
        else:
            chosen = [a for a in adapters if name.lower() in str(_info(a)).lower()]
        if not chosen:
            there = "; ".join(f"{i}: {_info(a)}" for i, a in enumerate(adapters))
            raise AdapterError(f"no adapter matches '{name}'; there are {there}")
    info = _info(chosen[0])
    if info.backend == OPENGL:
        raise AdapterError(
            f"{info}: {OPENGL} is not enough, a Vulkan driver is ({VULKAN_PACKAGES})"
        )
    return Device(chosen[0])


class Device:
    """A wgpu device with its facts, buffers and compiled shaders.

    `limits` and `features` are the device's; `timestamp_period_ns` is the length of one
    timestamp tick. `upload_bytes`, `readback_bytes` and `forced_waits` count since creation.
    """

    def __init__(self, adapter: Any) -> None:
        self.info = _info(adapter)
        self.features = frozenset(f for f in WANTED if f in adapter.features)
        if self.info.is_cpu:
            return_large_blocks()
        try:
            self.wgpu = adapter.request_device_sync(
                label="treeline",
                required_features=sorted(self.features),
                required_limits=dict(adapter.limits),
            )
        except Exception as error:
            raise AdapterError(f"{self.info}: the device could not be opened: {error}") from error
        self.limits: dict[str, int] = dict(self.wgpu.limits)
        self.timestamp_period_ns = self._timestamp_period()
        self.composer = Composer()
        self.pipelines = PipelineCache(self.wgpu, self.composer, self.info.is_cpu)
        self.upload_bytes = 0
        self.readback_bytes = 0
        self.forced_waits = 0
        self.allocated_bytes = 0
        self._fence: Any = None
        from wgpu.backends.wgpu_native._api import ffi, libf

        self._ffi, self._write_buffer = ffi, libf.wgpuQueueWriteBuffer

    def _timestamp_period(self) -> float:
        if "timestamp-query" not in self.features:
            return 0.0
        # The public queue has no such attribute; timestamps are raw ticks in wgpu-native.
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(self.wgpu.queue._internal))

    @property
    def timing_source(self) -> str:
        """Where pass times come from: "timestamp-query", or "wall-clock" (each pass submitted
        and waited for on its own) where there are no timestamps and on CPU drivers, whose
        timestamps may be late ("late-timestamps" in engine/gpu/faults.py)."""
        late = self.info.is_cpu and works_around("late-timestamps")
        if late or not self.timestamp_period_ns:
            return "wall-clock"
        return "timestamp-query"

    def wait(self) -> None:
        """Until everything submitted is done: a read comes after it in the queue."""
        if self._fence is None:
            self._fence = self.wgpu.create_buffer(label="fence", size=16, usage="COPY_SRC|COPY_DST")
        self.read(self._fence, np.uint32, count=1)

    def check_binding(self, name: str, size: int) -> None:
        """Refuses a storage buffer beyond the adapter's limits, naming both sizes."""
        limit = min(self.limits["max-storage-buffer-binding-size"], self.limits["max-buffer-size"])
        if size > limit:
            raise LimitError(
                f"{name} needs {size:,} bytes, but {self.info.adapter} binds at most {limit:,} "
                "bytes in one storage buffer"
            )

    def buffer(self, name: str, size: int, usage: str = "STORAGE|COPY_SRC|COPY_DST") -> Any:
        """A zeroed buffer of at least `size` bytes (rounded up to 16, never empty)."""
        size = max(16, -(-size // 16) * 16)
        if "STORAGE" in usage:
            self.check_binding(name, size)
        self.allocated_bytes += size
        return self.wgpu.create_buffer(label=name, size=size, usage=usage)

    def upload(self, name: str, data: Any, usage: str = "STORAGE|COPY_SRC|COPY_DST") -> Any:
        """A buffer that holds `data` (any NumPy array, in C order)."""
        array = np.ascontiguousarray(data)
        buffer = self.buffer(name, array.nbytes, usage)
        self.write(buffer, array)
        return buffer

    def upload_texels(self, name: str, texels: NDArray[np.uint32]) -> Any:
        """A texture of four words a texel, rgba32uint, from [height, width, 4]."""
        height, width, _ = texels.shape
        texture = self.wgpu.create_texture(
            label=name,
            size=(width, height, 1),
            format="rgba32uint",
            usage="TEXTURE_BINDING|COPY_DST",
        )
        self.wgpu.queue.write_texture(
            {"texture": texture, "mip_level": 0, "origin": (0, 0, 0)},
            np.ascontiguousarray(texels),
            {"offset": 0, "bytes_per_row": 16 * width, "rows_per_image": height},
            (width, height, 1),
        )
        self.upload_bytes += texels.nbytes
        self.allocated_bytes += texels.nbytes
        return texture

    def write(self, buffer: Any, data: Any, offset: int = 0) -> None:
        """Overwrites a buffer's bytes from `offset` on; a size that is no multiple of four is
        padded with zeros."""
        raw = np.ascontiguousarray(data)
        if not raw.nbytes:
            return
        if raw.nbytes % 4:
            raw = raw.reshape(-1).view(np.uint8)
            raw = np.concatenate([raw, np.zeros(-raw.size % 4, np.uint8)])
        self.upload_bytes += raw.nbytes
        # As wgpu-py's `write_buffer`, which looks at the data twice more before it goes there.
        data = self._ffi.from_buffer(raw)
        self._write_buffer(self.wgpu.queue._internal, buffer._internal, offset, data, raw.nbytes)

    def read(self, buffer: Any, dtype: Any = np.uint32, offset: int = 0, count: int = -1) -> Any:
        """Reads back `count` items of `dtype` (all by default); waits for the GPU."""
        dtype = np.dtype(dtype)
        size = buffer.size - offset if count < 0 else count * dtype.itemsize
        if size <= 0:
            return np.zeros(0, dtype)
        padded = -(-size // 4) * 4
        self.forced_waits += 1
        self.readback_bytes += padded
        try:
            data = self.wgpu.queue.read_buffer(buffer, offset, padded)
        except Exception as error:
            raise AdapterError(f"{self.info.adapter}: the device was lost: {error}") from error
        raw = np.frombuffer(data, np.uint8)[: size - size % dtype.itemsize]
        return raw.view(dtype).copy()

    def compile(self, shader: ComposedShader, trusted: bool = False) -> Any:
        """The shader's module; an error names the source file and line. `trusted` leaves out
        run-time checks (see engine/gpu/trusted.py)."""
        return self.composer.compile(self.wgpu, shader, trusted)


def fold_groups(groups: int) -> tuple[int, int, int]:
    """Workgroup counts (x, y, 1) that cover `groups`, x within WebGPU's limit per dimension.

    x * y may exceed `groups`: the kernel tests its index, computed by `flat_group_index`.
    """
    if groups <= WORKGROUPS_PER_DIMENSION:
        return (groups, 1, 1)
    rows = -(-groups // WORKGROUPS_PER_DIMENSION)
    return (-(-groups // rows), rows, 1)
