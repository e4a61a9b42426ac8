"""The G-buffer's first half: which triangle each pixel sees, by rasterising.

One 8-byte attachment (object, triangle) of WebGPU's guaranteed 32 bytes a sample;
passes/shaders/resolve.wgsl turns it into barycentrics, normals, materials and depth. Nothing is
culled: rays see both sides too.
"""

from typing import Any

from engine.frame.render_pass import Pass, Resources
from engine.gpu.shader import compose
from engine.gpu.stage import BindGroups, read_bindings
from passes.gpu_scene import GpuScene

IDS_FORMAT = "rg32uint"
NOTHING = 0xFFFFFFFF  # `object` of a pixel that sees no triangle


def raster_pass(scene: GpuScene) -> Pass:
    """Draws every object of the scene, non-opaque ones with the alpha test."""
    device = scene.device
    accept = "accept_alpha" if scene.has_alpha else "accept_opaque"
    shader = compose(
        "passes/shaders/gbuffer_raster.wgsl", {"accept": f"passes/shaders/{accept}.wgsl"}
    )
    bindings = read_bindings(shader)
    bind_groups = BindGroups(device, bindings, "VERTEX|FRAGMENT")
    pipelines = {
        entry: device.pipelines.render(
            f"gbuffer/{entry}",
            shader,
            bind_groups.layout,
            {
                "vertex": {"entry_point": "vertex_main"},
                "primitive": {"topology": "triangle-list", "cull_mode": "none"},
                "depth_stencil": {
                    "format": "depth32float",
                    "depth_write_enabled": True,
                    "depth_compare": "greater",  # reversed depth
                },
                "fragment": {"entry_point": entry, "targets": [{"format": IDS_FORMAT}]},
            },
        )
        for entry in ("opaque_main", "alpha_main")
    }
    bundles: dict[int, Any] = {}

    def record(resources: Resources) -> Any:
        encoder = device.wgpu.create_render_bundle_encoder(
            label="gbuffer", color_formats=[IDS_FORMAT], depth_stencil_format="depth32float"
        )
        group = bind_groups.get(resources)
        encoder.set_index_buffer(resources["geometry"], "uint32")
        objects = scene.prepared.pack.objects
        opaque = [scene.prepared.scene.materials[int(o["material"])].opaque for o in objects]
        for entry in ("opaque_main", "alpha_main"):
            wanted = [i for i, x in enumerate(opaque) if x == (entry == "opaque_main")]
            encoder.set_pipeline(pipelines[entry].native)
            encoder.set_bind_group(0, group)
            for index in wanted:
                count = int(objects["triangle_count"][index])
                if count:
                    first = 3 * int(objects["first_triangle"][index])
                    encoder.draw_indexed(3 * count, 1, first, 0, index)
        return encoder.finish()

    def encode(encoder: Any, resources: Resources) -> None:
        # The same buffers each frame: the draws are recorded once.
        key = id(resources["frame"])
        if key not in bundles:
            bundles[key] = record(resources)
        encoder.execute_bundles([bundles[key]])

    def attachments(resources: Resources) -> dict[str, Any]:
        return {
            "color_attachments": [
                {
                    "view": resources["ids"],
                    "load_op": "clear",
                    "store_op": "store",
                    "clear_value": (NOTHING, NOTHING, 0, 0),
                }
            ],
            "depth_stencil_attachment": {
                "view": resources["raster_depth"],
                "depth_load_op": "clear",
                "depth_store_op": "discard",
                "depth_clear_value": 0.0,
            },
        }

    reads = tuple(b.name for b in bindings)
    return Pass("gbuffer/raster", reads, ("ids", "raster_depth"), encode, attachments)
