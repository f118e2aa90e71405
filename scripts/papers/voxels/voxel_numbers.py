"""The numbers behind the voxel figures: planes of motion against the frame.

Rows and curves for the pictures in plots_voxel_loss.py, plots_voxel_planes.py and
plots_voxel_robot.py. Published values are Tebyani et al. (2022); the table of losses
was measured before, with another program (frame elements of SciPy, PFEA's sections).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import (
    Agreement,
    Control,
    PlaneCheck,
    agreement,
    check_plane,
    frame_motion,
    without_rigid_motion,
)
from drakebots.lattice.shape import Strut, block
from drakebots.robots.voxels.model import (
    ACTUATORS,
    FEET,
    FRONT,
    MARKERS,
    TARGETS,
    VoxelRobot,
)
from drakebots.robots.voxels.walk import paper_gait

PAPER_LOSS = 0.049
""""Only up to 4.9 % of displacement is lost to other modes", Fig. 2."""

Size = tuple[int, int, int]
Place = tuple[int, int, int]

LOSS_TABLE: dict[Size, tuple[Place, tuple[float | None, ...]]] = {
    (2, 1, 2): ((2, 1, 1), (0.0033, 0.0022, 0.001, 0.002)),
    (3, 1, 3): ((2, 1, 1), (0.0408, 0.0185, 0.012, None)),
    (4, 1, 4): ((4, 1, 3), (0.0461, 0.029, 0.012, 0.028)),
    (6, 1, 6): ((6, 1, 5), (0.114, 0.089, 0.024, None)),
    (8, 1, 8): ((8, 1, 7), (0.213, 0.177, 0.036, 0.17)),
    (12, 1, 12): ((12, 1, 11), (0.438, 0.38, 0.058, 0.37)),
    (2, 2, 2): ((2, 1, 1), (0.0040, 0.0027, 0.162, 0.002)),
    (4, 2, 4): ((4, 1, 3), (0.0467, 0.032, 0.123, None)),
    (4, 4, 4): ((4, 3, 3), (0.0442, 0.033, 0.124, 0.031)),
    (6, 6, 6): ((6, 5, 5), (0.117, 0.102, 0.103, None)),
    (8, 4, 8): ((8, 3, 7), (0.227, 0.20, 0.101, 0.19)),
}
"""Blocks, the actuator's lower node (it pushes z), and what was measured before at
L/d 42.4: largest and mean loss, largest motion of other layers, axial energy."""

FACTS = ("max_loss", "mean_loss", "neighbours_max", "axial_energy")

CANDIDATES: tuple[tuple[Size, Place], ...] = (
    ((4, 1, 4), (4, 1, 3)),
    ((4, 4, 4), (4, 3, 3)),
    ((4, 3, 3), (4, 1, 1)),
    ((4, 4, 3), (4, 1, 1)),
    ((4, 4, 3), (4, 3, 1)),
    ((4, 2, 3), (4, 1, 1)),
)
"""Blocks some four voxels wide, for the paper's 4.9 %."""


def strut_of(ratio: float, length: float) -> Strut:
    """A square strut of FERVOR's material with L/d = ratio, for L in m.

    Raises:
        InvalidInput: for a ratio that is not > 1.
    """
    if not (np.isfinite(ratio) and ratio > 1):
        raise InvalidInput(f"L/d must be > 1, got {ratio}")
    return Strut(length / ratio, length / ratio)


def checked(size: Size, node: Place, ratio: float | None = None) -> PlaneCheck:
    """A block with one actuator along z; ratio L/d, FERVOR's if None."""
    lattice = block(*size)
    strut = Strut() if ratio is None else strut_of(ratio, lattice.beam_length)
    return check_plane(lattice, Control(node, 2), strut)


def neighbours_max(check: PlaneCheck) -> float:
    """Largest component of a motion off the plane, as a share of the actuator's."""
    return float(np.abs(check.actual[np.isnan(check.loss)]).max(initial=0.0))


def loss_rows(sizes: Sequence[Size] | None = None) -> list[dict]:
    """The table of losses, ours beside what was measured before.

    Args:
        sizes: of `LOSS_TABLE`; None for all.

    Raises:
        InvalidInput: for a block that is not in the table.
    """
    rows = []
    for size in LOSS_TABLE if sizes is None else sizes:
        if tuple(size) not in LOSS_TABLE:
            raise InvalidInput(f"the table has no block {size}")
        node, facts = LOSS_TABLE[tuple(size)]
        check = checked(size, node)
        ours = (
            check.max_loss,
            check.mean_loss,
            neighbours_max(check),
            check.shares["axial"],
        )
        row: dict = {"block": "x".join(map(str, size)), "signs": check.signs_right}
        for name, value, fact in zip(FACTS, ours, facts):
            row[name], row[f"{name}_facts"] = value, fact
        rows.append(row)
    return rows


def candidate_rows() -> list[dict]:
    """Largest loss of blocks some four voxels wide at L/d 42.4, and of one large."""
    rows = [
        {
            "block": "x".join(map(str, size)),
            "actuator": list(node),
            "slenderness": 42.43,
            "max_loss": checked(size, node).max_loss,
        }
        for size, node in CANDIDATES
    ]
    large = checked((8, 4, 8), (8, 3, 7), 100.0)
    last = {"block": "8x4x8", "actuator": [8, 3, 7], "slenderness": 100.0}
    return [*rows, last | {"max_loss": large.max_loss}]


def dissipation(check: PlaneCheck) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Displacement left by distance from the actuator, as in Fig. 2.

    Returns:
        Distances (D,) [voxels]; mean and least share of the planes' displacement
        that nodes at that distance make (D,).
    """
    inside = ~np.isnan(check.loss)
    steps = np.unique(check.distance[inside])
    left = [1 - check.loss[inside & (check.distance == d)] for d in steps]
    return steps, np.array([v.mean() for v in left]), np.array([v.min() for v in left])


@dataclass(frozen=True, eq=False)
class LossMap:
    """Largest loss in blocks n x 1 x n, their actuator as central as it can be.

    Attributes:
        widths: n (W,) [voxels].
        ratios: L/d (R,), rising.
        loss: (W, R).
    """

    widths: np.ndarray
    ratios: np.ndarray
    loss: np.ndarray

    def ratio_at(self, loss: float) -> np.ndarray:
        """L/d at which each width's loss is that (W,); NaN outside the map."""
        found = []
        for row in self.loss:
            # Falls about as (L/d)^-2: straight on logarithmic axes.
            x, y = np.log(row[::-1]), np.log(self.ratios[::-1])
            found.append(np.interp(np.log(loss), x, y, np.nan, np.nan))
        return np.exp(found)

    def width_at(self, loss: float) -> np.ndarray:
        """The widest block of the map whose loss is at most that (R,); 0 if none."""
        good = self.loss <= loss
        return np.where(good, self.widths[:, None], 0).max(axis=0)


def loss_map(widths: Sequence[int], ratios: Sequence[float]) -> LossMap:
    """Losses of blocks over size and slenderness, by the frame.

    Raises:
        InvalidInput: for a width < 2 or an L/d that is not > 1.
    """
    if min(widths, default=0) < 2 or not len(ratios):
        raise InvalidInput("the map needs widths >= 2 voxels, and some L/d")
    ratios = np.sort(np.asarray(ratios, float))
    loss = []
    for n in map(int, widths):
        middle = 2 * (n // 2)
        node = (middle, 1, middle - 1)
        loss.append([checked((n, 1, n), node, r).max_loss for r in ratios])
    return LossMap(np.array(widths, int), ratios, np.array(loss))


@dataclass(frozen=True, eq=False)
class RobotTemplates:
    """The robot's gait by planes of motion and by the frame (Fig. 6).

    Attributes:
        robot: it.
        poses: of the actuators (K, 4) [m].
        frame: displacements of all nodes by the frame (K, N, 3) [m], without the
            rigid motion that brings the core nearest to the planes of motion.
        planes: by planes of motion (K, N, 3) [m].
        force: that the actuators push with (K, 4) [N].
    """

    robot: VoxelRobot
    poses: np.ndarray
    frame: np.ndarray
    planes: np.ndarray
    force: np.ndarray

    @cached_property
    def effectors(self) -> dict[str, int]:
        """Rows of the nodes compared: markers, back feet, the front's attachments."""
        named = {f"marker {name}": at for name, at in MARKERS.items()}
        named |= {f"foot {name}": FEET[name] for name in ("BL", "BR")}
        named |= {f"node {name}": at for name, (_, at) in FRONT.items()}
        return {name: self.robot.lattice.node(at) for name, at in named.items()}

    @property
    def agreement(self) -> Agreement:
        """Over poses and effectors."""
        rows = list(self.effectors.values())
        return agreement(self.planes[:, rows], self.frame[:, rows])

    def path(self, row: int, model: str) -> np.ndarray:
        """Of a node through the poses and back to the first (K + 1, 3) [m]."""
        way = getattr(self, model)[:, row]
        return np.vstack([way, way[:1]])


def robot_templates(strut: Strut = Strut()) -> RobotTemplates:
    """The paper's gait by planes of motion and by the frame of all ten voxels."""
    robot = VoxelRobot()
    lattice, poses = robot.lattice, paper_gait(robot.stroke).poses
    # The frame is linear: four solutions make all poses.
    units = [frame_motion(lattice, ACTUATORS, e, strut) for e in np.eye(len(ACTUATORS))]
    moved = np.array([unit.displacement[:, :3] for unit in units])
    frame = np.einsum("pm,mnk->pnk", poses, moved)
    planes = robot.displacements(poses)
    core = [lattice.node(n) for n in robot.core.nodes]
    frame = np.array(
        [without_rigid_motion(lattice, f, p, core) for f, p in zip(frame, planes)]
    )
    force = poses @ np.array([unit.actuator_force for unit in units])
    return RobotTemplates(robot, poses, frame, planes, force)


def targets_recovered() -> float:
    """Largest error of the gait found from its node motions [m]; Fig. 5's inverse."""
    robot, gait = VoxelRobot(), paper_gait()
    rows = [robot.lattice.node(w.node) for w in TARGETS]
    moved = robot.displacements(gait.poses)
    targets = {w.name: moved[:, row, w.axis] for w, row in zip(TARGETS, rows)}
    return float(np.abs(robot.inverse(targets).controls - gait.poses).max())
