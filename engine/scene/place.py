"""A scene file's objects as the parts of one scene.

What stands still shares its meshes: a thousand pines are a thousand instances of the meshes of one
file. Copies of what a clip moves share what is rigid; a skinned mesh is every copy's own, posed
where the copy stands (its vertices are in the world of the scene, its instance has no transform).
Objects stand as at time 0 of the scene.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.animation import Animation
from engine.scene.channel import Clock
from engine.scene.describe import Description, PlacedObject, PlacedSphere
from engine.scene.material import Material, Texture
from engine.scene.merge_animation import AnimationMerger, Posed, pose_at_zero
from engine.scene.mesh import F64, Mesh, make_spheres, unit_rows
from engine.scene.placed_view import Model, find_camera, placed_light
from engine.scene.scene import Instance, Parts
from engine.scene.table import nearest


def place(path: object, description: Description, models: Mapping[str, Model]) -> Parts:
    """The parts of the whole scene. UserError for a node, mesh or clip that a file lacks, and for
    a scene without a triangle."""
    placer = _Placer(path, models)
    for item in description.objects:
        placer.add(item)
    for ball in description.spheres:
        placer.add_sphere(ball)
    parts = placer.parts()
    if not any(len(parts.meshes[i.mesh].triangles) for i in parts.instances):
        raise UserError(f"{path}: places no triangle and no sphere")
    # what the scene file leaves to its models is the first placed copy's
    shown = [
        (models[i.file].parts, i.transforms[0]) for i in description.objects if len(i.transforms)
    ]
    lights = list(description.lights)
    if not lights:
        lights = [placed_light(light, place) for m, place in shown for light in m.lights]
    environments = [m.environment for m, _ in shown if m.environment is not None]
    return replace(
        parts,
        camera=find_camera(path, description, models),
        lights=tuple(lights),
        environment=description.environment or next(iter(environments), None),
        camera_path=description.camera_path,
        ray_bits=description.ray_bits,
    )


class _Placer:
    def __init__(self, path: object, models: Mapping[str, Model]) -> None:
        self.path = path
        self.models = models
        self.meshes: list[Mesh] = []
        self.instances: list[Instance] = []
        self.instance_nodes: list[int] = []
        self.merger = AnimationMerger()
        self.notes: list[str] = []
        self._shared: dict[tuple[str, int], int] = {}
        self._names: dict[str, int] = {}
        self._materials: dict[str, int] = {}
        materials: list[Material] = []
        textures: list[Texture] = []
        for model in models.values():
            first_texture = len(textures)
            self._materials[model.name] = len(materials)
            textures += model.parts.textures
            materials += [
                replace(
                    material,
                    base_color_texture=_moved(material.base_color_texture, first_texture),
                    metallic_roughness_texture=_moved(
                        material.metallic_roughness_texture, first_texture
                    ),
                )
                for material in model.parts.materials
            ]
            self.notes += [f"{model.name}: {note}" for note in model.parts.notes]
        self.materials, self.textures = materials, tuple(textures)

    def parts(self) -> Parts:
        animation = self.merger.merged(self.instance_nodes)
        if animation is not None and not self.merger.repeats():
            self.notes.append(
                f"the scene's clip jumps when it repeats after {animation.clip().duration:g} s"
            )
        return Parts(
            meshes=tuple(self.meshes),
            materials=tuple(self.materials),
            textures=self.textures,
            instances=tuple(self.instances),
            notes=tuple(self.notes),
            animation=animation,
        )

    def add(self, item: PlacedObject) -> None:
        """All copies of one object."""
        model = self.models[item.file]
        chosen = self._chosen(item, model.parts)
        animation = model.parts.animation
        posed = None
        if item.clip is not None and item.clip.name is not None:
            names = [clip.name for clip in animation.clips] if animation else []
            if item.clip.name not in names:
                raise UserError(
                    f"{self.path}: {item.label}.clip is '{item.clip.name}', which its file lacks"
                    f"{nearest(item.clip.name, names)}"
                )
        if item.clip is not None and animation is not None and animation.clips:
            clip = animation.clip(item.clip.name)
            period = clip.duration if item.clip.loop else 0.0
            clock = Clock(item.clip.start, item.clip.speed, period)
            if set(chosen) & _movable(animation, model.parts):
                posed = pose_at_zero(animation, clip, clock)
                if len(item.transforms):
                    self.merger.add_clock(clip, clock)
        if posed is None:
            self._add_still(item, model, chosen)
        else:
            self._add_moving(item, model, chosen, posed)

    def add_sphere(self, item: PlacedSphere) -> None:
        """All copies of one sphere, which share its mesh."""
        if isinstance(item.material, Material):
            material = len(self.materials)
            self.materials.append(item.material)
        else:
            model = self.models[item.file or ""]
            names = [material.name for material in model.parts.materials]
            if item.material not in names:
                raise UserError(
                    f"{self.path}: {item.label}.material is '{item.material}', which its file "
                    f"lacks{nearest(item.material, names)}"
                )
            material = self._materials[model.name] + names.index(item.material)
        centers, radii = np.array([item.center]), np.array([item.radius])
        self.meshes.append(make_spheres(self._unique(item.name), centers, radii, material))
        for copy, transform in enumerate(item.transforms):
            name, mesh = _copy_name(item.name, copy), len(self.meshes) - 1
            self._place(Instance(name, mesh, transform, item.mask, item.lifetime), 0)

    def _chosen(self, item: PlacedObject, parts: Parts) -> list[int]:
        """The instances of a file that an object shows."""
        key = "node" if item.node is not None else "mesh"
        wanted = item.node if item.node is not None else item.mesh
        names = [
            instance.name if key == "node" else parts.meshes[instance.mesh].name
            for instance in parts.instances
        ]
        if wanted is None:
            return list(range(len(names)))
        chosen = [i for i, name in enumerate(names) if wanted in (name, name.rpartition("/")[0])]
        if not chosen:
            raise UserError(
                f"{self.path}: {item.label}.{key} is '{wanted}', which its file lacks"
                f"{nearest(wanted, names)}"
            )
        return chosen

    # what stands

    def _add_still(self, item: PlacedObject, model: Model, chosen: list[int]) -> None:
        animation = model.parts.animation
        # a lifetime that says that something moves, which here does not
        frozen = _movable(animation, model.parts) if animation else set()
        given = [model.parts.instances[i] for i in chosen]
        # [copies, 4, 4] each: one multiplication for all copies
        places = [item.transforms @ instance.transform for instance in given]
        lifetimes = [
            item.lifetime or ("static" if i in frozen else instance.lifetime)
            for i, instance in zip(chosen, given, strict=True)
        ]
        for copy in range(len(item.transforms)):
            name = _copy_name(item.name, copy)
            for instance, place, lifetime in zip(given, places, lifetimes, strict=True):
                self._place(
                    Instance(
                        name=_part_name(name, instance.name, len(chosen)),
                        mesh=self._mesh(model, instance.mesh),
                        transform=place[copy],
                        mask=item.mask & instance.mask,
                        lifetime=lifetime,
                    ),
                    0,
                )

    # what moves

    def _add_moving(
        self, item: PlacedObject, model: Model, chosen: list[int], posed: Posed
    ) -> None:
        parts, animation = model.parts, posed.rest
        worlds = posed.worlds
        skinned = {mesh.mesh: mesh for mesh in animation.skinned}
        moving = animation.ever_moving()
        for copy, transform in enumerate(item.transforms):
            name = _copy_name(item.name, copy)
            first_node, first_skin = self.merger.add_copy(item.name, posed, transform)
            for i in chosen:
                given = parts.instances[i]
                node = animation.instance_nodes[i]
                part = _part_name(name, given.name, len(chosen))
                lifetime = item.lifetime or given.lifetime
                if given.mesh in skinned:
                    bound = skinned[given.mesh]
                    joints = transform @ animation.joint_matrices(bound.skin, worlds)
                    shape = bound.posed(joints, animation.weights)
                    mesh = self._own_mesh(model, part, given.mesh, *shape)
                    self.merger.add_skinned(bound, mesh, first_node, first_skin)
                    place, lifetime = np.eye(4), "deforming"
                elif i in moving and given.lifetime == "rigid":
                    mesh, lifetime = self._mesh(model, given.mesh), "rigid"
                    place = transform @ worlds[node]
                else:
                    mesh, place = self._mesh(model, given.mesh), transform @ given.transform
                self._place(
                    Instance(part, mesh, place, item.mask & given.mask, lifetime),
                    first_node + node,
                )

    def _own_mesh(self, model: Model, name: str, number: int, positions: F64, normals: F64) -> int:
        """A file's mesh for one copy, in the copy's pose."""
        given = model.parts.meshes[number]
        self.meshes.append(
            replace(
                given,
                name=self._unique(name),
                positions=positions.astype(np.float32),
                normals=unit_rows(normals, len(normals)),
                material=given.material + self._materials[model.name],
            )
        )
        return len(self.meshes) - 1

    # small things

    def _place(self, instance: Instance, node: int) -> None:
        self.instances.append(instance)
        self.instance_nodes.append(node)

    def _mesh(self, model: Model, number: int) -> int:
        """A file's mesh in the scene, where all who show it share it."""
        key = (model.name, number)
        if key not in self._shared:
            given, whole = model.parts.meshes[number], len(model.parts.meshes)
            self._shared[key] = len(self.meshes)
            self.meshes.append(
                replace(
                    given,
                    name=self._unique(_part_name(model.name, given.name, whole)),
                    material=given.material + self._materials[model.name],
                )
            )
        return self._shared[key]

    def _unique(self, name: str) -> str:
        self._names[name] = self._names.get(name, 0) + 1
        return name if self._names[name] == 1 else f"{name}#{self._names[name]}"


def _movable(animation: Animation, parts: Parts) -> set[int]:
    """The instances of a file that some clip or skin moves."""
    skinned = {mesh.mesh for mesh in animation.skinned}
    rigid = {i for i in animation.ever_moving() if parts.instances[i].lifetime == "rigid"}
    return rigid | {i for i, instance in enumerate(parts.instances) if instance.mesh in skinned}


def _copy_name(name: str, copy: int) -> str:
    return name if copy == 0 else f"{name}#{copy + 1}"


def _part_name(whole: str, part: str, parts: int) -> str:
    """Of a whole with one part only the whole's name is worth reading. Behind the slash, part names
    are as long as the file has them: `x/0` and `x/1` stay parts of one mesh."""
    return whole if parts == 1 else f"{whole}/{part}"


def _moved(texture: int, first: int) -> int:
    return texture if texture < 0 else texture + first
