"""What a BLAS came out as, in the fields that records and commands share."""

from typing import Any

from bvh.blas import BuildStats
from bvh.layout import UNIT_WORDS
from bvh.quality import container_quality

SAMPLES = 20_000  # surface points that estimate EPO


def structure_row(words: Any, stats: BuildStats, samples: int = SAMPLES) -> dict[str, Any]:
    """Of a container that `validate` accepts. `bytes_with_links` has the parent links beside it, a
    word a unit of 64 bytes. `samples` surface points estimate EPO; 0 leaves it and the siblings'
    overlap out. Bytes "per triangle" are per sphere where a BLAS is made of those."""
    with_links = stats.bytes + 4 * (len(words) // UNIT_WORDS)
    row = {
        "triangles": stats.triangles,
        "spheres": stats.spheres,
        "dropped_degenerate": stats.dropped_degenerate,
        "dropped_nonfinite": stats.dropped_nonfinite,
        "blocks": stats.blocks,
        "triangles_per_block": stats.triangles_per_block,
        "pairs": stats.pairs,
        "fans": stats.fans,
        "duplication": stats.duplication,
        "nodes_fp16": stats.nodes_fp16,
        "nodes_fp32": stats.nodes_fp32,
        "bytes": stats.bytes,
        "bytes_with_links": with_links,
        "bytes_per_triangle": with_links / max(stats.triangles + stats.spheres, 1),
        "fill": stats.fill,
        "depth": stats.depth,
        "stack_bound": stats.stack_bound,
        "sah": stats.sah,
    }
    if samples:
        quality = container_quality(words, samples)
        row["epo"] = quality.epo
        row["epo_standard_error"] = quality.epo_standard_error
        row["sibling_overlap"] = quality.sibling_overlap
    return row
