"""A 64-bit fingerprint of a buffer's words, made on the GPU: are two results the same bytes?

Every word is mixed with its place, the mixed words are summed: no order of workgroups matters. It
tells accidents apart, not attacks. Source of the mixer: Wellons 2018, "Prospecting for hash
functions" (lowbias32).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import Stage

U32 = NDArray[np.uint32]

GROUPS = 512  # every lane takes a share, so any count fits


def _mix(value: U32) -> U32:
    x = value.copy()
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return np.asarray(x ^ (x >> np.uint32(16)))


def fingerprint(span: U32, words: U32, result: U32) -> None:
    """Twin of fingerprint.wgsl: adds to `result[:2]` what `words[span[0]:][:span[1]]` give."""
    part = words[int(span[0]) :][: int(span[1])]
    mixed = _mix(part ^ _mix(np.arange(1, len(part) + 1, dtype=np.uint32)))
    result[0] += mixed.sum(dtype=np.uint32)
    result[1] += _mix(mixed + np.uint32(0x9E3779B9)).sum(dtype=np.uint32)


class Fingerprint:
    """`encode` leaves the fingerprint in `result`, two u32; `read` waits for it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.stage = Stage(
            device,
            "fingerprint",
            "engine/gpu/primitives/shaders/fingerprint.wgsl",
            twin=fingerprint,
        )
        self.result = device.buffer("fingerprint/result", 16)
        self.everything = device.upload("fingerprint/span", np.array([0, 0xFFFFFFFF], np.uint32))

    def clear(self) -> None:
        """Before the submission that encodes."""
        self.device.write(self.result, np.zeros(2, np.uint32))

    def encode(self, scope: Any, words: Any, span: Any = None) -> None:
        """Of the words that `span` (first word, count: a storage buffer) names, or of all."""
        buffers = {"span": span or self.everything, "words": words, "result": self.result}
        self.stage.dispatch(scope, buffers, GROUPS)

    def read(self) -> int:
        low, high = self.device.read(self.result, count=2)
        return int(low) | int(high) << 32
