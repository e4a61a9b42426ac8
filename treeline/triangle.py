"""The smallest whole path: one triangle, its BLAS, a TLAS with one instance, one traversal pass.

Read it to plug in a pass of your own. The pass traces in a fragment shader, so that what it
finds is what the canvas shows; the canvas is a window, or offscreen where a file is wanted.
The canvas has 1280x720 pixels, coloured by barycentric coordinates.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.build import BuildOptions, build_blas
from bvh.gpu.trace_rays import traversal_slots
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from engine.frame.frame import Frame
from engine.frame.render_pass import Pass
from engine.gpu.device import Device
from engine.gpu.shader import compose

SIZE = (1280, 720)
CORNERS = [[[-0.9, -0.8, 0.0], [0.9, -0.8, 0.0], [0.0, 0.8, 0.0]]]
# What the traversal kernel leaves to its user: the stack, the alpha test, the counters.
PARTS = {"stack": "stack_64", "accept": "accept_all", "count": "count_nothing"}


def scene_words(options: BuildOptions) -> NDArray[np.uint32]:
    """The guest bytes that the shader traverses: the TLAS, then the BLAS."""
    none = np.zeros(1, np.uint32)  # geometry 0, primitive 0
    blas = build_blas(np.array(CORNERS, np.float32), none, none, np.array([True]), options)
    instance = BvhInstance(blas=0, transform=np.eye(4), mask=0xFF)
    return assemble([blas], ["triangle"], [instance], options).words


def traversal_pass(device: Device, target_format: str) -> Pass:
    """A pass says what it reads and writes, and encodes; `Frame` does everything else."""
    slots = traversal_slots("fast")
    slots |= {slot: f"bvh/shaders/{name}.wgsl" for slot, name in PARTS.items()}
    module = device.compile(compose("treeline/shaders/triangle.wgsl", slots))
    pipeline = device.wgpu.create_render_pipeline(
        layout="auto",
        vertex={"module": module, "entry_point": "cover"},
        fragment={"module": module, "entry_point": "shoot", "targets": [{"format": target_format}]},
        primitive={"topology": "triangle-list"},
    )

    def attachments(resources: Any) -> dict[str, Any]:
        target = {"view": resources["canvas"], "load_op": "clear", "store_op": "store"}
        return {"color_attachments": [target]}

    def encode(encoder: Any, resources: Any) -> None:
        buffers = (resources["bvh"], resources["zero"])
        entries = [{"binding": i, "resource": {"buffer": b}} for i, b in enumerate(buffers)]
        layout = pipeline.get_bind_group_layout(0)
        encoder.set_pipeline(pipeline)
        encoder.set_bind_group(0, device.wgpu.create_bind_group(layout=layout, entries=entries))
        encoder.draw(3)

    return Pass("triangle", ("bvh", "zero"), ("canvas",), encode, attachments)


def plug_in(device: Device, canvas: Any, options: BuildOptions) -> None:
    """Lets the pass draw every frame of a rendercanvas canvas."""
    context = canvas.get_wgpu_context()
    target_format = context.get_preferred_format(device.wgpu.adapter)
    context.configure(device=device.wgpu, format=target_format)
    given = {
        "bvh": device.upload("bvh", scene_words(options)),
        "zero": device.buffer("zero", 16, "UNIFORM|COPY_DST"),
    }
    frame = Frame(device, [traversal_pass(device, target_format)], given, given=tuple(given))

    def draw() -> None:
        frame.resources["canvas"] = context.get_current_texture().create_view()
        frame.submit()

    canvas.request_draw(draw)
