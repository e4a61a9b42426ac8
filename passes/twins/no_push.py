"""Twin of no_push.wgsl: a queue that keeps nothing."""

from typing import Any


class NoQueue:
    """In place of a RayQueue where rays are not traced."""

    def push(self, rays: Any) -> None:
        pass
