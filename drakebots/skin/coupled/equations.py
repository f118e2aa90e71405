"""One semi-implicit time step of skeleton and skin, glue vertices eliminated.

The paper's eqs. (1)-(2), with C(q, u) = x_c(q) - S x, C_q = J and C_u = -S:

    A_r dq + J' lambda = b_r + B tau
    A_d du - S' lambda = b_d + f
    J dq - S du = -gap,  gap = x_c(q) - S x

lambda is the force on the skin, -lambda that on the links. As the glue follows q,
lambda need not be an unknown: with the skin condensed onto the kept dofs k = [glue c,
contacts p] (:mod:`drakebots.fem.solver.sparse`),

    S_k u_k = g_k + [lambda, f],  u_k = T z + t,  T = [J 0; 0 1],  t = [gap, 0]

the unknowns z = [dq, u_p] solve the small symmetric system, with contact forces f,

    R z = [b_r + B tau, f] + T' (g_k - S_k t),  R = blkdiag(A_r, 0) + T' S_k T

and lambda = (S_k u_k - g_k)_c afterwards, du by one backward sweep from u_k. Solved for
the columns of B and of the identity, the small system gives the paper's eqs. (10)-(11),
the step as affine maps of torques and contact forces.

Bodies of the plant that the skin touches (:mod:`drakebots.skin.coupled.scene`) add
X dq to the right of the skin's rows and X' du to that of the skeleton's. With
[Y, X_k~] from one sweep over the few columns of X that are not 0, Y = A_ii^-1 X_i,

    R -= Y' X + T' X_k~ + X_k~' T,  r += [Y' b_d + X_k~' t, 0],  du += Y dq
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve
from scipy.sparse import csc_array

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.kernels import njit
from drakebots.core.units import GRAVITY_W
from drakebots.fem import SkinState, step_system
from drakebots.fem.assembly import FemModel, SymmetricPattern, loads
from drakebots.fem.solver import SparseSolver, make_solver
from drakebots.skin.coupled.glue import Glue
from drakebots.skin.coupled.skeleton import SkeletonEquations


@dataclass(frozen=True)
class StepEquations:
    """Equations of one time step of skeleton and skin.

    Attributes:
        skeleton: A_r, b_r, B, J at q, v.
        pattern: sparsity of the skin's matrix.
        A_d: its upper values (nnz,) [N/m].
        b_d: right-hand side without contact forces (3 N,) [N].
        glue_dofs: dofs of the glued vertices (3 g,).
        gap: x_c(q) - x at the glue (3 g,) [m]; 0 up to rounding in a simulation.
        X: forces on the skin's nodes by dq, of bodies that it touches (3 N, nv), or
            None.
        Z: what these contacts add to A_r (nv, nv).
    """

    skeleton: SkeletonEquations
    pattern: SymmetricPattern
    A_d: np.ndarray
    b_d: np.ndarray
    glue_dofs: np.ndarray
    gap: np.ndarray
    X: csc_array | None = None
    Z: np.ndarray | float = 0.0

    def product(self, y: np.ndarray) -> np.ndarray:
        """[A_r dq - X' du, A_d du - X dq] (nv + 3 N,) [N, N m] of y = [dq, du]."""
        dq, du = np.split(y, [len(self.skeleton.b)])
        on_links = self.skeleton.A @ dq
        on_skin = self.pattern.multiply(self.A_d, du)
        if self.X is not None:
            on_links, on_skin = on_links - self.X.T @ du, on_skin - self.X @ dq
        return np.concatenate([on_links, on_skin])

    def left(self, y: np.ndarray) -> np.ndarray:
        """[b_r, b_d] without their product (nv + 3 N,), without torques and glue."""
        return np.concatenate([self.skeleton.b, self.b_d]) - self.product(y)


@dataclass(frozen=True)
class StepSolution:
    """Solution of one time step.

    Attributes:
        dq: dt v+ of the skeleton (nv,) [m, rad].
        du: displacements of the skin's nodes (N, 3) [m].
        glue_forces: lambda, forces on the skin at the glue (g, 3) [N]; the opposite
            forces act on the links.
    """

    dq: np.ndarray
    du: np.ndarray
    glue_forces: np.ndarray


def _check_glue(model, glue):
    n = len(model.rest)
    if glue.vertices.max() >= n:
        raise InvalidInput(f"glue vertex {glue.vertices.max()}: the skin has {n} nodes")


def step_equations(
    skeleton: SkeletonEquations,
    model: FemModel,
    skin: SkinState,
    glue: Glue,
    dt: float,
    *,
    gravity: Sequence[float] = GRAVITY_W,
    forces: np.ndarray | None = None,
    project: bool = False,
) -> StepEquations:
    """Assembles the equations of a time step.

    Args:
        skeleton: equations of the skeleton for the same dt and glue.
        model: the skin.
        skin: its state.
        glue: vertices fixed to links.
        dt: time step [s].
        gravity: gravity on the skin (3,) [m/s^2].
        forces: other forces on the nodes, for instance of contact (N, 3) [N].
        project: whether to remove negative eigenvalues of the skin's tangent.

    Raises:
        InvalidInput: for shapes that do not fit, or forces that are not finite.
    """
    _check_glue(model, glue)
    total = loads(model, gravity, forces)
    A_d, b_d = step_system(model, skin, dt, total, project=project)
    gap = (skeleton.x - skin.positions[glue.vertices]).ravel()
    return StepEquations(skeleton, model.pattern, A_d, b_d, glue.dofs, gap)


def _contact_dofs(contacts, glue, vertices):
    """Dofs 3 node + axis of contact nodes (3 p,)."""
    contacts = np.asarray(contacts, dtype=np.int64).ravel()
    bad = contacts[(contacts < 0) | (contacts >= vertices)]
    if bad.size:
        raise InvalidInput(f"contact vertex {bad[0]}: the skin has {vertices} nodes")
    if len(np.unique(contacts)) < len(contacts):
        raise InvalidInput("contact vertices: one is listed twice; list each once")
    both = np.intersect1d(contacts, glue.vertices)
    if both.size:
        raise InvalidInput(
            f"contact vertex {both[0]}: is also glued to a link; choose another, or "
            "put the contact on the link"
        )
    return (3 * contacts[:, None] + np.arange(3)).ravel()


def skin_solver(
    model: FemModel, glue: Glue, contacts: np.ndarray = (), **options
) -> SparseSolver:
    """A solver that keeps the glue's dofs, then the contacts'.

    Args:
        model, glue: the skin and its glue.
        contacts: nodes that contact forces may act on (p,). Other nodes need another
            solver and its analysis.
        options: options of :func:`~drakebots.fem.solver.sparse.make_solver`.

    Raises:
        InvalidInput: for a contact node that is glued, listed twice, or not of the
            skin, or a glue vertex that the skin does not have.
    """
    _check_glue(model, glue)
    kept = np.concatenate([glue.dofs, _contact_dofs(contacts, glue, len(model.rest))])
    return make_solver(model.pattern, kept, **options)


class ScaledCholesky:
    """Factors of a matrix that is scaled to a diagonal of ones.

    Angles, lengths and elastic dofs differ by orders.

    Args:
        A: symmetric matrix (n, n), of finite entries.

    Attributes:
        matrix: A.
        scale: factors of the rows and columns (n,).

    Raises:
        NoSolution: when the matrix is not positive definite.
    """

    def __init__(self, A: np.ndarray):
        self.matrix, diagonal = A, np.diag(A)
        try:
            if not diagonal.min(initial=np.inf) > 0:
                raise np.linalg.LinAlgError
            self.scale = 1 / np.sqrt(diagonal)
            self._factor = cho_factor(A * np.outer(self.scale, self.scale))
        except np.linalg.LinAlgError as error:
            raise NoSolution(
                "coupled step: the matrix is not positive definite"
            ) from error

    def solve(self, r: np.ndarray) -> np.ndarray:
        """A^-1 r, (n,) or with columns (n, c)."""
        scale = self.scale if r.ndim == 1 else self.scale[:, None]
        return scale * cho_solve(self._factor, scale * r)

    def checked(self, r: np.ndarray) -> np.ndarray:
        """A^-1 r, (n,) or with columns.

        Raises:
            NoSolution: where it misses A z = r, or r is not finite.
        """
        if not np.isfinite(r).all():
            raise NoSolution("coupled step: the right-hand side is not finite")
        z, scale = self.solve(r), self.scale
        # Scaled, A has a diagonal of ones.
        left = np.abs((self.matrix @ z - r).T * scale).max(initial=0.0)
        size = np.abs(z.T / scale).max(initial=0.0) + np.abs(r.T * scale).max()
        if not left <= 1e-9 * size:
            raise NoSolution(
                f"coupled step: the solution of {len(r)} unknowns of the skeleton and "
                f"contacts misses its equations by {left:.1e}"
            )
        return z


def turned(Q: np.ndarray, b: np.ndarray) -> np.ndarray:
    """b (3 n,), or with columns, its nodes turned by Q (n, 3, 3)."""
    out = np.empty((len(Q), 3, b.size // max(3 * len(Q), 1)))
    _turn(Q, np.ascontiguousarray(b, float).reshape(out.shape), out)
    return out.reshape(b.shape)


@njit(cache=True)
def _turn(Q, b, out):
    for n in range(len(Q)):
        for i in range(3):
            p, q, r = Q[n, i]
            for c in range(b.shape[2]):
                out[n, i, c] = p * b[n, 0, c] + q * b[n, 1, c] + r * b[n, 2, c]


class TurnedSolver:
    """A factored solver, as one of the matrix Q A Q' whose nodes are turned.

    A skin that moves keeps its stiffness in axes that turn with it, so that the factors
    of an earlier step, turned, are near those of the present one.

    Args:
        solver: solver of :func:`skin_solver`.
        Q: rotations of the nodes (N, 3, 3).
    """

    def __init__(self, solver: SparseSolver, Q: np.ndarray):
        self.kept, self._solver, self._Q = solver.kept, solver, Q
        self._Q_k, self._back = Q[self.kept[::3] // 3], Q.transpose(0, 2, 1).copy()
        self._back_k = self._Q_k.transpose(0, 2, 1).copy()

    def schur_times(self, T: np.ndarray) -> np.ndarray:
        """S T (k, m)."""
        return turned(self._Q_k, self._solver.schur_times(turned(self._back_k, T)))

    def reduce(self, b: np.ndarray) -> tuple[Any, np.ndarray]:
        """As :meth:`~drakebots.fem.solver.sparse.SparseSolver.reduce`."""
        state, small = self._solver.reduce(turned(self._back, b))
        return state, turned(self._Q_k, small)

    def expand(self, state: Any, x_kept: np.ndarray) -> np.ndarray:
        """As :meth:`~drakebots.fem.solver.sparse.SparseSolver.expand`."""
        x_kept = turned(self._back_k, x_kept)
        return turned(self._Q, self._solver.expand(state, x_kept))


@dataclass(frozen=True)
class TouchedColumns:
    """Bodies that the skin touches, condensed: the columns of X that are not 0.

    Attributes:
        at: their numbers (m,).
        Y: A_ii^-1 X_i (3 N, m).
        X_k: X_k~ (k, m).
        push: X_i' Y (m, m).
        Z: as in :class:`StepEquations`.
    """

    at: np.ndarray
    Y: np.ndarray
    X_k: np.ndarray
    push: np.ndarray
    Z: np.ndarray

    def turned(self, Q: np.ndarray, kept: np.ndarray) -> TouchedColumns:
        """The same in axes that are turned with the nodes."""
        X_k = turned(Q[kept[::3] // 3], self.X_k)
        return replace(self, Y=turned(Q, self.Y), X_k=X_k)


class CondensedSystem:
    """R of a time step, and the sweeps from and to the whole skin.

    Args:
        equations: equations of the step.
        solver: a factored solver that keeps the glue's dofs. Of a matrix that is only
            near that of the step, it gives an approximate R.
        touched: bodies that the skin touches, as they were when it was factored.

    Attributes:
        equations, solver: as above.
        contacts: number of kept dofs that are not glue, 3 p.
        matrix: R (nv + 3 p, nv + 3 p).
        touched: as above; those of this step by default.

    Raises:
        NoSolution: when R is not positive definite.
    """

    def __init__(
        self,
        equations: StepEquations,
        solver: SparseSolver | TurnedSolver,
        touched: TouchedColumns | None = None,
    ):
        g = len(equations.glue_dofs)
        self.equations, self.solver = equations, solver
        self.contacts = len(solver.kept) - g
        J = equations.skeleton.J
        nv = J.shape[1]
        T = block_diag(J, np.eye(self.contacts))
        R = T.T @ solver.schur_times(T)
        R[:nv, :nv] += equations.skeleton.A - equations.Z
        if touched is None and equations.X is not None:
            touched = self._touched()
        self.touched, self._constant = touched, np.zeros(len(R))
        if touched is not None:
            at, along = touched.at, T.T @ touched.X_k
            R[:, at] -= along
            R[at] -= along.T
            R[np.ix_(at, at)] -= touched.push
            R[:nv, :nv] += touched.Z
        if not np.isfinite(R).all():
            raise NoSolution("coupled step: the state is not finite")
        self.matrix, self._factors = R, ScaledCholesky(R)

    def _touched(self) -> TouchedColumns:
        X = self.equations.X
        at = np.flatnonzero(np.diff(X.indptr))
        columns = X[:, at].toarray()
        state, X_k = self.solver.reduce(columns)
        Y = self.solver.expand(state, np.zeros_like(X_k))
        Y[self.solver.kept] = 0.0
        push = Y.T @ columns  # symmetric but for the solver's precision
        return TouchedColumns(at, Y, X_k, (push + push.T) / 2, self.equations.Z)

    @property
    def nv(self) -> int:
        """Number of velocities of the skeleton."""
        return self.equations.skeleton.J.shape[1]

    def right_side(self, torques=None, forces=None) -> np.ndarray:
        """r (nv + 3 p,) for torques (m,) and contact forces (p, 3) [N].

        Raises:
            InvalidInput: for another shape, or values that are not finite.
        """
        r = self._constant.copy()
        B = self.equations.skeleton.B
        r[: self.nv] += B @ as_vector("torques", torques, B.shape[1])
        r[self.nv :] += as_vector("contact forces", forces, self.contacts)
        return r

    def back(self, r: np.ndarray) -> np.ndarray:
        """z = R^-1 r, as :meth:`ScaledCholesky.checked`."""
        return self._factors.checked(r)

    def at(self, z: np.ndarray) -> CondensedSystem:
        """The system for a motion z, which is this one for any."""
        return self

    def kept(self, z: np.ndarray, gap: float = 1.0) -> np.ndarray:
        """u_k = T z + gap t (3 g + 3 p,) [m], glue first, then contacts."""
        glue = self.equations.skeleton.J @ z[: self.nv]
        return np.concatenate([glue + gap * self.equations.gap, z[self.nv :]])

    def expand(self, state: Any, z: np.ndarray, gap: float = 1.0) -> np.ndarray:
        """du (3 N,) [m] for the state of a sweep of the solver and z."""
        du = self.solver.expand(state, self.kept(z, gap))
        if self.touched is not None:
            du += self.touched.Y @ z[self.touched.at]
        return du

    def of_residual(self, rho: np.ndarray, small: np.ndarray) -> np.ndarray:
        """T' g + [Y' rho, 0] for a residual of the skin's rows (3 N,) and its g."""
        g = len(self.equations.glue_dofs)
        r = np.concatenate([self.equations.skeleton.J.T @ small[:g], small[g:]])
        if self.touched is not None:
            r[self.touched.at] += self.touched.Y.T @ rho
        return r


class ReducedSystem(CondensedSystem):
    """R z = r of a time step, factored, for any torques and contact forces.

    Args:
        equations: equations of the step.
        solver: solver of :func:`skin_solver`. It is factored here; once it is factored
            again, this object cannot give displacements of the whole skin any more.

    Raises:
        NoSolution: when the skin's matrix or R is not positive definite.
    """

    def __init__(self, equations: StepEquations, solver: SparseSolver):
        g = len(equations.glue_dofs)
        if not np.array_equal(solver.kept[:g], equations.glue_dofs):
            raise InvalidInput("coupled step: the solver must keep the glue's dofs")
        solver.factor(equations.A_d)
        super().__init__(equations, solver)
        self._state, self._g = solver.reduce(equations.b_d)
        if not np.isfinite(self._g).all():
            raise NoSolution("coupled step: the state is not finite")
        self._S, skeleton = solver.schur, equations.skeleton
        rest = self._g - self._S[:, :g] @ equations.gap
        on_links = skeleton.b + skeleton.J.T @ rest[:g]
        self._constant = np.concatenate([on_links, rest[g:]])
        if self.touched is not None:
            t = self.touched
            self._constant[t.at] += t.Y.T @ equations.b_d
            self._constant[t.at] += t.X_k[:g].T @ equations.gap

    def glue_forces(self, z: np.ndarray) -> np.ndarray:
        """lambda for z (3 g,) [N]."""
        g = len(self.equations.glue_dofs)
        pull = self._S[:g] @ self.kept(z) - self._g[:g]
        if self.touched is not None:
            pull -= self.touched.X_k[:g] @ z[self.touched.at]
        return pull

    def displacement(self, z: np.ndarray) -> np.ndarray:
        """du (3 N,) [m] of the whole skin; InvalidInput after a later step."""
        # A later factorization replaces the solver's S and its factors.
        if self.solver.schur is not self._S:
            raise InvalidInput(
                "coupled step: its solver was factored for a later step; use the "
                "system before the next step, or with a solver of its own"
            )
        return self.expand(self._state, z)

    def solve(self, torques=None, forces=None) -> StepSolution:
        """The step for torques (m,) [N m] and contact forces (p, 3) [N]."""
        return self.solution(self.back(self.right_side(torques, forces)))

    def solution(self, z: np.ndarray) -> StepSolution:
        """The step of z, the skin's displacement by one backward sweep."""
        du, glue = self.displacement(z), self.glue_forces(z)
        return StepSolution(z[: self.nv], du.reshape(-1, 3), glue.reshape(-1, 3))


def as_vector(name: str, value, size: int) -> np.ndarray:
    """value as (size,), zeros for None; InvalidInput when it does not fit."""
    if value is None:
        return np.zeros(size)
    value = np.asarray(value, float).ravel()
    if value.shape != (size,):
        raise InvalidInput(f"{name}: {value.size} numbers, needs {size}")
    if not np.isfinite(value).all():
        raise InvalidInput(f"{name}: {value.tolist()} are not all finite")
    return value
