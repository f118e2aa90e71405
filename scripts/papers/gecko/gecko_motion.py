"""The gecko's motion per cycle beside Table 3: rotation and translation, symmetric and
with a calibration of its own for every actuator.

python scripts/papers/gecko/gecko_motion.py          # ten minutes of processor time
python scripts/papers/gecko/gecko_motion.py --model "Drake"   # one model, three minutes
python scripts/papers/gecko/gecko_motion.py --quick  # two gaits, by poses

Thirty gaits, q1 = 50 to 90 deg and q2 = -0.5 to 0.5, each walked from its own first
pose, as the paper's were; the second of two cycles counts. Table 3 is the authors' fit
to their measured points, which are not published.

**Left and right.** The measured robot turns while its gait is straight, to the left
with short steps and to the right with long ones; the paper puts that down to how it was
made and calibrated. Here the actuators bend their limbs by other shares than the
calibration says: a share more on the left side and less on the right, for front legs,
torso and rear legs. These three numbers are FITTED, by the pose step with the limit of
1.1 bar, to what is uneven in Table 3's rotation [deg] and left [cm] of the gaits with
q1 = 50, 70 and 90 deg: of the gait (q1, q2) and of its mirror image (q1, -q2), half the
sum, which is zero for an even robot; 18 numbers. The gaits with 60 and 80 deg are held
out, and Drake is no part of the fit.

JSON: models, unequal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from drakebots.cli.output import one_line_errors, print_table
from drakebots.robots.gecko import Drake, Gains, Walk, simulate_walk
from drakebots.robots.gecko.engines import cycle_motion
from drakebots.robots.gecko.generator import MotionPolynomial
from drakebots.robots.gecko.model import Gecko, gecko
from drakebots.robots.gecko.plan import Q1_GRID, Q2_GRID

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

UNITS = np.array([180 / np.pi, 100, 100])
"""Of rotation, forward and left: deg, cm, cm."""

FITTED, HELD_OUT = Q1_GRID[::2], Q1_GRID[1::2]
"""Step lengths of the gaits to which the shares are fitted, and of the others [rad]."""

STEERING = tuple(q2 for q2 in Q2_GRID if q2 > 0)

Motion = Callable[[Gecko, float, float], np.ndarray]
"""Rotation [deg], forward and left [cm] of a cycle (3,), of robot, q1 [rad] and q2."""


# --- the models ----------------------------------------------------------------


def in_drake(robot: Gecko, q1: float, q2: float, gains: Gains = Gains()) -> np.ndarray:
    """The motion of the second cycle in Drake."""
    engine = Drake(gains=gains)
    walk = Walk(q1=q1, q2=q2, cycles=2, robot=robot, engine=engine)
    m = simulate_walk(walk).metrics
    names = "rotation_per_cycle_rad", "forward_per_cycle_m", "left_per_cycle_m"
    return UNITS * [m[name] for name in names]


def by_poses(robot: Gecko, q1: float, q2: float, limited: bool = True) -> np.ndarray:
    """The motion of the second cycle by pose steps."""
    cycle = cycle_motion(robot, q1, q2, settle=1, limited=limited)
    return UNITS * [cycle.rotation, cycle.forward, cycle.left]


def in_table_3(robot: Gecko, q1: float, q2: float) -> np.ndarray:
    """The measured robot's."""
    return UNITS * MotionPolynomial.table_3().motion(q1, q2)


OPEN_LOOP = Gains(angle_p=0.0, angle_i=0.0)
MODELS: dict[str, tuple[bool, Motion]] = {
    "pose step": (False, partial(by_poses, limited=False)),
    "pose step, 1.1 bar": (False, by_poses),
    "Drake": (False, in_drake),
    "pose step, 1.1 bar, unequal": (True, by_poses),
    "Drake, unequal": (True, in_drake),
    "Drake, unequal, without feedback": (True, partial(in_drake, gains=OPEN_LOOP)),
}
"""Whether its actuators are unequal, and how it moves."""


# --- left and right ------------------------------------------------------------


def unequal(front: float, torso: float, rear: float) -> Gecko:
    """The robot whose left actuators bend by these shares more, and the right less."""
    shares = [1 + side * share for share in (front, torso, rear) for side in (1, -1)]
    return gecko(bends=tuple(float(share) for share in shares))


def uneven(motions: np.ndarray, mirrored: np.ndarray) -> np.ndarray:
    """Rotation [deg] and left [cm] (..., 2) of the gaits (q1, q2) and (q1, -q2), half
    the sum."""
    return ((motions + mirrored) / 2)[..., [0, 2]]


def uneven_of(motion: Motion, robot: Gecko, pairs) -> np.ndarray:
    """What is uneven of gaits and their mirror images (n, 2)."""
    both = [[motion(robot, q1, side * q2) for q1, q2 in pairs] for side in (1, -1)]
    return uneven(*np.array(both))


def fitted() -> tuple[Gecko, dict]:
    """The unequal robot, and how it was found."""
    pairs = list(product(FITTED, STEERING))
    wanted = uneven_of(in_table_3, gecko(), pairs)

    def misses(shares) -> np.ndarray:
        return (uneven_of(by_poses, unequal(*shares), pairs) - wanted).ravel()

    best = least_squares(
        misses, np.zeros(3), bounds=(-0.3, 0.3), diff_step=2e-2, max_nfev=12
    )
    robot = unequal(*best.x)
    return robot, {"bends": np.round(robot.bends, 3).tolist()}


# --- beside Table 3 ------------------------------------------------------------


def beside_table_3(moved: dict[tuple[float, float], np.ndarray]) -> dict[str, float]:
    """Root mean square differences over gaits, of each component and of the way.

    `mean_*` are of the mean of a gait and its mirror image, where what is uneven falls
    out; `uneven_*` are of what is uneven, over the gaits that are held out.
    """
    table = {gait: in_table_3(gecko(), *gait) for gait in moved}
    ours, theirs = np.array(list(moved.values())), np.array(list(table.values()))
    gap, far = ours - theirs, [np.hypot(*each.T[1:]) for each in (ours, theirs)]
    columns = [*gap.T, far[0] - far[1]]
    names = "rotation_deg", "forward_cm", "left_cm", "way_cm"
    row = {n: float(np.sqrt((c**2).mean())) for n, c in zip(names, columns)}
    row["way_cm_more"] = float(columns[-1].mean())
    both = {g: (moved[g] - table[g], moved[m] - table[m]) for g, m in mirrored(moved)}
    mean = [(right + [-1, 1, -1] * left) / 2 for right, left in both.values()]
    sides = [uneven(*gaps) for gait, gaps in both.items() if gait[0] in HELD_OUT]
    means, uneven_ones = (np.sqrt(np.square(x).mean(axis=0)) for x in (mean, sides))
    row |= {f"mean_{n}": float(v) for n, v in zip(names, means)}
    row |= {f"uneven_{n}": float(v) for n, v in zip(names[::2], uneven_ones)}
    return row


def mirrored(gaits) -> list[tuple]:
    """The gaits that turn right, each with its mirror image."""
    return [((q1, q2), (q1, -q2)) for q1, q2 in gaits if q2 > 0]


def main(argv: Sequence[str] | None = None) -> dict:
    """Walks the grid; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="two gaits, by poses")
    parser.add_argument("--model", choices=MODELS, help="one model; default: all")
    args = parser.parse_args(argv)
    steps, steering = (Q1_GRID, Q2_GRID)
    names = [args.model] if args.model else list(MODELS)
    if args.quick:
        steps, steering, names = HELD_OUT[:1], (-0.5, 0.5), list(MODELS)[:2]
    robot, facts = gecko(), {}
    if any(MODELS[name][0] for name in names):
        robot, facts = fitted()
        print_table("unequal actuators", facts)
    rows, motions = {}, {}
    for name in names:
        other, motion = MODELS[name]
        walks = robot if other else gecko()
        moved = {gait: motion(walks, *gait) for gait in product(steps, steering)}
        rows[name] = beside_table_3(moved)
        motions[name] = np.round(list(moved.values()), 3).tolist()
    print_table("beside Table 3, root mean square", rows)
    return parser.report({"models": rows, "unequal": facts, "motions": motions})


if __name__ == "__main__":
    with one_line_errors("gecko_motion"):
        main()
