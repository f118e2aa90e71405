"""The motion of a lattice in Meshcat: every strut, node and actuator moves.

    stage = record_nodes(result)                       # a plan of actuators
    stage.save("plan.html")

Meshcat records transforms only: a strut keeps its length at rest and is centred between
its nodes, which hide the difference (0.4 mm at 5 mm of motion); an actuator is a rod in
a sleeve, each with one end on its node.

A result stores the nodes at rest and moved. The voxels follow from the nodes: one is
where all six of its nodes are. Only a hole of one voxel inside a lattice looks the same
as no hole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydrake.geometry import Cylinder, Meshcat, Rgba, Sphere
from pydrake.math import RigidTransform, RotationMatrix
from scipy.interpolate import make_interp_spline

from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.lattice.pom import Control, actuator_nodes
from drakebots.lattice.shape import OFFSETS, Lattice
from drakebots.results import Result, require
from drakebots.view.lattice.page import (
    LATTICE,
    NODE,
    STRUT,
    draw_rest,
    rod_colours,
    strut_radius,
)
from drakebots.view.motion import check_playback, frame_times, play
from drakebots.view.scene import Stage, make_stage

MAX_TRANSFORMS = 60_000
"""Largest number of transforms in a recording, about 8 MB; Meshcat interpolates between
them. The objects add about 17 MB for 8x8x8 voxels, 1 MB for the walking robot."""

THICKNESS = 1.27e-3
"""Thickness of the struts that are drawn [m]; a result does not say its own."""

_REST = Rgba(0.66, 0.68, 0.72)


def record_nodes(
    result: Result,
    *,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Stage:
    """Records a result that holds positions of nodes, such as a plan of actuators.

    Args:
        result: of kind "voxels.plan": data.node_position (T, N, 3), at rest first;
            motion is linear in between.
        slow: factor by which to play slower than the result's time; None for 2.
        frames_per_second: frame rate of the playback, limited by `MAX_TRANSFORMS`.
        port: port of the server.

    Raises:
        InvalidInput: for another result, or a speed or rate that is not > 0.
    """
    slow = 2.0 if slow is None else slow
    check_playback(slow=slow, frames_per_second=frames_per_second)
    lattice, data = lattice_of(result), result.data
    require(data, "", "motion of nodes to show", time=2)
    times, places = data.time.values, data.node_position.values
    room = np.abs(places - lattice.positions).max()
    actuators = actuators_of(result, lattice)
    stage, body = draw_lattice(lattice, actuators, room=room, port=port)
    most = max(2, MAX_TRANSFORMS // body.objects)
    rate, moments = frame_times(times, slow, frames_per_second, most)
    between = make_interp_spline(times, places, k=1)

    def show(frame: int, time: float) -> None:
        body.show(between(moments[frame]), time)

    play(stage, rate, len(moments), show, start=times[0], slow=slow)
    return stage


def draw_lattice(
    lattice: Lattice, actuators: Sequence[Control], *, room: float, port: int | None
) -> tuple[Stage, LatticeBody]:
    """A lattice in a new Meshcat scene with room to move [m], and what moves it."""
    radius, rest = strut_radius(lattice, THICKNESS), lattice.positions
    margin = room + 3 * radius
    stage = make_stage(rest.min(axis=0) - margin, rest.max(axis=0) + margin, port=port)
    draw_rest(stage.meshcat, lattice, _REST)
    return stage, LatticeBody(stage.meshcat, lattice, actuators, radius)


class LatticeBody:
    """Struts, nodes and actuators as objects with a pose each."""

    def __init__(self, meshcat: Meshcat, lattice: Lattice, actuators, radius: float):
        self.meshcat, self.beams, rest = meshcat, lattice.beams, lattice.positions
        self.struts = _Turned(rest, self.beams)
        names, pairs = [a.name for a in actuators], actuator_nodes(lattice, actuators)
        self.rods = ActuatorRods(meshcat, LATTICE, names, rest, pairs, radius)
        for i in range(len(self.beams)):
            shape = Cylinder(radius, lattice.beam_length)
            meshcat.SetObject(f"{LATTICE}/strut/{i}", shape, STRUT)
        for i in range(len(lattice.nodes)):
            meshcat.SetObject(f"{LATTICE}/node/{i}", Sphere(2.0 * radius), NODE)
        self.objects = len(self.beams) + len(lattice.nodes) + 2 * len(pairs)
        self.show(rest, None)

    def show(self, places: np.ndarray, time: float | None) -> None:
        """Moves everything to nodes at (N, 3) [m]; recorded at `time` [s] if given."""
        middles = places[self.beams].mean(axis=1)
        move = self.meshcat.SetTransform
        for i, (turn, at) in enumerate(zip(self.struts.at(places), middles)):
            move(f"{LATTICE}/strut/{i}", RigidTransform(turn, at), time)
        for i, at in enumerate(places):
            move(f"{LATTICE}/node/{i}", RigidTransform(at), time)
        self.rods.show(places, time)


class ActuatorRods:
    """Actuators between nodes: a sleeve at the lower one, a rod at the upper one.

    Args:
        path: where they are drawn, as PATH/sleeve/0 and PATH/rod/0, say.
        names: of the actuators, for their colours.
        rest: places of the nodes at rest (N, 3) [m].
        pairs: lower and upper node of each actuator (M, 2).
        radius: of a strut [m]; they are thicker.
    """

    def __init__(self, meshcat: Meshcat, path: str, names, rest, pairs, radius: float):
        self.meshcat, self.path, self.pairs = meshcat, path, pairs
        self.turned = _Turned(rest, pairs)
        # Sleeve and rod overlap at any stroke.
        self.lengths = 0.65 * np.linalg.norm(np.diff(rest[pairs], axis=1), axis=(1, 2))
        for i, colour in enumerate(rod_colours(names)):
            pale = tuple(0.45 * c + 0.55 for c in colour)
            for part, size, tone in (("sleeve", 4.0, colour), ("rod", 2.6, pale)):
                shape = Cylinder(size * radius, self.lengths[i])
                meshcat.SetObject(f"{path}/{part}/{i}", shape, Rgba(*tone))

    def show(self, places: np.ndarray, time: float | None) -> None:
        """Moves them to nodes at (N, 3) [m]; recorded at `time` [s] if given."""
        move = self.meshcat.SetTransform
        for i, turn in enumerate(self.turned.at(places)):
            low, high = places[self.pairs[i]]
            reach = self.lengths[i] / 2 * turn.col(2)
            move(f"{self.path}/sleeve/{i}", RigidTransform(turn, low + reach), time)
            move(f"{self.path}/rod/{i}", RigidTransform(turn, high - reach), time)


class _Turned:
    """Rotates cylinders from their directions at rest by the least rotation.

    A rotation found independently for each frame could spin about the axis between
    two frames.
    """

    def __init__(self, rest: np.ndarray, pairs: np.ndarray):
        self.pairs = pairs
        self.start = self._directions(rest)
        self.first = [RotationMatrix.MakeFromOneVector(d, 2) for d in self.start]

    def _directions(self, places: np.ndarray) -> np.ndarray:
        along = places[self.pairs[:, 1]] - places[self.pairs[:, 0]]
        return along / np.linalg.norm(along, axis=1, keepdims=True)

    def at(self, places: np.ndarray) -> list[RotationMatrix]:
        """Orientations with z along each pair."""
        across = np.cross(self.start, now := self._directions(places))
        cosine = np.einsum("bk,bk->b", self.start, now)
        cross = np.cross(across[:, None], np.eye(3)).transpose(0, 2, 1)
        turns = np.eye(3) + cross + cross @ cross / (1 + cosine)[:, None, None]
        rotation = RotationMatrix.ProjectToRotationMatrix
        return [rotation(turn) @ first for turn, first in zip(turns, self.first)]


_ROUND = 0.02
"""Largest distance of a node from the grid at rest [half pitches]."""


def lattice_of(result: Result) -> Lattice:
    """The lattice whose nodes a result holds, in the same order.

    Raises:
        InvalidInput: when its first positions are no lattice's at rest.
    """
    require(result.data, "node_position", "nodes of a lattice")
    return lattice_of_nodes(result.data.node_position.values[0])


def lattice_of_nodes(positions: np.ndarray) -> Lattice:
    """The lattice with nodes (N, 3) at rest [m].

    Raises:
        InvalidInput: when they are no lattice's, or in another order.
    """
    positions = np.asarray(positions, float)
    wrong = InvalidInput("these positions are not a lattice's nodes at rest, in order")
    if positions.ndim != 2 or positions.shape[1] != 3 or len(positions) < 6:
        raise wrong
    apart = np.linalg.norm(positions[1:] - positions[0], axis=1).min()
    half = apart / np.sqrt(2.0)  # a strut spans half a pitch along two axes
    if not (np.isfinite(positions).all() and half > 0):
        raise wrong
    grid = np.round(positions / half)
    if np.abs(positions / half - grid).max() > _ROUND or np.abs(grid).max() > 1e6:
        raise wrong
    grid = grid.astype(int)
    # Every voxel has a node -x of its centre.
    centres = grid[grid[:, 0] % 2 == 0] - OFFSETS[0]
    there = {tuple(node) for node in grid.tolist()}
    around = (centres[:, None] + OFFSETS).tolist()
    full = [there.issuperset(map(tuple, nodes)) for nodes in around]
    try:
        lattice = Lattice((centres[full] - 1) // 2, 2 * half)
    except DrakebotsError as error:
        raise wrong from error
    if not np.array_equal(lattice.nodes, grid):
        raise wrong
    return lattice


def actuators_of(result: Result, lattice: Lattice) -> list[Control]:
    """The actuators that a plan moves, where it says at which nodes they are."""
    data = result.data
    if "actuator_node" not in data.coords:
        return []
    names, axes = data.actuator.values, data.actuator_axis.values
    found = [
        Control(tuple(node), str(axis), str(name))
        for node, axis, name in zip(data.actuator_node.values.tolist(), axes, names)
    ]
    there = {tuple(node) for node in lattice.nodes.tolist()}
    return [a for a in found if {a.node, a.other} <= there]
