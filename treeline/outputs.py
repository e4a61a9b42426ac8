"""Writes files and folders whole or not at all.

Everything is written under a temporary name on the same file system and renamed at the end, so
that Ctrl-C, an error or a full disk leaves what was there before. A place that cannot be written
is refused on entry, before any long work.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.gpu.errors import UserError
from engine.view.held_signals import signals_held

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a quota or a file size is used up


def _first_existing(folder: Path) -> Path:
    """`folder` or the nearest folder above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _refuse(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {path}: {error.strerror or error}")


def check_writable(path: Path) -> None:
    """UserError where no file can be written at `path`. Leaves nothing there: for a file that is
    written after long work, and not with what that makes."""
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    with _temporary_folder(path.parent, f"into {path.parent}"):
        pass


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives a temporary path with the same suffix; on success it becomes `path`."""
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    with whole_folder(path.parent, only_adds=True) as folder, _full_disk_told(path):
        yield folder / path.name


@contextmanager
def whole_folder(path: Path, *, only_adds: bool = False) -> Iterator[Path]:
    """Gives a temporary folder; on success its files appear in `path`, over older ones.

    Other files in `path` stay. Missing folders above it are made at the end. `only_adds` words
    the refusal for a single file.
    """
    with _temporary_folder(path, f"into {path}" if only_adds else str(path)) as temporary:
        with _full_disk_told(path):
            yield temporary
        try:
            with signals_held():
                path.mkdir(parents=True, exist_ok=True)
                for made in sorted(temporary.iterdir()):
                    os.replace(made, path / made.name)
        except OSError as error:
            raise _refuse(path, error) from error


@contextmanager
def _full_disk_told(path: Path) -> Iterator[None]:
    """UserError that names `path` where there is no more room: a write's error names no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise _refuse(path, error) from error


@contextmanager
def _temporary_folder(path: Path, place: str) -> Iterator[Path]:
    """An empty folder on the file system of the folder `path`, removed at the end. UserError with
    `place` where nothing can be written there."""
    if path.exists() and not path.is_dir():
        raise UserError(f"cannot write {path}: it is a file, not a folder")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=".treeline-", dir=_first_existing(path)))
    except OSError as error:
        raise UserError(f"cannot write {place}: {error.strerror or error}") from error
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
