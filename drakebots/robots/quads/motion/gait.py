"""Synthesis of gaits and foot lifts for any quad-robot: requested motions for a plan.

    gait = Gait({"FL": 0, "FR": 0.5, "RL": 0.5, "RR": 0}, duty=0.6, period=1, lift=0.03)
    motion = synthesize(load_quad("beetle"), gait, speed=0.1)

A gait is given by its footfall pattern, and its speed and turning rate. The feet stand
and swing along the path of the body; the COM follows by a convex program that keeps the
ZMP in the support polygons (:func:`com_path`). Swings are smooth, or those of a
trotting horse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from pydrake.solvers import ClarabelSolver, MathematicalProgram
from scipy.interpolate import CubicHermiteSpline, CubicSpline, PchipInterpolator

from drakebots.core.checks import (
    RANGES,
    between,
    by_name,
    check_memory,
    check_value,
    finite,
    instance,
    optional,
    positive,
    whole,
)
from drakebots.core.errors import InvalidInput, NoSolution, check_names
from drakebots.core.fields import checked
from drakebots.core.units import GRAVITY
from drakebots.model import context_at, joints_of, plane_rotation
from drakebots.robots.quads.motion.motion import (
    Footfall,
    MotionInput,
    by_foot,
    gait_footfall,
    margin,
    support_polygon,
)
from drakebots.robots.quads.robot import LinkSkin, Quad, half_planes

# --- path of the COM --------------------------------------------------------
#
# At constant height h the ZMP is linear in the path c of the COM, so the path is the
# solution of a convex program over K knots at constant time steps:
#
#     min  sum |c - c_n|^2 + w_a sum |cdd|^2 + w_j sum |cddd|^2 + w_s/K sum slack
#     s.t. n (c - h/g cdd) <= b - m + slack        for every side of every polygon
#
# with the nominal path c_n and a margin m, at most half of what the polygon allows.
# cdd and cddd are differences over the knots.

ACCELERATION, JERK = 1e-3, 1e-5
"""Weights w_a [s^4] and w_j [s^6]."""

SLACK = 1e3
"""Weight w_s [m]."""

KNOT_SPACING = 5
"""Number of time steps between the knots of a path of the COM."""


def com_path(
    nominal: np.ndarray,
    polygons: Sequence[np.ndarray | None],
    height: float,
    step: float,
    *,
    clearance: float = 0.015,
    periodic: bool = False,
    turn: float = 0.0,
) -> np.ndarray:
    """Path of the COM at the knots (K, 2) [m], which keeps the ZMP in the polygons.

    Args:
        nominal: nominal path (K, 2) [m].
        polygons: support polygon of each knot, counterclockwise (k, 2) [m]; None in
            flight, where the COM moves in a straight line.
        height: height of the COM [m].
        step: time between knots [s].
        clearance: margin m of the ZMP from the sides of the polygons [m].
        periodic: whether velocity and acceleration repeat; else the COM is at rest at
            both ends.
        turn: angle by which velocity and acceleration are turned at the last knot
            [rad], if periodic.

    Raises:
        NoSolution: when the solver finds no path.
    """
    nominal = np.asarray(nominal, float)
    K = len(nominal)
    R = plane_rotation(turn)
    # Unknowns x = [c_0x, c_0y, c_1x, ...]. D2 also has the accelerations at the first
    # ghost knot on either side; they do not count.
    wide = _widened(K, R, periodic)
    D2, D3 = (sp.kron(D, sp.eye(2)) @ wide for D in _differences(K, step))
    cdd = D2.tocsr()[2:-2]
    prog = MathematicalProgram()
    x = prog.NewContinuousVariables(2 * K, "c")
    slack = prog.NewContinuousVariables(K, "slack")
    prog.AddBoundingBoxConstraint(0, np.inf, slack)
    prog.AddLinearCost(np.full(K, SLACK / K), 0.0, slack)
    bend = ACCELERATION * cdd.T @ cdd + JERK * D3.T @ D3
    Q = 2 * (sp.eye(2 * K) + bend).toarray()
    prog.AddQuadraticCost(Q, -2 * nominal.ravel(), x, True)
    if periodic:
        # The offset from the nominal path repeats, turned.
        A = np.hstack([-R, np.eye(2)])
        gap = nominal[-1] - R @ nominal[0]
        prog.AddLinearEqualityConstraint(A, gap, np.concatenate([x[:2], x[-2:]]))
    for k, corners in enumerate(polygons):
        _keep_zmp(prog, k, corners, cdd, x, slack[k], height, clearance)
    result = ClarabelSolver().Solve(prog)
    if not result.is_success():
        raise NoSolution(
            "no path of the COM keeps the ZMP in the support polygons "
            f"({result.get_solution_result()}); lengthen the contacts or the period"
        )
    return result.GetSolution(x).reshape(K, 2)


def _keep_zmp(prog, k: int, corners, cdd, x, slack, height: float, clearance: float):
    """Adds the rows that keep the ZMP of knot k in its polygon, see above; None for
    flight, without acceleration."""
    here = np.arange(2 * k, 2 * k + 2)
    used = np.unique(np.concatenate([cdd[here].indices, here]))
    acceleration = cdd[here][:, used].toarray()
    if corners is None:
        prog.AddLinearEqualityConstraint(acceleration, np.zeros(2), x[used])
        return
    point = -height / GRAVITY * acceleration  # the ZMP is point @ x[used]
    point[[0, 1], np.searchsorted(used, here)] += 1.0
    n, b = half_planes(corners)
    room = max(margin(corners, corners.mean(axis=0)), 0.0)
    keep = min(clearance, 0.5 * room)
    A = np.hstack([n @ point, -np.ones((len(n), 1))])
    low = np.full(len(n), -np.inf)
    prog.AddLinearConstraint(A, low, b - keep, np.append(x[used], slack))


def _widened(K: int, R: np.ndarray, periodic: bool) -> sp.csr_matrix:
    """Matrix (2 (K + 4), 2 K) from x to the knots with two ghost knots at each end."""

    x, R = sp.eye(2 * K, format="csr"), sp.csr_matrix(R)
    c = [x[2 * k : 2 * k + 2] for k in range(K)]
    before, after = [c[0], c[0]], [c[-1], c[-1]]
    if periodic:
        before = [c[0] + R.T @ (c[-1 - j] - c[-1]) for j in (2, 1)]
        after = [c[-1] + R @ (c[j] - c[0]) for j in (1, 2)]
    return sp.vstack([*before, x, *after]).tocsr()


def _differences(K: int, step: float):
    """Matrices of second and third derivatives by differences over K + 4 knots."""
    n = K + 4
    D2 = sp.diags([1.0, -2.0, 1.0], [0, 1, 2], (n - 2, n)) / step**2
    D3 = sp.diags([-1.0, 3.0, -3.0, 1.0], [0, 1, 2, 3], (n - 3, n)) / step**3
    return D2, D3


def _com_at_steps(
    nominal: np.ndarray,
    polygons: Sequence[np.ndarray | None],
    height: float,
    dt: float,
    **options,
) -> np.ndarray:
    """Path of the COM at all steps (N, 3) [m]: the spline through :func:`com_path`.

    Args:
        nominal, polygons, height, options: as for :func:`com_path`.
        dt: time between steps [s].
    """
    c = com_path(nominal, polygons, height, KNOT_SPACING * dt, **options)
    at = KNOT_SPACING * np.arange(len(c))
    ends = "not-a-knot" if options.get("periodic") else "clamped"
    path = CubicSpline(at, c, axis=0, bc_type=ends)(np.arange(at[-1] + 1))
    return np.column_stack([path, np.full(len(path), height)])


# --- gaits ------------------------------------------------------------------
#
# The body follows the path P(t) with heading psi(t) = w t, P' = v [cos psi, sin psi].
# Every foot stands where its nominal place is in the middle of its stance t_m,
#
#     p_j = P(t_m) + R(psi(t_m)) r_j,
#
# and swings between such places; the COM follows by :func:`com_path`. Gaits are steady:
# the motion is periodic.

Swing = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Maps the progress of a swing in [0, 1] to the shares of its length and lift."""


DUTY = between(1e-3, 1)
"""Rule of a duty factor."""


def smooth_swing(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A swing without velocity and acceleration at both ends.

    Length: quintic; lift: 64 s^3 (1 - s)^3.
    """
    s = np.asarray(s, float)
    return s**3 * (10 - 15 * s + 6 * s**2), 64 * (s * (1 - s)) ** 3


@checked("gait")
class Gait:
    """Footfall pattern and swings of a gait.

    Raises:
        InvalidInput: for a value out of range.
    """

    phases: Mapping[str, float]
    """Phase of the touch-down of each foot [periods]."""
    duty: Annotated[float | Mapping[str, float], by_name(DUTY)]
    """Duty factor, the share of the period for which a foot is on the ground; of all
    feet, or by foot, as the next two."""
    period: Annotated[float, positive("s")]
    """Period T."""
    lift: Annotated[float | Mapping[str, float], by_name(finite("m"))]
    """Height of the swing feet."""
    swing: Swing | Mapping[str, Swing] = smooth_swing
    """Motion of the swing feet."""
    height: Annotated[float, finite("m")] = 0.0
    """Height of the COM above that at rest."""
    clearance: Annotated[float, finite("m")] = 0.015
    """Margin of the ZMP from the sides of the support polygons."""
    spread: Annotated[float, positive()] = 1.0
    """Factor of the distances of the feet's nominal places from the COM."""
    name: str = "gait"
    """Name of the gait."""
    reference: Mapping[str, Callable] = field(default_factory=dict)
    """Angles [rad] of some joints as functions of the time [periods], by name."""


def synthesize(
    quad: Quad,
    gait: Gait,
    *,
    speed: float,
    turning_rate: float = 0.0,
    cycles: int = 1,
    dt: float = 5e-3,
    flight: bool = False,
    skin: LinkSkin | None = None,
) -> MotionInput:
    """Makes a motion of whole cycles of a gait.

    Args:
        quad: the robot with its feet and its COM at rest.
        gait: the gait; its period is rounded to whole knots.
        speed: speed v [m/s], backwards if negative.
        turning_rate: turning rate w [rad/s], to the left.
        cycles: number of cycles.
        dt: time between steps [s].
        flight: whether the gait may have phases without support.
        skin: skin on the links, which shifts the COM at rest.

    Raises:
        InvalidInput: for values out of range, or an unintended phase without support.
        NoSolution: when no path of the COM keeps the ZMP in the support polygons.
    """
    check_value("speed", speed, finite("m/s"))
    check_value("turning rate", turning_rate, finite("rad/s"))
    _check_options(dt, skin)
    cycles = check_value("cycles", cycles, whole(1))
    knots = max(8, round(gait.period / (KNOT_SPACING * dt)))
    period, K = knots * (KNOT_SPACING * dt), cycles * knots + 1
    check_memory(f"a motion of {cycles} cycles", K, 1e4)
    timing = {"period": period, "duty": gait.duty, "dt": dt}
    steps = (K - 1) * KNOT_SPACING + 1
    footfall = gait_footfall(quad.feet, gait.phases, steps=steps, **timing)
    t = footfall.times
    place, centre = partial(_placed, speed, turning_rate), quad.rest_com(skin)
    # The path begins at the origin; the COM at rest is added to all at the end.
    feet = _feet_paths(quad, gait, t / period, period, place, centre)
    heading = turning_rate * t
    at = KNOT_SPACING * np.arange(K)
    here = zip(feet[at], footfall.contact[at], heading[at])
    polygons = [support_polygon(quad, *standing) for standing in here]
    nominal, height = place(t[at], np.zeros(2)), centre[2] + gait.height
    how = {"clearance": gait.clearance, "periodic": True, "turn": float(heading[-1])}
    com = _com_at_steps(nominal, polygons, height, dt, **how)
    com[:, :2] += centre[:2]
    feet[:, :, :2] += centre[:2]
    reference = {k: f(t / period) for k, f in gait.reference.items()}
    how = {"flight": flight, "reference": reference, "name": gait.name}
    return MotionInput(footfall, com, feet, heading, "cycle", **how)


def _check_options(dt: float, skin: LinkSkin | None) -> None:
    """Refuses a time between steps or a skin that is none."""
    check_value("dt", dt, positive("s"))
    check_value("skin", skin, optional(instance(LinkSkin)))


def _feet_paths(quad: Quad, gait, cycles, period, place, centre) -> np.ndarray:
    """Positions of all feet over time (N, feet, 3) [m].

    Args:
        quad: the robot.
        gait: its gait.
        cycles: times (N,) [periods].
        period: the period [s].
        place: places of the body's points over time, see :func:`_placed`.
        centre: COM at rest, from which the feet's nominal places are (3,) [m].
    """
    places = gait.spread * (quad.rest_feet[:, :2] - centre[:2])
    own = [
        by_foot(getattr(gait, key), quad.feet, key)
        for key in ("phases", "duty", "lift", "swing")
    ]
    paths = []
    for name, home in zip(quad.feet, places):
        phase, duty, lift, swing = (value[name] for value in own)
        # As in gait_footfall, a step on a boundary belongs to what begins there.
        since = cycles - phase + 1e-9
        landing = np.floor(since)
        progress = (since - landing - duty) / max(1 - duty, 1e-9)
        advance, rise = swing(np.clip(progress, 0, 1))
        middle = (landing + phase + duty / 2) * period
        here, there = place(middle, home), place(middle + period, home)
        ground = here + advance[:, None] * (there - here)
        paths.append(np.column_stack([ground, lift * rise]))
    return np.stack(paths, axis=1)


def _placed(
    speed: float, turning_rate: float, t: np.ndarray, r: np.ndarray
) -> np.ndarray:
    """Places P(t) + R(psi(t)) r of a point of the body (T, 2) [m].

    P is an arc through the origin, or a straight line.

    Args:
        speed: speed v [m/s].
        turning_rate: turning rate w [rad/s], to the left.
        t: times (T,) [s].
        r: place of the point at t = 0 (2,) [m].
    """
    psi = turning_rate * t
    # With sinc the formula includes the straight path.
    chord = speed * t * np.sinc(psi / (2 * np.pi))
    P = chord[..., None] * np.stack([np.cos(psi / 2), np.sin(psi / 2)], axis=-1)
    c, s = np.cos(psi), np.sin(psi)
    turned = np.stack([c * r[0] - s * r[1], s * r[0] + c * r[1]], axis=-1)
    return P + turned


# --- a horse's trot as foot paths -------------------------------------------
#
# Features of a trot in the plates of Muybridge and in textbooks: diagonal feet move
# together, half a period apart; a leg continues backwards after it leaves the ground,
# folds to its shortest before the middle of the swing, reaches furthest forward before
# it lands, and is already moving back when it does. The keyframes below are our own;
# they contain no recorded data, and the paper's labelled pictures are not available.
#
# The foot path scales with the length and the lift of the swing:
#
#     x = x_m f(s),  z = lift r(s),   s in [0, 1] the progress of the swing
#
# with f from -1 (left behind) to 1 (landed), whose slope at both ends is that of a
# foot at rest on the ground. Stride and period follow the scaling of gaits with the
# Froude number Fr = v^2/(g h) over animals of very different sizes,
#
#     stride / h = 2.4 Fr^0.34         (Alexander and Jayes, J. Zool. 201, 1983)

FOLD = np.array(
    [[0.0, 0.15, 0.3, 0.42, 0.6, 0.8, 1.0], [0.0, 0.42, 0.86, 1.0, 0.8, 0.36, 0.0]]
)
"""Progress s, and height of the foot as a share of the lift."""

REACH = np.array([[0.0, 0.18, 0.5, 0.85, 1.0], [-1.0, -1.02, 0.05, 1.05, 1.0]])
"""Progress s, and position of the foot behind (-1) or ahead (1) of the hip."""


def stride_length(speed: float, hip_height: float) -> float:
    """Distance that the body travels in one period of a trot [m].

    Args:
        speed: speed v [m/s].
        hip_height: height h of the hips [m].

    Raises:
        InvalidInput: unless both are > 0.
    """
    check_value("speed", speed, positive("m/s"))
    check_value("hip height", hip_height, positive("m"))
    froude = speed**2 / (GRAVITY * hip_height)
    return 2.4 * hip_height * froude**0.34


def horse_swing(duty: float) -> Swing:
    """The swing of a trotting horse for a gait with this duty factor beta.

    During a swing of (1 - beta) T the hip advances by (1 - beta) of the stride and the
    foot moves from -beta/2 to beta/2 of it relative to the hip, so the share of the
    stride is beta (f + 1)/2 + (1 - beta) s, at rest at both ends.
    """
    check_value("duty", duty, DUTY)
    slope = -2 * (1 - duty) / duty
    s, f = REACH
    inner = PchipInterpolator(s, f).derivative()(s)
    inner[[0, -1]] = slope
    reach = CubicHermiteSpline(s, f, inner)
    t, r = FOLD
    rise = np.gradient(r, t)
    rise[[0, -1]] = 0.0
    fold = CubicHermiteSpline(t, r, rise)

    def swing(s):
        s = np.asarray(s, float)
        advance = duty * (reach(s) + 1) / 2 + (1 - duty) * s
        return advance, np.maximum(fold(s), 0.0)

    return swing


# --- feet and legs ----------------------------------------------------------


def roles(quad: Quad) -> dict[str, str]:
    """Name of the foot at each place: fl, fr, rl, rr (front or rear, left or right).

    Raises:
        InvalidInput: unless there is one foot in each quarter.
    """
    middle = quad.rest_feet[:, :2].mean(axis=0)
    out = {}
    for name, p in zip(quad.feet, quad.rest_feet):
        key = ("f" if p[0] > middle[0] else "r") + ("l" if p[1] > middle[1] else "r")
        if key in out or len(quad.feet) != 4:
            raise InvalidInput(
                f"{quad.name}: a gait of the library needs four feet, one in each "
                f"quarter about their middle; got {', '.join(quad.feet)}"
            )
        out[key] = name
    return out


def leg_height(quad: Quad) -> float:
    """Height of the highest leg joint above the ground at rest [m]."""
    plant = quad.robot.plant
    context = context_at(plant, quad.rest)
    return max(
        joint.frame_on_child().CalcPoseInWorld(context).translation()[2]
        for joint in joints_of(plant)
        if joint.num_positions() and joint.position_start() >= 6
    )


def lift(
    quad: Quad,
    feet: Sequence[str],
    *,
    height: float | None = None,
    duration: float = 2.5,
    dt: float = 5e-3,
    lower: float = 0.0,
    skin: LinkSkin | None = None,
) -> MotionInput:
    """Makes a motion that lifts some feet together and puts them down again.

    The COM moves over the standing feet in the first third, after which the others
    leave the ground, and moves back in the last third.

    Args:
        quad: the robot.
        feet: names of the feet to lift.
        height: height of the lift [m]; a sixth of the legs' height by default.
        duration: duration of the motion [s], rounded to whole knots.
        dt: time between steps [s].
        lower: distance by which the COM is below its height at rest [m].
        skin: skin on the links, which shifts the COM at rest.

    Raises:
        UnknownName: for an unknown foot.
        InvalidInput: when no foot would stay on the ground, or for a duration < 1 s or
            of more steps than fit into memory.
    """
    check_names("foot", feet, quad.feet)
    if set(feet) == set(quad.feet) or not feet:
        raise InvalidInput("lift: name some of the feet, not all")
    _check_options(dt, skin)
    check_value("lift: duration", duration, between(1, RANGES["s"][1], "s"))
    height = leg_height(quad) / 6 if height is None else height
    for name, value in (("height", height), ("lower", lower)):
        check_value(f"lift: {name}", value, finite("m"))
    K = round(duration / (KNOT_SPACING * dt)) + 1
    check_memory(f"a lift of {duration:g} s", K, 1e4)
    N = (K - 1) * KNOT_SPACING + 1
    rises, lands = round(N * 0.34), round(N * 0.66)
    contact = np.ones((N, len(quad.feet)), bool)
    contact[rises:lands, np.isin(quad.feet, feet)] = False
    footfall, up, down = Footfall(quad.feet, contact, dt), rises * dt, lands * dt
    path = np.repeat(quad.rest_feet[None], N, axis=0)
    path[:, :, 2] = 0.0
    # Up in a third of the swing, then held, then down.
    s = 3 * np.clip((footfall.times - up) / (down - up), 0, 1)
    rise = smooth_swing(np.clip(s, 0, 1))[0] - smooth_swing(np.clip(s - 2, 0, 1))[0]
    for name in feet:
        path[:, quad.feet.index(name), 2] = height * rise
    centre = quad.rest_com(skin)
    nominal, down = np.repeat(centre[None, :2], K, axis=0), contact[::KNOT_SPACING]
    polygons = [support_polygon(quad, path[0], here, 0.0) for here in down]
    com = _com_at_steps(nominal, polygons, centre[2] - lower, dt, clearance=0.02)
    return MotionInput(footfall, com, path, name=f"lift {', '.join(feet)}")
