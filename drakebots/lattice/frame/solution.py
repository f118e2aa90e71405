"""What a solved frame tells: motions, forces, stresses, energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.lattice.frame.model import Frame, Load, Supports, node_pairs

# Actuators of frames: three ways to hold the nodes they push apart.

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


@dataclass(frozen=True)
class StrainEnergy:
    """Where a frame's strain energy is [J]."""

    axial: float
    torsion: float
    bending: float
    shear: float

    @property
    def total(self) -> float:
        """Sum of all parts [J]."""
        return self.axial + self.torsion + self.bending + self.shear

    def shares(self) -> dict[str, float]:
        """Each part as a share of the total, zero in a frame at rest."""
        total = self.total or 1.0
        names = ("axial", "torsion", "bending", "shear")
        return {name: getattr(self, name) / total for name in names}


@dataclass(frozen=True, eq=False)
class FrameSolution:
    """A frame in equilibrium.

    Attributes:
        frame, supports: of the problem.
        displacement: of the nodes (N, 6) [m, rad].
        reaction: what supports and actuators exert on the nodes (N, 6) [N, N m].
        actuator_force: with which each actuator pushes its nodes apart (A,) [N].
        extension: of the actuators (A,) [m].
        tension: axial forces (B,) the stress stiffness was made with [N]; None
            for the linear problem.
        gravity: acceleration that acted (3,) [m/s^2].
        iterations: factorizations it took.
    """

    frame: Frame = field(repr=False)
    supports: Supports = field(repr=False)
    displacement: np.ndarray
    reaction: np.ndarray
    actuator_force: np.ndarray
    extension: np.ndarray
    tension: np.ndarray | None = None
    gravity: np.ndarray | None = None
    iterations: int = 1

    @property
    def deformed(self) -> np.ndarray:
        """Positions of the nodes (N, 3) [m]."""
        return self.frame.positions + self.displacement[:, :3]

    @cached_property
    def deformation(self) -> np.ndarray:
        """The six deformations of each beam (B, 6) [m, rad]; see `Elements`."""
        ends = self.frame.of_ends(self.displacement)
        return np.einsum("bij,bj->bi", self.frame.elements.B(), ends)

    @cached_property
    def axial(self) -> np.ndarray:
        """EA/L times elongation of each beam (B,) [N], > 0 in tension."""
        return self.frame.elements.D[:, 0] * self.deformation[:, 0]

    @cached_property
    def end_forces(self) -> np.ndarray:
        """What the nodes exert on each beam's ends, in its frame (B, 12) [N, N m].

        Forces then moments on the first end, then on the second. A section at
        the second end carries these; at the first, their negatives.
        """
        elements, ends = self.frame.elements, self.frame.of_ends(self.displacement)
        forces = np.einsum("bij,bj->bi", self.frame.beam_stiffness, ends)
        if self.tension is not None:
            stressed = elements.geometric(self.tension)
            forces += np.einsum("bij,bj->bi", stressed, ends)
        forces = elements.to_local(forces)
        if self.gravity is not None:
            forces -= elements.weight(np.asarray(self.gravity))
        return forces

    @property
    def shear(self) -> np.ndarray:
        """Shear forces along y and z at both ends (B, 2 ends, 2) [N]."""
        return self._sections[:, :, 1:3]

    @property
    def torsion(self) -> np.ndarray:
        """Moment about each beam (B,) [N m]."""
        return self.end_forces[:, 9]

    @property
    def bending(self) -> np.ndarray:
        """Moments about y and z at both ends (B, 2 ends, 2) [N m]."""
        return self._sections[:, :, 4:]

    @property
    def _sections(self) -> np.ndarray:
        forces = self.end_forces.reshape(-1, 2, 6).copy()
        forces[:, 0] *= -1
        return forces

    @cached_property
    def stress(self) -> np.ndarray:
        """Largest normal stress in each beam (B,) [Pa], at a corner of an end.

        |N|/A + |Mz| d1/(2 I1) + |My| d2/(2 I2), without sign.
        """
        e, sections = self.frame.elements, self._sections
        area = (e.d1 * e.d2)[:, None]
        about_z = np.abs(sections[:, :, 5]) * (6 / (e.d1**2 * e.d2))[:, None]
        about_y = np.abs(sections[:, :, 4]) * (6 / (e.d2**2 * e.d1))[:, None]
        return (np.abs(sections[:, :, 0]) / area + about_z + about_y).max(axis=1)

    @cached_property
    def torsion_stress(self) -> np.ndarray:
        """Largest shear stress from torsion in each beam (B,) [Pa].

        T (3 + 1.8 b/a)/(a b^2) with sides a >= b: within 4 % of the exact one.
        Source: Timoshenko, "Strength of Materials" I.
        """
        e = self.frame.elements
        a, b = np.maximum(e.d1, e.d2), np.minimum(e.d1, e.d2)
        return np.abs(self.torsion) * (3 + 1.8 * b / a) / (a * b**2)

    @cached_property
    def energy(self) -> StrainEnergy:
        """Elastic energy of the beams, without what tension adds across them."""
        e = self.frame.elements
        parts = e.D * self.deformation**2 / 2
        across = parts[:, 1] / (1 + e.phi1) + parts[:, 2] / (1 + e.phi2)
        shear = parts[:, 1] + parts[:, 2] - across
        return StrainEnergy(
            axial=float(parts[:, 0].sum()),
            torsion=float(parts[:, 3].sum()),
            bending=float((across + parts[:, 4] + parts[:, 5]).sum()),
            shear=float(shear.sum()),
        )

    def apart(self, first: int, second: int) -> float:
        """How much farther two nodes are apart, to first order [m]."""
        moved = self.displacement[second, :3] - self.displacement[first, :3]
        return float(moved @ self.frame.axis(first, second))
