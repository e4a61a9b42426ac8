"""What a pass that draws over an earlier one's layer begins with: a copy of that layer.

Where a scene moves, shadow maps and probes keep layers of what never does; each frame that shows
another pose draws the rest over copies of them. The copy is a triangle of the pass itself, so that
the pass's time has it.
"""

from typing import Any

from engine.frame.render_pass import Resources
from engine.gpu.device import Device
from engine.gpu.shader import compose
from engine.gpu.stage import BindGroups, read_bindings

IDS_FORMAT = "rg32uint"  # object and triangle of each texel, or of each of the picture's pixels


class LayerCopy:
    """`depth` and `ids` name the resources, views of one layer each; without `ids` the pass has no
    colour attachment."""

    def __init__(self, device: Device, name: str, depth: str, ids: str = "") -> None:
        self.reads = (depth, ids) if ids else (depth,)
        shader = compose("passes/shaders/copy_layer.wgsl", {})
        bindings = read_bindings(shader)
        bindings = bindings if ids else bindings[:1]
        self._bound = {"below_depth": depth, "below_ids": ids}
        self._groups = BindGroups(device, bindings, "FRAGMENT")
        settings: dict[str, Any] = {
            "vertex": {"entry_point": "vertex_main"},
            "primitive": {"topology": "triangle-list", "cull_mode": "none"},
            "depth_stencil": {
                "format": "depth32float",
                "depth_write_enabled": True,
                "depth_compare": "always",
            },
            "fragment": {
                "entry_point": "ids_main" if ids else "depth_main",
                "targets": [{"format": IDS_FORMAT}] if ids else [],
            },
        }
        pipelines, layout = device.pipelines, self._groups.layout
        self._pipeline = pipelines.render(f"{name}/copy", shader, layout, settings)

    def put(self, encoder: Any, resources: Resources) -> None:
        """Into a render pass or a bundle, before anything is drawn."""
        own = {inner: resources[outer] for inner, outer in self._bound.items() if outer}
        encoder.set_pipeline(self._pipeline.native)
        encoder.set_bind_group(0, self._groups.get(own))
        encoder.draw(3)
