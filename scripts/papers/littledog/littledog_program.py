"""LittleDog steps up: the program of Manchester et al. (IJRR 2019), 2124 variables.

Contact-implicit trajectory optimization of a quadruped (18 coordinates, 12
torques, 4 point feet) onto a box at x = 0.25 .. 1.05 m of height 0.11 m with
30 knots in 1 .. 4 s, mu = 1. With e = q - q_1 the objective is

    sum_k h (10 u'u + e'W e + v'v)/2 + 30 sum_k s_k,
    W = 0 on x y z, 10 on angles, 5 on hip rolls, 1 on the other joints.

The exact step does not solve from the authors' guess, since the normal jumps at its
edge. A ramp of 5 cm, with a cost on feet that carry load near its edge, does; a
narrower ramp and the step with that cost lead to the step alone.

The robot, the initial guess and a stored optimum are the authors' files (BSD-3), which
are not part of this project. Everything is in SI.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import casadi as ca
import numpy as np

from drakebots.core.checks import check, positive
from drakebots.model import load
from drakebots.multibody import Robot, build_robot
from drakebots.trajopt import Frame, Step, Terrain
from drakebots.trajopt.contact_implicit import ContactImplicit, ContactSystem, Scales
from drakebots.trajopt.program import Program, compile_blocks
from drakebots.trajopt.solvers import Continuation, Stage, solve_continuation

FILES = (
    "LittleDog2_LittleDog.urdf",
    "littledog_stepup_z0.csv",
    "littledog_stepup_trial3.csv",
)
"""The robot, the initial guess, an optimum."""

URDF, GUESS, STORED = FILES
KNOTS, START, END, HEIGHT = 30, 0.25, 1.05, 0.11
STEP = Step(START, END, HEIGHT)
# The authors' coordinates: x y z roll pitch yaw, then the legs; ours turn the
# base by yaw, pitch, roll.
ORDER = [0, 1, 2, 5, 4, 3, *range(6, 18)]
LEGS = [0.1, 1, -1.55, -0.1, 1, -1.55, 0.1, -1, 1.55, -0.1, -1, 1.55]
FIRST = np.array([0, 0, 0.136, 0, 0, 0, *LEGS])
LAST = np.array([0.45, 0, 0.246, 0, 0, 0, *LEGS])
WEIGHTS = ca.SX(np.array([0, 0, 0, 10, 10, 10] + [5, 1, 1] * 4, float))

Feet = Callable[[np.ndarray], np.ndarray]
"""q (30, 18) to the feet's positions (30, 4, 3) [m]."""

SLACK_LIMIT = 1.1e-6
"""Largest slack and complementarity products of an answer [N m]; the bound is 1e-6."""


@cache
def robot(folder: Path) -> Robot:
    """LittleDog in SI on a base of Euler angles."""
    return build_robot(
        load(folder / URDF), time_step=0, base="euler", close_loops=False
    )


def program(
    folder: Path,
    terrain: Terrain = STEP,
    *,
    slack_weight: float = 30.0,
    edge: float | None = None,
) -> Program:
    """The authors' program, or an easier one of the same variables.

    Args:
        folder: folder of the data.
        terrain: ground under the feet.
        slack_weight: weight of the slack, 30 in the authors' program. With 30 the
            penalty is not exact here: optima with a slack of 1e-2 are cheaper.
        edge: length w [m] of a cost sum gam exp(-((x - 0.25)/w)^2) that keeps
            loaded feet off the edge, where the normal jumps.
    """
    system = ContactSystem(robot(folder), terrain)
    span = KNOTS - 1
    builder = ContactImplicit(
        system,
        KNOTS,
        (1 / span, 4 / span),
        1.0,
        slack_weight=slack_weight,
        scales=Scales(force=10.0),
        name="LittleDog step-up",
    ).builder()
    first, last = FIRST[ORDER], LAST[ORDER]
    builder.bound("q", 0, first, first)
    builder.bound("q", -1, last - 0.01, last + 0.01)
    builder.bound("q", slice(None), 0.0, 0.256, labels=["body_z"])
    builder.equal_steps()

    def running(q, v, u):
        e = q - ca.SX(first)
        return (ca.dot(WEIGHTS * e, e) + ca.dot(v, v) + 10 * ca.dot(u, u)) / 2

    builder.running_cost(running)
    if edge is not None:

        def near_edge(q, gam):
            x = ca.vertcat(*(p[0] for p in system.feet(q)))
            return ca.dot(gam, ca.exp(-(((x - START) / edge) ** 2)))

        where = {"q": builder["q"].indices[1:], "gam": builder["gam"].indices}
        builder.cost("edge", where, near_edge)
    return builder.build()


def guess(target: Program, folder: Path, seed: int, noise: float = 0.01) -> np.ndarray:
    """The authors' initial guess plus normal noise on every entry."""
    lines = (folder / GUESS).read_text().splitlines()[1:]
    z = np.array([float(line) for line in lines if line.strip()])
    z = z + noise * np.random.default_rng(seed).standard_normal(len(z))
    x = target.pack({name: z[g.indices] for name, g in target.variables.items()})
    return _reorder(target, x)


def _reorder(target: Program, x: np.ndarray) -> np.ndarray:
    parts = target.view(x)
    return target.pack({n: parts[n][:, ORDER] for n in ("q", "v0")}, x)


def stored(target: Program, folder: Path) -> np.ndarray:
    """The authors' optimum.

    Their file has no v0: it follows from the rows M(q_1) v_0 = p-.
    """
    with open(folder / STORED, newline="") as file:
        rows = list(csv.reader(file))[1:]
    A = np.array([[float(entry or 0) for entry in row] for row in rows])
    parts, start = {"h": np.diff(A[:, :1], axis=0), "q": A[:, 1:19]}, 37
    for name in ("u", "gam", "beta", "psi", "eta", "s"):
        width = target.variables[name].shape[1]
        parts[name], start = A[:-1, start : start + width], start + width
    x = _reorder(target, target.pack(parts))
    row, v0 = target.rows["start"], target.variables["v0"]
    M = target.jacobian(x)[row.start : row.stop, v0.start : v0.stop].toarray()
    x[v0.start : v0.stop] -= np.linalg.solve(M, target.values(x)[row.start : row.stop])
    return x


@dataclass(frozen=True)
class Verdict:
    """Physical quantities of a trajectory; see :func:`judge`.

    Attributes:
        valid: residuals <= 1e-6, complementarity at its bound, no jump, no foot
            in the box.
        objective: of the authors' program.
        worst_residual: of rows and bounds (joint limits and the base's height
            among them).
        complementarity: the largest of phi'gam, h cone'psi, h eta'beta.
        slack: the largest s.
        joint_jump: largest change between knots [rad].
        base_low: lowest base [m].
        feet_in_box: knots times feet deeper in the box than 1e-6 m.
        cut_between_knots: largest depth of a foot in the ground on straight lines
            between knots [m], which the program does not bound.
        duration: [s].
    """

    valid: bool
    objective: float
    worst_residual: float
    complementarity: float
    slack: float
    joint_jump: float
    base_low: float
    feet_in_box: int
    cut_between_knots: float
    duration: float


def judge(target: Program, feet: Feet, x: np.ndarray) -> Verdict:
    """Whether a robot could execute the trajectory x, knot by knot."""
    parts = target.view(x)
    row = target.rows["complementarity"]
    products = target.values(x)[row.start : row.stop].reshape(row.shape) + parts["s"]
    worst = max(target.residuals(x).values())
    jump = float(np.abs(np.diff(parts["q"][:, 6:], axis=0)).max())
    p = feet(parts["q"])
    inside = (p[..., 0] > START) & (p[..., 0] < END) & (p[..., 2] < HEIGHT - 1e-6)
    # Eleven points of each straight line; depths as in `Step`, but faster.
    line = np.linspace(0, 1, 11)[:, None, None, None]
    between = (1 - line) * p[:-1] + line * p[1:]
    x_, z_ = between[..., 0], between[..., 2]
    box = np.minimum(np.minimum(x_ - START, END - x_), HEIGHT - z_)
    depth = np.maximum(box, -z_)
    complementarity = float(products.max())
    return Verdict(
        bool(
            worst <= 1e-6
            and complementarity <= SLACK_LIMIT
            and parts["s"].max() <= SLACK_LIMIT
            # Joints have limits of 3.1 rad or less: 1.5 between knots is a wrap.
            and jump < 1.5
            and not inside.any()
        ),
        target.objective(x),
        worst,
        complementarity,
        float(parts["s"].max()),
        jump,
        float(parts["q"][:, 2].min()),
        int(inside.sum()),
        float(max(0.0, depth.max())),
        float(parts["h"].sum()),
    )


@cache
def authors_program(folder: Path) -> tuple[Program, Feet]:
    """Their program and the feet's positions."""
    system, q = ContactSystem(robot(folder), STEP), ca.SX.sym("q", 18)
    # Made once: answers are judged at many iterates.
    feet = ca.Function("feet", [q], [ca.vertcat(*system.feet(q))]).map(KNOTS)
    return program(folder), lambda q: np.asarray(feet(q.T)).T.reshape(KNOTS, 4, 3)


# --- the continuation to the step ---------------------------------------------


@dataclass(frozen=True)
class Ramp(Terrain):
    """The step's near edge as a smooth rise, z = height (1 + tanh((x - a)/w))/2.

    phi is exact to first order, as that of a height field, and the normal is that of
    the ground vertically below: shorter expressions than the gradient of phi.

    Attributes:
        width: w [m].
        start: a [m].
        height: [m].
    """

    width: float
    start: float = START
    height: float = HEIGHT

    def __post_init__(self):
        check(self, "ramp", width=positive("m"), height=positive("m"))

    def _rise(self, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        t = ca.tanh((p[0] - self.start) / self.width)
        slope = self.height / 2 * (1 - t**2) / self.width
        return self.height / 2 * (1 + t), slope, 1 / ca.sqrt(1 + slope**2)

    def distance(self, p: ca.SX) -> ca.SX:
        rise, _, cosine = self._rise(p)
        return (p[2] - rise) * cosine

    def frame(self, p: ca.SX) -> Frame:
        """t1 lies in the x-z plane and t2 = ey."""
        _, slope, c = self._rise(p)
        y = ca.SX(np.array([0, 1.0, 0]))
        return ca.vertcat(-slope * c, 0, c), ca.vertcat(c, 0, slope * c), y

    def scaled(self, length_unit: float) -> Ramp:
        L = length_unit
        return Ramp(self.width / L, self.start / L, self.height / L)


def _monotone(mu: float) -> dict:
    """Options of a barrier that starts small, so that a good start is not lost."""
    push = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
    return {
        "mu_strategy": "monotone",
        "mu_init": mu,
        **dict.fromkeys(push, mu / 10),
    }


_EASY = {"tol": 1e-5, "acceptable_tol": 1e-3, "acceptable_iter": 10}


@cache
def stages(folder: Path, quick: bool = False) -> tuple[Stage, ...]:
    """From a wide ramp to the exact step, all with a slack weight of 100."""
    make = partial(program, folder, slack_weight=100.0)
    edge, step = make(edge=0.03), make()
    exact = {"same_rows": True}
    wide = make(Ramp(0.05), edge=0.08)
    narrow = None if quick else make(Ramp(0.02), edge=0.05)
    # Compilers of different grounds run in parallel; `edge` shares with `step`.
    grounds = [p for p in (wide, narrow, step) if p is not None]
    compile_blocks([t.block for p in grounds for t in (*p.terms, *p.costs)])
    first = Stage(
        wide,
        {**_EASY, "mu_strategy": "adaptive"},
        120 if quick else 200,
        "ramp 5 cm",
    )
    last = [
        Stage(edge, _EASY | _monotone(1e-4), 120, "edge cost", **exact),
        Stage(step, _EASY | _monotone(1e-4), 60 if quick else 200, "step", **exact),
    ]
    if quick:
        return (first, *last)
    return (
        first,
        Stage(narrow, _EASY | _monotone(1e-3), 150, "ramp 2 cm"),
        *last,
        # Once more from the last iterate, with a larger barrier.
        Stage(edge, _EASY | _monotone(1e-3), 200, "edge again", spare=True, **exact),
        Stage(step, _EASY | _monotone(1e-4), 200, "step again", spare=True, **exact),
    )


def run(folder: Path, quick: bool, threads: int, seed: int) -> Continuation:
    """The continuation from one start."""
    target, feet = authors_program(folder)
    return solve_continuation(
        stages(folder, quick),
        guess(target, folder, seed),
        problem=target,
        accept=lambda x: judge(target, feet, x).valid,
        threads=threads,
    )
