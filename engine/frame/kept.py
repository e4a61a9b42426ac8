"""What a pass wrote in an earlier frame, for as long as it need not be written again."""

from collections.abc import Hashable


class Kept:
    """One pass's. `wanted` is what its results depend on, told before each frame is encoded; None
    where that is not known, so that the pass runs in every frame. A frame that is left halfway
    leaves nothing that is kept."""

    def __init__(self) -> None:
        self.wanted: Hashable = None
        self._held: Hashable = None  # of what was written; None: nothing whole

    @property
    def stands(self) -> bool:
        """Whether the results are there already."""
        return self._held is not None and self._held == self.wanted

    def begin(self) -> None:
        """Before the pass, or its first part, is encoded."""
        self._held = None

    def end(self) -> None:
        """After it, or its last part, was."""
        self._held = self.wanted
