"""A whole traversal in which every node goes through the instruction: the slow, exact walk.

A stack machine over guest memory, one node a ray and step; the shader's part (stack, nearest hit,
instances) is ours, after GPURT and RADV: t_min < t < the best t so far, a pointer of type k visits
triangles k to 0 of its block, nothing is culled when popped, rays keep their length through
instances. Instance nodes are our own layout (ledger: instance.ours). Every ray ends with a reason;
a node that cannot be read ends its ray with an error and never counts as a miss.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract import descriptor as descriptors
from bvh.contract import pointer as pointers
from bvh.contract.cases import Cases
from bvh.contract.fan_ids import read_fan_ids
from bvh.contract.instance import enter_instance
from bvh.contract.intersect import Result, Status, node_blocks
from bvh.contract.memory import GuestMemory
from bvh.contract.pointer import GuestAddress, NodePointer
from bvh.contract.residency import intersect_resident
from bvh.contract.trace import Ended, Options, Trace
from bvh.contract.trace_log import Step, make_step

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Index = NDArray[np.int64]

MISS_ID = layout.INVALID_POINTER
_NONE = np.uint64(layout.INVALID_POINTER)


_DEFAULT = Options()


def traverse(
    memory: GuestMemory,
    descriptor: descriptors.Descriptor,
    root: NodePointer,
    origin: F32,
    direction: F32,
    t_min: F32,
    t_max: F32,
    options: Options = _DEFAULT,
) -> Trace:
    """n rays (`[n, 3]`, `[n]`) from `root`, a pointer relative to the descriptor's base."""
    walk = _Walk(memory, descriptor, options, origin, direction)
    walk.t_min[:], walk.limit[:], walk.pointer[:] = t_min, t_max, root
    for _ in range(options.step_limit):
        lanes = np.flatnonzero(walk.alive)
        if not lanes.size:
            break
        walk.step(lanes)
    return walk.out


class _Walk:
    """The state of n rays. `step` makes one instruction of each living ray."""

    def __init__(
        self,
        memory: GuestMemory,
        descriptor: descriptors.Descriptor,
        options: Options,
        origin: F32,
        direction: F32,
    ) -> None:
        n = len(origin)
        self.memory, self.scene, self.options = memory, descriptor, options
        self.world = np.array(origin, np.float32), np.array(direction, np.float32)
        self.origin, self.direction = self.world[0].copy(), self.world[1].copy()
        self.t_min, self.limit = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self.descriptor = np.tile(np.array(descriptors.pack(descriptor), np.uint32), (n, 1))
        self.pointer = np.zeros(n, np.uint64)
        self.stack = np.zeros((n, options.stack_limit), np.uint64)
        self.height, self.floor = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.instance = np.full(n, MISS_ID, np.uint32)
        self.alive = np.ones(n, np.bool_)
        # The type of the pointer that led to the block a ray is in, -1 outside of blocks.
        self.opened = np.full(n, -1, np.int64)
        self.notes: dict[int, str] = {}
        zero, missing = np.zeros(n, np.uint32), np.full(n, MISS_ID, np.uint32)
        none = np.zeros(n, np.float32)
        self.out = Trace(
            t=np.full(n, np.inf, np.float32),
            u=none.copy(),
            v=none.copy(),
            pointer=np.full(n, _NONE, np.uint64),
            geometry=missing.copy(),
            primitive=missing.copy(),
            instance=missing.copy(),
            front=np.zeros(n, np.bool_),
            ended=np.full(n, Ended.STEP_LIMIT, object),
            steps=zero.copy(),
            box_nodes=zero.copy(),
            triangle_tests=zero.copy(),
            triangle_hits=zero.copy(),
            instance_hits=zero.copy(),
            stack_max=zero.copy(),
        )

    def step(self, lanes: Index) -> None:
        options = self.options
        cases = self._cases(lanes)
        result = intersect_resident(
            self.memory, cases, options.rules, options.pager, options.attempts
        )
        # Everything below happens once, however often the load was retried.
        self.notes.clear()
        self.out.steps[lanes] += np.uint32(1)
        before = self.height[lanes].copy()
        steps = [self._step_of(i, lane, cases, result) for i, lane in enumerate(lanes.tolist())]
        kind = pointers.kinds(self.pointer[lanes])
        following = np.full(len(lanes), _NONE, np.uint64)
        for status in np.unique(result.status).tolist():
            if status not in (Status.OK, Status.USER_NODE):
                self._end(lanes[result.status == status], Ended[Status(status).name])
        ready = result.status == Status.OK
        at = np.flatnonzero(ready & (kind > layout.NODE_TRIANGLE_3))
        following[at] = self._boxes(lanes[at], result.words[at])
        at = np.flatnonzero(ready & (kind <= layout.NODE_TRIANGLE_3))
        following[at] = self._triangles(lanes[at], kind[at], result.words[at])
        for i in np.flatnonzero(result.status == Status.USER_NODE).tolist():
            following[i] = self._enter(int(lanes[i]), int(kind[i]))
        pushed = [
            tuple(self.stack[lane, low : self.height[lane]].tolist()) if step else ()
            for lane, low, step in zip(lanes.tolist(), before.tolist(), steps, strict=True)
        ]
        self.pointer[lanes] = following
        self._pop(lanes[(following == _NONE) & self.alive[lanes]])
        for lane, step, pointers_pushed in zip(lanes.tolist(), steps, pushed, strict=True):
            if step and options.log:
                options.log(self._finish(step, lane, pointers_pushed))

    def _cases(self, lanes: Index) -> Cases:
        direction = self.direction[lanes]
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.float32(1) / direction
        pointer = self.pointer[lanes]
        return Cases(
            descriptor=self.descriptor[lanes],
            pointer_low=(pointer & np.uint64(0xFFFFFFFF)).astype(np.uint32),
            pointer_high=(pointer >> np.uint64(32)).astype(np.uint32),
            node_words=np.zeros((len(lanes), 0), np.uint32),
            backed=np.zeros(len(lanes), np.uint32),
            extent=self.limit[lanes].view(np.uint32),
            origin=self.origin[lanes].view(np.uint32),
            direction=direction.view(np.uint32),
            inverse_direction=inverse.view(np.uint32),
        )

    def _boxes(self, lanes: Index, words: U32) -> U64:
        """Pushes all hit children but the first; returns the first."""
        self.out.box_nodes[lanes] += np.uint32(1)
        # The pointer decides too: an empty slot whose bounds can be hit is still empty.
        hit = words != layout.INVALID_POINTER
        count = hit.sum(1)
        ordered = np.take_along_axis(words, np.argsort(~hit, axis=1, kind="stable"), axis=1)
        top = self.height[lanes] + np.maximum(count - 1, 0)
        fits = top <= self.options.stack_limit
        self._end(lanes[~fits], Ended.STACK_OVERFLOW)
        for slot in range(1, layout.BOX_WIDTH):
            at = np.flatnonzero(fits & (count > slot))
            self.stack[lanes[at], top[at] - slot] = ordered[at, slot]  # the farthest lowest
        self.height[lanes[fits]] = top[fits]
        deepest = self.out.stack_max
        deepest[lanes] = np.maximum(deepest[lanes], self.height[lanes].astype(np.uint32))
        return ordered[:, 0].astype(np.uint64)

    def _triangles(self, lanes: Index, kind: Index, words: U32) -> U64:
        """Commits nearer hits; returns the next triangle of the block."""
        out = self.out
        out.triangle_tests[lanes] += np.uint32(1)
        following = np.full(len(lanes), _NONE, np.uint64)
        opened = np.maximum(self.opened[lanes], kind)
        self.opened[lanes] = np.where(self.options.fan & (kind > 0), opened, -1)
        if self.options.fan:
            more = kind > 0
            following[more] = self.pointer[lanes[more]] - np.uint64(1)
        value = np.ascontiguousarray(words).view(np.float32)
        with np.errstate(all="ignore"):
            t, u, v = (value[:, i] / value[:, 1] for i in (0, 2, 3))
            at = np.flatnonzero((t > self.t_min[lanes]) & (t < self.limit[lanes]))
        if not at.size:
            return following
        near = lanes[at]
        self._read_ids(near, kind[at], opened[at] >= layout.NODE_TRIANGLE_2)
        out.t[near], out.u[near], out.v[near] = t[at], u[at], v[at]
        out.pointer[near], out.instance[near] = self.pointer[near], self.instance[near]
        out.front[near] = value[at, 1] > 0
        out.triangle_hits[near] += np.uint32(1)
        self.limit[near] = t[at]
        if self.options.log:
            for lane in near.tolist():
                text = f"hit at t {out.t[lane]:.9g}, u {out.u[lane]:.6g}, v {out.v[lane]:.6g}"
                self.notes[lane] = text
        if self.options.any_hit:
            self._end(near, Ended.FIRST_HIT)
        return following

    def _read_ids(self, lanes: Index, kind: Index, fan: NDArray[np.bool_]) -> None:
        """Geometry and primitive of hits in blocks, `fan` of three or four triangles."""
        addresses = node_blocks(self._cases(lanes))[0]
        block, _ = self.memory.load_blocks(addresses)
        mask = np.uint32(layout.GEOMETRY_INDEX_MASK)
        geometry = block[:, layout.TRIANGLE_GEOMETRY_WORD] & mask
        at = layout.TRIANGLE_PRIMITIVE_0_WORD + np.minimum(kind, 1)
        primitive = block[np.arange(len(lanes)), at]
        if fan.any():
            words = self.descriptor[lanes[fan]]
            base = np.array([descriptors.unpack(tuple(row)).base for row in words], np.uint64)
            flags = block[fan, layout.TRIANGLE_FLAGS_WORD]
            found = read_fan_ids(self.memory, base, addresses[fan], flags, kind[fan])
            geometry[fan], primitive[fan] = found
        self.out.geometry[lanes], self.out.primitive[lanes] = geometry, primitive

    def _enter(self, lane: int, kind: int) -> np.uint64:
        """A user node: the BLAS root to visit next, or 0xffffffff."""
        one = np.array([lane])
        nested = self.instance[lane] != MISS_ID
        if kind != layout.NODE_INSTANCE or nested or not self.options.instances:
            self._end(one, Ended.UNKNOWN_NODE)
            return _NONE
        address = GuestAddress(int(node_blocks(self._cases(one))[0][0]))
        ray = self.world[0][lane], self.world[1][lane]
        entry = enter_instance(self.memory, self.scene, address, *ray, self.options.mask)
        if isinstance(entry, Status):
            self._end(one, Ended[entry.name])
            return _NONE
        if entry is None:
            self.notes[lane] = "masked out"
            return _NONE
        self.descriptor[lane] = descriptors.pack(entry.descriptor)
        self.origin[lane], self.direction[lane] = entry.origin, entry.direction
        self.instance[lane] = entry.instance
        self.floor[lane] = self.height[lane]
        self.out.instance_hits[lane] += np.uint32(1)
        self.notes[lane] = f"entered instance {entry.instance}"
        return np.uint64(entry.root)

    def _pop(self, lanes: Index) -> None:
        leaving = lanes[(self.height == self.floor)[lanes] & (self.instance != MISS_ID)[lanes]]
        self.instance[leaving], self.floor[leaving] = MISS_ID, 0
        self.descriptor[leaving] = descriptors.pack(self.scene)
        self.origin[leaving], self.direction[leaving] = (part[leaving] for part in self.world)
        empty = self.height[lanes] == 0
        self._end(lanes[empty], Ended.STACK_EMPTY)
        lanes = lanes[~empty]
        self.height[lanes] -= 1
        self.pointer[lanes] = self.stack[lanes, self.height[lanes]]

    def _end(self, lanes: Index, ended: Ended) -> None:
        self.alive[lanes] = False
        self.out.ended[lanes] = ended

    def _step_of(self, i: int, lane: int, cases: Cases, result: Result) -> Step | None:
        if not self.options.log:
            return None
        one = Result(result.words[i : i + 1], result.status[i : i + 1])
        instance = int(self.instance[lane])
        return make_step(self.memory, cases.take(np.array([i])), lane, instance, one, "")

    def _finish(self, step: Step, lane: int, pushed: tuple[int, ...]) -> Step:
        note = self.notes.get(lane, "")
        alive = bool(self.alive[lane])
        if not alive:
            note += "; " * bool(note) + f"ended: {self.out.ended[lane]}"
        following = int(self.pointer[lane]) if alive else layout.INVALID_POINTER
        height = int(self.height[lane])
        return replace(step, note=note, pushed=pushed, next=following, stack_height=height)
