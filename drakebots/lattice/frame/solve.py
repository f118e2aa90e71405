"""The linear equilibrium of frames: actuators, one factorization, any number of loads.

    K u = f + W + C' p,   C u = e,   u = prescribed where held

with the beams' weight W, and for every actuator a row of C (its axis at the second
node, minus its axis at the first), an extension e and a force p. The free part of K is
factored once; the actuator forces follow from the small matrix C K^-1 C'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np
import scipy.linalg

from drakebots.core.checks import array, check_value
from drakebots.core.errors import InvalidInput, NoSolution, check_names
from drakebots.fem.assembly import SymmetricPattern
from drakebots.fem.solver import make_solver
from drakebots.lattice.frame.model import MOTIONS, Frame, Load, Supports, node_pairs

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
    check_names("convention", [convention], CONVENTIONS)
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
        return {name: energy / total for name, energy in asdict(self).items()}


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
    def sections(self) -> np.ndarray:
        """Forces along x, y, z in the sections at both ends, and moments about them:
        axial, two shears, torsion, two of bending (B, 2 ends, 6) [N, N m]."""
        forces = self.end_forces.reshape(-1, 2, 6).copy()
        forces[:, 0] *= -1
        return forces

    @cached_property
    def stress(self) -> np.ndarray:
        """Magnitude of the largest normal stress in each beam (B,) [Pa].

        |N|/A + |Mz| d1/(2 I1) + |My| d2/(2 I2), at a corner of an end.
        """
        e, sections = self.frame.elements, self.sections
        area = (e.d1 * e.d2)[:, None]
        about_z = np.abs(sections[:, :, 5]) * (6 / (e.d1**2 * e.d2))[:, None]
        about_y = np.abs(sections[:, :, 4]) * (6 / (e.d2**2 * e.d1))[:, None]
        return (np.abs(sections[:, :, 0]) / area + about_z + about_y).max(axis=1)

    @cached_property
    def energy(self) -> StrainEnergy:
        """Elastic energy of the beams."""
        e = self.frame.elements
        parts = e.D * self.deformation**2 / 2
        across = parts[:, 1] / (1 + e.phi1) + parts[:, 2] / (1 + e.phi2)
        shear = parts[:, 1] + parts[:, 2] - across
        bending = (across + parts[:, 4] + parts[:, 5]).sum()
        each = parts[:, 0].sum(), parts[:, 3].sum(), bending, shear.sum()
        return StrainEnergy(*map(float, each))

    def apart(self, first: int, second: int) -> float:
        """Increase of the distance between two nodes, to first order [m]."""
        moved = self.displacement[second, :3] - self.displacement[first, :3]
        return float(moved @ self.frame.axis(first, second))


# --- the solution --------------------------------------------------------------

ROUNDING = 1e-12
"""Largest residual of an equilibrium, relative to max|K| max|u| and the forces; in a
slender frame those are a million times what loads it. Rounding leaves 1e-15."""


class Factored:
    """A factored symmetric positive definite matrix under linear constraints.

    Args:
        matrix: the matrix (n, n), sparse.
        rows: matrix of the constraints (m, n), dense.

    Raises:
        NoSolution: when the matrix is singular.
        InvalidInput: when the constraints depend on each other, naming one.
    """

    def __init__(self, matrix, rows: np.ndarray):
        pattern, values = SymmetricPattern.of(matrix)
        self._solver = make_solver(pattern, threads=1)
        self._solver.factor(values)
        self._matrix, self._rows = matrix, rows
        self._pushed = self.unconstrained(rows.T)
        self._compliance = rows @ self._pushed
        scale = np.sqrt(np.diag(self._compliance))
        if len(rows):
            scaled = self._compliance / np.outer(scale, scale)
            # The last pivot names the redundant actuator.
            _, R, pivots = scipy.linalg.qr(scaled, pivoting=True)
            if np.abs(R[-1, -1]) < 1e-10:
                a = pivots[-1]
                raise InvalidInput(f"actuator {a} depends on the others; leave it out")

    def unconstrained(self, right: np.ndarray) -> np.ndarray:
        """Solutions (n, k) without the constraints."""
        return self._solver.solve(right) if right.size else np.zeros(right.shape)

    def solve(self, right: np.ndarray, values: np.ndarray | float = 0.0):
        """Unknowns (n, k) and multipliers (m, k) for right sides (n, k).

        Raises:
            NoSolution: where they miss the equations by more than rounding.
        """
        found, push = self.unconstrained(right), np.zeros((0, right.shape[1]))
        if len(self._rows):
            push = np.linalg.solve(self._compliance, values - self._rows @ found)
            found = found + self._pushed @ push
        reacted = self._rows.T @ push
        size = abs(self._matrix).max() * np.abs(found).max(initial=0.0)
        size += np.abs(right).max(initial=0.0) + np.abs(reacted).max(initial=0.0)
        left = self._matrix @ found - reacted - right
        off = self._rows @ found - values
        moved = np.abs(found).max(initial=0.0) + np.abs(values).max(initial=0.0)
        balanced = np.abs(left).max(initial=0.0) <= ROUNDING * size
        if not (balanced and np.abs(off).max(initial=0.0) <= 1e-9 * moved):
            raise NoSolution(
                f"frame: the equilibrium of {len(found)} unknowns misses its equations "
                f"by {np.abs(left).max():.1e} beside forces of {size:.1e}"
            )
        return found, push


class FactoredFrame:
    """A supported frame whose stiffness is factored, ready for loads.

    Args:
        frame: nodes and beams.
        supports: the held motions and the actuators.

    Raises:
        InvalidInput: when supports do not fit the frame, leave a rigid motion
            that is not allowed to float, or an actuator cannot move its nodes.
        NoSolution: when the stiffness is singular.
    """

    def __init__(self, frame: Frame, supports: Supports):
        self.frame, self.supports = frame, supports
        n, shape = len(frame), supports.held.shape
        if shape != (n, 6):
            raise InvalidInput(f"supports: held must be ({n}, 6), got {shape}")
        held = supports.held.ravel()
        self._K = frame.stiffness
        self._C = C = actuator_rows(frame, supports)
        # The extension of an actuator with both ends held cannot be prescribed.
        self._pushing = np.flatnonzero(np.abs(C[:, ~held]).max(axis=1, initial=0))
        self._floating = remaining_motions(frame, supports)
        if self._floating.size and np.abs(C @ self._floating).max(initial=0) > 1e-9:
            raise InvalidInput(
                "an actuator joins two pieces of the frame, one of which floats; "
                "hold each piece"
            )
        self._free = free = np.flatnonzero(~held & ~_pins(self._floating, held))
        self._reacts = held | (C != 0).any(axis=0)
        self._factor = Factored(self._K[free][:, free], C[self._pushing][:, free])

    def solve(self, *loads: Load) -> list[FrameSolution]:
        """Solves one or more loads.

        Returns:
            One solution for each load.

        Raises:
            InvalidInput: for a load that does not fit the supports, naming it.
        """
        frame, free, supports = self.frame, self._free, self.supports
        pairs, n = supports.actuators, 6 * len(frame)
        applied, u = np.zeros((n, len(loads))), np.zeros((n, len(loads)))
        prescribed = np.zeros((len(pairs), len(loads)))
        for k, load in enumerate(loads):
            applied[:, k] = nodal_forces(frame, load)
            u[:, k] = self._given(load).ravel()
            if load.extension is not None:
                prescribed[:, k] = _finite(load.extension, (len(pairs),), "extension")
        if self._floating.size:
            _require_balance(self._floating, applied)
        pushing = self._pushing
        right, left = (applied - self._K @ u)[free], (prescribed - self._C @ u)[pushing]
        u[free], push = self._factor.solve(right, left)
        if self._floating.size:
            u -= _mean_motion(self._floating, u)
        reaction = self._K @ u - applied
        reaction[~self._reacts] = 0.0
        extension = self._C @ u
        force = np.zeros_like(prescribed)
        for a, (first, second) in enumerate(pairs):
            force[a] = frame.axis(first, second) @ reaction[6 * second :][:3]
        force[pushing] = push
        _require_extension(extension, prescribed, loads)
        of_nodes = (np.reshape(each.T, (-1, len(frame), 6)) for each in (u, reaction))
        given = (load.gravity for load in loads)
        each = zip(*of_nodes, force.T, extension.T, given)
        return [FrameSolution(frame, supports, *found) for found in each]

    def _given(self, load: Load) -> np.ndarray:
        shape = (len(self.frame), 6)
        if load.displacement is None:
            return np.zeros(shape)
        given = _finite(load.displacement, shape, "displacement")
        loose = (given != 0) & ~self.supports.held
        if loose.any():
            node, motion = np.argwhere(loose)[0]
            raise InvalidInput(
                f"load: {MOTIONS[motion]} of node {node} is prescribed but not held; "
                "hold it in the supports"
            )
        return given


def solve_frame(frame: Frame, supports: Supports, load: Load) -> FrameSolution:
    """A frame's linear equilibrium under one load; see :class:`FactoredFrame`."""
    return FactoredFrame(frame, supports).solve(load)[0]


def actuator_rows(frame: Frame, supports: Supports) -> np.ndarray:
    """C (A, 6 N): extension of each actuator per unit of each nodal motion."""
    rows = np.zeros((len(supports.actuators), len(frame), 6))
    for row, (first, second) in zip(rows, supports.actuators):
        axis = frame.axis(first, second)
        row[first, :3], row[second, :3] = -axis, axis
    return rows.reshape(len(rows), 6 * len(frame))


def nodal_forces(frame: Frame, load: Load) -> np.ndarray:
    """Forces on the nodes, including the beams' weight (6 N,) [N, N m].

    Raises:
        InvalidInput: for a force or gravity of a wrong shape, or not finite.
    """
    forces = np.zeros((len(frame), 6))
    if load.force is not None:
        forces += _finite(load.force, forces.shape, "force")
    if load.gravity is not None:
        elements = frame.elements
        weight = elements.weight(_finite(load.gravity, (3,), "gravity"))
        ends = elements.to_world(weight).reshape(-1, 6)
        np.add.at(forces, frame.beams.ravel(), ends)
    return forces.ravel()


def remaining_motions(frame: Frame, supports: Supports) -> np.ndarray:
    """Unconstrained rigid motions of the frame's pieces as columns (6 N, k).

    Raises:
        InvalidInput: when there are some and `floating` is false.
    """
    size = np.ptp(frame.positions, axis=0).max()
    # Rotations by 1/size move nodes by about one, as displacements do.
    rigid = (frame.rigid_motions() / ([1.0] * 3 + [size] * 3)).reshape(-1, 6, 6)
    found = []
    for piece in range(frame.pieces.max() + 1):
        mine = frame.pieces == piece
        rows = rigid[mine][supports.held[mine]]
        left = scipy.linalg.null_space(rows, rcond=1e-9) if len(rows) else np.eye(6)
        if left.size and not supports.floating:
            raise InvalidInput(
                f"the piece with node {np.argmax(mine)} is still free in "
                f"{left.shape[1]} rigid motions; hold more of it, or let it float"
            )
        motion = np.zeros((len(frame), 6, left.shape[1]))
        motion[mine] = rigid[mine] @ left
        found.append(motion.reshape(6 * len(frame), left.shape[1]))
    return np.hstack(found)


def _pins(floating: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Pins that remove the unconstrained rigid motions; their reactions are zero."""
    pins = np.zeros(len(held), dtype=bool)
    if floating.size:
        unheld = np.flatnonzero(~held)
        _, pivots = scipy.linalg.qr(floating[unheld].T, mode="r", pivoting=True)
        pins[unheld[pivots[: floating.shape[1]]]] = True
    return pins


def _mean_motion(floating: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The component of u along the rigid motions, by least squares of displacements."""
    counts = np.tile([1.0] * 3 + [0.0] * 3, len(u) // 6)[:, None]
    return floating @ np.linalg.lstsq(floating * counts, u * counts, rcond=None)[0]


def _require_balance(floating: np.ndarray, applied: np.ndarray) -> None:
    out = np.abs(floating.T @ applied).max(axis=0)
    scale = np.abs(floating).T @ np.abs(applied)
    if (out > 1e-9 * scale.max(axis=0)).any():
        raise InvalidInput(
            "load: the frame floats, and its forces and weight do not balance; "
            "hold it or balance them"
        )


def _require_extension(got, prescribed, loads) -> None:
    for k, load in enumerate(loads):
        if load.extension is None:
            continue
        off = np.abs(got[:, k] - prescribed[:, k])
        if (off > 1e-8 * np.abs(prescribed[:, k]).max(initial=1e-12)).any():
            raise InvalidInput(
                f"load: actuator {np.argmax(off)} has held ends, which prescribe an "
                f"extension of {got[np.argmax(off), k]:.6g} m; leave the other out"
            )


def _finite(values, shape: tuple[int, ...], name: str) -> np.ndarray:
    return check_value(f"load: {name}", values, array(shape))
