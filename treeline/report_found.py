"""Where reflections were found that were looked for on the screen, in a report's words."""

from collections.abc import Mapping
from typing import Any

FOUND_ROW = "reflections/found"


def found_sentence(row: Mapping[str, Any]) -> str:
    """Of the row FOUND_ROW: parts of all pixels that look for a reflection."""
    screen, probe, sky = (row[f"{name}_pixels"] for name in ("screen", "probe", "environment"))
    total = max(1, screen + probe + sky)
    cut = row.get("cut_pixels", 0)  # reports of before have none
    ended = f" {cut:,} were cut off: they had taken all their steps over the screen." if cut else ""
    return (
        f"Reflections of {screen + probe + sky:,} pixels: {screen / total:.1%} found on the "
        f"screen, {probe / total:.1%} in the probe, {sky / total:.1%} of neither: the environment "
        f"is shown.{ended}"
    )
