"""Twin of reflection_block.wgsl: who sends reflection rays."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.twins.brdf import NARROW_ROUGHNESS
from passes.twins.gbuffer import NOTHING, Pixels, tile_pixels, unpack_surface
from passes.twins.lobe_radius import lobe_angle
from passes.twins.octahedral import decode_normal
from passes.twins.sampling import pcg
from passes.twins.wgsl_functions import F32, U32, Flags, Index, length

NARROW_PART = np.float32(0.25)


@dataclass(frozen=True, slots=True)
class Senders:
    """By block of that side, [down, across]: the pixel that sends in its turn, and whether there is
    one. By pixel, [height, width]: `always`, whether it sends in every frame, and how many `turns`
    of its block come before its own."""

    x: Index
    y: Index
    sends: Flags
    block: int
    always: Flags
    turns: Index

    def index(self, frame: Any) -> U32:
        return np.asarray(self.y * int(frame["width"]) + self.x, np.uint32)


def bends(visibility: U32, surface: U32) -> F32:
    """[height, width]"""
    objects, normals = visibility[..., 0], decode_normal(surface[..., 0])
    y, x = np.indices(objects.shape)
    found = np.zeros(objects.shape, np.float32)
    for down, right in ((0, 1), (1, 0)):
        oy, ox = np.asarray(y ^ down), np.asarray(x ^ right)
        inside = (oy < objects.shape[0]) & (ox < objects.shape[1])
        oy, ox = np.where(inside, oy, y), np.where(inside, ox, x)
        bend = length(normals[oy, ox] - normals)
        found = np.where(objects[oy, ox] == objects, np.maximum(found, bend), found)
    return found


def narrow_lobes(frame: Any, visibility: U32, surface: U32, block: int) -> Flags:
    """[height, width]"""
    roughness = unpack_surface(surface.reshape(-1, 4)).roughness.reshape(surface.shape[:2])
    lobe = lobe_angle(roughness)
    spread = np.float32(frame["pixel_spread"])
    part = NARROW_PART * np.float32(block)
    bent = lobe < part * (spread + np.float32(2.0) * bends(visibility, surface))
    return np.asarray((lobe < part * spread) | (roughness < NARROW_ROUGHNESS) & bent)


def ray_footprint(senders: Senders, pixels: Pixels) -> F32:
    always = senders.always[pixels.y, pixels.x]
    return np.where(always, np.float32(1.0), np.float32(senders.block))


def sends_reflection(frame: Any, visibility: U32, surface: U32) -> Flags:
    """[height, width]"""
    height, width = visibility.shape[:2]
    roughness = unpack_surface(surface.reshape(-1, 4)).roughness.reshape(height, width)
    return np.asarray((visibility[..., 0] != NOTHING) & (roughness <= frame["roughness_cutoff"]))


def place_in_block(turn: int, block: int) -> tuple[int, int]:
    x = y = 0
    side = block // 2
    while side:
        x += side * (turn & 1)
        y += side * ((turn ^ (turn >> 1)) & 1)
        turn, side = turn >> 2, side // 2
    return x, y


def reversed_bits(number: Index, block: int) -> Index:
    return (number & 1) << 1 | number >> 1 if block == 4 else number


def reflection_senders(
    frame: Any, visibility: U32, surface: U32, block: int, own: bool = False
) -> Senders:
    """Of every block of the picture; `own`: narrow lobes send their own rays."""
    height, width = visibility.shape[:2]
    smooth = sends_reflection(frame, visibility, surface)
    always = np.zeros(smooth.shape, bool)
    if own:
        always = smooth & narrow_lobes(frame, visibility, surface, block)
    in_turn = smooth & ~always
    by, bx = np.indices((-(-height // block), -(-width // block)))
    shift_x, shift_y = reversed_bits(by % block, block), reversed_bits(bx % block, block)
    turns = block * block
    frame_index, seed = np.atleast_1d(frame["frame_index"]), np.atleast_1d(frame["seed"])
    first = int((frame_index + pcg(frame_index // np.uint32(turns) + pcg(seed)))[0])
    x, y, sends = block * bx, block * by, np.zeros(bx.shape, bool)
    order = np.zeros((height, width), np.int64)
    for turn in range(turns):
        place = place_in_block((first + turn) % turns, block)
        px = block * bx + (place[0] + shift_x) % block
        py = block * by + (place[1] + shift_y) % block
        inside = (px < width) & (py < height)
        order[py[inside], px[inside]] = turn
        taken = ~sends & inside & in_turn[np.minimum(py, height - 1), np.minimum(px, width - 1)]
        x, y, sends = np.where(taken, px, x), np.where(taken, py, y), sends | taken
    return Senders(x, y, sends, block, always, order)


def sender_for(frame: Any, senders: Senders, here: Pixels) -> U32:
    """[n] pixels whose rays are those of the smooth pixels `here`."""
    in_turn = senders.index(frame)[here.y // senders.block, here.x // senders.block]
    return np.where(senders.always[here.y, here.x], here.index, in_turn)


def sending_pixels(frame: Any, senders: Senders) -> Pixels:
    """Those that send, in the order of the lanes that handle their blocks; one lane's, which the
    shader pushes in rounds, together."""
    down, across = senders.sends.shape
    sending = senders.always.copy()
    sending[senders.y[senders.sends], senders.x[senders.sends]] = True
    lanes = tile_pixels({"width": across, "height": down})
    rank = np.zeros((down, across), np.int64)
    rank[lanes.y, lanes.x] = np.arange(len(lanes.x))
    y, x = np.nonzero(sending)
    order = np.lexsort((senders.turns[y, x], rank[y // senders.block, x // senders.block]))
    y, x = y[order], x[order]
    return Pixels(x, y, (y * int(frame["width"]) + x).astype(np.uint32))
