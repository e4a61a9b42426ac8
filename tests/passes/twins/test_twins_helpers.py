"""The functions that stages share, on the GPU against their twins and both against float64 or a
plain definition, over inputs that a small scene does not have."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.gpu import shader
from engine.gpu.stage import Stage
from engine.scene.mips import SRGB_TO_LINEAR
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.twins import wgsl_functions as wgsl
from passes.twins.brdf import evaluate_brdf, reflection_weight, smith_lambda
from passes.twins.octahedral import decode_normal, encode_normal
from passes.twins.sampling import basis, random, sample_visible_normal
from passes.twins.surface import away
from passes.twins.textures import TextureRecord, sample_texture, srgb_to_linear, wrap_coordinate

BINDINGS = """
@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var<storage, read> texels: array<u32>;
@group(0) @binding(4) var<storage, read> given: array<array<u32, COLUMNS>>;
@group(0) @binding(5) var<storage, read_write> found: array<array<u32, RESULTS>>;
fn f(lane: u32, column: u32) -> f32 { return bitcast<f32>(given[lane][column]); }
fn vec(lane: u32, column: u32) -> vec3f {
    return vec3f(f(lane, column), f(lane, column + 1u), f(lane, column + 2u));
}
"""


@pytest.fixture
def on_gpu(device: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """on_gpu(files, expression, results, *columns, texels=) -> [n, results] uint32.

    Runs `expression`, an array<u32, results> in terms of `lane`, `given[lane][column]`,
    `f(lane, column)` and `vec(lane, column)`, once a row of the columns."""
    read = shader._read

    def runner(files: str, expression: str, results: int, *columns: Any, texels: Any = None) -> Any:
        words = [np.ascontiguousarray(c).view(np.uint32).reshape(len(c), -1) for c in columns]
        rows = np.concatenate(words, axis=1)
        text = "#import passes.frame_uniforms\n"
        text += "".join(f'#import "passes/shaders/{name}.wgsl"\n' for name in files.split())
        text += BINDINGS.replace("COLUMNS", str(rows.shape[1])).replace("RESULTS", str(results))
        text += (
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n"
            "    let lane = id.x;\n    if (lane >= arrayLength(&given)) { return; }\n"
            f"    found[lane] = array<u32, {results}>({expression});\n}}\n"
        )
        monkeypatch.setattr(shader, "_read", lambda s: text if s == "function.wgsl" else read(s))
        # Padded: a buffer's length is a multiple of 16 bytes.
        rows = np.concatenate([rows, np.zeros((4, rows.shape[1]), np.uint32)])
        nothing = device.upload("nothing", np.zeros(4, np.uint32))
        resources = {
            "frame": device.buffer("frame", FRAME_UNIFORMS.size, "UNIFORM|COPY_DST"),
            "tables": nothing,
            "geometry": nothing,
            "texels": nothing if texels is None else device.upload("texels", texels),
            "given": device.upload("given", rows),
            "found": device.buffer("found", 4 * results * len(rows)),
        }
        Stage(device, "function", "function.wgsl").run(resources, -(-len(rows) // 64))
        found = device.read(resources["found"], np.uint32, count=results * len(rows))
        return found.reshape(len(rows), results)[: len(columns[0])]

    return runner


def floats(words: Any) -> Any:
    return np.ascontiguousarray(words).view(np.float32)


def units(rng: np.random.Generator, count: int) -> Any:
    v = rng.normal(size=(count, 3))
    return (v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32)


def hemisphere(rng: np.random.Generator, count: int) -> Any:
    v = units(rng, count)
    v[:, 2] = np.abs(v[:, 2])
    return v


def test_random_numbers_are_equal_to_the_bit(on_gpu: Any, rng: np.random.Generator) -> None:
    pixel = np.concatenate([np.arange(2000), rng.integers(0, 2**32, 48)]).astype(np.uint32)
    rows = []
    for frame_index, seed, dimension in ((0, 0, 0), (1, 0, 1), (2**32 - 1, 2**32 - 1, 85)):
        given = [np.full(len(pixel), k, np.uint32) for k in (frame_index, seed, dimension)]
        call = "random(given[lane][0], given[lane][1], given[lane][2], given[lane][3])"
        gpu = floats(on_gpu("sampling", f"bitcast<u32>({call})", 1, pixel, *given))[:, 0]
        cpu = random(pixel, np.uint32(frame_index), np.uint32(seed), dimension)
        assert (gpu == cpu).all()
        assert 0 <= cpu.min() and cpu.max() < 1 and abs(cpu.mean() - 0.5) < 0.02
        rows.append(cpu)
    assert np.abs(np.corrcoef(rows) - np.eye(3)).max() < 0.08


def test_octahedral_codes(on_gpu: Any, rng: np.random.Generator) -> None:
    zero, minus = np.float32(0.0), np.float32(-0.0)
    axes = [s * np.eye(3, dtype=np.float32)[k] for k in range(3) for s in (1, -1)]
    folds = [(0.6, 0.8, zero), (0.6, -0.8, minus), (-0.6, 0.8, minus), (minus, 0.6, -0.8)]
    normals = np.concatenate([units(rng, 3000), axes, np.array(folds, np.float32)])
    gpu = on_gpu("octahedral", "encode_normal(vec(lane, 0u))", 1, normals)[:, 0]
    cpu = encode_normal(normals)
    assert (gpu == cpu).all()
    back = "decode_normal(given[lane][0])"
    words = on_gpu("octahedral", ", ".join(f"bitcast<u32>({back}.{c})" for c in "xyz"), 3, cpu)
    decoded = decode_normal(cpu)
    assert np.abs(floats(words) - decoded).max() < 2e-7
    assert np.abs(decoded - normals).max() < 1e-4
    assert np.abs(np.linalg.norm(decoded.astype(float), axis=1) - 1).max() < 2e-7


def test_packing_is_the_drivers(on_gpu: Any, rng: np.random.Generator) -> None:
    value = np.concatenate(
        [rng.uniform(-1.2, 1.2, 4000), np.arange(-512, 513) / 510, [0.0, -0.0, 1.0, 0.5]]
    ).astype(np.float32)
    pair = np.stack([value, value[::-1]], 1)
    quad = np.concatenate([pair, np.roll(pair, 7, 0)], 1)
    radiance = np.exp(rng.uniform(-18, 11, (4000, 2))).astype(np.float32)
    for name, twin, given in (
        ("pack2x16unorm", wgsl.pack_2x16_unorm, pair),
        ("pack2x16snorm", wgsl.pack_2x16_snorm, pair),
        ("pack2x16float", wgsl.pack_2x16_float, radiance),
    ):
        gpu = on_gpu("octahedral", f"{name}(vec(lane, 0u).xy)", 1, given, given[:, :1])[:, 0]
        assert (gpu == twin(given)).all(), name
    call = "pack4x8unorm(vec4f(vec(lane, 0u), f(lane, 3u)))"
    assert (on_gpu("octahedral", call, 1, quad)[:, 0] == wgsl.pack_4x8_unorm(quad)).all()

    code = rng.integers(0, 2**32, 3000).astype(np.uint32)
    for name, unpack, count in (
        ("unpack2x16unorm", wgsl.unpack_2x16_unorm, 2),
        ("unpack2x16snorm", wgsl.unpack_2x16_snorm, 2),
        ("unpack4x8unorm", wgsl.unpack_4x8_unorm, 4),
    ):
        call = ", ".join(f"bitcast<u32>({name}(given[lane][0]).{c})" for c in "xyzw"[:count])
        gpu = floats(on_gpu("octahedral", call, count, code))
        assert np.abs(gpu - unpack(code)).max() < 1.2e-7, name


def test_next_float_away(on_gpu: Any, rng: np.random.Generator) -> None:
    value = np.concatenate([rng.normal(size=500), [0.0, -0.0, 1.0, -1.0, 1e30, -1e-30, 2.0]])
    value = np.tile(value.astype(np.float32), 3)
    side = np.repeat(np.float32([1e-7, -1e-7, 0.0]), len(value) // 3)
    gpu = floats(on_gpu("surface", "bitcast<u32>(away(f(lane, 0u), f(lane, 1u)))", 1, value, side))
    cpu = away(value, side)
    assert (gpu[:, 0] == cpu).all()
    expected = np.nextafter(value, np.copysign(np.float32(np.inf), side), dtype=np.float32)
    expected = np.where((side == 0) | (value == 0), value, expected)
    assert (cpu == expected).all()


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_wrapped_coordinates(on_gpu: Any, mode: int) -> None:
    value = np.concatenate([np.arange(-40, 41), [-(2**31), 1 - 2**31, 2**31 - 1, 2**30]]).astype(
        np.int32
    )
    for size in (1, 2, 5, 8):
        given = [np.full(len(value), k, np.uint32) for k in (size, mode)]
        call = "wrap_coordinate(bitcast<i32>(given[lane][0]), given[lane][1], given[lane][2])"
        gpu = on_gpu("textures", call, 1, value, *given)[:, 0]
        cpu = wrap_coordinate(value.astype(np.int64), np.full(len(value), size), given[1])
        assert (gpu == cpu).all()
        assert cpu.min() >= 0 and cpu.max() < size
        plain = {0: np.arange(size), 1: np.arange(size), 2: np.r_[:size, size - 1 : -1 : -1]}[mode]
        inner = (value >= 0) & (value < len(plain))
        assert (cpu[inner] == plain[value[inner]]).all()


def test_srgb_decoding_is_the_host_table(on_gpu: Any) -> None:
    value = np.arange(256, dtype=np.float32) / np.float32(255)
    words = on_gpu("textures", "bitcast<u32>(srgb_to_linear(vec3f(f(lane, 0u))).x)", 1, value)
    assert np.abs(srgb_to_linear(value) - SRGB_TO_LINEAR).max() < 2e-7
    assert np.allclose(floats(words)[:, 0], SRGB_TO_LINEAR, rtol=5e-6, atol=1e-7)


@pytest.mark.parametrize("flags", range(18))
def test_samples_far_outside_a_texture(on_gpu: Any, rng: np.random.Generator, flags: int) -> None:
    """Every wrap in both directions, sRGB or not; all mip levels of an odd size; huge uvs."""
    flags = (flags % 2) | (flags // 2 % 3) << 1 | flags // 6 << 3
    width, height = 13, 6
    levels = [(max(1, width >> k), max(1, height >> k)) for k in range(4)]
    texels = rng.integers(0, 2**32, 5 + sum(w * h for w, h in levels)).astype(np.uint32)
    uv = rng.uniform(-4, 4, (300, 2))
    uv[-40:] *= 10.0 ** rng.uniform(1, 9, (40, 1))
    uv = uv.astype(np.float32)
    lod = rng.uniform(-2, 6, 300).astype(np.float32)
    # In the middle of a level: where it changes is up to the last bit.
    lod = np.rint(lod)
    record = f"Texture(5u, {width}u, {height}u, 4u, {flags}u, array<u32, 3>())"
    call = f"sample_texture({record}, vec(lane, 0u).xy, f(lane, 2u))"
    expression = ", ".join(f"bitcast<u32>({call}.{c})" for c in "xyzw")
    gpu = floats(on_gpu("textures", expression, 4, uv, lod, texels=texels))
    same = [np.full(300, k, np.uint32) for k in (5, width, height, 4, flags)]
    cpu = sample_texture(texels, TextureRecord(*same), uv, lod)
    assert np.abs(gpu - cpu).max() < 2e-5
    assert cpu.min() >= 0 and cpu.max() <= 1


def test_basis_is_orthonormal(on_gpu: Any, rng: np.random.Generator) -> None:
    n = np.concatenate([units(rng, 500), [[0, 0, 1], [0, 0, -1], [1, 0, -0.0]]]).astype(np.float32)
    b = "basis(vec(lane, 0u))"
    expression = ", ".join(
        f"bitcast<u32>({b}.{v}.{c})" for v in ("tangent", "bitangent") for c in "xyz"
    )
    gpu = floats(on_gpu("sampling", expression, 6, n))
    cpu = basis(n)
    assert np.abs(gpu - np.concatenate([cpu.tangent, cpu.bitangent], 1)).max() < 1e-6
    frame = np.stack([cpu.tangent, cpu.bitangent, n], 1).astype(float)
    assert np.abs(frame @ frame.transpose(0, 2, 1) - np.eye(3)).max() < 1e-6
    assert np.abs(np.linalg.det(frame) - 1).max() < 1e-6


def test_visible_normals(on_gpu: Any, rng: np.random.Generator) -> None:
    view = np.concatenate([hemisphere(rng, 2000), [[0, 0, 1], [1, 0, 0], [0, 0, 1]]])
    view = view.astype(np.float32)
    alpha = rng.uniform(0.0005, 1, len(view)).astype(np.float32)
    r1, r2 = rng.random((2, len(view))).astype(np.float32)
    r1[-1] = r2[-1] = 0
    call = "sample_visible_normal(vec(lane, 0u), f(lane, 3u), f(lane, 4u), f(lane, 5u))"
    expression = ", ".join(f"bitcast<u32>({call}.{c})" for c in "xyz")
    gpu = floats(on_gpu("sampling", expression, 3, view, alpha, r1, r2))
    with np.errstate(divide="ignore", invalid="ignore"):
        cpu = sample_visible_normal(view, alpha, r1, r2)
    assert np.abs(gpu - cpu).max() < 1e-5
    assert (cpu[:, 2] > 0).all()
    assert np.abs(np.linalg.norm(cpu.astype(float), axis=1) - 1).max() < 1e-6


def test_visible_normals_have_their_distribution(rng: np.random.Generator) -> None:
    # The mean of the sampled half vectors' z against a quadrature of the density
    # D(h) G1(v) max(0, v.h) / v.z (Heitz 2018, equation 3).
    alpha = 0.6
    for theta in (0.3, 1.2):
        v = np.float32([np.sin(theta), 0.0, np.cos(theta)])
        n = 40000
        r1, r2 = rng.random((2, n)).astype(np.float32)
        h = sample_visible_normal(np.tile(v, (n, 1)), np.full(n, alpha, np.float32), r1, r2)
        z, phi = np.meshgrid((np.arange(800) + 0.5) / 800, 2 * np.pi * (np.arange(800) + 0.5) / 800)
        s = np.sqrt(1 - z * z)
        cosine = np.maximum(0, v[0] * s * np.cos(phi) + v[2] * z)
        density = cosine * alpha**2 / (np.pi * (z * z * (alpha**2 - 1) + 1) ** 2)
        density /= density.sum()
        assert h[:, 2].mean() == pytest.approx((density * z).sum(), abs=0.004)
        assert h[:, 0].mean() == pytest.approx((density * s * np.cos(phi)).sum(), abs=0.004)


@pytest.mark.parametrize("roughness", [6 / 255, 0.05, 0.2, 0.6, 1.0])
def test_reflectance_against_float64(
    on_gpu: Any, rng: np.random.Generator, roughness: float
) -> None:
    """Light around the mirror direction, where a narrow lobe is large."""
    count = 1500
    normal, view = units(rng, count), units(rng, count)
    view = np.where((normal * view).sum(1, keepdims=True) < 0, -view, view)
    view = wgsl.normalize(view + np.float32(0.2) * normal)
    spread = rng.normal(size=(count, 3)) * roughness**2
    h = normal + spread
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    light = 2 * (h * view).sum(1, keepdims=True) * h - view
    light = (light / np.linalg.norm(light, axis=1, keepdims=True)).astype(np.float32)
    color = rng.random((count, 3)).astype(np.float32)
    metalness = rng.random(count).astype(np.float32)
    rough = np.full(count, roughness, np.float32)
    arguments = (
        "vec(lane, 0u), f(lane, 3u), f(lane, 4u), vec(lane, 5u), vec(lane, 8u), vec(lane, 11u)"
    )
    given = (color, metalness, rough, normal, view, light)
    with np.errstate(all="ignore"):
        brdf, weight = evaluate_brdf(*given), reflection_weight(*given)
    for name, twin in (("evaluate_brdf", brdf), ("reflection_weight", weight)):
        expression = ", ".join(f"bitcast<u32>({name}({arguments}).{c})" for c in "xyz")
        gpu = floats(on_gpu("brdf", expression, 3, *given))
        assert np.allclose(gpu, twin, rtol=2e-3, atol=1e-5), name

    # The same in float64 from the same float32 inputs, made unit again.
    n, v, li = (
        x / np.linalg.norm(x, axis=1, keepdims=True)
        for x in (normal.astype(float), view.astype(float), light.astype(float))
    )
    half = (v + li) / np.linalg.norm(v + li, axis=1, keepdims=True)
    alpha = np.float64(rough) ** 2
    n_l, n_v, v_h = (n * li).sum(1), np.maximum((n * v).sum(1), 1e-4), (v * half).sum(1)
    sine = np.linalg.norm(np.cross(n, half), axis=1)
    f0 = 0.04 * (1 - metalness[:, None]) + color * metalness[:, None].astype(float)
    fresnel = f0 + (1 - f0) * (1 - v_h[:, None]) ** 5
    d = alpha**2 / (np.pi * (sine**2 + (1 - sine**2) * alpha**2) ** 2)
    masking = 1 / (1 + smith_lambda(n_l, alpha) + smith_lambda(n_v, alpha))
    specular = fresnel * (d * masking / (4 * n_l * n_v))[:, None]
    diffuse = (1 - fresnel) * (1 - metalness[:, None]) * color / np.pi
    truth = (diffuse + specular) * n_l[:, None]
    lit = n_l > 0.05
    error = np.abs(brdf - truth)[lit] / (truth[lit] + 1e-3)
    assert error.max() < 0.01
