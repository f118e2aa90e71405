"""Rows of contact-implicit programs by Drake's AutoDiffXd instead of blocks.

The usual recipe: the plant is converted to `MultibodyPlant_[AutoDiffXd]` and
Python callbacks, one binding a knot, give SNOPT rows and Jacobians. It is
written here with care: dynamics from the fewest calls of Drake that we know of
(see derivatives.py), one spatial Jacobian a foot, all algebra after that in
doubles, both bindings that need an interval share its evaluation, and the feet
at a knot serve dynamics and contact. Costs, bounds and rows without a robot in
them are the same as ours.

A module without a command: `contact_implicit.py` runs it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from unittest import mock

import casadi as ca
import numpy as np
from derivatives import AutoDiffRow
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots.trajopt.contact_implicit import ContactSystem, joint_inputs
from drakebots.trajopt.program import Block, Program
from drakebots.trajopt.solvers import Compute, mathematical_program

SLOWEST = 1e-3
"""Speed, plant units, below which the differences' step stops to grow: robots
at rest have slopes too."""


@dataclass(frozen=True)
class Contacts:
    """All feet at one pose.

    Attributes:
        phi, dphi: distances (nc,) and (nc, n).
        N, dN: of normal forces to generalized ones (n, nc) and (n, nc, n).
        P, dP: of friction forces (n, 4 nc) and (n, 4 nc, n).
    """

    phi: np.ndarray
    dphi: np.ndarray
    N: np.ndarray
    dN: np.ndarray
    P: np.ndarray
    dP: np.ndarray


class Recipe:
    """The blocks of a robot without loops, by AutoDiffXd.

    Args:
        system: whose inputs are the plant's actuators.
    """

    def __init__(self, system: ContactSystem):
        if system.num_loop_rows or system.inputs is not joint_inputs:
            raise ValueError("the recipe knows no loops and no inputs but actuators")
        self.system, self.n = system, system.nq
        plant, twin = system.robot.plant, system.twin
        self.damping = twin.joint_damping()
        self.row = AutoDiffRow(plant, self.damping, SLOWEST)
        self.B = twin.actuation_matrix()
        smooth, unit = self.row.smooth, system.robot.scaling.length
        self.feet = [
            (
                smooth.GetBodyByName(foot.body).body_frame(),
                np.asarray(foot.p_BF, float).reshape(3, 1) / unit,
                foot.radius / unit,
            )
            for foot in system.robot.model.feet
        ]
        self.feet_context = smooth.CreateDefaultContext()
        self.ground = _ground(system)
        self.seen: dict[bytes, Contacts] = {}
        self.blocks = {
            "interval_midpoint": self.interval,
            "start": self.start,
            "contact": self.contact,
        }

    # ------------------------------------------------------------------ feet
    def contacts(self, q: np.ndarray) -> Contacts:
        """The feet at q, kept for the second of two bindings that need them."""
        key = q.tobytes()
        if key not in self.seen:
            if len(self.seen) > 100:
                self.seen.clear()
            self.seen[key] = self._contacts(q)
        return self.seen[key]

    def _contacts(self, q: np.ndarray) -> Contacts:
        smooth, context, n = self.row.smooth, self.feet_context, self.n
        smooth.SetPositions(context, InitializeAutoDiff(q).ravel())
        world, nc = smooth.world_frame(), len(self.feet)
        phi, dphi = np.zeros(nc), np.zeros((nc, n))
        force, slope = np.zeros((n, nc, 5)), np.zeros((n, nc, 5, n))
        for i, (frame, p_BF, radius) in enumerate(self.feet):
            p = smooth.CalcPointsPositions(context, frame, p_BF, world)
            Jp = ExtractGradient(p)
            J = smooth.CalcJacobianSpatialVelocity(
                context, JacobianWrtVariable.kV, frame, p_BF, world, world
            )
            dJ = ExtractGradient(J).reshape(n, 6, n).swapaxes(0, 1)
            J = ExtractValue(J)
            distance, rise, A, bend = (
                np.asarray(a) for a in self.ground(ExtractValue(p))
            )
            dA = (bend @ Jp).reshape(5, 3, n).swapaxes(0, 1)
            # The point that touches: p_FC = -radius normal, fixed in the body.
            X = radius * _cross(A[:, 0])
            dX = radius * np.moveaxis(_cross(dA[:, 0]), -1, 2)
            Jc = J[3:] + X @ J[:3]
            dJc = dJ[3:] + np.einsum("ab,bij->aij", X, dJ[:3])
            dJc += np.einsum("abj,bi->aij", dX, J[:3])
            phi[i], dphi[i] = distance.item() - radius, rise.ravel() @ Jp
            force[:, i] = Jc.T @ A
            slope[:, i] = np.einsum("aij,ac->icj", dJc, A)
            slope[:, i] += np.einsum("ai,acj->icj", Jc, dA)
        friction, bends = force[:, :, 1:], slope[:, :, 1:]
        return Contacts(
            phi,
            dphi,
            force[:, :, 0],
            slope[:, :, 0],
            friction.reshape(n, -1),
            bends.reshape(n, -1, n),
        )

    # ---------------------------------------------------------------- blocks
    def interval(self, w: dict, _) -> tuple[np.ndarray, dict]:
        """p+ and p- of an interval and their slopes by input."""
        n, h, u = self.n, w["h"][0], w["u"]
        v = (w["q1"] - w["q0"]) / h
        D1, S1, S2 = self.row.midpoint((w["q0"] + w["q1"]) / 2, v)
        D2 = S2[:, n:] @ v
        F = D1 + self.B @ u - self.damping * v
        S1[:, n:] -= np.diag(self.damping)
        c = self.contacts(w["q1"])
        push = c.N @ w["gam"] + c.P @ w["beta"]
        rows, slopes = [], {name: [] for name in w}
        for sign in (1.0, -1.0):
            S = S2 + sign * h / 2 * S1
            by_q, by_v = S[:, :n] / 2, S[:, n:] / h
            parts = {
                "h": sign * F / 2 - by_v @ v,
                "q0": by_q - by_v,
                "q1": by_q + by_v,
                "u": sign * h / 2 * self.B,
                "lam": np.zeros((n, 0)),
                "gam": np.zeros_like(c.N),
                "beta": np.zeros_like(c.P),
            }
            row = D2 + sign * h / 2 * F
            if sign < 0:
                row = row - h * push
                parts["h"] = parts["h"] - push
                turn = np.einsum("icj,c->ij", c.dN, w["gam"])
                turn += np.einsum("icj,c->ij", c.dP, w["beta"])
                parts["q1"] = parts["q1"] - h * turn
                parts["gam"], parts["beta"] = -h * c.N, -h * c.P
            rows.append(row)
            for name, part in parts.items():
                slopes[name].append(part.reshape(n, -1))
        return np.concatenate(rows), {k: np.vstack(s) for k, s in slopes.items()}

    def start(self, w: dict, _) -> tuple[np.ndarray, dict]:
        """M(q) v."""
        P, M = self.row.momentum_slope(w["q"], w["v"]), self.row.mass(w["q"])
        return M @ w["v"], {"q": P, "v": M}

    def contact(self, w: dict, d: np.ndarray) -> tuple[np.ndarray, dict]:
        """Distance, slip, cone and complementarity of an interval."""
        nc, mu, h = len(self.feet), d[0], w["h"][0]
        gam, beta, psi, eta = (w[k] for k in ("gam", "beta", "psi", "eta"))
        c, v = self.contacts(w["q1"]), (w["q1"] - w["q0"]) / h
        E = np.kron(np.eye(nc), np.ones(4))
        cone, speed = mu * gam - E @ beta, c.P.T @ v
        products = np.array([c.phi @ gam, h * cone @ psi, h * eta @ beta])
        rows = np.r_[c.phi, speed + E.T @ psi - eta, cone, products - w["s"]]
        at = {"phi": 0, "slip": nc, "cone": 5 * nc, "sum": 6 * nc}
        slopes = {name: np.zeros((len(rows), len(value))) for name, value in w.items()}
        phi, slip, sums = slice(0, nc), slice(nc, 5 * nc), at["sum"]
        slopes["q1"][phi] = c.dphi
        slopes["q1"][slip] = np.einsum("icj,i->cj", c.dP, v) + c.P.T / h
        slopes["q1"][sums] = gam @ c.dphi
        slopes["q0"][slip] = -c.P.T / h
        slopes["h"][slip, 0] = -speed / h
        slopes["h"][sums + 1, 0], slopes["h"][sums + 2, 0] = cone @ psi, eta @ beta
        slopes["psi"][slip], slopes["eta"][slip] = E.T, -np.eye(4 * nc)
        slopes["gam"][at["cone"] : sums] = mu * np.eye(nc)
        slopes["beta"][at["cone"] : sums] = -E
        slopes["gam"][sums], slopes["gam"][sums + 1] = c.phi, h * mu * psi
        slopes["beta"][sums + 1], slopes["beta"][sums + 2] = -h * E.T @ psi, h * eta
        slopes["psi"][sums + 1], slopes["eta"][sums + 2] = h * cone, h * beta
        slopes["s"][sums:] = -1.0
        return rows, slopes

    # ------------------------------------------------------------- programs
    def dense(self, block: Block, w: np.ndarray, d: np.ndarray):
        """r and dr/dw (num_rows, num_inputs) of a block."""
        ends = np.cumsum([s.numel() for s in block.inputs.values()])
        parts = dict(zip(block.inputs, np.split(w, ends[:-1])))
        # Lowering evaluates affine rows at zero, where others divide by h.
        with np.errstate(divide="ignore", invalid="ignore"):
            rows, slopes = self.blocks[block.name](parts, d)
        return rows, np.hstack([slopes[name] for name in block.inputs])

    @contextmanager
    def in_use(self):
        """Programs lowered in here have this robot's blocks by the recipe."""
        with mock.patch.object(
            mathematical_program, "Compute", partial(_compute, self)
        ):
            yield

    def disagreement(self, program: Program, x: np.ndarray) -> float:
        """Largest difference from a program's blocks at x: of rows and of their
        slopes, in units of the row's largest entry or 1."""
        worst = 0.0
        for term in program.terms:
            if term.block.name not in self.blocks:
                continue
            for columns, data in zip(term.columns, term.data):
                w = x[columns]
                r, J = self.dense(term.block, w, data)
                ours = Compute(term.block).value(w, data)
                slopes = term.block.jacobian(w, data)
                size = np.maximum(np.abs(slopes).max(axis=1), 1.0)
                worst = max(
                    worst,
                    (np.abs(r - ours) / size).max(),
                    (np.abs(J - slopes) / size[:, None]).max(),
                )
        return float(worst)


class RecipeCompute:
    """Takes the place of a block's :class:`Compute`."""

    def __init__(self, recipe: Recipe, block: Block):
        self.recipe, self.block = recipe, block

    def value(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """r (num_rows,)."""
        return self.recipe.dense(self.block, w, d)[0]

    def jacobian(self, w: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """r and the nonzeros of dr/dw."""
        r, J = self.recipe.dense(self.block, w, d)
        return r, J[self.block.jacobian_pattern]


def _compute(recipe: Recipe, block: Block):
    known = block.name in recipe.blocks
    return RecipeCompute(recipe, block) if known else Compute(block)


def _ground(system: ContactSystem) -> ca.Function:
    """p -> phi, dphi/dp, (n, +t1, -t2, -t1, +t2) (3, 5) and its slope (15, 3)."""
    p = ca.SX.sym("p", 3)
    terrain = system.terrain.scaled(system.robot.scaling.length)
    n, t1, t2 = terrain.frame(p)
    A = ca.densify(ca.horzcat(n, t1, -t2, -t1, t2))
    phi = terrain.distance(p)
    slopes = ca.densify(ca.jacobian(phi, p)), ca.densify(ca.jacobian(ca.vec(A), p))
    return ca.Function("ground", [p], [phi, slopes[0], A, slopes[1]])


def _cross(a: np.ndarray) -> np.ndarray:
    """The matrix of a x, of vectors (3, ...): (3, 3, ...)."""
    zero = np.zeros_like(a[0])
    return np.array([[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]])
