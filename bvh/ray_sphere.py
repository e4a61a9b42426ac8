"""Ray/sphere test of the oracle, and where on a sphere a point lies: float32, over arrays of rays.

The test is that of Haines, Guenther and Akenine-Moeller ("Precision Improvements for Ray/Sphere
Intersection", Ray Tracing Gems, chapter 7, 2019): the discriminant from the ray's nearest point to
the centre instead of from b^2 - 4ac (Hearn and Baker), and both roots without cancellation (Press
et al.). A direction is first scaled by a power of two, so that its length neither overflows nor
matters. With u = 2^-24, f the distance from origin to centre, r the radius and h half the chord,
a root is off by at most ROOT_ERROR * u * (f + r) * (1 + r / h), in units of length: what is left is
the conditioning of a grazing ray. A ray that passes the surface within DISTANCE_ERROR * u * (f + r)
may be told to hit or to miss. `bvh/shaders/sphere.wgsl` is the same in WGSL.

A place on a sphere is (u, v), both 0 to 1: longitude about +Y from -X through -Z, and the angle
from the upper pole (+Y), as textures are mapped. They are what a hit on a sphere reports.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Mask = NDArray[np.bool_]

ROOT_ERROR = 8.0
DISTANCE_ERROR = 8.0

# sin(pi x) / x in powers of x^2 for |x| <= 1/2, off by 1.1e-7; atan(x) / (pi x) in powers of x^2
# for |x| <= 1, off by 4.3e-8 (least squares on Chebyshev nodes).
_SINE = (3.14159264, -5.16771008, 2.55007752, -0.59829129, 0.07765766)
_ARC = (
    *(0.31830985, -0.10609892, 0.06356405, -0.04461618),
    *(0.03153209, -0.01889714, 0.00769234, -0.00148612),
)


@dataclass(frozen=True, slots=True)
class SphereHits:
    """Where rays [n] enter (row 0) and leave (row 1) their spheres; of those that miss t is NaN and
    the normal that of the place that they pass."""

    t: F32  # [2, n] in units of the given direction
    normal: F32  # [2, 3, n] outward, unit


def intersect_spheres(origin: F32, direction: F32, center: F32, radius: F32) -> SphereHits:
    """Rays `origin`, `direction` [3, n] against one sphere each: `center` [3, n], `radius` [n].
    Both crossings of the whole line, whatever the ray's interval."""
    bits = np.abs(direction).max(0).view(np.uint32)
    exponent = np.minimum(bits >> np.uint32(23), np.uint32(253))
    scale = ((np.uint32(254) - exponent) << np.uint32(23)).view(np.float32)
    d = direction * scale
    f = origin - center
    a, b = _dot(d, d), -_dot(f, d)
    nearest = f + (b / a) * d
    discriminant = radius * radius - _dot(nearest, nearest)
    hit = discriminant >= 0
    root = np.sqrt(np.where(hit, discriminant, np.float32(0)) / a)
    q = b + np.copysign(a * root, b)
    c = _dot(f, f) - radius * radius
    with np.errstate(divide="ignore", invalid="ignore"):
        t0 = np.where(q == 0, np.float32(0), c / q)
    t1 = q / a
    t = np.stack([np.minimum(t0, t1), np.maximum(t0, t1)]) * scale
    t[:, ~hit] = np.nan
    normal = np.stack([_unit(nearest - root * d), _unit(nearest + root * d)])
    return SphereHits(np.asarray(t, np.float32), normal)


def encode_place(normal: F32) -> F32:
    """[2, ...] u and v of unit vectors `[3, ...]`."""
    x, y, z = normal
    u = np.float32(0.5) + np.float32(0.5) * _half_turns(z, x)
    return np.stack([u, _half_turns(np.sqrt(x * x + z * z), y)])


def decode_place(u: F32, v: F32) -> F32:
    """[..., 3] unit vectors of places; u and v are clamped to 0..1."""
    one = np.float32(1)
    u, v = np.clip(u, np.float32(0), one), np.clip(v, np.float32(0), one)
    around = np.float32(2) * u - one
    size = np.abs(around)
    ring = _sine(np.minimum(v, one - v))
    half = np.float32(0.5)
    along = np.copysign(_sine(np.minimum(size, one - size)), around)
    rows = np.stack([ring * _sine(half - size), _sine(half - v), ring * along])
    return np.moveaxis(_unit(rows), 0, -1)


def _half_turns(y: F32, x: F32) -> F32:
    """The angle of (x, y) over pi, -1 to 1; 0 for (0, 0)."""
    wide, tall = np.abs(x), np.abs(y)
    most = np.maximum(np.maximum(wide, tall), np.float32(1e-37))
    slope = np.minimum(wide, tall) / most
    angle: Any = slope * _series(_ARC, slope * slope)
    angle = np.where(tall > wide, np.float32(0.5) - angle, angle)
    angle = np.where(x < 0, np.float32(1) - angle, angle)
    return np.asarray(np.where(y < 0, -angle, angle))


def _sine(x: F32) -> F32:
    """sin(pi x) for |x| <= 1/2."""
    return np.asarray(x * _series(_SINE, x * x))


def _series(factors: tuple[float, ...], x: Any) -> F32:
    total: Any = np.full_like(x, np.float32(factors[-1]))
    for factor in factors[-2::-1]:
        total = total * x + np.float32(factor)
    return np.asarray(total)


def _dot(a: F32, b: F32) -> F32:
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def _unit(v: Any) -> F32:
    return np.asarray(v / np.maximum(np.sqrt(_dot(v, v)), np.float32(1e-37)))
