"""What the traversal tests share: the tracers under test, and a hand encoder of guest bytes.

The encoder writes nodes from literal offsets (bytes of the layout table, not `bvh.layout`), one
triangle a block, split at the median. It is slow, plain and independent of the real builder.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import Blas, BuildOptions, build_blas
from bvh.gpu.trace_rays import RayTracer, Variant, scene_has_fans
from bvh.rays import MISS_ID, RayFlags
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance

INVALID = 0xFFFFFFFF
NAN = float("nan")


def half_box(low: Any, high: Any) -> bytes:
    """Six binary16 values rounded outward by one step where round-to-nearest went inside."""
    low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
    lo, hi = low.astype(np.float16), high.astype(np.float16)
    lo = np.where(lo > low, np.nextafter(lo, np.float16(-np.inf)), lo)
    hi = np.where(hi < high, np.nextafter(hi, np.float16(np.inf)), hi)
    return np.concatenate([lo, hi]).astype("<f2").tobytes()


def box_node(children: Sequence[tuple[int, Any, Any]], half: bool = False) -> bytes:
    """(pointer, minimum, maximum) a child; empty slots get 0xffffffff and NaN bounds."""
    slots = list(children) + [(INVALID, [NAN] * 3, [NAN] * 3)] * (4 - len(children))
    body = struct.pack("<4I", *(s[0] for s in slots))
    if half:
        return body + b"".join(half_box(s[1], s[2]) for s in slots)
    return body + b"".join(struct.pack("<6f", *s[1], *s[2]) for s in slots) + bytes(16)


def triangle_block(
    corners: Any, geometry: int, primitive: int, opaque: bool, flag: int = 0x9
) -> bytes:
    """Type 0 in a 64-byte block; `corners` in slot order."""
    body = struct.pack("<9f", *np.asarray(corners, np.float32).ravel()) + bytes(12)
    body += struct.pack("<I", geometry | (0x01000000 if opaque else 0))
    return body + struct.pack("<III", primitive, INVALID, flag)


def encode_tree(boxes: Any, leaf: Callable[[int, int], tuple[bytes, int]], half: bool) -> bytes:
    """A container: header, FP32 root at byte 128, inner nodes depth first with leaves behind
    their parent. `leaf(item, byte offset)` gives a leaf's bytes and node type."""
    out = bytearray(128)

    def put(items: Any, root: bool) -> int:
        offset = len(out)
        wide = root or not half
        out.extend(bytes(128 if wide else 64))
        groups = split4(items) if len(items) else []
        children = []
        for group in groups:
            low, high = boxes[group, 0].min(0), boxes[group, 1].max(0)
            if len(group) == 1:
                at = len(out)
                data, kind = leaf(int(group[0]), at)
                out.extend(data)
                pointer = at >> 3 | kind
            else:
                pointer = put(group, False)
            children.append((pointer, low, high))
        node = box_node(children, half=not wide)
        out[offset : offset + len(node)] = node
        return offset >> 3 | (5 if wide else 4)

    def split4(items: Any) -> list[Any]:
        parts = [items]
        while len(parts) < 4 and max(map(len, parts)) > 1:
            part = parts.pop(int(np.argmax([len(p) for p in parts])))
            center = boxes[part].sum(1)
            axis = int(np.ptp(center, axis=0).argmax())
            part = part[np.argsort(center[:, axis], kind="stable")]
            parts += [part[: len(part) // 2], part[len(part) // 2 :]]
        return parts

    assert put(np.arange(len(boxes)), True) == 0x15
    return bytes(out)


def encode_blas(
    triangles: Any, *, half: bool = False, opaque: bool = True, geometry: Any = None
) -> bytes:
    """One BLAS container; primitive i is row i, geometry 0 unless given."""
    corners = np.asarray(triangles, np.float32).reshape(-1, 3, 3)
    boxes = np.stack([corners.min(1), corners.max(1)], 1)

    def leaf(item: int, _: int) -> tuple[bytes, int]:
        g = 0 if geometry is None else int(geometry[item])
        return triangle_block(corners[item], g, item, opaque), 0

    return encode_tree(boxes, leaf, half)


@dataclass(frozen=True)
class HandInstance:
    blas: int
    transform: Any = None  # [4, 4] object to world
    mask: int = 0xFF
    first_object: int = 0
    flag_bits: int = 0x40000000  # bit 30: "not force-non-opaque"


def encode_scene(blases: Sequence[bytes], instances: Sequence[HandInstance]) -> np.ndarray:
    """TLAS at byte 0, BLASes behind it at 256-byte bases; returns the words."""

    def build(bases: list[int]) -> bytes:
        boxes = np.zeros((len(instances), 2, 3))
        data = []
        for i, item in enumerate(instances):
            transform = np.eye(4) if item.transform is None else np.asarray(item.transform, float)
            inverse = np.linalg.inv(transform)
            words = np.frombuffer(blases[item.blas], np.float32)
            pointers = np.frombuffer(blases[item.blas], np.uint32)[32:36]
            used = words[36:60].reshape(4, 2, 3)[pointers != INVALID].astype(float)
            low, high = used[:, 0].min(0), used[:, 1].max(0)
            corner = np.array([[(low, high)[b >> k & 1][k] for k in range(3)] for b in range(8)])
            world = corner @ transform[:3, :3].T + transform[:3, 3]
            pad = 1e-5 * np.abs(world).max()
            boxes[i] = world.min(0) - pad, world.max(0) + pad
            base = bases[item.blas]
            node = struct.pack("<QII", base + 128 >> 3 | 5, item.mask << 24, 0)[:12]
            node += struct.pack("<I", item.first_object | item.flag_bits)
            node += inverse[:3].astype("<f4").tobytes()
            node += struct.pack("<4I", i, base // 64, 1, 0)
            data.append(node + transform[:3].astype("<f4").tobytes())
        return encode_tree(boxes, lambda item, _: (data[item], 6), False)

    size = len(build([0] * len(blases)))
    bases, out = [], bytearray(size)
    for blas in blases:
        out.extend(bytes(-len(out) % 256))
        bases.append(len(out))
        out.extend(blas)
    out[:size] = build(bases)
    return np.frombuffer(bytes(out), np.uint32).copy()


@pytest.fixture(scope="session")
def hand() -> SimpleNamespace:
    """The hand encoder's functions."""
    return SimpleNamespace(
        box_node=box_node,
        triangle_block=triangle_block,
        blas=lambda *args, **kw: np.frombuffer(encode_blas(*args, **kw), np.uint32).copy(),
        blas_bytes=encode_blas,
        scene=encode_scene,
        Instance=HandInstance,
    )


def one_blas(triangles: Any, opaque: bool = True, **options: Any) -> Blas:
    """A BLAS of the real builder: geometry 0, primitive i is row i."""
    corners = np.asarray(triangles, np.float32).reshape(-1, 3, 3)
    return build_blas(
        corners,
        np.zeros(len(corners), np.uint32),
        np.arange(len(corners), dtype=np.uint32),
        np.array([opaque]),
        BuildOptions(**options),
    )


def one_scene(triangles: Any, transform: Any = None, **options: Any) -> SceneBvh:
    """One BLAS under one instance (identity unless given)."""
    placed = BvhInstance(0, np.eye(4) if transform is None else transform)
    return assemble([one_blas(triangles, **options)], ["mesh"], [placed])


@pytest.fixture(scope="session")
def built() -> SimpleNamespace:
    """Scenes of the real builder: `built.blas(triangles)`, `built.scene(triangles, transform)`."""
    return SimpleNamespace(blas=one_blas, scene=one_scene)


def _oracle_tracer(scene: Any, rays: Any, **options: Any) -> oracle.Trace:
    words = scene if isinstance(scene, np.ndarray) else scene.words
    return oracle.trace(words, rays, **options)


class GpuTracer:
    """The GPU kernel behind the oracle's interface; kernels are kept for the session."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def __call__(
        self,
        scene: Any,
        rays: Any,
        *,
        any_hit: bool = False,
        count_all: bool = False,
        mask: int = 0xFF,
        flags: int = 0,
    ) -> SimpleNamespace:
        words = scene if isinstance(scene, np.ndarray) else scene.words
        fans = not isinstance(scene, np.ndarray) and scene_has_fans(scene)
        variant = Variant("test", any_hit=any_hit, mask=mask, flags=int(flags), has_fans=fans)
        got = RayTracer(self.device, words, variant).trace(rays)
        crossings = None
        if count_all:
            # Every crossing becomes a candidate, and is counted and refused.
            candidates = replace(variant, flags=int(flags | RayFlags.NON_OPAQUE))
            counting = RayTracer(self.device, words, candidates, count_all=True)
            crossings = counting.trace(rays).hits["instance"]
        hits = got.hits
        hit = hits["object"] != MISS_ID
        return SimpleNamespace(
            t=np.where(hit, hits["t"], np.float32(np.inf)),
            u=hits["u"],
            v=hits["v"],
            object=hits["object"],
            primitive=hits["primitive"],
            instance=hits["instance"],
            crossings=hit.astype(np.uint32) if crossings is None else crossings,
            hit=hit,
            missed=~hit,
            overflows=np.full(len(rays), bool(got.failures)),
        )


@pytest.fixture(params=["oracle", "gpu"])
def tracers(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`trace(scene, rays, any_hit=, count_all=, mask=, flags=) -> Trace-like`; `scene` is a
    SceneBvh or the words of one."""
    if request.param == "oracle":
        return _oracle_tracer
    return GpuTracer(request.getfixturevalue("device"))
