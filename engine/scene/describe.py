"""The scene file: a TOML that places model files, as values. What a key may hold is said here.

| table | key | meaning |
| --- | --- | --- |
| `[files]` | NAME | model file: a path from this file's folder or a searched asset folder, or |
| | | `FOLDER:path` from a named one (`engine.scene.asset_folders`) |
| `[[objects]]` | `file` | NAME of the file that it shows |
| | `name` | what reports call it, unique, without / and #; the file's NAME |
| | `node`, `mesh` | only the file's parts of this node's or this mesh's name |
| | `translation`, ... | where: `engine.scene.placement` |
| | `instances` | list of such tables: a copy each, within the object's own transform |
| | `scatter` | copies on the ground: `engine.scene.scatter` |
| | `mask` | 0 to 255, ANDed with a ray's; or |
| | `visible_to`, `hidden_from` | names of ray types, primary among them: each has a bit, |
| | | and in a scene that names one rays carry their own type's alone |
| | `lifetime` | static, deforming, rigid, vegetation: of all that no clip moves |
| | `animate` | false: stands as the file has it, copies share its meshes; true |
| | `clip`, `start`, `speed`, `loop` | the clip (the first), its second at time 0 (0), its |
| | | seconds a second (1), whether it repeats (true) |
| `[[spheres]]` | `name`, `radius` | of one sphere, metres; `center` (0, 0, 0) in its own space |
| | `file`, `material` | NAME of a file and of one of its materials; or |
| | `color`, `roughness`, | of a material of its own: R, G, B, 0 to 1 (0.7 each), (0.5), |
| | `metallic`, `emissive` | (0), radiance R, G, B (0) |
| | `translation`, ... | and `instances`, `scatter`, `mask`, `visible_to`, `hidden_from` as of |
| | | objects; `lifetime` static, rigid, vegetation (static) |
| `[camera]` | `position`, `target`, `fov` | metres; the full vertical angle in degrees (40); or |
| | `object` | the camera of that object's file |
| `[camera_path]` | `loop`, `keys` | list of `time`, `position`, `target`, `fov`: |
| | | `engine.scene.camera_path` |
| `[[lights]]` | `center`, `target` | metres: a rectangle that faces the target |
| | `size`, `radiance` | along its level and its other edge; one number or R, G, B |
| `[environment]` | `zenith`, `horizon`, `ground` | radiance R, G, B |

`scatter` comes first, then the object's own transform acts within each copy. Of several lights the
first one shines. A camera, light or environment that is not given is the first that a placed file
has, else the default view's. A cheaper shadow caster is a second object that is `visible_to` shadow
rays, beside a first that is `hidden_from` them; a coarser reflection likewise.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.scene.camera import Camera, look_at
from engine.scene.camera_path import CameraPath, looks_somewhere
from engine.scene.light import Environment, RectLight
from engine.scene.material import Material
from engine.scene.mesh import F64
from engine.scene.placement import TRANSFORM_KEYS, read_transform
from engine.scene.scatter import MOST_COPIES, SCATTER_KEYS, read_scatter
from engine.scene.scene import LIFETIMES
from engine.scene.table import Table, nearest

_TOP = ("files", "objects", "spheres", "camera", "camera_path", "lights", "environment")
_CLIP_KEYS = ("clip", "start", "speed", "loop")
_OBJECT = (
    *("file", "name", "node", "mesh", "instances", "scatter", "mask", "visible_to"),
    *("hidden_from", "lifetime", "animate", *_CLIP_KEYS, *TRANSFORM_KEYS),
)
_SPHERE = (
    *("name", "center", "radius", "file", "material", "color", "roughness", "metallic", "emissive"),
    *("instances", "scatter", "mask", "visible_to", "hidden_from", "lifetime", *TRANSFORM_KEYS),
)
_ALL_BITS = 0xFF
_LONGEST_NAME = 80
_DEFAULT_FOV = 40.0


@dataclass(frozen=True, slots=True)
class PlayedClip:
    """How an object's file moves: `name` of its clip, None for the first; seconds."""

    name: str | None
    start: float
    speed: float
    loop: bool


@dataclass(frozen=True, slots=True)
class PlacedObject:
    """One entry of `[[objects]]`. `label` is its place in the file, for errors; `lifetime` None
    leaves the file's own; `clip` None lets it stand."""

    label: str
    name: str
    file: str
    node: str | None
    mesh: str | None
    transforms: F64  # [copies, 4, 4]
    mask: int
    lifetime: str | None
    clip: PlayedClip | None


@dataclass(frozen=True, slots=True)
class PlacedSphere:
    """One entry of `[[spheres]]`; `material` is its own, or the name of one of `file`'s."""

    label: str
    name: str
    center: tuple[float, ...]
    radius: float
    file: str | None
    material: Material | str
    transforms: F64  # [copies, 4, 4]
    mask: int
    lifetime: str


@dataclass(frozen=True, slots=True)
class Description:
    """A scene file as values; `files` maps names to paths as they are written."""

    files: dict[str, str]
    objects: tuple[PlacedObject, ...]
    camera: Camera | None
    camera_object: str | None
    camera_path: CameraPath | None
    lights: tuple[RectLight, ...]
    environment: Environment | None
    spheres: tuple[PlacedSphere, ...]
    ray_bits: tuple[tuple[str, int], ...]  # of `visible_to` and `hidden_from`, empty without them


def describe(path: object, values: dict[str, object], ray_bits: Mapping[str, int]) -> Description:
    """The description in a TOML's values; `ray_bits` gives each ray type its bit of the mask.
    UserError for the first mistake."""
    top = Table(path, "", values, _TOP)
    files: dict[str, str] = {}
    if "files" in top or "objects" in top or "spheres" not in top:
        named = top.values.get("files")
        files_table = top.table("files", named if isinstance(named, dict) else ())
        files = {name: files_table.text(name) for name in files_table.values}
    objects: list[PlacedObject] = []
    by_ray_type = False
    for table in top.tables("objects", _OBJECT):
        placed = _read_object(table, files, ray_bits)
        if any(placed.name == other.name for other in objects):
            raise table.error("name", f"is '{placed.name}' a second time; names are unique")
        objects.append(placed)
        by_ray_type |= "visible_to" in table or "hidden_from" in table
    spheres: list[PlacedSphere] = []
    for table in top.tables("spheres", _SPHERE):
        ball = _read_sphere(table, files, ray_bits)
        if ball.name in [placed.name for placed in objects] + [other.name for other in spheres]:
            raise table.error("name", f"is '{ball.name}' a second time; names are unique")
        spheres.append(ball)
        by_ray_type |= "visible_to" in table or "hidden_from" in table
    if not objects and not spheres:
        raise top.error("objects", "is missing: at least one [[objects]] or [[spheres]]")
    camera, camera_object = _read_camera(top, [placed.name for placed in objects])
    return Description(
        files=files,
        objects=tuple(objects),
        spheres=tuple(spheres),
        camera=camera,
        camera_object=camera_object,
        camera_path=_read_path(top) if "camera_path" in top else None,
        lights=tuple(
            _read_light(t) for t in top.tables("lights", ("center", "target", "size", "radiance"))
        ),
        environment=_read_environment(top) if "environment" in top else None,
        ray_bits=tuple(ray_bits.items()) if by_ray_type else (),
    )


# objects


def _read_object(table: Table, files: dict[str, str], ray_bits: Mapping[str, int]) -> PlacedObject:
    file = table.text("file")
    if file not in files:
        raise table.error("file", f"is '{file}', which [files] lacks{nearest(file, files)}")
    name = _read_name(table, file)
    table.at_most_one("node", "mesh")
    animate = table.boolean("animate", True)
    given = [key for key in _CLIP_KEYS if key in table]
    if given and not animate:
        raise table.error(given[0], "says how it moves, but animate is false")
    return PlacedObject(
        label=table.label("")[:-1],
        name=name,
        file=file,
        node=table.text("node") if "node" in table else None,
        mesh=table.text("mesh") if "mesh" in table else None,
        transforms=_read_copies(table),
        mask=_read_mask(table, ray_bits),
        lifetime=table.choice("lifetime", LIFETIMES) if "lifetime" in table else None,
        clip=_read_clip(table) if animate else None,
    )


def _read_name(table: Table, default: str | None) -> str:
    """Its name, which errors about it say from then on."""
    name = table.text("name", default)
    if "/" in name or "#" in name or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise table.error("name", f"is {name!r}, not {_LONGEST_NAME} letters without / and #")
    table.where += f" '{name}'"
    return name


def _read_sphere(table: Table, files: dict[str, str], ray_bits: Mapping[str, int]) -> PlacedSphere:
    name = _read_name(table, None)
    file = table.text("file") if "file" in table else None
    if file is not None and file not in files:
        raise table.error("file", f"is '{file}', which [files] lacks{nearest(file, files)}")
    if (file is None) == ("material" in table):
        raise table.error("material", "and file go together: a material of that name of that file")
    own = [key for key in ("color", "roughness", "metallic", "emissive") if key in table]
    if file is not None and own:
        raise table.error(own[0], "is of a material of its own, but material names a file's")
    red, green, blue = table.vector("color", 3, (0.7, 0.7, 0.7), (0.0, 1.0))
    return PlacedSphere(
        label=table.label("")[:-1],
        name=name,
        center=tuple(table.vector("center", 3, (0.0, 0.0, 0.0), (-1e9, 1e9))),
        radius=table.number("radius", None, (0.0, 1e9), above=True),
        file=file,
        material=table.text("material")
        if file is not None
        else Material(
            name,
            base_color=(red, green, blue, 1.0),
            roughness=table.number("roughness", 0.5, (0.0, 1.0)),
            metallic=table.number("metallic", 0.0, (0.0, 1.0)),
            emissive=_read_color(table, "emissive") if "emissive" in table else (0.0, 0.0, 0.0),
        ),
        transforms=_read_copies(table),
        mask=_read_mask(table, ray_bits),
        lifetime=table.choice("lifetime", ("static", "rigid", "vegetation"), "static"),
    )


def _read_copies(table: Table) -> F64:
    own = read_transform(table)
    kind = table.at_most_one("instances", "scatter")
    if kind == "scatter":
        scatter = read_scatter(table.table("scatter", SCATTER_KEYS))
        copies = scatter.transforms()
        if len(copies) < scatter.count:
            raise table.error(
                "scatter",
                f"has room for {len(copies):,} of {scatter.count:,} copies: less exclude, a "
                "smaller least_distance or a larger area has more",
            )
        return np.asarray(copies @ own)
    if kind == "instances":
        entries = table.tables("instances", TRANSFORM_KEYS)
        if len(entries) > MOST_COPIES:
            raise table.error("instances", f"are {len(entries):,}, the limit is {MOST_COPIES:,}")
        transforms = [read_transform(entry) @ own for entry in entries]
        return np.array(transforms).reshape(-1, 4, 4)
    return own[None]


def _read_mask(table: Table, ray_bits: Mapping[str, int]) -> int:
    kind = table.at_most_one("mask", "visible_to", "hidden_from")
    if kind is None or kind == "mask":
        return table.integer("mask", 0, _ALL_BITS, _ALL_BITS)
    bits = 0
    for name in table.choices(kind, list(ray_bits)):
        bits |= ray_bits[name]
    return bits if kind == "visible_to" else _ALL_BITS & ~bits


def _read_clip(table: Table) -> PlayedClip:
    return PlayedClip(
        name=table.text("clip") if "clip" in table else None,
        start=table.number("start", 0.0, (-1e6, 1e6)),
        speed=table.number("speed", 1.0, (-1e3, 1e3)),
        loop=table.boolean("loop", True),
    )


# cameras


def _read_camera(top: Table, names: list[str]) -> tuple[Camera | None, str | None]:
    if "camera" not in top:
        return None, None
    table = top.table("camera", ("position", "target", "fov", "object"))
    if table.at_most_one("object", "position") != "object":
        return look_at(*_read_view(table)), None
    table.at_most_one("object", "target", "fov")
    name = table.text("object")
    if name not in names:
        raise table.error("object", f"is '{name}', which no object is called{nearest(name, names)}")
    return None, name


def _read_view(table: Table) -> tuple[F64, F64, float]:
    """position, target, angle in radians."""
    position, target = (
        np.array(table.vector(k, 3, None, (-1e9, 1e9))) for k in ("position", "target")
    )
    if not looks_somewhere(position, target):
        raise table.error("target", "is at, right above or right below the position")
    fov = table.number("fov", _DEFAULT_FOV, (1.0, 179.0))
    return position, target, float(np.radians(fov))


def _read_path(top: Table) -> CameraPath:
    table = top.table("camera_path", ("loop", "keys"))
    keys = table.tables("keys", ("time", "position", "target", "fov"))
    if not keys:
        raise table.error("keys", "is missing: at least one key frame")
    times = np.array([key.number("time", None, (-1e6, 1e6)) for key in keys])
    for key, before, after in zip(keys[1:], times[:-1], times[1:], strict=True):
        if after <= before:
            raise key.error("time", f"is {after:g}, not after the {before:g} of the key before")
    views = [_read_view(key) for key in keys]
    return CameraPath(
        times=times,
        positions=np.array([position for position, _, _ in views]),
        targets=np.array([target for _, target, _ in views]),
        y_fovs=np.array([y_fov for _, _, y_fov in views]),
        loop=table.boolean("loop", False),
    )


# lights


def _read_light(table: Table) -> RectLight:
    center, target = (np.array(table.vector(k, 3, None, (-1e9, 1e9))) for k in ("center", "target"))
    width, height = table.vector("size", 2, None, (0.0, 1e9))
    if width == 0 or height == 0:
        raise table.error("size", "is 0 on one side, so the light has no area")
    way = target - center
    length = float(np.linalg.norm(way))
    if length == 0:
        raise table.error("target", "is the center, so the light faces nowhere")
    normal = way / length
    # one edge level; along X for a light that faces up or down
    level = np.cross([0.0, 1.0, 0.0], normal)
    size = float(np.linalg.norm(level))
    u = level / size if size > 1e-6 else np.array([1.0, 0.0, 0.0])
    v = np.cross(normal, u)
    return RectLight(center, u * width / 2, v * height / 2, _read_color(table, "radiance"))


def _read_environment(top: Table) -> Environment:
    table = top.table("environment", ("zenith", "horizon", "ground"))
    return Environment(*(_read_color(table, key) for key in ("zenith", "horizon", "ground")))


def _read_color(table: Table, key: str) -> tuple[float, float, float]:
    if isinstance(table.values.get(key), list):
        red, green, blue = table.vector(key, 3, None, (0.0, 1e9))
        return red, green, blue
    grey = table.number(key, None, (0.0, 1e9))
    return grey, grey, grey
