"""The QPs of a step once every contact has a label, eqs. (15)-(18).

A label is the piece of a patch's complementarity, "free", "stick" and so on
(:mod:`~drakebots.robots.quads.steps.contact_state`). Given all labels, the contact
forces follow from the torques through a small linear system,

    f = T s,  R (y_0 + Y_tau tau + Y_f T s) = 0

and a dense QP in the torques alone remains. Only this system changes when a label
flips. Where no labels are known, :func:`contact_forces` simulates the contacts under
given torques by projected Gauss-Seidel sweeps, and labels follow from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import casadi as ca
import numpy as np

from drakebots.core.checks import array, positive
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.core.kernels import njit
from drakebots.robots.quads.steps.contact_state import (
    FREE,
    NAMES,
    behind,
    piece_of,
    pieces,
)
from drakebots.robots.quads.steps.objective import Quadratic
from drakebots.trajopt.program import Program, ProgramBuilder
from drakebots.trajopt.solvers import solve_qp

# --- contacts under given torques, by projected Gauss-Seidel ----------------
#
# With y = Y f + y_0 (as forces) find f such that
#
#     0 <= f_n  perp  y_n >= 0
#     f_t = the point of |f_x| + |f_y| <= mu f_n nearest to f_t - y_t / d
#
# This is the complementarity of eq. (12) with its four directions. The compliance of
# the patches makes Y positive definite for any number of patches on a link.

SWEEPS = 20_000
"""Largest number of sweeps."""

SETTLED = 1e-11
"""Change of a force in a sweep, over the largest force, at which the sweeps end."""

RETURNED = 1e-6
"""Distance of forces from earlier ones, over their change in a sweep, at which the
sweeps go round in a cycle and never settle."""


def contact_forces(Y: np.ndarray, y0: np.ndarray, friction: float) -> np.ndarray:
    """Forces f (k, 3) of the contacts of a step [N].

    Args:
        Y, y0: displacements over the compliance, y = Y f + y0 (3 k, 3 k), (3 k,) [N].
        friction: mu.

    Raises:
        NoSolution: when the sweeps do not converge.
    """
    f = np.zeros(len(y0))
    Y, y0 = map(np.ascontiguousarray, (Y, y0))
    change = _sweep(Y, y0, friction, f, SETTLED)
    if not np.isfinite(change) or change > 100 * SETTLED:
        raise NoSolution(
            "contacts: the sweeps did not converge; take a larger compliance",
            {"change of a force [N]": float(change)},
        )
    return f.reshape(-1, 3)


@njit(cache=True)
def _sweep(Y, y0, friction, f, tolerance):
    """Sweeps over f in place; returns the last change over the largest force.

    Sliding contacts may drive the sweeps round in a cycle. That is noticed as Brent
    does: f is compared with one earlier f, which is replaced after 1, 2, 4, ... sweeps.
    """
    n = len(y0)
    worst = 0.0
    earlier, since, replaced_after = f.copy(), 0, 1
    for _ in range(SWEEPS):
        worst, largest = 0.0, 1.0
        for i in range(0, n, 3):
            d = max(Y[i, i], Y[i + 1, i + 1])
            normal = f[i + 2] - (Y[i + 2] @ f + y0[i + 2]) / Y[i + 2, i + 2]
            normal = max(0.0, normal)
            worst = max(worst, abs(normal - f[i + 2]))
            f[i + 2] = normal
            a = f[i] - (Y[i] @ f + y0[i]) / d
            b = f[i + 1] - (Y[i + 1] @ f + y0[i + 1]) / d
            # Projection on the square |a| + |b| <= r.
            r = friction * normal
            sa, sb = np.sign(a), np.sign(b)
            a, b = abs(a), abs(b)
            over = a + b - r
            if over > 0:
                a, b = a - over / 2, b - over / 2
                if a < 0:
                    a, b = 0.0, r
                elif b < 0:
                    a, b = r, 0.0
            a, b = sa * a, sb * b
            worst = max(worst, abs(a - f[i]), abs(b - f[i + 1]))
            f[i], f[i + 1] = a, b
            largest = max(largest, normal)
        returned = np.abs(f - earlier).max() <= RETURNED * worst
        worst /= largest
        if worst <= tolerance or returned:
            break
        since += 1
        if since == replaced_after:
            earlier[:] = f
            since, replaced_after = 0, 2 * replaced_after
    return worst


# --- labelled QPs -----------------------------------------------------------


@checked("QPCC")
class StepQpcc:
    """The QPCC of one step, eq. (12).

    Raises:
        InvalidInput: for values not finite, or a friction not > 0.
    """

    objective: Quadratic
    """Objective as a function of w = [tau, f]."""
    limits: np.ndarray
    """Torque limits, |tau| <= limits (m,) [N m]."""
    y0: Annotated[np.ndarray, array((None,))]
    """Displacement of the patches for w = 0 (3 P,)."""
    Y: Annotated[np.ndarray, array((None, None))]
    """Matrix of the displacement y = y0 + Y w, compliance included (3 P, m + 3 P)."""
    compliance: Annotated[float, positive("m/N")]
    """Compliance of a patch."""
    friction: Annotated[float, positive()]
    """Friction coefficient mu."""
    near: np.ndarray
    """Patches that can meet the ground within the step (P,)."""
    scheduled: np.ndarray
    """Patches that are held at first (P,): those on the ground whose feet the footfall
    pattern puts there."""
    cop: Annotated[np.ndarray, array((None, None))]
    """Rows C with C f >= 0 (h, 3 P)."""


@dataclass(frozen=True)
class QpPoint:
    """A solved QP.

    Attributes:
        torques, forces, y, energy: as in :class:`QpccSolution`.
        flips: flips that should lower the energy, as (multiplier, patch, new piece),
            largest multiplier first.
    """

    torques: np.ndarray
    forces: np.ndarray
    y: np.ndarray
    energy: float
    flips: Sequence[tuple[float, int, int]] = ()


@dataclass(frozen=True)
class CondensedQp:
    """The QP of given labels, in the torques tau alone: A tau >= low.

    Attributes:
        w0, W: w = w0 + W tau (m + 3 P,), (m + 3 P, m).
        A, low: rows of the pieces [N], then of the COP [N m]; (r, m), (r,).
        beyond: patch and piece on the other side of each row of the pieces.
    """

    w0: np.ndarray
    W: np.ndarray
    A: np.ndarray
    low: np.ndarray
    beyond: list[tuple[int, int]]


class LabelledQp:
    """Solves the QPs of a step for given labels of the contacts near the ground."""

    def __init__(self, qpcc: StepQpcc):
        self.qpcc = qpcc
        self.m, self.P = len(qpcc.limits), len(qpcc.near)
        self.near = np.flatnonzero(qpcc.near)
        self.table = pieces(qpcc.friction)

    def affine(self, labels: np.ndarray):
        """w0, W, y1, Y1 of w = w0 + W tau and y = y1 + Y1 tau for given labels.

        Raises:
            NoSolution: when these contacts do not determine their forces.
        """
        qpcc, m, n = self.qpcc, self.m, self.m + 3 * self.P
        held = [(i, self.table[labels[i]]) for i in self.near if labels[i] != FREE]
        r = sum(piece.T.shape[1] for _, piece in held)
        T, R = np.zeros((3 * self.P, r)), np.zeros((r, 3 * self.P))
        k = 0
        for i, piece in held:
            d = piece.T.shape[1]
            T[3 * i : 3 * i + 3, k : k + d] = piece.T
            R[k : k + d, 3 * i : 3 * i + 3] = piece.R
            k += d
        w0, W = np.zeros(n), np.zeros((n, m))
        W[:m] = np.eye(m)
        if r:
            RY = R @ qpcc.Y
            sides = np.concatenate([(R @ qpcc.y0)[:, None], RY[:, :m]], axis=1)
            matrix = RY[:, m:] @ T
            try:
                s = -np.linalg.solve(matrix, sides)
            except np.linalg.LinAlgError as error:
                raise NoSolution("contacts: their forces are not unique") from error
            w0[m:], W[m:] = T @ s[:, 0], T @ s[:, 1:]
        return w0, W, qpcc.y0 + qpcc.Y @ w0, qpcc.Y @ W

    def condensed(self, labels, *, rows=True, cop=True) -> CondensedQp:
        """The QP of given labels.

        Args:
            labels: piece of each patch (P,).
            rows: whether to include the inequalities of the pieces; (18) has none.
            cop: whether to include the rows of the COP.

        Raises:
            NoSolution: when these contacts do not determine their forces.
            InvalidInput: for labels that are none, or not free out of reach.
        """
        qpcc, m, free = self.qpcc, self.m, ~self.qpcc.near
        fits = np.shape(labels) == free.shape and np.isin(labels, range(len(NAMES)))
        if not np.all(fits) or np.any(labels[free] != FREE):
            raise InvalidInput(
                f"labels {np.array(labels).tolist()}: give one of 0 to "
                f"{len(NAMES) - 1} for each of {self.P} patches, and {FREE} (free) for "
                f"{np.flatnonzero(free).tolist()}, which are out of reach"
            )
        w0, W, y1, Y1 = self.affine(labels)
        A, b, beyond = [], [], []
        for i in self.near if rows else ():
            piece, at = self.table[labels[i]], slice(3 * i, 3 * i + 3)
            # y as a force, so that both kinds of rows are in N.
            A += [piece.on_f @ W[m:][at], piece.on_y @ Y1[at] / qpcc.compliance]
            b += [piece.on_f @ w0[m:][at], piece.on_y @ y1[at] / qpcc.compliance]
            beyond += [(i, other) for other in piece.beyond]
        if cop and len(qpcc.cop):
            A.append(qpcc.cop @ W[m:])
            b.append(qpcc.cop @ w0[m:])
        A = np.concatenate(A) if A else np.zeros((0, m))
        low = -np.concatenate(b) if b else np.zeros(0)
        return CondensedQp(w0, W, A, low, beyond)

    def solve(self, labels, *, rows=True, cop=True, start=None) -> QpPoint | None:
        """Solves the QP of given labels; None if it has no solution.

        Args:
            labels, rows, cop: as of :meth:`condensed`.
            start: torques to start from.
        """
        qpcc, m, E = self.qpcc, self.m, self.qpcc.objective
        limits = (-qpcc.limits, qpcc.limits)
        try:
            qp = self.condensed(labels, rows=rows, cop=cop)
            W, high = qp.W, np.full(len(qp.low), np.inf)
            H, g = W.T @ E.H @ W, W.T @ (E.H @ qp.w0 + E.g)
            H = (H + H.T) / 2
            torques, dual = solve_qp(H, g, limits, qp.A, qp.low, high, start)
        except NoSolution:
            return None
        point, pull = self.point(qp, torques), -dual[m : m + len(qp.beyond)]
        flips = requested_flips(pull, qp.beyond, labels, point.y)
        return replace(point, flips=flips)

    def point(self, qp: CondensedQp, torques: np.ndarray) -> QpPoint:
        """What torques (m,) do in a QP, whether they solve it or not."""
        w = qp.w0 + qp.W @ torques
        y = (self.qpcc.y0 + self.qpcc.Y @ w).reshape(-1, 3)
        return QpPoint(torques, w[self.m :].reshape(-1, 3), y, self.qpcc.objective(w))

    def program(
        self, qp: CondensedQp, labels, joints: Sequence[str], patches: Sequence[str]
    ) -> Program:
        """A QP as a program of the group "torque" (1, joints).

        Its costs are the objective's terms by name; its rows "contact", by patch with
        the piece it has and the one beyond, and "cop", by edge of the polygon.
        """
        b, most = ProgramBuilder("step"), self.qpcc.limits
        W, count = qp.W, len(qp.beyond)
        # As the planner's own QP: a Hessian of unit diagonal, rows of unit length.
        unit = 1 / np.sqrt(np.einsum("ij,ik,kj->j", W, self.qpcc.objective.H, W))
        bounds = {"lower": -most, "upper": most, "scale": unit, "units": "N m"}
        at = {"torque": b.add_variables("torque", 1, joints, **bounds).indices}
        for name, (A, c) in self.qpcc.objective.terms.items():
            A, c = A @ W, A @ qp.w0 + c
            b.cost(name, at, partial(_squared, ca.DM(A.T @ A), 2 * A.T @ c, c @ c))
        length = np.linalg.norm(qp.A * unit, axis=1)
        length[length < 1e-13] = 1.0  # rounding, not a row
        where = [f"{patches[i]} {NAMES[labels[i]]}|{NAMES[k]}" for i, k in qp.beyond]
        edges = [f"edge {k}" for k in range(len(length) - count)]
        groups = ("contact", where, slice(count)), ("cop", edges, slice(count, None))
        for name, names, rows in groups:
            if names:
                bounds = {"lower": qp.low[rows], "scale": length[rows], "labels": names}
                b.constraint(name, at, partial(_product, ca.DM(qp.A[rows])), **bounds)
        return b.build()

    def simulated(self, torques: np.ndarray) -> np.ndarray:
        """Piece of each contact under given torques (P,).

        Raises:
            NoSolution: when the contact sweeps do not converge.
        """
        qpcc, m, k = self.qpcc, self.m, len(self.near)
        rows = (3 * self.near[:, None] + np.arange(3)).ravel()
        labels = np.full(self.P, FREE)
        if not k:
            return labels
        Y = qpcc.Y[np.ix_(rows, m + rows)] / qpcc.compliance
        y0 = (qpcc.y0[rows] + qpcc.Y[rows][:, :m] @ torques) / qpcc.compliance
        force = contact_forces(Y, y0, qpcc.friction)
        y = (Y @ force.ravel() + y0).reshape(-1, 3)
        labels[self.near] = piece_of(force, y, qpcc.friction)
        return labels


def _squared(Q: ca.DM, g: np.ndarray, c: float, torque: ca.SX) -> ca.SX:
    return ca.bilin(Q, torque) + ca.dot(g, torque) + c


def _product(A: ca.DM, torque: ca.SX) -> ca.SX:
    return A @ torque


def requested_flips(pull, beyond, labels, y, least: float = 0.0):
    """Flips that should lower the energy, largest multiplier first.

    Args:
        pull: multiplier of each inequality, positive if crossing it lowers the energy.
        beyond: patch of each inequality, and piece on the other side.
        labels: piece of each patch (P,).
        y: displacements of the patches (P, 3) [m].
        least: multipliers up to this do not count.

    Returns:
        List of (multiplier, patch, new piece).
    """
    return sorted(
        (
            (float(s), i, behind(labels[i], other, y[i]))
            for s, (i, other) in zip(pull, beyond)
            if s > least
        ),
        reverse=True,
    )
