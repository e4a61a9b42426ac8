"""Which counts a table takes up at once, and which a few times a second."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passes.frame_stats import FrameStats
    from treeline.view.session import ViewSession


def counts_to_see(session: "ViewSession") -> "FrameStats | bool":
    """Those of a view at rest. While it moves they follow each other every few frames, and only
    whether there are any is to be seen at once."""
    counted = session.counted
    if counted is None or session.moving:
        return counted is not None
    return counted
