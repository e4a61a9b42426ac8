"""Twin of reflection_block.wgsl: who sends reflection rays."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.twins.gbuffer import NOTHING, Pixels, tile_pixels, unpack_surface
from passes.twins.sampling import pcg
from passes.twins.wgsl_functions import U32, Flags, Index


@dataclass(frozen=True, slots=True)
class Senders:
    """By block, [down, across]: the pixel that sends for it, and whether there is one."""

    x: Index
    y: Index
    sends: Flags

    def index(self, frame: Any) -> U32:
        return np.asarray(self.y * int(frame["width"]) + self.x, np.uint32)


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


def reflection_senders(frame: Any, visibility: U32, surface: U32, block: int) -> Senders:
    """Of every block of the picture."""
    height, width = visibility.shape[:2]
    smooth = sends_reflection(frame, visibility, surface)
    by, bx = np.indices((-(-height // block), -(-width // block)))
    shift_x, shift_y = reversed_bits(by % block, block), reversed_bits(bx % block, block)
    turns = block * block
    frame_index, seed = np.atleast_1d(frame["frame_index"]), np.atleast_1d(frame["seed"])
    first = int((frame_index + pcg(frame_index // np.uint32(turns) + pcg(seed)))[0])
    x, y, sends = block * bx, block * by, np.zeros(bx.shape, bool)
    for turn in range(turns):
        place = place_in_block((first + turn) % turns, block)
        px = block * bx + (place[0] + shift_x) % block
        py = block * by + (place[1] + shift_y) % block
        inside = (px < width) & (py < height)
        taken = ~sends & inside & smooth[np.minimum(py, height - 1), np.minimum(px, width - 1)]
        x, y, sends = np.where(taken, px, x), np.where(taken, py, y), sends | taken
    return Senders(x, y, sends)


def sending_pixels(frame: Any, senders: Senders) -> Pixels:
    """Those that send, in the order of the lanes that handle their blocks."""
    down, across = senders.sends.shape
    blocks = tile_pixels({"width": across, "height": down})
    sends = senders.sends[blocks.y, blocks.x]
    by, bx = blocks.y[sends], blocks.x[sends]
    return Pixels(senders.x[by, bx], senders.y[by, bx], senders.index(frame)[by, bx])
