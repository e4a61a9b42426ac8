"""What a build is unless something else is asked for: the one place that says so.

Free of imports, because every start of the command line reads it.
"""

BUILDER = "ploc"
NODES = "auto"
LEAF = 2
COLLAPSE = "best"
REINSERTION = 30
PAIRING = "near"
OPACITY = "triangle"

NODE_FORMATS = ("auto", "fp16", "fp32")
LEAF_SIZES = (1, 2, 4)
COLLAPSES = ("best", "greedy")
PAIRINGS = ("best", "near")
OPACITIES = ("triangle", "material")
