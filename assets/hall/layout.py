"""Where everything stands: the hall's plan, read this first.

The nave runs along Z from the entrance wall (z = +6) to the end wall (z = -30), columns at
x = +-3.5 every 4 m, aisles out to x = +-6.8. The camera stands near the entrance and looks down
the nave; the figure and the lamp are in its first third.
"""

from __future__ import annotations

import numpy as np

from assets.hall import arcade, columns, floor, foliage, furniture, motion, vaults, walls
from assets.hall.geometry import Floats, placed
from assets.hall.scene_data import HallScene, Part, Placement

SEED = 2
BAYS = 9
FIRST_BAY = 4.0  # z of the first bay's middle
COLUMN_X = 3.5
WALL_X = 6.8
AISLE_X = 5.31
VAULT_Y = 8.0
LIGHT = (1.15, 4.45, -4.9)
LIGHT_RADIANCE = (186.0, 162.0, 126.0)
# Dusk: cool, and low enough that the lamp's shadows read (there is no ambient occlusion).
ENVIRONMENT = {
    "zenith": [0.085, 0.13, 0.24],
    "horizon": [0.300, 0.262, 0.240],
    "ground": [0.050, 0.044, 0.038],
}
FIGURE_AT = (-0.6, 0.0, -2.5)


def build_scene() -> HallScene:
    """The whole scene; the same every time."""
    rng = np.random.default_rng(SEED)
    placements = [*_architecture(rng), *_furnishing(rng), *_planting(), *_view()]
    figure_transform = placed(*FIGURE_AT, yaw=152.0)
    extras = {"treeline": {"environment": ENVIRONMENT}}
    return HallScene(_meshes(), placements, motion.figure(), figure_transform, extras)


def _meshes() -> dict[str, list[Part]]:
    return {
        "column": [("limestone", columns.column())],
        "pilaster": [("limestone", columns.pilaster())],
        "roundel": columns.roundel(),
        "arch": [("ashlar", arcade.arch())],
        "cornice": [("limestone", arcade.cornice())],
        "nave_vault": vaults.nave_vault(),
        "aisle_vault": vaults.aisle_vault(),
        "window_bay": walls.window_bay(),
        "niche_bay": walls.niche_bay(),
        "end_wall": walls.end_wall(),
        "floor_panel_a": floor.nave_panel(1),
        "floor_panel_b": floor.nave_panel(2),
        "floor_border": floor.border(arcade.BAY),
        "floor_aisle": floor.aisle_panel(WALL_X - 4.0, arcade.BAY, 3),
        "dais": floor.dais(),
        "bench": furniture.bench(),
        "pedestal_low": furniture.pedestal(0.42, 0.46),
        "pedestal_tall": furniture.pedestal(1.0, 0.50),
        "pedestal_great": furniture.pedestal(1.3, 1.0),
        "urn": furniture.urn(),
        "planter": furniture.planter(),
        "sphere": furniture.sphere(),
        "banner": furniture.banner(),
        "lamp": furniture.lamp(_lamp_drop()),
        "statue_orator": [("bronze", motion.statue(motion.ORATOR))],
        "statue_scholar": [("bronze", motion.statue(motion.SCHOLAR))],
        "olive_tree": foliage.olive_tree(11),
        "palm": foliage.palm(12),
        "broad_plant": foliage.broad_plant(13),
        "column_ivy": foliage.column_ivy(14, 0.33, 3.4),
    }


def _lamp_drop() -> float:
    """From the light up to the vault above it."""
    return VAULT_Y + float(np.sqrt(vaults.NAVE_RADIUS**2 - LIGHT[0] ** 2)) - LIGHT[1] + 0.1


def _architecture(rng: np.random.Generator) -> list[Placement]:
    nodes: list[Placement] = []

    def add(mesh: str, transform: Floats) -> None:
        count = sum(node.mesh == mesh for node in nodes)
        nodes.append(Placement(f"{mesh}_{count}", transform, mesh))

    for bay in range(BAYS):
        z = FIRST_BAY - arcade.BAY * bay
        add("nave_vault", placed(0.0, VAULT_Y, z))
        for side in (-1.0, 1.0):
            yaw = 0.0 if side < 0 else 180.0  # local +X looks into the nave
            add("arch", placed(side * COLUMN_X, columns.HEIGHT, z, yaw=yaw))
            inner = side * (COLUMN_X - arcade.HALF_THICKNESS)
            add("cornice", placed(inner, columns.HEIGHT + arcade.WALL_HEIGHT, z, yaw=yaw))
            add("aisle_vault", placed(side * AISLE_X, columns.HEIGHT, z))
            wall = ("window_bay", "niche_bay")[(bay + (side > 0)) % 2]
            add(wall, placed(side * WALL_X, 0.0, z, yaw=-side * 90.0))
            add("floor_border", placed(side * COLUMN_X, 0.0, z))
            add("floor_aisle", placed(side * 5.4, 0.0, z, yaw=(180.0 if side > 0 else 0.0)))
            if bay:
                column_z = z + arcade.BAY / 2
                add("column", placed(side * COLUMN_X, 0.0, column_z, yaw=90.0 * rng.integers(4)))
                add("pilaster", placed(side * WALL_X, 0.0, column_z, yaw=-side * 90.0))
                add("roundel", placed(inner, columns.HEIGHT + 1.78, column_z, yaw=-side * 90.0))
    for row in range(18):
        for column in (-2.0, 0.0, 2.0):
            panel = ("floor_panel_a", "floor_panel_b")[int(rng.integers(2))]
            add(panel, placed(column, 0.0, 5.0 - 2.0 * row, yaw=90.0 * rng.integers(4)))
    add("end_wall", placed(0.0, 0.0, -30.0))
    add("end_wall", placed(0.0, 0.0, 6.0, yaw=180.0))
    add("dais", placed(0.0, 0.0, -26.6))
    return nodes


def _furnishing(rng: np.random.Generator) -> list[Placement]:
    nodes: list[Placement] = []
    statue = 0
    for bay in range(BAYS):
        z = FIRST_BAY - arcade.BAY * bay
        side = -1.0 if bay % 2 else 1.0
        if (bay + (side > 0)) % 2:  # the side whose bay holds a niche
            mesh = ("statue_orator", "urn", "statue_scholar", "urn")[statue % 4]
            at = side * (WALL_X + 0.22)
            nodes.append(
                Placement(f"niche_pedestal_{bay}", placed(at, walls.NICHE_FLOOR, z), "pedestal_low")
            )
            stand = placed(
                at,
                walls.NICHE_FLOOR + 0.42,
                z,
                yaw=-side * (90.0 - 12.0 * (statue % 3 - 1)),
                scale=0.86,
            )
            nodes.append(Placement(f"statue_{bay}", stand, mesh))
            statue += 1
    for k, (x, z, yaw) in enumerate(
        [
            (2.45, -4.1, 0.0),
            (2.35, -12.0, 0.0),
            (-2.35, -8.0, 0.0),
            (-2.35, -16.0, 0.0),
            (2.35, -20.0, 0.0),
        ]
    ):
        nodes.append(Placement(f"bench_{k}", placed(x, 0.0, z, yaw=yaw), "bench"))
    for k, (x, z, mesh) in enumerate(
        [
            (-2.45, -4.1, "urn"),
            (2.45, -8.0, "urn"),
            (-2.45, -12.0, "sphere"),
            (2.45, -16.0, "sphere"),
            (-2.2, -24.6, "urn"),
            (2.2, -24.6, "urn"),
        ]
    ):
        nodes.append(Placement(f"pedestal_{k}", placed(x, 0.0, z), "pedestal_tall"))
        nodes.append(
            Placement(f"{mesh}_{k}", placed(x, 1.0, z, yaw=float(rng.uniform(0, 180))), mesh)
        )
    nodes.append(Placement("sphere_near", placed(1.6, 0.0, -1.2), "sphere"))
    nodes.append(Placement("pedestal_end", placed(0.0, 0.65, -29.0), "pedestal_great"))
    nodes.append(Placement("statue_end", placed(0.0, 1.95, -29.0, scale=1.45), "statue_orator"))
    for k, side in enumerate((-1.0, 1.0)):
        nodes.append(Placement(f"banner_{k}", placed(side * 2.25, 5.9, -29.9), "banner"))
    nodes.append(Placement("lamp", placed(*LIGHT), "lamp"))
    return nodes


def _planting() -> list[Placement]:
    nodes: list[Placement] = []
    pots = [
        (-2.55, -1.6, "olive_tree"),
        (2.5, -6.2, "palm"),
        (-2.5, -6.6, "broad_plant"),
        (2.5, -10.0, "olive_tree"),
        (-2.5, -14.0, "palm"),
        (2.5, -14.2, "broad_plant"),
        (-2.5, -20.0, "olive_tree"),
        (2.5, -23.0, "palm"),
        (-5.9, -6.0, "palm"),
        (5.9, -6.0, "olive_tree"),
        (5.9, -2.0, "broad_plant"),
        (-5.9, 2.0, "olive_tree"),
    ]
    for k, (x, z, mesh) in enumerate(pots):
        nodes.append(Placement(f"planter_{k}", placed(x, 0.0, z), "planter"))
        nodes.append(Placement(f"{mesh}_{k}", placed(x, 0.50, z, yaw=67.0 * k), mesh))
    for k, (side, z) in enumerate([(1.0, -2.0), (-1.0, -6.0), (1.0, -14.0), (-1.0, -18.0)]):
        nodes.append(
            Placement(
                f"column_ivy_{k}", placed(side * COLUMN_X, 0.42, z, yaw=80.0 * k), "column_ivy"
            )
        )
    return nodes


def _view() -> list[Placement]:
    camera = placed(0.5, 1.2, 3.2, yaw=3.0, pitch=2.5)
    light = placed(*LIGHT, pitch=-90.0)
    area = {"size": list(furniture.LAMP_SIZE), "radiance": list(LIGHT_RADIANCE)}
    return [
        Placement("camera", camera, y_fov=float(np.radians(46.0))),
        Placement("area_light", light, extras={"treeline": {"area_light": area}}),
    ]
