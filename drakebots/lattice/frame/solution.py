"""Actuators of frames, and the solution: motions, forces, stresses, energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.lattice.frame.model import Frame, Load, Supports, node_pairs

CONVENTIONS = {
    "ff": "first nodes clamped, second nodes kept from rotating (FERVOR's)",
    "sym": "each node moved by half the extension, its other motions held",
    "free": "only the extension prescribed; both nodes kept from rotating",
}
"""Supports of an actuator's nodes; all give the same pattern of motion."""


def actuate(
    frame: Frame,
    actuators: Sequence[tuple[int, int]],
    extension: Sequence[float],
    convention: str = "free",
) -> tuple[Supports, Load]:
    """Supports and load of actuators that change the distance of node pairs.

    Args:
        frame: nodes and beams.
        actuators: node pairs (first, second).
        extension: extension of each actuator [m], > 0 pushes its nodes apart. In the
            "sym" convention each node moves by half of it, so a stroke of +-5 mm is
            an extension of 10 mm.
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


@dataclass(frozen=True)
class StrainEnergy:
    """The strain energy of a frame by kind of deformation [J]."""

    axial: float
    torsion: float
    bending: float
    shear: float

    @property
    def total(self) -> float:
        """Sum of all parts [J]."""
        return self.axial + self.torsion + self.bending + self.shear

    def shares(self) -> dict[str, float]:
        """Each part as a share of the total; zeros for a frame at rest."""
        total = self.total or 1.0
        names = ("axial", "torsion", "bending", "shear")
        return {name: getattr(self, name) / total for name in names}


@dataclass(frozen=True, eq=False)
class FrameSolution:
    """A frame in equilibrium.

    Attributes:
        frame, supports: the problem.
        displacement: motions of the nodes (N, 6) [m, rad].
        reaction: forces of supports and actuators on the nodes (N, 6) [N, N m].
        actuator_force: force with which each actuator pushes its nodes apart (A,) [N].
        extension: extensions of the actuators (A,) [m].
        gravity: gravitational acceleration (3,) [m/s^2]; None for none.
    """

    frame: Frame = field(repr=False)
    supports: Supports = field(repr=False)
    displacement: np.ndarray
    reaction: np.ndarray
    actuator_force: np.ndarray
    extension: np.ndarray
    gravity: np.ndarray | None = None

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
        """Forces of the nodes on each beam's ends, in its frame (B, 12) [N, N m].

        Forces then moments on the first end, then on the second. A section at
        the second end carries these; at the first, their negatives.
        """
        elements, ends = self.frame.elements, self.frame.of_ends(self.displacement)
        forces = np.einsum("bij,bj->bi", self.frame.beam_stiffness, ends)
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
        """Magnitude of the largest normal stress in each beam (B,) [Pa].

        |N|/A + |Mz| d1/(2 I1) + |My| d2/(2 I2), at a corner of an end.
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
        """Elastic energy of the beams."""
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
        """Increase of the distance between two nodes, to first order [m]."""
        moved = self.displacement[second, :3] - self.displacement[first, :3]
        return float(moved @ self.frame.axis(first, second))
