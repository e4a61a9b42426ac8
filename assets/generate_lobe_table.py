"""Writes the table of the specular lobe's albedo: `python -m assets.generate_lobe_table --out
assets/lobe_table.npz`.

What a GGX lobe with Smith's height-correlated masking reflects of light that is the same from
everywhere. With Schlick's Fresnel term it is `scale * f0 + bias` (Karis, "Real Shading in Unreal
Engine 4", 2013), two functions of the cosine at which the surface is seen and of its roughness.
They are the frame's own lobe: sampled by visible normals, weighed by G2 / G1, and what would leave
below the surface is lost. So is what masking takes: light is reflected once, and no term gives back
what meets a second facet. A white metal of roughness 0.6 reflects 0.82 of what comes in along its
normal, of roughness 1 only 1 - ln 2 = 0.31.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# Octaves below 1 that the table reaches down, and its steps in each: its file says so, too. Normals
# are bent so that nothing is seen flatter than at a cosine of 1/1000 (shaders/surface.wgsl); of
# roughness below 0.02 are mirrors.
COSINE = (10, 4)
ROUGHNESS = (6, 5)
NODES = 128  # of the quadrature, along each of two variables; right to 3e-4


def axis(octaves: int, steps: int) -> F64:
    """Numbers from 2^-octaves to 1, each octave in equal steps, so that a float's bits say where in
    the table it lies. The lobe changes where the cosine is about roughness^2, however small."""
    within = 1 + np.arange(steps) / steps
    begins = 2.0 ** np.arange(-octaves, 0)
    return np.append(np.outer(begins, within), 1.0)


def smith_lambda(cosine: F64, alpha: float) -> F64:
    return np.asarray(0.5 * (np.sqrt(1 + alpha**2 * (1 / cosine**2 - 1)) - 1))


def lobe_albedo(cosine: float, roughness: float, nodes: int = NODES) -> tuple[float, float]:
    """(scale, bias), by Gauss' rule over the disk that visible normals are sampled from (Heitz,
    "Sampling the GGX Distribution of Visible Normals", 2018): its radius, and its angle on one side
    of the plane of view, which the other side mirrors."""
    alpha = roughness**2
    place, weight = np.polynomial.legendre.leggauss(nodes)
    radius, angle = (place[:, None] + 1) / 2, np.pi / 2 * place[None, :]
    share = weight[:, None] * radius * weight[None, :] / 2  # of the disk's area
    sine = np.sqrt(1 - cosine**2)
    stretched = np.array([alpha * sine, 0.0, cosine])
    stretched /= np.linalg.norm(stretched)
    across = radius * np.cos(angle)
    s = (1 + stretched[2]) / 2
    along = (1 - s) * np.sqrt(1 - across**2) + s * radius * np.sin(angle)
    towards = np.sqrt(np.maximum(0, 1 - across**2 - along**2))
    half = np.stack(
        [
            alpha * (towards * stretched[0] - along * stretched[2]),
            alpha * across,
            np.maximum(0, towards * stretched[2] + along * stretched[0]),
        ]
    )
    half /= np.linalg.norm(half, axis=0)
    v_h = np.clip(half[0] * sine + half[2] * cosine, 0, 1)
    n_l = 2 * v_h * half[2] - cosine
    leaves = n_l > 0
    seen = 1 + smith_lambda(np.array(cosine), alpha)
    kept = seen / (seen + smith_lambda(np.where(leaves, n_l, 1), alpha))
    part = np.where(leaves, share * kept, 0)
    fresnel = (1 - v_h) ** 5
    return float((part * (1 - fresnel)).sum()), float((part * fresnel).sum())


def lobe_table() -> NDArray[np.uint16]:
    """[roughness, cosine, (scale, bias)] as 16-bit unorms, both along `axis`."""
    rows = [
        [lobe_albedo(cosine, roughness) for cosine in axis(*COSINE)]
        for roughness in axis(*ROUGHNESS)
    ]
    return np.rint(65535 * np.clip(rows, 0, 1)).astype(np.uint16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("lobe_table.npz"))
    path: Path = parser.parse_args().out
    octaves, steps = zip(COSINE, ROUGHNESS, strict=True)
    np.savez_compressed(path, table=lobe_table(), octaves=octaves, steps=steps)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
