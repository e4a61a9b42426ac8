"""The adapter over a mesh of trimesh's, on the tests' device."""

from collections.abc import Callable
from typing import Any

import pytest

from treeline.adapters.trimesh import RayMeshIntersector


@pytest.fixture
def make(device: Any) -> Callable[..., RayMeshIntersector]:
    """make(mesh, **RayMeshIntersector arguments)"""
    return lambda mesh, **options: RayMeshIntersector(mesh, device=device, **options)
