"""No shader takes the remainder of a signed number, which drivers answer differently."""

import re
from functools import cache

import pytest

from engine.gpu import shader
from engine.gpu.faults import SWITCH
from engine.gpu.shader import REMAINDER, ROOT, SIGNED_REMAINDER, compose

FOLDERS = ("engine", "bvh", "passes")
SHADERS = [str(p.relative_to(ROOT)) for f in FOLDERS for p in sorted((ROOT / f).rglob("*.wgsl"))]
COMMENT = re.compile(r"//.*")
LITERAL = re.compile(r"(\d+|0x[0-9a-fA-F]+)u")
# What stands right of `%` or `%=`: a literal or names with members, else its first character.
RIGHT = re.compile(r"%=?\s*([\w.]+|.)?", re.DOTALL)


@cache
def source_text(source: str) -> str:
    return COMMENT.sub("", shader._read(source))


@cache
def imports(source: str) -> frozenset[str]:
    """The file and what it imports; slots stay out."""
    found = {source}
    for line in shader._read(source).splitlines():
        match = shader._IMPORT.match(line)
        if match and not match["slot"]:
            found |= imports(match["file"] or match["module"])
    return frozenset(found)


@cache
def package_text(package: str) -> str:
    """Every shader of a package with its imports."""
    shaders = [s for s in SHADERS if s.startswith(f"{package}/")]
    return "\n".join(map(source_text, frozenset().union(*map(imports, shaders))))


def declared(name: str, text: str) -> set[str]:
    """The types with which a name is declared; where none is said, what it is initialised with."""
    found = set(re.findall(rf"\b{name}\s*:\s*([\w<>]+)", text))
    values = re.findall(rf"\b(?:let|var|const|override)\s+{name}\s*=\s*([^;]*);", text)
    return found | {"u32" if LITERAL.fullmatch(value) else value for value in values}


def member(kind: str, name: str, text: str) -> set[str]:
    bodies = re.findall(rf"\bstruct {re.escape(kind)} \{{([^}}]*)\}}", text)
    return set().union(*(declared(name, body) for body in bodies)) or {f"unknown {kind}.{name}"}


def signed_remainders(source: str, text: str | None = None) -> list[str]:
    """The right operands of `%` that are not unsigned for certain.

    WGSL converts nothing by itself, so that both operands are unsigned if one is: the right one has
    to be a literal with `u`, or a name that is declared as u32, and never as anything else, in the
    file and its imports; in all shaders of the package for a name that the file needs from others.
    The compiler holds those declarations to be true. Anything else counts as signed."""
    text = source_text(source) if text is None else text
    scope = "\n".join([text, *(source_text(s) for s in imports(source))])
    package = package_text(source.split("/")[0])
    bad = []
    for match in RIGHT.finditer(text):
        operand = match[1] or ""
        first, *members = operand.split(".")
        kinds = {"unknown"}
        if re.fullmatch(r"[A-Za-z_]\w*", first):
            kinds = declared(first, scope) or declared(first, package)
        for name in members:
            kinds = set().union(*(member(kind, name, package) for kind in kinds))
        if not LITERAL.fullmatch(operand) and kinds != {"u32"}:
            bad.append(operand)
    return bad


def test_remainders_are_of_unsigned_numbers() -> None:
    assert len(SHADERS) > 200
    assert sum(source_text(s).count("%") for s in SHADERS) > 80
    found = {s: bad for s in SHADERS if (bad := signed_remainders(s))}
    assert found == {SIGNED_REMAINDER: ["m", "m"]}


def test_modules_that_shaders_import_have_none() -> None:
    modules = [s for s in frozenset().union(*map(imports, SHADERS)) if not s.endswith(".wgsl")]
    assert len(modules) > 20
    assert [m for m in modules if "%" in source_text(m)] == []


@pytest.mark.parametrize(
    "text,bad",
    [
        ("let x = a % 3u; b %= 0x10u;", []),
        ("let x = a % 3;", ["3"]),
        ("let x = a % 2.5;", ["2.5"]),
        ("let x = a % nowhere;", ["nowhere"]),
        ("let x = a % f(n);", ["f"]),
        ("let x = a % (2 * n);", ["("]),
        ("x %= -n;", ["-"]),
        ("const N = 4u; let x = a % N;", []),
        ("const N = 4; let x = a % N;", ["N"]),
        ("let width: u32 = b; let x = a % width;", []),
        ("let width = u32(b); let x = a % width;", ["width"]),
        ("fn f(count: i32) -> i32 { return a %\n  count; }", ["count"]),
        ("fn f(count: u32) -> u32 { let count = 2; return a % count; }", ["count"]),
        ("fn f(count: vec2<i32>) -> u32 { return a % count.x; }", ["count.x"]),
        ("var<uniform> frame: FrameUniforms; fn f() { return a % frame.width; }", []),
        ("var<uniform> frame: FrameUniforms; fn f() { return a % frame.eye; }", ["frame.eye"]),
    ],
)
def test_what_the_rule_finds(text: str, bad: list[str]) -> None:
    assert signed_remainders("passes/shaders/tone_map.wgsl", text) == bad


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "passes/shaders/textures.wgsl"
    assert source_text(REMAINDER).strip() in COMMENT.sub("", compose(path).code)
    monkeypatch.setenv(SWITCH, "signed-remainder")
    assert source_text(SIGNED_REMAINDER).strip() in COMMENT.sub("", compose(path).code)
