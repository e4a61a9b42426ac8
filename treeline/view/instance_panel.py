"""Tables of the instances and of the BLASes: what they are and what rays spent in them."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from imgui_bundle import imgui

from engine.view.panels.table import Column, Table
from passes.rays import RAY_TYPES, family_of
from treeline.view.mean_sah import MeanSah
from treeline.view.structure_tree import StructureTree
from treeline.view.structure_view import StructureView
from treeline.view.view_state import NodeRef, ViewState

if TYPE_CHECKING:
    from passes.frame_stats import FrameStats
    from treeline.view.session import ViewSession

REFRESH_S = 0.25  # between two looks at counts and means
READ_MS = 0.5  # of means, in a frame that may build the panel
ROOT = 0x15
SPENT = (("nodes", "nodes"), ("triangle_tests", "triangle tests"), ("any_hits", "any-hits"))
SHARED = "of all instances of the BLAS, in the counted frame"


def instance_columns() -> tuple[Column, ...]:
    return (
        Column("name", text=True),
        Column("number"),
        Column("BLAS"),
        Column("mask", format=lambda value: f"0x{value:02x}", tooltip="0: hidden"),
        Column("flags", text=True),
        *(Column(axis, "m", ".3f", tooltip="origin of the object in the world") for axis in "xyz"),
        Column("triangles", format=",d"),
        *_spent_columns(),
    )


def blas_columns() -> tuple[Column, ...]:
    shares = [
        Column(f"{ray.name} share", "%", ".1f", tooltip="of the nodes that its rays visited")
        for ray in RAY_TYPES
    ]
    return (
        Column("name", text=True),
        Column("number"),
        Column("instances", format=",d"),
        Column("triangles", format=",d"),
        Column("FP16", format=",d", tooltip="box nodes of 64 bytes"),
        Column("FP32", format=",d", tooltip="box nodes of 128 bytes"),
        Column("boxes", format=",d", tooltip="used slots of box nodes"),
        Column("blocks", format=",d", tooltip="of one to four triangles"),
        Column("fill", "of 4", ".2f", tooltip="used slots a box node"),
        Column("root SAH", format=".2f", tooltip="of the whole tree"),
        Column("mean SAH", format=".2f", tooltip="of box nodes alone; read in the background"),
        Column("depth"),
        Column("stack bound", tooltip="the most entries that any ray can need"),
        Column("bytes", "B", ",d"),
        Column("per triangle", "B", ".1f"),
        Column("build", "ms", ".1f"),
        Column("built on", text=True),
        Column("refits", tooltip="since the last build"),
        *shares,
        *_spent_columns(),
    )


def _spent_columns() -> list[Column]:
    return [
        Column(f"{ray.name} {label}", format=",d", tooltip=SHARED)
        for ray in RAY_TYPES
        for _, label in SPENT
    ]


class InstancePanel:
    """A click selects the node in the tree."""

    title = "Instances"

    def __init__(self, structure: StructureView | None = None) -> None:
        self.structure = structure or StructureView()
        self.instances = Table("instances", instance_columns())
        self.blases = Table("BLASes", blas_columns())
        self._mean: list[MeanSah] = []
        self._version = 0
        self._filled: Any = None  # what the tables were filled from
        self._counted: FrameStats | None = None
        self._known = 0  # means
        self._filled_at = float("-inf")
        self._columns: list[list[Any]] = []  # of BLASes, that do not change
        self._placed: list[list[Any]] = []  # of instances
        self._placed_of: StructureTree | None = None

    def stale(self, session: "ViewSession", state: ViewState) -> bool:
        """Goes on reading means: the tables need not be drawn for that."""
        self._read_means()
        newer = session.counted is not self._counted or self._count_means() != self._known
        return newer and imgui.get_time() - self._filled_at >= REFRESH_S

    def _count_means(self) -> int:
        return sum(mean.value is not None for mean in self._mean)

    def draw(self, session: "ViewSession", state: ViewState) -> None:
        tree = self.structure.follow(session, state)
        if tree is None:
            imgui.text_disabled("no structure yet")
            return
        self._follow(session, state, tree)
        height = imgui.get_content_region_avail().y
        line = imgui.get_text_line_height_with_spacing()
        imgui.text_disabled("Instances")
        row = self.instances.draw((0.0, 0.5 * height - 2.5 * line))
        if row is not None:
            state.selected = tree.instance_node(row)
        imgui.text_disabled("BLASes")
        row = self.blases.draw()
        if row is not None:
            state.selected = NodeRef(row, ROOT)

    def _follow(self, session: "ViewSession", state: ViewState, tree: StructureTree) -> None:
        """Fills the tables where something has changed; reads parts of means."""
        if self.structure.version != self._version:
            self._version = self.structure.version
            self._mean = [MeanSah(tree, i) for i in range(len(tree.bvh.blas_bases))]
            self._columns = blas_facts(session, tree)
        if self._placed_of is not tree:
            self._placed_of, self._placed = tree, instance_facts(tree)
        reading = self._read_means()
        known = self._count_means()
        refits = refits_since_build(session, tree)
        counted, now = session.counted, imgui.get_time()
        key = (self.structure.bytes_version, tuple(refits), counted is None, reading)
        # These may change with every frame, which nobody reads as fast.
        newer = counted is not self._counted or known != self._known
        if key != self._filled or (newer and now - self._filled_at >= REFRESH_S):
            if key != self._filled or counted is not self._counted:
                names = [tree.bvh.blas_names[item.blas] for item in tree.bvh.instances]
                self.instances.set_columns([*self._placed, *spent(names, counted)])
            self._filled, self._filled_at = key, now
            self._counted, self._known = counted, known
            self.blases.set_columns(self._blas_rows(tree, refits, counted))

    def _read_means(self) -> bool:
        """Goes on reading for about READ_MS; whether there is more to read."""
        begun = time.perf_counter()
        for mean in self._mean:
            while mean.value is None:
                if 1e3 * (time.perf_counter() - begun) >= READ_MS:
                    return True
                mean.step()
        return False

    def _blas_rows(
        self, tree: StructureTree, refits: list[int], counted: "FrameStats | None"
    ) -> list[Sequence[Any]]:
        facts = self._columns
        return [
            *facts[:10],
            [mean.value for mean in self._mean],
            *facts[10:],
            refits,
            *shares(tree.bvh.blas_names, counted),
            *spent(tree.bvh.blas_names, counted),
        ]


def instance_facts(tree: StructureTree) -> list[list[Any]]:
    """The columns of `instance_columns` that no frame changes."""
    bvh = tree.bvh
    items = bvh.instances
    places = [[float(item.transform[axis, 3]) for item in items] for axis in range(3)]
    return [
        [item.name or f"instance {i}" for i, item in enumerate(items)],
        list(range(len(items))),
        [item.blas for item in items],
        [item.mask for item in items],
        [item.flags.name or "" if item.flags else "" for item in items],
        *places,
        [bvh.blas_stats[item.blas].triangles for item in items],
    ]


def blas_facts(session: "ViewSession", tree: StructureTree) -> list[list[Any]]:
    """The columns of `blas_columns` that a build decides, without the mean SAH."""
    bvh = tree.bvh
    uses = Counter(item.blas for item in bvh.instances)
    on = session.active.structure.on if session.active is not None else ""
    count = len(bvh.blas_stats)
    stats = bvh.blas_stats
    return [
        list(bvh.blas_names),
        list(range(count)),
        [uses[i] for i in range(count)],
        [s.triangles for s in stats],
        [s.nodes_fp16 for s in stats],
        [s.nodes_fp32 for s in stats],
        [round(s.fill * (s.nodes_fp16 + s.nodes_fp32)) for s in stats],
        [s.blocks for s in stats],
        [s.fill for s in stats],
        [s.sah for s in stats],
        [s.depth for s in stats],
        [s.stack_bound for s in stats],
        [s.bytes for s in stats],
        [s.bytes / s.triangles if s.triangles else None for s in stats],
        [s.build_ms for s in stats],
        [on] * count,
    ]


def refits_since_build(session: "ViewSession", tree: StructureTree) -> list[int]:
    """Of every BLAS; 0 where nothing moves."""
    moving = session.frame.scene.moving if session.frame is not None else None
    known = moving.refits_since_build if moving is not None else {}
    # A name that was given before has its BLAS's number behind it.
    return [known.get(f"{n} ({i})", known.get(n, 0)) for i, n in enumerate(tree.bvh.blas_names)]


def spent(names: Sequence[str], counted: "FrameStats | None") -> list[list[int | None]]:
    """What each ray type, with all bounces, spent in the objects of these names, in the order of
    `_spent_columns`; None before a frame was counted, and for types that it does not trace."""
    columns: list[list[int | None]] = []
    distinct = set(names)  # instances share the names of their BLASes
    for ray in RAY_TYPES:
        if counted is None or ray.name not in counted.rays:
            columns += [[None] * len(names) for _ in SPENT]
            continue
        rows = _objects_of(counted, ray.name)
        for key, _ in SPENT:
            found = {n: sum(row.get(key, 0) for row in rows.get(n, ())) for n in distinct}
            columns.append([found[name] for name in names])
    return columns


def shares(names: Sequence[str], counted: "FrameStats | None") -> list[list[float | None]]:
    """[ray types] percent of the nodes that were visited in objects of these names."""
    if counted is None:
        return [[None] * len(names) for _ in RAY_TYPES]
    columns: list[list[float | None]] = []
    for ray in RAY_TYPES:
        rows = _objects_of(counted, ray.name)
        total = sum(row["nodes"] for found in rows.values() for row in found)
        nodes = [sum(row["nodes"] for row in rows.get(name, ())) for name in names]
        columns.append([100 * n / total if total else None for n in nodes])
    return columns


def _objects_of(counted: "FrameStats", family: str) -> dict[str, list[dict[str, int]]]:
    """Object -> what each bounce of a ray type did there."""
    found: dict[str, list[dict[str, int]]] = {}
    for (name, ray_type), row in counted.objects.items():
        if family_of(ray_type) == family:
            found.setdefault(name, []).append(row)
    return found
