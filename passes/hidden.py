"""TLAS instances taken out of a scene: no ray enters them and no triangle of theirs is rasterised.

Nothing is built anew and no kernel changes. A hidden instance's node has mask 0, which no ray
shares a bit with. Kernels of a scene whose only instance every ray sees start below its node
(`bvh.gpu.trace_rays.fit_variant`): there the BLAS's root loses its children. In the table of
objects, those of a hidden instance have a matrix of zeros: their triangles have no area.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.trace_rays import only_instance
from bvh.header import unpack_header
from bvh.layout import (
    BOX_WIDTH,
    HEADER_BYTES,
    INSTANCE_CUSTOM_WORD,
    INSTANCE_ID_WORD,
    INSTANCE_INDEX_MASK,
    INVALID_POINTER,
    NODE_BYTES,
    NODE_INSTANCE,
    UNIT_BYTES,
)
from bvh.scene_bvh import SceneBvh
from engine.gpu.errors import UserError
from passes.prepare import PreparedScene

I64 = NDArray[np.int64]


def hide(prepared: PreparedScene, instances: Collection[int]) -> PreparedScene:
    """The scene without these, in bytes of its own; the same scene without any. UserError for an
    instance that there is not."""
    if not instances:
        return prepared
    bvh, words = prepared.bvh, prepared.bvh.words.copy()
    words[mask_words(bvh, instances)] &= np.uint32(INSTANCE_INDEX_MASK)
    words[root_words(bvh, instances)] = INVALID_POINTER
    objects = prepared.pack.objects.copy()
    objects["object_to_world"][hidden_objects(bvh, instances)] = 0
    placed = [replace(x, mask=0) if i in instances else x for i, x in enumerate(bvh.instances)]
    return replace(
        prepared,
        bvh=replace(bvh, words=words, instances=tuple(placed)),
        pack=replace(prepared.pack, objects=objects),
    )


def mask_words(bvh: SceneBvh, instances: Collection[int]) -> I64:
    """Places in the scene buffer's words of these instances' masks. Those of an empty BLAS have no
    node."""
    for index in instances:
        if not 0 <= index < len(bvh.instances):
            raise UserError(f"no instance {index}, there are {len(bvh.instances)}")
    header = unpack_header(bvh.words)
    at = header.leaf_unit * UNIT_BYTES + NODE_BYTES[NODE_INSTANCE] * np.arange(header.leaf_count)
    nodes = at.astype(np.int64) // 4
    found = np.isin(bvh.words[nodes + INSTANCE_ID_WORD], np.array(sorted(instances)))
    return np.asarray(nodes[found] + INSTANCE_CUSTOM_WORD)


def root_words(bvh: SceneBvh, instances: Collection[int]) -> I64:
    """Places of the child pointers of the BLAS's root, where kernels start there."""
    if not instances or only_instance(bvh) is None:
        return np.zeros(0, np.int64)
    root = (int(bvh.blas_bases[bvh.instances[0].blas]) + HEADER_BYTES) // 4
    return root + np.arange(BOX_WIDTH)


def hidden_objects(bvh: SceneBvh, instances: Collection[int]) -> I64:
    """Objects of the instances, in order: the geometries of each one's BLAS."""
    parts = [np.zeros(0, np.int64)]
    for index in sorted(instances):
        item = bvh.instances[index]
        count = unpack_header(bvh.blas_words(item.blas)).geometry_count
        parts.append(item.first_object + np.arange(count, dtype=np.int64))
    return np.concatenate(parts)
