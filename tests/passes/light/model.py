"""The frame's model of light, written from its description in ARCHITECTURE.md and sampled in other
ways: a reference that shares no line with the frame, its twins or its traversal.

Of a visible surface: what it emits; ambient light, a blend of the sky's colours, on what the
specular part leaves over; the rectangle's light, a point of it chosen evenly, where it is not
hidden; and one reflection. That is GGX with height-correlated masking, what it meets being lit in
the same way but for its own reflection, which sees the sky. Mirrors (roughness under 0.02) reflect
once and see the rectangle itself. Rougher surfaces than the cutoff reflect the sky, weighed by
their lobe's albedo. The lobe is sampled by half vectors of the distribution itself or evenly over
the hemisphere, one time in two (the frame: visible normals), and weighed by the whole BRDF.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.scene.light import RectLight
from engine.scene.scene import Scene
from tests.passes.light.brute_force import OFFSET, Caster, gather
from tests.passes.light.lobe_integral import lobe_albedo

MIRROR = 0.02
SHADOW_END = 0.9995  # of the way to the light


def unit(v: Any) -> Any:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def dots(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=-1)


def environment(scene: Scene, directions: Any) -> Any:
    sky = scene.environment
    zenith, horizon, ground = (np.array(c) for c in (sky.zenith, sky.horizon, sky.ground))
    height = directions[:, 1:2]
    share = np.sqrt(np.minimum(np.abs(height), 1))
    return horizon + share * (np.where(height >= 0, zenith, ground) - horizon)


def ambient(scene: Scene, normals: Any) -> Any:
    sky = scene.environment
    zenith, horizon, ground = (np.array(c) for c in (sky.zenith, sky.horizon, sky.ground))
    up = (1 + normals[:, 1:2]) / 2
    return up * (zenith + horizon) / 2 + (1 - up) * (ground + horizon) / 2


@dataclass(frozen=True)
class Points:
    """Surfaces seen along directions: positions, normals that face the viewer, materials."""

    position: Any
    geometric: Any
    normal: Any
    view: Any
    color: Any
    metal: Any
    rough: Any
    emissive: Any

    def __getitem__(self, rows: Any) -> "Points":
        return Points(*(value[rows] for value in vars(self).values()))

    def off_surface(self, directions: Any) -> Any:
        """Where rays along these start."""
        side = np.sign(dots(self.geometric, directions))[:, None]
        return self.position + OFFSET * side * self.geometric

    @property
    def f0(self) -> Any:
        return 0.04 + (self.color - 0.04) * self.metal[:, None]

    @property
    def alpha(self) -> Any:
        """Of the lobe; mirrors have none, but numbers."""
        return np.maximum(self.rough, MIRROR) ** 2

    @property
    def n_v(self) -> Any:
        return dots(self.normal, self.view)


def fresnel(f0: Any, cosine: Any) -> Any:
    return f0 + (1 - f0) * ((1 - cosine) ** 5)[:, None]


def distribution(n_h: Any, alpha: Any) -> Any:
    """GGX, density of half vectors' normals."""
    a2 = alpha**2
    return a2 / (np.pi * (n_h**2 * (a2 - 1) + 1) ** 2)


def lobe(points: Points, light: Any) -> Any:
    """The specular BRDF: D V F, V = G2 / (4 n.l n.v) in Heitz's closed form (2014)."""
    half = unit(points.view + light)
    n_l, n_v = np.maximum(dots(points.normal, light), 1e-9), np.maximum(points.n_v, 1e-9)
    a2 = points.alpha**2
    seen = n_v * np.sqrt(a2 + (1 - a2) * n_l**2) + n_l * np.sqrt(a2 + (1 - a2) * n_v**2)
    density = distribution(dots(points.normal, half), points.alpha)
    return fresnel(points.f0, dots(points.view, half)) * (0.5 * density / seen)[:, None]


def brdf(points: Points, light: Any) -> Any:
    half = unit(points.view + light)
    left = 1 - fresnel(points.f0, dots(points.view, half))
    diffuse = left * points.color * (1 - points.metal)[:, None] / np.pi
    return diffuse + np.where((points.rough >= MIRROR)[:, None], lobe(points, light), 0)


class Reference:
    """Estimates of a scene's pictures."""

    def __init__(
        self, scene: Scene, width: int, height: int, cutoff: float, bounces: int = 1
    ) -> None:
        self.scene, self.cutoff, self.bounces = scene, cutoff, bounces
        self.caster = Caster(scene, gather(scene))
        camera = scene.camera
        top = np.tan(camera.y_fov / 2)
        x = (2 * (np.arange(width) + 0.5) / width - 1) * top * width / height
        y = (1 - 2 * (np.arange(height) + 0.5) / height) * top
        grid = np.stack(np.broadcast_arrays(x[None], y[:, None], -1.0), -1).reshape(-1, 3)
        directions = unit(grid @ camera.transform[:3, :3].T)
        eye = np.broadcast_to(camera.transform[:3, 3], directions.shape)
        self.shape = height, width, 3
        self.sky = environment(scene, directions)
        self.covered, self.seen = self._meet(eye, directions)
        self.fixed = self._without_rays(self.seen)

    def _meet(self, origins: Any, directions: Any) -> tuple[Any, Points]:
        """Rows of the rays that hit something, and what they hit."""
        found, t, u, v = self.caster.nearest(origins, directions)
        rows = np.flatnonzero(found >= 0)
        triangle, view = found[rows], -directions[rows]
        data = self.caster.triangles
        weights = np.stack([1 - u[rows] - v[rows], u[rows], v[rows]], 1)[..., None]
        geometric = data.normal[triangle]
        stored = (weights * data.corner_normals[triangle]).sum(1)
        plain = np.linalg.norm(stored, axis=1, keepdims=True) == 0
        normal = unit(np.where(plain, geometric, stored))
        geometric = geometric * np.where(dots(geometric, view) < 0, -1, 1)[:, None]
        normal = normal * np.where(dots(normal, geometric) < 0, -1, 1)[:, None]
        bent = np.minimum(dots(normal, view) - 1e-3, 0)[:, None]
        normal = unit(normal - bent * view)
        kinds = [self.scene.materials[k] for k in data.material[triangle]]
        return rows, Points(
            position=(weights * data.corners[triangle]).sum(1),
            geometric=geometric,
            normal=normal,
            view=view,
            color=np.array([k.base_color[:3] for k in kinds]).reshape(-1, 3),
            metal=np.array([k.metallic for k in kinds]),
            rough=np.array([k.roughness for k in kinds]),
            emissive=np.array([k.emissive for k in kinds]).reshape(-1, 3),
        )

    def _without_rays(self, points: Points, reflects: bool = False) -> Any:
        """What needs no secondary ray; `reflects`: the sky is seen in it whatever its roughness."""
        albedo = lobe_albedo(points.f0, points.rough, points.n_v, MIRROR)
        dull = points.color * (1 - points.metal)[:, None] * (1 - albedo)
        total = points.emissive + dull * ambient(self.scene, points.normal)
        mirrored = 2 * points.n_v[:, None] * points.normal - points.view
        rough = reflects | (points.rough > self.cutoff)
        return total + np.where(rough[:, None], albedo * environment(self.scene, mirrored), 0)

    def _direct(self, points: Points, rng: np.random.Generator) -> Any:
        """From every light."""
        return sum(self._from_light(light, points, rng) for light in self.scene.lights)

    def _from_light(self, light: RectLight, points: Points, rng: np.random.Generator) -> Any:
        """From one evenly chosen point of the rectangle, with its shadow."""
        s, t = 2 * rng.random((2, len(points.position), 1)) - 1
        to_light = light.center + s * light.half_u + t * light.half_v - points.position
        distance = np.linalg.norm(to_light, axis=1)
        direction = to_light / distance[:, None]
        leaves, arrives = -(direction @ light.normal), dots(points.normal, direction)
        lit = (leaves > 0) & (arrives > 0) & (dots(points.geometric, direction) > 0)
        rows = np.flatnonzero(lit)
        origins = points.off_surface(direction)[rows]
        lit[rows] = self.caster.free(origins, direction[rows], SHADOW_END * distance[rows])
        weight = np.where(lit, arrives * leaves * light.area / distance**2, 0)
        reflected = brdf(points, np.where(lit[:, None], direction, points.normal))
        return reflected * weight[:, None] * np.array(light.radiance)

    def _lobe_directions(self, points: Points, rng: np.random.Generator) -> tuple[Any, Any]:
        """Directions [n, 3], and their density by solid angle [n]; half by half vectors."""
        n, count = points.normal, len(points.normal)
        helper = np.where(np.abs(n[:, :1]) > 0.7, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
        tangent = unit(np.cross(helper, n))
        other = np.cross(n, tangent)
        alpha = points.alpha
        r, phi = rng.random(count), 2 * np.pi * rng.random(count)
        evenly = rng.random(count) < 0.5
        cosine = np.where(evenly, r, np.sqrt((1 - r) / (1 + (alpha**2 - 1) * r)))
        sine = np.sqrt(np.maximum(0, 1 - cosine**2))
        local = np.stack([sine * np.cos(phi), sine * np.sin(phi), cosine], 1)
        around = local[:, :1] * tangent + local[:, 1:2] * other + local[:, 2:] * n
        mirrored = 2 * dots(around, points.view)[:, None] * around - points.view
        direction = unit(np.where(evenly[:, None], around, mirrored))
        half = unit(points.view + direction)
        n_h, v_h = dots(n, half), dots(points.view, half)
        by_half = distribution(n_h, alpha) * np.maximum(n_h, 0) / np.maximum(4 * v_h, 1e-12)
        return direction, 0.5 * by_half + 0.5 / (2 * np.pi)

    def _reflection(self, points: Points, rng: np.random.Generator, bounces: int) -> Any:
        """One sample of what `points`, none rougher than the cutoff, reflect on paths of at most so
        many rays; what the last one meets reflects the sky."""
        mirror = points.rough < MIRROR
        exact = 2 * points.n_v[:, None] * points.normal - points.view
        sampled, density = self._lobe_directions(points, rng)
        direction = np.where(mirror[:, None], exact, sampled)
        up = dots(points.normal, direction)
        keeps = (up > 0) & (dots(points.geometric, direction) > 0)
        safe = np.where(keeps[:, None], direction, points.normal)
        rough_weight = lobe(points, safe) * (up / density)[:, None]
        weight = np.where(mirror[:, None], fresnel(points.f0, points.n_v), rough_weight)
        origins = points.off_surface(safe)
        arriving = environment(self.scene, safe)
        rows, met = self._meet(origins, safe)
        arriving[rows] = self._without_rays(met, reflects=bounces == 1) + self._direct(met, rng)
        if bounces > 1:
            smooth = np.flatnonzero(met.rough <= self.cutoff)
            arriving[rows[smooth]] += self._reflection(met[smooth], rng, bounces - 1)
        reach = np.full(len(safe), np.inf)
        reach[rows] = np.linalg.norm(met.position - origins[rows], axis=1)
        arriving += np.where(mirror[:, None], self._light_seen(origins, safe, reach), 0)
        return np.where(keeps[:, None], weight, 0) * arriving

    def _light_seen(self, origins: Any, directions: Any, reach: Any) -> Any:
        """What a ray that ends at `reach` sees of the rectangles' fronts."""
        seen = (self._front(light, origins, directions, reach) for light in self.scene.lights)
        return sum(seen)

    def _front(self, light: RectLight, origins: Any, directions: Any, reach: Any) -> Any:
        facing = -(directions @ light.normal)
        t = -((light.center - origins) @ light.normal) / np.where(facing > 0, facing, np.inf)
        at = origins + t[:, None] * directions - light.center
        inside = (facing > 0) & (t > 0) & (t < reach)
        for edge in (light.half_u, light.half_v):
            inside &= np.abs(at @ edge) <= edge @ edge
        return inside[:, None] * np.array(light.radiance)

    def sample(self, rng: np.random.Generator) -> Any:
        """[height, width, 3] one sample of every pixel."""
        picture = self.sky.copy()
        radiance = self.fixed + self._direct(self.seen, rng)
        smooth = np.flatnonzero(self.seen.rough <= self.cutoff)
        radiance[smooth] += self._reflection(self.seen[smooth], rng, self.bounces)
        picture[self.covered] = radiance
        return picture.reshape(self.shape)
