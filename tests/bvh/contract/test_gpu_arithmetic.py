"""The shader's float arithmetic on bits equals NumPy's, every bit, on numbers of every kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gpu.stage import Stage

QUIET_NAN = 0x7FC00000
SHADER = """
#import $arithmetic
struct Parameters { zero: u32, operation: u32 }
@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> result: array<vec4<u32>>;
fn quotients(x: vec4u, y: vec4u) -> vec4u {
    return vec4u(div(x.x, y.x), div(x.y, y.y), div(x.z, y.z), div(x.w, y.w));
}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&a)) { return; }
    contract_zero = parameters.zero;
    let x = a[id.x];
    let y = b[id.x];
    switch parameters.operation {
        case 0u: { result[id.x] = add4(x, y); }
        case 1u: { result[id.x] = sub4(x, y); }
        case 2u: { result[id.x] = mul4(x, y); }
        case 3u: { result[id.x] = quotients(x, y); }
        case 4u: { result[id.x] = min_num4(x, y); }
        case 5u: { result[id.x] = max_num4(x, y); }
        case 6u: { result[id.x] = select(vec4u(0u), vec4u(1u), less4(x, y)); }
        case 7u: { result[id.x] = select(vec4u(0u), vec4u(1u), less_equal4(x, y)); }
        default: { result[id.x] = half_to_float4(x & vec4u(0xffffu)); }
    }
}
"""
SPECIAL = np.array(
    [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0xC800000, 0x3F800000, 0x3F800001, 0x7F7FFFFF]
    + [0x7F800000, 0x7FC00000, 0x7F800001, 0x33800000, 0x4B800000, 0x3F7FFFFF],
    np.uint32,
)


def operands(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values with both signs, any bits, neighbouring exponents, near ties."""
    special = np.concatenate([SPECIAL, SPECIAL | 0x80000000])
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    any_a, any_b = rng.integers(0, 1 << 32, (2, 60_000), np.uint32)
    close_a = rng.integers(0, 1 << 32, 60_000, np.uint32)
    close_b = close_a + rng.integers(-(30 << 23), 30 << 23, 60_000).astype(np.uint32)
    tiny_a = (
        rng.integers(0, 1 << 25, 30_000, np.uint32) | rng.integers(0, 2, 30_000, np.uint32) << 31
    )
    tiny_b = rng.integers(0, 1 << 27, 30_000, np.uint32)
    # Few significant bits: products and sums that lie half way between two floats are common.
    few = rng.integers(0, 1 << 32, (2, 30_000), np.uint32) & np.uint32(0xFFFFF000)
    few[:, ::2] += 1 << 11
    a = np.concatenate([a, any_a, close_a, tiny_a, few[0]]).astype(np.uint32)
    b = np.concatenate([b, any_b, close_b, tiny_b, few[1]]).astype(np.uint32)
    rest = -len(a) % 4
    return np.pad(a, (0, rest)), np.pad(b, (0, rest))


@pytest.fixture
def compute(device: Any, tmp_path: Path) -> Callable[..., np.ndarray]:
    path = tmp_path / "arithmetic.wgsl"
    path.write_text(SHADER)
    slots = {"arithmetic": "bvh/contract/shaders/arithmetic_exact.wgsl"}
    stage = Stage(device, "arithmetic", str(path), slots=slots)

    def run(operation: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = device.buffer("result", 4 * len(a))
        parameters = np.array([0, operation, 0, 0], np.uint32)
        resources = {
            "parameters": device.upload("parameters", parameters, "UNIFORM|COPY_DST"),
            "a": device.upload("a", a),
            "b": device.upload("b", b),
            "result": out,
        }
        stage.run(resources, -(-len(a) // 256))
        return np.asarray(device.read(out, np.uint32, count=len(a)))

    return run


def bits(values: np.ndarray) -> np.ndarray:
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(QUIET_NAN), words)


def test_sums_products_quotients(
    compute: Callable[..., np.ndarray], rng: np.random.Generator
) -> None:
    a, b = operands(rng)
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        expected = [bits(x + y), bits(x - y), bits(x * y), bits(x / y)]
    for operation, want in enumerate(expected):
        got = compute(operation, a, b)
        # A hardware NaN never reaches the result: NaN operands take the integer way.
        wrong = np.flatnonzero(got != want)
        assert [(hex(a[i]), hex(b[i]), hex(got[i]), hex(want[i])) for i in wrong[:5]] == []


def test_comparisons_and_minima_with_nan(
    compute: Callable[..., np.ndarray], rng: np.random.Generator
) -> None:
    a, b = operands(rng)
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        low, high = np.fmin(x, y), np.fmax(x, y)
        less, less_equal = x < y, x <= y
    for operation, want in ((4, low), (5, high)):
        got = compute(operation, a, b).view(np.float32)
        # The sign of a zero is open: minNum(-0, +0) may be either.
        assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(compute(6, a, b), less.astype(np.uint32))
    assert np.array_equal(compute(7, a, b), less_equal.astype(np.uint32))


def test_every_half(compute: Callable[..., np.ndarray]) -> None:
    halves = np.arange(1 << 16, dtype=np.uint32)
    want = halves.astype(np.uint16).view(np.float16).astype(np.float32)
    got = compute(8, halves, halves)
    number = ~np.isnan(want)
    assert np.array_equal(got[number], want[number].view(np.uint32))
    assert np.isnan(got[~number].view(np.float32)).all()
