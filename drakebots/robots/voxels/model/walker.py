"""The walking robot as rigid octahedra: its voxels, masses and feet, and its SDF.

The core is 2x2x2 voxels with the actuators' mass spread over it; one more voxel hangs
on either side of the front. The robot faces +x+y. Each back foot is a bar with a heel
and a toe: with points for back feet the core's weight lies on the line between them,
only 2 % of it rest on the front, and the robot tips over unless it moves slowly (it
falls at 0.5 s a pose; at 1 s it stays up and gets nowhere). Source: Tebyani et al.
(2022), section 3, and the authors' code for the nodes; the sizes of the feet are ours
(params.yaml).
"""

from __future__ import annotations

import numpy as np

from drakebots.lattice.shape import Strut
from drakebots.model import parameters_of
from drakebots.robots.voxels.model.octahedra import Octahedra
from drakebots.robots.voxels.model.robot import FEET, VoxelRobot
from drakebots.robots.voxels.model.sdf import Foot, octahedra_sdf

HEADING = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
"""The direction the robot faces, in the lattice's axes."""

CORE = 8
"""Number of voxels of the core, the first ones."""

_ORANGE = (0.86, 0.52, 0.20, 1.0)
_BLUE = (0.36, 0.47, 0.62, 1.0)


def walker(front_mass: float = 0.0) -> Octahedra:
    """The robot's ten voxels.

    Args:
        front_mass: mass of the parts that either front voxel carries [kg].
    """
    robot, given = VoxelRobot(), parameters_of("voxel")
    masses = np.full(len(robot.lattice.voxels), given.number("voxel_mass") + front_mass)
    masses[: len(robot.core.voxels)] = given.number("core_voxel_mass")
    d = given.number("strut")
    strut = Strut(d, d, **given.table("material"))
    return Octahedra(robot.lattice, strut, masses, given.number("damping_ratio"))


def walker_feet(
    friction_front: float | None = None,
    friction_back: float | None = None,
    *,
    point_feet: bool = False,
    heel_and_toe: float | None = None,
) -> tuple[Foot, ...]:
    """The spheres under the robot: FL, FR, and heel and toe of BL and BR.

    Args:
        friction_front, friction_back: mu on the ground; None for that of params.yaml.
        point_feet: whether the back feet are points instead of bars.
        heel_and_toe: distance of a bar's ends from its node [m]; None for that of
            params.yaml.
    """
    given = parameters_of("voxel")
    default, size = given.table("friction"), given.table("foot")
    front = default["front"] if friction_front is None else friction_front
    back = default["back"] if friction_back is None else friction_back
    half = size["heel_and_toe"] if heel_and_toe is None else heel_and_toe
    feet = []
    for name, node in FEET.items():
        if name[0] == "F" or point_feet:
            mu = front if name[0] == "F" else back
            feet.append(Foot(name, node, np.zeros(3), size["radius"], mu))
            continue
        for end, sign in (("heel", -1), ("toe", 1)):
            offset = sign * half * HEADING
            feet.append(Foot(f"{name}_{end}", node, offset, size["radius"], back))
    return tuple(feet)


def walker_sdf(
    feet: tuple[Foot, ...] | None = None, cut: Octahedra | None = None
) -> str:
    """The SDF text of the robot, with its own feet and voxels or the given ones."""
    robot = VoxelRobot()
    core, all_voxels = len(robot.core.voxels), len(robot.lattice.voxels)
    colors = [_BLUE] * core + [_ORANGE] * (all_voxels - core)
    feet = walker_feet() if feet is None else feet
    return octahedra_sdf(cut or walker(), feet, name="voxel", colors=colors)


def rest_pose() -> np.ndarray:
    """p_WL of the lattice's corner (3,) [m]: feet on z = 0, core over the origin."""
    given = parameters_of("voxel")
    pitch = given.number("pitch")
    return np.array([-pitch, -pitch, given.table("foot")["radius"]])


def core_tilt(poses: np.ndarray) -> float:
    """Tilt of the core from upright [rad]: its voxels, which come first, tilt to either
    side in turn.

    Args:
        poses: X_WV of all voxels (V, 4, 4).
    """
    up = poses[:CORE, 2, 2].mean()
    return float(np.arccos(np.clip(up, -1.0, 1.0)))
