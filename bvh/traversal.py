"""The oracle's walk: one chunk of rays through the guest bytes, one node a ray and step.

Owns the node steps (box, triangle block, sphere, instance), the private stacks and the counters.
The rays of a chunk that stand on the same kind of node are handled together; a ray that is done
leaves the active set. Written from the guest layout (bvh.layout) alone, independent of the shaders.

Every ray starts at ROOT_POINTER of the container at byte 0. Closest-hit visits hit children
near-first (equal entry distances: lower slot first), any-hit in slot order. Nothing is culled when
popped.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.box_children import order_children, read_children
from bvh.candidates import read_candidates
from bvh.instance_entry import enter_instances, passes_mask
from bvh.ray_box import flush_components, intersect_boxes, invert_components
from bvh.ray_sphere import encode_place, intersect_spheres
from bvh.ray_triangle import AXIS_ORDER, dominant_axis, intersect_triangles
from bvh.rays import MISS_ID, RayFlags, Rays, valid_rays
from bvh.walk_options import Resume, WalkOptions
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
Index = NDArray[np.int64]

_POP = np.uint32(layout.INVALID_POINTER)  # "this ray has no node: take one from its stack"
# [9 (vertex, component), 4 types * 3 axes]: word offsets of the rotated corners.
_CORNERS = np.array(
    [
        [3 * slot + axis for slot in slots for axis in order]
        for slots in layout.TRIANGLE_SLOTS
        for order in AXIS_ORDER
    ]
).T.copy()


class Walk:
    """The state of one chunk; `run` fills `out` and `counters` (views of the whole result)."""

    def __init__(
        self,
        words: U32,
        rays: Rays,
        options: WalkOptions,
        out: dict[str, NDArray[Any]],
        counters: dict[str, U32],
        resume: Resume | None = None,
    ) -> None:
        n = len(rays)
        self.resume, self.passed = resume, np.zeros(n, np.bool_)
        self.words, self.options, self.out, self.counters = words, options, out, counters
        self.floats = words.view(np.float32)
        self.world_origin = np.ascontiguousarray(rays["origin"].T)
        self.world_direction = flush_components(np.ascontiguousarray(rays["direction"].T))
        self.t_min = np.ascontiguousarray(rays["t_min"])
        self.t_limit = rays["t_max"].copy()  # shrinks to the best hit
        # Boxes keep the ray's own beginning, so that they are visited in the same order.
        self.first_t = self.t_min
        if resume is not None and not options.any_hit:
            self.first_t = np.nextafter(resume.t, np.float32(-np.inf))
        # The ray in the space of the container it is in, and the same with rotated components.
        self.origin, self.inverse = np.empty((3, n), np.float32), np.empty((3, n), np.float32)
        self.rotated = np.empty((2, 3, n), np.float32)
        self.exponent = np.empty(n, np.int32)
        self.axis = np.empty(n, np.int64)
        self.base = np.zeros(n, np.int64)  # word of that container's byte 0
        self.instance = np.full(n, MISS_ID, np.uint32)
        self.object_word = np.full(n, layout.INSTANCE_NO_FORCE_NON_OPAQUE, np.uint32)
        self.inside = np.zeros(n, np.bool_)  # in a BLAS
        self.floor = np.zeros(n, np.int64)  # stack height at which the container is left
        self.pointer = np.full(n, layout.ROOT_POINTER, np.uint32)
        self.stack = np.empty((n, options.stack_limit), np.uint32)
        self.height = np.zeros(n, np.int64)
        self.step = 0
        self.entered = np.zeros(n, np.int64)  # step at which it came to that container
        self.alive = valid_rays(rays)
        out["invalid"][:] = ~self.alive

    def run(self) -> None:
        active = np.flatnonzero(self.alive)
        self._set_ray(active, self.world_origin[:, active], self.world_direction[:, active])
        # A walk of one container meets each of its nodes once: a ray that takes more steps in it
        # than the buffer has units goes round in circles.
        most = len(self.words) // layout.UNIT_WORDS
        for number in range(self.options.step_limit):
            self.step = number
            if number > most:
                lost = active[number - self.entered[active] > most]
                self.out["overflows"][lost] += np.uint32(1)
                self.alive[lost] = False
                active = active[self.alive[active]]
            if not active.size:
                break
            kind = self.pointer[active] & 7
            for node, step in (
                (layout.NODE_BOX_FP32, self._step_boxes),
                (layout.NODE_BOX_FP16, self._step_boxes),
                (layout.NODE_INSTANCE, self._enter_instances),
            ):
                lanes = active[kind == node]
                if lanes.size:
                    step(lanes, self._address(lanes, node), node == layout.NODE_BOX_FP16)
            lanes = active[kind <= layout.NODE_TRIANGLE_3]
            if lanes.size:
                self._step_triangles(lanes, self._address(lanes, layout.NODE_TRIANGLE_0))
            lanes = active[kind == layout.NODE_PROCEDURAL]
            if lanes.size:
                self._step_spheres(lanes, self._address(lanes, layout.NODE_PROCEDURAL))
            self._pop(active[(self.pointer[active] == _POP) & self.alive[active]])
            active = active[self.alive[active]]
        self.out["overflows"][active] += np.uint32(1)

    def _set_ray(self, lanes: Index, origin: Any, direction: Any) -> None:
        direction = flush_components(direction)
        axis = dominant_axis(direction)
        self.origin[:, lanes] = origin
        self.inverse[:, lanes] = invert_components(direction)
        self.axis[lanes] = axis
        order = AXIS_ORDER[axis].T
        column = np.arange(lanes.size)
        self.rotated[0][:, lanes] = origin[order, column]
        # The triangle test multiplies three direction components: a power of two brings the
        # dominant one near 1 exactly, so that long and short directions neither overflow nor
        # lose bits, and t gets it back.
        rotated = direction[order, column]
        exponent = np.frexp(rotated[2])[1]
        self.exponent[lanes] = exponent
        self.rotated[1][:, lanes] = np.ldexp(rotated, -exponent)

    def _address(self, lanes: Index, kind: int) -> Index:
        """Word index of each lane's node, checked against the buffer."""
        pointer = self.pointer[lanes].astype(np.int64)
        address = self.base[lanes] + ((pointer & ~np.int64(7)) << 1)
        end = int(address.max()) + layout.NODE_BYTES[kind] // 4
        if end > len(self.words):
            worst = int(pointer[address.argmax()])
            raise UserError(
                f"node pointer 0x{worst:08x} reaches byte {4 * end}, beyond the BVH's "
                f"{4 * len(self.words)} bytes"
            )
        return address

    def _step_boxes(self, lanes: Index, address: Index, half: bool) -> None:
        child, bounds = read_children(self.words, address, half)
        entry, hit = intersect_boxes(
            bounds,
            self.origin.take(lanes, 1),
            self.inverse.take(lanes, 1),
            self.t_min.take(lanes),
            self.t_limit.take(lanes),
        )
        valid = child != layout.INVALID_POINTER
        hit &= valid
        count = hit.sum(0)
        self.counters["nodes"][lanes] += np.uint32(1)
        self.counters["nodes_fp16"][lanes] += np.uint32(half)
        self.counters["box_tests"][lanes] += valid.sum(0, dtype=np.uint32)
        self.counters["box_hits"][lanes] += count.astype(np.uint32)
        order = order_children(child, entry, hit, self.options.sort, self.options.kernel_order)
        if self.options.log is not None:
            self.options.log.boxes(
                lanes, self.pointer[lanes], address, bounds, entry, hit, order, self.t_limit[lanes]
            )
        self.pointer[lanes] = np.where(count > 0, order[0], _POP)
        self._push(lanes, order, count)

    def _push(self, lanes: Index, order: U32, count: Index) -> None:
        """Children 1.. of each lane onto its stack, the farthest first."""
        many = np.flatnonzero(count > 1)
        if not many.size:
            return
        lanes, order, extra = lanes[many], order[:, many], count[many] - 1
        height = self.height[lanes]
        top = height + extra
        over = np.maximum(top - self.options.stack_limit, 0)
        if over.any():
            self.out["overflows"][lanes] += over.astype(np.uint32)
        for j in range(1, layout.BOX_WIDTH):
            row = top - j
            fits = np.flatnonzero((extra >= j) & (row < self.options.stack_limit))
            self.stack[lanes[fits], row[fits]] = order[j, fits]
        top -= over
        self.height[lanes] = top
        deepest = self.counters["stack_max"]
        deepest[lanes] = np.maximum(deepest[lanes], top)

    def _pop(self, lanes: Index) -> None:
        while lanes.size:
            height = self.height[lanes]
            empty = height == self.floor[lanes]
            some = lanes[~empty]
            rows = height[~empty] - 1
            self.pointer[some] = self.stack[some, rows]
            self.height[some] = rows
            leaving = lanes[empty]
            done = ~self.inside[leaving]
            self.alive[leaving[done]] = False
            lanes = leaving[~done]
            if lanes.size:
                self._leave_instances(lanes)

    def _enter_instances(self, lanes: Index, address: Index, _: bool) -> None:
        node = self.pointer[lanes]
        self.pointer[lanes] = _POP
        if self.inside[lanes].any():
            raise UserError("the BVH nests an instance node in a BLAS; two levels are supported")
        passed = passes_mask(self.words, address, self.options.mask)
        if self.options.log is not None:
            self.options.log.instances(lanes, node, address, passed)
        entered = np.flatnonzero(passed)
        if not entered.size:
            return
        lanes = lanes[entered]
        entry = enter_instances(
            self.words,
            address[entered],
            self.world_origin[:, lanes],
            self.world_direction[:, lanes],
        )
        self._set_ray(lanes, entry.origin, entry.direction)
        self.base[lanes] = entry.base
        self.instance[lanes] = entry.instance
        self.object_word[lanes] = entry.object_word
        self.inside[lanes] = True
        self.entered[lanes] = self.step
        self.floor[lanes] = self.height[lanes]
        self.pointer[lanes] = entry.root
        self.counters["instance_hits"][lanes] += np.uint32(1)

    def _leave_instances(self, lanes: Index) -> None:
        if self.options.log is not None:
            self.options.log.leave(lanes)
        self._set_ray(lanes, self.world_origin[:, lanes], self.world_direction[:, lanes])
        self.base[lanes] = 0
        self.instance[lanes] = MISS_ID
        self.object_word[lanes] = layout.INSTANCE_NO_FORCE_NON_OPAQUE
        self.inside[lanes] = False
        self.entered[lanes] = self.step
        self.floor[lanes] = 0

    def _step_triangles(self, lanes: Index, address: Index) -> None:
        """All triangles of each block: a pointer of type k visits types k, k-1, .. 0."""
        node = self.pointer[lanes]
        last = (node & 7).astype(np.int64)
        self.pointer[lanes] = _POP
        self.counters["leaf_blocks"][lanes] += np.uint32(1)
        for back in range(int(last.max()) + 1):
            kind = np.minimum(last, back) if self.options.kernel_order else last - back
            held = back <= last if self.options.kernel_order else kind >= 0
            some = np.flatnonzero(held & self.alive[lanes])
            if some.size:
                self._test_triangles(lanes[some], address[some], kind[some], node[some])

    def _test_triangles(self, lanes: Index, address: Index, kind: Index, node: U32) -> None:
        self.counters["triangle_tests"][lanes] += np.uint32(1)
        code = 3 * kind + self.axis.take(lanes)
        corners = self.floats.take(address + _CORNERS.take(code, 1)).reshape(3, 3, lanes.size)
        rotated = self.rotated.take(lanes, 2)
        found = intersect_triangles(corners, rotated[0], rotated[1])
        at = lanes[found.lanes]
        t = np.ldexp(found.t, -self.exponent[at])
        # Open interval on both sides: at equal t the first triangle tested keeps the hit.
        near = np.flatnonzero((t > self.first_t[at]) & (t < self.t_limit[at]))
        before = self.out["crossings"][lanes] if self.options.log is not None else None
        if near.size:
            self._offer(
                at[near],
                address[found.lanes[near]],
                node[found.lanes[near]],
                kind[found.lanes[near]],
                t[near],
                found.weights[:, near],
                found.front[near],
            )
        if self.options.log is not None:
            inside = np.full(lanes.size, np.nan, np.float32)
            inside[found.lanes[near]] = t[near]
            accepted = self.out["crossings"][lanes] != before
            self.options.log.triangles(lanes, node, address, kind, inside, accepted)

    def _step_spheres(self, lanes: Index, address: Index) -> None:
        """Both crossings of each sphere: entering it is triangle 0 of its node, leaving it 1."""
        node = self.pointer[lanes]
        self.pointer[lanes] = _POP
        self.counters["leaf_blocks"][lanes] += np.uint32(1)
        order = AXIS_ORDER[self.axis[lanes]].T
        direction = np.empty((3, lanes.size), np.float32)
        np.put_along_axis(direction, order, self.rotated[1][:, lanes], axis=0)
        center, radius = (
            self.floats[address + layout.SPHERE_CENTER_WORD + np.arange(3)[:, None]],
            self.floats[address + layout.SPHERE_RADIUS_WORD],
        )
        found = intersect_spheres(self.origin[:, lanes], direction, center, radius)
        t = np.ldexp(found.t, -self.exponent[lanes])
        for crossing in range(2):
            place = encode_place(found.normal[crossing])
            weights = np.stack([np.float32(1) - place[0] - place[1], *place])
            some = np.flatnonzero(self.alive[lanes])
            here, at = t[crossing, some], lanes[some]
            self.counters["triangle_tests"][at] += np.uint32(1)
            inside = (here > self.first_t[at]) & (here < self.t_limit[at])
            near = some[inside]
            before = self.out["crossings"][at] if self.options.log is not None else None
            kind = np.full(lanes.size, crossing)
            if near.size:
                self._offer(
                    lanes[near],
                    address[near],
                    node[near],
                    kind[near],
                    t[crossing, near],
                    weights[:, near],
                    kind[near] == 0,
                )
            if self.options.log is not None:
                told = np.where(inside, here, np.float32(np.nan))
                accepted = self.out["crossings"][at] != before
                self.options.log.triangles(
                    at, node[some], address[some], kind[some], told, accepted
                )

    def _offer(
        self,
        lanes: Index,
        address: Index,
        node: U32,
        kind: Index,
        t: NDArray[np.float32],
        weights: NDArray[np.float32],
        front: NDArray[np.bool_],
    ) -> None:
        """Culling, alpha test and commit of crossings inside the ray's interval."""
        options = self.options
        found = read_candidates(
            self.words,
            self.base[lanes],
            address,
            node,
            kind,
            weights,
            front,
            self.object_word[lanes],
            options.flags,
        )
        keep = ~found.culled
        self.counters["triangle_hits"][lanes[keep]] += np.uint32(1)
        pointer = ((address >> 1) | kind).astype(np.uint32)
        asks = keep & ~found.opaque
        if self.resume is not None:
            known = self._known(lanes, asks, t, pointer)
            keep, asks = keep & ~known, asks & ~known
        if options.accept is not None and not options.defer:
            asked = np.flatnonzero(asks)
            if asked.size:
                self.counters["any_hits"][lanes[asked]] += np.uint32(1)
                keep[asked] = not options.flags & RayFlags.REJECT and options.accept(
                    found.object[asked], found.primitive[asked], found.u[asked], found.v[asked]
                )
                self.counters["rejected"][lanes[asked]] += ~keep[asked]
        hit = {
            "t": t,
            "u": found.u,
            "v": found.v,
            "object": found.object,
            "primitive": found.primitive,
            "instance": self.instance[lanes],
            "pointer": pointer,
            "waits": asks & options.defer,
            "leaves": ((node & 7) == layout.NODE_PROCEDURAL) & (kind == 1),
        }
        self._commit(lanes[keep], {name: value[keep] for name, value in hit.items()})

    def _known(self, lanes: Index, asks: Any, t: NDArray[np.float32], pointer: U32) -> Any:
        """Which candidates were rejected before the ray was resumed."""
        assert self.resume is not None
        known = asks & ~self.passed[lanes]
        if not self.options.any_hit:
            known &= t == self.resume.t[lanes]
        here = known & (pointer == self.resume.pointer[lanes])
        here &= self.instance[lanes] == self.resume.instance[lanes]
        self.passed[lanes[here]] = True
        return known

    def _commit(self, lanes: Index, hit: dict[str, NDArray[Any]]) -> None:
        self.out["crossings"][lanes] += np.uint32(1)
        if self.options.count_all:
            nearer = hit["t"] < self.out["t"][lanes]
            lanes, hit = lanes[nearer], {name: value[nearer] for name, value in hit.items()}
        else:
            self.t_limit[lanes] = hit["t"]
        for name, value in hit.items():
            self.out[name][lanes] = value
        if self.options.any_hit and not self.options.count_all:
            self.alive[lanes] = False
