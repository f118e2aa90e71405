"""One actuated plane of a lattice, by planes of motion and by the beam frame.

Loss of a node in the plane that an actuator drives, with both motions scaled to the
actuator's own:

    loss = 1 - x . x_POM / |x_POM|^2

Beams are compliant along their axes where tilting is carried over many voxels, so the
loss grows with size and with the thickness d of the struts,

    largest loss = c(n) (d/L)^2,   c = 6, 85, 222, 448 for n = 2, 4, 6, 8,

in a block of n voxels across with its actuator in the middle. The rule holds for
losses well below 1 (it overestimates above 0.2). Source: ours, measured with the
frame; the paper's Fig. 2 shows one case with 4.9 %.

A library of the figures of this folder, without a command.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drakebots.core.checks import between, check_value
from drakebots.lattice.pom import (
    Control,
    PlanesOfMotion,
    actuator_nodes,
    frame_motion,
    without_rigid_motion,
)
from drakebots.lattice.shape import Lattice, Plane, Strut

_RULE = np.array([[0, 0], [2, 6], [4, 85], [6, 222], [8, 448]])


def loss_rule(width: float, strut: Strut, length: float) -> float:
    """Largest loss across a centred block by the rule c(n) (d/L)^2.

    Args:
        width: number n of voxels across the plane.
        strut: section of the beams; they bend within the square, so d is its d2.
        length: length L of the beams [m].
    """
    squares = _RULE[:, 0] ** 2
    c = np.interp(width**2, squares, _RULE[:, 1])
    slope = (_RULE[-1, 1] - _RULE[-2, 1]) / (squares[-1] - squares[-2])
    c += slope * max(width**2 - squares[-1], 0.0)
    return float(c * (strut.d2 / length) ** 2)


def rule_radius(strut: Strut, length: float, tolerance: float = 0.05) -> float:
    """Half the width of the widest block whose loss is within the tolerance [voxels].

    By the rule c(n) (d/L)^2. The loss near an actuator grows with the block too: what
    counts is how far the motion is carried, not the distance of the node.

    Raises:
        InvalidInput: for a tolerance that is not within 0..1.
    """
    check_value("tolerance", tolerance, between(0, 1, open_ends=True))
    widths = np.linspace(0, 200, 4001)
    losses = np.array([loss_rule(n, strut, length) for n in widths])
    return float(widths[losses <= tolerance].max() / 2)


@dataclass(frozen=True, eq=False)
class PlaneCheck:
    """One actuated plane, by planes of motion and by the frame.

    Attributes:
        lattice: the voxels.
        strut: section and material of the beams.
        actuator: the actuator; its lower node moves by 1, the upper one by -1.
        plane: the plane that it drives.
        expected: displacements by planes of motion per unit of the actuator's (N, 3).
        actual: displacements by the frame per unit of the actuator's (N, 3).
        shares: shares of the elastic energy by kind.
        force: actuator force per unit of motion [N/m].
    """

    lattice: Lattice
    strut: Strut
    actuator: Control
    plane: Plane
    expected: np.ndarray
    actual: np.ndarray
    shares: dict[str, float]
    force: float

    @cached_property
    def loss(self) -> np.ndarray:
        """Loss of each node (N,); NaN off the plane."""
        size = (self.expected**2).sum(axis=1)
        along = (self.expected * self.actual).sum(axis=1)
        return 1 - np.divide(along, size, np.full(len(size), np.nan), where=size > 0)

    @property
    def max_loss(self) -> float:
        """Largest loss in the plane."""
        return float(np.nanmax(self.loss))

    @property
    def mean_loss(self) -> float:
        """Mean loss in the plane."""
        return float(np.nanmean(self.loss))

    @property
    def slope(self) -> float:
        """Least-squares factor, frame = slope * planes of motion, in the plane."""
        return float((self.expected * self.actual).sum() / (self.expected**2).sum())

    @property
    def signs_right(self) -> bool:
        """Whether every node of the plane moves in the predicted direction."""
        return bool(self.max_loss < 1)

    @property
    def spill(self) -> float:
        """Largest motion of a node off the plane, as a share of the actuator's."""
        off = np.linalg.norm(self.actual[np.isnan(self.loss)], axis=1)
        return float(off.max(initial=0.0))

    @cached_property
    def distance(self) -> np.ndarray:
        """Distance of each node from the actuator's middle, in the plane (N,) [voxels].

        It is the larger of the two components.
        """
        middle = np.array(self.actuator.node) + np.eye(3)[self.actuator.axis]
        apart = np.abs(self.lattice.nodes - middle) / 2
        return np.delete(apart, self.plane.axis, axis=1).max(axis=1)

    def valid_radius(self, tolerance: float = 0.05) -> float:
        """Distance up to which every node of the plane is within tolerance [voxels].

        Raises:
            InvalidInput: for a tolerance that is not within 0..1.
        """
        check_value("tolerance", tolerance, between(0, 1, open_ends=True))
        inside = ~np.isnan(self.loss)
        reach = 0.0
        for d in np.unique(self.distance[inside]):
            if self.loss[inside & (self.distance == d)].max() > tolerance:
                return reach
            reach = float(d)
        return reach

    def report(self, tolerance: float = 0.05) -> str:
        """Loss over distance, energy shares and the valid radius, for printing."""
        length = self.lattice.beam_length
        lines = [
            f"actuator {self.actuator.name} drives the plane {self.plane}; L/d "
            f"{length / self.strut.d2:.1f}",
            f"loss in the plane: at most {self.max_loss:.2%}, mean {self.mean_loss:.2%}"
            f"; slope {self.slope:.3f}",
            "distance [voxels]   largest loss",
        ]
        inside = ~np.isnan(self.loss)
        for d in np.unique(self.distance[inside]):
            worst = self.loss[inside & (self.distance == d)].max()
            lines.append(f"{d:17.1f}   {worst:.2%}")
        if not self.signs_right:
            lines.append(
                "some nodes move in the WRONG DIRECTION: do not use planes of motion "
                "here but the elastic model, which describes hanging and thin parts"
            )
        lines += [
            f"off the plane a node moves by up to {self.spill:.1%}",
            "energy: " + ", ".join(f"{k} {v:.1%}" for k, v in self.shares.items() if v),
            f"loss within {tolerance:.0%} up to {self.valid_radius(tolerance):.1f} "
            "voxels from the actuator here; by the rule everywhere in blocks of up to "
            f"{rule_radius(self.strut, length, tolerance):.1f} voxels either side",
        ]
        return "\n".join(lines)


def check_plane(
    lattice: Lattice,
    actuator: Control,
    strut: Strut = Strut(),
    convention: str = "sym",
) -> PlaneCheck:
    """Compares one actuated plane with the frame.

    Args:
        lattice: the voxels, connected.
        actuator: the actuator; its nodes do not rotate.
        strut: section and material of all beams.
        convention: see `frame.CONVENTIONS`. "free" subtracts the rigid motion that
            brings the frame nearest to the planes, for irregular shapes; the others
            keep the actuator's middle at rest. In blocks all give the same.

    Raises:
        InvalidInput: for an actuator that does not fit the lattice.
        UnknownName: for another convention.
    """
    model = PlanesOfMotion(lattice, [actuator])
    solution = frame_motion(lattice, [actuator], [1.0], strut, convention)
    expected = model.displacements([1.0])
    actual = solution.displacement[:, :3]
    if convention == "free":
        actual = without_rigid_motion(lattice, actual, expected)
    else:
        actual = actual - actual[actuator_nodes(lattice, [actuator])[0]].mean(axis=0)
    return PlaneCheck(
        lattice,
        strut,
        actuator,
        model.driven[0],
        expected,
        actual,
        solution.energy.shares(),
        float(abs(solution.actuator_force[0])),
    )
