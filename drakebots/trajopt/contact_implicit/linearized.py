"""The rows of one interval and their Jacobians at a point; see `stepping`."""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from drakebots.trajopt.contact_implicit.system import DIRECTIONS
from drakebots.trajopt.program import Block

ROUNDING = 32 * np.finfo(float).eps
"""Relative to the terms that cancel in a row."""


class Rows:
    """A block with its rows and inputs by name, evaluated in one call."""

    def __init__(self, block: Block):
        self.block = block
        # Not block.functions: those are compiled, Hessian and all, which takes a
        # minute for HAMR and saves a step little.
        J = ca.jacobian(block.r, block.w)
        self._pattern = tuple(np.array(i, int) for i in J.sparsity().get_triplet())
        name, nonzeros = f"{block.name}_jacobian", ca.vertcat(*J.nonzeros())
        self._jacobian = ca.Function(name, [block.w, block.d], [block.r, nonzeros])
        self.columns = _slices(block.inputs)
        self.rows = _slices(block.rows)

    def __call__(self, parts: dict[str, np.ndarray], d=()):
        """Values and Jacobian as (name) -> r and (name, input) -> dr/dw."""
        w = np.concatenate([np.atleast_1d(parts[name]) for name in self.columns])
        r, nonzeros = self._jacobian(w, d)
        J = np.zeros((self.block.num_rows, self.block.num_inputs))
        J[self._pattern] = np.asarray(nonzeros).ravel()
        r = np.asarray(r).ravel()
        return (
            lambda name: r[self.rows[name]],
            lambda name, *inputs: np.hstack(
                [J[self.rows[name], self.columns[i]] for i in inputs]
            ),
        )


def _slices(groups) -> dict[str, slice]:
    out, start = {}, 0
    for name, symbol in groups.items():
        out[name] = slice(start, start + symbol.numel())
        start += symbol.numel()
    return out


@dataclass(frozen=True)
class Linearization:
    """Rows F(y, z) = 0 and W(y, z) at y = (q1, lam), with Jacobians A, B; W_y, W_z.

    Attributes:
        after: the momentum p+ (nq,).
        F_size, W_size, z_size: what counts as zero, for each row.
        tolerance: that over the size of the row.
    """

    q1: np.ndarray
    lam: np.ndarray
    z: np.ndarray
    F: np.ndarray
    A: np.ndarray
    B: np.ndarray
    W: np.ndarray
    W_y: np.ndarray
    W_z: np.ndarray
    after: np.ndarray
    F_size: np.ndarray
    W_size: np.ndarray
    z_size: np.ndarray
    names: tuple[str, ...] = field(repr=False)
    tolerance: float = 1e-10

    @property
    def _ratios(self) -> np.ndarray:
        gap = np.minimum(self.z / self.z_size, self.W / self.W_size)
        ratios = np.abs(np.concatenate([self.F / self.F_size, gap]))
        return np.where(np.isfinite(ratios), ratios, np.inf)

    @property
    def error(self) -> float:
        """The worst row over what counts as zero; solved when <= 1."""
        return float(self._ratios.max(initial=0.0))

    def residual(self) -> dict[str, float]:
        """Largest rows by kind, plant's units."""
        n = len(self.q1)
        values = {
            "momentum": self.F[:n],
            "loops": self.F[n:],
            "complementarity": np.minimum(self.z, self.W),
        }
        return {k: float(np.abs(v).max(initial=0.0)) for k, v in values.items()}

    def worst(self, count: int = 3) -> dict[str, float]:
        """The worst rows by name, plant's units."""
        rows = np.concatenate([self.F, np.minimum(self.z, self.W)])
        order = np.argsort(-self._ratios)[:count]
        return {self.names[i]: float(abs(rows[i])) for i in order}


class StepPoint:
    """The rows of one interval as a function of its unknowns."""

    def __init__(self, stepper, q0: np.ndarray, p: np.ndarray, u: np.ndarray):
        self.stepper, self.q0, self.p, self.u = stepper, q0, p, u
        system, nc = stepper.system, stepper.num_contacts
        self._no_feet = np.zeros(5 * system.num_feet)
        self._feet = system.num_feet
        feet = [foot.name for foot in system.robot.model.feet][:nc]
        self.names = (
            *(f"momentum.{c}" for c in system.coordinates),
            *(f"loops.{r}" for r in system.robot.closure.row_names),
            *(f"distance.{f}" for f in feet),
            *(f"slip.{f}{d}" for f in feet for d in DIRECTIONS),
            *(f"cone.{f}" for f in feet),
        )
        # Momenta of the step: what there is, and what loads at rest would add.
        at_rest, _ = self._interval(q0, np.zeros(system.num_loop_rows), self._no_feet)
        load = np.abs(p - at_rest("before")).max()
        self.size = float(max(np.abs(p).max(), load, np.finfo(float).tiny))

    def _interval(self, q1, lam, forces):
        return self.stepper._interval(
            {
                "h": self.stepper.h,
                "q0": self.q0,
                "q1": q1,
                "u": self.u,
                "lam": lam,
                "gam": forces[: self._feet],
                "beta": forces[self._feet :],
            }
        )

    def at(self, q1: np.ndarray, lam: np.ndarray, z: np.ndarray) -> Linearization:
        """Rows and Jacobians at a point."""
        nc, tol = self.stepper.num_contacts, self.stepper.tolerance
        forces = z[: 5 * nc] if nc else self._no_feet
        value, slope = self._interval(q1, lam, forces)
        F, A = self.p - value("before"), -slope("before", "q1", "lam")
        B = np.hstack([-slope("before", "gam", "beta"), np.zeros((len(F), self._feet))])
        F_size = np.full(len(F), tol * self.size)
        if len(lam):
            F = np.concatenate([F, value("loops")])
            A = np.vstack([A, slope("loops", "q1", "lam")])
            B = np.vstack([B, np.zeros((len(lam), B.shape[1]))])
            F_size = np.concatenate([F_size, np.full(len(lam), tol)])
        nq = len(q1)
        F_size += ROUNDING * (np.abs(A[:, :nq]) @ np.abs(q1))
        F_size[:nq] += ROUNDING * (np.abs(A[:nq, nq:]) @ np.abs(lam))
        W, W_y, W_z, W_size, z_size = self._contact(q1, z, len(lam))
        return Linearization(
            q1, lam, z, F, A, B if nc else np.zeros((len(F), 0)), W, W_y, W_z,
            value("after"), F_size, W_size, z_size, self.names, tol,
        )  # fmt: skip

    def _contact(self, q1, z, num_lam: int):
        s, nc, tol = self.stepper, self.stepper.num_contacts, self.stepper.tolerance
        if not nc:
            none = np.zeros(0)
            width = len(q1) + num_lam
            return none, np.zeros((0, width)), np.zeros((0, 0)), none, none
        multipliers = {"gam": z[:nc], "beta": z[nc : 5 * nc], "psi": z[5 * nc :]}
        zero = {"eta": np.zeros(4 * nc), "s": 0.0}
        value, slope = s._contact(
            {"h": s.h, "q0": self.q0, "q1": q1, **multipliers, **zero},
            np.array([s.friction]),
        )
        # With eta = 0 the row `slip` is what eta has to be.
        rows = ("distance", "slip", "cone")
        W = np.concatenate([value(r) for r in rows])
        W_q = np.vstack([slope(r, "q1") for r in rows])
        W_z = np.vstack([slope(r, "gam", "beta", "psi") for r in rows])
        W_y = np.hstack([W_q, np.zeros((len(W), num_lam))])
        force, length, speed = self.size / s.h, 1.0, 1.0
        kinds = np.repeat([0, 1, 2], (nc, 4 * nc, nc))
        W_size = tol * np.array([length, speed, force])[kinds]
        W_size += ROUNDING * (np.abs(W_q) @ np.abs(q1))
        z_size = tol * np.array([force, force, speed])[kinds]
        return W, W_y, W_z, W_size, z_size
