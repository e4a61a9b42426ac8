"""Several animated files, and copies of them, as one Animation with one clip that plays all.

Every copy has nodes of its own below one that places it, so poses come out in the world of the
scene; joints, skins and channels are renumbered with them. Node 0 carries all that never moves. The
first clip, `SCENE_CLIP`, plays every object's clip on its own clock. Behind it stand all clips of
all objects alone, named `object/clip`; while one plays, the other objects stand as at time 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from engine.scene.animation import Animation, Clip, Skin, SkinnedMesh
from engine.scene.channel import WEIGHTS, Channel, Clock
from engine.scene.mesh import F64

SCENE_CLIP = "scene"

# The scene's clip lasts until all others are at their beginnings again, but no longer than this.
LONGEST_SECONDS = 600.0
_FINEST = 1000  # parts of a second: a clip of 17/24 s is stored as 0.70833331


@dataclass(frozen=True, slots=True)
class Posed:
    """One animated file as an object shows it: `rest` is its animation, standing as at time 0 of
    the scene, `played` the clip that the object plays, on the object's clock."""

    rest: Animation
    played: Clip

    @property
    def worlds(self) -> F64:
        """[n, 4, 4] at time 0, within the file."""
        return self.rest.worlds()


def pose_at_zero(animation: Animation, clip: Clip, clock: Clock) -> Posed:
    """The file's animation with its nodes put where `clip` has them when the scene begins."""
    channels = tuple(replace(channel, clock=clock) for channel in clip.channels)
    moves, turns, sizes = (
        values.copy() for values in (animation.translations, animation.rotations, animation.scales)
    )
    weights = dict(animation.weights)
    values: dict[str, Any] = {
        "translation": moves,
        "rotation": turns,
        "scale": sizes,
        WEIGHTS: weights,
    }
    for channel in channels:
        values[channel.path][channel.node] = channel.sample(0.0)
    rest = replace(animation, translations=moves, rotations=turns, scales=sizes, weights=weights)
    return Posed(rest, replace(clip, channels=channels))


class AnimationMerger:
    """Collects copies; `merged` is the Animation of them all."""

    def __init__(self) -> None:
        self._parents: list[np.ndarray] = [np.array([-1])]
        self._moves: list[F64] = [np.zeros((1, 3))]
        self._turns: list[F64] = [np.array([[0.0, 0.0, 0.0, 1.0]])]
        self._sizes: list[F64] = [np.ones((1, 3))]
        self._matrices: dict[int, F64] = {}
        self._weights: dict[int, F64] = {}
        self._skins: list[Skin] = []
        self._skinned: list[SkinnedMesh] = []
        self._count = 1  # nodes
        self._played: list[Channel] = []
        self._periods: list[float] = []
        self._ends: list[float] = []
        self._alone: dict[str, tuple[Clip, list[Channel]]] = {}

    def add_copy(self, name: str, posed: Posed, placement: F64) -> tuple[int, int]:
        """One more copy of an object; the numbers of its first node and skin."""
        rest = posed.rest
        root, first = self._count, self._count + 1
        nodes, skin = len(rest.parents), len(self._skins)
        self._parents += [
            np.array([-1]),
            np.where(rest.parents < 0, root, rest.parents + first),
        ]
        self._moves += [np.zeros((1, 3)), rest.translations]
        self._turns += [np.array([[0.0, 0.0, 0.0, 1.0]]), rest.rotations]
        self._sizes += [np.ones((1, 3)), rest.scales]
        self._matrices[root] = placement
        self._matrices.update({first + node: matrix for node, matrix in rest.matrices.items()})
        self._weights.update({first + node: mix for node, mix in rest.weights.items()})
        self._skins += [Skin(s.joints + first, s.inverse_bind) for s in rest.skins]
        self._count += 1 + nodes
        self._played += _moved_to(posed.played.channels, first)
        for clip in rest.clips:
            _, channels = self._alone.setdefault(f"{name}/{clip.name}", (clip, []))
            channels += _moved_to(clip.channels, first)
        return first, skin

    def add_clock(self, clip: Clip, clock: Clock) -> None:
        """The clock of an object's clip, for how long the scene's lasts."""
        if clock.speed == 0.0 or clip.duration == 0.0:
            return
        if clock.period > 0:
            self._periods.append(clock.period / abs(clock.speed))
        else:
            end = clip.duration if clock.speed > 0 else 0.0
            self._ends.append(max((end - clock.start) / clock.speed, 0.0))

    def add_skinned(self, bound: SkinnedMesh, mesh: int, first_node: int, first_skin: int) -> None:
        """A skinned mesh of the copy whose first node and skin these are; `mesh` in the scene."""
        morph = bound.morph and replace(bound.morph, node=bound.morph.node + first_node)
        self._skinned.append(replace(bound, mesh=mesh, skin=bound.skin + first_skin, morph=morph))

    def merged(self, instance_nodes: Sequence[int]) -> Animation | None:
        """The animation of all copies; None where there was none."""
        if self._count == 1:
            return None
        duration = min(max([common_period(self._periods), *self._ends]), LONGEST_SECONDS)
        together = Clip(SCENE_CLIP, duration, tuple(self._played))
        alone = [Clip(n, c.duration, tuple(moved)) for n, (c, moved) in self._alone.items()]
        return Animation(
            parents=np.concatenate(self._parents).astype(np.int64),
            translations=np.concatenate(self._moves),
            rotations=np.concatenate(self._turns),
            scales=np.concatenate(self._sizes),
            matrices=self._matrices,
            clips=(together, *alone),
            skins=tuple(self._skins),
            skinned=tuple(self._skinned),
            instance_nodes=tuple(instance_nodes),
            weights=self._weights,
        )

    def repeats(self) -> bool:
        """Whether the scene's clip begins again without a jump."""
        return not self._ends and common_period(self._periods) <= LONGEST_SECONDS


def common_period(periods: Sequence[float]) -> float:
    """The least time that is a multiple of all periods, each rounded to a fraction of a second with
    a small denominator; 0 without any."""
    fractions = [Fraction(period).limit_denominator(_FINEST) for period in periods]
    fractions = [fraction for fraction in fractions if fraction > 0]
    if not fractions:
        return 0.0
    below = lcm(*(fraction.denominator for fraction in fractions))
    return float(Fraction(lcm(*(int(fraction * below) for fraction in fractions)), below))


def _moved_to(channels: Sequence[Channel], first_node: int) -> list[Channel]:
    return [replace(channel, node=channel.node + first_node) for channel in channels]
