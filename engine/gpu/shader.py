"""Composes WGSL from files and Python modules, and maps a compiler's line back to its source.

`#import "package/path.wgsl"` pastes a file, `#import package.module` pastes what that module's
`wgsl()` returns, `#import $slot` pastes what the caller put into that slot (either of the two).
Each is pasted once, at its first import. Imported files hold functions and types only, never
bindings, so that a stage's interface is visible in the stage.

`#import $slot as other (queue, results)` pastes with the prefix `other_` before each name that the
file itself declares at its top level and before those in the brackets: for a stage that needs two
files of one interface.
"""

import importlib
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.gpu.faults import works_around
from engine.gpu.trusted import create_trusted_module

ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(
    r'^\s*#import\s+(?:"(?P<file>[^"]+)"|\$(?P<slot>\w+)|(?P<module>[\w.]+))'
    r"(?:\s+as\s+(?P<prefix>\w+)\s*\((?P<names>[\w,\s]*)\))?\s*$"
)
_DECLARED = re.compile(r"^(?:fn|alias|struct|const|override|var(?:<\w+>)?)\s+(\w+)", re.MULTILINE)
_ERROR_LINE = re.compile(r"wgsl:(\d+):(\d+)")
# An exclusive or with an unknown zero, which keeps a rounded value as it is: see "contraction" in
# engine/gpu/faults.py.
_BARRIER = re.compile(r"bitcast<\w+>\(bitcast<\w+>\((.*)\) \^ (?:vec\du\([\w.]+\)|[\w.]+)\)")

# The file that its workaround replaces: see "signed-remainder" there.
REMAINDER = "engine/gpu/shaders/remainder.wgsl"
SIGNED_REMAINDER = "engine/gpu/shaders/remainder_signed.wgsl"


class ShaderError(Exception):
    """A shader that does not compile: a fault of ours, so it keeps its traceback."""


@dataclass(frozen=True, slots=True)
class ComposedShader:
    """WGSL text and, for each of its lines, the (source, line number) that it came from."""

    name: str
    code: str
    line_map: tuple[tuple[str, int], ...] = field(repr=False)

    def locate(self, line: int) -> str:
        """`source:line` for a 1-based line of `code`."""
        if 1 <= line <= len(self.line_map):
            source, source_line = self.line_map[line - 1]
            return f"{source}:{source_line}"
        return f"{self.name}:{line}"


def compose(path: str, slots: Mapping[str, str] | None = None) -> ComposedShader:
    """The file at `path` (from the source root) with its imports pasted in.

    `slots` maps a slot's name to `"package/path.wgsl"` or `package.module`.
    """
    lines: list[str] = []
    line_map: list[tuple[str, int]] = []
    pasted: set[str] = set()

    def paste(source: str, prefix: str | None = None, names: str | None = None) -> None:
        if source in pasted:
            return
        pasted.add(source)
        signed = source == REMAINDER and not works_around("signed-remainder")
        text = _read(SIGNED_REMAINDER if signed else source)
        if prefix:
            text = _with_prefix(text, prefix, (names or "").replace(",", " ").split())
        for number, line in enumerate(text.splitlines(), start=1):
            match = _IMPORT.match(line)
            if match is None:
                if line.lstrip().startswith("#import"):
                    raise ShaderError(f"{source}:{number}: not an import: {line.strip()}")
                lines.append(line)
                line_map.append((source, number))
            elif match["slot"]:
                if slots is None or match["slot"] not in slots:
                    raise ShaderError(f"{source}:{number}: nothing fills the slot ${match['slot']}")
                paste(slots[match["slot"]], match["prefix"], match["names"])
            else:
                paste(match["file"] or match["module"], match["prefix"], match["names"])

    paste(path)
    if not works_around("contraction"):
        lines = [without_barrier(line) for line in lines]
    return ComposedShader(path, "\n".join(lines) + "\n", tuple(line_map))


def without_barrier(line: str) -> str:
    """The line with its value left to the compiler, if something kept it apart."""
    return _BARRIER.sub(r"(\1)", line)


def _with_prefix(text: str, prefix: str, names: list[str]) -> str:
    """The text with `prefix_` before what it declares and before `names`; imports stay."""
    words = re.compile(rf"\b({'|'.join([*_DECLARED.findall(text), *names])})\b")
    lines = text.splitlines()
    return "\n".join(
        line if _IMPORT.match(line) else words.sub(rf"{prefix}_\1", line) for line in lines
    )


def _read(source: str) -> str:
    if source.endswith(".wgsl"):
        try:
            return (ROOT / source).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise ShaderError(f"no shader file {source}") from error
    return str(importlib.import_module(source).wgsl())


MODULES_KEPT = 64  # a module is only needed to make pipelines of it, which are kept themselves


class Composer:
    """Compiles composed shaders, one module a distinct text, and keeps the last few; `compile_ms`
    sums what it and the pipelines took."""

    def __init__(self) -> None:
        self._modules: OrderedDict[tuple[str, bool], Any] = OrderedDict()  # oldest use first
        self.compile_ms = 0.0

    def compile(self, device: Any, shader: ComposedShader, trusted: bool = False) -> Any:
        """The module; `trusted` leaves out run-time checks (see engine/gpu/trusted.py)."""
        key = (shader.code, trusted)
        module = self._modules.get(key)
        if module is None:
            start = time.perf_counter()
            try:
                if trusted:
                    module = create_trusted_module(device, shader.name, shader.code)
                else:
                    module = device.create_shader_module(label=shader.name, code=shader.code)
            except Exception as error:
                raise ShaderError(_relocate(shader, str(error))) from error
            self._modules[key] = module
            if len(self._modules) > MODULES_KEPT:
                self._modules.popitem(last=False)
            self.compile_ms += 1e3 * (time.perf_counter() - start)
        self._modules.move_to_end(key)
        return module


def _relocate(shader: ComposedShader, message: str) -> str:
    places = [shader.locate(int(line)) for line, _ in _ERROR_LINE.findall(message)]
    return f"{shader.name} does not compile at {', '.join(places) or 'an unknown line'}\n{message}"
