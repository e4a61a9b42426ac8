"""Draws a frame until it is whole."""

from engine.gpu.errors import CheckFailed
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs
from passes.hybrid import HybridFrame

DRAWS = 4  # until a frame's queues and stacks have the room that it needs


def draw_whole(
    frame: HybridFrame,
    index: int = 0,
    sample: int = 1,
    inputs: FrameInputs | None = None,
    *,
    name: str = "a frame",
) -> FrameStats:
    """As `frame.run`. A frame whose queues were too small is drawn again; CheckFailed, one line
    that begins with `name`, for one that fails all the same."""
    for _ in range(DRAWS):
        stats = frame.run(index, sample, inputs)
        if stats.valid:
            return stats
    raise CheckFailed(f"{name} failed: {'; '.join(stats.failures) or 'no room in its queues'}")
