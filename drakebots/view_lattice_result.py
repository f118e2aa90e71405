"""The lattice behind a result that holds positions of nodes only.

A plan of actuators (`drakebots plan voxel`, `plan lattice.json`) stores where the
nodes are at rest and when moved. Voxels follow from the nodes: one is where all six of
its nodes are. Only a hole of one voxel inside a lattice looks the same as no hole.
"""

from __future__ import annotations

import re

import numpy as np

from drakebots.errors import DrakebotsError, InvalidInput
from drakebots.lattice.lattice import OFFSETS, Lattice
from drakebots.lattice.pom import Control
from drakebots.results import Result

_NAMED = re.compile(r"\((\d+), (\d+), (\d+)\) ([xyz])")
_ROUND = 0.02
"""A node may be this far from the grid at rest [half pitches]."""


def is_node_motion(result: Result) -> bool:
    """Whether a result holds the motion of a lattice's nodes and nothing else."""
    return "node_position" in result.data and "position" not in result.data


def lattice_of(result: Result) -> Lattice:
    """The lattice whose nodes a result holds, in the same order.

    Raises:
        InvalidInput: when its first positions are no lattice's at rest.
    """
    if not is_node_motion(result):
        raise InvalidInput("the result holds no nodes of a lattice")
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
    full = [
        centre
        for centre in centres
        if all(tuple(node) in there for node in (centre + OFFSETS).tolist())
    ]
    try:
        lattice = Lattice((np.array(full) - 1) // 2, 2 * half)
    except DrakebotsError as error:
        raise wrong from error
    if not np.array_equal(lattice.nodes, grid):
        raise wrong
    return lattice


def actuators_of(result: Result, lattice: Lattice) -> list[Control]:
    """The actuators a plan moves, as far as their names tell where they are.

    Names are the walking robot's (blue, ...), or "(x, y, z) axis".
    """
    # The robot reads its parameters, which other lattices do without.
    from drakebots.robots.voxels.robot import ACTUATORS

    known = {actuator.name: actuator for actuator in ACTUATORS}
    there = {tuple(node) for node in lattice.nodes.tolist()}
    found = []
    for name in map(str, result.data.actuator.values):
        written = _NAMED.fullmatch(name)
        if written:
            actuator = Control(tuple(map(int, written.groups()[:3])), written[4])
        elif result.model == "voxel" and name in known:
            actuator = known[name]
        else:
            continue
        if {actuator.node, actuator.other} <= there:
            found.append(actuator)
    return found
