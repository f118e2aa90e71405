"""LittleDog steps up: the program of Manchester et al. (IJRR 2019), 2124 variables.

Contact-implicit trajectory optimization of a quadruped (18 coordinates, 12
torques, 4 point feet) onto a step at x = 0.25 .. 1.05 m of height 0.11 m with
30 knots in 1 .. 4 s, mu = 1. With e = q - q_1 the objective is

    sum_k h (10 u'u + e'W e + v'v)/2 + 30 sum_k s_k,
    W = 0 on x y z, 10 on angles, 5 on hip rolls, 1 on the other joints.

The authors' ground is a height with normals straight up, the terrain "authors". A box
with a wall, which feet cannot pass and may push against, is another problem, "box".

On neither does the program solve from the authors' guess: at the edge the distance of
a foot from the ground jumps, or its normal does. So the start decides first: each foot
is on the step from the knot on at which it is in the guess, on the floor before. With
the sides decided, the ground under every foot at every knot is flat, and rows

    x_foot <= 0.25 m on the floor,    x_foot >= 0.25 m on the step

keep it there. This restricts the authors' program, so that an answer is one of theirs;
and since no force leans on the wall, it is one on the box too.

The robot, the initial guess and a stored optimum are the authors' files (BSD-3), which
are not part of this project. Everything is in SI.

A module without a command: `littledog_stepup.py` solves it.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
from continuation import Continuation, Stage, solve_continuation

from drakebots.core.errors import UnknownName
from drakebots.formats import load
from drakebots.multibody import Flat, Plateau, Robot, Step, Terrain, build_robot
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    ContactSystem,
    Scales,
    Slack,
)
from drakebots.trajopt.program import Program, compile_blocks

FILES = (
    "LittleDog2_LittleDog.urdf",
    "littledog_stepup_z0.csv",
    "littledog_stepup_trial3.csv",
)
"""The robot, the initial guess, an optimum."""

URDF, GUESS, STORED = FILES
KNOTS, START, END, HEIGHT = 30, 0.25, 1.05, 0.11
TERRAINS = {
    "authors": Plateau(START, END, HEIGHT, width=1.0),
    "box": Step(START, END, HEIGHT),
}
"""The grounds by name."""

# The authors' coordinates: x y z roll pitch yaw, then the legs; ours turn the
# base by yaw, pitch, roll.
ORDER = [0, 1, 2, 5, 4, 3, *range(6, 18)]
LEGS = [0.1, 1, -1.55, -0.1, 1, -1.55, 0.1, -1, 1.55, -0.1, -1, 1.55]
FIRST = np.array([0, 0, 0.136, 0, 0, 0, *LEGS])
LAST = np.array([0.45, 0, 0.246, 0, 0, 0, *LEGS])
WEIGHTS = ca.SX(np.array([0, 0, 0, 10, 10, 10] + [5, 1, 1] * 4, float))

Feet = Callable[[np.ndarray], np.ndarray]
"""q (30, 18) to the feet's positions (30, 4, 3) [m]."""

TOLERANCE = 1e-6
"""Largest residual and product of complementary quantities of our answers [SI]."""

STORED_TOLERANCE = 1.2e-6
"""The same for the authors' stored optimum, from SNOPT with a tolerance of 1e-5."""

LEAST_SLACK = 1e-7
"""Lower bound of the slack in our programs, 1e-6 in the authors': an interior point
ends a little above it, and its answers are to be within TOLERANCE. On a box a force of
1e-5 N on a foot in the air matters too, since its normal is that of the wall."""

EDGE_MARGIN = 1e-5
"""Distance that our programs keep feet from the edge [m], so that no rounding takes one
to the other side."""


@cache
def robot(folder: Path) -> Robot:
    """LittleDog in SI on a base of Euler angles."""
    return build_robot(
        load(folder / URDF), time_step=0, base="euler", close_loops=False
    )


def program(folder: Path, terrain: str = "authors") -> Program:
    """The authors' program, on a ground by name.

    Raises:
        UnknownName: for a ground that is not in :data:`TERRAINS`.
    """
    system = ContactSystem(robot(folder), terrain_named(terrain))
    return _finish(_problem(system))


def terrain_named(name: str) -> Terrain:
    """The ground of a name.

    Raises:
        UnknownName: which lists the names.
    """
    if name not in TERRAINS:
        raise UnknownName("terrain", name, TERRAINS)
    return TERRAINS[name]


def _problem(system: ContactSystem, **changes) -> ContactImplicit:
    span = KNOTS - 1
    return ContactImplicit(
        system,
        KNOTS,
        (1 / span, 4 / span),
        1.0,
        scales=Scales(force=10.0),
        name="LittleDog step-up",
        **changes,
    )


def _finish(problem: ContactImplicit, sides: np.ndarray | None = None) -> Program:
    builder, system = problem.builder(), problem.system
    first, last = FIRST[ORDER], LAST[ORDER]
    builder.bound("q", 0, first, first)
    builder.bound("q", -1, last - 0.01, last + 0.01)
    builder.bound("q", slice(None), 0.0, 0.256, labels=["body_z"])
    builder.equal_steps()

    def running(q, v, u):
        e = q - ca.SX(first)
        return (ca.dot(WEIGHTS * e, e) + ca.dot(v, v) + 10 * ca.dot(u, u)) / 2

    builder.running_cost(running)
    if sides is not None:
        builder.constraint(
            "side",
            {"q": builder["q"].indices[1:]},
            lambda q: ca.vertcat(*(p[0] for p in system.feet(q))),
            labels=[foot.name for foot in system.robot.model.feet],
            **_side_bounds(sides),
        )
    return builder.build()


# --- sides of the edge, decided beforehand ------------------------------------


def sides_of(feet: Feet, q: np.ndarray) -> np.ndarray:
    """Whether each foot is on the step at the knots 1, 2, ... (29, 4) of positions q.

    A foot is there from the knot on from which it stays beyond the edge: it crosses
    once, also where the positions are noisy.
    """
    beyond = feet(q)[1:, :, 0] >= START
    return np.logical_and.accumulate(beyond[::-1])[::-1]


def _side_bounds(sides: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "lower": np.where(sides, START + EDGE_MARGIN, -np.inf),
        "upper": np.where(sides, np.inf, START - EDGE_MARGIN),
    }


@cache
def _any_sides(folder: Path, slack_weight: float) -> Program:
    """The program of decided sides, for sides that :func:`decided` changes."""
    none = np.zeros((KNOTS - 1, 4), bool)
    system = ContactSystem(robot(folder), Flat())
    slack = Slack(LEAST_SLACK, 1.0, slack_weight)
    return _finish(_problem(system, slack=slack, levels=HEIGHT * none), none)


def decided(folder: Path, sides: np.ndarray, slack_weight: float) -> Program:
    """The program whose feet are on given sides of the edge; see :func:`sides_of`.

    Each foot stands on flat ground, at the height of its side, and a row keeps it
    there. What satisfies this program satisfies the authors', but for the lower bound
    of the slack, see :data:`LEAST_SLACK`.

    Args:
        folder: folder of the data.
        sides: (29, 4), true on the step.
        slack_weight: weight of the slack, 30 in the authors' program.
    """
    base = _any_sides(folder, slack_weight)
    terms = tuple(
        # Its constants are the friction coefficient and the levels.
        replace(t, data=np.hstack([t.data[:, :1], HEIGHT * sides]))
        if t.block.name == "contact"
        else t
        for t in base.terms
    )
    side = replace(base.rows["side"], **_side_bounds(sides))
    return replace(base, terms=terms, rows={**base.rows, "side": side})


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
        valid: all residuals and products within the tolerance, and no jump.
        tolerance: largest residual and product of a valid trajectory.
        objective: of the authors' program.
        worst_residual: of rows and bounds (joint limits and the base's height
            among them).
        complementarity: the largest of phi'gam, h cone'psi, h eta'beta.
        slack: the largest s.
        joint_jump: largest change between knots [rad].
        base_low: lowest base [m].
        feet_in_step: knots times feet deeper in the step than 1e-6 m.
        cut_between_knots: largest depth of a foot in the step on straight lines
            between knots [m], which the program does not bound.
        duration: [s].
    """

    valid: bool
    tolerance: float
    objective: float
    worst_residual: float
    complementarity: float
    slack: float
    joint_jump: float
    base_low: float
    feet_in_step: int
    cut_between_knots: float
    duration: float


def judge(
    target: Program, feet: Feet, x: np.ndarray, tolerance: float = TOLERANCE
) -> Verdict:
    """Whether the trajectory x solves the authors' program, knot by knot."""
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
            max(worst, complementarity) <= tolerance
            # The slack that the objective pays for is the one of the products.
            and parts["s"].max() <= tolerance
            # Joints have limits of 3.1 rad or less: 1.5 between knots is a wrap.
            and jump < 1.5
            and not inside.any()
        ),
        tolerance,
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
def authors_program(folder: Path, terrain: str = "authors") -> tuple[Program, Feet]:
    """Their program on a ground by name, and the feet's positions."""
    system = ContactSystem(robot(folder), terrain_named(terrain))
    q = ca.SX.sym("q", 18)
    # Made once: answers are judged at many iterates.
    feet = ca.Function("feet", [q], [ca.vertcat(*system.feet(q))]).map(KNOTS)
    return program(folder, terrain), lambda q: np.asarray(feet(q.T)).T.reshape(
        KNOTS, 4, 3
    )


# --- from a start to an answer ------------------------------------------------

FIRST_BARRIER = 0.1
"""Barrier parameter of the first iterate. With 0.01 the solver took twice as many
iterations on twelve starts; with 1 the answers of two starts cost a fifth more."""

SLACK_WEIGHTS = (30.0, 1000.0)
"""Weights of the slack in the first and in the second program. The first is the
authors'; its penalty is not exact here (slacks of 1e-4 to 1e-2 are cheaper than none),
but it leads to better answers: the median of their objective was 29 on twelve starts,
with 100 it was 34 and with 300, on ten of them, 40."""

_OPTIONS = {
    "tol": 1e-5,
    "acceptable_tol": 1e-3,
    "acceptable_iter": 10,
    "mu_strategy": "monotone",
    # Else forces of -1e-8 N times slips of 1e6 m/s make up for products that are not 0.
    "bound_relax_factor": 0.0,
}


def _near(mu: float) -> dict:
    """Options of a barrier that starts small, so that a good start is not lost."""
    push = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
    return {**_OPTIONS, "mu_init": mu, **dict.fromkeys(push, mu / 10)}


def stages(folder: Path, sides: np.ndarray) -> tuple[Stage, ...]:
    """The program of decided sides, then once more with a heavier slack if a slack
    above its bound was cheaper than none."""
    light, heavy = (decided(folder, sides, weight) for weight in SLACK_WEIGHTS)
    first = {**_OPTIONS, "mu_init": FIRST_BARRIER}
    return (
        Stage(light, first, 300, "sides"),
        Stage(heavy, _near(1e-4), 200, "no slack", spare=True),
        # From farther away, where that one broke down.
        Stage(heavy, _near(1e-2), 300, "again", spare=True),
    )


def prepare(folder: Path, terrain: str) -> None:
    """Makes and compiles what all starts share."""
    programs = [_any_sides(folder, weight) for weight in SLACK_WEIGHTS]
    compile_blocks([t.block for p in programs for t in (*p.terms, *p.costs)])
    for name in {"authors", terrain}:
        authors_program(folder, name)


def run(folder: Path, terrain: str, seed: int) -> Continuation:
    """The answer from one start, on a ground by name.

    Its `seconds` are processor time: of the solver, of the judge and of assembling this
    start's programs, without what :func:`prepare` does once.
    """
    prepare(folder, terrain)
    authors, feet = authors_program(folder)
    x0 = guess(authors, folder, seed)
    began = time.process_time()
    found = solve_continuation(
        stages(folder, sides_of(feet, authors.view(x0)["q"])),
        x0,
        problem=authors,
        accept=lambda x: judge(authors, feet, completed(authors, x)).valid,
    )
    target, _ = authors_program(folder, terrain)
    x = completed(target, found.x)
    verdict = judge(target, feet, x)
    return replace(
        found,
        x=x,
        feasible=verdict.valid,
        objective=verdict.objective,
        worst=next(iter(target.residuals(x).items())),
        seconds=time.process_time() - began,
    )


def completed(target: Program, x: np.ndarray) -> np.ndarray:
    """x with the least psi and eta that its positions allow on the target's ground,

        psi = max(0, max -D'p_dot),    eta = D'p_dot + 1 psi,

    and a slack within the target's bounds.

    Other values of psi and eta satisfy complementarity only where these do. They depend
    on the ground: the normal at a foot in the air before a box is that of its wall.
    """
    parts, row, s = target.view(x), target.rows["slip"], target.variables["s"]
    slip = target.values(x)[row.start : row.stop].reshape(KNOTS - 1, 4, 4)
    eta = parts["eta"].reshape(slip.shape)
    speed = slip - parts["psi"][..., None] + eta
    psi = np.maximum(0.0, (-speed).max(axis=2))
    eta = (speed + psi[..., None]).reshape(KNOTS - 1, 16)
    slack = np.maximum(parts["s"], s.lower)
    return target.pack({"psi": psi, "eta": eta, "s": slack}, x)
