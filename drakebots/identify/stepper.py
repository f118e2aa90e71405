r"""The time step with parameters as symbols, and its exact derivatives.

With parameters x and inputs w = (efforts, targets, heights of the ground under the
feet), a step of length h solves the
equations of :mod:`drakebots.multibody.hard_contact`. Positions belong to its ends and
velocities to the middles between, so forces act at the mean of two velocities, to first
order in their difference, and the gains k_p of servos at that of three positions
(Newmark 1959): of second order, and stable for any damping and gain.

    [M - h/2 dtau/dv + h^2/4 k_p] (v+ - v) = h [ tau(q, v) + C'lam + N'gam + ... ]

The rows G(z, q, v, w, x) = 0 that hold at its solution, z = (v+, lam, gam, beta, psi,
zeta), give its derivatives by the implicit function theorem, dz = -G_z^-1 G_(q,v,w,x):
of each complementary pair the row that is zero counts. A step from which a foot only
begins to slide or to lift has a derivative on either side; that of contact is taken.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
import scipy.linalg
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ForceElement

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.model import (
    actuators_of,
    bodies_of,
    force_elements,
    gravity,
    part_name,
    single_joints,
    slides,
    spring_law,
)
from drakebots.multibody import (
    GROUND_FRICTION,
    PYRAMID,
    Robot,
    StepTerms,
    TimeStepper,
    Twin,
    base_body,
)

SETTLING = 0.2
"""Share of an open loop or a sunk foot that a step takes back. All of it, as steps of a
closed robot do, would throw a robot whose measured pose is a little wrong."""

TIE = 1e-7
"""Forces in units of weight, and speeds in m/s, that count as zero."""


SERVO = {"stiffness": "N m/rad", "damping": "N m s/rad", "delay": "s"}
"""Parameters of the servos of all motors with targets, and their units."""


@dataclass(frozen=True)
class Parameter:
    """One number to find.

    Attributes:
        name: as asked for.
        start: its values in the model [SI], by the names that stand in a YAML.
        unit: its unit; "1" of a factor for several.
        scale: its value where x is 1.
    """

    name: str
    start: Mapping[str, float]
    unit: str
    scale: float

    @property
    def first(self) -> float:
        """x of the model's own value."""
        return 1.0 if any(self.start.values()) else 0.0

    def values(self, x) -> dict:
        """Each value at x."""
        return {n: (v or self.scale) * x for n, v in self.start.items()}


Choices = Mapping[str, tuple[float, str]]
"""What can be found of a robot: value in the model and unit, by name."""


def choices_of(robot: Robot, servo: Mapping[str, float]) -> Choices:
    """What can be found of a robot without a skin, whose servos have these gains."""
    plant, found = robot.plant, {}
    if robot.model.feet:
        found["friction"] = robot.model.parameters.get("friction", GROUND_FRICTION), "1"
    for body in bodies_of(plant):
        if body.default_mass() > 0:
            found[f"mass:{part_name(body)}"] = body.default_mass(), "kg"
    gains = {
        part_name(motor.joint()): motor.get_controller_gains().p
        for motor in actuators_of(plant)
        if motor.has_controller()
    } | {joint: spring_law(spring)[0] for joint, spring in springs(robot).items()}
    for joint in single_joints(plant):
        per, name = "m" if slides(joint) else "rad", part_name(joint)
        unit = "N" if slides(joint) else "N m"
        if name in robot.model.summary.joints:
            damping = float(joint.default_damping_vector()[0])
            found[f"damping:{name}"] = damping, f"{unit} s/{per}"
        if name in gains:
            found[f"stiffness:{name}"] = gains[name], f"{unit}/{per}"
    return found | {f"servo.{k}": (servo.get(k, 0.0), u) for k, u in SERVO.items()}


def springs(robot: Robot) -> dict[str, ForceElement]:
    """Springs by the names of their joints."""
    found = [e for e in force_elements(robot.plant) if hasattr(e, "joint")]
    return {part_name(element.joint()): element for element in found}


_SMALL = {"N m s/rad": 1e-2, "N s/m": 1.0, "N m/rad": 1.0}
"""Scales of parameters that are 0 in the model."""


def chosen_parameters(
    choices: Choices, fit: Sequence[str], sample: float
) -> list[Parameter]:
    """The parameters of a robot that are asked for, patterns written out; a delay is
    looked for about the time between two samples [s].

    Raises:
        UnknownName: for what it does not have; lists those it has.
        InvalidInput: for one that is asked for twice.
    """
    chosen, seen = [], Counter()
    small = _SMALL | {"s": sample}
    for word in fit:
        start = {n: choices[n][0] for n in fnmatch.filter(choices, word.rstrip("~"))}
        if not start:
            raise UnknownName("parameter", word, choices)
        seen.update(list(start))
        if word.endswith("~"):
            chosen.append(Parameter(word, start, "1", 1.0))
            continue
        for name, value in start.items():
            unit = choices[name][1]
            scale = abs(value) or small.get(unit, 1e-2)
            chosen.append(Parameter(name, {name: value}, unit, scale))
    for name, count in seen.items():
        if count > 1:
            raise InvalidInput(f"fit: {name} is asked for twice; name it once")
    return chosen


Signals = Mapping[str, tuple[str, int | None]]
"""What can be measured, by the names of a result's series: its unit and its entry in
the state, None where that has none."""


def joint_signals(plant: MultibodyPlant) -> Signals:
    """Signals of joints, and of a base of Euler angles, in the state [q, v]."""
    found, base = {}, f"{base_body(plant).name()}_"
    for joint in single_joints(plant):
        name, at = part_name(joint), joint.position_start()
        unit, part = "m" if slides(joint) else "rad", name.removeprefix(base)
        if name != part and part in ("x", "y", "z", "roll", "pitch", "yaw"):
            kind = "base_position" if part in "xyz" else "base_rpy"
            found[f"{kind}.{part}"] = unit, at
            continue
        found[f"position.{name}"] = unit, at
        rate = plant.num_positions() + joint.velocity_start()
        found[f"velocity.{name}"] = f"{unit}/s", rate
    return found


class Run(NamedTuple):
    """A segment: states at its steps (K + 1, 2 nv), what the steps solved for, inputs,
    and the slopes of the ground's heights (nc, nv)."""

    states: np.ndarray
    solved: np.ndarray
    inputs: np.ndarray
    slopes: np.ndarray


class FittedStepper(TimeStepper):
    """Steps a robot whose parameters are symbols. In SI.

    Args:
        robot: on base "euler" or "fixed", in SI, without contact of Drake's.
        values: expressions of x by parameter, as of
            :class:`drakebots.multibody.Twin`, and "friction".
        x: the parameters' symbol (n,).
        servos: k_p and k_d, expressions or numbers, of the motors with a target, by
            index.

    Attributes:
        signals: what can be measured.

    Raises:
        InvalidInput: for joints whose velocities are not the rates of positions.
    """

    def __init__(
        self,
        robot: Robot,
        values: Mapping[str, ca.SX],
        x: ca.SX,
        servos: Mapping[int, tuple[ca.SX | float, ca.SX | float]],
    ):
        super().__init__(robot, 1.0, friction=1.0 if robot.model.feet else None)
        self.twin = twin = Twin(robot.plant, values)
        if not twin.velocities_are_rates:
            raise InvalidInput(
                f"{robot.model.name}: has a ball joint, whose velocities are no rates; "
                "replace it by hinges"
            )
        self.nv, self.servos, self.value, self._x = twin.nv, servos, None, x
        total = sum(body.default_mass() for body in bodies_of(robot.plant)[1:])
        self._force = total * max(gravity(robot.plant), 1.0)
        self._build(values)

    def _build(self, values: Mapping[str, ca.SX]) -> None:
        twin, nv, motors = self.twin, self.nv, actuators_of(self.plant)
        nu = len(motors)
        feet = self.robot.model.feet if self.friction is not None else ()
        sizes = {"q": nv, "v": nv, "w": 2 * nu + len(feet)}
        q, v, w = (ca.SX.sym(name, size) for name, size in sizes.items())
        h, a = ca.SX.sym("h"), ca.SX.sym("a", nv)
        needed = twin.inverse_dynamics(q, v, a)
        M, tau = ca.jacobian(needed, a), -ca.substitute(needed, a, ca.SX.zeros(nv))
        K = ca.SX.zeros(nv)
        tau += ca.SX(twin.actuation_matrix()) @ w[:nu]
        for i, (k_p, k_d) in self.servos.items():
            at = motors[i].joint().velocity_start()
            u, most = k_p * (w[nu + i] - q[at]) - k_d * v[at], motors[i].effort_limit()
            K[at] += k_p * (ca.fabs(u) < most)
            tau[at] += ca.fmax(ca.fmin(u, most), -most)
        M += ca.diag(h**2 / 4 * K) - h / 2 * ca.jacobian(tau, v)
        c = twin.closure(q, self.robot.closure)
        C = ca.jacobian(c, q)
        points = [twin.point(q, foot.body, foot.p_BF) for foot in feet]
        radii = np.array([foot.radius for foot in feet])
        J = [ca.jacobian(p, q) for p in points]
        gap = ca.vertcat(*(p[2] for p in points)) - ca.SX(radii)
        gap -= w[2 * nu :]
        phi = ca.if_else(gap < 0, SETTLING * gap, gap) if feet else ca.SX.zeros(0, 1)
        N = ca.vertcat(*(j[2, :] for j in J)) if feet else ca.SX.zeros(0, nv)
        P = ca.vertcat(*(ca.SX(PYRAMID) @ j for j in J)) if feet else N
        mu = ca.SX(values.get("friction", 0.0))
        given = [q, v, w, self._x, h]
        parts = [M, tau, SETTLING * c, C, phi, N, P, mu]
        self._terms = ca.Function("terms", given, [ca.densify(p) for p in parts])
        axes = [(foot.name, axis) for foot in feet for axis in "xyz"]
        points_of = {f"foot_position.{f}.{a}": ("m", None) for f, a in axes}
        self.signals = joint_signals(self.plant) | points_of
        state, places = ca.vertcat(q, v), [at for _, at in self.signals.values()]
        own = [state[at] for at in places if at is not None]
        y = ca.vertcat(*own, *points)
        self.output = ca.Function("y", [state], [y, ca.jacobian(y, state)])
        self._rows(given, parts)

    def _rows(self, given: list, parts: list) -> None:
        """The Jacobian of all rows that may hold, in z and (q, v, w, x)."""
        M, tau, c, C, phi, N, P, mu = parts
        q, v, w, x, h = given
        index, sign, bound = self._limits
        near = np.zeros((len(index), self.nv))
        near[np.arange(len(index)), index] = -sign
        L = ca.SX(near)
        limit = ca.SX(sign * bound) + L @ q
        nc, nl = N.shape[0], len(index)
        sizes = [self.nv, C.shape[0], nc, 4 * nc, nc, nl]
        z = [ca.SX.sym(name, n) for name, n in zip(("v", *"lgbpz"), sizes)]
        v_next, lam, gam, beta, psi, zeta = z
        E = ca.SX(ca.kron(ca.DM.eye(nc), ca.DM.ones(1, 4)))
        force = C.T @ lam + N.T @ gam + P.T @ beta + L.T @ zeta
        rows = ca.vertcat(
            M @ (v_next - v) - h * (tau + force),
            c / h + C @ v_next,
            phi / h + N @ v_next,
            P @ v_next + E.T @ psi,
            mu * gam - E @ beta,
            limit / h + L @ v_next,
        )
        unknown = ca.vertcat(*z)
        jacobian = ca.jacobian(rows, ca.vertcat(unknown, q, v, w, x))
        self._jacobian = ca.Function(
            "rows", [unknown, *given], [ca.densify(rows), ca.densify(jacobian)]
        )
        self._parts = np.cumsum(sizes)[:-1]

    def terms(self, q, v, u) -> StepTerms:
        """The matrices of a step; `u` are the inputs w."""
        *parts, mu = self._terms(q, v, u, self.value, self.h)
        M, tau, c, C, phi, N, P = map(np.asarray, parts)
        self.friction = float(mu) if len(phi) else None
        flat = [part.ravel() for part in (tau, c, phi)]
        limit, L = self._limit_rows(q, v)
        return StepTerms(M, flat[0], flat[1], C, flat[2], N, P, limit, L)

    def levels(
        self, value: np.ndarray, state: np.ndarray, w: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ground under feet that may touch it at first (nc,), and its derivative in
        q (nc, nv).

        A foot is on the ground if its height is within three times what the gaps of
        the round make of it, and the ground is then where the foot is: else a little
        more or less of height would decide on flight or stance.
        """
        *_, phi, N, _, _ = map(
            np.asarray, self._terms(*np.split(state, 2), w, value, 1.0)
        )
        gap = np.where(phi < 0, phi / SETTLING, phi).ravel()
        near = np.abs(gap) < 3 * np.linalg.norm(N * noise, axis=1)
        return np.where(near, gap, 0.0), np.where(near[:, None], N, 0.0)

    def run(
        self, value: np.ndarray, state: np.ndarray, steps: np.ndarray, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States after steps of one run, and their z.

        Args:
            value: the parameters x (n,).
            state: [q, v] at first (2 nv,).
            steps: their lengths (K,) [s].
            w: inputs of each (K, 2 nu + nc).

        Returns:
            States (K + 1, 2 nv) and z (K, nz).
        """
        self.value, states, solved = value, [state], []
        index, sign, _ = self._limits
        for self.h, u in zip(steps, w):
            q, v = np.split(states[-1], 2)
            terms = self.terms(q, v, u)
            v_next, lam, gam, beta, zeta = self.solved(terms, v)
            along = (terms.P @ v_next).reshape(-1, 4)
            psi = np.maximum(-along, 0.0).max(axis=1, initial=0.0)
            limits = np.maximum(-sign * (terms.L.T @ zeta)[index], 0.0)
            states.append(np.concatenate([q + self.h * v_next, v_next]))
            solved.append(np.concatenate([v_next, lam, gam, beta, psi, limits]))
        return np.array(states), np.array(solved)

    def sensitivities(self, value, run: Run, steps, turned: np.ndarray) -> np.ndarray:
        """Derivatives of the states of a run in (first state, x), (K + 1, 2 nv,
        2 nv + n); `turned` (K, nw, 2 nv + n) are those of the inputs."""
        states, solved, w, _ = run
        K, nv, nz = len(steps), self.nv, solved.shape[1]
        x = np.repeat(value[:, None], K, axis=1)
        given = states[:-1, :nv].T, states[:-1, nv:].T, w.T, x, steps[None]
        rows, J = map(np.asarray, self._jacobian.map(K)(solved.T, *given))
        J = J.reshape(nz, K, -1).transpose(1, 0, 2)
        D = [np.eye(2 * nv, 2 * nv + len(value))]
        for k, h in enumerate(steps):
            G, off = J[k].copy(), self._zero(solved[k], rows[:, k])
            G[off], G[off, off] = 0.0, 1.0
            dv = scipy.linalg.lstsq(
                G[:, :nz], -G[:, nz:], lapack_driver="gelsy", check_finite=False
            )[0][:nv]
            step = np.vstack([np.eye(*dv.shape) + h * dv, dv])
            by_state, by_input, by_x = np.split(step, [2 * nv, len(w.T) + 2 * nv], 1)
            D.append(by_state @ D[-1] + by_input @ turned[k])
            D[-1][:, 2 * nv :] += by_x
        return np.array(D)

    def _zero(self, z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Entries of z that stay zero: their rows do not hold."""
        _, _, gam, beta, psi, zeta = np.split(z, self._parts)
        _, _, gap, slip, cone, limit = np.split(rows, self._parts)
        touching = gam / self._force + TIE >= gap
        sliding = (psi - TIE > cone / self._force) & touching
        along = (beta / self._force + TIE >= slip) & np.repeat(touching, 4)
        equations = np.ones(self._parts[1], bool)
        held = [equations, touching, along, sliding, zeta / self._force > limit]
        return np.flatnonzero(~np.concatenate(held))
