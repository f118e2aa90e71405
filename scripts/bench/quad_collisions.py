"""Plans of skinned quad-robots in which the skin touches links and itself, or not.

python scripts/bench/quad_collisions.py            # four robots, half an hour
python scripts/bench/quad_collisions.py --quick    # the beetle standing, a few steps

Of each robot one space-time motion is planned, and followed step by step with
collisions and without. Every few steps of the former, the step is also planned without,
from the same state, for the ratio of their processor times; and overlaps are measured
as in `scripts/bench/skin_contact.py`: the largest depth of a vertex in a link beyond
that at rest, and of a vertex in another part of the skin.

JSON: planner_collision_overhead_ratio, planner_link_overlap_mm,
planner_self_overlap_mm, planner_torque_difference.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from measurement import Measurement, figure
from skin_contact import overlap

from drakebots.cli.output import print_table
from drakebots.core.threads import calm_threads
from drakebots.robots.quads import Problem, step_planner
from drakebots.robots.quads.robot import moving_state, settled_state
from drakebots.robots.quads.space_time import plan_space_time
from drakebots.robots.quads.steps import StepPlanner, StepsProblem, position_error
from drakebots.skin.coupled import Collisions, CoupledState

MOTIONS = {"beetle": "walk", "monster": "trot", "lizard": "lizard", "cow": "walk"}

FIGURES = (
    ("planner_collision_overhead_ratio", "step with, times one without", "1", 1.5),
    ("planner_link_overlap_mm", "link overlap [mm]", "mm", 1.0),
    ("planner_self_overlap_mm", "overlap with itself [mm]", "mm", 1.0),
    ("planner_torque_difference", "rms torque, relative change", "1", None),
)
"""Keys of the JSON object: the largest of a row of the table, unit, target."""


@dataclass
class Followed:
    """A motion followed step by step.

    Attributes:
        torques: torques of the steps (n, m) [N m].
        q: positions after them (n, nq).
        far: largest deviation of a coordinate from the motion [rad, m].
        deep: largest overlaps with links and the skin itself (2,) [m].
        pairs: numbers of near pairs, and of those that push (k, 2).
        cost: processor times of steps without contact and with (k, 2) [s].
        end: why it ended.
    """

    torques: np.ndarray
    q: np.ndarray
    far: float
    deep: np.ndarray
    pairs: np.ndarray
    cost: np.ndarray
    end: str


def pairs_of(planner: StepPlanner, contact: Collisions, state, step) -> list[int]:
    """Numbers of near pairs in a planned step, and of those that push."""
    stepper = planner.stepper
    stepper.pose(state.q, state.v)
    near = contact.pairs(stepper.plant, stepper.context, state.skin, stepper.dt)
    if near is None:
        return [0, 0]
    G, L = near.rows()
    s = G @ step.solution.du.ravel() + L @ step.solution.dq
    push = near.stiffness * (near.depth - s) - near.damping * s / stepper.dt
    return [len(near), int((push > 0).sum())]


def follow(
    planner: StepPlanner,
    contact: Collisions,
    plan: StepsProblem,
    begins: CoupledState,
    *,
    touch: bool,
    every: int,
) -> Followed:
    """Follows a motion.

    Args:
        planner: the robot's planner.
        contact: contact of the skin.
        plan: the motion.
        begins: state in its first row.
        touch: whether there is contact in the plan.
        every: steps from one measurement to the next.
    """
    stepper, state, memory = planner.stepper, begins, planner.start(begins)
    rest, none, end = stepper.start(), Collisions(), "all steps"
    torques, q, cost, pairs, far, deep = [], [], [], [], 0.0, np.zeros(2)
    for k in range(len(plan.q_ref) - 1):
        spent, measured = {}, k % every == every - 1
        for way in (False, True) if measured and touch else (touch,):
            stepper.collisions = contact if way else none
            begin = time.process_time()
            found = planner.step(state, memory, plan.goal(k))
            spent[way] = time.process_time() - begin
        if not found.ok:
            end = found.message
            break
        if measured and touch:
            cost.append([spent[False], spent[True]])
            pairs.append(pairs_of(planner, contact, state, found))
        state, memory = found.state, found.memory
        torques.append(found.qpcc.torques)
        q.append(state.q)
        stepper.pose(state.q, state.v)
        error = position_error(stepper.plant, stepper.context, plan.q_ref[k + 1])
        far = max(far, float(np.abs(error).max()))
        if measured:
            stepper.collisions = contact
            deep = np.maximum(deep, overlap(stepper, state.skin, rest.skin))
    pairs, cost = np.array(pairs).reshape(-1, 2), np.array(cost).reshape(-1, 2)
    return Followed(np.array(torques), np.array(q), far, deep, pairs, cost, end)


def compared(with_it: Followed, without: Followed) -> dict:
    """The rows of the table."""
    n = min(len(with_it.torques), len(without.torques))
    rms = [np.sqrt((one.torques[:n] ** 2).mean()) for one in (with_it, without)]
    apart = np.abs(with_it.torques[:n] - without.torques[:n])
    spent, pairs = with_it.cost.sum(axis=0), with_it.pairs
    return {
        "steps": n,
        "end with, without": f"{with_it.end}, {without.end}",
        "peak torque with, without [N m]": [
            float(np.abs(one.torques[:n]).max()) for one in (with_it, without)
        ],
        "rms torque with, without [N m]": [float(one) for one in rms],
        "rms torque, relative change": float(abs(rms[0] / rms[1] - 1)),
        "change of a torque, mean, most [N m]": [
            float(apart.mean()),
            float(apart.max()),
        ],
        "change of a coordinate, most [rad, m]": float(
            np.abs(with_it.q[:n] - without.q[:n]).max()
        ),
        "off the motion with, without [rad, m]": [with_it.far, without.far],
        "near pairs, mean, most": [float(pairs[:, 0].mean()), int(pairs[:, 0].max())],
        "pushing pairs, mean, most": [
            float(pairs[:, 1].mean()),
            int(pairs[:, 1].max()),
        ],
        "link overlap [mm]": 1e3 * with_it.deep[0],
        "link overlap without [mm]": 1e3 * without.deep[0],
        "overlap with itself [mm]": 1e3 * with_it.deep[1],
        "overlap with itself, without [mm]": 1e3 * without.deep[1],
        "step without, with [s]": (spent / len(with_it.cost)).tolist(),
        "step with, times one without": float(spent[1] / spent[0]),
    }


def measured(model: str, steps: int, every: int, *, quick: bool = False) -> dict:
    """The comparison of a robot's plans.

    Args:
        model: the robot.
        steps: largest number of steps.
        every: steps from one measurement to the next.
        quick: whether to stand in the motion's first pose, without planning it.
    """
    motion = "lift_single" if quick else MOTIONS[model]
    problem = Problem(model=model, motion=motion, collisions="all")
    planner, robot = step_planner(problem), problem.robot
    contact = planner.stepper.collisions
    planner.stepper.collisions = Collisions()
    if quick:
        q = np.tile(robot.coordinates.positions(robot.quad.rest[None]), (steps + 1, 1))
        plan = StepsProblem(q, np.ones((len(q), len(planner.feet)), bool))
        begins = settled_state(planner.stepper, q[0])
    else:
        data = plan_space_time(problem.program()).result().data
        q, v = data.position.values[: steps + 1], data.velocity.values[0]
        plan = StepsProblem(q, data.contact.values[: steps + 1] > 0)
        begins = moving_state(planner.stepper, robot.share, q[0], v)
    runs = [
        follow(planner, contact, plan, begins, touch=touch, every=every)
        for touch in (True, False)
    ]
    return compared(*runs)


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="the beetle standing, a few steps")
    parser.add_argument("--robots", nargs="+", default=list(MOTIONS), help="names")
    parser.add_argument("--steps", type=int, default=400, help="at most, per robot")
    parser.add_argument("--every", type=int, default=5, help="steps to a measurement")
    args = parser.parse_args(argv)
    rows = {}
    with calm_threads():
        for name in args.robots[:1] if args.quick else args.robots:
            how = (4, 2) if args.quick else (args.steps, args.every)
            rows[name] = measured(name, *how, quick=args.quick)
            print_table(name, rows[name])
    worst = {
        key: figure(max(row[name] for row in rows.values()), unit, most)
        for key, name, unit, most in FIGURES
    }
    return parser.report(worst)


if __name__ == "__main__":
    main()
