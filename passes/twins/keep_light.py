"""Twin of keep_light.wgsl: a queue that keeps of each ray the point of a light, by slot."""

from typing import Any

from passes.twins.wgsl_functions import U32


class KeptLights:
    """In place of a RayQueue where shadow rays are not traced, over their results."""

    def __init__(self, results: U32) -> None:
        self.results = results

    def push(self, rays: Any) -> None:
        self.results[rays["slot"]] = rays["light_uv"]
