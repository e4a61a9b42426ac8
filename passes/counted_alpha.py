"""The alpha test in counted pipelines: that of timed ones, with what it did counted around it.

A timed kernel's text must not know of counters, and a copy of the test could come to differ from
it. So its own text is taken, under another name.
"""

from pathlib import Path

_TEST = Path(__file__).with_name("shaders") / "accept_alpha.wgsl"
_NAME = "fn accept_candidate("

_COUNTED = """
fn accept_candidate(object: u32, primitive: u32, u: f32, v: f32) -> bool {
    let accepted = test_alpha(object, primitive, u, v);
    let first = alpha[object];
    var samples = 0u;
    if (first != 0u && bitcast<i32>(alpha[first + primitive * ALPHA_RECORD_WORDS + 10u]) >= 0) {
        samples = 1u;
    }
    count_verdict(samples, accepted);
    return accepted;
}
"""


def wgsl() -> str:
    """accept_candidate; needs what accept_alpha.wgsl does, and `count_verdict(samples, accepted)`
    of count_events.wgsl or count_tests.wgsl."""
    text = _TEST.read_text(encoding="utf-8")
    assert text.count(_NAME) == 1
    return text.replace(_NAME, "fn test_alpha(") + _COUNTED
