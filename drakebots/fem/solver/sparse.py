"""Sparse symmetric systems, each answer held against its own equations.

:func:`make_solver` chooses a library; :class:`SparseSolver` judges what it returns. An
x that was put together from its kept part u must satisfy

    (A x - b)_i = 0,  (A x - b)_c = S u - g,  g = b_c - A_ci A_ii^-1 b_i

which one product with A shows, for less than a hundredth of a step of a skin. S is held
against A in the direction of u only; a first factorization and every PROBE_EVERY-th
after it is probed in a random direction as well.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

from drakebots.core import threads as mkl
from drakebots.core.checks import check_value, one_of
from drakebots.core.errors import DrakebotsWarning, InvalidInput, SolverProblem
from drakebots.fem.assembly import SymmetricPattern
from drakebots.fem.solver import mumps
from drakebots.fem.solver.base import Engine, SolverFault, kept_dofs
from drakebots.fem.solver.pardiso import PardisoEngine


def symmetric_lu(A: csc_array) -> SuperLU:
    """SuperLU's factors of a symmetric matrix, without row exchanges: pivots are those
    of L D L'."""
    how = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
    return splu(A, diag_pivot_thresh=0.0, **how)


class SciPyEngine(Engine):
    """SuperLU: available everywhere, ten and more times slower than the others.

    It factors indefinite matrices as well as definite ones.
    """

    name = "scipy"

    def __init__(self, pattern, kept):
        super().__init__(pattern, kept)
        self._inner = np.setdiff1d(np.arange(pattern.size), self.kept)

    def factor(self, values):
        full = self.pattern.full(values)
        rows = full[self._inner]
        try:
            self._lu = symmetric_lu(rows[:, self._inner].tocsc())
        except RuntimeError as error:
            raise SolverProblem(f"scipy solver: {error}") from error
        if len(self.kept):
            self._cross = rows[:, self.kept].toarray()
            corner = full[self.kept][:, self.kept].toarray()
            S = corner - self._cross.T @ self._lu.solve(self._cross)
            self.schur = (S + S.T) / 2

    def reduce(self, b):
        if not len(self.kept):
            return self._lu.solve(b), np.empty((0, *b.shape[1:]))
        inner = self._lu.solve(b[self._inner])
        return inner, b[self.kept] - self._cross.T @ inner

    def expand(self, state, x_kept):
        x = np.empty((self.pattern.size, *state.shape[1:]))
        x[self.kept] = x_kept
        x[self._inner] = state - self._lu.solve(self._cross @ x_kept)
        return x


SOLVERS = ("auto", "pardiso", "mumps", "scipy")
PRECISIONS = ("double", "single")

TOLERANCE = 1e-12
"""Largest residual of an answer, relative to max|A| max|x| + max|b|. Rounding leaves
2e-15 or less in the skins of models/."""

PROBE_EVERY = 20
"""Number of factorizations of which one is probed. A probe, two sweeps and a product,
takes 4 to 7 % of a step of a skin, so a third of a percent; the check of an answer
takes 0.8 % (scripts/bench/trust.py)."""


@dataclass(frozen=True)
class _Reduced:
    """A reduced right-hand side.

    Attributes:
        state: of the engine, to be given back.
        mix: weights of the columns with which they are checked as one (r,), or None.
        b, small: b (n,) and its reduced form (k,), mixed.
    """

    state: object
    mix: np.ndarray | None
    b: np.ndarray
    small: np.ndarray


class SparseSolver:
    """Solves A x = b for matrices of one fixed pattern, and checks every answer.

    Where an answer of one library misses its equations, the next one takes over, with
    a warning: PARDISO, MUMPS, SciPy. Answers in single precision are not checked here,
    as whoever refines them does (:mod:`drakebots.skin.coupled.solver`).

    Args:
        pattern: upper triangle of the matrices.
        kept: dofs to condense onto, in the caller's order.
        name: library to begin with.
        options: threads, precision; see :func:`make_solver`.

    Attributes:
        pattern, kept: as above.
    """

    def __init__(self, pattern: SymmetricPattern, kept: np.ndarray, name: str, options):
        self.pattern, self.kept, self._options = pattern, kept, options
        self._engine = _engine(name, pattern, kept, **options)
        self._values = None
        self._probes = 0
        self._reset()

    @property
    def name(self) -> str:
        """Name of the library that works now."""
        return self._engine.name

    @property
    def exact(self) -> bool:
        """Whether answers have the accuracy of float64."""
        return self._engine.exact

    def factor(self, values: np.ndarray) -> None:
        """Factors A with these upper values (nnz,).

        Raises:
            InvalidInput: for another number of values.
            NoSolution: for values that are not finite; when A is singular or, for a
                solver of positive definite matrices, not positive definite; when no
                library solves it.
        """
        self._reset()
        values = np.array(values, float)
        if values.shape != (self.pattern.nnz,):
            raise InvalidInput(
                f"matrix values: shape {values.shape}, needs ({self.pattern.nnz},)"
            )
        if not np.isfinite(values).all():
            raise SolverProblem(
                f"{self.name}: the matrix holds values that are not finite"
            )
        while True:
            self._engine.factor(values)
            # PARDISO and MUMPS read them again while they solve.
            self._values, self._size = values, float(np.abs(values).max(initial=0.0))
            try:
                if len(self.kept) and self.exact and self._probes % PROBE_EVERY == 0:
                    self.probe()
                self._probes += 1
                return
            except SolverFault:
                continue

    @property
    def schur(self) -> np.ndarray:
        """S (k, k) of the last factorization, in the order of `kept`."""
        self._check_factored()
        return self._engine.schur

    def schur_times(self, T: np.ndarray) -> np.ndarray:
        """S T (k, m)."""
        return self.schur @ T

    def reduce(self, b: np.ndarray) -> tuple[object, np.ndarray]:
        """The state for `expand`, and g = b_c - A_ci A_ii^-1 b_i (k,) or (k, r).

        Args:
            b: right-hand side (n,), or r of them (n, r).
        """
        self._check_factored()
        b = np.asarray(b, float)
        state, small = self._engine.reduce(b)
        mix = None
        if b.ndim == 2:
            mix = np.random.default_rng(b.shape[1]).uniform(0.5, 1.5, b.shape[1])
        mixed = _mixed(b, mix)
        return _Reduced(state, mix, mixed.copy(), _mixed(small, mix).copy()), small

    def expand(self, state: object, x_kept: np.ndarray) -> np.ndarray:
        """The whole x, (n,) or (n, r), from its kept part.

        Raises:
            SolverFault: where x misses the equations. S and reduced right-hand sides
                may be wrong then, so that the caller must factor again, which the next
                library will do.
        """
        self._check_factored()
        x = self._engine.expand(state.state, x_kept) if len(self.kept) else state.state
        # A kept part that is not finite is the caller's fault, and not the library's.
        if self.exact and np.isfinite(x_kept).all():
            pull = 0.0
            if len(self.kept):
                u = _mixed(np.asarray(x_kept, float), state.mix)
                pull = self._engine.schur @ u - state.small
            self._judge(x, state, pull)
        return x

    def solve(self, b: np.ndarray) -> np.ndarray:
        """x (n,) or (n, r) with A x = b, of the first library whose x satisfies it.

        Raises:
            NoSolution: when none does; for a b that is not finite.
        """
        self._check_factored()
        if not np.isfinite(b).all():
            raise SolverProblem(f"{self.name}: the right-hand side is not finite")
        values = self._values
        while True:
            try:
                state, small = self.reduce(b)
                x = self.expand(state, self._back(small))
                if self.exact and len(self.kept):
                    self._judge(x, state)
                return x
            except SolverFault:
                self.factor(values)

    def probe(self) -> None:
        """Holds S and a sweep against A in a random direction.

        Raises:
            SolverFault: where they do not fit.
        """
        state, _ = self.reduce(np.zeros(self.pattern.size))
        rng = np.random.default_rng(self._probes)
        self.expand(state, rng.normal(size=len(self.kept)))

    def close(self) -> None:
        """Frees the factors; the solver cannot be used afterwards."""
        self._engine.close()
        self._reset()

    def _reset(self):
        self._small, self._values, self._size = None, None, 0.0

    def _check_factored(self):
        if self._values is None:
            raise InvalidInput("sparse solver: factor a matrix before solving")

    def _back(self, small):
        """The kept part S^-1 g (k,) or (k, r) of a solution."""
        if not len(self.kept):
            return small
        S = self._engine.schur
        if not (np.isfinite(S).all() and np.isfinite(small).all()):
            self._fail("not finite")
        if self._small is None:
            try:
                self._small = cho_solve, cho_factor(S)
            except np.linalg.LinAlgError:
                self._small = lu_solve, lu_factor(S)
        back, factors = self._small
        return back(factors, small)

    def _judge(self, x, state, pull=0.0):
        """Refuses an x with a residual of A x = b, but for a pull on the kept dofs."""
        x, b = _mixed(x, state.mix), state.b
        rest = self.pattern.multiply(self._values, x) - b
        rest[self.kept] -= pull
        size = self._size * np.abs(x).max(initial=0.0) + np.abs(b).max(initial=0.0)
        left = np.abs(rest).max(initial=0.0)
        if not left <= TOLERANCE * size and np.isfinite(b).all():
            self._fail(f"{left / max(size, 1e-300):.1e}")

    def _fail(self, left):
        """Goes on to the next library.

        Raises:
            SolverFault: always; NoSolution where no library is left.
        """
        name = self.name
        text = (
            f"{name}: an answer of {self.pattern.size} unknowns, {len(self.kept)} of "
            f"them kept, misses its own equations (relative residual {left}, at most "
            f"{TOLERANCE:g} is rounding)"
        )
        others = installed_solvers()[installed_solvers().index(name) + 1 :]
        if not others:
            raise SolverProblem(text)
        self.close()
        self._engine = _engine(others[0], self.pattern, self.kept, **self._options)
        text += f"; {others[0]} goes on"
        warnings.warn(text, DrakebotsWarning, stacklevel=4)
        raise SolverFault(text)


def _mixed(columns, weights):
    return columns if weights is None else columns @ weights


def make_solver(
    pattern: SymmetricPattern,
    kept: np.ndarray | None = None,
    *,
    name: str = "auto",
    threads: int | None = None,
    precision: str = "double",
) -> SparseSolver:
    """A solver for positive definite matrices of this pattern.

    PARDISO and MUMPS do not pivot, and refuse a matrix that is not.

    Args:
        pattern: upper triangle of the matrices.
        kept: dofs to condense onto; none by default.
        name: "pardiso" (MKL, x86-64), "mumps" (CasADi's), "scipy" (everywhere), or
            "auto": the first of these that is installed.
        threads: number of threads of MKL, or of MUMPS's BLAS; their own choice by
            default.
        precision: "double", or "single": PARDISO factors in float32, in about half
            the time. The others have no such factorization and stay in double, as the
            solver's `exact` says.

    Raises:
        UnknownName: for another name or precision.
        InvalidInput: when PARDISO or MUMPS is requested and not installed; for kept
            dofs that are listed twice or do not exist.
    """
    check_value("solver", name, one_of("sparse solver", SOLVERS))
    check_value("precision", precision, one_of("precision", PRECISIONS))
    kept = kept_dofs(pattern, kept)
    if name == "auto":
        name = _best()
    options = {"threads": threads, "precision": precision}
    return SparseSolver(pattern, kept, name, options)


def _engine(name, pattern, kept, *, threads, precision) -> Engine:
    if name == "scipy":
        return SciPyEngine(pattern, kept)
    if name == "mumps":
        return mumps.MumpsEngine(pattern, kept, threads=threads)
    return PardisoEngine(pattern, kept, threads=threads, precision=precision)


def installed_solvers() -> tuple[str, ...]:
    """The libraries at hand, the fastest first."""
    found = {"pardiso": mkl.find_mkl(), "mumps": mumps.find_mumps(), "scipy": True}
    return tuple(name for name, library in found.items() if library is not None)


@functools.cache
def _best() -> str:
    """The fastest solver that is installed; says once where that is SciPy's."""
    best = installed_solvers()[0]
    if best == "scipy":
        warnings.warn(
            "neither MKL nor the MUMPS 5.8 of casadi >= 3.8 was found: SciPy solves "
            "skins, ten and more times slower; install one of them",
            DrakebotsWarning,
            stacklevel=3,
        )
    return best
