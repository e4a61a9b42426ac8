"""Which ray of the picked pixel is looked at, and which of its steps."""

from typing import TYPE_CHECKING

from engine.view.shortcuts import Shortcut
from treeline.view.pick import Pick
from treeline.view.ray_walk import RayWalk
from treeline.view.step_check import StepCheck, check_steps

if TYPE_CHECKING:
    from treeline.view.session import ViewSession
    from treeline.view.view_state import ViewState

RAY_SHORTCUTS = (
    Shortcut("ray step back", "previous step", ",", group="Ray", repeat=True),
    Shortcut("ray step on", "next step", ".", group="Ray", repeat=True),
    Shortcut("ray first step", "first step", ",", ("Control",), group="Ray"),
    Shortcut("ray last step", "last step", ".", ("Control",), group="Ray"),
    Shortcut("ray hit", "step of the hit", "/", group="Ray"),
    Shortcut("ray before", "previous ray of the pixel", "[", group="Ray"),
    Shortcut("ray after", "next ray of the pixel", "]", group="Ray"),
)


class RayCursor:
    """`walks` are the steps of the picked pixel's rays, by ray, made one a frame after a pick;
    `checks` what the GPU said of them. `wanted` is the ray to verify, `moved` whether another step
    was gone to, so that a list has to show it.
    `work` does what the interface must not wait for; the application calls it after the present."""

    def __init__(self) -> None:
        self.walks: dict[int, RayWalk] = {}
        self.checks: dict[int, StepCheck] = {}
        self.wanted: int | None = None
        self.moved = False
        self._picked: Pick | None = None

    def follow(self, state: "ViewState") -> RayWalk | None:
        """Takes up a new pick and reads one ray more; the chosen ray's walk."""
        picked = state.picked
        if picked is not self._picked:
            self._picked, self.wanted = picked, None
            self.walks, self.checks = {}, {}
            state.ray_index = state.ray_step = 0
        if picked is None:
            return None
        state.ray_index = min(max(state.ray_index, 0), len(picked.rays) - 1)
        order = [state.ray_index, *range(len(picked.rays))]
        missing = next((number for number in order if number not in self.walks), None)
        if missing is not None:
            self.walks[missing] = RayWalk(picked.rays[missing])
        walk = self.walks[state.ray_index]
        state.ray_step = min(max(state.ray_step, 0), len(walk) - 1)
        return walk

    def act(self, action: str, state: "ViewState") -> bool:
        """Does what a shortcut of RAY_SHORTCUTS asks for; False for another's action."""
        if action not in {entry.action for entry in RAY_SHORTCUTS}:
            return False
        walk = self.follow(state)
        if walk is None or state.picked is None:
            return True
        rays, last = len(state.picked.rays), len(walk) - 1
        if action in ("ray before", "ray after"):
            step = 1 if action == "ray after" else -1
            self.choose_ray((state.ray_index + step) % rays, state)
            return True
        places = {
            "ray step back": state.ray_step - 1,
            "ray step on": state.ray_step + 1,
            "ray first step": 0,
            "ray last step": last,
            "ray hit": walk.hit if walk.hit >= 0 else last,
        }
        self.go_to(places[action], state)
        return True

    def choose_ray(self, number: int, state: "ViewState") -> None:
        """Another ray of the pixel, at its first step."""
        state.ray_index, state.ray_step = number, 0
        self.moved = True

    def go_to(self, step: int, state: "ViewState") -> None:
        """A step of the chosen ray; the node it was at becomes the selected one."""
        walk = self.follow(state)
        if walk is None:
            return
        state.ray_step = min(max(step, 0), len(walk) - 1)
        self.moved = True
        node = walk.node(state.ray_step)
        if node is not None:
            state.selected = node

    def verify_soon(self, number: int) -> None:
        """A ray's steps, in the next `work`."""
        self.wanted = number

    def work(self, session: "ViewSession") -> None:
        """Verifies the ray that was asked for; waits for the GPU."""
        number, self.wanted = self.wanted, None
        if number is not None and number in self.walks:
            walk = self.walks[number]
            self.checks[number] = check_steps(session.device, walk.ray, list(walk.steps))
