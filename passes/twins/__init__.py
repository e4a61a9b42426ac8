"""NumPy twins of the frame's stages, each named as its WGSL file in passes/shaders.

A twin is the definition of its stage: float32 in the shader's order of operations, over all pixels
or rays at once. It takes the stage's buffers as NumPy arrays, in the order of the bindings and
under their names: a uniform block as a record, a storage buffer as words, records or rows, a
texture as [height, width, 4] uint32 (depth: [height, width] float32), a ray queue as
`passes.twins.queue_push.RayQueue`. Lanes run in the order of a GPU whose workgroups go one after
the other. `passes.twins.frame` runs them all.
"""
