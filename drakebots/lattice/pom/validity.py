"""How far planes of motion can be trusted: comparison with the beam frame.

**One plane** (:func:`check_plane`). Loss of a node in the plane that an actuator
drives, with both motions scaled to the actuator's own:

    loss = 1 - x . x_POM / |x_POM|^2

Beams are compliant along their axes where tilting is carried over many voxels, so the
loss grows with size and with the thickness d of the struts,

    largest loss = c(n) (d/L)^2,   c = 6, 85, 222, 448 for n = 2, 4, 6, 8,

in a block of n voxels across with its actuator in the middle. The rule holds for
losses well below 1 (it overestimates above 0.2). Source: ours, measured with the
frame; the paper's Fig. 2 shows one case with 4.9 %.

**All nodes, several actuators** (:func:`compare`). Planes of motion are accurate where
they are all the mechanisms there are: in blocks two or more voxels thick, and in
shapes made of such blocks. Where parts hang on one node, or are one voxel thick, those
parts rotate with what they hang on, and planes of motion have the wrong sign. The
elastic model includes all mechanisms. Source: ours, measured with slender struts (L/d
42). Of 1000 random shapes of 2 to 60 voxels with one to three actuators, planes of
motion hold in 20 and the elastic model in 566 more: no node is off by more than a
tenth of the stroke in any pose. docs/voxel.md has the ranges of slopes and forces,
which are samples, not bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drakebots.core.checks import between, check_value
from drakebots.lattice.frame import (
    FactoredFrame,
    FrameSolution,
    actuate,
    lattice_frame,
    solve_frame,
)
from drakebots.lattice.pom.elastic import ElasticPOM
from drakebots.lattice.pom.pom import Control, PlanesOfMotion, actuator_nodes
from drakebots.lattice.pom.tables import table
from drakebots.lattice.shape import (
    Lattice,
    Plane,
    Strut,
    find_mechanisms,
    rigid_motions,
)


def frame_motion(
    lattice: Lattice,
    actuators: Sequence[Control],
    u,
    strut: Strut = Strut(),
    convention: str = "free",
) -> FrameSolution:
    """The linear frame under actuators that change their length by -2 u.

    Args:
        lattice: the voxels.
        actuators: M of them; their nodes do not rotate.
        u: displacements of their lower nodes (M,) [m].
        strut: section and material of all beams.
        convention: how the actuators' nodes are held; see `frame.CONVENTIONS`.

    Raises:
        InvalidInput: for an actuator that does not fit the lattice, or another u.
        UnknownName: for another convention.
    """
    u = table(u, len(actuators), "u", "actuator")[0]
    frame = lattice_frame(lattice, strut)
    pairs = actuator_nodes(lattice, actuators)
    supports, load = actuate(frame, pairs, -2 * u, convention)
    return solve_frame(frame, supports, load)


def frame_response(
    lattice: Lattice,
    actuators: Sequence[Control],
    strut: Strut = Strut(),
    nodes=None,
) -> tuple[np.ndarray, np.ndarray]:
    """What each actuator does in the frame, seen from the body's mean pose.

    Args:
        lattice: the voxels.
        actuators: M of them; their nodes do not rotate.
        strut: section and material of all beams.
        nodes: rows of the nodes that make the body; by default all.

    Returns:
        Displacements of the nodes per unit of each u (M, N, 3), without the rigid
        motion that fits those nodes best; forces of the actuators per unit (M, M)
        [N/m], row i for u_i.

    Raises:
        InvalidInput: for an actuator that does not fit the lattice, or depends on
            the others.
    """
    frame, units = lattice_frame(lattice, strut), -2 * np.eye(len(actuators))
    pairs = actuator_nodes(lattice, actuators)
    both = [actuate(frame, pairs, extension) for extension in units]
    found = FactoredFrame(frame, both[0][0]).solve(*(load for _, load in both))
    still = np.zeros((len(lattice.nodes), 3))
    moved = [f.displacement[:, :3] for f in found]
    moved = [without_rigid_motion(lattice, motion, still, nodes) for motion in moved]
    return np.array(moved), np.array([f.actuator_force for f in found])


def without_rigid_motion(
    lattice: Lattice, motion: np.ndarray, reference: np.ndarray, nodes=None
) -> np.ndarray:
    """A motion minus the rigid motion that brings it nearest to a reference.

    Args:
        lattice: the voxels.
        motion, reference: displacements of the nodes (N, 3) [m].
        nodes: rows of the nodes that count; by default all.
    """
    rigid = rigid_motions(lattice).reshape(-1, 3, 6)
    nodes = np.arange(len(rigid)) if nodes is None else np.asarray(nodes)
    gap = (motion - reference)[nodes].ravel()
    share = np.linalg.lstsq(rigid[nodes].reshape(-1, 6), gap, rcond=None)[0]
    return motion - rigid @ share


@dataclass(frozen=True)
class Agreement:
    """Planes of motion against the frame, over several actuators and poses.

    Attributes:
        slope: least-squares factor, frame = slope * planes of motion.
        rms: root mean square of the difference [m].
        max: largest difference [m].
    """

    slope: float
    rms: float
    max: float


def agreement(expected: np.ndarray, actual: np.ndarray) -> Agreement:
    """The agreement of two sets of displacements of the same shape."""
    slope = float((expected * actual).sum() / (expected**2).sum())
    gap = actual - expected
    return Agreement(slope, float(np.sqrt((gap**2).mean())), float(np.abs(gap).max()))


HOLDS = 0.1
"""A model holds where no node is further off than this share of the stroke."""


@dataclass(frozen=True)
class Bound:
    """How far a reduced model can be off with these actuators.

    Each actuator's share of a node's error is known from the frame, so their sum
    bounds the node's error in every pose within the stroke.

    Attributes:
        error: largest error of a node in any pose within the stroke, as a share of
            the stroke.
        node: place of that node [half pitches].
        voxel: a voxel that it belongs to.
    """

    error: float
    node: tuple[int, int, int]
    voxel: tuple[int, int, int]

    def __str__(self) -> str:
        return f"off by up to {self.error:.1%} of the stroke, at voxel {self.voxel}"


def _bound(lattice: Lattice, model: np.ndarray, frame: np.ndarray) -> Bound:
    """The bound of a model by its and the frame's motions per unit (M, N, 3)."""
    off = np.zeros(len(lattice.nodes))
    for expected, actual in zip(model, frame):
        gap = without_rigid_motion(lattice, actual, expected) - expected
        off += np.linalg.norm(gap, axis=1)
    worst = int(np.argmax(off))
    voxel = lattice.voxels[lattice.voxel_of(worst)[0]]
    place = tuple(lattice.nodes[worst].tolist())
    return Bound(float(off[worst]), place, tuple(voxel.tolist()))


@dataclass(frozen=True)
class Comparison:
    """Both reduced models against the frame.

    Attributes:
        missed: number of mechanisms that planes of motion miss.
        planes: agreement of the displacements of planes of motion in the pose.
        elastic: agreement of the displacements of the elastic model in the pose.
        force: largest error of the elastic model's actuator forces in the pose, as a
            share of the largest force.
        planes_bound: error of planes of motion in all poses.
        elastic_bound: error of the elastic model in all poses.
    """

    missed: int
    planes: Agreement
    elastic: Agreement
    force: float
    planes_bound: Bound
    elastic_bound: Bound

    @property
    def advice(self) -> str:
        """The model to use, and how far it is off, in one line."""
        if self.planes_bound.error <= HOLDS:
            return f"planes of motion hold here: {self.planes_bound}"
        wrong = f"planes of motion do not hold: {self.planes_bound}"
        if self.elastic_bound.error <= HOLDS:
            return f"use the elastic model here ({self.elastic_bound}); {wrong}"
        return f"use the frame here; the elastic model is {self.elastic_bound}; {wrong}"

    def report(self) -> str:
        """The agreement of both models and the advice, for printing."""
        lines = [f"planes of motion miss {self.missed} mechanisms"]
        for name, a in (("planes of motion", self.planes), ("elastic", self.elastic)):
            lines.append(
                f"{name}: slope {a.slope:.3f}, rms {a.rms * 1e3:.3f} mm, "
                f"max {a.max * 1e3:.3f} mm"
            )
        lines.append(f"elastic forces within {self.force:.1%}")
        return "\n".join([*lines, self.advice])


def compare(
    lattice: Lattice, actuators: Sequence[Control], u, strut: Strut = Strut()
) -> Comparison:
    """Planes of motion and the elastic model against the frame.

    Args:
        lattice: the voxels, connected.
        actuators: M of them; their nodes do not rotate.
        u: displacements of their lower nodes in the pose (M,) [m].
        strut: section and material of all beams.

    Raises:
        InvalidInput: for actuators that do not fit the lattice, or another u.
    """
    u = table(u, len(actuators), "u", "actuator")[0]
    units = np.eye(len(actuators))
    planes = PlanesOfMotion(lattice, actuators).displacements(units)
    mechanisms = find_mechanisms(lattice)
    model = ElasticPOM(lattice, strut, mechanisms, mounts=actuators)
    elastic = model.move(actuators, units)
    moved, pushed = frame_response(lattice, actuators, strut)

    def agree(expected: np.ndarray) -> Agreement:
        at, motion = np.tensordot(u, expected, 1), np.tensordot(u, moved, 1)
        return agreement(at, without_rigid_motion(lattice, motion, at))

    error = np.abs(u @ elastic.force - u @ pushed).max() / np.abs(u @ pushed).max()
    return Comparison(
        len(mechanisms.missed),
        agree(planes),
        agree(elastic.displacement),
        float(error),
        _bound(lattice, planes, moved),
        _bound(lattice, elastic.displacement, moved),
    )


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
