"""Writes the embedded scene: `python -m assets.generate_hall --out assets/hall.glb`.

Seeded and without any input file: the same code gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from assets.hall.layout import build_scene
from assets.hall.write_gltf import glb_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("hall.glb"))
    path: Path = parser.parse_args().out
    data = glb_bytes(build_scene())
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main()
