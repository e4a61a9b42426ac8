"""How many bytes a ray type's rays read, worked out from what they counted and from the sizes of
records: before any cache, and without what they write.

Rays and their nodes, leaf blocks and instance nodes; of alpha tests their record and four texels a
sample; of shaded hits four texels a sample. Their surface and material are not in it: the hit table
(`passes.hit_table`) has these.
"""

from bvh.layout import NODE_BOX_FP16, NODE_BOX_FP32, NODE_BYTES, NODE_INSTANCE, UNIT_BYTES
from passes.alpha import ALPHA_TRIANGLE
from passes.frame_stats import RayStats
from passes.rays import RayType

TEXEL_BYTES = 4
TEXELS = 4  # of a bilinear sample


def bytes_read(ray: RayType, stats: RayStats) -> int | None:
    """Of all its rays in a counted frame; None where nobody counted what it takes."""
    counted = (
        stats.nodes,
        stats.nodes_fp16,
        stats.leaf_blocks,
        stats.instance_hits,
        stats.any_hits,
        stats.alpha_samples,
        stats.texture_fetches,
    )
    known = [count for count in counted if count is not None]
    if len(known) < len(counted):
        return None
    nodes, half, blocks, instances, tests, alpha_samples, fetches = known
    return (
        stats.rays * ray.record.size
        + half * NODE_BYTES[NODE_BOX_FP16]
        + (nodes - half) * NODE_BYTES[NODE_BOX_FP32]
        + blocks * UNIT_BYTES
        + instances * NODE_BYTES[NODE_INSTANCE]
        + tests * ALPHA_TRIANGLE.size
        + (alpha_samples + fetches) * TEXELS * TEXEL_BYTES
    )
