"""Step-by-step planning of skinned quad-robots (the paper: frame-by-frame, Table 1).

python scripts/bench/quad_planning.py            # the four robots, and the comparison
python scripts/bench/quad_planning.py --quick    # the beetle, condensed only

A step is everything between two states: assembly of skin and skeleton, the sparse
factorization with the glue's Schur complement, the maps of eq. (11), all QPs of the
contact flips, and the motion of skin and skeleton. Robots lift a foot as in the
library's `lift_single`, by inverse kinematics; times are means over the steps around
lift-off, without the first one.

"Without condensation" is a step of a single QP, (18): all scheduled contacts held,
torque limits and COP rows. Every flip would add another such QP to the uncondensed
side, and about a millisecond to ours, so the ratio of a whole QPCC is larger. There are
two ways:

* all unknowns (dq, du, lambda, tau, f) in the QP, eq. (2) as sparse equality rows,
  Clarabel at 1e-6: condensed_vs_uncondensed_ratio is the time of the step from assembly
  on over that of ours. (With the rows of (15)-(17) too, Clarabel stops with numerical
  errors at 14000 vertices; it solves them up to 3000.)
* eq. (10) by 3 g right-hand sides (in the table only), once and redone for 10 QPs.

JSON: beetle_frame_s, space_time_s,
reduced_model_speedup, reduced_model_torque_error, reduced_model_hz.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from measurement import Measurement, figure
from qpcc_uncondensed import UncondensedQp
from quad_replays import replay_figures
from skin_paper_systems import solve_right_sides

from drakebots.cli.output import print_table
from drakebots.core.errors import DrakebotsError, NoSolution
from drakebots.robots.quads.motion import library_motion
from drakebots.robots.quads.robot import feet_kinematics, load_planned, settled_state
from drakebots.robots.quads.space_time import (
    SpaceTime,
    nearest_poses,
    plan_space_time,
)
from drakebots.robots.quads.steps import (
    FREE,
    STICK,
    LabelledQp,
    StepOptions,
    StepPlanner,
    StepsProblem,
    StepTargets,
    make_planner,
    position_error,
)
from drakebots.skin.file import load_skinned
from drakebots.skin.reduced import (
    ReducedOptions,
    random_targets,
    train_on_random_motion,
)

sys.path.append(str(Path(__file__).parents[1] / "papers" / "quads"))
from quad_setting import around_lift_off
from reduced_error import measure_reduced, walk_targets

TARGETS = {"beetle": 0.32, "monster": 0.9, "lizard": 0.9, "cow": 0.9}
"""Seconds per step on two cores; the paper's: 3.2, 8.98, 8.41, 6.56."""
RATIO = 50.0
SPACE_TIME = 10.0
"""[s] on two cores; the paper's took about 40."""
AMPLITUDE = np.tile([0.27, 0.4, 0.3], 4)
"""Of the beetle's training motions: shoulder, knee, ankle [rad]."""
SPEEDUP, ERROR, RATE = 10.0, 0.01, 60.0
"""Of the reduced skin."""
REPLAYED = ("beetle", "trot", "monster")
"""Motions of scripts/bench/quad_replays.py that are replayed here; it has more."""
DT = 5e-3


def lift_off(name: str, steps: int, threads: int) -> tuple[StepPlanner, StepsProblem]:
    """A robot and the steps of its lift around lift-off."""
    robot = load_planned(name)
    quad = robot.quad
    motion = around_lift_off(library_motion("lift_single", quad), steps)
    inertia = quad.tree.inertia + robot.link_skin.inertia
    order = [motion.footfall.feet.index(foot) for foot in quad.feet]
    contact = motion.footfall.contact[:, order]
    poses = nearest_poses(quad, motion, np.arange(len(motion)), inertia)
    planner = make_planner(robot.skinned, DT, StepOptions(), threads=threads)
    return planner, StepsProblem(robot.coordinates.positions(poses.q), contact)


def timed(planner: StepPlanner, plan: StepsProblem) -> dict:
    """Time of the steps after the first, and statistics of their QPCCs."""
    state = settled_state(planner.stepper, plan.q_ref[0])
    memory, spent, parts, qps = planner.start(state), [], [], []
    residual, limits, dropped = 0.0, planner.torque_limits, 0
    for k in range(len(plan.q_ref) - 1):
        start = time.perf_counter()
        step = planner.step(state, memory, plan.goal(k))
        spent.append(time.perf_counter() - start)
        if not step.ok:
            raise RuntimeError(step.message)
        state, memory = step.state, step.memory
        parts.append(list(step.seconds.values()))
        qps.append(len(step.qpcc.iterates))
        residual = max(residual, step.qpcc.residual)
        dropped += bool(step.qpcc.dropped)
        if np.any(np.abs(step.qpcc.torques) > limits * (1 + 1e-9)):
            raise RuntimeError("a torque is beyond its limit")
    condense, flips, advance = np.mean(parts[1:], axis=0)
    return {
        "step [s]": float(np.mean(spent[1:])),
        "fastest step [s]": float(np.min(spent[1:])),
        "of it condensation [s]": float(condense),
        "of it QPCC [s]": float(flips),
        "of it advance [s]": float(advance),
        "QPs per step": float(np.mean(qps)),
        "most QPs": int(np.max(qps)),
        "steps whose COP rows had no solution": dropped,
        "worst complementarity [N]": float(residual),
        "skin vertices": len(planner.stepper.model.rest),
    }


def comparison(planner: StepPlanner, plan: StepsProblem) -> dict:
    """One step in three ways: condensed, all unknowns, eq. (10) for every QP."""
    stepper = planner.stepper
    state = settled_state(stepper, plan.q_ref[0])
    memory = planner.start(state)
    goal = plan.goal(0)
    planner.step(state, memory, goal)  # first calls compile and load
    start = time.perf_counter()
    ready = planner.prepare(state, memory, goal)
    qpcc = ready.qpcc
    labels = np.where(qpcc.near & qpcc.scheduled, STICK, FREE)
    found = LabelledQp(qpcc).solve(labels, rows=False)
    if found is None:
        raise RuntimeError("the held contacts' QP of the comparison has no solution")
    w = np.concatenate([found.torques, found.forces.ravel()])
    stepper.advance(state, ready.maps.solution(w))
    mine = time.perf_counter() - start

    start = time.perf_counter()
    coupled = stepper.equations(state)
    feet = feet_kinematics(stepper.plant, stepper.context, planner.feet)
    error = position_error(stepper.plant, stepper.context, goal.q)
    engine = UncondensedQp(
        ready.qpcc,
        coupled,
        planner.feet,
        feet,
        memory.anchors,
        StepTargets(error, memory.dq, memory.torques, goal.flat, goal.standing),
        planner.options.weights,
        planner.units,
        tolerance=1e-6,
    )
    other = engine.solve(labels, rows=False)
    whole = time.perf_counter() - start
    if other is None:
        raise RuntimeError("Clarabel did not solve the QP with all unknowns")
    gap = float(np.abs(other.torques - found.torques).max())

    start = time.perf_counter()
    coupled = stepper.equations(state)
    assembled = time.perf_counter() - start
    start = time.perf_counter()
    solve_right_sides(coupled, found.torques)
    sides = time.perf_counter() - start
    return {
        "condensed step, one QP [s]": mine,
        "all unknowns, one QP [s]": whole,
        "Clarabel's iterations": engine.iterations,
        "largest difference of a torque [N m]": gap,
        "all unknowns over condensed": whole / mine,
        "eq. (10) once [s]": sides,
        "eq. (10) for one QP over condensed": (assembled + sides) / mine,
        "eq. (10) for each of 10 QPs over condensed": (assembled + 10 * sides) / mine,
    }


def space_time_figures(quick: bool = False) -> dict[str, tuple[float, str, float]]:
    """Plans the beetle's long walk with its skin; {name: (value, unit, target)}.

    The second of two solves counts: the first compiles the program's functions.

    Args:
        quick: whether to plan a foot lift with a fourth of the knots, once.

    Raises:
        NoSolution: when the program does not converge.
    """
    robot = load_planned("beetle")
    motion = library_motion(
        "lift_single" if quick else "walk_long", robot.quad, skin=robot.link_skin
    )
    spacing = 20 if quick else 5
    problem = SpaceTime(robot.quad, motion, skin=robot.link_skin, knot_spacing=spacing)
    for _ in range(1 if quick else 2):
        start = time.perf_counter()
        plan = plan_space_time(problem)
        seconds = time.perf_counter() - start
    if not plan.ok:
        raise NoSolution("space-time program of the benchmark: did not converge")
    return {"space_time_s": (seconds, "s", SPACE_TIME)}


def reduced_skin_figures(quick: bool = False) -> dict[str, tuple[float, str, float]]:
    """Trains on random motions and measures on a walk; {name: (value, unit, target)}.

    Args:
        quick: use the small leg and few steps; the beetle takes minutes.
    """
    robot = load_skinned("skinned_leg" if quick else "beetle")
    rest = robot.joint_positions(robot.rest_positions)
    skin = train_on_random_motion(
        robot,
        ReducedOptions(),
        amplitude=0.4 if quick else AMPLITUDE,
        seeds=(2,) if quick else (2, 3),
        steps=40 if quick else 200,
    )
    targets = random_targets(rest, 0.3, 7) if quick else walk_targets(rest)
    figures, _ = measure_reduced(robot, skin, targets, steps=30 if quick else 300)
    return {
        "reduced_model_speedup": (figures["speedup"], "1", SPEEDUP),
        "reduced_model_torque_error": (figures["torque_error"], "1", ERROR),
        "reduced_model_hz": (1e3 / figures["reduced_ms"], "Hz", RATE),
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="a few steps of one robot, condensed only")
    parser.add_argument(
        "--robots", nargs="+", default=list(TARGETS), help="names of the robots"
    )
    parser.add_argument("--frames", type=int, default=20, help="steps per robot")
    parser.add_argument(
        "--threads", type=int, default=2, help="threads of the sparse solver"
    )
    parser.add_argument(
        "--no-comparison", action="store_true", help="skip the uncondensed step"
    )
    args = parser.parse_args(argv)
    frames = 6 if args.quick else args.frames
    names = args.robots[:1] if args.quick else args.robots
    result, ratio_of = {}, None
    for name in names:
        try:
            planner, plan = lift_off(name, frames, args.threads)
        except DrakebotsError as error:
            print(f"{name}: left out ({error})")
            continue
        rows = timed(planner, plan)
        print_table(f"{name}: steps around lift-off, {args.threads} threads", rows)
        short = name.rsplit("/", 1)[-1].removesuffix(".sdf")
        result[f"{short}_frame_s"] = figure(rows["step [s]"], "s", TARGETS.get(short))
        ratio_of = ratio_of or (name, planner, plan)
    if ratio_of is not None and not (args.quick or args.no_comparison):
        name, planner, plan = ratio_of
        rows = comparison(planner, plan)
        print_table(f"{name}: one step with and without condensation", rows)
        result["condensed_vs_uncondensed_ratio"] = figure(
            rows["all unknowns over condensed"], "1", RATIO
        )
    others = space_time_figures(args.quick) | reduced_skin_figures(args.quick)
    if not args.quick:
        others |= replay_figures(REPLAYED)
    for key, row in others.items():
        result[key] = figure(*row)
    return parser.report(result)


if __name__ == "__main__":
    main()
