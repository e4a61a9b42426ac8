"""A camera's way through a scene: key frames of position, target and angle, and a smooth curve.

Position and target each follow a Catmull-Rom spline in time (Catmull and Rom 1974): the speed at a
key is the slope of the parabola through it and its neighbours, which is Catmull-Rom's own where
times are even. The camera looks from one curve to the other with +Y up. So it never rolls and has
at every key exactly what the key says; turning the orientations by slerp would roll, and lose the
target between two keys. The angle is linear between keys: a spline could leave (0, 180).
"""

from dataclasses import dataclass, replace

import numpy as np

from engine.scene.camera import Camera, look_at
from engine.scene.mesh import F64

_STEEPEST = 1e-6  # least sine of the angle between a view and +Y


@dataclass(frozen=True, slots=True)
class CameraPath:
    """`loop` closes the path: after the last key's time it begins again at the first's, and the
    curve passes there smoothly where both keys are equal."""

    times: F64  # [k], rising
    positions: F64  # [k, 3]
    targets: F64  # [k, 3]
    y_fovs: F64  # [k] radians
    loop: bool = False
    near: float = 1e-3

    @property
    def duration(self) -> float:
        """Seconds from the first key to the last."""
        return float(self.times[-1] - self.times[0])

    def at(self, time: float) -> Camera:
        """The camera at `time` in seconds; before and after the path it stands at its end."""
        if self.loop and self.duration > 0:
            time = self.times[0] + (time - self.times[0]) % self.duration
        time = min(max(time, float(self.times[0])), float(self.times[-1]))
        position, target = self._curve(self.positions, time), self._curve(self.targets, time)
        y_fov = float(np.interp(time, self.times, self.y_fovs))
        if not looks_somewhere(position, target):  # the curves meet, or it passes the zenith
            nearest = int(np.abs(self.times - time).argmin())
            target = position + self.targets[nearest] - self.positions[nearest]
        return replace(look_at(position, target, y_fov), near=self.near)

    def _curve(self, points: F64, time: float) -> F64:
        if len(points) == 1:
            return points[0].copy()
        after = min(max(int(np.searchsorted(self.times, time, side="right")), 1), len(points) - 1)
        start, end = self.times[after - 1], self.times[after]
        span, at = end - start, (time - start) / (end - start)
        slopes = self._slope(points, after - 1), self._slope(points, after)
        at2, at3 = at * at, at * at * at
        value = (2 * at3 - 3 * at2 + 1) * points[after - 1] + (3 * at2 - 2 * at3) * points[after]
        value += span * ((at3 - 2 * at2 + at) * slopes[0] + (at3 - at2) * slopes[1])
        return np.asarray(value)

    def _slope(self, points: F64, key: int) -> F64:
        last = len(points) - 1
        steps, spans = np.diff(points, axis=0), np.diff(self.times)
        speeds = steps / spans[:, None]
        if 0 < key < last:
            before, after = key - 1, key
        elif self.loop and last > 1:
            before, after = last - 1, 0  # the ends are one key
        else:
            return np.asarray(speeds[0 if key == 0 else -1])
        weighted = spans[after] * speeds[before] + spans[before] * speeds[after]
        return np.asarray(weighted / (spans[before] + spans[after]))


def looks_somewhere(position: F64, target: F64) -> bool:
    """Whether a camera with +Y up can look from one point at another."""
    way = np.asarray(target, np.float64) - position
    length = float(np.linalg.norm(way))
    return length > 0 and float(np.hypot(way[0], way[2])) > _STEEPEST * length
