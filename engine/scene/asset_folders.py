"""Where a scene file's paths lead: its own folder and the asset folders that the user names.

`path` is looked for in the scene file's folder, then in every searched asset folder in order;
`NAME:path` in the asset folder of that name. Wherever it is found, it has to lie in one of all
these folders, with `..` and symbolic links resolved first; so has what a model file refers to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.gpu.errors import UserError
from engine.scene.table import nearest

Folders = tuple[Path, ...] | None  # None: any


@dataclass(frozen=True, slots=True)
class AssetFolders:
    """`allow_outside` lets paths, also those in model files, leave their folders."""

    searched: tuple[Path, ...] = ()
    named: Mapping[str, Path] = field(default_factory=dict)
    allow_outside: bool = False

    def find(self, scene_file: Path, key: str, text: str) -> tuple[Path, Folders]:
        """The file that `key` of a scene file names by `text`, and the folders that it and what it
        refers to must lie in. UserError says which of the rules it breaks."""
        allowed = (scene_file.parent, *self.searched, *self.named.values())
        folders: tuple[Path, ...] = (scene_file.parent, *self.searched)
        name, colon, rest = text.partition(":")
        if colon and name in self.named:
            folders, text = (self.named[name],), rest
        elif colon:
            raise UserError(
                f"{scene_file}: {key} is '{name}:...', and no asset folder is called so "
                f"(--assets {name}=FOLDER){nearest(name, self.named)}"
            )
        inside = None if self.allow_outside else allowed
        reached = [folder / text for folder in folders if lies_inside(folder / text, inside)]
        for file in reached:
            if file.is_file():
                return file, inside
        if not reached:
            raise UserError(f"{scene_file}: {key} {outside(text, inside)}")
        where = ", ".join(str(folder) for folder in folders)
        raise UserError(f"{scene_file}: {key} is '{text}', and there is no such file in {where}")


def asset_folders(texts: Iterable[str], allow_outside: bool = False) -> AssetFolders:
    """From command line texts, `FOLDER` or `NAME=FOLDER`. UserError for what is no folder."""
    searched: list[Path] = []
    named: dict[str, Path] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if equals and name.isidentifier() and not Path(text).is_dir():
            named[name] = folder = Path(rest)
        else:
            searched.append(folder := Path(text))
        if not folder.is_dir():
            raise UserError(f"--assets {text}: {folder} is no folder")
    return AssetFolders(tuple(searched), named, allow_outside)


def lies_inside(file: Path, folders: Folders) -> bool:
    """Whether `file` is in one of the folders or below it, with every `..` and symbolic link
    resolved."""
    if folders is None:
        return True
    try:
        real = file.resolve()
        return any(real.is_relative_to(folder.resolve()) for folder in folders)
    except (OSError, RuntimeError, ValueError):  # a circle of links, a zero byte
        return False


def outside(text: str, folders: Folders) -> str:
    """What to say of a path that `lies_inside` refuses."""
    where = ", ".join(str(folder) for folder in folders or ())
    return f"refers to {text}, outside of {where}; --allow-outside permits it"
