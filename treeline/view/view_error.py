"""What went wrong, as the window shows it."""

from dataclasses import dataclass
from typing import Any

from engine.gpu.errors import AdapterError, LimitError, UserError
from engine.gpu.shader import ShaderError

# Of these the user can mend something, or try again; anything else is a fault of the program.
EXPECTED: tuple[type[Exception], ...] = (UserError, ShaderError, MemoryError)


@dataclass(frozen=True, slots=True)
class ViewError:
    """`kind`: "device" (lost: it takes a new one), "shader", "limit" (more than the adapter has),
    "request" (something asked for that cannot be), or "fault" (ours)."""

    message: str
    kind: str


class ViewFailure(Exception):
    """Carries an error from where it was found to where it is shown."""

    def __init__(self, error: ViewError) -> None:
        super().__init__(error.message)
        self.error = error


def expected_errors() -> tuple[type[Exception], ...]:
    """What a frame may raise; wgpu's own errors are only known once it is imported."""
    import wgpu

    return (*EXPECTED, ViewFailure, wgpu.GPUError)


def view_error(error: BaseException) -> ViewError:
    """The error in the window's terms."""
    if isinstance(error, ViewFailure):
        return error.error
    text = str(error) or type(error).__name__
    return ViewError(text, kind_of(error))


def kind_of(error: BaseException) -> str:
    if isinstance(error, AdapterError) or _mentions_loss(error):
        return "device"
    if isinstance(error, ShaderError):
        return "shader"
    if isinstance(error, LimitError | MemoryError) or type(error).__name__ == "GPUOutOfMemoryError":
        return "limit"
    if isinstance(error, UserError):
        return "request"
    return "fault"


def _mentions_loss(error: Any) -> bool:
    """wgpu-native reports a lost device as a validation or internal error that says so."""
    text = str(error).lower()
    return "device" in text and "lost" in text
