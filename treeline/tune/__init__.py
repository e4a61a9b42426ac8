"""`treeline tune`: the structure and kernels that trace a scene's rays fastest on an adapter."""
