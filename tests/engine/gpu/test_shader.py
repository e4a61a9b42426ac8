"""Composition: each import once, slots, and errors that name the source's own line."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.gpu.shader import Composer, ShaderError, compose
from engine.gpu.stage import Stage

MAIN = "@compute @workgroup_size(1) fn main() { _ = one(); }\n"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """module(text): a Python module whose wgsl() gives `text`; returns its name."""

    def make(text: str) -> str:
        made = ModuleType("made_shader")
        made.wgsl = lambda: text  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, made.__name__, made)
        return made.__name__

    return make


def test_each_import_is_pasted_once_at_its_first_place(wgsl: Any, module: Any) -> None:
    name = module("const SIX: u32 = 6u;\n")
    deep = wgsl(f"#import {name}\nfn one() -> u32 {{ return SIX; }}\n", "deep.wgsl")
    side = wgsl(
        f'#import "{deep}"\n#import {name}\nfn two() -> u32 {{ return one(); }}\n', "s.wgsl"
    )
    top = wgsl(f'#import "{side}"\n#import "{deep}"\n{MAIN}', "top.wgsl")
    code = compose(top).code
    assert code.count("const SIX") == code.count("fn one") == code.count("fn two") == 1
    # A name stands before its use.
    assert code.index("SIX") < code.index("fn one") < code.index("fn two") < code.index("fn main")
    assert "#import" not in code


def test_a_file_that_imports_itself_ends(wgsl: Any, tmp_path: Path) -> None:
    path = tmp_path / "self.wgsl"
    text = f'#import "{path}"\n{MAIN}'
    assert compose(wgsl(text, "self.wgsl")).code == MAIN


def test_a_slot_takes_a_file_or_a_module(wgsl: Any, module: Any) -> None:
    top = wgsl(f"#import $part\n{MAIN}")
    file = wgsl("fn one() -> u32 { return 1u; }\n", "part.wgsl")
    assert "return 1u" in compose(top, {"part": file}).code
    assert "return 2u" in compose(top, {"part": module("fn one() -> u32 { return 2u; }\n")}).code


def test_what_is_missing_is_named(wgsl: Any) -> None:
    with pytest.raises(ShaderError, match=r"shader\.wgsl:2: nothing fills the slot \$part"):
        compose(wgsl("\n#import $part\n"))
    with pytest.raises(ShaderError, match="no shader file engine/gpu/none.wgsl"):
        compose(wgsl('#import "engine/gpu/none.wgsl"\n'))
    with pytest.raises(ShaderError, match=r"shader\.wgsl:1: not an import"):
        compose(wgsl("#import <vec3>\n"))
    with pytest.raises(ModuleNotFoundError):
        compose(wgsl("#import engine.gpu.none\n"))


def test_the_line_map_covers_every_line(wgsl: Any, module: Any) -> None:
    name = module("const A: u32 = 1u;\nconst B: u32 = 2u;\n")
    part = wgsl(f"// part\n#import {name}\nfn one() -> u32 {{ return B; }}\n", "part.wgsl")
    top = wgsl(f'// top\n#import "{part}"\n{MAIN}')
    shader = compose(top)
    assert shader.line_map == ((top, 1), (part, 1), (name, 1), (name, 2), (part, 3), (top, 3))
    for line, text in enumerate(shader.code.splitlines(), start=1):
        source, number = shader.locate(line).rsplit(":", 1)
        if source != name:
            assert Path(source).read_text().splitlines()[int(number) - 1] == text


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("broken", ["return 1.5;", "return nowhere;", "retrun 1u;"])
def test_an_error_names_the_file_and_line_it_came_from(
    device: Any, wgsl: Any, broken: str, trusted: bool
) -> None:
    part = wgsl(f"// a comment\n\nfn one() -> u32 {{\n    {broken}\n}}\n", "part.wgsl")
    top = wgsl(f'// top\n\n\n#import "{part}"\n{MAIN}')
    with pytest.raises(ShaderError) as caught:
        Stage(device, "broken", top, trusted=trusted)
    places = str(caught.value).splitlines()[0]
    # naga may add the function around it; the statement's own place is among them.
    assert f"{part}:4" in places and f"{top}:" not in places


def test_a_missing_type_is_found_behind_a_generated_module(
    device: Any, wgsl: Any, module: Any
) -> None:
    name = module("const A: u32 = 1u;\nconst B: strange = 2u;\n")
    with pytest.raises(ShaderError, match=rf"does not compile at {name}:2"):
        Stage(device, "broken", wgsl(f"#import {name}\n{MAIN}"))


def test_a_text_is_compiled_once(device: Any, wgsl: Any) -> None:
    composer = Composer()
    one = compose(wgsl("@compute @workgroup_size(1) fn main() {}\n"))
    same = compose(wgsl("@compute @workgroup_size(1) fn main() {}\n", "other.wgsl"))
    first = composer.compile(device.wgpu, one)
    took = composer.compile_ms
    assert took > 0
    assert composer.compile(device.wgpu, same) is first and composer.compile_ms == took
    assert composer.compile(device.wgpu, one, trusted=True) is not first


def test_included_files_declare_no_bindings() -> None:
    """A stage's interface is visible in the stage."""
    root = Path(__file__).resolve().parents[3]
    stages = [p for p in root.glob("*/shaders/**/*.wgsl") if "@compute" in p.read_text()]
    stages += [p for p in root.glob("*/shaders/**/*.wgsl") if "@fragment" in p.read_text()]
    assert len(stages) > 8
    for path in root.glob("*/shaders/**/*.wgsl"):
        if path not in stages:
            assert "@binding" not in path.read_text(), path


def test_every_wgsl_module_gives_text() -> None:
    for name in ("bvh.layout", "bvh.counters", "engine.scene.records", "passes.queue"):
        assert "struct" in (text := importlib.import_module(name).wgsl()) or "const" in text
