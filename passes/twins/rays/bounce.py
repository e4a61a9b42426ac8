"""Twin of rays/bounce.wgsl: the record of a further reflection ray and its hit."""

from passes.twins.rays.reflection import load_ray, ray_slot, store_result

__all__ = ["load_ray", "ray_slot", "store_result"]
