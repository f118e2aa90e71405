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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy.linalg

from drakebots.core.errors import InvalidInput
from drakebots.model import actuators_of, gravity, joints_of
from drakebots.multibody import (
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


@dataclass(frozen=True)
class Inputs:
    """What drives the motors.

    Attributes:
        efforts, targets: motors with a measured effort, and with a target, by index.
        gains: k_p and k_d of each motor (2, nu), expressions or numbers [SI].
    """

    efforts: Sequence[int]
    targets: Sequence[int]
    gains: Sequence[Sequence[ca.SX | float]]


class FittedStepper(TimeStepper):
    """Steps a robot whose parameters are symbols. In SI.

    Args:
        robot: on base "euler" or "fixed", in SI, without contact of Drake's.
        values: expressions of x by parameter, as of
            :class:`drakebots.multibody.Twin`, and "friction".
        x: the parameters' symbol (n,).
        inputs: of its motors.

    Raises:
        InvalidInput: for joints whose velocities are not the rates of positions.
    """

    def __init__(
        self, robot: Robot, values: Mapping[str, ca.SX], x: ca.SX, inputs: Inputs
    ):
        super().__init__(robot, 1.0, friction=1.0 if robot.model.feet else None)
        self.twin = twin = Twin(robot.plant, values)
        if not twin.velocities_are_rates:
            raise InvalidInput(
                f"{robot.model.name}: has a ball joint, whose velocities are no rates; "
                "replace it by hinges"
            )
        self.nv, self.inputs, self.value = twin.nv, inputs, None
        self.motors = [motor.name() for motor in actuators_of(robot.plant)]
        total = sum(twin._inertia(link.body)[0] for link in twin.links)
        self._force = total * max(gravity(robot.plant), 1.0)
        self._x = x
        self._build(values)

    def _build(self, values: Mapping[str, ca.SX]) -> None:
        twin, nv, nu = self.twin, self.nv, len(self.motors)
        feet = self.robot.model.feet if self.friction is not None else ()
        sizes = {"q": nv, "v": nv, "w": 2 * nu + len(feet)}
        q, v, w = (ca.SX.sym(name, size) for name, size in sizes.items())
        h, a = ca.SX.sym("h"), ca.SX.sym("a", nv)
        needed = twin.inverse_dynamics(q, v, a)
        M, tau = ca.jacobian(needed, a), -ca.substitute(needed, a, ca.SX.zeros(nv))
        K = ca.SX.zeros(nv)
        tau += ca.SX(twin.actuation_matrix()) @ w[:nu]
        for i in self.inputs.targets:
            at = actuators_of(self.plant)[i].joint().velocity_start()
            k_p, k_d = (gain[i] for gain in self.inputs.gains)
            K[at] += k_p
            tau[at] += k_p * (w[nu + i] - q[at]) - k_d * v[at]
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
        outputs = self._signals(q, v, dict(zip((f.name for f in feet), points)))
        self.signals = tuple(outputs)
        y = ca.vertcat(*outputs.values())
        self.output = ca.Function("y", [q, v], [y, ca.jacobian(y, ca.vertcat(q, v))])
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

    def _signals(self, q, v, feet: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        """What can be measured by the names of a result's series."""
        found, axes = {}, dict(zip("xyz", range(3)))
        base = base_body(self.plant).name()
        for joint in joints_of(self.plant):
            for i in range(joint.num_positions()):
                at, name = joint.position_start() + i, joint.name()
                part = name.removeprefix(f"{base}_")
                if name != part and part in (*axes, "roll", "pitch", "yaw"):
                    kind = "base_position" if part in axes else "base_rpy"
                    found[f"{kind}.{part}"] = q[at]
                    continue
                name += "" if joint.num_positions() == 1 else f"_{i}"
                found |= {f"position.{name}": q[at], f"velocity.{name}": v[at]}
        for name, p in feet.items():
            found |= {f"foot_position.{name}.{a}": p[i] for a, i in axes.items()}
        return found

    def terms(self, q, v, u) -> StepTerms:
        """The matrices of a step; `u` are the inputs w."""
        *parts, mu = self._terms(q, v, u, self.value, self.h)
        M, tau, c, C, phi, N, P = map(np.asarray, parts)
        self.friction = float(mu) if len(phi) else None
        flat = [part.ravel() for part in (tau, c, phi)]
        limit, L = self._limit_rows(q)
        return StepTerms(M, flat[0], flat[1], C, flat[2], N, P, limit, L)

    def levels(
        self, value: np.ndarray, state: np.ndarray, w: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ground under feet that may touch it at first (nc,), and its derivative in
        q (nc, nv).

        A foot is on the ground if its height is within three times what the noise of
        the positions makes of it, and the ground is then where the foot is: else a
        little more or less of height would decide on flight or stance.
        """
        q, v = np.split(state, 2)
        *_, phi, N, _, _ = map(np.asarray, self._terms(q, v, w, value, 1.0))
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
        for h, u in zip(steps, w):
            self.h = h
            q, v = np.split(states[-1], 2)
            q_next, v_next, forces = self.step(q, v, u)
            states.append(np.concatenate([q_next, v_next]))
            P = np.asarray(self._terms(q, v, u, value, h)[6])
            along = (P @ v_next).reshape(-1, 4)
            push, psi = (
                forces.friction,
                np.maximum(-along, 0.0).max(axis=1, initial=0.0),
            )
            beta = np.maximum(
                np.c_[push[:, :1], -push[:, :1], push[:, 1:], -push[:, 1:]], 0
            )
            index, sign, _ = self._limits
            zeta = np.maximum(-sign * forces.limits[index], 0.0)
            parts = (v_next, forces.loops, forces.normal, beta.ravel(), psi, zeta)
            solved.append(np.concatenate(parts))
        return np.array(states), np.array(solved)

    def sensitivities(
        self, value, states: np.ndarray, solved: np.ndarray, steps, w
    ) -> np.ndarray:
        """d[q+, v+]/d[q, v, w, x] of the steps of :meth:`run`, (K, 2 nv, ...)."""
        K, nv, nz = len(steps), self.nv, solved.shape[1]
        q, v = states[:-1, :nv], states[:-1, nv:]
        x = np.repeat(value[:, None], K, axis=1)
        found = self._jacobian.map(K)(solved.T, q.T, v.T, w.T, x, steps[None])
        rows, J = (np.asarray(part) for part in found)
        J = J.reshape(nz, K, -1).transpose(1, 0, 2)
        out = np.zeros((K, 2 * nv, J.shape[2] - nz))
        if nz == self._parts[1]:  # no pairs: regular, and all at once
            dz = np.linalg.solve(J[:, :, :nz], -J[:, :, nz:])
            dv = dz[:, :nv]
            moved = np.eye(nv, dv.shape[2]) + steps[:, None, None] * dv
            return np.concatenate([moved, dv], axis=1)
        for k in range(K):
            G, off = J[k].copy(), self._zero(solved[k], rows[:, k], steps[k])
            G[off] = 0.0
            G[off, off] = 1.0
            dz = scipy.linalg.lstsq(
                G[:, :nz], -G[:, nz:], lapack_driver="gelsy", check_finite=False
            )[0]
            out[k, nv:] = dz[:nv]
            out[k, :nv] = steps[k] * dz[:nv]
            out[k, :nv, :nv] += np.eye(nv)
        return out

    def _zero(self, z: np.ndarray, rows: np.ndarray, h: float) -> np.ndarray:
        """Entries of z that stay zero: their rows do not hold."""
        pairs = zip(np.split(z, self._parts), np.split(rows, self._parts))
        held = [np.ones(n, bool) for n in self._parts[:1]]
        (_, lam), (gam, gap), (beta, slip), (psi, cone), (zeta, limit) = (
            (a, b) for a, b in list(pairs)[1:]
        )
        touching = gam / self._force + TIE >= gap
        sliding = (psi - TIE > cone / self._force) & touching
        along = (beta / self._force + TIE).reshape(-1, 4) >= slip.reshape(-1, 4)
        along &= touching[:, None]
        held += [np.ones(len(lam), bool), touching, along.ravel(), sliding]
        held += [zeta / self._force > limit]
        return np.flatnonzero(~np.concatenate(held))
