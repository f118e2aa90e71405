"""Overlap of skins with links and with themselves, folded to the limits of joints.

python scripts/bench/skin_contact.py            # some minutes
python scripts/bench/skin_contact.py --quick    # the skinned leg, both joints

Joints go to their limits in 0.3 s and stay, with servos without effort limits, in steps
of 5 ms, without ground. After each step the overlap is measured anew: the largest depth
of a vertex in a link, beyond that at rest, and, of vertices inside tets of another part
of the skin, behind the nearest triangle there. Each step is taken twice from the same
state, with contact and without, for the ratio of their processor times.

JSON: link_overlap_mm, self_overlap_mm, step_with_pairs_ratio.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from measurement import Measurement, figure
from scipy.spatial import cKDTree

from drakebots.cli.output import print_table
from drakebots.core.threads import calm_threads
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel
from drakebots.skin import SkinSimulation
from drakebots.skin.coupled import Collisions, CoupledStepper
from drakebots.skin.file import SkinnedRobot, load_skinned
from drakebots.skin.simulate import build_stepper

DT, RISE = 5e-3, 0.3
SCENES = {
    "skinned leg, knee": ("skinned_leg", {"knee": 1.0}),
    "skinned leg, both": ("skinned_leg", {"hip": 1.0, "knee": -1.0}),
    "monster, knee": ("monster", {"FL_knee": 1.0}),
}
"""Joints and the share of their upper limits that they go to."""
QUICK = "skinned leg, both"

FIGURES = (
    ("link_overlap_mm", "link overlap [mm]", "mm", 1.0),
    ("self_overlap_mm", "overlap with itself [mm]", "mm", 1.0),
    ("step_with_pairs_ratio", "step with pairs, times one without", "1", None),
)
"""Keys of the JSON object: the largest of a row of the table, unit, target."""


def overlap(run: CoupledStepper, skin: SkinState, rest: SkinState) -> np.ndarray:
    """Depth in links beyond that at `rest`, and in the skin itself (2,) [m].

    Args:
        run: a stepper with contact, its context in the pose of `skin`.
        skin: the skin.
        rest: the skin as its stepper started it.
    """
    links, itself = run.collisions.links, run.collisions.itself
    deep = [0.0]
    for shape, margin in zip(links.shapes, links.margin):
        x, edge = skin.positions[links.nodes], np.minimum(margin, 0.0)
        hit, distance, _ = shape.near(run.plant, run.context, x, edge)
        deep.append((edge[hit] - distance).max(initial=0.0))
    # Twice the reach that pairs are looked for in, or the deepest would not count; it
    # finds the far side of a vertex's own wall, too, which is not inside of a tet.
    found = replace(itself, reach=2 * itself.reach, margin=0.0).find(skin.positions)
    own = np.where(inside(run.model, skin.positions, found.points), found.depth, 0.0)
    return np.array([max(deep), own.max(initial=0.0)])


def inside(model: FemModel, x: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Whether each node is inside of a tet that it is no corner of (n,)."""
    tets = model.space.mesh.tets
    middle = x[tets].mean(axis=1)
    size = np.linalg.norm(x[tets] - middle[:, None], axis=2).max()
    around = cKDTree(middle).query_ball_point(x[nodes], size)
    out = np.zeros(len(nodes), bool)
    for k, (node, near) in enumerate(zip(nodes, around)):
        near = tets[near]
        a = x[near[(near != node).all(axis=1)]]
        edges = (a[:, 1:] - a[:, :1]).transpose(0, 2, 1)
        w = np.linalg.solve(edges, (x[node] - a[:, 0])[..., None])[..., 0]
        out[k] = ((w > 0).all(axis=1) & (w.sum(axis=1) < 1)).any()
    return out


def fold(robot: SkinnedRobot, targets: dict[str, float], seconds: float) -> dict:
    """Overlaps and costs of a motion of joints to shares of their limits."""
    problem = SkinSimulation(ground=False, unlimited=True, time_step=DT)
    run = build_stepper(problem, robot)
    free = robot.stepper(DT, collisions=Collisions(), threads=1,
                         effort_limits=run.effort_limits)  # fmt: skip
    rest = robot.joint_positions(robot.rest_positions)
    upper = robot.joint_positions(robot.plant.GetPositionUpperLimits())
    goal = rest.copy()
    for joint, share in targets.items():
        k = robot.joints.index(joint)
        goal[k] = share * upper[k]
    state = start = run.start()
    worst, pairs, cost, own = np.zeros(2), [], [], 0
    for k in range(round(seconds / DT)):
        share = min((k + 1) * DT / RISE, 1.0)
        servo = robot.servo(rest + (goal - rest) * share)
        times = []
        for one in (free, run):
            begin = time.process_time()
            result = one.step(state, servo=servo)
            times.append(time.process_time() - begin)
        if not result.converged:
            raise SystemExit(f"{robot.model.name}: {result.message}")
        run.pose(state.q, state.v)
        near = run.collisions.pairs(run.plant, run.context, state.skin, DT)
        pairs.append(0 if near is None else len(near))
        if near is not None:
            own = max(own, int((near.links == 0).all(axis=1).sum()) // 3)
        state = result.state
        run.pose(state.q, state.v)
        worst = np.maximum(worst, overlap(run, state.skin, start.skin))
        cost.append(times[1] / times[0])
    touching, cost = np.array(pairs) > 0, np.array(cost)
    angle = robot.joint_positions(state.q)[[robot.joints.index(j) for j in targets]]
    return {
        "nodes": len(robot.fem.rest),
        "angles [rad]": angle.round(3).tolist(),
        "link overlap [mm]": 1e3 * worst[0],
        "overlap with itself [mm]": 1e3 * worst[1],
        "pairs at most": max(pairs),
        "of these of the skin with itself": own,
        "step with pairs, times one without": float(np.median(cost[touching])),
        "any step, times one without": float(np.median(cost)),
        "det F at the end": result.smallest_ratio,
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="the skinned leg, both joints")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each motion")
    args = parser.parse_args(argv)
    rows = {}
    with calm_threads():
        for name, (model, targets) in SCENES.items():
            if not args.quick or name == QUICK:
                rows[name] = fold(load_skinned(model), targets, args.seconds)
                print_table(name, rows[name])
    result = {
        key: figure(max(row[name] for row in rows.values()), unit, most)
        for key, name, unit, most in FIGURES
    }
    return parser.report(result)


if __name__ == "__main__":
    main()
