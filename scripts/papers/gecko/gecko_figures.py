"""The gecko paper's figures 5 to 10, and the numbers in them.

python scripts/papers/gecko/gecko_figures.py -o out      # some 20 s of processor time
python scripts/papers/gecko/gecko_figures.py -o out --quick

Fig. 6 is solved by SLSQP too, stopped after few iterations and at its end: feet that
are held turn in the former only. Two studies go with the figures: how much the robot
turns for other coefficients c1 of the gait law, and how far both robots come in twelve
poses of a straight gait, from rest (limbs straight) and settled.

Source of the layouts: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020).

JSON: fig10, course_m.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.checks import check_value, whole
from drakebots.core.files import check_output
from drakebots.plots import check_ending, save
from drakebots.robots import gecko
from drakebots.robots.gecko import draw_robot
from drakebots.robots.gecko.engines import (
    check_gait,
    cycle_motion,
    pose_step,
    walk,
)
from drakebots.robots.gecko.generator import (
    COMPONENTS,
    BestGait,
    MotionPolynomial,
    best_gait,
    check_point,
    cycle_count,
    distance,
)
from drakebots.robots.gecko.model import (
    FEET,
    LEGS,
    LIMBS,
    Gecko,
    Pose,
    fixation,
    gait_law,
    pose_at,
)
from drakebots.robots.gecko.model import gecko as make_gecko
from drakebots.robots.gecko.plots import (
    CM,
    FOOT_COLOURS,
    HEADING_COLOUR,
    LIMB_COLOURS,
    TARGET_COLOUR,
    draw_arrow,
)
from drakebots.robots.gecko.simulate import paper_course

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

LAW_Q1 = tuple(np.radians([-90.0, -70.0, -50.0, 50.0, 70.0, 90.0]).tolist())
LAW_Q2 = (-0.5, -0.25, 0.0, 0.25, 0.5)
"""The gaits of Fig. 5: step lengths with their signs [rad], steerings."""

FIG_10 = (((0.35, -0.20), 1), ((-0.35, -0.20), 1), ((-0.35, -0.20), 4))
"""Targets [m] and horizons of Fig. 10."""

START_10 = tuple(np.radians([90.0, 0.0, -90.0, 90.0, 0.0]).tolist())
"""The limbs at the start of Fig. 10 [rad]."""

# When the phases begin, as shares of the cycle: fixing and releasing take little.
_SHARES = {"1a": 0.0, "1b": 0.05, "2a": 0.5, "2b": 0.55, "3a": 1.0}


# --- Fig. 5: the gait law ------------------------------------------------------


def plot_gait_law(path: str | Path, *, q1=LAW_Q1, q2=LAW_Q2) -> Path:
    """Fig. 5: the poses of the gait law; nothing is simulated.

    Args:
        path: file to write.
        q1: bending angles of the torso, with the half cycle's sign [rad].
        q2: steerings.

    Raises:
        InvalidInput: for a file ending that is no picture's.
    """
    check_ending(path)
    robot = make_gecko()
    figure = Figure(figsize=(1.6 * len(q1) + 0.9, 1.6 * len(q2) + 0.9))
    figure.set_layout_engine("constrained")
    axis, pitch = figure.subplots(), 28.0
    for i, bend in enumerate(q1):
        for j, steering in enumerate(q2):
            alpha = gait_law(bend, steering, leg_bend=robot.leg_bend)
            place = np.array([i, j]) * pitch / CM
            middle = pose_at(robot, alpha, np.pi / 2).markers[[1, 4]].mean(axis=0)
            draw_robot(axis, pose_at(robot, alpha, np.pi / 2, place - middle))
    axis.set_aspect("equal")
    axis.set_xticks(pitch * np.arange(len(q1)), [f"{v:.0f}" for v in np.degrees(q1)])
    axis.set_yticks(pitch * np.arange(len(q2)), [f"{v:g}" for v in q2])
    axis.set(xlabel="q1 [deg], with the half cycle's sign", ylabel="steering q2")
    axis.set_title("poses of the gait law, eq. (14)", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    return save(figure, path)


# --- Fig. 6: a cycle -----------------------------------------------------------
#
#     1a  all feet fixed, in the pose the last half cycle ended with
#     1b  feet FL and RR released: their legs are free to follow the law
#     2a  moved to +q1, and all feet fixed
#     2b  feet FR and RL released
#     3a  moved to -q1: the pose 1a, one cycle later
#
# Section 3.2 of the paper.

PHASES = ("1a", "1b", "2a", "2b", "3a")


class CyclePhases(NamedTuple):
    """The poses of a cycle, and the gait law's angles.

    Attributes:
        poses: poses in the order of PHASES.
        reference: angles of the gait law in each phase (5, 5) [rad].
        held: whether each foot is fixed in each phase (5, 4) of bool.
        moving: whether each foot is fixed in each half cycle's motion (2, 4).
    """

    poses: tuple[Pose, ...]
    reference: np.ndarray
    held: np.ndarray
    moving: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Angles (5, 5) [rad], by phase and limb."""
        return np.array([pose.alpha for pose in self.poses])

    @property
    def off_law(self) -> np.ndarray:
        """alpha - reference (5, 5) [rad], by phase and limb."""
        return self.alpha - self.reference

    @property
    def foot_headings(self) -> np.ndarray:
        """phi (5, 4) [rad], by phase and foot."""
        return np.array([pose.foot_headings for pose in self.poses])

    @property
    def turn(self) -> np.ndarray:
        """Rotation of each foot while it was fixed (4,) [rad].

        FR and RL from 1a to 2a, FL and RR from 2a to 3a.
        """
        phi = self.foot_headings
        halves = np.array([phi[2] - phi[0], phi[4] - phi[2]])
        return np.where(self.moving, halves, 0.0).sum(axis=0)

    def table(self) -> list[dict[str, float | str]]:
        """By foot, in deg: distance of its leg from the law, and its rotation."""
        legs = np.degrees(self.off_law[:, LEGS])
        turn = np.degrees(self.turn)
        return [
            {
                "foot": foot,
                **{f"off_law_{p}_deg": float(legs[k, i]) for k, p in enumerate(PHASES)},
                "turn_while_held_deg": float(turn[i]),
            }
            for i, foot in enumerate(FEET)
        ]


def cycle_phases(
    q1: float = np.radians(80.0),
    q2: float = -0.5,
    *,
    robot: Gecko | None = None,
    settle: int = 4,
) -> CyclePhases:
    """The phases of the cycle after `settle` others.

    With all feet fixed the pose stays. A release is a pose step with the new
    fixation and the old reference; then follows one with the new reference.

    Args:
        q1: step length [rad].
        q2: steering.
        robot: robot; by default the small one with the weights of Fig. 6.
        settle: number of cycles before, >= 0.

    Raises:
        InvalidInput: for q1, q2 or settle out of range.
        NoSolution: when a pose step fails.
    """
    q1, q2 = check_gait(q1, q2)
    settle = check_value("settle", settle, whole(0))
    robot = robot or make_gecko(weights="single_cycle")
    law = {sign: gait_law(sign * q1, q2, leg_bend=robot.leg_bend) for sign in (1, -1)}
    pose = pose_at(robot, law[-1])
    for _ in range(settle + 1):
        poses = [pose]
        for sign in (1, -1):
            released = pose_step(robot, poses[-1], law[-sign], fixation(sign)).pose
            moved = pose_step(robot, released, law[sign], fixation(sign)).pose
            poses += [released, moved]
        pose = poses[-1]
    every, first, second = np.ones(len(FEET), bool), fixation(1), fixation(-1)
    return CyclePhases(
        poses=tuple(poses),
        reference=np.array([law[s] for s in (-1, -1, 1, 1, -1)]),
        held=np.array([every, first, every, second, every]),
        moving=np.array([first, second]),
    )


def plot_cycle(
    path: str | Path,
    q1: float = np.radians(80.0),
    q2: float = -0.5,
    *,
    weights: str = "single_cycle",
    settle: int = 4,
) -> Path:
    """Fig. 6: angles, orientations and poses over one cycle, beside the law.

    Args:
        path: file to write.
        q1: step length [rad].
        q2: steering.
        weights: name of the pose step's weights.
        settle: number of cycles before the one shown.

    Raises:
        InvalidInput, UnknownName: for q1, q2, weights or a file ending.
    """
    check_ending(path)
    cycle = cycle_phases(q1, q2, robot=make_gecko(weights=weights), settle=settle)
    figure = Figure(figsize=(9, 9.6), layout="constrained")
    grid = figure.add_gridspec(3, 5, height_ratios=(1.3, 1.6, 1.6))
    shared = None
    for k, name in enumerate(PHASES):
        axis = shared = figure.add_subplot(grid[0, k], sharex=shared, sharey=shared)
        draw_robot(axis, cycle.poses[k], held=cycle.held[k], width=2.2)
        axis.set_aspect("equal")
        axis.axis("off")
        axis.set_title(name, fontsize=10)
    for row, draw in ((1, _draw_angles), (2, _draw_orientations)):
        axis = figure.add_subplot(grid[row, :])
        draw(axis, cycle)
        for name, share in _SHARES.items():
            axis.axvline(100 * share, color="0.8", lw=0.8, zorder=0)
            if row == 1:
                axis.text(
                    100 * share, 1.01, name, transform=axis.get_xaxis_transform(),
                    ha="center", fontsize=8, color="0.4",
                )  # fmt: skip
        axis.set_xlim(-1, 101)
        axis.legend(
            fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False
        )
    axis.set_xlabel("cycle [%]")
    figure.suptitle(
        f"q1 = {np.degrees(q1):g} deg, q2 = {q2:g}: pose step (solid), gait law "
        "(dotted), foot free (dashed)",
        fontsize=11,
    )
    return save(figure, path)


def _spans(cycle: CyclePhases, foot: int | None):
    """Drawn pieces (x in %, rows of phases, whether the foot is fixed)."""
    x = {name: 100 * share for name, share in _SHARES.items()}
    pieces = []
    for half, (a, b, c) in enumerate(((0, 1, 2), (2, 3, 4))):
        held = foot is None or bool(cycle.moving[half, foot])
        first, second, third = (x[PHASES[k]] for k in (a, b, c))
        pieces.append(((first, second), (a, a), True))
        # The release is a jump.
        pieces.append(((second, second, third), (a, b, c), held))
    return pieces


def _draw_spans(axis, cycle, values, color, foot, label) -> None:
    for x, rows, held in _spans(cycle, foot):
        style = "-" if held else (0, (3, 1.5))
        axis.plot(x, values[list(rows)], color=color, ls=style, lw=1.8, label=label)
        label = None


def _draw_angles(axis, cycle: CyclePhases) -> None:
    alpha, law = np.degrees(cycle.alpha), np.degrees(cycle.reference)
    x = [100 * _SHARES[name] for name in PHASES]
    for i, (limb, color) in enumerate(zip(LIMBS, LIMB_COLOURS, strict=True)):
        foot = None if limb == "torso" else FEET.index(limb)
        _draw_spans(axis, cycle, alpha[:, i], color, foot, f"alpha {limb}")
        axis.plot(x, law[:, i], ":", color=color, lw=1.4, alpha=0.8)
    axis.set_ylabel("bending [deg]")


def _draw_orientations(axis, cycle: CyclePhases) -> None:
    """Rear feet are shown minus 180 deg, so that all curves are close together."""
    phi = np.degrees(cycle.foot_headings) - [0, 0, 180, 180]
    for i, (foot, color) in enumerate(zip(FEET, FOOT_COLOURS, strict=True)):
        label = f"phi {foot}" + (" - 180" if i > 1 else "")
        _draw_spans(axis, cycle, phi[:, i], color, i, label)
        # The law was derived with fixed feet that do not turn.
        for half, (a, c) in enumerate(((0, 2), (2, 4))):
            if cycle.moving[half, i]:
                x = [100 * _SHARES[PHASES[k]] for k in (a, c)]
                axis.plot(x, [phi[a, i]] * 2, ":", color=color, lw=1.4, alpha=0.8)
    heading = np.degrees([pose.heading for pose in cycle.poses])
    _draw_spans(axis, cycle, heading, HEADING_COLOUR, None, "eps")
    axis.set_ylabel("orientation [deg]")


def stopped_early(iterations=(1, 2, 4, 8, 500)) -> list[dict]:
    """Fig. 6 by SLSQP on the raw norms, stopped after some iterations.

    Both half cycles of the settled cycle, from the same poses as ours: objective, and
    rotation of the two feet that are held [deg]; the last row of each is ours.
    """
    slsqp, robot = import_module("gecko").slsqp, make_gecko(weights="single_cycle")
    q1, q2, rows = np.radians(80.0), -0.5, []
    pose = walk(robot, q1, q2, 8)[-1]
    for sign in (1, -1):
        hold = np.array(fixation(sign), bool)
        law = gait_law(sign * q1, q2, leg_bend=robot.leg_bend)
        ours = pose_step(robot, pose, law, hold)
        found = {f"SLSQP, {n}": slsqp(pose, law, hold, robot, n) for n in iterations}
        found["ours"] = ours.objective, ours.drift, ours.pose
        for name, (objective, _, there) in found.items():
            turn = np.degrees(there.foot_headings - pose.foot_headings)[hold]
            rows.append({"half": sign, "by": name, "objective": float(objective)})
            rows[-1]["held_feet_turn_deg"] = turn.round(2).tolist()
        pose = ours.pose
    return rows


# --- Figs. 8 and 9: a gait in detail, and what the generator expects of it ------


def plot_detail(path: str | Path, q1: float = np.radians(90.0), q2=0.3) -> Path:
    """Fig. 8: a cycle of a gait, simulated, and its motion beside Table 3's.

    Raises:
        InvalidInput: for q1, q2 or a file ending.
    """
    check_ending(path)
    cycle = cycle_motion(make_gecko(), q1, q2)
    figure = Figure(figsize=(6.4, 6.4), layout="constrained")
    axis, first = figure.subplots(), cycle.poses[0]
    for pose, strength in zip(cycle.poses, (0.25, 0.5, 1.0)):
        draw_robot(axis, pose, alpha=strength, width=3)
    table = MotionPolynomial.table_3().motion(q1, q2)
    simulated = np.array([cycle.rotation, cycle.forward, cycle.left])
    for name, motion, color in (
        ("pose step", simulated, HEADING_COLOUR),
        ("Table 3, the measured robot", table, TARGET_COLOUR),
    ):
        c, s = np.cos(first.heading), np.sin(first.heading)
        end = first.position + np.array([[c, -s], [s, c]]) @ motion[1:]
        ahead = first.heading + motion[0]
        tip = CM * end + 8 * np.array([np.cos(ahead), np.sin(ahead)])
        draw_arrow(axis, CM * first.position, CM * end, color)
        label = (
            f"{name}: {np.degrees(motion[0]):.1f} deg, {CM * motion[1]:.1f} cm "
            f"forward, {CM * motion[2]:.1f} cm to the left"
        )
        axis.plot(*np.transpose([CM * end, tip]), color=color, lw=3, label=label)
    axis.set(xlabel="x [cm]", ylabel="y [cm]", aspect="equal")
    axis.set_title(f"a cycle of ({np.degrees(q1):.0f} deg, {q2:g}), settled")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
    return save(figure, path)


def plot_prediction(path: str | Path, *, case=FIG_10[2]) -> Path:
    """Fig. 9: where the generator expects the robot after 1..n cycles, fainter later.

    Arrows are the displacements of eqs. (17) and (18), dashed is the distance d_n.

    Args:
        path: file to write.
        case: target in the robot's frame [m], and horizon n.
    """
    check_ending(path)
    (target, n), model, robot = case, MotionPolynomial.table_3(), make_gecko()
    best = best_gait(target, n, model)
    start = walk(robot, best.q1, best.q2, 8)[-1]
    figure = Figure(figsize=(6.4, 6.4), layout="constrained")
    axis, last = figure.subplots(), np.zeros(2)
    for k in range(n + 1):
        reached, turned = np.zeros(2), 0.0
        if k:
            reached, turned = model.predict(best.q1, best.q2, k)
        strength = 1 - 0.75 * k / n
        pose = pose_at(robot, start.alpha, float(turned), reached)
        draw_robot(axis, pose, alpha=strength, width=2.4)
        if k:
            draw_arrow(axis, CM * last, CM * reached, HEADING_COLOUR)
        axis.annotate(f"{k}", CM * reached, (4, 4), textcoords="offset points")
        last = reached
    axis.plot(*(CM * np.array(target)), "*", ms=14, color=TARGET_COLOUR)
    axis.plot(*(CM * np.transpose([last, target])), "--", color=TARGET_COLOUR)
    axis.set(xlabel="forward [cm]", ylabel="left [cm]", aspect="equal")
    axis.set_title(
        f"expected after 0 to {n} cycles of ({np.degrees(best.q1):.0f} deg, "
        f"{best.q2:.2f}); d_{n} = {CM * best.distance:.1f} cm (dashed)",
        fontsize=11,
    )
    return save(figure, path)


# --- studies: the coefficient c1, and the way of twelve poses -------------------


def leg_bends(coefficients=(0.5, 0.75, 1.0, 1.25, 1.5)) -> list[dict]:
    """Mean rotation and distance per cycle for coefficients c1 of the gait law.

    Over 12 gaits, q1 = 60 to 90 deg, q2 = +-0.2 and +-0.4.
    """
    gaits = list(product(np.radians([60, 75, 90]), (-0.4, -0.2, 0.2, 0.4)))
    rows = []
    for c1 in coefficients:
        robot = replace(make_gecko(), leg_bend=c1)
        moved = [cycle_motion(robot, *gait) for gait in gaits]
        far = [np.hypot(each.forward, each.left) for each in moved]
        turn = np.degrees(np.mean([abs(each.rotation) for each in moved]))
        rows.append({"c1": c1, "turn_deg": float(turn), "cm": CM * float(np.mean(far))})
    return rows


def twelve_poses() -> list[dict]:
    """Way of straight gaits in 12 poses [cm], from rest and settled, both robots."""
    rows = []
    for size, q1 in product(("small", "large"), np.radians([50.0, 60, 70, 80, 90])):
        robot = make_gecko(size)
        rest = walk(robot, q1, 0.0, 12, start=pose_at(robot, np.zeros(5)))
        settled = walk(robot, q1, 0.0, 20)[-13:]
        rows.append({"robot": size, "q1_deg": float(np.degrees(q1))})
        for name, poses in (("from_rest", rest), ("settled", settled)):
            way = poses[-1].position - poses[0].position
            rows[-1][f"{name}_cm"] = CM * float(np.linalg.norm(way))
    return rows


# --- Fig. 10: distances --------------------------------------------------------


def minima() -> dict:
    """Fig. 10: the gaits that get closest, with both readings of eq. (19)."""
    table = MotionPolynomial.table_3()
    found = {}
    for name, (target, n) in zip("ABC", FIG_10):
        for which in ("paper", "corrected"):
            best = best_gait(target, n, table, sum=which)
            found[f"{name}, {which}"] = {
                "q1_deg": float(np.degrees(best.q1)),
                "q2": best.q2,
                "d_cm": 100 * best.distance,
            }
    return found


def plot_distance(
    path: str | Path,
    *,
    sum: str = "corrected",
    cases=FIG_10,
    robot: Gecko | None = None,
) -> Path:
    """Fig. 10: d_n over the gaits with its minimum, and that gait walked.

    Args:
        path: file to write.
        sum: reading of eq. (19), "corrected" or "paper".
        cases: targets in the robot's frame [m] and horizons.
        robot: robot that walks; by default the small one.

    Raises:
        UnknownName, InvalidInput: for a sum, target, horizon or file ending.
    """
    check_ending(path)
    robot, model = robot or make_gecko(), MotionPolynomial.table_3()
    figure = Figure(figsize=(3.9 * len(cases), 7.6), layout="constrained")
    axes = figure.subplots(2, len(cases), squeeze=False)
    for k, (target, n) in enumerate(cases):
        best = best_gait(target, n, model, sum=sum)
        shown = _draw_distance(axes[0, k], target, n, model, sum, best)
        figure.colorbar(shown, ax=axes[0, k], shrink=0.85, label="d_n [cm]")
        axes[0, k].set_title(
            f"{chr(65 + k)}: target ({CM * target[0]:g}, {CM * target[1]:g}) cm, "
            f"n = {n}\nmin d = {CM * best.distance:.1f} cm at "
            f"({np.degrees(best.q1):.0f} deg, {best.q2:.2f})",
            fontsize=9,
            pad=11,
        )
        _draw_walk(axes[1, k], robot, target, n, best)
    terms = cycle_count(1, sum)
    figure.suptitle(
        f"distance d_n after n cycles, motion of Table 3, sum of eq. (19): {sum} "
        f"({'n' if terms == 1 else 'n + 1'} displacements)",
        fontsize=11,
    )
    return save(figure, path)


def _draw_distance(axis, target, n: int, model, sum: str, best: BestGait):
    q1 = np.linspace(*model.domain.q1, 81)
    q2 = np.linspace(*model.domain.q2, 101)
    d = CM * distance(check_point(target), q1[:, None], q2[None, :], n, model, sum=sum)
    shown = axis.pcolormesh(q2, np.degrees(q1), d, cmap="RdYlGn_r", shading="gouraud")
    axis.contour(q2, np.degrees(q1), d, 10, colors="k", linewidths=0.4, alpha=0.5)
    axis.plot(
        best.q2, np.degrees(best.q1), "o", ms=13, mfc="none", mec="purple", mew=2.5,
        clip_on=False, zorder=9,
    )  # fmt: skip
    axis.set(xlabel="q2", ylabel="q1 [deg]")
    return shown


def _draw_walk(axis, robot: Gecko, target, n: int, best: BestGait) -> None:
    poses = walk(robot, best.q1, best.q2, 2 * n, start=pose_at(robot, START_10))
    for k, pose in enumerate(poses):
        draw_robot(axis, pose, alpha=0.25 + 0.75 * k / len(poses), width=1.8)
    front = CM * np.array([pose.position for pose in poses])
    axis.plot(*front.T, color=LIMB_COLOURS[2], lw=1, ls=":")
    last = poses[-1]
    ahead = np.array([np.cos(last.heading), np.sin(last.heading)])
    draw_arrow(axis, front[-1], front[-1] + 6 * ahead, HEADING_COLOUR)
    axis.plot(*(CM * np.array(target)), "*", ms=13, color=TARGET_COLOUR)
    left = CM * float(np.linalg.norm(last.position - target))
    axis.set_title(f"simulated, n = {n}: {left:.1f} cm left", fontsize=9)
    axis.set(xlabel="x [cm]", ylabel="y [cm]")
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.06)


def main(argv: Sequence[str] | None = None) -> dict:
    """Draws the figures; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="Fig. 10 only")
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    args = parser.parse_args(argv)
    files = {
        name: args.output / f"gecko_{name}.png"
        for name in ("fig5", "fig6", "fig7", "fig8", "fig9", "fig10")
    }
    for path in files.values():
        check_output(path)
    facts = {"fig10": minima(), "course_m": paper_course()}
    print_table("Fig. 10: closest gaits", facts["fig10"])
    plot_distance(files["fig10"], sum="paper")
    if not args.quick:
        plot_gait_law(files["fig5"])
        plot_cycle(files["fig6"])
        plot_detail(files["fig8"])
        plot_prediction(files["fig9"])
        facts["fig6"] = cycle_phases().table()
        facts["fig6_stopped_early"] = stopped_early()
        facts["c1"], facts["twelve_poses"] = leg_bends(), twelve_poses()
        space = gecko.plan()
        gecko.plot_velocity_space(space, files["fig7"])
        motion = space.data.motion.values
        facts["fig7"] = {
            f"{name}_{unit}": (factor * motion[..., k]).round(3).tolist()
            for k, (name, unit, factor) in enumerate(
                zip(COMPONENTS, ("deg", "cm", "cm"), (180 / np.pi, 100, 100))
            )
        }
        print_table("Fig. 7: the fit", dict(space.metrics))
        print_table("Fig. 6: a cycle", {"table": facts["fig6"]})
        for name in ("fig6_stopped_early", "c1", "twelve_poses"):
            print_table(name, {str(k): row for k, row in enumerate(facts[name])})
    return parser.report(facts)


if __name__ == "__main__":
    with one_line_errors("gecko_figures"):
        main()
