"""Actuators of frames: three ways to hold the nodes they push apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drakebots.errors import InvalidInput, UnknownName
from drakebots.lattice.frame_model import Frame, Load, Supports, node_pairs

CONVENTIONS = {
    "ff": "first nodes clamped, second nodes do not turn (FERVOR's)",
    "sym": "both nodes moved half the extension, all else of them held",
    "free": "only the extension prescribed; these nodes do not turn",
}
"""Ways to hold the nodes of actuators; all give the same pattern of motion."""


def actuate(
    frame: Frame,
    actuators: Sequence[tuple[int, int]],
    extension: Sequence[float],
    convention: str = "free",
) -> tuple[Supports, Load]:
    """Supports and load of actuators that change the distance of node pairs.

    Args:
        actuators: node pairs (first, second).
        extension: of each [m], > 0 apart. A node of the "sym" convention moves
            by half of it, so a stroke of +-5 mm is an extension of 10 mm.
        convention: "ff", "sym" or "free"; see `CONVENTIONS`.

    Raises:
        UnknownName: for another convention.
        InvalidInput: when counts differ, or ("sym") a node has two actuators.
    """
    if convention not in CONVENTIONS:
        raise UnknownName("convention", convention, CONVENTIONS)
    pairs = node_pairs(actuators)
    extension = np.asarray(extension, dtype=float)
    if extension.shape != (len(pairs),):
        raise InvalidInput(f"{len(pairs)} actuators need as many extensions")
    held, moved = np.zeros((len(frame), 6), dtype=bool), np.zeros((len(frame), 6))
    axes = np.array([frame.axis(*pair) for pair in pairs]).reshape(-1, 3)
    held[pairs.ravel(), 3:] = True
    if convention == "ff":
        held[pairs[:, 0]] = True
    if convention == "sym":
        nodes, counts = np.unique(pairs, return_counts=True)
        if (counts > 1).any():
            raise InvalidInput(
                f"node {nodes[counts > 1][0]} has two actuators, which would both "
                'prescribe its motion; use the convention "free"'
            )
        held[pairs.ravel()] = True
        half = axes * extension[:, None] / 2
        moved[pairs[:, 0], :3], moved[pairs[:, 1], :3] = -half, half
    supports = Supports(held, pairs, floating=convention == "free")
    return supports, Load(displacement=moved, extension=extension)


def pair_forces(
    frame: Frame, pairs: Sequence[tuple[int, int]], force: Sequence[float]
) -> np.ndarray:
    """Forces (N, 6) of actuators that push node pairs apart with given forces [N].

    Raises:
        InvalidInput: when counts differ, or a node is not there.
    """
    forces, pairs = np.zeros((len(frame), 6)), node_pairs(pairs)
    if len(force) != len(pairs):
        raise InvalidInput(f"{len(pairs)} actuators need as many forces")
    for (first, second), push in zip(pairs, force):
        forces[first, :3] -= push * frame.axis(first, second)
        forces[second, :3] += push * frame.axis(first, second)
    return forces
