"""The skin in time: implicit Euler, one linear solve a frame or full Newton.

With v = (x - x_n)/dt the step solves

    M (x - x_n - dt v_n)/dt^2 + D (x - x_n)/dt = f(x) + f_ext

The linear frame, the paper's, takes f(x) = f(x_n) - K(x_n) (x - x_n) and is one
sparse solve. The Newton step minimises the energy whose gradient this is, with
damping D = alpha M + beta K(x_n) and the external forces of the step's start. The
guarded frame is Newton's step with a loose tolerance: about one solve a frame, as
the linear one, and further ones only where a wall buckles. There the linear frame
can fail: a tube of P2 tets bent 40 deg at 10 to 90 MPa and 5 ms throws its fold
inside out, the guarded one does not.

Linear momentum of a free skin is kept to rounding; angular momentum drifts by
the first order in dt, as implicit Euler does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.fem.assembly import (
    FemModel,
    as_positions,
    damping_values,
    elastic_energy,
    force_and_tangent,
    gravity_force,
    mass_damping,
    stiffness_shares,
    worst_tet,
)
from drakebots.fem.solver import Boundary, Prescribed, make_solver, minimise, pinned

METHODS = {"linear": 0.0, "guarded": 3e-2, "newton": 1e-7}
"""Methods of a step and the tolerance of Newton's method in each."""
GRAVITY = (0.0, 0.0, -9.81)

Forces = np.ndarray | Callable[[float, np.ndarray, np.ndarray], np.ndarray]
"""Forces on the nodes (N, 3) [N], or a function of time [s], x and v."""


@dataclass(frozen=True)
class SkinState:
    """Positions (N, 3) [m] and velocities (N, 3) [m/s] at a time [s]."""

    time: float
    positions: np.ndarray
    velocities: np.ndarray


@dataclass(frozen=True)
class StepResult:
    """One step.

    Attributes:
        state: after the step; before it when the step failed.
        converged: whether the step can be used.
        message: one line; names the worst tet and node of a failed step.
        iterations: linear systems solved.
        residual: largest residual force of a free dof [N]; of the linear frame
            that of the linear system.
        worst_tet, smallest_ratio: the tet with the smallest det F.
    """

    state: SkinState
    converged: bool
    message: str
    iterations: int
    residual: float
    worst_tet: int
    smallest_ratio: float


def at_rest(model: FemModel, time: float = 0.0) -> SkinState:
    """The undeformed skin, standing."""
    return SkinState(time, model.rest.copy(), np.zeros_like(model.rest))


def frame_system(
    model: FemModel,
    state: SkinState,
    dt: float,
    forces: np.ndarray,
    *,
    project: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """A_d and b_d of the linear frame A_d (x - x_n) = b_d.

    A_d = M/dt^2 + D/dt + K(x_n),  b_d = f(x_n) + f_ext + M v_n/dt.

    Args:
        model, state: the skin at x_n, v_n.
        dt: [s].
        forces: external, weight included (N, 3) [N].
        project: use the projected tangent.

    Returns:
        Upper values (nnz,) [N/m] and b_d (3 N,) [N].
    """
    # K and beta K/dt in one assembly.
    scale = 1 + stiffness_shares(model) / dt
    force, A = force_and_tangent(model, state.positions, project=project, scale=scale)
    A += model.mass / dt**2
    if model.damped:
        A += mass_damping(model) / dt
    push = model.pattern.multiply(model.mass, state.velocities.ravel() / dt)
    return A, (force + forces).ravel() + push


class ImplicitEuler:
    """Steps a skin in time.

    Args:
        model: the skin.
        dt: time step [s].
        method: "linear" (one solve a frame), "guarded" or "newton".
        prescribed: motions of nodes.
        gravity: (3,) [m/s^2].
        solver: name for :func:`~drakebots.fem.solver.sparse.make_solver`.
        threads: of the solver.
        tolerance: of Newton's residual against the largest force; that of METHODS
            by default.
        max_iterations: of Newton, a step.

    Raises:
        InvalidInput, UnknownName: before any step, for a value that cannot be.
    """

    def __init__(
        self,
        model: FemModel,
        dt: float,
        *,
        method: str = "linear",
        prescribed: Sequence[Prescribed] | Prescribed = (),
        gravity: Sequence[float] = GRAVITY,
        solver: str = "auto",
        threads: int | None = None,
        tolerance: float | None = None,
        max_iterations: int = 50,
    ):
        if method not in METHODS:
            raise UnknownName("time step method", method, METHODS)
        if not (np.isfinite(dt) and dt > 0):
            raise InvalidInput(f"time step dt = {dt} s must be > 0; the paper's: 0.005")
        self.model, self.dt, self.method = model, float(dt), method
        self.boundary = Boundary(len(model.rest), prescribed)
        self.weight = gravity_force(model, gravity)
        self.solver = make_solver(model.pattern, name=solver, threads=threads)
        tolerance = METHODS[method] if tolerance is None else tolerance
        self._options = {"tolerance": tolerance, "max_iterations": max_iterations}

    def step(self, state: SkinState, forces: Forces | None = None) -> StepResult:
        """The next state; a failed result keeps the old one."""
        total = self.weight + self._external(state, forces)
        run = self._linear if self.method == "linear" else self._newton
        d, converged, message, iterations, residual, tet, ratio = run(state, total)
        if converged:
            move = d.reshape(-1, 3)
            state = SkinState(
                state.time + self.dt, state.positions + move, move / self.dt
            )
        else:
            message = f"step to {state.time + self.dt:g} s failed: {message}"
        return StepResult(state, converged, message, iterations, residual, tet, ratio)

    def _external(self, state, forces):
        if forces is None:
            return 0.0
        if callable(forces):
            forces = forces(state.time, state.positions, state.velocities)
        forces = as_positions(self.model, forces)
        if not np.isfinite(forces).all():
            node = int(np.argmin(np.isfinite(forces).all(axis=1)))
            raise InvalidInput(
                f"external force on node {node} at {state.time:g} s is not finite"
            )
        return forces

    def _linear(self, state, total):
        x = state.positions
        outcome = None
        for project in (False, True):
            # Compressed walls make the exact tangent indefinite or nearly singular
            # (they want to buckle): a frame it spoils is taken again, projected.
            d, residual = self._frame(state, total, project)
            if d is None:
                continue
            tet, ratio = worst_tet(self.model, x + d.reshape(-1, 3))
            good, message = self._usable(x, d, tet, ratio)
            note = f"{1 + project} linear solve" + ("s, tangent projected" * project)
            outcome = d, good, message or note, 1 + project, residual, tet, ratio
            if good and not message:
                break
        if outcome is None:
            tet, ratio = worst_tet(self.model, x)
            message = f"no linear solve, worst tet {tet} (det F {ratio:.3g}); "
            message += (
                "the matrix cannot be factored: take a smaller dt"
                if ratio > 0
                else "it is turned over at the start: use 'stable-neo-hookean'"
            )
            return x, False, message, 0, np.nan, tet, ratio
        return outcome

    def _frame(self, state, total, project):
        """Displacement (3 N,) and residual of one solve; None where it fails."""
        pattern, mask = self.model.pattern, self.boundary.mask
        A, b = frame_system(self.model, state, self.dt, total, project=project)
        move = self.boundary.displacement(state.positions, state.time + self.dt)
        rhs = b - pattern.multiply(A, move)
        rhs[mask] = 0.0
        if not np.isfinite(rhs).all():
            return None, np.nan
        try:
            self.solver.factor(pinned(pattern, A, self.boundary))
        except NoSolution:
            return None, np.nan
        d = self.solver.solve(rhs)
        d[mask] = move[mask]
        r = np.abs(pattern.multiply(A, d) - b)
        return d, float(r[~mask].max(initial=0.0))

    def _usable(self, x, d, tet, ratio):
        if not np.isfinite(d).all() or np.isnan(ratio):
            node = int(np.argmin(np.isfinite(d)) // 3)
            return False, f"positions are not finite at node {node}, tet {tet}"
        if ratio > 0:
            return True, ""
        if np.isfinite(elastic_energy(self.model, x + d.reshape(-1, 3))):
            return True, f"tet {tet} is turned over (det F {ratio:.3g})"
        corners = self.model.space.mesh.tets[tet].tolist()
        return False, (
            f"tet {tet} with vertices {corners} turned over (det F {ratio:.3g}); take "
            "a smaller dt, the method 'guarded' or the material 'stable-neo-hookean'"
        )

    def _newton(self, state, total):
        model, pattern = self.model, self.model.pattern
        Q = model.mass / self.dt**2
        if model.damped:
            # Projected, so that the energy to minimise is bounded below.
            Q = Q + damping_values(model, state.positions, project=True) / self.dt
        push = pattern.multiply(model.mass, state.velocities.ravel() / self.dt)
        end = minimise(
            model,
            self.solver,
            state.positions,
            Q,
            total.ravel() + push,
            self.boundary,
            state.time + self.dt,
            **self._options,
        )
        return (
            end.displacement,
            end.converged,
            end.message,
            end.iterations,
            end.residual,
            end.worst_tet,
            end.smallest_ratio,
        )


def kinetic_energy(model: FemModel, state: SkinState) -> float:
    """v'M v/2 [J]."""
    v = state.velocities.ravel()
    return float(0.5 * v @ model.pattern.multiply(model.mass, v))


def momentum(model: FemModel, state: SkinState) -> tuple[np.ndarray, np.ndarray]:
    """Linear (3,) [kg m/s] and angular momentum about the origin (3,)."""
    p = model.pattern.multiply(model.mass, state.velocities.ravel()).reshape(-1, 3)
    return p.sum(axis=0), np.cross(state.positions, p).sum(axis=0)
