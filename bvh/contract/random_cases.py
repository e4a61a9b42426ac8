"""Seeded random contract cases, with a stated share for everything that is hard.

Shares of the kinds (`SHARES`); then, over all kinds: growth 0, 1, 2, 6 (15% each) or any; sort and
return mode on in 70%; extent infinite, typical, exactly an entry distance of small numbers, or any
bits; 6% of the descriptors or pointers out of bounds in one way; 4% with a pointer beyond 32 bits;
2% with a node that is not there; 2% user nodes. A kind's name says where its rays go.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract import random_geometry as geometry
from bvh.contract.cases import U32, Cases

Random = np.random.Generator
Parts = tuple[U32, U32, geometry.Rays]  # node words, node type, rays

SHARES = {
    "triangle/any": 0.20,
    "triangle/edge": 0.08,
    "triangle/vertex": 0.05,
    "triangle/axis-parallel": 0.06,
    "triangle/degenerate": 0.04,
    "triangle/infinite": 0.03,
    "triangle/denormal": 0.03,
    "triangle/huge": 0.02,
    "triangle/nan": 0.02,
    "triangle/any bits": 0.02,
    "box/any": 0.15,
    "box/corner": 0.08,
    "box/axis-parallel": 0.08,
    "box/infinite": 0.03,
    "box/endless": 0.02,
    "box/denormal": 0.04,
    "box/nan": 0.02,
    "box/any bits": 0.03,
}
SPECIAL = np.array([0x7F800000, 0xFF800000], np.uint32)
NAN = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF], np.uint32)


def random_cases(count: int, seed: int) -> tuple[Cases, NDArray[np.int64]]:
    """`count` cases and, for each, the index of its kind in `SHARES`; the same for a seed on every
    run. The kinds come in order, so that their shares hold for any count."""
    rng = np.random.default_rng(seed)
    edges = np.floor(np.cumsum([0.0, *SHARES.values()]) * count + 1e-6).astype(int)
    edges[-1] = count
    kinds = np.repeat(np.arange(len(SHARES)), np.diff(edges))
    parts = [_MAKERS[name](rng, n) for name, n in zip(SHARES, np.diff(edges), strict=True)]
    words = np.concatenate([part[0] for part in parts])
    node_type = np.concatenate([part[1] for part in parts])
    origin, direction, inverse = (
        np.concatenate([getattr(part[2], name) for part in parts]).view(np.uint32)
        for name in ("origin", "direction", "inverse_direction")
    )
    user = rng.random(count) < 0.02
    node_type[user] = rng.integers(6, 8, int(user.sum()))
    descriptor, low, high, backed = _addresses(rng, node_type)
    cases = Cases(
        descriptor=descriptor,
        pointer_low=low,
        pointer_high=high,
        node_words=words,
        backed=backed,
        extent=_extents(rng, count),
        origin=origin,
        direction=direction,
        inverse_direction=inverse,
    )
    return cases, kinds


def kind_names() -> tuple[str, ...]:
    return tuple(SHARES)


def _triangle_types(rng: Random, count: int) -> U32:
    return rng.choice(4, count, p=(0.4, 0.3, 0.15, 0.15)).astype(np.uint32)


def _triangles(rng: Random, vertices: geometry.F32, rays: geometry.Rays) -> Parts:
    words = geometry.triangle_words(rng, vertices)
    return words, _triangle_types(rng, len(words)), rays


def _boxes(rng: Random, low: geometry.F32, high: geometry.F32, rays: geometry.Rays) -> Parts:
    half = rng.random(len(low)) < 0.4
    node_type = np.where(half, layout.NODE_BOX_FP16, layout.NODE_BOX_FP32).astype(np.uint32)
    return geometry.box_words(rng, low, high, half), node_type, rays


def _exact(at: str, parallel: bool = False) -> Callable[[Random, int], Parts]:
    def make(rng: Random, count: int) -> Parts:
        return _triangles(rng, *geometry.exact_triangles(rng, count, at, parallel))

    return make


def _scaled_triangles(low: int, high: int) -> Callable[[Random, int], Parts]:
    """Products and sums near the ends of float32: vertices times 2^low..2^high."""

    def make(rng: Random, count: int) -> Parts:
        vertices, rays = geometry.exact_triangles(rng, count, "inside", False)
        noise = 1 + rng.random((count, 5, 3)).astype(np.float32) / 64
        scale = geometry.scales(rng, count, low, high)
        with np.errstate(over="ignore", under="ignore"):
            origin = rays.origin * scale
            direction = rays.direction * geometry.scales(rng, count, -40, 20)
            rays = geometry.make_rays(origin, direction)
            vertices = (vertices * noise * scale[:, None]).astype(np.float32)
            return _triangles(rng, vertices, rays)

    return make


def _denormal_boxes(rng: Random, count: int) -> Parts:
    """Bounds from float32's denormals up to half's smallest numbers, directions of all sizes."""
    low, high, rays = geometry.any_boxes(rng, count, 0, 0)
    scale = geometry.scales(rng, count, -148, -12)
    with np.errstate(over="ignore", under="ignore"):
        direction = rays.direction * geometry.scales(rng, count, -60, 60)
        rays = geometry.make_rays(rays.origin * scale, direction)
        return _boxes(rng, low * scale[:, None], high * scale[:, None], rays)


def _sprinkled(
    base: Callable[[Random, int], Parts], values: U32, words: int
) -> Callable[[Random, int], Parts]:
    """Each case gets one to three of `values` in its node (first `words` words behind a box's
    pointers) or its ray."""

    def make(rng: Random, count: int) -> Parts:
        node, node_type, rays = base(rng, count)
        first = np.where(node_type >= layout.NODE_BOX_FP16, 4, 0)
        fields = [a.copy().view(np.uint32) for a in (rays.origin, rays.direction)]
        fields.append(rays.inverse_direction.copy().view(np.uint32))
        rows = np.arange(count)
        for step in range(3):
            target = rng.integers(0, 8 if step == 0 else 24, count)
            value = rng.choice(values, count)
            at = rows[target < 5]
            where = first[at] + rng.integers(0, words, len(at))
            node[at, np.minimum(where, 27)] = value[at]
            for index, field in enumerate(fields):
                at = rows[target == 5 + index]
                field[at, rng.integers(0, 3, len(at))] = value[at]
        return node, node_type, geometry.Rays(*(a.view(np.float32) for a in fields))

    return make


def _any_bits(box: bool) -> Callable[[Random, int], Parts]:
    def make(rng: Random, count: int) -> Parts:
        low, high = (layout.NODE_BOX_FP16, 6) if box else (0, layout.NODE_BOX_FP16)
        bits = [geometry.any_bits(rng, (count, 3)).view(np.float32) for _ in range(3)]
        # Half of the exponents are tamed: bits that are all random mostly overflow.
        words = geometry.any_bits(rng, (count, 32))
        tame = rng.random((count, 32)) < 0.5
        words = np.where(tame, words & np.uint32(0x81FFFFFF) | np.uint32(0x3E000000), words)
        node_type = rng.integers(low, high, count).astype(np.uint32)
        return words.astype(np.uint32), node_type, geometry.Rays(*bits)

    return make


def _any_triangles(rng: Random, count: int) -> Parts:
    return _triangles(rng, *geometry.any_triangles(rng, count))


def _any_boxes(rng: Random, count: int) -> Parts:
    return _boxes(rng, *geometry.any_boxes(rng, count, -10, 10))


_MAKERS: dict[str, Callable[[Random, int], Parts]] = {
    "triangle/any": _any_triangles,
    "triangle/edge": _exact("edge"),
    "triangle/vertex": _exact("vertex"),
    "triangle/axis-parallel": _exact("edge", parallel=True),
    "triangle/degenerate": lambda rng, n: _triangles(rng, *geometry.degenerate_triangles(rng, n)),
    "triangle/infinite": _sprinkled(_any_triangles, SPECIAL, 15),
    "triangle/denormal": _scaled_triangles(-149, -30),
    "triangle/huge": _scaled_triangles(30, 120),
    "triangle/nan": _sprinkled(_any_triangles, NAN, 15),
    "triangle/any bits": _any_bits(box=False),
    "box/any": _any_boxes,
    "box/corner": lambda rng, n: _boxes(rng, *geometry.corner_boxes(rng, n)),
    "box/axis-parallel": lambda rng, n: _boxes(rng, *geometry.plane_boxes(rng, n)),
    "box/infinite": _sprinkled(_any_boxes, SPECIAL, 12),
    "box/endless": lambda rng, n: _boxes(rng, *geometry.endless_boxes(rng, n)),
    "box/denormal": _denormal_boxes,
    "box/nan": _sprinkled(_any_boxes, NAN, 12),
    "box/any bits": _any_bits(box=True),
}


def _extents(rng: Random, count: int) -> U32:
    how = rng.random(count)
    typical = np.abs(rng.normal(size=count) * 8).astype(np.float32)
    small = (rng.integers(0, 32, count) / 4).astype(np.float32)
    values = np.where(how < 0.4, np.float32(np.inf), np.where(how < 0.7, typical, small))
    bits = values.astype(np.float32).view(np.uint32)
    return np.where(how > 0.95, geometry.any_bits(rng, (count,)), bits).astype(np.uint32)


def _addresses(rng: Random, node_type: U32) -> tuple[U32, U32, U32, U32]:
    """Descriptors `[n, 4]`, pointer words and backed blocks; a few out of bounds."""
    count = len(node_type)
    base = rng.integers(0, 1 << 40, count, np.uint64) >> rng.integers(0, 40, count, np.uint64)
    index = rng.integers(0, 1 << 29, count, np.uint64) >> rng.integers(0, 29, count, np.uint64)
    far = rng.random(count) < 0.04
    # Beyond 2^29 units and below 2^37 the pointer needs its high word and the address can fit.
    index = np.where(far, rng.integers(1 << 29, 1 << 37, count, np.uint64), index)
    # Keeps base + index in 48 bits: base counts 256 bytes, index 64.
    base = np.minimum(base, np.uint64((1 << 40) - (1 << 35) - 8))
    last = index + (node_type == layout.NODE_BOX_FP32)
    spare = rng.integers(0, 3, count, np.uint64) * rng.integers(0, 1 << 30, count, np.uint64)
    limit = last + spare
    resource = np.full(count, layout.DESCRIPTOR_TYPE, np.uint64)
    backed = np.where(node_type == layout.NODE_BOX_FP32, 2, 1).astype(np.uint32)

    fault = rng.random(count)
    bad_type = fault < 0.02
    resource[bad_type] = rng.integers(0, 8, int(bad_type.sum()))
    short = (fault >= 0.02) & (fault < 0.04) & (last > 0)
    limit[short] = last[short] - 1
    beyond = (fault >= 0.04) & (fault < 0.06)  # the last block at or past 2^48, or just below
    top = (np.uint64(1 << 42) - (base << np.uint64(2))) - np.uint64(1)
    index = np.where(beyond, top + rng.integers(0, 3, count, np.uint64) - backed, index)
    limit = np.where(beyond, np.uint64((1 << 42) - 1), limit)
    backed[(fault >= 0.06) & (fault < 0.08)] -= 1

    growth = rng.choice(np.array([0, 1, 2, 6]), count)
    growth = np.where(rng.random(count) < 0.6, growth, rng.integers(0, 256, count))
    growth = growth.astype(np.uint64)
    sort, mode = (rng.random((2, count)) < 0.7).astype(np.uint64)
    noise = geometry.any_bits(rng, (2, count)).astype(np.uint64)  # fields that nothing reads
    low32 = np.uint64(0xFFFFFFFF)
    u = np.uint64
    second = base >> u(32) | (noise[0] & u(0x7FFF)) << u(8) | growth << u(23) | sort << u(31)
    fourth = limit >> u(32) | (noise[1] & u(0x3FFF)) << u(10) | mode << u(24)
    fourth |= (noise[1] >> u(16) & u(7)) << u(25) | resource << u(28)
    descriptor = np.stack([base & low32, second, limit & low32, fourth], axis=1)
    pointer = index << u(3) | node_type.astype(np.uint64)
    return (
        descriptor.astype(np.uint32),
        (pointer & low32).astype(np.uint32),
        (pointer >> u(32)).astype(np.uint32),
        backed,
    )
