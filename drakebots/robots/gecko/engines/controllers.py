"""Controllers of the gecko's diagram: the gait in time, pressures, camera, cups.

All are sampled and held.

**The gait.** Every half cycle lasts t_fix + t_free + t_move:

    fix   all feet are fixed; the limbs keep their references
    free  only the feet of the new half cycle are fixed
    move  the references go evenly to those of the gait law

with q = (q1, q2) of the half cycle's start. Source: Front. Robot. AI 7:87 (2020),
Algorithm 1; the phases are those of the authors' description.

**Low-level control** of the limbs: angles through pressures (Fig. 11B).

                       ┌────────────┐ desired_pressure ┌───────────────┐ valve
    desired_bending ──▶│ angle loop │─────────────────▶│ pressure loop │──────▶
    bending ──────────▶│ p(a) + PI  │      pressure ──▶│ PID           │
                       └────────────┘                  └───────────────┘
                       ┌────────────┐
    valve ────────────▶│ chambers   │──▶ pressure
                       │ dp/dt      │──▶ free_bending
                       └────────────┘

A calibration curve p(alpha) gives a feedforward pressure, which a saturated PI
controller corrects; a PID controller drives the proportional valve of each chamber.
The limb's desired angle is then the one that the pressure gives a free limb. Source of
the structure and of the limit of 1.1 bar: Schiller, Seibel, Schlattmann, Front. Robot.
AI 7:87 (2020), section 5. The curve, the gains and the chamber's time constant are
ours; none is published. The torso has a chamber on either side; its pressure and its
angle have the sign of the pressurised side.

**Cups.** A cup with a torsional spring k resists a twist psi with a moment k psi; the
robot then comes to rest where sum K |alpha - alpha_ref|^2 + sum k psi^2 is least. The
pose step minimises f_a |alpha - alpha_ref| + f_o |psi| instead, norms without squares.
Its minimum is that of springs with the ratio

    k/K = (f_o/f_a) |alpha - alpha_ref| / |psi|

at the minimum itself. :class:`WeightedCups` follows that ratio while the robot moves,
as iteratively reweighted least squares do. Source: the pose-step objective, RA-L
5:1199 (2020); the control law is ours.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from drakebots.core.checks import non_negative, positive, whole
from drakebots.core.fields import checked
from drakebots.core.run import Stop, Verdict
from drakebots.multibody import Sampled
from drakebots.robots.gecko.engines.engine import (
    MET_AT_THE_START,
    Generator,
    Law,
    PhaseTimes,
)
from drakebots.robots.gecko.model import (
    Calibration,
    fixation,
    gait_law,
    parameters,
    saturate,
)

TORSION = 3.0
"""k/K of the plant's gains with weighted cups."""

CUP_PERIOD = 0.005
"""Sampling period of weighted cups [s]."""

RATIOS = (0.05, 3.5)
"""Smallest and largest k/K: unlike springs, norms have kinks."""

LEAST_TWIST = np.radians(0.02)
"""Smallest |psi| in the ratio [rad]."""


# --- the gait in time ---------------------------------------------------------


RAMP = 0.3
"""Share of the move phase in which the references go from the old to the new ones.
After a jump, limbs of constant curvature can end in a pose far from the one that a slow
motion reaches (our choice)."""

# Parts of the sequencer's state.
_GAIT, _SIGN = slice(0, 4), 4
_BEFORE, _NEXT, _FEET, _BEGAN = slice(5, 10), slice(10, 15), slice(15, 19), 19


class GaitSequencer(Sampled):
    """Commands reference angles and fixed feet by the gait law, phase by phase.

                              ┌───────────────┐──▶ desired_bending (5) rad
        gait_parameters (3) ─▶│ GaitSequencer │──▶ fixation (4) 0 or 1
                              └───────────────┘──▶ gait (4) phase, q1 signed, q2,
                                                   half cycles

    `gait_parameters` holds q1 > 0 [rad], q2, and whether to walk (> 0.5). It is read
    at the beginning of the free phase, so its source has the fix phase to decide.
    While the robot does not walk, all feet are fixed.

    Args:
        start: reference angles at first (5,) [rad].
        times: durations of the phases.
        law: reference angles at the end of a half cycle.
    """

    def __init__(self, start, times: PhaseTimes, law: Law = gait_law):
        held = fixation(-1).astype(float)
        state = np.concatenate([[2.0, 0, 0, 0, 1], start, start, held, [np.inf]])
        super().__init__("gait_sequencer", state, gait_parameters=3)
        self._ramp, self._law = RAMP * times.move, law
        self._declare_update(self._fix, times.half_cycle)
        self._declare_update(self._free, times.half_cycle, times.fix)
        self._declare_update(self._move, times.half_cycle, times.fix + times.free)
        self.DeclareVectorOutputPort("desired_bending", 5, self._alpha_ref)
        self._declare_output("fixation", _FEET)
        self._declare_output("gait", _GAIT)

    def _alpha_ref(self, context, output):
        x = self._state(context)
        share = min(max((context.get_time() - x[_BEGAN]) / self._ramp, 0.0), 1.0)
        output.SetFromVector(x[_BEFORE] + share * (x[_NEXT] - x[_BEFORE]))

    def _fix(self, context, x):
        x[0] = 0.0
        x[_FEET] = 1.0
        return x

    def _free(self, context, x):
        q1, q2, walk = self._input(context)
        x[0] = 1.0
        x[_BEFORE], x[_BEGAN] = x[_NEXT], np.inf
        if walk > 0.5:
            sign = x[_SIGN]
            x[1:3] = sign * abs(q1), q2
            x[3] += 1
            x[_SIGN] = -sign
            x[_NEXT] = self._law(x[1], q2)
            x[_FEET] = fixation(sign)
        return x

    def _move(self, context, x):
        x[0], x[_BEGAN] = 2.0, context.get_time()
        return x


# --- camera and generator ------------------------------------------------------


@checked("camera")
class Camera:
    """The camera that sees the robot's position and mean heading."""

    period: Annotated[float, positive("s")] = 0.1
    """Sampling period."""
    position_noise: Annotated[float, non_negative("m")] = 0.0
    """Standard deviation of x and of y."""
    heading_noise: Annotated[float, non_negative("rad")] = 0.0
    """Standard deviation of the heading."""
    seed: Annotated[int, whole(0)] = 0
    """Seed of the noise."""


class CameraSystem(Sampled):
    """Measures position and mean heading of the robot, sampled and held.

                   ┌──────────────┐
        pose (3) ─▶│ CameraSystem │──▶ measured_pose (3) x, y [m], heading [rad]
                   └──────────────┘

    The first sample is taken at Initialize.
    """

    def __init__(self, camera: Camera = Camera()):
        super().__init__("camera", np.zeros(3), pose=3)
        noise = camera.position_noise
        self._noise = np.array([noise, noise, camera.heading_noise])
        self._random = np.random.default_rng(camera.seed)
        self._declare_start(self._sample)
        self._declare_update(self._sample, camera.period, camera.period)
        self._declare_output("measured_pose", slice(0, 3))

    def _sample(self, context, x):
        return self._input(context) + self._noise * self._random.standard_normal(3)


class GeneratorSystem(Sampled):
    """Calls a gait generator once per half cycle.

                            ┌─────────────────┐
        measured_pose (3) ─▶│ GeneratorSystem │──▶ gait_parameters (3)
                            └─────────────────┘    q1 > 0 [rad], q2, walk 0 or 1

    The generator keeps its own state: every simulation needs a new one.

    Args:
        generator: chooses the gaits.
        period: duration of a half cycle [s].
    """

    def __init__(self, generator: Generator, period: float):
        super().__init__("generator", np.zeros(3), measured_pose=3)
        self._generator, self._arrived, self._decisions = generator, False, 0
        self._declare_update(self._decide, period)
        self._declare_output("gait_parameters", slice(0, 3))

    def _decide(self, context, x):
        *position, heading = self._input(context)
        decision = self._generator.decide(np.array(position), heading)
        self._arrived = decision is None
        if decision is None:
            x[2] = 0.0
            return x
        self._decisions += 1
        return np.array([decision.q1, decision.q2, 1.0])

    def stop(self, context) -> Stop | None:
        """Ends the run once the generator has reached its end."""
        if not self._arrived:
            return None
        done = f"every target was reached at {context.get_time():.4g} s"
        return Stop(Verdict.SUCCESS, done if self._decisions else MET_AT_THE_START)


# --- pressure ------------------------------------------------------------------


@checked("gains")
class Gains:
    """Gains of both loops."""

    angle_p: Annotated[float, non_negative("Pa/rad")] = 0.1e5
    """Proportional gain of the angle loop."""
    angle_i: Annotated[float, non_negative("Pa/(rad s)")] = 0.6e5
    """Integral gain of the angle loop."""
    lag: Annotated[float, positive("s")] = 0.06
    """Time constant of the angle loop's reference model."""
    correction: Annotated[float, non_negative("Pa")] = 0.2e5
    """Largest pressure that the angle loop adds."""
    pressure_p: Annotated[float, non_negative()] = 4.0
    """Proportional gain of the pressure loop, valve per p/p_max."""
    pressure_i: Annotated[float, non_negative("1/s")] = 20.0
    """Integral gain of the pressure loop."""
    pressure_d: Annotated[float, non_negative("s")] = 0.01
    """Derivative gain of the pressure loop."""


class PressureControl(Sampled):
    """Bends limbs by pressures: the loops and the chambers of the diagram above.

                              ┌─────────────────┐──▶ free_bending (n) rad
        desired_bending (n) ─▶│                 │──▶ desired_pressure (n) Pa
                              │ PressureControl │──▶ pressure (n) Pa
        bending (n) ─────────▶│                 │──▶ valve (n)
                              └─────────────────┘

    Inputs are alpha_ref and alpha [rad]; `free_bending` holds the angles that the
    pressures give free limbs. Against wind-up, an integral stands still while its
    output is saturated and the error would drive it further.

    Args:
        curve: calibration of every limb.
        gains: gains of every limb.
        one_sided: whether each limb has one chamber only, without negative p_ref
            (n,) of bool.
        alpha: angles of the pressures at first (n,) [rad].
        bent: angles of free limbs where the curve says (n,) [rad]: every limb has its
            own calibration, and the controller knows the curve alone.
    """

    def __init__(
        self, curve: Calibration, gains: Gains, one_sided, alpha, bent=np.asarray
    ):
        n, own = len(one_sided), parameters().table("pressure")
        start = np.zeros((7, n))
        start[6] = curve.pressure(alpha)
        inputs = {"desired_bending": n, "bending": n}
        super().__init__("pressure_control", start.ravel(), **inputs)
        self._curve, self._gains, self._times = curve, gains, own
        self._low = np.where(one_sided, 0.0, -curve.limit)
        self._declare_update(self._turn_angles, own["angle_period"])
        self._declare_update(self._turn_valves, own["period"])
        for row, name in ((1, "desired_pressure"), (5, "valve"), (6, "pressure")):
            self._declare_output(name, slice(row * n, (row + 1) * n))
        chambers = slice(6 * n, 7 * n)
        self._declare_output("free_bending", chambers, lambda p: bent(curve.bending(p)))

    def _turn_angles(self, context, x):
        """p_ref = p(alpha_ref) + sat(PI(alpha_m - alpha)), within the limit.

        alpha_m is alpha_ref behind a lag like that of the chambers: the delay of the
        feedforward is not an error.
        """
        g, period, rows = self._gains, self._times["angle_period"], x.reshape(7, -1)
        integral, _, model = rows[:3]
        reference = saturate(self._input(context), self._curve)
        model = model + (1 - np.exp(-period / g.lag)) * (reference - model)
        error = model - self._input(context, 1)
        forward = self._curve.pressure(reference)
        tried = integral + g.angle_i * period * error
        raw_sum = g.angle_p * error + tried
        added = np.clip(raw_sum, -g.correction, g.correction)
        p_ref = np.clip(forward + added, self._low, self._curve.limit)
        stuck = (raw_sum - (p_ref - forward)) * error > 0
        rows[:3] = np.where(stuck, integral, tried), p_ref, model
        return x

    def _turn_valves(self, context, x):
        """u = sat(p_ref/p_max + PID((p_ref - p)/p_max)) within -1..1.

        The derivative is that of the pressure, so that a step of p_ref gives no kick.
        Meanwhile the chambers have followed the valves as they were, exactly:
        dp/dt = (u p_max - p)/rise.
        """
        g, period, limit = self._gains, self._times["period"], self._curve.limit
        rows = x.reshape(7, -1)
        # What the angle loop sets at the same time counts from the next time on.
        _, p_ref, _, integral, before, valve, p = self._state(context).reshape(7, -1)
        reference, share = p_ref / limit, p / limit
        error = reference - share
        tried = integral + g.pressure_i * period * error
        rate = (share - before) / period
        full = reference + g.pressure_p * error + tried - g.pressure_d * rate
        u = np.clip(full, -1.0, 1.0)
        integral = np.where((full - u) * error > 0, integral, tried)
        rest, decay = valve * limit, np.exp(-period / self._times["rise"])
        rows[3:] = integral, share, u, rest + (p - rest) * decay
        return x


# --- cups ----------------------------------------------------------------------


class WeightedCups(Sampled):
    """Desired twist of the cups that makes their stiffness follow the ratio.

    With gains k0 = TORSION K in the plant, a desired twist of (1 - r/TORSION)
    psi leaves the moment r K psi.

                               ┌──────────────┐
        twist (4) ────────────▶│              │
        bending (5) ──────────▶│ WeightedCups │──▶ desired_state (8) twists, zeros
        desired_bending (5) ──▶└──────────────┘

    Inputs are the twists psi, zero for free feet, and the limbs' angles [rad].

    The ratio follows with a time constant of one period.

    Args:
        weight: f_o/f_a, > 0.
    """

    def __init__(self, weight: float):
        # The state: log of the ratio, the desired twists, and their rates, zero.
        inputs = {"twist": 4, "bending": 5, "desired_bending": 5}
        super().__init__("weighted_cups", [np.log(TORSION), *np.zeros(8)], **inputs)
        self._weight, self._share = weight, 1 - np.exp(-1)
        self._declare_update(self._update, CUP_PERIOD)
        self._declare_output("desired_state", slice(1, 9))

    def _update(self, context, x):
        twist = self._input(context)
        bend = self._input(context, 1) - self._input(context, 2)
        size = max(float(np.linalg.norm(twist)), LEAST_TWIST)
        ratio = self._weight * float(np.linalg.norm(bend)) / size
        x[0] += self._share * (np.log(min(max(ratio, RATIOS[0]), RATIOS[1])) - x[0])
        x[1:5] = (1 - np.exp(x[0]) / TORSION) * twist
        return x
