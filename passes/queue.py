"""Ray queues: a header and records in one buffer, filled by a pass and drained by the next.

Every push past the capacity counts in `dropped`; a traversal that fails sets `failed` bits. Either
makes the frame invalid. Dispatch arguments live in a buffer of their own, since WebGPU rejects a
buffer that is writable and indirect in one dispatch.
"""

from engine.gpu.structs import Field, Struct

QUEUE_HEADER = Struct(
    "QueueHeader",
    Field("count", "u32"),  # pushes, dropped ones included
    Field("capacity", "u32"),  # records that fit, written by the pass that fills the queue
    Field("dropped", "u32"),
    Field("failed", "u32"),  # bits of bvh.gpu.trace_rays.FAILURES
    Field("replaced", "u32"),  # directions below the geometric horizon that were mirrored up
    Field("texture_fetches", "u32"),  # texels' footprints read for this queue's hits
    Field("hits", "u32"),  # hits found by the pass that drained the queue
    Field("drained", "u32"),  # records that an earlier pass of this frame traced (passes/mixed.py)
    Field("lost", "u32"),  # samples that a rough lobe sent below the surface: no ray, no light
    # Pixels that none of the four nearest rays stands for (passes/shaders/upsample.wgsl): that
    # others do, farther away; that none does.
    Field("widened", "u32"),
    Field("unlike", "u32"),
    # Records begin at a multiple of 32 bytes: a vec3f in one needs 16, and one of 32 bytes is then
    # read at once.
    *(Field(f"pad_{i}", "u32") for i in range(5)),
)
GROUP_SIZE = 64  # lanes of every queue kernel


def wgsl() -> str:
    """The header for kernels that drain a queue, and `AtomicQueueHeader` for those that fill it."""
    plain = QUEUE_HEADER.wgsl()
    atomic = plain.replace("QueueHeader", "AtomicQueueHeader").replace(": u32", ": atomic<u32>")
    return plain + atomic + f"const QUEUE_GROUP_SIZE: u32 = {GROUP_SIZE}u;\n"
