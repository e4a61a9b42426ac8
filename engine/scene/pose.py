"""A scene at one time of a clip: what a frame is told, what a time line shows, and the scene posed
on the CPU, vertices and all, as if its file stood like that.

Frames pose on the GPU (`engine.scene.skinning`); the posed scene is for what knows no frame, and
for checking one against it.
"""

from dataclasses import dataclass, replace

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.animation import Clip
from engine.scene.mesh import F64, unit_rows
from engine.scene.scene import Scene


@dataclass(frozen=True, slots=True)
class ClipSpan:
    """A clip as a time line shows it, seconds: it moves from `start` to `duration`, where it
    begins again (`Clip.wrapped`)."""

    name: str
    duration: float
    start: float


def moves(scene: Scene) -> bool:
    """Whether some clip moves something that is placed: else every frame is like the first."""
    animation = scene.animation
    if animation is None or not animation.clips:
        return False
    rigid = any(instance.lifetime == "rigid" for instance in scene.instances)
    return rigid or bool(animation.skinned)


def timeline(scene: Scene) -> tuple[ClipSpan, ...]:
    """Every clip in the file's order; none for what does not move."""
    clips = scene.animation.clips if scene.animation and moves(scene) else ()
    return tuple(ClipSpan(clip.name, clip.duration, clip.start) for clip in clips)


def check_time(time: float) -> float:
    """`time`, if it is a number of seconds; else UserError."""
    if not np.isfinite(time):
        raise UserError(f"a time is a finite number of seconds, not {time}")
    return time


def ways_back(rest: F64) -> F64:
    """[n, 4, 4] from where nodes stand in the file, `[n, 4, 4]`, back into their own spaces; NaN
    where one stands flattened, from where there is no way."""
    back = np.full(rest.shape, np.nan)
    there = np.linalg.det(rest[:, :3, :3]) != 0
    back[there] = np.linalg.inv(rest[there])
    return back


def rigid_steps(back: F64, now: F64) -> F64:
    """[n, 4, 4] from where nodes stood in the file (`ways_back`) to where they are `now`
    `[n, 4, 4]`. One from where there is no way stays."""
    there = np.isfinite(back[:, 0, 0])
    steps = np.where(there[:, None, None], now @ back, np.eye(4))
    steps[:, 3] = [0.0, 0.0, 0.0, 1.0]  # an inverse may be off by a rounding
    return steps


def posed(scene: Scene, clip: Clip, time: float, *, loop: bool = True) -> Scene:
    """The scene at `time`: skinned and morphed meshes with their vertices moved (float64, rounded
    once), rigid instances with their transforms. UserError for a scene that has no animation."""
    animation = scene.animation
    if animation is None:
        raise UserError(f"{scene.name}: nothing here is animated")
    rest, worlds = animation.worlds(), animation.worlds(clip, check_time(time), loop=loop)
    weights = animation.morph_weights(clip, time, loop=loop)
    meshes = list(scene.meshes)
    places = {instance.mesh: instance.transform for instance in scene.instances}
    for item in animation.skinned:
        to_object = np.linalg.inv(places[item.mesh]) if item.mesh in places else np.eye(4)
        matrices = to_object @ animation.joint_matrices(item.skin, worlds)
        positions, normals = item.posed(matrices, weights)
        meshes[item.mesh] = replace(
            meshes[item.mesh],
            positions=positions.astype(np.float32),
            normals=unit_rows(normals, len(normals)),
        )
    instances = list(scene.instances)
    rigid = [i for i in animation.moving_instances(clip) if instances[i].lifetime == "rigid"]
    nodes = [animation.instance_nodes[i] for i in rigid]
    steps = rigid_steps(ways_back(rest[nodes]), worlds[nodes])
    for i, step in zip(rigid, steps, strict=True):
        instances[i] = replace(instances[i], transform=step @ instances[i].transform)
    return replace(scene, meshes=tuple(meshes), instances=tuple(instances))
