"""Figs. 5 to 7: the walking robot, its gait, and its nodes' motion by both models.

Source of the layouts: Tebyani et al., "A Geometric Kinematic Model for Flexible
Voxel-Based Robots" (2022).

A module without a command: `voxel_figures.py` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drakebots.core.errors import FileProblem
from drakebots.lattice.pom import (
    Agreement,
    BodyFrame,
    Control,
    agreement,
    body_frame,
    frame_motion,
    inverse_kinematics,
    without_rigid_motion,
)
from drakebots.lattice.shape import Strut
from drakebots.plots import (
    MM,
    check_ending,
    draw_rods,
    draw_struts,
    frame,
    rod_colour,
    save,
)
from drakebots.robots.voxels import paper_gait
from drakebots.robots.voxels.model import (
    ACTUATORS,
    FEET,
    FRONT,
    MARKERS,
    VoxelRobot,
)

TARGETS = (
    Control((3, 4, 1), 2, "FL"),
    Control((4, 3, 1), 2, "FR"),
    Control((1, 3, 4), 1, "BL y"),
    Control((3, 1, 4), 0, "BR x"),
)
"""Node motions that determine the actuators: the heights of both front attachments,
and for each back foot the component that no other target determines."""

_STYLES = {
    "frame": {"color": "#8fb3de", "lw": 5, "solid_capstyle": "round"},
    "planes": {"color": "#c0182a", "lw": 1.4, "ls": "--", "marker": "o", "ms": 3.5},
}
_MARKER = "#7a2fa0"
_FEET_COLOURS = {"FL": "#e08e26", "FR": "#2a9d6f", "BL": "#1f5fa8", "BR": "#d1495b"}


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
        """Path of a node through the poses and back to the first (K + 1, 3) [m]."""
        path = getattr(self, model)[:, row]
        return np.vstack([path, path[:1]])


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
    rows = [robot.lattice.node(target.node) for target in TARGETS]
    axes = [target.axis for target in TARGETS]
    moved = robot.displacements(gait.poses)[:, rows, axes]
    found = inverse_kinematics(robot.core, ACTUATORS, TARGETS, moved)
    return float(np.abs(found.controls - gait.poses).max())


# --- the recording ----------------------------------------------------------

RECORDED = ("gb", "yb", "gr", "yr")
"""The markers of the authors' recording in its order, as their figure places them."""
_COUNTERCLOCKWISE = ("gb", "gr", "yr", "yb")


@dataclass(frozen=True, eq=False)
class Recording:
    """Recorded markers in the body's frame (Fig. 7).

    Attributes:
        names: of the markers, in their order.
        body: the markers.
        moved: displacements from each marker's mean (T, 4, 2) [m].
    """

    names: tuple[str, ...]
    body: BodyFrame
    moved: np.ndarray

    @property
    def half_range(self) -> np.ndarray:
        """Half the range of each marker along x and y (4, 2) [m], without the 2 % of
        the frames that stray most."""
        low, high = np.percentile(self.moved, (1, 99), axis=0)
        return (high - low) / 2


def read_recording(path: str | Path) -> Recording:
    """Markers from the authors' marks_cm.npy: (T, 4, 2) in cm, seen from above.

    The file has no licence, so it is not part of this repository; it lies in
    MotionCapture/ of the authors' public repository VOXELS.

    Raises:
        FileProblem: for a file that is no such table, or whose markers do not stay at
            a square of the robot's size.
    """
    try:
        measured = 1e-2 * np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FileProblem(path, f"is no recording of markers: {error}") from None
    if measured.ndim != 3 or measured.shape[1:] != (4, 2):
        raise FileProblem(
            path, f"must hold (T, 4, 2) markers [cm], not {measured.shape}"
        )
    half = VoxelRobot().pitch / 2
    for names in (RECORDED, _around(measured)):
        rest = half * np.array([MARKERS[name][:2] for name in names], float)
        body = body_frame(measured, rest)
        if np.abs(body.displacement).max() < half / 2:
            moved = body.displacement - body.displacement.mean(axis=0)
            return Recording(names, body, moved)
    raise FileProblem(path, f"its markers do not stay at a square of {2 * half:.3g} m")


def _around(measured: np.ndarray) -> tuple[str, ...]:
    """Names counterclockwise, from the first marker on."""
    x, y = (measured - measured.mean(axis=1, keepdims=True)).transpose(2, 0, 1)
    angle = np.arctan2(y, x)
    place = ((angle - angle[:, :1]) % (2 * np.pi)).mean(axis=0)
    return tuple(_COUNTERCLOCKWISE[k] for k in np.argsort(np.argsort(place)))


def plot_recording(recording: Recording, path: str | Path) -> Path:
    """Fig. 7: recorded markers, as they are and rescaled as the authors do.

    Args:
        recording: of `read_recording`.
        path: to write to.
    """
    check_ending(path)
    robot, factor = VoxelRobot(), recording.body.rescale
    planes = robot.displacements(paper_gait(robot.stroke).poses, MARKERS.values())
    planes = dict(zip(MARKERS, planes.transpose(1, 0, 2)))
    figure = Figure(figsize=(8.5, 8.8), layout="constrained")
    # The authors' panels: yr and gr above, yb and gb below.
    for k, name in enumerate(("yr", "gr", "yb", "gb")):
        axis, row = figure.add_subplot(2, 2, k + 1), recording.names.index(name)
        moved = MM * recording.moved[:, row]
        model = MM * np.vstack([planes[name], planes[name][:1]])[:, :2]
        axis.plot(*(factor * moved).T, color="#b9c6d8", lw=0.8, label="rescaled")
        axis.plot(*moved.T, color=_MARKER, lw=0.8, label="as recorded")
        axis.plot(*model.T, **_STYLES["planes"], label="planes of motion, 5 mm")
        across, along = MM * recording.half_range[row]
        axis.set_title(f"{name}: within {across:.1f}, {along:.1f} mm", fontsize=10)
        axis.set(xlabel="x [mm]", ylabel="y [mm]", xlim=(-8, 8), ylim=(-8, 8))
        axis.set_aspect("equal")
        axis.grid(alpha=0.3)
    shown = figure.axes[0].get_legend_handles_labels()
    figure.legend(*shown, fontsize=9, ncols=3, loc="outside lower center")
    figure.suptitle(f"markers in the body's frame; the authors' factor: {factor:.3f}")
    return save(figure, path)


# --- pictures ---------------------------------------------------------------


def plot_robot(templates: RobotTemplates, path: str | Path) -> Path:
    """Fig. 5: the robot from aside and from above, its eight poses, its feet.

    Args:
        templates: of `robot_templates`.
        path: to write to.
    """
    check_ending(path)
    figure = Figure(figsize=(14, 7.8))
    _draw_robot(figure.add_axes((0.0, 0.36, 0.4, 0.58), projection="3d"), templates)
    _draw_above(figure.add_axes((0.46, 0.44, 0.27, 0.5)), templates)
    _draw_traces(figure.add_axes((0.78, 0.44, 0.2, 0.5)), templates)
    steps = len(templates.poses)
    width = 0.94 / steps
    for k in range(steps):
        box = (0.035 + k * width, 0.0, 0.93 * width, 0.3)
        _draw_pose(figure.add_axes(box), templates, k)
    figure.text(
        0.5,
        0.31,
        "poses 1 to 8 by planes of motion: back feet in x and y, nodes of the front "
        "feet in z; arrows x 8",
        ha="center",
        fontsize=10,
    )
    return save(figure, path)


def _draw_robot(axis, templates: RobotTemplates) -> None:
    lattice = templates.robot.lattice
    places = lattice.positions
    draw_struts(axis, lattice, places)
    draw_rods(axis, lattice, places, ACTUATORS)
    for named, style in ((MARKERS, {"c": _MARKER}), (FEET, {"c": "#222"})):
        at = MM * places[[lattice.node(n) for n in named.values()]]
        axis.scatter(*at.T, s=46, depthshade=False, **style)
        for name, point in zip(named, at):
            lift = 12 if named is MARKERS else -16
            axis.text(*(point + np.array([0, 0, lift])), name, fontsize=9, ha="center",
                      color=style["c"], weight="bold")  # fmt: skip
    frame(axis, places, zoom=1.05)
    axis.set_title("2x2x2 core, two front voxels; it faces +x +y", fontsize=11)


def _draw_above(axis, templates: RobotTemplates) -> None:
    """The core and the front from above, with the actuators' planes."""
    lattice = templates.robot.lattice
    for beam in MM * lattice.positions[lattice.beams]:
        axis.plot(*beam[:, :2].T, color="#c3c8d0", lw=0.8, zorder=1)
    half = MM * lattice.pitch / 2
    for i, a in enumerate(ACTUATORS):
        colour = rod_colour(a.name, i)
        x, y, _ = a.node
        # It turns the squares across the axis that its push and even axis leave.
        if x % 2 == 0:
            axis.plot([0, 4 * half], [y * half] * 2, color=colour, lw=2.5, alpha=0.5)
        else:
            axis.plot([x * half] * 2, [0, 4 * half], color=colour, lw=2.5, alpha=0.5)
        axis.plot(x * half, y * half, "o", color=colour, ms=13, mec="#222", zorder=4)
    for name, at in MARKERS.items():
        axis.plot(at[0] * half, at[1] * half, "o", color=_MARKER, ms=7, zorder=5)
        axis.annotate(
            name,
            (at[0] * half, at[1] * half),
            xytext=(-13, 7),
            textcoords="offset points",
            color=_MARKER,
            fontsize=9,
        )
    for name, at in FEET.items():
        axis.plot(at[0] * half, at[1] * half, "o", mfc="none", mec="#222", ms=14,
                  ls="", mew=1.4, zorder=5)  # fmt: skip
        axis.annotate(name, (at[0] * half, at[1] * half), xytext=(9, -13),
                      textcoords="offset points", fontsize=9)  # fmt: skip
    axis.set_aspect("equal")
    axis.set(xlabel="x [mm]", ylabel="y [mm]")
    axis.set_title("from above: actuators and their planes", fontsize=11)


def _draw_traces(axis, templates: RobotTemplates) -> None:
    count = len(templates.poses)
    poses = MM * np.vstack([templates.poses, templates.poses[:1]])
    moment = np.arange(1, count + 2)
    reach = np.abs(poses).max()
    for i, a in enumerate(ACTUATORS):
        offset = -2.6 * reach * i
        axis.axhline(offset, color="#bbb", lw=0.7)
        axis.plot(moment, poses[:, i] + offset, "o-", color=rod_colour(a.name, i),
                  ms=4, lw=2)  # fmt: skip
    axis.set_yticks(
        [-2.6 * reach * i + s * reach for i in range(4) for s in (-1, 0, 1)],
        [f"{s * reach:+g}" if s else "0" for _ in range(4) for s in (-1, 0, 1)],
        fontsize=8,
    )
    axis.set_xticks(moment, [*range(1, count + 1), 1])
    axis.set(xlabel="pose", ylabel="lower node of the actuator [mm]")
    axis.set_title("the gait", fontsize=11)
    axis.grid(axis="x", alpha=0.3)


def _draw_pose(axis, templates: RobotTemplates, k: int) -> None:
    """Feet of a pose from above: arrows for the back, lift for the front."""
    lattice, moved = templates.robot.lattice, MM * templates.planes[k]
    places = MM * lattice.positions
    axis.plot(0, 0, alpha=0)
    for name, at in FEET.items():
        row = lattice.node(at)
        x, y = places[row, :2]
        colour = _FEET_COLOURS[name]
        axis.plot(x, y, "o", mfc="none", mec=colour, ms=9, mew=1.5)
        if name in FRONT:
            lift = moved[lattice.node(FRONT[name][1]), 2]
            up = lift > 0.1
            if abs(lift) > 0.1:
                axis.plot(x, y, "^" if up else "v", color=colour, ms=8)
            axis.text(x, y + 17, f"{name}\n{lift:+.0f}" if abs(lift) > 0.1 else name,
                      ha="center", fontsize=8, color=colour)  # fmt: skip
        else:
            axis.annotate("", (x + 8 * moved[row, 0], y + 8 * moved[row, 1]), (x, y),
                          arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2,
                                      "shrinkA": 0, "shrinkB": 0})  # fmt: skip
            axis.text(x, y - 62, name, ha="center", fontsize=8, color=colour)
    axis.set_xlim(-35, 235)
    axis.set_ylim(-45, 260)
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(f"pose {k + 1}", fontsize=10)


def plot_templates(templates: RobotTemplates, path: str | Path) -> Path:
    """Figs. 6 and 7: paths of the nodes by planes of motion and by the frame.

    Args:
        templates: of `robot_templates`.
        path: to write to.
    """
    check_ending(path)
    figure = Figure(figsize=(14, 6.2), layout="constrained")
    grid = figure.add_gridspec(2, 6, width_ratios=[1, 1, 1, 1, 0.08, 2.1])
    reach = 1.45 * MM * templates.robot.stroke
    for i, (name, row) in enumerate(templates.effectors.items()):
        axis = figure.add_subplot(grid[i // 4, i % 4])
        # Nodes that hold the front feet rise; all others move level.
        a, b = 0, 1
        if name.startswith("node"):
            # From the side where they stray most.
            a, b = int(np.ptp(templates.frame[:, row, :2], axis=0).argmax()), 2
        for model, style in _STYLES.items():
            path_mm = MM * templates.path(row, model)
            axis.plot(path_mm[:, a], path_mm[:, b], **style)
        axis.set_xlim(-reach, reach)
        axis.set_ylim(-reach, reach)
        axis.set_aspect("equal")
        axis.grid(alpha=0.3)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel(f"{'xyz'[a]} [mm]", fontsize=8)
        axis.set_ylabel(f"{'xyz'[b]} [mm]", fontsize=8)
        axis.tick_params(labelsize=7)
        ticks = MM * templates.robot.stroke * np.array([-1, 0, 1])
        axis.set_xticks(ticks)
        axis.set_yticks(ticks)
    _draw_agreement(figure.add_subplot(grid[:, 5]), templates)
    return save(figure, path)


def _draw_agreement(axis, templates: RobotTemplates) -> None:
    rows = list(templates.effectors.values())
    found = templates.agreement
    for k, (name, colour) in enumerate(zip("xyz", ("#c0182a", "#1f944d", "#1f5fcc"))):
        axis.plot(
            MM * templates.planes[:, rows, k].ravel(),
            MM * templates.frame[:, rows, k].ravel(),
            "osd"[k],
            color=colour,
            ms=5,
            alpha=0.6,
            label=name,
        )
    reach = 1.2 * MM * templates.robot.stroke
    axis.plot([-reach, reach], [-reach, reach], color="#888", lw=0.8, zorder=0)
    axis.set_aspect("equal")
    axis.set(xlabel="planes of motion [mm]", ylabel="frame [mm]")
    axis.grid(alpha=0.3)
    axis.plot([], [], **_STYLES["planes"], label="left: planes of motion")
    axis.plot([], [], **_STYLES["frame"], label="left: frame")
    axis.legend(fontsize=8, loc="upper left")
    axis.set_title(
        f"8 nodes, {len(templates.poses)} poses: slope {found.slope:.3f},\n"
        f"rms {MM * found.rms:.2f} mm, max {MM * found.max:.2f} mm",
        fontsize=11,
    )
