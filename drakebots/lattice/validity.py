"""How far planes of motion can be trusted: compared with the frame, node by node.

Loss of a node in the plane that an actuator drives, both scaled to the actuator's
own motion:

    loss = 1 - x . x_POM / |x_POM|^2

Beams give along their length where the planes' tilting has to be carried over many
voxels, so that the loss grows with size and with the thickness d of the struts,

    largest loss = c(n) (d/L)^2,   c = 6, 85, 222, 448 for n = 2, 4, 6, 8,

in a block of n voxels across, its actuator in the middle. The rule holds for losses
well below 1 (it says too much above 0.2). Source: ours, measured with the frame; the
paper's Fig. 2 shows one case with 4.9 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.lattice.actuation import actuator_nodes
from drakebots.lattice.against_frame import frame_motion, without_rigid_motion
from drakebots.lattice.lattice import Lattice
from drakebots.lattice.planes import Plane
from drakebots.lattice.pom import Control, PlanesOfMotion
from drakebots.lattice.strut import Strut

_RULE = np.array([[0, 0], [2, 6], [4, 85], [6, 222], [8, 448]])


def loss_rule(width: float, strut: Strut, length: float) -> float:
    """Largest loss across a centred block by the rule c(n) (d/L)^2.

    Args:
        width: n [voxels], across the plane.
        strut: of the beams; bending in the square counts, so d is its d2.
        length: L of the beams [m].
    """
    squares = _RULE[:, 0] ** 2
    c = np.interp(width**2, squares, _RULE[:, 1])
    slope = (_RULE[-1, 1] - _RULE[-2, 1]) / (squares[-1] - squares[-2])
    c += slope * max(width**2 - squares[-1], 0.0)
    return float(c * (strut.d2 / length) ** 2)


def rule_radius(strut: Strut, length: float, tolerance: float = 0.05) -> float:
    """Half the width of the block whose loss stays in tolerance by the rule.

    The loss near an actuator grows with the block too: what counts is how far the
    motion must be carried, not where one looks.

    Returns:
        n/2 [voxels].

    Raises:
        InvalidInput: for a tolerance that is not within 0..1.
    """
    _check_tolerance(tolerance)
    widths = np.linspace(0, 200, 4001)
    losses = np.array([loss_rule(n, strut, length) for n in widths])
    return float(widths[losses <= tolerance].max() / 2)


def _check_tolerance(tolerance: float) -> None:
    if not 0 < tolerance < 1:
        raise InvalidInput(f"tolerance must be within 0..1, got {tolerance}")


@dataclass(frozen=True, eq=False)
class PlaneCheck:
    """One actuated plane, by planes of motion and by the frame.

    Attributes:
        lattice, strut: of the frame.
        actuator: whose lower node moves by 1, the upper one by -1.
        plane: which it drives.
        expected, actual: displacements per unit of the actuator's (N, 3).
        shares: of the elastic energy by kind.
        force: push for a unit of motion [N/m].
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
        """Of each node (N,); NaN off the plane."""
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
        """Least-squares factor frame = slope * planes of motion, in the plane."""
        return float((self.expected * self.actual).sum() / (self.expected**2).sum())

    @property
    def signs_right(self) -> bool:
        """Whether every node of the plane moves the way it should."""
        return bool(self.max_loss < 1)

    @property
    def spill(self) -> float:
        """Largest motion of a node off the plane, as a share of the actuator's."""
        off = np.linalg.norm(self.actual[np.isnan(self.loss)], axis=1)
        return float(off.max(initial=0.0))

    @cached_property
    def distance(self) -> np.ndarray:
        """Of each node from the actuator's middle, in the plane (N,) [voxels].

        The larger of the two components.
        """
        middle = np.array(self.actuator.node) + np.eye(3)[self.actuator.axis]
        apart = np.abs(self.lattice.nodes - middle) / 2
        return np.delete(apart, self.plane.axis, axis=1).max(axis=1)

    def valid_radius(self, tolerance: float = 0.05) -> float:
        """Distance up to which every node of the plane stays in tolerance [voxels].

        The largest there is when all do.

        Raises:
            InvalidInput: for a tolerance that is not within 0..1.
        """
        _check_tolerance(tolerance)
        inside = ~np.isnan(self.loss)
        reach = 0.0
        for d in np.unique(self.distance[inside]):
            if self.loss[inside & (self.distance == d)].max() > tolerance:
                return reach
            reach = float(d)
        return reach

    def report(self, tolerance: float = 0.05) -> str:
        """For printing, before anyone trusts planes of motion."""
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
                "some nodes move the WRONG WAY: do not use planes of motion here but "
                "the elastic model, which knows parts that hang or are thin"
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
        actuator: its nodes do not turn.
        strut: of all beams.
        convention: see frame.CONVENTIONS. "free" takes out the rigid motion that
            brings the frame nearest the planes, for irregular shapes; the others
            put the actuator's middle at rest. In blocks all give the same.

    Raises:
        InvalidInput: for an actuator the lattice does not take.
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
