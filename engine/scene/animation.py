"""Clips, node trees, skins and morph weights of a file, sampled on the CPU (glTF 2.0, 3.11 and
appendix C).

A pose is every node's world matrix at one time; joint matrices and the transforms of placed meshes
follow from it. Times are seconds, matrices float64 `[4, 4]`. Channels are
`engine.scene.channel`'s, reading all this from a file is `engine.scene.gltf_animation`'s work,
skinning vertices `engine.scene.skinning`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene.channel import PATHS, WEIGHTS, Channel, ChannelTable, Clock
from engine.scene.mesh import F32, F64
from engine.scene.morph import MorphTargets, morphed
from engine.scene.skin import blend_matrices, joint_matrices, skin_normals, skin_positions

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Clip:
    """A named animation; `duration` is its last key frame's time."""

    name: str
    duration: float
    channels: tuple[Channel, ...]
    moves: ChannelTable = field(init=False, compare=False, repr=False)  # of nodes
    morphs: ChannelTable = field(init=False, compare=False, repr=False)  # their weights

    def __post_init__(self) -> None:
        for name, paths in (("moves", PATHS), ("morphs", (WEIGHTS,))):
            table = ChannelTable([channel for channel in self.channels if channel.path in paths])
            object.__setattr__(self, name, table)  # frozen, once it is made

    @property
    def start(self) -> float:
        """Its first key frame's time: until then the first pose stays. On clocks of their own,
        channels move from the beginning on."""
        firsts = (
            float(channel.times[0]) if channel.clock == Clock() else 0.0
            for channel in self.channels
        )
        return min(firsts, default=0.0)

    def wrapped(self, time: float, loop: bool = True) -> float:
        """Where in the clip `time` is. With `loop` the clip repeats after its last key frame; else
        that stays, as the first one does before time 0 in any case."""
        if loop and self.duration > 0 and time > self.duration:
            time %= self.duration
        return min(max(time, 0.0), self.duration)


@dataclass(frozen=True, slots=True)
class Skin:
    """Nodes that are joints, and what takes bind space into each joint's."""

    joints: I64  # [j]
    inverse_bind: F64  # [j, 4, 4]


@dataclass(frozen=True, slots=True)
class SkinnedMesh:
    """A mesh of the scene before it is posed: morphed first, then skinned. One that has no skin in
    its file hangs on its node, a skin of one joint. `normals` rows are zero where none is stored,
    weights sum to 1."""

    mesh: int  # in the loaded scene
    skin: int
    positions: F32  # [v, 3]
    normals: F32  # [v, 3]
    joints: I64  # [v, k]
    weights: F64  # [v, k]
    morph: MorphTargets | None = None  # that some clip mixes

    def posed(self, matrices: F64, morph_weights: Mapping[int, F64]) -> tuple[F64, F64]:
        """[v, 3] positions and normals, these not yet unit, by joint matrices [j, 4, 4] and the
        morph weights of nodes."""
        positions, normals = self.positions.astype(np.float64), self.normals.astype(np.float64)
        if self.morph is not None:
            mix = morph_weights[self.morph.node]
            positions = morphed(positions, self.morph.positions, mix)
            normals = morphed(normals, self.morph.normals, mix)
        blended = blend_matrices(matrices, self.joints, self.weights)
        return skin_positions(positions, blended), skin_normals(normals, blended)

    def of_vertices(self, kept: NDArray[np.integer] | slice) -> "SkinnedMesh":
        """With some of the vertices."""
        return replace(
            self,
            positions=self.positions[kept],
            normals=self.normals[kept],
            joints=self.joints[kept],
            weights=self.weights[kept],
            morph=self.morph and self.morph.of_vertices(kept),
        )


@dataclass(frozen=True, slots=True)
class Animation:
    """All that moves in a file. Node arrays are by node index of the file; `parents` are -1 for
    roots. `instance_nodes[i]` is the node that instance i of the loaded scene hangs on,
    `weights` are the morph weights [targets] of nodes that some clip morphs."""

    parents: I64
    translations: F64  # [n, 3]
    rotations: F64  # [n, 4]
    scales: F64  # [n, 3]
    matrices: dict[int, F64]  # nodes that the file gives a matrix: it stands in place of the three
    clips: tuple[Clip, ...]
    skins: tuple[Skin, ...]
    skinned: tuple[SkinnedMesh, ...]
    instance_nodes: tuple[int, ...]
    weights: dict[int, F64] = field(default_factory=dict)

    def clip(self, name: str | None = None) -> Clip:
        """The clip of that name, or the first; UserError where there is none."""
        for clip in self.clips:
            if name is None or clip.name == name:
                return clip
        known = ", ".join(f"'{clip.name}'" for clip in self.clips) or "none"
        raise UserError(f"no clip '{name}' here; there are: {known}")

    def worlds(self, clip: Clip | None = None, time: float = 0.0, *, loop: bool = True) -> F64:
        """[n, 4, 4] node to world at `time`; without a clip, as the nodes stand in the file.
        `loop` repeats the clip; else its last frame stays."""
        translations, rotations, scales = (
            values.copy() for values in (self.translations, self.rotations, self.scales)
        )
        if clip is not None:
            values = {"translation": translations, "rotation": rotations, "scale": scales}
            for path, nodes, sampled in clip.moves.sample(clip.wrapped(time, loop)):
                values[path][nodes] = sampled
        local = compose(translations, rotations, scales)
        for node, matrix in self.matrices.items():
            local[node] = matrix
        # After k steps a node's matrix leads to its 2^k-th ancestor: a deep skeleton takes five
        # products over all nodes, not one for each of its levels.
        for nodes, ancestors in self._jumps():
            local[nodes] = local[ancestors] @ local[nodes]
        return local

    def morph_weights(
        self, clip: Clip | None = None, time: float = 0.0, *, loop: bool = True
    ) -> dict[int, F64]:
        """`weights` at `time`; arguments as of `worlds`."""
        weights = dict(self.weights)
        if clip is not None:
            for _, nodes, sampled in clip.morphs.sample(clip.wrapped(time, loop)):
                weights.update(zip(nodes.tolist(), sampled, strict=True))
        return weights

    def joint_matrices(self, skin: int, worlds: F64) -> F64:
        """[j, 4, 4] bind pose to world."""
        found = self.skins[skin]
        return joint_matrices(worlds[found.joints], found.inverse_bind)

    def renumbered(self, meshes: dict[int, int], instances: Sequence[int]) -> "Animation":
        """The same for a scene whose mesh `meshes[i]` was mesh i of this one, and whose instance j
        was `instances[j]`; skinned meshes that are not in `meshes` are left out."""
        kept = [replace(m, mesh=meshes[m.mesh]) for m in self.skinned if m.mesh in meshes]
        nodes = tuple(self.instance_nodes[i] for i in instances)
        return replace(self, skinned=tuple(kept), instance_nodes=nodes)

    def moving_instances(self, clip: Clip) -> tuple[int, ...]:
        """Instances whose node, or one above it, the clip moves: rigid, unless they are skinned."""
        moved = np.zeros(len(self.parents), np.bool_)
        moved[[channel.node for channel in clip.channels if channel.path in PATHS]] = True
        for nodes, ancestors in self._jumps():
            moved[nodes] |= moved[ancestors]
        return tuple(i for i, node in enumerate(self.instance_nodes) if moved[node])

    def ever_moving(self) -> set[int]:
        """Instances that some clip moves."""
        return {i for clip in self.clips for i in self.moving_instances(clip)}

    def _jumps(self) -> tuple[tuple[I64, I64], ...]:
        return _ancestor_jumps(np.ascontiguousarray(self.parents, np.int64).tobytes())


@lru_cache(maxsize=16)
def _ancestor_jumps(parents: bytes) -> tuple[tuple[I64, I64], ...]:
    """Pointer doubling: for k = 0, 1, ... the nodes that have a 2^k-th ancestor, and that one;
    kept, as a pose is asked for every frame. Nodes of a circle are below no root, and have no
    ancestors: they stay as they are in their own space."""
    above = np.frombuffer(parents, np.int64)
    rooted = above < 0
    while (more := rooted | rooted[above]).sum() > rooted.sum():
        rooted = more
    ancestors = np.where(rooted, above, -1)
    jumps = []
    while len(nodes := np.flatnonzero(ancestors >= 0)):
        jumps.append((nodes, ancestors[nodes]))
        # Beyond a root there is nobody; the -1 stays -1.
        ancestors = np.where(ancestors >= 0, ancestors[ancestors], -1)
    return tuple(jumps)


def compose(translations: F64, rotations: F64, scales: F64) -> F64:
    """[n, 4, 4] translation x rotation x scale (section 3.5.3); a zero quaternion turns nothing."""
    x, y, z, w = rotations.T
    norm = x * x + y * y + z * z + w * w
    s = np.divide(2.0, norm, out=np.zeros_like(norm), where=norm > 0)
    local = np.zeros((len(rotations), 4, 4))
    rows = [
        [1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
        [s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w)],
        [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y)],
    ]
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            local[:, i, j] = value * scales[:, j]
    local[:, :3, 3] = translations
    local[:, 3, 3] = 1.0
    return local
