"""Seeded damage to valid buffers, and what every reader must make of it.

`subjects` builds the buffers and knows the truth about them, `mutations` damages one place and says
whether that is structural, `check` asks validate and the oracle, `gpu_check` the GPU kernel.
"""
