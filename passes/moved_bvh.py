"""The structure of a moving scene as it is on the GPU, read back for what looks at bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.describe import describe_container
from bvh.layout import UNIT_BYTES
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from passes.deforming_tree import DeformingTree


def read_moved_bvh(
    device: Device,
    prepared: SceneBvh,
    buffers: Mapping[str, Any],
    trees: Sequence[DeformingTree],
    moved: Mapping[int, NDArray[np.float64]],
) -> SceneBvh:
    """`prepared` with the words and links of `buffers` (bvh, parents), the bases of `trees` and the
    transforms of the instances `moved`. What the trees' statistics say is measured anew, their SAH
    by stored boxes; waits. LimitError for a tree that had no room to be built in."""
    for line in filter(None, (tree.no_room() for tree in trees)):
        raise LimitError(line)
    bases, identities = prepared.blas_bases.copy(), list(prepared.blas_identities)
    for tree in trees:
        bases[tree.number] = tree.base
        version = identities[tree.number].content_version + tree.builds
        identities[tree.number] = replace(identities[tree.number], content_version=version)
    instances = list(prepared.instances)
    for i, transform in moved.items():
        instances[i] = replace(instances[i], transform=transform)
    # Behind what was prepared stands what was built anew.
    size = max([prepared.words.nbytes, *(tree.end for tree in trees)])
    now = replace(
        prepared,
        words=device.read(buffers["bvh"], count=size // 4),
        parents=device.read(buffers["parents"], count=size // UNIT_BYTES),
        blas_bases=bases,
        blas_identities=tuple(identities),
        instances=tuple(instances),
    )
    stats = list(prepared.blas_stats)
    for tree in trees:
        found = describe_container(now.blas_words(tree.number))
        stats[tree.number] = replace(
            stats[tree.number],
            blocks=found["leaves"],
            **{n: found[n] for n in ("nodes_fp16", "nodes_fp32", "bytes", "depth", "sah")},
        )
    return replace(now, blas_stats=tuple(stats))
