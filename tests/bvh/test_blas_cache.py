"""Entries come back as they were, damaged ones are built again, the folder keeps its size."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh import blas_cache
from bvh.blas_cache import BlasCache, blas_key, cache_folder
from bvh.build import BuildOptions, build_blas

OPTIONS = BuildOptions(reinsertion=0)


def _given(rng: np.random.Generator, count: int = 40) -> tuple[Any, ...]:
    triangles = rng.random((count, 3, 3)).astype(np.float32)
    geometry = np.zeros(count, np.uint32)
    return triangles, geometry, np.arange(count, dtype=np.uint32), np.ones(1, np.bool_), OPTIONS


def _never(*_: Any) -> Any:
    raise AssertionError("built, although it is in the cache")


def test_an_entry_comes_back_as_it_was(tmp_path: Path, rng: Any) -> None:
    given = _given(rng)
    cache = BlasCache(tmp_path / "deep" / "folder")
    first = cache.build(*given)
    again = BlasCache(tmp_path / "deep" / "folder").build(*given, build=_never)
    for name in ("words", "parents", "bounds"):
        a, b = getattr(first, name), getattr(again, name)
        assert (a == b).all() and a.dtype == b.dtype
    assert (again.stats, again.geometry_count) == (first.stats, 1)
    assert (cache.counts.misses, cache.counts.written, cache.counts.hits) == (1, 1, 0)
    empty = cache.build(*_given(rng, 0))
    assert (cache.build(*_given(rng, 0), build=_never).words == empty.words).all()


def test_the_key_is_all_that_the_bytes_follow_from(rng: Any, monkeypatch: Any) -> None:
    triangles, geometry, primitive, opaque, options = _given(rng)
    moved = triangles.copy()
    moved[3, 1, 2] = np.nextafter(moved[3, 1, 2], np.float32(9))
    keys = {
        blas_key(triangles, geometry, primitive, opaque, options),
        blas_key(moved, geometry, primitive, opaque, options),
        blas_key(triangles, geometry + np.uint32(1), primitive, opaque, options),
        blas_key(triangles, geometry, primitive[::-1], opaque, options),
        blas_key(triangles, geometry, primitive, ~opaque, options),
        blas_key(triangles, geometry, primitive, np.ones(2, np.bool_), options),
        blas_key(triangles, geometry, primitive, opaque, replace(options, nodes="fp32")),
        blas_key(triangles, geometry, primitive, opaque, replace(options, leaf=1)),
    }
    monkeypatch.setattr(blas_cache.header, "VERSION", 77)
    keys.add(blas_key(triangles, geometry, primitive, opaque, options))
    monkeypatch.setattr(blas_cache, "CACHE_VERSION", 77)
    keys.add(blas_key(triangles, geometry, primitive, opaque, options))
    assert len(keys) == 10
    assert blas_key(triangles.copy(), geometry, primitive, opaque, options) in keys


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other", "old"])
def test_damaged_entries_are_built_again(tmp_path: Path, rng: Any, damage: str) -> None:
    given = _given(rng)
    cache = BlasCache(tmp_path)
    first = cache.build(*given)
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    path.write_bytes(
        {
            "cut": data[:-7],
            "flip": data,
            "empty": b"",
            "other": b"not an entry at all" * 9,
            "old": data[8:],
        }[damage]
    )
    built = []

    def build(*arguments: Any) -> Any:
        built.append(1)
        return build_blas(*arguments)

    again = cache.build(*given, build=build)
    assert built == [1] and cache.counts.damaged == 1
    assert (again.words == first.words).all()
    assert (cache.build(*given, build=_never).words == first.words).all()


def test_oldest_entries_go_first(tmp_path: Path, rng: Any) -> None:
    parts = [_given(rng) for _ in range(4)]
    size = BlasCache(tmp_path / "probe")
    size.build(*parts[0])
    (entry,) = (tmp_path / "probe").iterdir()
    cache = BlasCache(tmp_path / "cache", limit_bytes=int(3.5 * entry.stat().st_size))
    names = [blas_key(*given) + ".blas" for given in parts]
    for age, given in enumerate(parts[:3]):
        cache.build(*given)
        os.utime(cache.folder / names[age], ns=(age, age))
    cache.build(*parts[0], build=_never)  # used again: now the youngest
    cache.build(*parts[3])
    assert {path.name for path in cache.folder.iterdir()} == {names[0], names[2], names[3]}
    assert cache.counts.evicted == 1
    tiny = BlasCache(tmp_path / "tiny", limit_bytes=100)
    tiny.build(*parts[0])
    assert tiny.counts.refused == 1 and not (tmp_path / "tiny").exists()
    cache.clear()
    assert list(cache.folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_only_misses(tmp_path: Path, rng: Any) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = BlasCache(tmp_path / "file" / "cache")
    assert cache.build(*_given(rng)).stats.triangles == 40
    assert cache.counts.refused == 1 and cache.counts.hits == 0


def test_a_failed_write_leaves_nothing(tmp_path: Path, rng: Any, monkeypatch: Any) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    cache = BlasCache(tmp_path)
    cache.build(*_given(rng))
    assert cache.counts.refused == 1 and list(tmp_path.iterdir()) == []


def test_the_users_folder(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("TREELINE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("TREELINE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "treeline" / "blas"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for unusable in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert cache_folder() == tmp_path / "home" / ".cache" / "treeline" / "blas"


def test_a_change_of_the_builders_source_is_another_key(
    rng: np.random.Generator, monkeypatch: Any
) -> None:
    given = _given(rng)
    before = blas_key(*given)
    assert len(blas_cache.source_digest()) == 64 and blas_key(*given) == before
    monkeypatch.setattr(blas_cache, "source_digest", lambda: "other")
    assert blas_key(*given) != before
