"""Settings that are kept between runs, as JSON in the user's config folder.

`<config folder>/treeline/view.json`; the environment variable TREELINE_CONFIG names another folder.
A file that cannot be used is no error: the defaults hold, and a message says so.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

FOLDER_VARIABLE = "TREELINE_CONFIG"
FILE_NAME = "view.json"


def config_folder() -> Path:
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder else platformdirs.user_config_path("treeline", appauthor=False)


def _same_kind(value: Any, default: Any) -> bool:
    """Whether JSON's `value` may stand for `default`: whole numbers do for floats, true and false
    for nothing but flags. A default of None takes anything."""
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float))
    if isinstance(default, tuple):
        return isinstance(value, list)
    return isinstance(value, type(default))


class Settings:
    """Named values with defaults, whose keys and kinds are the only ones there can be."""

    def __init__(self, defaults: Mapping[str, Any], folder: Path | None = None) -> None:
        self._defaults = dict(defaults)
        self.values = dict(defaults)
        self.path = (folder or config_folder()) / FILE_NAME

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._defaults:
            raise KeyError(f"no setting is named '{key}'")
        self.values[key] = value

    def reset(self) -> None:
        self.values = dict(self._defaults)

    def load(self) -> str | None:
        """Takes over what the file has of the known keys. Returns a message, one line, when
        something in it could not be used; no file is nothing to tell."""
        self.reset()
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            return f"settings: {self.path} cannot be used ({error}); the defaults hold"
        if not isinstance(found, dict):
            return f"settings: {self.path} is no table of settings; the defaults hold"
        wrong = []
        for key, default in self._defaults.items():
            if key not in found:
                continue
            if _same_kind(found[key], default):
                value = found[key]
                self.values[key] = tuple(value) if isinstance(default, tuple) else value
            else:
                wrong.append(key)
        if wrong:
            return f"settings: {self.path} has wrong values for {', '.join(wrong)}"
        return None

    def save(self) -> str | None:
        """Writes the file in one step, so that it is whole at any time. Returns a message, one
        line, where that is not possible."""
        try:
            text = json.dumps(self.values, indent=2, sort_keys=True, allow_nan=False) + "\n"
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=self.path.parent, prefix=".view-", suffix=".json")
        except (OSError, ValueError, TypeError) as error:
            return f"settings: {self.path} cannot be written ({error})"
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(part, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(part)
            return f"settings: {self.path} cannot be written ({error})"
        return None
