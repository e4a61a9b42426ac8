"""Reading an .npz of ours that may be anything: no pickles, one line for each way to be wrong."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError


def read_npz(path: Path, form: str, version: int, what: str) -> dict[str, NDArray[Any]]:
    """All arrays of a file whose `format` is `form` and whose `version` is this one. UserError,
    which calls it `what`, for a missing, unreadable, foreign or damaged file or another version."""
    try:
        opened = np.load(path, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):  # a lone array
            raise UserError(f"{path}: not a Treeline {what}")
        with opened as file:
            if "format" not in file.files or str(file["format"]) != form:
                raise UserError(f"{path}: not a Treeline {what}")
            found = int(file["version"])
            if found != version:
                raise UserError(f"{path}: {what} version {found}, this reads {version}")
            return {key: file[key] for key in file.files}
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except OSError as error:
        raise UserError(f"{path}: cannot read ({error.strerror or error})") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path}: not a Treeline {what}, or damaged") from error
    except MemoryError as error:
        raise UserError(f"{path}: {what} is larger than memory, or damaged") from error
    except (SyntaxError, TypeError, NotImplementedError) as error:
        # From a damaged array header, or a way to compress that zipfile does not know.
        raise UserError(f"{path}: damaged {what}") from error
