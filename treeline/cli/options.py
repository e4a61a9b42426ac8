"""The options that every command takes, and what they mean: declared once, here.

`with_common` adds them to a command's own parameters and turns a user's mistake into one line
and the right exit code.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bvh import build_defaults as default
from engine.gpu.errors import AdapterError, UserError
from treeline.cli.console import note
from treeline.outputs import NO_ROOM, check_writable

if TYPE_CHECKING:
    from bvh.blas_cache import BlasCache
    from bvh.build import BuildOptions
    from engine.gpu.device import Device
    from engine.scene.scene import Scene

BUILDING = "Builder"
PLACES = ("cpu", "gpu", "auto")

SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of every random number.")]
SavedOption = Annotated[
    Path | None, typer.Option(help="A saved structure, instead of building the scene's.")
]


@dataclass(frozen=True, slots=True)
class Common:
    """What the shared options were set to."""

    scene: Annotated[
        Path | None,
        typer.Option(help="Scene: .toml .glb .gltf .obj .ply .stl. Default: the embedded hall."),
    ] = None
    adapter: Annotated[
        str | None,
        typer.Option(help="Part of an adapter's name, or its number in `treeline doctor`."),
    ] = None
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="-|FILE", help="Result as JSON; - is stdout."),
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False
    builder: Annotated[
        str,
        typer.Option(
            metavar="sah|lbvh|ploc|spatial",
            help="How boxes become a tree.",
            rich_help_panel=BUILDING,
        ),
    ] = default.BUILDER
    leaf: Annotated[
        int,
        typer.Option(metavar="1|2|4", help="Most triangles a block.", rich_help_panel=BUILDING),
    ] = default.LEAF
    nodes: Annotated[
        str,
        typer.Option(
            metavar="auto|fp16|fp32",
            help="Inner box nodes; the root is always FP32.",
            rich_help_panel=BUILDING,
        ),
    ] = default.NODES
    collapse: Annotated[
        str,
        typer.Option(
            metavar="best|greedy",
            help="How a binary tree becomes four wide.",
            rich_help_panel=BUILDING,
        ),
    ] = default.COLLAPSE
    optimize: Annotated[
        int,
        typer.Option(
            metavar="N", help="Rounds of reinsertion after the builder.", rich_help_panel=BUILDING
        ),
    ] = default.REINSERTION
    pairing: Annotated[
        str,
        typer.Option(
            metavar="best|near",
            help="Triangles into blocks: the best of all, or what is near, as the GPU does.",
            rich_help_panel=BUILDING,
        ),
    ] = default.PAIRING
    opacity: Annotated[
        str,
        typer.Option(
            metavar="triangle|material",
            help="What decides where holes are tested for: a triangle's part of the texture, or "
            "its material.",
            rich_help_panel=BUILDING,
        ),
    ] = default.OPACITY
    on: Annotated[
        str,
        typer.Option(
            metavar="cpu|gpu|auto",
            help="Where, to the same bytes. The GPU needs near pairing; auto takes it then.",
            rich_help_panel=BUILDING,
        ),
    ] = "auto"
    cache: Annotated[
        bool | None,
        typer.Option(
            "--cache/--no-cache",
            help="Keep what was built in the user's cache folder. Default: all but build, validate "
            "and bench do.",
            rich_help_panel=BUILDING,
        ),
    ] = None
    group: Annotated[
        Literal["static", "object", "all"],
        typer.Option(
            help="One BLAS for all static opaque meshes, one an object, or one for everything.",
            rich_help_panel=BUILDING,
        ),
    ] = "static"
    assets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER|NAME=FOLDER", help="Where a .toml scene's files are, beside its folder."
        ),
    ] = None
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="A .toml scene's files may be anywhere.")
    ] = False
    light: Annotated[
        str | None,
        typer.Option(metavar="X,Y,Z,SIDE", help="Replace the lights by a square that faces down."),
    ] = None

    @property
    def to_stdout(self) -> bool:
        """Whether stdout belongs to JSON, so that nothing else may be printed there."""
        return self.json == "-"

    @property
    def scene_name(self) -> str:
        """What a report calls the scene: the file as given, or "hall"."""
        return "hall" if self.scene is None else self.scene.name

    def load_scene(self) -> "Scene":
        """The scene with the light of `--light`; its notes go to stderr. UserError for options of a
        build that there are not, before anything is read."""
        from treeline.scenes import square_light

        self.build_options()
        light = None if self.light is None else square_light(self.light)
        scene = self.load_file(self.scene)
        for text in scene.notes:
            note(text, quiet=self.quiet)
        if light is not None:
            scene = replace(scene, light=light, more_lights=(), light_source="flag")
        return scene

    def load_file(self, path: Path | None) -> "Scene":
        """A scene by its path, found with `--assets`; None for the embedded one."""
        from treeline.scenes import load

        return load(path, self.assets or (), allow_outside=self.allow_outside)

    def build_options(self) -> "BuildOptions":
        """What decides the bytes. UserError for an unknown value, and for a place to build (`--on`)
        where these options cannot be built."""
        from bvh.build import BuildOptions

        options = BuildOptions(
            builder=self.builder,
            nodes=self.nodes,
            leaf=self.leaf,
            collapse=self.collapse,
            reinsertion=self.optimize,
            pairing=self.pairing,
            opacity=self.opacity,
        )
        if self.on not in PLACES:
            raise UserError(f"unknown place to build '{self.on}'; known: {', '.join(PLACES)}")
        if self.on == "gpu":
            from bvh.gpu.blas_builder import refusal

            if options.pairing != "near":
                raise UserError("a build on the GPU pairs near triangles: add --pairing near")
            if refusal(options):
                raise UserError(refusal(options))
        return options

    def build_device(self, device: "Device | None" = None) -> "Device | None":
        """The device to build on, `device` or one opened now; None for the CPU. By `--on auto` it
        is the GPU, whatever it is, where that can build: the bytes are the same."""
        from bvh.gpu.blas_builder import refusal

        if self.on == "cpu" or refusal(self.build_options()):
            return None
        if device is not None or self.on == "gpu" or self.adapter is not None:
            return device or self.open_device()
        try:
            return self.open_device()
        except AdapterError:
            return None

    def blas_cache(self, by_default: bool = True) -> "BlasCache | None":
        """The user's cache of BLASes, unless it is not to be used."""
        if not (by_default if self.cache is None else self.cache):
            return None
        from bvh.blas_cache import BlasCache

        return BlasCache()

    def open_device(self) -> "Device":
        from engine.gpu.device import open_device

        return open_device(self.adapter)


def parse_size(text: str) -> tuple[int, int]:
    """`WxH` in pixels, each at least 1."""
    width, cross, height = text.lower().partition("x")
    if not cross or not (width.isdecimal() and height.isdecimal()):
        raise UserError(f"a size is WIDTHxHEIGHT in pixels, such as 1280x720, not '{text}'")
    if int(width) < 1 or int(height) < 1:
        raise UserError(f"a picture of {text} has no pixels; each side is at least 1")
    return int(width), int(height)


def with_common(function: Callable[..., None]) -> Callable[..., None]:
    """Makes `function(common, *groups, **own)` a command. Parameters whose types are dataclasses
    stand for the options that their fields declare: they follow the command's own, Common's last.
    """
    taken = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in taken if is_dataclass(p.annotation)}
    parameters = [p for p in taken if p.name not in groups]
    for group in reversed(groups.values()):
        parameters += inspect.signature(group, eval_str=True).parameters.values()
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        try:
            for group in values.values():
                if isinstance(group, Common) and group.json not in (None, "-"):
                    check_writable(Path(group.json))
            function(**values)
        except UserError as error:
            fail(str(error), error.exit_code)
        except MemoryError as error:
            fail(f"not enough memory: {error}", 2)
        except OSError as error:
            # A file that cannot be read or written is the user's to mend; a closed pipe and
            # other errors without a file are not. What is left without one is stdout's.
            if error.errno in NO_ROOM:
                fail(f"cannot write {error.filename or 'to stdout'}: {error.strerror}", 2)
            if error.filename is None:
                raise
            fail(f"{error.filename}: {error.strerror}", 2)

    run.__doc__ = function.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def fail(message: str, exit_code: int) -> None:
    """One line on stderr and the end of the command."""
    note(f"error: {message}")
    raise typer.Exit(exit_code)
