"""What came of a walk: its dataset in SI, and its measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from pydrake.math import RotationMatrix

from drakebots.multibody import trajectory_dataset
from drakebots.results import with_units
from drakebots.robots.voxels.model import (
    ACTUATORS,
    MARKERS,
    VoxelRobot,
    node_positions,
    walker,
)


def walk_dataset(walk, samples: Sequence[tuple]) -> xr.Dataset:
    """The log of a walk, in SI.

    Args:
        walk: the built diagram.
        samples: of :class:`drakebots.robots.voxels.simulate.WalkPlant`, as they are
            kept.
    """
    times, states, forces, commanded, lengths, pushes = map(np.array, zip(*samples))
    data = trajectory_dataset(walk.robot, times, states)
    plant, cut = walk.plant, walk.built.octahedra
    context = plant.CreateDefaultContext()
    poses = np.zeros((len(times), len(cut.names), 4, 4))
    for k, state in enumerate(states):
        plant.SetPositionsAndVelocities(context, state)
        poses[k] = walk.built.poses(context)
    nodes = node_positions(cut, poses[..., :3, 3], poses[..., :3, :3])
    p_WR, R_WR = body_frame(nodes)
    in_body = np.einsum("tji,tnj->tni", R_WR, nodes - p_WR[:, None])
    rows = [cut.lattice.node(place) for place in MARKERS.values()]
    u = (walk.actuators.rest - commanded) / 2
    pom = VoxelRobot().displacements(u, tuple(MARKERS.values()))
    rpy = [_rotation(R).ToRollPitchYaw().vector() for R in R_WR]
    quaternions = [
        [_rotation(X[:3, :3]).ToQuaternion().wxyz() for X in row] for row in poses
    ]
    moved = in_body[:, rows] - in_body[0, rows]
    by_marker, by_actuator = ("time", "marker", "axis"), ("time", "actuator")
    at = {
        "base_position": (("time", "axis"), p_WR, "m"),
        "base_rpy": (("time", "angle"), np.unwrap(rpy, axis=0), "rad"),
        "node_position": (("time", "node", "axis"), nodes, "m"),
        "marker_position": (by_marker, nodes[:, rows], "m"),
        "marker_displacement": (by_marker, moved, "m"),
        "marker_displacement_pom": (by_marker, pom, "m"),
        "voxel_position": (("time", "voxel", "axis"), poses[..., :3, 3], "m"),
        "voxel_quaternion": (("time", "voxel", "wxyz"), np.array(quaternions), "1"),
        "foot_force": (("time", "foot", "axis"), forces, "N"),
        "actuator_command": (by_actuator, commanded, "m"),
        "actuator_length": (by_actuator, lengths, "m"),
        "actuator_force": (by_actuator, pushes, "N"),
    }
    names = {
        "marker": list(MARKERS),
        "voxel": list(cut.names),
        "wxyz": list("wxyz"),
        "actuator": [control.name for control in ACTUATORS],
        "node_place": (("node", "axis"), cut.lattice.nodes, {"units": "1"}),
    }
    return data.assign(with_units(at)).assign_coords(names)


def _rotation(R: np.ndarray) -> RotationMatrix:
    # Drake refuses rotations that rounding has made inexact.
    return RotationMatrix.ProjectToRotationMatrix(R)


def body_frame(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The core's mean pose: the rigid motion nearest to that of its nodes.

    Planes of motion do not contribute to it: they are orthogonal to rigid motions.

    Args:
        nodes: p_WN over time (T, N, 3) [m], at rest in the first sample.

    Returns:
        p_WR (T, 3) [m], the middle of the core, and R_WR (T, 3, 3), the identity in
        the first sample.
    """
    cut = walker()
    core = np.unique(cut.lattice.voxel_nodes[: len(VoxelRobot().core.voxels)])
    places = nodes[:, core]
    middle = places.mean(axis=1)
    rest = places[0] - middle[0]
    U, _, Vt = np.linalg.svd(np.einsum("tni,nj->tij", places - middle[:, None], rest))
    sign = np.linalg.det(U @ Vt)
    U[..., 2] *= sign[:, None]
    return middle, U @ Vt


def travel(data: xr.Dataset, settle: float, cycle: float) -> dict:
    """Mean motion per cycle; with two or more full cycles the first does not count.

    Forward is the robot's mean heading over a cycle, within which the heading
    oscillates. The spread over the cycles measures how regular the walk is.

    Args:
        data: dataset of a walk.
        settle: time at rest before the gait [s].
        cycle: duration of a cycle [s].
    """
    done = int(np.floor((float(data.time[-1]) - settle) / cycle + 1e-6))
    if done < 1:
        return {"cycles": 0}
    steps = []
    for k in range(done):
        part = data.sel(time=slice(settle + k * cycle - 1e-6, None))
        part = part.sel(time=slice(None, settle + (k + 1) * cycle + 1e-6))
        dx, dy = (part.base_position[-1] - part.base_position[0]).values[:2]
        yaw = float(part.base_rpy[:, 2].mean()) + np.pi / 4
        c, s = np.cos(yaw), np.sin(yaw)
        turn = float(part.base_rpy[-1, 2] - part.base_rpy[0, 2])
        steps.append((1e3 * (c * dx + s * dy), 1e3 * (c * dy - s * dx), turn))
    steady = np.array(steps[1:] or steps)
    forward, left, turn = steady.mean(axis=0)
    return {
        "cycles": done,
        "start_up_only": done == 1,
        "travel_mm_per_cycle": float(forward),
        "travel_spread_mm": float(np.ptp(steady[:, 0])),
        "left_mm_per_cycle": float(left),
        "turn_deg_per_cycle": float(np.degrees(turn)),
        "travel_mm_of_each_cycle": [float(step[0]) for step in steps],
    }


def front_share(data: xr.Dataset, settle: float) -> float:
    """Share of the load that the front feet carry, in the mean over the gait."""
    load = data.foot_force.sel(time=slice(settle, None))[..., 2].sum("time")
    front = [str(name) for name in data.foot.values if str(name).startswith("F")]
    return float(load.sel(foot=front).sum() / max(float(load.sum()), 1e-12))


def marker_agreement(data: xr.Dataset, settle: float) -> dict[str, float]:
    """The markers in the body frame against the planes of motion.

    The slope is a least squares fit through the origin. The error is that of x and y,
    which a camera above sees, as in the paper. Along z tilted voxels sink by
    pitch (1 - cos(tilt)), which the linear model neglects.
    """
    moving = data.sel(time=slice(settle, None))
    if moving.sizes["time"] < 2:
        return {}
    # Against the pose at the end of settling: weight has bent the robot by then.
    shown = moving.marker_displacement - moving.marker_displacement[0]
    pom = moving.marker_displacement_pom
    square = float((pom**2).sum())
    if square == 0:
        return {}
    return {
        "marker_slope_vs_pom": float((shown * pom).sum()) / square,
        "marker_max_error_mm": 1e3 * float(abs(shown - pom)[..., :2].max()),
        "marker_max_sinking_mm": 1e3 * float(abs(shown - pom)[..., 2].max()),
    }
