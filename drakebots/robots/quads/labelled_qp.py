"""The QPs of a frame's QPCC whose contacts have labels, eqs. (15)-(18).

With the piece of every patch given (:mod:`~drakebots.robots.quads.contact_state`),
its forces follow from the torques through a small linear system,

    f = T s,  R (y_0 + Y_tau tau + Y_f T s) = 0

and a QP in the torques alone remains. Only this changes from flip to flip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput, NoSolution
from drakebots.robots.quads.contact_state import FREE, behind, piece_of, pieces
from drakebots.robots.quads.contact_sweeps import contact_forces
from drakebots.robots.quads.frame_objective import Quadratic
from drakebots.robots.quads.frame_qp import solve_qp


@dataclass(frozen=True)
class FrameQpcc:
    """Eq. (12) of one frame.

    Attributes:
        objective: E of w = [tau, f].
        limits: |tau| <= U (m,) [N m].
        y0, Y: displacement of the patches, compliance within (3 P,), (3 P, m + 3 P).
        compliance: [m/N].
        friction: mu.
        near: patches that can meet the ground within the frame (P,).
        scheduled: held at first: those of feet on the ground by the footfall pattern
            that are on it (P,).
        cop: rows C f >= 0 (h, 3 P).

    Raises:
        InvalidInput: for shapes that do not fit, values not finite, or a friction
            or limits not > 0.
    """

    objective: Quadratic
    limits: np.ndarray
    y0: np.ndarray
    Y: np.ndarray
    compliance: float
    friction: float
    near: np.ndarray
    scheduled: np.ndarray
    cop: np.ndarray

    def __post_init__(self):
        m, n = len(self.limits), self.Y.shape[1]
        P = len(self.near)
        if self.Y.shape != (3 * P, m + 3 * P) or len(self.objective.g) != n:
            raise InvalidInput(f"QPCC: Y {self.Y.shape} for {m} torques, {P} patches")
        if not (np.isfinite(self.friction) and self.friction > 0):
            raise InvalidInput(f"friction = {self.friction} must be > 0")
        if np.isnan(self.limits).any() or self.limits.min(initial=1.0) <= 0:
            raise InvalidInput(f"torque limits {self.limits.tolist()}: must be > 0")
        for name in ("y0", "Y", "cop"):
            if not np.isfinite(getattr(self, name)).all():
                raise InvalidInput(f"QPCC: {name} is not finite")


@dataclass(frozen=True)
class QpPoint:
    """A solved QP.

    Attributes:
        torques, forces, y, energy: as in :class:`QpccSolution`.
        flips: what its multipliers ask for, the largest first: multiplier, patch,
            piece.
    """

    torques: np.ndarray
    forces: np.ndarray
    y: np.ndarray
    energy: float
    flips: list[tuple[float, int, int]]


class LabelledQp:
    """The QPs of a frame's labels, contacts near the ground only."""

    def __init__(self, frame: FrameQpcc):
        self.frame = frame
        self.m, self.P = len(frame.limits), len(frame.near)
        self.near = np.flatnonzero(frame.near)
        self.table = pieces(frame.friction)

    def affine(self, labels: np.ndarray):
        """w = w0 + W tau and y = y1 + Y1 tau of the labels.

        Raises:
            NoSolution: when these contacts do not determine their forces.
        """
        frame, m, n = self.frame, self.m, self.m + 3 * self.P
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
            RY = R @ frame.Y
            sides = np.concatenate([(R @ frame.y0)[:, None], RY[:, :m]], axis=1)
            matrix = RY[:, m:] @ T
            try:
                s = -np.linalg.solve(matrix, sides)
            except np.linalg.LinAlgError as error:
                raise NoSolution("contacts: their forces are not unique") from error
            w0[m:], W[m:] = T @ s[:, 0], T @ s[:, 1:]
        return w0, W, frame.y0 + frame.Y @ w0, frame.Y @ W

    def solve(self, labels, *, rows=True, cop=True, start=None) -> QpPoint | None:
        """The QP; None when it has no solution.

        Args:
            labels: pieces (P,).
            rows: inequalities of the pieces; (18) leaves them out.
            cop: rows of the COP.
            start: torques to start from.
        """
        frame, m = self.frame, self.m
        try:
            w0, W, y1, Y1 = self.affine(labels)
        except NoSolution:
            return None
        E = frame.objective
        H, g = W.T @ E.H @ W, W.T @ (E.H @ w0 + E.g)
        A, b, beyond = [], [], []
        for i in self.near if rows else ():
            piece, at = self.table[labels[i]], slice(3 * i, 3 * i + 3)
            # y as a force, so that both kinds of rows are in N.
            A += [piece.on_f @ W[m:][at], piece.on_y @ Y1[at] / frame.compliance]
            b += [piece.on_f @ w0[m:][at], piece.on_y @ y1[at] / frame.compliance]
            beyond += [(i, other) for other in piece.beyond]
        if cop and len(frame.cop):
            A.append(frame.cop @ W[m:])
            b.append(frame.cop @ w0[m:])
        A = np.concatenate(A) if A else np.zeros((0, m))
        low = -np.concatenate(b) if b else np.zeros(0)
        found = solve_qp(
            (H + H.T) / 2,
            g,
            (-frame.limits, frame.limits),
            A,
            low,
            np.full(len(low), np.inf),
            start,
        )
        if not found.ok:
            return None
        w = w0 + W @ found.x
        pull = -found.multipliers[m : m + len(beyond)]
        y = (frame.y0 + frame.Y @ w).reshape(-1, 3)
        flips = flips_of(pull, beyond, labels, y)
        return QpPoint(found.x, w[m:].reshape(-1, 3), y, E(w), flips)

    def simulated(self, torques: np.ndarray) -> np.ndarray:
        """Pieces the contacts are in under these torques (P,).

        Raises:
            NoSolution: when the contacts do not settle.
        """
        frame, m, k = self.frame, self.m, len(self.near)
        rows = (3 * self.near[:, None] + np.arange(3)).ravel()
        labels = np.full(self.P, FREE)
        if not k:
            return labels
        Y = frame.Y[np.ix_(rows, m + rows)] / frame.compliance
        y0 = (frame.y0[rows] + frame.Y[rows][:, :m] @ torques) / frame.compliance
        force = contact_forces(Y, y0, frame.friction)
        y = (Y @ force.ravel() + y0).reshape(-1, 3)
        labels[self.near] = piece_of(force, y, frame.friction)
        return labels


def flips_of(pull, beyond, labels, y, least: float = 0.0):
    """Flips that multipliers ask for: (multiplier, patch, piece), largest first."""
    return sorted(
        (
            (float(s), i, behind(labels[i], other, y[i]))
            for s, (i, other) in zip(pull, beyond)
            if s > least
        ),
        reverse=True,
    )
