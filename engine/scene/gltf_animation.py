"""Reads what moves in a glTF asset: node transforms, clips, skins (sections 3.5, 3.7.3, 3.11)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.scene.animation import Animation, Clip, Skin, SkinnedMesh
from engine.scene.channel import INTERPOLATIONS, PATHS, WEIGHTS, Channel
from engine.scene.gltf_data import GltfData
from engine.scene.mesh import F64


def read_animation(
    data: GltfData,
    skinned: Sequence[SkinnedMesh],
    instance_nodes: Sequence[int],
    joint_nodes: Sequence[int] = (),
    weights: Mapping[int, F64] | None = None,
) -> Animation | None:
    """The animation of an asset whose skinned meshes and instances the importer has read; behind
    the file's skins there is one of one joint for each of `joint_nodes`, `weights` are those of
    nodes that clips morph. None where nothing can move. UserError for a damaged clip."""
    document = data.document
    weights = dict(weights or {})
    clips = tuple(_clip(data, i, item, weights) for i, item in enumerate(document.animations or []))
    if not skinned and not any(clip.channels for clip in clips):
        return None
    nodes = document.nodes or []
    parents = np.full(len(nodes), -1, np.int64)
    for index, node in enumerate(nodes):
        parents[[c for c in node.children or [] if 0 <= c < len(nodes)]] = index
    return Animation(
        parents=parents,
        translations=_rows(nodes, "translation", (0.0, 0.0, 0.0)),
        rotations=_rows(nodes, "rotation", (0.0, 0.0, 0.0, 1.0)),
        scales=_rows(nodes, "scale", (1.0, 1.0, 1.0)),
        matrices={
            index: np.array(node.matrix, np.float64).reshape(4, 4).T
            for index, node in enumerate(nodes)
            if node.matrix is not None
        },
        clips=clips,
        skins=(
            *(_skin(data, i) for i in range(len(document.skins or []))),
            *(Skin(np.array([node]), np.eye(4)[None]) for node in joint_nodes),
        ),
        skinned=tuple(skinned),
        instance_nodes=tuple(instance_nodes),
        weights=weights,
    )


def _rows(nodes: Sequence[Any], name: str, default: tuple[float, ...]) -> F64:
    given = [getattr(node, name) for node in nodes]
    rows = [default if value is None else value for value in given]
    return np.array(rows, np.float64).reshape(len(nodes), len(default))


def _skin(data: GltfData, index: int) -> Skin:
    skin = data.item("skins", index)
    joints = np.array(skin.joints or [], np.int64)
    inverse_bind = np.broadcast_to(np.eye(4), (len(joints), 4, 4))
    if skin.inverseBindMatrices is not None:
        inverse_bind = data.matrices(skin.inverseBindMatrices)[: len(joints)]
    if len(inverse_bind) < len(joints):
        raise data.fail(f"skin {index} has {len(inverse_bind)} bind matrices")
    return Skin(joints, inverse_bind)


def _clip(data: GltfData, index: int, item: Any, weights: Mapping[int, F64]) -> Clip:
    name = item.name or f"clip {index}"
    channels = []
    for channel in item.channels or []:
        target = channel.target
        width = PATHS.get(target.path, 0)
        if target.path == WEIGHTS and target.node in weights:
            width = len(weights[target.node])
        if target.node is None or not width:
            continue  # weights of what is not morphed, or what an extension animates
        data.item("nodes", target.node)
        if not isinstance(channel.sampler, int) or not 0 <= channel.sampler < len(item.samplers):
            raise data.fail(f"clip {name} refers to sampler {channel.sampler}")
        sampler = item.samplers[channel.sampler]
        kind = sampler.interpolation or "LINEAR"
        times = data.floats(sampler.input, 1)[:, 0].astype(np.float64)
        stored = data.floats(sampler.output, 1 if target.path == WEIGHTS else width)
        if stored.size % width:
            raise data.fail(f"clip {name} has {stored.size} weights for {width} morph targets")
        values = stored.reshape(-1, width).astype(np.float64)
        cubic = kind == "CUBICSPLINE"
        if kind not in INTERPOLATIONS:
            raise data.fail(f"clip {name} interpolates by {kind}")
        if not len(times) or len(values) != len(times) * (3 if cubic else 1):
            raise data.fail(f"clip {name} has {len(values)} values for {len(times)} times")
        if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise data.fail(f"clip {name} has times that do not rise")
        if not np.isfinite(values).all():
            raise data.fail(f"clip {name} has values that are not finite")
        shape = (-1, 3, width) if cubic else (-1, width)
        channels.append(Channel(target.node, target.path, kind, times, values.reshape(shape)))
    duration = max((float(channel.times[-1]) for channel in channels), default=0.0)
    return Clip(name, duration, tuple(channels))
