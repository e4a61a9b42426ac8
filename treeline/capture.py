"""One frame's traced rays with all that traces them again, in one bounded file.

A capture holds what the traversal kernels of the frame read and wrote: the guest buffer (TLAS and
BLASes), the uniforms, the alpha test's buffers, and for each chosen queue its records and results.
`treeline.replay` runs it on another adapter. It never holds device objects or whole memories: rays
beyond `max_rays` a queue are left out and counted, and a file beyond `limit_mb` is refused.

The file is an uncompressed `.npz`, read without pickle:

| key | dtype, shape | content |
| --- | --- | --- |
| format, version | str, int64 | "treeline-capture", 1 |
| identity | str | JSON object, see `make_identity` |
| bvh, parents | uint32 [k], [k / 16] | the scene buffer, TLAS at byte 0, and its parent links |
| frame | uint32 [u] | the uniform block |
| alpha, texels | uint32 [a], [t] | what the alpha test reads |
| QUEUE_records | uint32 [n, r] | the rays of a queue, in its order |
| QUEUE_results | uint32 [n, w] | what each of them found, in the same order |
"""

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas_pool import BlasIdentity
from bvh.gpu.trace_rays import LANES_ALONE
from bvh.header import VERSION as CONTAINER_VERSION
from bvh.header import unpack_header
from bvh.npz_file import read_npz
from bvh.scene_bvh import SceneBvh
from engine.gpu.errors import LimitError, UserError
from passes.frame_uniforms import pack_uniforms
from passes.hybrid import HybridFrame
from passes.rays import RAY_TYPES, RayType
from passes.traverse_passes import traversal
from treeline.outputs import whole_file
from treeline.version import commit, version

U32 = NDArray[np.uint32]

FORMAT = "treeline-capture"
VERSION = 1
MAX_RAYS = 1 << 20  # of a queue
LIMIT_MB = 512


@dataclass(frozen=True, slots=True)
class QueueCapture:
    """Rays of one queue and what each found; words a record and a result as the type says."""

    ray: RayType
    records: U32  # [n, r]
    results: U32  # [n, w]


@dataclass(frozen=True, slots=True)
class Capture:
    """The content of a file. `identity` is what `make_identity` says."""

    identity: dict[str, Any]
    buffers: dict[str, U32]  # bvh, parents, frame, alpha, texels
    queues: tuple[QueueCapture, ...]

    @property
    def nbytes(self) -> int:
        parts = [*self.buffers.values()]
        parts += [a for q in self.queues for a in (q.records, q.results)]
        return sum(part.nbytes for part in parts)


def find_queues(names: Sequence[str], there: Sequence[RayType] = RAY_TYPES) -> tuple[RayType, ...]:
    """Ray types by name, in the order of the frame; UserError for one that is not `there`."""
    known = {ray.name: ray for ray in there}
    for name in names:
        if name not in known:
            raise UserError(f"no ray queue is named '{name}'; there are {', '.join(known)}")
    return tuple(ray for ray in there if ray.name in names)


def capture_frame(
    frame: HybridFrame,
    queues: Sequence[RayType],
    *,
    scene_name: str,
    scene_sha256: str,
    max_rays: int = MAX_RAYS,
    limit_mb: float = LIMIT_MB,
) -> Capture:
    """The last frame that `frame` ran, which has to have been valid. LimitError names what the
    capture needs where that is more than `limit_mb`."""
    data, scene = frame.data, frame.scene
    uniforms = pack_uniforms(frame.inputs, data.width, data.height, scene.bases)
    bvh = frame.bvh()
    buffers = {
        "bvh": bvh.words,
        "parents": bvh.parents,
        "frame": np.ascontiguousarray(uniforms.reshape(1)).view(np.uint32),
        "alpha": np.ascontiguousarray(scene.arrays["alpha"]).reshape(-1).view(np.uint32),
        "texels": np.ascontiguousarray(scene.arrays["texels"]).reshape(-1).view(np.uint32),
    }
    taken = []
    dropped = {}
    for ray in queues:
        records = data.read_records(ray)
        dropped[ray.name] = max(0, len(records) - max_rays)
        records = records[:max_rays]
        found = np.ascontiguousarray(data.read_results(ray, records))
        results = found.view(np.uint32).reshape(len(records), ray.result_bytes // 4)
        words = np.ascontiguousarray(records).view(np.uint32)
        words = words.reshape(len(records), records.dtype.itemsize // 4)
        taken.append(QueueCapture(ray, words, results))
    result = Capture({}, buffers, tuple(taken))
    if result.nbytes > limit_mb * 1e6:
        raise LimitError(
            f"the capture needs {result.nbytes / 1e6:,.1f} MB, the limit is {limit_mb:g} MB"
        )
    identity = make_identity(frame, bvh, result, scene_name, scene_sha256, dropped)
    result.identity.update(identity)
    return result


def make_identity(
    frame: HybridFrame,
    bvh: SceneBvh,
    capture: Capture,
    scene_name: str,
    scene_sha256: str,
    dropped: dict[str, int],
) -> dict[str, Any]:
    """Who made the bytes and which they are, as JSON: program and library versions, adapter,
    scene, frame and build options, camera, each kernel's slots and constants, for each BLAS its
    allocation, generation, content version and place, and a digest of every array."""
    info, options = frame.device.info, frame.options
    view = frame.scene.prepared.scene
    kernels = {}
    for queue in capture.queues:
        slots, constants = traversal(frame.scene, replace(options, count=False), queue.ray)
        kernels[queue.ray.name] = {
            "slots": {**slots, "count": "bvh/shaders/count_nothing.wgsl", "vote": LANES_ALONE},
            "constants": {name: float(value) for name, value in constants.items()},
            "rays_left_out": dropped[queue.ray.name],
        }
    return {
        "treeline": version(),
        "commit": commit(),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in ("numpy", "wgpu")},
        "adapter": info.adapter,
        "adapter_type": info.adapter_type,
        "backend": info.backend,
        "driver": info.driver,
        "scene": scene_name,
        "scene_sha256": scene_sha256,
        "frame_index": frame.inputs.frame_index,
        "frame_options": asdict(options),
        "build_options": asdict(frame.scene.prepared.options),
        "group": frame.scene.prepared.group,
        "camera": {
            "transform": np.asarray(view.camera.transform, np.float64).tolist(),
            "y_fov": float(view.camera.y_fov),
        },
        "kernels": kernels,
        "pose": {"clip": frame.inputs.clip, "time": frame.inputs.time},
        "guest": guest_identity(bvh),
        "sha256": digests(capture),
    }


def guest_identity(bvh: SceneBvh) -> dict[str, Any]:
    """Format version, TLAS and BLASes: allocation, generation and content version of what was
    assembled, where it lies, and a digest of its bytes."""
    known = bvh.blas_identities or tuple(BlasIdentity(i) for i in range(len(bvh.blas_bases)))
    return {
        "format_version": CONTAINER_VERSION,
        "tlas": {
            "root_offset": 128,
            "bytes": unpack_header(bvh.words).size_bytes,
            "instances": len(bvh.instances),
            "sha256": _sha256(bvh.tlas_words),
        },
        "blas": [
            {
                "name": bvh.blas_names[i],
                "allocation": known[i].allocation,
                "generation": known[i].generation,
                "content_version": known[i].content_version,
                "root_offset": int(base) + 128,
                "bytes": bvh.blas_words(i).nbytes,
                "sha256": _sha256(bvh.blas_words(i)),
            }
            for i, base in enumerate(bvh.blas_bases)
        ],
    }


def _sha256(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _arrays(capture: Capture) -> dict[str, U32]:
    named = dict(capture.buffers)
    for queue in capture.queues:
        named[f"{queue.ray.name}_records"] = queue.records
        named[f"{queue.ray.name}_results"] = queue.results
    return named


def digests(capture: Capture) -> dict[str, str]:
    """sha256 of every array."""
    return {name: _sha256(array) for name, array in _arrays(capture).items()}


def save(path: Path, capture: Capture) -> None:
    """Writes the file whole or not at all."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            allow_pickle=False,
            format=np.array(FORMAT),
            version=np.array(VERSION, np.int64),
            identity=np.array(json.dumps(capture.identity)),
            **_arrays(capture),
        )


def load(path: Path) -> Capture:
    """Reads and checks a file. UserError says what is wrong with one that is missing, foreign, of
    another version or damaged: which array, and how."""
    arrays = read_npz(path, FORMAT, VERSION, "capture")

    def need(name: str, kind: str, dimensions: int) -> NDArray[Any]:
        if name not in arrays:
            raise UserError(f"{path}: damaged capture, '{name}' is missing")
        array = arrays[name]
        if array.dtype.kind != kind or array.ndim != dimensions:
            raise UserError(
                f"{path}: damaged capture, '{name}' has type {array.dtype}, shape {array.shape}"
            )
        return array

    try:
        identity = json.loads(str(need("identity", "U", 0)))
        kernels, stated = dict(identity["kernels"]), dict(identity["sha256"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: damaged capture, 'identity' cannot be read ({error})") from error
    buffers = {n: need(n, "u", 1) for n in ("bvh", "parents", "frame", "alpha", "texels")}
    queues = []
    for ray in find_queues(list(kernels)):
        records, results = (need(f"{ray.name}_{x}", "u", 2) for x in ("records", "results"))
        shapes = ((len(records), ray.record.size // 4), (len(records), ray.result_bytes // 4))
        if (records.shape, results.shape) != shapes:
            raise UserError(
                f"{path}: damaged capture, {ray.name} has records {records.shape} and results "
                f"{results.shape}"
            )
        queues.append(QueueCapture(ray, records, results))
    capture = Capture(identity, buffers, tuple(queues))
    for name, digest in digests(capture).items():
        if stated.get(name) != digest:
            raise UserError(f"{path}: damaged capture, the bytes of '{name}' are not those written")
    return capture
