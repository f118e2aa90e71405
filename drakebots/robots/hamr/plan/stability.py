"""Whether a gait's plan will hold under the leg controller, before it is executed.

    metrics = stability_metrics(contact, solution.parts)
    metrics["floquet_max"]              # deviations shrink from cycle to cycle if < 1

The controller of `track` (RSS 2018, eq. (22)) is written as linear feedback of the
markers in the chassis frame, about the plan:

    u = u_plan + K_p (y_plan - y) + K_d d(y_plan - y)/dt,    y = x, z of every marker

Its estimates are taken as true, but late. The encoders carry the late video frames up
to the present sample, which is held for a period T_s, so positions are late by half a
period in the mean. The velocity is that of the sample before, one and a half periods
late. The estimator's table, sampling as such, and voltages at the ends of their range
are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import casadi as ca
import numpy as np

from drakebots.core.errors import NoSolution
from drakebots.robots.hamr.model import hamr_encoder
from drakebots.robots.hamr.plan.programs import hamr_system
from drakebots.robots.hamr.reference import CHASSIS
from drakebots.robots.hamr.track.controller import KD, KP, feedback_signs
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    CycleMap,
    Feedback,
)

DEVIATION = 30e-6
"""Size of the deviations that are followed: the least error of executed feet [m]."""

_CYCLES, _RUNS = 15, 2
_LARGEST = 5


@cache
def leg_feedback(kp: float = KP, kd: float = KD) -> Feedback:
    """The leg controller in the units of :func:`hamr_system`.

    Args:
        kp: K_p [V/m].
        kd: K_d [V s/m].
    """
    robot = hamr_system().robot
    unit, signs = robot.scaling, np.diag(feedback_signs())
    period = hamr_encoder().period / unit.time

    def markers(twin, q: ca.SX) -> ca.SX:
        chassis = twin.pose(q, CHASSIS)
        rows = []
        for point in robot.model.points:
            p_WP = twin.point(q, point.body, point.p_BF / unit.length)
            p_CP = chassis.R.T @ (p_WP - chassis.p)
            rows += [p_CP[0], p_CP[2]]
        return ca.vertcat(*rows)

    return Feedback(
        markers,
        signs * kp * unit.length,
        signs * kd * unit.velocity,
        delay=0.5 * period,
        rate_delay=1.5 * period,
    )


def cycle_map(
    contact: ContactImplicit,
    parts: Mapping[str, np.ndarray],
    *,
    kp: float = KP,
    kd: float = KD,
    fed: np.ndarray | None = None,
) -> CycleMap:
    """Deviations of a gait under the leg controller, from cycle to cycle.

    Args:
        contact, parts: the gait's problem and its decision variables by name.
        kp, kd: gains as in :class:`.Tracking`; zeros for open loop.
        fed: voltages (M, 8) [V] with which it is executed, each for 1/M of the cycle;
            None for its own.
    """
    if fed is not None:
        middles = (np.arange(len(parts["u"])) + 0.5) / len(parts["u"])
        fed = fed[(middles * len(fed)).astype(int)]
    return CycleMap(contact, parts, leg_feedback(kp, kd) if kp or kd else None, fed)


def stability_metrics(
    contact: ContactImplicit,
    parts: Mapping[str, np.ndarray],
    fed: np.ndarray | None = None,
) -> dict:
    """Metrics of a gait's stability by :class:`.CycleMap`; takes about 1 s.

    Args:
        contact, parts, fed: as for :func:`cycle_map`.

    Returns:
        The metrics by name:

        * floquet_max: largest modulus of a multiplier for deviations of the size
          :data:`DEVIATION`; shifts in x and y and turns in yaw do not count;
        * floquet: modulus and coordinate of the largest multipliers;
        * floquet_held_max: the same modulus with every foot doing as planned;
        * predicted_stride_mm: mean stride of 15 cycles from such deviations. A run that
          differs by a whole stride counts as lost, and stands still from then on.
    """
    unit = hamr_system().robot.scaling.length
    size = DEVIATION / unit
    planned = float(parts["q"][-1, 0] - parts["q"][0, 0])
    out: dict = {"floquet_max": None, "floquet": [], "predicted_stride_mm": None}
    try:
        motion = cycle_map(contact, parts, fed=fed)
        found = motion.multipliers(size)
    except (NoSolution, np.linalg.LinAlgError):
        return out  # nothing to follow that far from the plan
    out["floquet_max"] = found.largest
    moduli = np.abs(found.multipliers[:_LARGEST]).tolist()
    out["floquet"] = [[m, name] for m, name in zip(moduli, found.names)]
    out["floquet_held_max"] = float(np.abs(found.held).max(initial=0.0))
    more = motion.advance(size, cycles=_CYCLES, runs=_RUNS)[..., 0]
    lost = ~(np.abs(more) < abs(planned))
    stride = np.where(np.logical_or.accumulate(lost, axis=1), 0.0, planned + more)
    out["predicted_stride_mm"] = 1e3 * unit * float(stride.mean())
    return out
