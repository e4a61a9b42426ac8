"""The channels of a clip: key frames of one property of one node each, and sampling them all.

A pose samples a hundred short channels, so they are sampled together (`ChannelTable`): one search
over all keys, one interpolation a kind of channel (glTF 2.0, appendix C). Times are seconds,
quaternions x y z w.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scene.mesh import F64

I64 = NDArray[np.int64]

# What a clip may animate of a node, and how wide it is; WEIGHTS has one for each target.
PATHS = {"translation": 3, "rotation": 4, "scale": 3}
WEIGHTS = "weights"
INTERPOLATIONS = ("STEP", "LINEAR", "CUBICSPLINE")


@dataclass(frozen=True, slots=True)
class Clock:
    """Where in its own clip a channel is while another clip plays it: at `start` when that begins,
    and `speed` seconds further each second. With a `period` it begins again after so many."""

    start: float = 0.0
    speed: float = 1.0
    period: float = 0.0


@dataclass(frozen=True, slots=True)
class Channel:
    """One animated property of one node. `values` are `[k, width]`, for CUBICSPLINE
    `[k, 3, width]`: in-tangent, value, out-tangent."""

    node: int
    path: str  # a key of PATHS, or WEIGHTS
    interpolation: str
    times: F64  # [k], rising
    values: F64
    clock: Clock = Clock()

    def sample(self, time: float) -> F64:
        """[width] at `time` of the clip; the first or last value outside of the times."""
        (_, _, values), *_ = ChannelTable([self]).sample(time)
        return np.asarray(values[0])


@dataclass(frozen=True, slots=True)
class _Kind:
    """Channels of one path, interpolation and width: their numbers and nodes, the first row of each
    in `values`, those of all one behind the other (unit rotations where they are slerped)."""

    path: str
    interpolation: str
    channels: I64
    nodes: I64
    firsts: I64
    values: F64  # as of a channel


class ChannelTable:
    """Some channels, sampled together."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._counts = np.array([len(channel.times) for channel in channels], np.int64)
        self._firsts = np.cumsum(self._counts) - self._counts
        self._times = np.concatenate([np.zeros(0), *(channel.times for channel in channels)])
        clocks = [(c.clock.start, c.clock.speed, c.clock.period) for c in channels]
        self._clocks = np.array(clocks, np.float64).reshape(-1, 3).T
        groups: dict[tuple[str, str, int], list[int]] = {}
        for number, channel in enumerate(channels):
            key = (channel.path, channel.interpolation, channel.values.shape[-1])
            groups.setdefault(key, []).append(number)
        self._kinds = []
        for (path, interpolation, _), numbers in groups.items():
            counts = self._counts[numbers]
            values = np.concatenate([channels[i].values for i in numbers])
            if path == "rotation" and interpolation == "LINEAR":
                values = _unit(values)  # once, and not in every sample
            self._kinds.append(
                _Kind(
                    path,
                    interpolation,
                    np.array(numbers, np.int64),
                    np.array([channels[i].node for i in numbers], np.int64),
                    np.cumsum(counts) - counts,
                    values,
                )
            )

    def sample(self, time: float) -> Iterator[tuple[str, I64, F64]]:
        """Path, nodes `[n]` and their values `[n, width]` at `time` of the clip, a kind of channels
        at a time: before and after its key frames a channel keeps its first or last."""
        if not self._kinds:
            return
        local = self._local(time)
        # The key at or before each channel's time, and the share of the way to the next one.
        passed = self._times <= np.repeat(local, self._counts)
        before = np.add.reduceat(passed, self._firsts, dtype=np.int64) - 1
        between = (before >= 0) & (before < self._counts - 1)
        before = before.clip(min=0)
        after = before + between
        start = self._times[self._firsts + before]
        span = self._times[self._firsts + after] - start
        at = np.divide(local - start, span, out=np.zeros_like(span), where=between)
        for kind in self._kinds:
            mine = kind.channels
            rows = kind.firsts + before[mine], kind.firsts + after[mine]
            values = _interpolated(kind, *rows, at[mine, None], span[mine, None])
            yield kind.path, kind.nodes, values

    def _local(self, time: float) -> F64:
        """[channels] the time by each one's clock."""
        start, speed, period = self._clocks
        local = start + speed * time
        again = (period > 0) & ~((local >= 0) & (local <= period))
        return np.asarray(np.where(again, np.mod(local, np.where(again, period, 1.0)), local))


def _interpolated(kind: _Kind, before: I64, after: I64, at: F64, span: F64) -> F64:
    """[n, width] between rows of the kind's values; `at` and `span` are `[n, 1]`."""
    rotates = kind.path == "rotation"
    if kind.interpolation == "CUBICSPLINE":
        a, b = kind.values[before, 1], kind.values[after, 1]
        out, into = kind.values[before, 2], kind.values[after, 0]
        at2, at3 = at * at, at * at * at
        value = (2 * at3 - 3 * at2 + 1) * a + span * (at3 - 2 * at2 + at) * out
        value = value + (3 * at2 - 2 * at3) * b + span * (at3 - at2) * into
    elif kind.interpolation == "STEP":
        value = kind.values[before]
    elif rotates:
        return slerp(kind.values[before], kind.values[after], at)
    else:
        value = (1 - at) * kind.values[before] + at * kind.values[after]
    return _unit(value) if rotates else np.asarray(value)


def slerp(a: F64, b: F64, at: F64 | float) -> F64:
    """[..., 4] the shorter way from unit quaternions a to b (appendix C.4); `at` is `[..., 1]`."""
    cosine = (a * b).sum(axis=-1, keepdims=True)
    b, cosine = np.where(cosine < 0, -b, b), np.minimum(np.abs(cosine), 1.0)
    angle = np.arccos(cosine)
    turns = angle >= 1e-6  # else nearly one rotation: the chord is as good as the arc
    sine = np.where(turns, np.sin(angle), 1.0)
    from_a = np.where(turns, np.sin((1 - at) * angle) / sine, 1 - at)
    from_b = np.where(turns, np.sin(at * angle) / sine, at)
    return _unit(from_a * a + from_b * b)


def _unit(quaternions: F64) -> F64:
    """[..., 4] of length 1; a zero quaternion turns nothing."""
    length = np.sqrt((quaternions * quaternions).sum(axis=-1, keepdims=True))
    identity = np.array([0.0, 0.0, 0.0, 1.0])
    return np.asarray(np.where(length > 0, quaternions / np.where(length > 0, length, 1), identity))
