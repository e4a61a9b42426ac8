// As one_ray_type.wgsl, for kernels whose rays are of several types: set before `trace` is called,
// and best the same for a whole workgroup.
var<private> ANY_HIT: bool;
var<private> SORT: bool;
var<private> RAY_MASK: u32;
