"""JSON as this program writes it: indented, with each list of numbers on a line of its own."""

import json
import re
from typing import Any

# Only indentation has line breaks (a string's are escaped), so that no string can match.
_NUMBERS = re.compile(r"\[\n\s*((?:[-\d.eE+,\s]|null)+)\n\s*\]")


def json_text(data: Any) -> str:
    """The text, with a line break at its end. ValueError for NaN and infinity: they are no JSON."""
    text = json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False)
    return _NUMBERS.sub(lambda m: "[" + " ".join(m[1].split()) + "]", text) + "\n"
