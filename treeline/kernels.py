"""stub"""

from typing import Any


def compile_all(device: Any) -> list[tuple[str, str | None]]:
    return []
