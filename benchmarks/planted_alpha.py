"""An alpha test that does its work many times over, to the same end: what an any-hit program that
is too long costs (benchmarks/planted_slowdowns.py)."""

from pathlib import Path

import passes

TIMES = 48
_TEST = Path(passes.__file__).with_name("shaders") / "accept_alpha.wgsl"
_NAME = "fn accept_candidate("

# The weight moves by less than its rounding, which no compiler knows.
_REPEATED = f"""
fn accept_candidate(object: u32, primitive: u32, u: f32, v: f32) -> bool {{
    var accepted = true;
    for (var i = 0u; i < {TIMES}u; i++) {{
        accepted &= test_alpha(object, primitive, u + f32(i) * 1.0e-30, v);
    }}
    return accepted;
}}
"""


def wgsl() -> str:
    """accept_candidate; needs what accept_alpha.wgsl does."""
    text = _TEST.read_text(encoding="utf-8")
    assert text.count(_NAME) == 1
    return text.replace(_NAME, "fn test_alpha(") + _REPEATED
