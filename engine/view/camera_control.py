"""Orbit and fly cameras for mouse and keyboard, with Blender's habits.

Both keep the viewing direction as yaw about the world's +Y axis and pitch above the horizon. The
axes follow from these two angles without a cross product with "up", so nothing is undefined when
looking straight up or down, and a pitch kept within a quarter turn never flips the picture. World
units are metres, angles radians, mouse moves logical pixels, times seconds.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection

import numpy as np

from engine.scene.camera import Camera
from engine.scene.mesh import F64
from engine.view.camera_text import camera_from_text, camera_text

ORBIT_PER_PIXEL = 0.007  # Blender's 0.4 degrees
LOOK_PER_PIXEL = 0.004
KEY_STEP = np.pi / 12  # the keypad's orbit step
ZOOM_PER_NOTCH = 1.12
NOTCH = 100.0  # what a canvas counts for one notch of the wheel
STILL_AFTER_S = 0.15
FLY_SECONDS = 8.0  # to cross the scene's diagonal, without Shift
SHIFT_FACTOR = 4.0
NEAREST, FARTHEST = 1e-6, 1e3  # distances to the pivot, in scene diagonals

AXIS_VIEWS = {  # action -> (yaw, pitch)
    "view front": (0.0, 0.0),  # from +Z
    "view back": (np.pi, 0.0),
    "view right": (0.5 * np.pi, 0.0),  # from +X
    "view left": (-0.5 * np.pi, 0.0),
    "view top": (0.0, -0.5 * np.pi),
    "view bottom": (0.0, 0.5 * np.pi),
}
TURNS = {  # action -> change of (yaw, pitch)
    "turn left": (-KEY_STEP, 0.0),
    "turn right": (KEY_STEP, 0.0),
    "turn up": (0.0, -KEY_STEP),
    "turn down": (0.0, KEY_STEP),
}
FLY_KEYS = {  # key -> direction in camera axes (right, world up, forward)
    "w": (0, 0, 1),
    "s": (0, 0, -1),
    "d": (1, 0, 0),
    "a": (-1, 0, 0),
    "e": (0, 1, 0),
    "q": (0, -1, 0),
}


def rotation(yaw: float, pitch: float) -> F64:
    """[3, 3] camera-to-world axes (right, up, back) of a direction; yaw 0 looks along -Z."""
    sy, cy, sp, cp = math.sin(yaw), math.cos(yaw), math.sin(pitch), math.cos(pitch)
    return np.array([[cy, sy * sp, sy * cp], [0.0, cp, -sp], [-sy, cy * sp, cy * cp]])


def backward(yaw: float, pitch: float) -> tuple[float, float, float]:
    """The last of `rotation`'s axes."""
    level = math.cos(pitch)
    return math.sin(yaw) * level, -math.sin(pitch), math.cos(yaw) * level


def direction_angles(forward: F64, right: F64) -> tuple[float, float]:
    """(yaw, pitch) of a unit viewing direction; `right` gives the yaw straight up and down."""
    pitch = float(np.arctan2(forward[1], np.hypot(forward[0], forward[2])))
    if np.hypot(forward[0], forward[2]) > 1e-6:
        return float(np.arctan2(-forward[0], -forward[2])), pitch
    return float(np.arctan2(-right[2], right[0])), pitch


class CameraControl(ABC):
    """What both controls share: the pose, a pivot in front of it, axis views, focus, text.

    `box` [2, 3] is the scene's (minimum, maximum); its diagonal sets all speeds. `size` is the
    picture's in logical pixels. `camera()` returns exactly the camera that was set until it moves;
    moving levels it: roll is not kept.
    """

    def __init__(
        self, camera: Camera, box: F64, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self.size: tuple[float, float] = (960.0, 540.0)
        self._still_at = -np.inf
        self.set_box(box)
        self.set_camera(camera)
        self._still_at = -np.inf

    # ---- state ------------------------------------------------------------------------------

    def set_box(self, box: F64) -> None:
        """[2, 3] minimum and maximum of the scene."""
        self.box = np.asarray(box, np.float64).reshape(2, 3).copy()
        self._centre: list[float] = self.box.mean(0).tolist()
        diagonal = float(np.linalg.norm(self.box[1] - self.box[0]))
        self.diagonal = diagonal if 0 < diagonal < np.inf else 1.0

    def set_camera(self, camera: Camera) -> None:
        """Takes over a pose; its pivot is what it looks at, as far ahead as the scene's centre."""
        self._camera = camera
        self.y_fov, self.near = camera.y_fov, camera.near
        self.position = camera.position
        self.yaw, self.pitch = direction_angles(camera.forward, camera.transform[:3, 0])
        ahead = float((self._centre - self.position) @ camera.forward)
        self.distance = self._reach(ahead if ahead > 0 else 0.25 * self.diagonal)
        self._touch()

    def camera(self) -> Camera:
        return self._camera

    @property
    def pivot(self) -> F64:
        """[3]: what an orbit turns about."""
        return self.position - self.distance * rotation(self.yaw, self.pitch)[:, 2]

    @property
    def moving(self) -> bool:
        """True until a short while after the last change."""
        return self._clock() < self._still_at

    def _touch(self) -> None:
        self._still_at = self._clock() + STILL_AFTER_S

    def _reach(self, distance: float) -> float:
        return min(max(float(distance), NEAREST * self.diagonal), FARTHEST * self.diagonal)

    def _place(
        self, position: F64, yaw: float, pitch: float, distance: float | None = None
    ) -> None:
        """Moves the camera; a place too far out to be a number is not taken."""
        limit = FARTHEST * self.diagonal
        place = position.tolist()
        if not all(map(math.isfinite, (*place, yaw, pitch))):
            return
        self.yaw = (yaw + math.pi) % (2 * math.pi) - math.pi
        self.pitch = min(max(pitch, -0.5 * math.pi), 0.5 * math.pi)
        if distance is not None:
            self.distance = self._reach(distance)
        transform = np.zeros((4, 4))
        transform[:3, :3] = rotation(self.yaw, self.pitch)
        transform[:3, 3] = [
            middle + min(max(at - middle, -limit), limit)
            for at, middle in zip(place, self._centre, strict=True)
        ]
        transform[3, 3] = 1.0
        self.position = transform[:3, 3].copy()
        self._camera = Camera(transform, self.y_fov, self.near)
        self._touch()

    def _turn_about_pivot(self, yaw: float, pitch: float) -> None:
        if not (math.isfinite(yaw) and math.isfinite(pitch)):
            return
        pitch = min(max(pitch, -0.5 * math.pi), 0.5 * math.pi)
        turns = zip(backward(yaw, pitch), backward(self.yaw, self.pitch), strict=True)
        shift = [self.distance * (new - old) for new, old in turns]
        self._place(self.position + shift, yaw, pitch)

    # ---- what both do -----------------------------------------------------------------------

    def focus(self, box: F64) -> None:
        """Looks at the middle of a box [2, 3] from where all of it is seen; the direction stays."""
        low, high = np.asarray(box, np.float64).reshape(2, 3)
        if not np.isfinite([low, high]).all():
            return
        radius = max(0.5 * float(np.linalg.norm(high - low)), NEAREST * self.diagonal)
        aspect = self.size[0] / max(self.size[1], 1.0)
        half = np.arctan(np.tan(0.5 * self.y_fov) * min(1.0, aspect))
        distance = self._reach(1.05 * radius / np.sin(half))
        back = rotation(self.yaw, self.pitch)[:, 2]
        self._place(0.5 * (low + high) + distance * back, self.yaw, self.pitch, distance)

    def act(self, action: str) -> bool:
        """Does one of the camera's shortcuts (engine/view/shortcuts.py); False for others."""
        if action in AXIS_VIEWS:
            self._turn_about_pivot(*AXIS_VIEWS[action])
        elif action in TURNS:
            yaw, pitch = TURNS[action]
            self._turn_about_pivot(self.yaw + yaw, self.pitch + pitch)
        elif action in ("nearer", "farther"):
            self.wheel(-NOTCH if action == "nearer" else NOTCH)
        else:
            return False
        return True

    def key(self, name: str, down: bool, modifiers: Collection[str] = ()) -> bool:
        """A key that is held down went down or up; True when it was one of ours."""
        return False

    @abstractmethod
    def release_keys(self) -> None:
        """Forgets held keys, when the keyboard goes to something else."""

    @abstractmethod
    def update(self, dt: float) -> None:
        """Moves on by `dt` seconds of held keys."""

    @abstractmethod
    def drag(
        self, dx: float, dy: float, button: str = "left", modifiers: Collection[str] = ()
    ) -> None:
        """The mouse moved with a button ("left", "middle", "right") held down."""

    def wheel(self, dy: float) -> None:
        """The wheel turned: 100 a notch, positive towards the user (farther away)."""
        factor = float(ZOOM_PER_NOTCH ** np.clip(dy / NOTCH, -50.0, 50.0))
        pivot, distance = self.pivot, self._reach(self.distance * factor)
        back = rotation(self.yaw, self.pitch)[:, 2]
        self._place(pivot + distance * back, self.yaw, self.pitch, distance)

    def pan(self, dx: float, dy: float) -> None:
        """Moves sideways so that what is at the pivot stays under the mouse."""
        metres = 2.0 * self.distance * np.tan(0.5 * self.y_fov) / max(self.size[1], 1.0)
        axes = rotation(self.yaw, self.pitch)
        shift = metres * (dy * axes[:, 1] - dx * axes[:, 0])
        self._place(self.position + shift, self.yaw, self.pitch)

    def text(self) -> str:
        return camera_text(self._camera)

    def from_text(self, text: str) -> None:
        """Raises UserError and keeps the pose when `text` is no camera."""
        self.set_camera(camera_from_text(text))


class OrbitControl(CameraControl):
    """Left drag orbits, middle or Shift + left pans, the wheel and right drag move nearer."""

    def release_keys(self) -> None:
        """No key is held to orbit."""

    def update(self, dt: float) -> None:
        """Nothing goes on by itself."""

    def drag(
        self, dx: float, dy: float, button: str = "left", modifiers: Collection[str] = ()
    ) -> None:
        if button == "right" or (button == "middle" and "Control" in modifiers):
            self.wheel(dy * 0.1 * NOTCH)
        elif button == "middle" or "Shift" in modifiers:
            self.pan(dx, dy)
        else:
            self._turn_about_pivot(
                self.yaw - ORBIT_PER_PIXEL * dx, self.pitch - ORBIT_PER_PIXEL * dy
            )


class FlyControl(CameraControl):
    """W A S D fly, Q and E sink and rise, Shift is faster; right or left drag looks around, the
    middle button pans, the wheel changes the speed."""

    def __init__(
        self, camera: Camera, box: F64, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._held: dict[str, bool] = {}
        self.speed_factor = 1.0
        super().__init__(camera, box, clock)

    @property
    def speed(self) -> float:
        """Metres a second, without Shift."""
        return self.diagonal / FLY_SECONDS * self.speed_factor

    def drag(
        self, dx: float, dy: float, button: str = "left", modifiers: Collection[str] = ()
    ) -> None:
        if button == "middle":
            self.pan(dx, dy)
        else:
            yaw, pitch = self.yaw - LOOK_PER_PIXEL * dx, self.pitch - LOOK_PER_PIXEL * dy
            self._place(self.position, yaw, pitch)

    def wheel(self, dy: float) -> None:
        factor = self.speed_factor * ZOOM_PER_NOTCH ** -float(np.clip(dy / NOTCH, -50.0, 50.0))
        self.speed_factor = float(np.clip(factor, 1e-3, 1e3))

    def key(self, name: str, down: bool, modifiers: Collection[str] = ()) -> bool:
        lower = name.lower()
        if lower in FLY_KEYS or name == "Shift":
            # Control + a letter is a command, but a letter that was held is always let go.
            if down and "Control" in modifiers:
                return False
            self._held[lower] = down
            return name != "Shift"
        return super().key(name, down, modifiers)

    def release_keys(self) -> None:
        self._held.clear()

    def update(self, dt: float) -> None:
        direction = np.zeros(3)
        for name, axis in FLY_KEYS.items():
            if self._held.get(name):
                direction += axis
        length = float(np.linalg.norm(direction))
        if not length:
            return
        axes = rotation(self.yaw, self.pitch)
        world_up = np.array([0.0, 1.0, 0.0])
        heading = direction[0] * axes[:, 0] + direction[1] * world_up - direction[2] * axes[:, 2]
        faster = SHIFT_FACTOR if self._held.get("shift") else 1.0
        step = self.speed * faster * float(np.clip(dt, 0.0, 0.25)) / length
        self._place(self.position + step * heading, self.yaw, self.pitch)
