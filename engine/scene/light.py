"""The sources of light: rectangular area lights and an environment gradient.

Radiance is linear, in arbitrary units that the tone mapper takes as they are (a white diffuse
surface with irradiance pi has radiance 1).
"""

from dataclasses import dataclass

import numpy as np

from engine.scene.mesh import F64

Color = tuple[float, float, float]

MOST_LIGHTS = 16  # of a scene: a shadow ray names its light with four bits


@dataclass(frozen=True, slots=True)
class RectLight:
    """A one-sided rectangle `center` +- `half_u` +- `half_v` (half edge vectors [3], metres)."""

    center: F64
    half_u: F64
    half_v: F64
    radiance: Color

    @property
    def normal(self) -> F64:
        """[3] unit side it emits to: along cross(half_u, half_v)."""
        axis = np.cross(self.half_u, self.half_v)
        return axis / np.linalg.norm(axis)

    @property
    def area(self) -> float:
        """Square metres."""
        return float(4.0 * np.linalg.norm(np.cross(self.half_u, self.half_v)))


@dataclass(frozen=True, slots=True)
class Environment:
    """Radiance of rays that leave the scene: `horizon` at direction.y = 0 blends to `zenith` at
    1 and to `ground` at -1."""

    zenith: Color
    horizon: Color
    ground: Color


DEFAULT_ENVIRONMENT = Environment(
    zenith=(0.12, 0.17, 0.28), horizon=(0.28, 0.29, 0.30), ground=(0.10, 0.09, 0.08)
)
