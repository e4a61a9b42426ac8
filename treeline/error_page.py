"""A report's error against a reference: pictures side by side, and the page's section."""

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treeline.contact_sheet import Panel, contact_sheet
from treeline.error_rows import ROW, Compared, error_lines, error_sentence, precise
from treeline.image_error import displayed, flip_map, relative_error_map
from treeline.pictures import colour, heat_map, picture_uri
from treeline.report_table import find


def error_section(report: dict[str, Any], pictures: NDArray[np.uint8] | None) -> str:
    """Of the page; `pictures` as `error_pictures` makes them. Nothing without a reference."""
    found = find(report, ROW)
    if not found or pictures is None:
        return ""
    (row,) = found
    lines = "".join(
        f"<tr><td>{escape(label)}</td><td>{value}</td><td>{error}</td></tr>"
        for label, value, error in error_lines(row)
    )
    head = "<tr><th></th><th>value</th><th>standard error</th></tr>"
    return (
        f'<h2>Error</h2><div class="card"><table><thead>{head}</thead><tbody>{lines}</tbody>'
        f'</table><p class="soft">{escape(error_sentence(row))} {escape(row["formulas"])}</p></div>'
        f'<figure><img alt="Frame, reference and error maps" src="{picture_uri(pictures)}">'
        f"<figcaption>One frame, the reference, and how far they are apart: light is more."
        f"</figcaption></figure>"
    )


def error_pictures(compared: Compared) -> NDArray[np.uint8]:
    """Frame, reference, relative error and, with its library, FLIP, side by side."""
    frame, exposure = compared.found.pictures[0], compared.exposure
    error = compared.found.errors[0]
    relative = relative_error_map(frame, compared.reference)
    panels = [
        Panel("one frame, one sample a pixel", _bytes(displayed(frame, exposure))),
        Panel(f"reference: {compared.source}", _bytes(displayed(compared.reference, exposure))),
        Panel(
            f"relative error, 0 to 1, mean {precise(error.mean_relative)}",
            error_colours(relative, 1.0),
        ),
    ]
    flip = flip_map(frame, compared.reference, exposure)
    if flip is not None:
        panels.append(Panel(f"FLIP, 0 to 1, mean {precise(error.flip)}", error_colours(flip, 1.0)))
    return contact_sheet(panels, columns=2)


def error_colours(values: NDArray[Any], high: float) -> NDArray[np.uint8]:
    """Errors from 0 to `high` as colours; what is not finite is green, which no error is."""
    finite = np.isfinite(values)
    pixels = colour(heat_map(np.where(finite, values, 0.0), high)).copy()
    pixels[~finite] = (0, 255, 0)
    return pixels


def _bytes(unit: NDArray[Any]) -> NDArray[np.uint8]:
    return np.rint(np.clip(np.nan_to_num(unit), 0, 1) * 255).astype(np.uint8)
