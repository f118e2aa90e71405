"""Small motions about a pose, and standing at rest, under closed loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from drakebots.core.errors import NoSolution
from drakebots.multibody import TimeStepper


@dataclass(frozen=True)
class Modes:
    """Natural modes, lowest first.

    Attributes:
        frequency: undamped [cycles per unit of time of the plant].
        damping: damping ratio of each mode.
        shapes: velocities of each mode (nv, n).
    """

    frequency: np.ndarray
    damping: np.ndarray
    shapes: np.ndarray


def natural_modes(
    stepper: TimeStepper,
    q: np.ndarray,
    *,
    extra_stiffness: np.ndarray | None = None,
    held: np.ndarray | None = None,
) -> Modes:
    """Modes of M x'' + D x' + K x = 0 on the tangent of the loops.

    K = -d tau/dq and D = -d tau/dv by central differences of Drake's forces,
    restricted to velocities with C v = 0 (and H v = 0 for `held`). The change
    of the loops' direction with q is left out: exact where the loops carry no
    force.

    Args:
        stepper: stepper of a robot with base "fixed" or "euler".
        q: pose (nv,), plant units.
        extra_stiffness: added to K's diagonal (nv,), plant units.
        held: rows (m, nv) of further velocities held at zero.
    """
    n = len(q)
    zero, u = np.zeros(n), np.zeros(stepper.actuation.shape[1])
    K, D, step = np.zeros((n, n)), np.zeros((n, n)), 1e-6
    for i in range(n):
        e = step * np.eye(n)[i]
        K[:, i] = stepper.generalized_forces(
            q - e, zero, u
        ) - stepper.generalized_forces(q + e, zero, u)
        D[:, i] = stepper.generalized_forces(q, -e, u) - stepper.generalized_forces(
            q, e, u
        )
    K, D = K / (2 * step), D / (2 * step)
    if extra_stiffness is not None:
        K = K + np.diag(extra_stiffness)
    plant, context = stepper.plant, stepper.context
    plant.SetPositions(context, q)
    plant.SetVelocities(context, zero)
    M = plant.CalcMassMatrix(context)
    C = stepper.robot.closure.jacobian(context)
    if held is not None:
        C = np.vstack([C, held])
    Z = scipy.linalg.null_space(C) if C.size else np.eye(n)
    M, K, D = (Z.T @ A @ Z for A in (M, 0.5 * (K + K.T), 0.5 * (D + D.T)))
    squared, shapes = scipy.linalg.eigh(K, M)
    omega = np.sqrt(np.maximum(squared, 0.0))
    modal_damping = np.einsum("ij,ik,kj->j", shapes, D, shapes)
    ratio = np.divide(
        modal_damping, 2 * omega, out=np.zeros_like(omega), where=omega > 0
    )
    return Modes(omega / (2 * np.pi), ratio, Z @ shapes)


@dataclass(frozen=True)
class StandingPose:
    """A pose at rest on frictionless feet.

    Attributes:
        q: positions (nq,), plant units.
        normal: force on each foot, plant units.
    """

    q: np.ndarray
    normal: np.ndarray


def stand(stepper: TimeStepper, guess: np.ndarray, level: np.ndarray) -> StandingPose:
    """Static equilibrium with all feet on the ground, without friction.

    Solves tau(q) + C'lam + N'gam = 0, c(q) = 0, phi(q) = 0 and q = guess for
    the coordinates in `level` (those that nothing holds: x, y, yaw).

    Args:
        stepper: stepper of the robot, with feet; its friction is not used.
        guess: positions to start from (nq,), base "euler".
        level: indices of the coordinates that stay.

    Raises:
        NoSolution: when there is none nearby.
    """
    n = len(guess)
    zero, u = np.zeros(n), np.zeros(stepper.actuation.shape[1])

    def residual(x):
        q, multipliers = x[:n], x[n:]
        terms = stepper.terms(q, zero, u)
        rows = np.vstack([terms.C, terms.N])
        force = terms.tau + rows.T @ multipliers
        return np.concatenate([force, terms.c, terms.phi, q[level] - guess[level]])

    start = stepper.terms(guess, zero, u)
    rows = np.vstack([start.C, start.N])
    multipliers = np.linalg.lstsq(rows.T, -start.tau, rcond=None)[0]
    solution = scipy.optimize.least_squares(
        residual,
        np.concatenate([guess, multipliers]),
        method="lm",
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    worst = float(np.abs(solution.fun).max())
    if worst > 1e-7:
        raise NoSolution("no standing pose was found", {"residual": worst})
    feet = len(start.phi)
    return StandingPose(solution.x[:n], solution.x[len(solution.x) - feet :])
