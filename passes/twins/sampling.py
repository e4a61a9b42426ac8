"""Twin of sampling.wgsl: random numbers (the same bits) and sampled directions."""

from dataclasses import dataclass

import numpy as np

from passes.twins.wgsl_functions import F32, U32, cross, inverse_sqrt, normalize, vector

PI = np.float32(3.14159265)
LEAST_HEIGHT = np.float32(1.0e-4)
REFLECTION_DIMENSION = 0
PRIMARY_LIGHT_DIMENSION = 2
REFLECTED_LIGHT_DIMENSION = 4
OCCLUSION_DIMENSION = 6


def reflection_dimension(bounce: int) -> int:
    return REFLECTION_DIMENSION if bounce == 1 else 4 + 2 * bounce


def light_dimension(kind: int, number: int) -> int:
    if number > 0 or kind > 1:
        return 32 + 8 * kind + 2 * number
    return REFLECTED_LIGHT_DIMENSION if kind > 0 else PRIMARY_LIGHT_DIMENSION


def light_choice_dimension(kind: int, number: int) -> int:
    return 80 + 4 * kind + number


def pcg(value: U32) -> U32:
    state = value * np.uint32(747796405) + np.uint32(2891336453)
    word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    return np.asarray((word >> np.uint32(22)) ^ word)


def random(pixel: U32, frame_index: U32, seed: U32, dimension: int) -> F32:
    """[n] in [0, 1) for `pixel` [n]; the other arguments are the same in all lanes."""
    # One-element arrays: unlike a NumPy scalar they wrap around in silence, as a GPU does.
    frame_index, seed = np.atleast_1d(frame_index), np.atleast_1d(seed)
    far, near = divmod(dimension, 16)
    beyond = np.uint32(far * 0x9E3779B9 & 0xFFFFFFFF)
    key = pcg(seed * np.uint32(16) + np.uint32(near) + beyond)
    key = pcg(pixel + pcg(frame_index + key))
    return np.asarray((key >> np.uint32(8)).astype(np.float32) * np.float32(5.9604645e-8))


@dataclass(frozen=True, slots=True)
class Basis:
    tangent: F32
    bitangent: F32


def basis(n: F32) -> Basis:
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    s = np.where(z >= 0.0, np.float32(1.0), np.float32(-1.0))
    a = np.float32(-1.0) / (s + z)
    b = x * y * a
    return Basis(vector(1.0 + s * x * x * a, s * b, -s * x), vector(b, s + y * y * a, -y))


def sample_cosine(r1: F32, r2: F32) -> F32:
    """[n, 3] directions about +z for r1 and r2 [n]."""
    radius = np.sqrt(r1)
    phi = np.float32(2.0) * PI * r2
    return vector(radius * np.cos(phi), radius * np.sin(phi), np.sqrt(np.float32(1.0) - r1))


def sample_visible_normal(view: F32, alpha: F32, r1: F32, r2: F32) -> F32:
    """[n, 3] half vectors around +z for views [n, 3], alpha, r1 and r2 [n]."""
    v = normalize(vector(alpha * view[..., 0], alpha * view[..., 1], view[..., 2]))
    vx, vy, vz = v[..., 0], v[..., 1], v[..., 2]
    length2 = vx * vx + vy * vy
    tilted = vector(-vy, vx, np.zeros_like(vx)) * inverse_sqrt(length2)[..., None]
    t1 = np.where(length2[..., None] > 0.0, tilted, np.array([1, 0, 0], np.float32))
    t2 = cross(v, t1)
    radius = np.sqrt(r1)
    phi = np.float32(2.0) * PI * r2
    p1 = radius * np.cos(phi)
    s = np.float32(0.5) * (1.0 + vz)
    p2 = (1.0 - s) * np.sqrt(np.maximum(0.0, 1.0 - p1 * p1)) + s * radius * np.sin(phi)
    rise = np.sqrt(np.maximum(0.0, 1.0 - p1 * p1 - p2 * p2))
    n = p1[..., None] * t1 + p2[..., None] * t2 + rise[..., None] * v
    nz = np.maximum(np.float32(1.0e-6), n[..., 2])
    return normalize(vector(alpha * n[..., 0], alpha * n[..., 1], nz))
