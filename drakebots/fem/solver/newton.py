"""Newton's method with a backtracking line search, for skins with prescribed nodes.

:func:`equilibrium` brings a skin to rest. :func:`minimise` finds the displacements d
from x0, some of them prescribed, that minimise

    Phi(d) = elastic energy(x0 + d) + d'Q d/2 - b'd

Q (positive semidefinite) holds inertia and damping of an implicit Euler step, or is
absent in statics. Where the energy of an inverted tet is infinite, the line search
stops before a tet inverts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.checks import array, check_value, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.units import GRAVITY_W
from drakebots.fem.assembly import (
    FemModel,
    SymmetricPattern,
    as_positions,
    elastic_energy,
    elastic_force,
    force_and_tangent,
    loads,
    worst_tet,
)
from drakebots.fem.solver.sparse import SparseSolver, make_solver


@dataclass(frozen=True)
class Prescribed:
    """Nodes whose positions are given.

    Attributes:
        nodes: numbers of the nodes (k,).
        motion: function of time [s] that returns positions (k, 3) [m], or constant
            positions.
        axes: those of x, y, z that are prescribed.
    """

    nodes: np.ndarray
    motion: Callable[[float], np.ndarray] | np.ndarray
    axes: tuple[bool, bool, bool] = (True, True, True)

    def at(self, time: float) -> np.ndarray:
        """Positions (k, 3) [m] at a time [s].

        Raises:
            InvalidInput: when the motion has another shape or is not finite.
        """
        position = self.motion(time) if callable(self.motion) else self.motion
        what = f"prescribed motion at {time:g} s"
        return check_value(what, position, array((len(self.nodes), 3), "m"))


class Boundary:
    """All prescribed dofs of a model.

    Attributes:
        dofs: prescribed dofs, sorted (p,).
        mask: True at prescribed dofs (3 N,).
    """

    def __init__(self, nodes: int, parts: Sequence[Prescribed] | Prescribed = ()):
        self._parts = (parts,) if isinstance(parts, Prescribed) else tuple(parts)
        times = np.zeros(3 * nodes, int)
        for part in self._parts:
            check_value("prescribed axes", part.axes, array((3,), of=bool))
            ids = np.asarray(part.nodes)
            if ids.ndim != 1 or ids.size == 0:
                raise InvalidInput(
                    "prescribed nodes: the set is empty; name at least one"
                )
            bad = ids[(ids < 0) | (ids >= nodes)]
            if bad.size:
                raise InvalidInput(
                    f"prescribed node {bad[0]}: the model has nodes 0..{nodes - 1}"
                )
            np.add.at(times, self._dofs(part), 1)
        if times.max(initial=0) > 1:
            node = times.argmax() // 3
            raise InvalidInput(f"prescribed node {node}: listed twice; list it once")
        self.mask, self.dofs = times > 0, np.flatnonzero(times)

    @staticmethod
    def _dofs(part):
        axes = np.flatnonzero(part.axes)
        return (3 * np.asarray(part.nodes)[:, None] + axes).ravel()

    def displacement(self, x: np.ndarray, time: float) -> np.ndarray:
        """Displacement (3 N,) [m] of x to the prescribed positions; 0 elsewhere."""
        step = np.zeros(x.size)
        for part in self._parts:
            axes = np.flatnonzero(part.axes)
            move = part.at(time)[:, axes] - x[part.nodes][:, axes]
            step[self._dofs(part)] = move.ravel()
        return step


def pinned(
    pattern: SymmetricPattern, values: np.ndarray, boundary: Boundary
) -> np.ndarray:
    """The matrix with prescribed rows and columns replaced by the identity.

    The pattern is unchanged, so a solver's analysis stays valid. The identity is scaled
    to the mean size of the diagonal.
    """
    if not len(boundary.dofs):
        return values
    size = float(np.abs(values[pattern.diagonal]).mean())
    mask, lengths = boundary.mask, np.diff(pattern.indptr)
    out = np.where(np.repeat(mask, lengths) | mask[pattern.indices], 0.0, values)
    out[pattern.diagonal[boundary.dofs]] = size
    return out


ARMIJO = 1e-4
"""Share of the predicted decrease that a step of the line search must reach."""

HALVINGS = 40
"""Largest number of halvings in a line search."""

STALLED = 1e-14
"""Steps below this share of the mesh's size are rounding."""


@dataclass(frozen=True)
class NewtonResult:
    """Result of Newton's method.

    Attributes:
        displacement: d (3 N,) [m].
        converged: whether the residual is below the tolerance.
        iterations: number of linear systems solved.
        residual: largest residual force of a free dof [N].
        smallest_ratio: smallest det F of a tet.
        message: one line on the outcome.
    """

    displacement: np.ndarray
    converged: bool
    iterations: int
    residual: float
    smallest_ratio: float
    message: str


@dataclass(frozen=True)
class _Objective:
    """Phi and its gradient; see the module.

    Attributes:
        model, x0, Q, b: as for :func:`minimise`.
        free: mask of the dofs that are not prescribed (3 N,).
    """

    model: FemModel
    x0: np.ndarray
    Q: np.ndarray | None
    b: np.ndarray
    free: np.ndarray

    def positions(self, d: np.ndarray) -> np.ndarray:
        """x0 + d (N, 3) [m]."""
        return self.x0 + d.reshape(-1, 3)

    def _inertia(self, d):
        return 0.0 if self.Q is None else self.model.pattern.multiply(self.Q, d)

    def __call__(self, d: np.ndarray) -> float:
        """Phi(d) [J]."""
        energy = elastic_energy(self.model, self.positions(d))
        return energy + d @ (0.5 * self._inertia(d) - self.b)

    def residual(self, d: np.ndarray) -> tuple[np.ndarray, float, float]:
        """-Phi'(d) (3 N,), its largest free entry, and the largest force [N]."""
        force, q = elastic_force(self.model, self.positions(d)), self._inertia(d)
        r = force.ravel() + self.b - q
        scale = max(*(np.abs(f).max() for f in (force, self.b, q)), 1e-300)
        return r, float(np.abs(r[self.free]).max(initial=0.0)), float(scale)

    def length(self, d, step, now: float, slope: float) -> float | None:
        """Length t of a step by backtracking (Armijo); None where none is accepted.

        Args:
            d, step: point, and direction of the step (3 N,) [m].
            now, slope: Phi at d, and its slope along the step. Where `now` is
                infinite, any finite Phi is accepted.
        """
        t = 1.0
        for _ in range(HALVINGS):
            trial = self(d + t * step)
            enough = now + ARMIJO * t * slope + 1e-13 * abs(now)
            if np.isfinite(trial) and (np.isinf(now) or trial <= enough):
                return t
            t *= 0.5
        return None


def minimise(
    model: FemModel,
    solver: SparseSolver,
    x0: np.ndarray,
    Q: np.ndarray | None,
    b: np.ndarray,
    boundary: Boundary,
    time: float,
    *,
    tolerance: float = 1e-7,
    max_iterations: int = 50,
) -> NewtonResult:
    """Minimises Phi; see the module.

    The prescribed dofs are part of the first steps. Only once a whole step has taken
    them to their positions must the energy fall.

    Args:
        model: the skin.
        solver: solver of definite matrices on the model's pattern.
        x0: initial positions (N, 3) [m].
        Q: upper values of Q (nnz,) [N/m], or None.
        b: constant forces (3 N,) [N].
        boundary: prescribed dofs.
        time: time of the prescribed positions [s].
        tolerance: largest residual, relative to the largest force of the problem.
        max_iterations: largest number of linear systems.
    """
    phi = _Objective(model, x0, Q, b, ~boundary.mask)
    d, iterations, converged = np.zeros(x0.size), 0, False
    target = boundary.displacement(x0, time)
    reached, size = not np.any(target), float(np.ptp(x0, axis=0).max())
    r, worst, scale = phi.residual(d)
    while True:
        if reached and worst <= tolerance * scale:
            converged, message = True, f"converged in {iterations} iterations"
            break
        if not np.isfinite(worst) and iterations == 0:
            message = "a tet is inverted at the start and the material forbids it"
            break
        if iterations == max_iterations:
            message = f"not converged in {max_iterations} iterations"
            break
        iterations += 1
        remaining = np.where(boundary.mask, target - d, 0.0)
        step = _direction(model, solver, phi.positions(d), Q, r, boundary, remaining)
        if step is None:
            message = "the tangent is singular: prescribe nodes or add mass"
            break
        # Until the prescribed positions are reached they do work on the skin, so its
        # energy may grow; it must only stay finite.
        now = phi(d) if reached else np.inf
        t = phi.length(d, step, now, -(r @ step))
        if t is None:
            message = "no step along the search direction lowers the energy"
            break
        d = d + t * step
        if not reached and t == 1.0:
            reached, d = True, np.where(boundary.mask, target, d)
        r, worst, scale = phi.residual(d)
        if reached and np.abs(t * step).max() < STALLED * size:
            converged, message = True, f"converged to rounding in {iterations}"
            break
    tet, ratio = worst_tet(model, phi.positions(d))
    if not converged:
        left = np.where(phi.free, np.abs(np.nan_to_num(r, nan=np.inf)), 0)
        node = int(np.argmax(left) // 3)
        message += f"; worst tet {tet} (det F {ratio:.3g}), worst node {node}"
    return NewtonResult(d, converged, iterations, worst, ratio, message)


def _direction(model, solver, x, Q, r, boundary, remaining):
    """Newton's step (3 N,) with the exact tangent, or the projected one if that fails.

    Args:
        model, solver, Q, boundary: as for :func:`minimise`.
        x: positions (N, 3) [m].
        r: residual forces (3 N,) [N].
        remaining: displacements still to go to the prescribed positions (3 N,) [m].

    Returns:
        The step; None if neither tangent gives one.
    """
    moving = bool(np.any(remaining))
    for project in (False, True):
        _, A = force_and_tangent(model, x, project=project)
        if project:
            # The projected matrix is only semidefinite: raise its diagonal by rounding.
            A[model.pattern.diagonal] *= 1 + 1e-9
        if Q is not None:
            A = A + Q
        rhs = r - model.pattern.multiply(A, remaining) if moving else r.copy()
        rhs[boundary.mask] = 0.0
        try:
            solver.factor(pinned(model.pattern, A, boundary))
        except NoSolution:
            continue
        step = solver.solve(rhs)
        step[boundary.mask] = remaining[boundary.mask]
        if np.isfinite(step).all() and (moving or r @ step >= 0):
            return step
    return None


# --- static equilibrium: f(x) + f_ext = 0 -----------------------------------------


@dataclass(frozen=True)
class StaticResult:
    """An equilibrium, or the last load step that was balanced.

    Attributes:
        positions: positions of the nodes (N, 3) [m].
        converged: whether the whole load is balanced.
        message: one line; names the worst tet and node of a failure.
        load: share of the load that is balanced, 1 when converged.
        iterations: number of linear systems solved.
        residual: largest residual force of a free dof [N].
    """

    positions: np.ndarray
    converged: bool
    message: str
    load: float
    iterations: int
    residual: float


def equilibrium(
    model: FemModel,
    prescribed: Sequence[Prescribed] | Prescribed,
    *,
    forces: np.ndarray | None = None,
    gravity: Sequence[float] = GRAVITY_W,
    start: np.ndarray | None = None,
    steps: int = 1,
    solver: str = "auto",
    tolerance: float = 1e-7,
    max_iterations: int = 50,
) -> StaticResult:
    """Static positions under weight, forces and prescribed positions.

    Args:
        model: the skin.
        prescribed: prescribed nodes, enough to support the skin. Motions are taken at
            the times 1/steps .. 1, so that they can lead the skin along a path.
        forces: forces on the nodes (N, 3) [N].
        gravity: gravity vector (3,) [m/s^2].
        start: initial positions (N, 3) [m]; the rest positions by default.
        steps: number of equal steps in which the load is applied.
        solver: name for :func:`~drakebots.fem.solver.sparse.make_solver`.
        tolerance: largest residual of Newton's method, relative to the largest force.
        max_iterations: largest number of Newton iterations per load step.

    Raises:
        InvalidInput: when nothing is prescribed or a shape is wrong.
    """
    boundary = Boundary(len(model.rest), prescribed)
    if not boundary.dofs.size:
        raise InvalidInput("equilibrium: no node is prescribed, the skin would fall")
    check_value("equilibrium: steps", steps, whole(1))
    load = loads(model, gravity, forces)
    x = as_positions(model, model.rest if start is None else start)
    engine = make_solver(model.pattern, name=solver)
    done, total = 0.0, 0
    how = {"tolerance": tolerance, "max_iterations": max_iterations}
    for k in range(1, steps + 1):
        share = k / steps
        push = share * load.ravel()
        end = minimise(model, engine, x, None, push, boundary, share, **how)
        total += end.iterations
        if not end.converged:
            message = f"load step {k} of {steps} failed: {end.message}"
            return StaticResult(x, False, message, done, total, end.residual)
        x, done = x + end.displacement.reshape(-1, 3), share
    return StaticResult(x, True, end.message, done, total, end.residual)
