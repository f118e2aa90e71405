"""References of a controller: a pose, a place to go to, a clock for its feet.

A reference is called as (t, q, v) -> (q_ref, v_ref) and answers for knots at t, t + h,
... (:mod:`drakebots.control`). The base is asked to go on from where it is measured, so
that a push leaves no debt to catch up with: along its path at its speed, and where it
has a goal, back across to its line within RETURN; at the height, tilt and heading of
the standing pose, but for a turn that is asked for. The joints are those of the
standing pose or, with a gait, of feet that step on the spot or along the path by a
clock. Where feet come down is the controller's choice: the clock only bends the joints'
reference, whose weight is small.

Where the ground is not flat, the base follows the plane through the ground about its
feet in height and tilt, as far as its feet are apart. Each foot follows the ground
under it, a sole lies on what is under it, be that a slope or an edge, and a foot in the
air follows the highest ground that it may come to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydrake.systems.framework import Context

from drakebots.control.problem import MpcCost, Weights
from drakebots.core.checks import between, one_of, positive
from drakebots.core.fields import checked
from drakebots.core.units import GRAVITY
from drakebots.model import (
    Point,
    actuators_of,
    context_at,
    contexts_along,
    gravity,
    joints_of,
    position_limits,
    slides,
)
from drakebots.multibody import Flat, Robot, Terrain, base_body
from drakebots.trajopt.contact_implicit import ContactSystem
from drakebots.trajopt.locomotion import GAITS, base_axes
from drakebots.trajopt.locomotion import footfall as footfall_of

WEIGHTS = {
    "position": {"x": 5.0, "y": 5.0, "z": 40.0, "tilt": 200.0, "yaw": 50.0},
    "joints": 20.0,
    "velocity": {"x": 2.0, "y": 2.0, "z": 2.0, "tilt": 30.0, "yaw": 30.0},
    "joint_rates": 1.5,
    "effort": 0.7,
    "terminal": 0.2,
}
"""Weights of the cost, one set for all robots; masses, lengths and times are in units
of the robot's mass m, the height l of its centre of mass, and sqrt(l/g). The effort of
a sliding actuator is in units of m g times its lever, the speed of a foot per its own,
with loops closed."""

RETURN = 0.6
"""Time in which a deviation across the path should fade to 1/e [s]."""

STEPS = ("trot", "crawl")
"""Gaits by name: every second leg in turn, or one leg after the other."""

PHASES = 40
"""Number of phases of the table of stepping joints."""

CROUCHES, SPARE = np.linspace(0.0, 0.1, 11), 0.03
"""How far a robot that steps may go below its standing pose, and how far below the
ground its legs should then reach at the ends of its steps, as shares of its base's
height: straight legs cannot step."""

ABOUT = 0.3
"""The base's plane is fitted to the ground up to this far before and behind each foot,
as a share of the base's height, so that the base begins to rise before its feet do."""

SAMPLES = 17
"""Number of points at which the ground along such a line is looked at; the middle one
is under the foot."""

OVER = 0.5
"""A foot in the air passes over an edge by its clearance and this share of the edge's
height, since it may be some way off from where it was asked to be."""

DAMPING = 3e-5
"""Damping of the joints' change that lifts a foot, over the trace of its Jacobian's
square: a straight leg cannot lift its foot, to first order."""


INSIDE = 0.1
"""The search for the joints of given feet begins no nearer to their limits than this
share of their range: a straight knee, as it stands near its limit, would bend either
way."""

DAMPED = 1e-6
"""Least damping of the search for the joints of given feet [m^2]; ten times as much
after every step that would take the feet farther away (Levenberg and Marquardt)."""


@checked("gait")
class Gait:
    """A clock by which legs step in turn, by default a trot of a large robot."""

    period: Annotated[float, positive("s")] = 0.5
    """Period of a cycle."""
    duty: Annotated[float, between(0.1, 0.95)] = 0.55
    """Share of it in which a foot stands."""
    clearance: Annotated[float, positive("m")] = 0.05
    """Height of a foot halfway through its swing."""
    footfall: Annotated[str, one_of("footfall", GAITS)] = "alternating"
    """Which legs step together: every second one, round the robot (diagonal pairs of
    four legs, the tripods of six, the left and the right one of two), or in a crawl
    none, hind before fore, one side after the other."""

    @classmethod
    def named(cls, name: str, legs: int, size: float) -> Gait:
        """One of STEPS; a turn of those that step together takes as long in all.

        Args:
            legs: number of legs.
            size: of the robot, as a share of a large one's: lengths shrink with it,
                times with its root.
        """
        own, crawls = cls(), name == "crawl"
        turns = max(legs, 2) if crawls else 2
        return cls(
            np.sqrt(size) * own.period * turns / 2,
            1 - (1 - own.duty) * 2 / turns,
            size * own.clearance,
            "crawl" if crawls else own.footfall,
        )

    def swing(self, time: np.ndarray, phases: np.ndarray) -> np.ndarray:
        """Share of its swing that each foot has behind it (..., nc); 0 on the ground.

        Args:
            time: (...) [s].
            phases: share of the cycle that each foot has behind it at time 0 (nc,).
        """
        phase = np.mod(np.asarray(time)[..., None] / self.period + phases, 1.0)
        return np.where(phase < 1 - self.duty, phase / (1 - self.duty), 0.0)

    def stance(self, time: np.ndarray, phases: np.ndarray) -> np.ndarray:
        """Share of its stance behind it (..., nc); 1 in the air."""
        phase = np.mod(np.asarray(time)[..., None] / self.period + phases, 1.0)
        return np.where(phase < 1 - self.duty, 1.0, (phase - 1 + self.duty) / self.duty)


def phases_of(feet: Sequence[Point], places: np.ndarray, footfall: str) -> np.ndarray:
    """Share of the cycle that each foot has behind it at time 0 (nc,), when the first
    leg from straight ahead to the left lifts.

    Args:
        feet: the feet; those of one link are one leg's.
        places: x (ahead) and y (left) of them (nc, 2).
        footfall: as of a :class:`Gait`.
    """
    lifts = footfall_of(feet, places, footfall)
    x, y = (places - places.mean(axis=0)).T
    first = np.argmin(np.mod(np.arctan2(y, x), 2 * np.pi))
    return np.mod(lifts[first] - lifts, 1.0)


def default_cost(
    robot: Robot, motion: ReferenceMotion, height: float, effort: Weights | None = None
) -> MpcCost:
    """The cost of :data:`WEIGHTS` for a robot.

    Args:
        robot: on a base whose velocities are the positions' rates.
        motion: its reference, from its standing pose.
        height: of its centre of mass when it stands [m].
        effort: weight of efforts in place of that of WEIGHTS, as in `MpcCost`.
    """
    nv, plant = robot.plant.num_velocities(), robot.plant
    g = gravity(plant) or GRAVITY
    context = context_at(plant, motion.q)
    weight, time2 = plant.CalcTotalMass(context) * g, height / g
    position = np.full(nv, WEIGHTS["joints"])
    velocity = np.full(nv, WEIGHTS["joint_rates"] * time2)
    efforts = np.full(plant.num_actuators(), weight * height)
    for motor, lever in _levers(robot, context, list(motion.axes.values())):
        efforts[motor.input_start()] = weight * lever
    for joint in joints_of(plant):
        if slides(joint):
            i = joint.velocity_start()
            position[i], velocity[i] = np.array([position[i], velocity[i]]) / height**2
    for axis, i in motion.axes.items():
        length2 = height**2 if axis in "xyz" else 1.0
        name = "tilt" if axis in ("roll", "pitch") else axis
        position[i] = WEIGHTS["position"][name] / length2
        velocity[i] = WEIGHTS["velocity"][name] * time2 / length2
    effort = WEIGHTS["effort"] / efforts**2 if effort is None else effort
    ends = WEIGHTS["terminal"] * position, WEIGHTS["terminal"] * velocity
    return MpcCost(position, velocity, effort, *ends)


def _levers(robot: Robot, context: Context, base: list[int]):
    """Each sliding actuator, and the speed of the fastest foot per its own: the base at
    rest, loops closed."""
    plant = robot.plant
    motors = actuators_of(plant)
    one = np.eye(plant.num_velocities())
    loops = robot.closure.evaluate(context)[1]
    driven = one[[motor.joint().velocity_start() for motor in motors]]
    rates = np.linalg.pinv(np.vstack([loops, one[base], driven]))[:, -len(motors) :]
    feet = (robot.feet_jacobian(context) @ rates).reshape(-1, 3, len(motors))
    for motor, lever in zip(motors, np.linalg.norm(feet, axis=1).max(axis=0)):
        if slides(motor.joint()) and lever > 0:
            yield motor, float(lever)


class ReferenceMotion:
    """Motion that a controller is to follow: a reference; see the module.

    Args:
        robot: on a base whose velocities are the positions' rates ("euler", "fixed").
        q: the standing pose at the start (nq,).
        step: between knots [s].
        knots: number of intervals.
        goal: goal of the base, from its start (2,) [m]; None to go on with
            `speed` ahead and `turn`.
        speed: largest speed [m/s].
        turn: rate of the heading without a goal [rad/s].
        gait: clock of the feet; None for a pose.
        terrain: the ground, on which q stands.

    Attributes:
        axes: index of each coordinate of the base by name ("x", ..., "yaw").
        q: the standing pose at the start, :func:`crouched` for its steps (nq,).
        gait: clock of the feet, or None.
        terrain: the ground.
        horizon: duration of what a call answers [s].
        phases: with a gait, share of a cycle behind each foot at time 0 (nc,).
    """

    def __init__(
        self,
        robot: Robot,
        q: np.ndarray,
        *,
        step: float,
        knots: int,
        goal: np.ndarray | None = None,
        speed: float = 0.0,
        turn: float = 0.0,
        gait: Gait | None = None,
        terrain: Terrain | None = None,
    ):
        self.axes, self._joints = _parts(robot)
        self.q, self.gait = np.array(q, float), gait
        if gait is not None:
            self.q = crouched(robot, self.q, gait, speed)
        self.terrain = Flat() if terrain is None else terrain
        self._step, self._times = step, step * np.arange(knots + 1)
        self.horizon = float(self._times[-1])
        self._plane = [self.axes[a] for a in "xy" if a in self.axes]
        size = len(self._plane)
        self._goal, self._speed, self._turn = None, speed, turn
        self._ahead = np.eye(2)[0, :size]
        if goal is not None:
            self._goal = np.asarray(goal, float)[:size]
            away = float(np.linalg.norm(self._goal))
            self._ahead = self._goal / away if away > 0 else self._ahead
            self._turn = 0.0
        self._tables(robot)

    # --- the base ---

    def __call__(
        self, t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions (knots + 1, nq) and velocities (knots + 1, nv) from time t on."""
        out, rates = self.sample(t + self._times, q)
        self.wind(out, q)
        return out, rates

    def wind(self, out: np.ndarray, q: np.ndarray) -> None:
        """Turns the base's angles by whole turns to those nearest to a robot at q: one
        that was turned round, or rolled over, does not owe the way back."""
        for k in (self.axes[name] for name in ("roll", "yaw") if name in self.axes):
            out[:, k] += 2 * np.pi * np.round((q[k] - out[0, k]) / (2 * np.pi))

    def sample(self, times: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The reference at times (n,) for a robot that is at q at the first of them."""
        after, out = times - times[0], np.empty((len(times), len(self.q)))
        out[:] = self.q
        rates = np.zeros_like(out)
        here = q[self._plane] - self.q[self._plane]
        where, speed = self._path(times, after, here)
        out[:, self._plane] += where
        rates[:, self._plane] = speed
        share = np.ones(len(times))
        if self._speed:
            share = np.linalg.norm(speed, axis=1) / self._speed
        if "yaw" in self.axes:
            yaw = self.axes["yaw"]
            out[:, yaw] += self._turn * times
            rates[:, yaw] = self._turn
        if self.gait is not None:
            joints, moving = self._stepping(times, share)
            out[:, self._joints], rates[:, self._joints] = joints, moving
        if not isinstance(self.terrain, Flat):
            self._over_ground(times, share, out, rates)
        return out, rates

    def _path(self, times, after, here) -> tuple[np.ndarray, np.ndarray]:
        """Reference of the base in the plane, from its start, and its velocity."""
        if self._goal is None:
            yaw = self._turn * times if len(self._plane) == 2 else 0 * times
            velocity, where = np.empty((2, len(times), len(self._plane)))
            for axis, ahead in zip(range(len(self._plane)), (np.cos, np.sin)):
                velocity[:, axis] = self._speed * ahead(yaw)
            steps = np.diff(after)[:, None] * velocity[1:]
            where[0] = here
            where[1:] = here + np.cumsum(steps, axis=0)
            return where, velocity
        length = float(np.linalg.norm(self._goal))
        done = float(here @ self._ahead)
        # Slower towards the goal, as a robot that brakes in half a second.
        along = [min(max(done, 0.0), length)]
        speeds = []
        for dt in np.diff(after, append=after[-1] + self._step):
            speeds.append(min(self._speed, 2.0 * (length - along[-1])))
            along.append(along[-1] + dt * speeds[-1])
        across = here - done * self._ahead
        fading = np.exp(-after / RETURN)[:, None] * across
        where = np.array(along[:-1])[:, None] * self._ahead + fading
        return where, np.array(speeds)[:, None] * self._ahead

    # --- the clock ---

    def _tables(self, robot: Robot) -> None:
        """The feet under q and their ground; with a gait, joints by phase for steps on
        the spot, and at full speed and turn."""
        plant, context = robot.plant, context_at(robot.plant, self.q)
        self._feet = feet = robot.feet_positions(context)
        # The base's coordinates before its tilt say where it is.
        centre = np.zeros(3)
        centre[: len(self._plane)] = self.q[self._plane]
        self._arms = arms = feet - centre
        bodies = np.array([foot.body for foot in robot.model.feet])
        self._legs = [np.flatnonzero(bodies == b) for b in dict.fromkeys(bodies)]
        self._soles = arms[:, :2].copy()
        for leg in self._legs:
            self._soles[leg] -= self._soles[leg].mean(axis=0)
        self._radius = max((foot.radius for foot in robot.model.feet), default=0.0)
        stands = plant.EvalBodyPoseInWorld(context, base_body(plant)).translation()
        self._about = ABOUT * float(stands[2] - feet[:, 2].mean())
        # Feet in a line do not determine the slope across it.
        self._middle = arms[:, :2].mean(axis=0)
        sides = arms[:, :2] - self._middle
        sides = sides * (np.ptp(sides, axis=0) > self._about)
        self._fit = np.linalg.pinv(np.column_stack([np.ones(len(arms)), sides]))
        # The plane that q stands on, which may be steep.
        radii = [foot.radius for foot in robot.model.feet]
        level, *slopes = self._fit @ (feet[:, 2] - radii)
        self._under = level, np.array(slopes)
        ahead = np.zeros(3)
        ahead[: len(self._plane)] = self._speed * self._ahead
        self._passing = ahead + self._turn * np.cross([0, 0, 1.0], arms)
        self._by_clock(robot)

    def _by_clock(self, robot: Robot) -> None:
        """The joints by phase of the gait, where there is one."""
        context, joints = robot.plant.CreateDefaultContext(), self._joints
        self._table, self._lifts = [self.q[None, joints]], None
        if self.gait is not None:
            feet, places = robot.model.feet, self._arms[:, :2]
            self.phases = phases_of(feet, places, self.gait.footfall)
            times = self.gait.period * np.arange(PHASES) / PHASES
            self._table = [
                follow_feet(robot, context, self.q, joints, self._feet + steps)
                for steps in (self._steps(times, v) for v in self._passings())
            ]
        if not isinstance(self.terrain, Flat):
            self._lifts = self._lifting(robot, context)

    def _passings(self) -> list[np.ndarray]:
        """Velocities at which the base passes its feet (nc, 3), a table for each."""
        return [np.zeros_like(self._passing), self._passing]

    def _along(self, times: np.ndarray, passing: np.ndarray) -> np.ndarray:
        """Displacements of the feet along the ground (n, nc, 3) when the base passes
        them at (nc, 3)."""
        gait = self.gait
        swing = gait.swing(times, self.phases)[..., None]
        stance = gait.stance(times, self.phases)[..., None]
        smooth = swing - np.sin(2 * np.pi * swing) / (2 * np.pi)
        stride = gait.duty * gait.period * passing
        return np.where(swing > 0, smooth - 0.5, 0.5 - stance) * stride

    def _steps(self, times: np.ndarray, passing: np.ndarray) -> np.ndarray:
        """Displacements of the feet (n, nc, 3) when the base passes them at (nc, 3)."""
        along = self._along(times, passing)
        rise = (along[..., :2] @ self._under[1])[..., None] * [0, 0, 1]
        swing = self.gait.swing(times, self.phases)[..., None]
        lift = self.gait.clearance * np.sin(np.pi * swing) ** 2 * [0, 0, 1]
        return along + rise + lift

    def _stepping(self, times, share) -> tuple[np.ndarray, np.ndarray]:
        """The stepping joints (n, nj) and their rates, at shares of full speed (n,)."""
        at = np.mod(times / self.gait.period, 1.0) * PHASES
        low = at.astype(int) % PHASES
        still, fast = ([table[low], table[(low + 1) % PHASES]] for table in self._table)
        part, share = (at - low)[:, None], share[:, None]
        a, b = (s + share * (f - s) for s, f in zip(still, fast))
        return a + part * (b - a), (b - a) * PHASES / self.gait.period

    # --- the ground ---

    def on_ground(self, q: np.ndarray) -> np.ndarray:
        """A pose of robots that stand where they are at q (nq,), which is one for flat
        ground: base and soles as the ground under them asks, to first order."""
        out = q[None].copy()
        if not isinstance(self.terrain, Flat):
            self._over_ground(np.zeros(1), None, out, np.zeros_like(out))
        return out[0]

    def _over_ground(self, times, share, out, rates) -> None:
        """Adds what the ground changes to a reference for flat ground.

        Args:
            times: (n,) [s].
            share: of the full speed, by time (n,); None where the feet stand.
            out, rates: the reference and its rates (n, nq); are changed.
        """
        along, swinging = np.zeros((1, *self._arms.shape)), np.zeros(1, bool)
        reach, phase = self._radius, np.zeros(len(times), int)
        if self.gait is not None and share is not None:
            along = share[:, None, None] * self._along(times, self._passing)
            swinging = self.gait.swing(times, self.phases) > 0
            length = np.linalg.norm(self._passing, axis=1).max(initial=0.0)
            reach += self.gait.duty * self.gait.period * length / 2
            phase = (np.mod(times / self.gait.period, 1.0) * PHASES).astype(int)
            phase %= PHASES
        level, slopes = self._plane_under(out)
        arms = (self._arms + along)[..., :2]
        places = arms[:, :, None] + self._line(reach)
        plane = np.einsum("kcsi,ki->kcs", places - self._middle, slopes)
        off = self._heights(out, places) - level[:, None, None] - plane
        # A foot in the air passes over the highest place that it may come to.
        over = off.max(axis=2) + OVER * np.ptp(off, axis=2)
        own = np.where(swinging, over, off[:, :, SAMPLES // 2])
        # A sole rests on the highest ground under its points.
        ahead, asked = self._path_axis, np.zeros((len(times), len(self._legs), 3))
        for leg, points in enumerate(self._legs):
            tilt = self._steepness(out, arms[:, points], ahead) - slopes @ ahead
            tilted = np.outer(tilt, self._soles[points] @ ahead)
            asked[:, leg, 0] = (own[:, points] - tilted).max(axis=1)
            asked[:, leg, 1:] = np.outer(tilt, ahead)
        lifts = np.einsum("kli,klij->kj", asked, self._lifts[phase])
        angles = np.arctan(slopes) - np.arctan(self._under[1])
        changes = {
            "z": level - self._under[0],
            "pitch": -angles[:, 0],
            "roll": angles[:, 1],
        }
        for name, change in changes.items():
            if name in self.axes:
                out[:, self.axes[name]] += change
                rates[:, self.axes[name]] += _rates(change, times)
        out[:, self._joints] += lifts
        rates[:, self._joints] += _rates(lifts, times)

    def _plane_under(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The plane through the ground about the feet of robots at q (n, nq): its
        height in their middle (n,) [m], its slopes ahead and to the left (n, 2)."""
        places = self._arms[None, :, None, :2] + self._line(self._about)
        fitted = self._heights(q, places).mean(axis=2) @ self._fit.T
        return fitted[:, 0], fitted[:, 1:]

    def _steepness(self, q, points: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """Slope along the path (n,) of a sole that rests on the ground under it: on the
        two places that carry its middle, or as level as it can lie on one.

        Args:
            q: robots (n, nq).
            points: of the sole, from the base (n, k, 2) [m].
            ahead: direction of the path (2,).
        """
        reach = np.ptp(points @ ahead, axis=1).max() / 2
        if reach == 0:
            return np.zeros(len(q))
        x = np.linspace(-reach, reach, SAMPLES)
        places = points.mean(axis=1)[:, None] + np.outer(x, ahead)
        heights = self._heights(q, places[:, None])[:, 0]
        back, front = x < 0, x > 0
        span = x[front] - x[back][:, None]
        b, f = heights[:, back, None], heights[:, None, front]
        between = (b * x[front] - f * x[back][:, None]) / span
        middle = np.maximum(between.max(axis=(1, 2)), heights[:, SAMPLES // 2])[:, None]
        most = ((heights[:, back] - middle) / x[back]).min(axis=1)
        least = ((heights[:, front] - middle) / x[front]).max(axis=1)
        return np.clip(0.0, least, most)

    @property
    def _path_axis(self) -> np.ndarray:
        """Direction of the path in the plane (2,), along the robot's axes."""
        return np.append(self._ahead, [0.0, 0.0])[:2]

    def _line(self, reach: float) -> np.ndarray:
        """Points (SAMPLES, 2) up to `reach` [m] behind and before, along the path."""
        return np.linspace(-reach, reach, SAMPLES)[:, None] * self._path_axis

    def _heights(self, q: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Heights of the ground (n, nc, k) [m] under robots at q (n, nq), at places
        (n, nc, k, 2) from the base [m]. Places turn with the robot: they are along the
        world's axes where its heading is that of the standing pose."""
        yaw, here = np.zeros(len(q)), np.zeros((len(q), 2))
        if "yaw" in self.axes:
            yaw = q[:, self.axes["yaw"]] - self.q[self.axes["yaw"]]
        here[:, : len(self._plane)] = q[:, self._plane]
        x, y = places[..., 0], places[..., 1]
        c, s = np.cos(yaw)[:, None, None], np.sin(yaw)[:, None, None]
        x_0, y_0 = here.T[:, :, None, None]
        return self.terrain.heights(x_0 + c * x - s * y, y_0 + s * x + c * y)

    def _lifting(self, robot: Robot, context: Context) -> np.ndarray:
        """Changes of the joints by phase that lift all feet of a leg by 1 m, and that
        tilt its sole up ahead and to the left by 1, to first order
        (phases, legs, 3, nj)."""
        plant, q, table = robot.plant, self.q.copy(), []
        up, T = np.array([[0.0], [0.0], [1.0]]), _leading(robot, self._joints)
        lifts = np.column_stack([np.ones(len(self._soles)), self._soles])
        for joints in self._table[0]:
            q[self._joints] = joints
            plant.SetPositions(context, q)
            rows = robot.feet_jacobian(context)[:, self._joints] @ T
            rows = rows.reshape(len(lifts), 3, -1)
            table.append([])
            for leg in self._legs:
                J, asked = np.concatenate(rows[leg]), np.kron(lifts[leg], up)
                # The joints do not move a trunk that lies on the ground.
                damped = J @ J.T + max(DAMPING * np.sum(J**2), 1e-12) * np.eye(len(J))
                table[-1].append((T @ J.T @ np.linalg.solve(damped, asked)).T)
        return np.array(table)


def _rates(values: np.ndarray, times: np.ndarray) -> np.ndarray | float:
    """Rates of values (n, ...) at times (n,); 0 at a single one."""
    return np.gradient(values, times, axis=0) if len(times) > 1 else 0.0


def _leading(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """T (nj, n): changes of joints by those of the ones that follow no other."""
    T = robot.closure.leading()[joints]
    return T[:, np.abs(T).max(axis=0) > 0]


def _parts(robot: Robot) -> tuple[dict[str, int], np.ndarray]:
    """The coordinates of the base by name, and those of the joints."""
    names = ContactSystem(robot).coordinates
    axes = {axis: names.index(name) for axis, name in base_axes(robot).items()}
    return axes, np.array([i for i in range(len(names)) if i not in axes.values()])


def crouched(robot: Robot, q: np.ndarray, gait: Gait, speed: float) -> np.ndarray:
    """A standing pose, lower by as much as its legs need to reach the ends of their
    steps ahead, and SPARE below them (nq,); as it is where they do not reach them at
    any height.

    Args:
        robot: the robot.
        q: the pose (nq,).
        gait: of the steps.
        speed: of the base [m/s].
    """
    if "z" not in _parts(robot)[0]:
        return q
    context = context_at(robot.plant, q)
    feet = robot.feet_positions(context)
    X_WB = robot.plant.EvalBodyPoseInWorld(context, base_body(robot.plant))
    stands = X_WB.translation()[2] - feet[:, 2].mean()
    half = gait.duty * gait.period * speed / 2
    ends = feet + np.array([[[x, 0.0, -SPARE * stands]] for x in (-half, half)])
    for share in CROUCHES:
        low = raised(robot, q, -share * stands, feet) if share else q
        if feet_miss(robot, low, ends) < SPARE * stands / 10:
            return low
    return q


def feet_miss(robot: Robot, q: np.ndarray, places: np.ndarray) -> float:
    """Largest coordinate [m] by which feet miss places (n, nc, 3) in the world, one set
    after the other, with the base where it is at q (nq,)."""
    poses = (raised(robot, q, 0.0, feet) for feet in places)
    along = contexts_along(robot.plant, poses)
    reached = np.array([robot.feet_positions(context) for context in along])
    return float(np.abs(reached - places).max(initial=0.0))


def raised(robot: Robot, q: np.ndarray, rise: float, feet: np.ndarray) -> np.ndarray:
    """A pose q (nq,) with its base higher by `rise` [m], and its feet at places (nc, 3)
    in the world [m], or as near as they come."""
    (axes, joints), q = _parts(robot), q.copy()
    q[axes["z"]] += rise
    context = robot.plant.CreateDefaultContext()
    q[joints] = follow_feet(robot, context, q, joints, feet[None])[0]
    return q


def follow_feet(
    robot: Robot, context, q: np.ndarray, joints: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Joints (n, nj) whose feet are at targets (n, nc, 3) in the world, the base held.

    Args:
        robot: the robot.
        context: of its plant; is overwritten.
        q: positions that the first target is sought from (nq,), with joints that
            follow others where these have them.
        joints: indices of the joints that may move (nj,), with those that follow them.
        targets: of the feet; they are missed where the joints do not reach within
            their limits [m].
    """
    plant, out, q = robot.plant, [], np.array(q, float)
    T = _leading(robot, joints)
    ends = zip((np.minimum, np.maximum), position_limits(plant))
    low, high = (pick(q, end)[joints] for pick, end in ends)
    # Of joints that follow one another each would be stopped without the others.
    coupled = (T != 0) @ ((T != 0).sum(axis=0) > 1)
    low[coupled], high[coupled] = -np.inf, np.inf

    def rows(q, target):
        plant.SetPositions(context, q)
        miss = [(target - robot.feet_positions(context)).ravel()]
        J = [robot.feet_jacobian(context)[:, joints]]
        if robot.closure.num_rows:
            c, C = robot.closure.evaluate(context)
            miss.append(-c)
            J.append(C[:, joints])
        return np.vstack(J) @ T, np.concatenate(miss)

    moves = np.abs(T @ rows(q, targets[0])[0].T).max(axis=1) > 0
    room = np.where(np.isfinite(high - low) & moves, INSIDE * (high - low), 0.0)
    q[joints] = np.clip(q[joints], low + room, high - room)
    for target in targets:
        # Damped: a leg without a joint sideways cannot follow all, and one that is too
        # short would be thrown about by its last millimetre.
        damping, (A, b) = DAMPED, rows(q, target)
        for _ in range(20):
            H, trial = A.T @ A + damping * np.eye(T.shape[1]), q.copy()
            trial[joints] += T @ np.linalg.solve(H, A.T @ b)
            trial[joints] = np.clip(trial[joints], low, high)
            there = rows(trial, target)
            if there[1] @ there[1] <= b @ b:
                q, (A, b), damping = trial, there, max(DAMPED, damping / 10)
            else:
                damping *= 10
        out.append(q[joints])
    return np.array(out)
