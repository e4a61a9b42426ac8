"""The floors of the house: who may import whom, no circles, and where our packages come from."""

import ast
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "bvh", "passes", "treeline", "assets", "benchmarks")

# Floor -> the floors it may import. The roof (treeline, benchmarks) may import everything.
FLOORS = {
    "engine.gpu": {"engine.gpu"},
    "engine.scene": {"engine.scene", "engine.gpu"},
    "engine.frame": {"engine.frame", "engine.scene", "engine.gpu"},
    "engine.view": {"engine.view", "engine.frame", "engine.scene", "engine.gpu"},
    "bvh": {"bvh", "engine.gpu"},
    "passes": {"passes", "bvh", "engine.frame", "engine.scene", "engine.gpu"},
    "assets": {"assets"},
    "treeline": {"treeline", "passes", "bvh", "assets", "benchmarks"}
    | {f"engine.{part}" for part in ("gpu", "scene", "frame", "view")},
}


def floor_of(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "engine" else parts[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {
    module_name(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}


def imports_of(module: str, path: Path) -> set[str]:
    """The modules of ours that a file imports, anywhere in it, function bodies included."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            members = {f"{base}.{alias.name}" for alias in node.names}
            # `from package import module` means the module, not the package around it.
            found |= {name if name in SOURCES else base for name in members}
    return {name for name in found if name.split(".")[0] in PACKAGES} - {module}


IMPORTS = {module: imports_of(module, path) for module, path in SOURCES.items()}


def test_imports_go_down_only() -> None:
    upward = [
        f"{module} imports {target}"
        for module, targets in sorted(IMPORTS.items())
        for target in sorted(targets)
        if floor_of(module) in FLOORS and floor_of(target) not in FLOORS[floor_of(module)]
    ]
    assert upward == []


def test_shader_imports_go_down_only() -> None:
    upward = []
    for path in (p for package in PACKAGES for p in (ROOT / package).rglob("*.wgsl")):
        floor = floor_of(module_name(path))
        for target in re.findall(r'^\s*#import\s+"?([\w./]+)', path.read_text("utf-8"), re.M):
            dotted = target.removesuffix(".wgsl").replace("/", ".")
            if floor in FLOORS and floor_of(dotted) not in FLOORS[floor]:
                upward.append(f"{path.relative_to(ROOT)} imports {target}")
    assert upward == []


def test_no_import_circles() -> None:
    done: set[str] = set()

    def visit(module: str, trail: list[str]) -> None:
        assert module not in trail, "circle: " + " -> ".join([*trail, module])
        if module not in done:
            for target in sorted(IMPORTS.get(module, ())):
                visit(target, [*trail, module])
            done.add(module)

    for module in sorted(IMPORTS):
        visit(module, [])


@pytest.mark.parametrize("package", PACKAGES)
def test_our_packages_load_from_this_tree(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    places = [Path(place).resolve() for place in spec.submodule_search_locations or ()]
    assert places == [ROOT / package]


def test_tests_are_no_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_no_folder_of_this_machine_in_tracked_files() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    # Written so that this file does not match itself.
    machine_path = re.compile(r"(?<![\w.:/])/(?:" + "|".join(("work", "root", "home")) + r")/\w")
    found = []
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.suffix in {".glb", ".npy", ".npz", ".png", ".jpg"} or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if machine_path.search(line):
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []
