"""Sparse solvers: solutions, Schur complements, failures, choice by name."""

import ctypes
import functools
import gc
import resource
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from drakebots.core import threads
from drakebots.core.errors import (
    DrakebotsWarning,
    InvalidInput,
    NoSolution,
    UnknownName,
)
from drakebots.fem.assembly import SymmetricPattern, build_model, force_and_tangent
from drakebots.fem.material import Material
from drakebots.fem.mesh import box_mesh
from drakebots.fem.solver import SolverFault, make_solver, mumps, sparse
from drakebots.fem.solver.mumps import MumpsEngine
from drakebots.fem.solver.pardiso import PardisoEngine
from drakebots.fem.solver.sparse import PROBE_EVERY, SciPyEngine
from tests.helpers.scripts import load_script

hollow_capsule = load_script("capsule_mesh").hollow_capsule

needs_mkl = pytest.mark.skipif(threads.find_mkl() is None, reason="no MKL")
# A newer CasADi whose MUMPS is not known here is a failure, and no reason to skip.
CASADI = tuple(map(int, metadata.version("casadi").split(".")[:2]))
needs_mumps = pytest.mark.skipif(CASADI < (3, 8), reason="no MUMPS 5.8 before 3.8")
PARDISO = pytest.param("pardiso", marks=needs_mkl)
MUMPS = pytest.param("mumps", marks=needs_mumps)
NAMES = [PARDISO, MUMPS, "scipy"]


@pytest.fixture(scope="module")
def system():
    """Pattern, two matrices, right-hand sides, kept dofs out of order."""
    model = build_model(hollow_capsule(800), Material())
    rng = np.random.default_rng(0)
    matrices = []
    for scale in (1e-5, 2e-5):
        x = model.rest + scale * rng.normal(size=model.rest.shape)
        matrices.append(force_and_tangent(model, x)[1] + model.mass / 0.005**2)
    kept = rng.permutation(model.pattern.size)[:60]
    return model.pattern, matrices, rng.normal(size=(model.pattern.size, 3)), kept


@pytest.mark.parametrize("name", NAMES)
def test_solves_and_refactors(name, system):
    pattern, matrices, b, kept = system
    for keep in (None, kept):
        solver = make_solver(pattern, keep, name=name, threads=1)
        for values in (*matrices, matrices[0]):
            solver.factor(values)
            A = pattern.full(values)
            for right in (b, b[:, 0]):
                x = solver.solve(right)
                assert np.abs(A @ x - right).max() < 1e-9 * np.abs(right).max()
        solver.close()


@pytest.mark.parametrize("name", NAMES)
def test_schur_complement_against_dense(name, system):
    pattern, matrices, b, kept = system
    solver = make_solver(pattern, kept, name=name)
    solver.factor(matrices[1])
    A = pattern.full(matrices[1]).toarray()
    rest = np.setdiff1d(np.arange(len(A)), kept)
    cross = np.linalg.solve(A[np.ix_(rest, rest)], A[np.ix_(rest, kept)])
    exact = A[np.ix_(kept, kept)] - A[np.ix_(kept, rest)] @ cross
    assert np.abs(solver.schur - exact).max() < 1e-9 * np.abs(exact).max()
    state, small = solver.reduce(b)
    assert np.allclose(small, b[kept] - cross.T @ b[rest], atol=1e-9)
    # Any kept part may be given: the inside follows.
    given = np.random.default_rng(1).normal(size=(len(kept), 3)) * 1e-3
    x = solver.expand(state, given)
    assert np.allclose(x[kept], given)
    assert np.abs((A @ x - b)[rest]).max() < 1e-8


@needs_mkl
@needs_mumps
def test_solvers_agree(system):
    pattern, matrices, b, kept = system
    names = ("pardiso", "mumps", "scipy")
    for values in matrices:
        found = []
        for name in names:
            solver = make_solver(pattern, kept, name=name)
            solver.factor(values)
            found.append((solver.schur, solver.solve(b)))
        S, x = found[-1]
        for name, (other, y) in zip(names, found[:-1]):
            assert np.abs(other - S).max() < 1e-12 * np.abs(S).max(), name
            assert np.abs(y - x).max() < 1e-12 * np.abs(x).max(), name


@pytest.fixture(scope="module")
def block():
    """Model of a free block and the stiffness of its rubber, which is singular."""
    model = build_model(box_mesh((1, 1, 1), (3, 3, 3)), Material(youngs_modulus=1.0))
    return model, force_and_tangent(model, model.rest)[1]


def raised(model, values, by):
    out = values.copy()
    out[model.pattern.diagonal] += by
    return out


@pytest.mark.parametrize("kept", [None, [3, 40, 8]])
@pytest.mark.parametrize("name", [PARDISO, MUMPS])
def test_refuses_and_recovers(name, kept, block):
    model, K = block
    shifted, good = raised(model, K, -0.05), raised(model, K, 1.0)
    solver = make_solver(model.pattern, kept, name=name)
    # Free of supports K is singular up to rounding, which decides whether a pivot is
    # below zero; lowered by a little more than that, one is.
    for bad in (shifted, raised(model, K, -1e-9 * K.max()), 0 * K):
        with pytest.raises(NoSolution, match=r"not positive definite|singular"):
            solver.factor(bad)
        with pytest.raises(InvalidInput, match="before solving"):
            solver.solve(np.ones(model.pattern.size))
    solver.factor(good)
    b = np.ones(model.pattern.size)
    assert np.allclose(model.pattern.multiply(good, solver.solve(b)), b)
    with pytest.raises(NoSolution, match="are not finite"):
        solver.factor(good * np.nan)


@pytest.mark.parametrize("kept", [None, [3, 40, 8]])
@pytest.mark.parametrize("name", [PARDISO, MUMPS])
def test_refuses_what_is_singular_but_for_rounding(name, kept, block):
    """Rounding makes the last pivots of about half of these matrices positive."""
    model, K = block
    solver = make_solver(model.pattern, kept, name=name)
    for scale in np.linspace(0.1, 10.0, 20):
        with pytest.raises(NoSolution, match=r"positive definite"):
            solver.factor(scale * K)
    solver.factor(raised(model, K, 1e-10))


@pytest.mark.parametrize("kept", [None, [3, 40, 8]])
@pytest.mark.parametrize("name", [PARDISO, MUMPS])
def test_a_row_of_zeros_is_refused(name, kept, block):
    model, K = block
    solver = make_solver(model.pattern, kept, name=name)
    row = raised(model, K, 1.0)
    rows = np.repeat(np.arange(model.pattern.size), np.diff(model.pattern.indptr))
    row[(rows == 10) | (model.pattern.indices == 10)] = 0.0
    for bad in (K, row, 0 * K):
        with pytest.raises(NoSolution, match=r"positive definite|singular"):
            solver.factor(bad)
    solver.factor(raised(model, K, 1.0))


@needs_mumps
@pytest.mark.parametrize("poison", [0.0, np.nan, 1e300])
def test_mumps_schur_complement_whatever_its_memory_held(poison, monkeypatch):
    """Farther than 250 columns above the diagonal MUMPS writes nothing at all.

    A chain of 600 springs, the last 500 kept, and one more from each of them to the
    first, which fills S; MUMPS works in memory that we fill.
    """
    n, k = 600, 500
    diagonals = 3.0 - np.arange(n) / n, np.full(n - 1, -1.0)
    upper = sp.diags_array(diagonals, offsets=(0, 1)).tolil()
    upper[0, n - k :] = -0.01
    upper = upper.tocsr()
    pattern = SymmetricPattern(upper.indptr, upper.indices)
    exact = make_solver(pattern, np.arange(n - k, n), name="scipy")
    exact.factor(upper.data)
    solver = make_solver(pattern, exact.kept, name="mumps")
    solver.factor(upper.data)
    room = np.empty(1 << 20)
    data = solver._engine._data
    data.wk_user, data.lwk_user = room.ctypes.data, len(room)
    b = np.random.default_rng(2).normal(size=(n, 2))
    for _ in range(2):
        room[:] = poison
        solver.factor(upper.data)
        S = solver.schur
        assert np.array_equal(S, S.T)
        assert np.abs(S - exact.schur).max() < 1e-13 * np.abs(exact.schur).max()
        assert np.abs(solver.solve(b) - exact.solve(b)).max() < 1e-12


@needs_mumps
def test_mumps_holds_more_than_one_right_side(system):
    """A state may be expanded later, again, and after others."""
    pattern, matrices, b, kept = system
    solver = make_solver(pattern, kept, name="mumps")
    solver.factor(matrices[0])
    exact = solver.solve(b)
    states = [solver.reduce(column)[0] for column in b.T]
    for _ in range(2):
        for state, x in zip(states, exact.T):
            found = solver.expand(state, x[kept])
            assert np.abs(found - x).max() < 1e-12 * np.abs(x).max()


@needs_mumps
def test_mumps_analyses_once(system, monkeypatch):
    pattern, matrices, b, kept = system
    jobs, plain = [], MumpsEngine._call
    monkeypatch.setattr(
        MumpsEngine, "_call", lambda self, job: jobs.append(job) or plain(self, job)
    )
    solver = make_solver(pattern, kept, name="mumps")
    for values in matrices:
        solver.factor(values)
        solver.solve(b)
    solver.close()
    assert jobs.count(mumps.ANALYSE) == jobs.count(mumps.START) == 1
    assert jobs.count(mumps.FACTOR) == 2 and jobs[-1] == mumps.END
    with pytest.raises(InvalidInput, match="before solving"):
        solver.solve(b)


@needs_mumps
def test_mumps_threads(system):
    """Two threads change rounding at most, and leave the BLAS as it was."""
    pattern, matrices, b, kept = system

    def number_of_threads() -> list[int]:
        return [each["num_threads"] for each in ThreadpoolController().info()]

    before, answers = number_of_threads(), []
    for number in (1, 2):
        solver = make_solver(pattern, kept, name="mumps", threads=number)
        solver.factor(matrices[0])
        answers.append(solver.solve(b))
        assert number_of_threads() == before
    one, two = answers
    assert np.abs(one - two).max() < 1e-12 * np.abs(one).max()


@pytest.mark.long
@needs_mumps
def test_mumps_frees_its_memory(system):
    """Factors of 3 MB each: fifty solvers would leave more than a hundred MB."""
    pattern, matrices, _, kept = system

    def resident():
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    def used(times, close):
        for _ in range(times):
            solver = make_solver(pattern, kept, name="mumps")
            solver.factor(matrices[0])
            if close:
                solver.close()
        return resident()

    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc")
    start = used(5, close=True)
    for close in (True, False):
        assert used(25, close) < start + 20


@pytest.mark.skipif(mumps.fast_blas() is None, reason="blas.c was not compiled")
@pytest.mark.parametrize("n", [1, 48, 131])
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("of_a, of_b", ["NN", "NT", "TN", "TT"])
def test_one_triangle_of_a_product(n, uplo, of_a, of_b):
    """BLAS's dgemmt, which SciPy does not name; what is not the triangle is left."""
    rng, k, alpha, beta = np.random.default_rng(n), 7, -1.5, 0.5
    a, b = rng.normal(size=(n, k)), rng.normal(size=(k, n))
    c = np.asfortranarray(rng.normal(size=(n + 2, n)))
    product = alpha * a @ b + beta * c[:n]
    triangle = np.tril if uplo == "L" else np.triu
    want = c.copy()
    want[:n] += triangle(product - c[:n])
    a = np.asfortranarray(a if of_a == "N" else a.T)
    b = np.asfortranarray(b if of_b == "N" else b.T)

    def at(value):
        return ctypes.byref(value)

    def whole(value):
        return at(ctypes.c_int(value))

    mumps.fast_blas().dgemmt_(
        *(at(ctypes.c_char(x.encode())) for x in (uplo, of_a, of_b)),
        *(whole(n), whole(k), at(ctypes.c_double(alpha))),
        *(a.ctypes.data_as(ctypes.c_void_p), whole(len(a))),
        *(b.ctypes.data_as(ctypes.c_void_p), whole(len(b))),
        at(ctypes.c_double(beta)),
        *(c.ctypes.data_as(ctypes.c_void_p), whole(len(c))),
    )
    assert np.abs(c - want).max() < 1e-13 * np.abs(want).max() * k


def test_another_mumps_is_not_trusted(monkeypatch):
    """A library that writes another version, or puts it elsewhere."""

    class Library:
        def __init__(self, text, at):
            self.text, self.at = text, at

        def dmumps_c(self, room):
            room[self.at : self.at + len(self.text)] = self.text

    place = mumps._Structure.version_number.offset
    assert mumps.version(Library(b"5.8.2", place)) == "5.8.2"
    assert mumps.version(Library(b"5.7.3", place)) is None
    assert mumps.version(Library(b"5.8.2", place - 8)) is None


def test_choice_by_name(system, monkeypatch):
    pattern = system[0]
    with pytest.raises(UnknownName, match="sparse solver"):
        make_solver(pattern, name="cholmod")
    for bad in ([-1], [pattern.size], [3, 3]):
        with pytest.raises(InvalidInput, match="kept dofs"):
            make_solver(pattern, bad, name="scipy")
    with pytest.raises(InvalidInput, match="not found"), monkeypatch.context() as patch:
        patch.setattr(threads, "find_mkl", lambda: None)
        make_solver(pattern, name="pardiso")
    with pytest.raises(InvalidInput, match="no MUMPS"), monkeypatch.context() as patch:
        patch.setattr(mumps, "find_mumps", lambda: None)
        make_solver(pattern, name="mumps")


@needs_mumps
def test_the_fastest_installed_is_chosen(system, monkeypatch):
    """MKL, MUMPS, SciPy; the last is reported once."""
    pattern, _, _, kept = system
    monkeypatch.setattr(sparse, "_best", sparse._best.__wrapped__)
    if threads.find_mkl() is not None:
        assert make_solver(pattern, kept).name == "pardiso"
    monkeypatch.setattr(threads, "find_mkl", lambda: None)
    assert make_solver(pattern, kept).name == "mumps"
    monkeypatch.setattr(mumps, "find_mumps", lambda: None)
    monkeypatch.setattr(sparse, "_best", functools.cache(sparse._best))
    with pytest.warns(DrakebotsWarning, match="SciPy solves skins") as reported:
        assert make_solver(pattern, kept).name == "scipy"
        assert make_solver(pattern, kept).name == "scipy"
    assert len(reported) == 1


@pytest.mark.parametrize("name", NAMES)
def test_factor_comes_first(name, system):
    solver = make_solver(system[0], [0], name=name)
    with pytest.raises(InvalidInput, match="before solving"):
        solver.solve(np.ones(system[0].size))
    with pytest.raises(InvalidInput, match="before solving"):
        _ = solver.schur


@pytest.mark.parametrize("name", NAMES)
def test_values_are_checked(name, system):
    pattern, matrices, _, _ = system
    solver = make_solver(pattern, name=name)
    with pytest.raises(InvalidInput, match="matrix values"):
        solver.factor(matrices[0][1:])


ENGINES = {"pardiso": PardisoEngine, "mumps": MumpsEngine, "scipy": SciPyEngine}


def break_engine(patch, engine, part, by):
    """Makes one part of an engine's answers wrong by a share `by` of their size."""

    def wrong(x):
        x = np.array(x)
        x.flat[x.size // 2] += by * np.abs(x).max()
        return x

    def put(self, S):
        vars(self)["schur"] = S

    plain = getattr(engine, part, None)
    if part == "schur":
        whole = getattr(plain, "fget", lambda self: vars(self)["schur"])
        broken = property(lambda self: wrong(whole(self)), put)
        patch.setattr(engine, part, broken, raising=False)
    elif part == "reduce":

        def reduce(self, b):
            state, small = plain(self, b)
            return state, wrong(small)

        patch.setattr(engine, part, reduce)
    else:
        patch.setattr(engine, part, lambda self, state, x: wrong(plain(self, state, x)))


@pytest.mark.parametrize("by", [1e-5, np.nan])
@pytest.mark.parametrize("part", ["schur", "reduce", "expand"])
@pytest.mark.parametrize("name", [PARDISO, MUMPS, "scipy"])
def test_a_broken_library_is_caught_and_the_next_one_asked(
    name, part, by, system, monkeypatch
):
    pattern, matrices, b, kept = system
    A = pattern.full(matrices[0])
    break_engine(monkeypatch, ENGINES[name], part, by)
    solver = make_solver(pattern, kept, name=name, threads=1)

    def answer():
        solver.factor(matrices[0])
        return solver.solve(b)

    reported = rf"{name}: an answer of {pattern.size} unknowns, 60 of them kept, misses"
    if name == "scipy":  # there is none after it
        with pytest.raises(NoSolution, match=reported):
            answer()
        return
    with pytest.warns(DrakebotsWarning, match=reported + r".*(mumps|scipy) goes on"):
        x = answer()
    assert solver.name != name
    assert np.abs(A @ x - b).max() < 1e-9 * np.abs(b).max()


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_library_without_kept_unknowns(name, system, monkeypatch):
    """The part that breaks is the state, which is then the answer."""
    pattern, matrices, b, _ = system
    plain = ENGINES[name].reduce

    def wrong(self, b):
        state, small = plain(self, b)
        return 1.00001 * state, small

    monkeypatch.setattr(ENGINES[name], "reduce", wrong)
    solver = make_solver(pattern, name=name)
    solver.factor(matrices[0])
    if name == "scipy":
        with pytest.raises(NoSolution, match="misses its own equations"):
            solver.solve(b)
        return
    with pytest.warns(DrakebotsWarning, match="goes on"):
        x = solver.solve(b)
    residual = pattern.full(matrices[0]) @ x - b
    assert np.abs(residual).max() < 1e-9 * np.abs(b).max()


@needs_mumps
def test_a_library_that_breaks_later(system, monkeypatch):
    """Every answer is judged; one that used a wrong S must be made anew."""
    pattern, matrices, b, kept = system
    solver = make_solver(pattern, kept, name="mumps")
    solver.factor(matrices[0])
    exact = solver.solve(b)
    break_engine(monkeypatch, MumpsEngine, "schur", 1e-6)
    solver.factor(matrices[0])  # not probed
    state, small = solver.reduce(b)
    x_kept = np.linalg.solve(solver.schur, small)
    with pytest.warns(DrakebotsWarning), pytest.raises(SolverFault, match="scipy goes"):
        solver.expand(state, x_kept)
    with pytest.raises(InvalidInput, match="before solving"):
        solver.solve(b)
    solver.factor(matrices[0])
    assert np.abs(solver.solve(b) - exact).max() < 1e-12 * np.abs(exact).max()


@needs_mumps
def test_schur_complements_alone_are_probed(system, monkeypatch):
    """Whoever takes S and no answer: at first and every PROBE_EVERY-th time."""
    pattern, matrices, _, kept = system
    solver = make_solver(pattern, kept, name="mumps")
    solver.factor(matrices[0])
    break_engine(monkeypatch, MumpsEngine, "schur", 1e-6)
    for _ in range(PROBE_EVERY - 1):
        solver.factor(matrices[0])
    with pytest.warns(DrakebotsWarning, match="scipy goes on"):
        solver.factor(matrices[0])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_is_no_fault_of_the_library(name, system):
    pattern, matrices, b, kept = system
    solver = make_solver(pattern, kept, name=name)
    solver.factor(matrices[0])
    x = solver.expand(solver.reduce(b * np.nan)[0], b[kept])
    assert not np.isfinite(x).all()
    x = solver.expand(solver.reduce(b)[0], b[kept] * np.nan)
    assert not np.isfinite(x).all()
    with pytest.raises(NoSolution, match="right-hand side is not finite"):
        solver.solve(b * np.nan)
    assert solver.name == name


@needs_mkl
def test_single_precision_is_a_start_for_refinement(system):
    pattern, (values, _), b, kept = system
    exact, quick = (
        make_solver(pattern, kept, name="pardiso", threads=1, precision=p)
        for p in ("double", "single")
    )
    exact.factor(values)
    quick.factor(values)
    assert exact.exact and not quick.exact
    size = np.abs(exact.schur).max()
    assert 1e-9 * size < np.abs(quick.schur - exact.schur).max() < 1e-4 * size
    want, x, errors = exact.solve(b[:, 0]), np.zeros(pattern.size), []
    for _ in range(4):
        x = x + quick.solve(b[:, 0] - pattern.multiply(values, x))
        errors.append(np.abs(x - want).max() / np.abs(want).max())
    assert 1e-9 < errors[0] < 1e-2 and errors[-1] < 1e-11
    # What is kept is not rounded: by neither sweep.
    alone = np.zeros(pattern.size)
    alone[kept] = b[kept, 0]
    state, small = quick.reduce(alone)
    assert np.array_equal(small, alone[kept])
    assert np.array_equal(quick.expand(state, b[kept, 1])[kept], b[kept, 1])


def test_precision_by_name(system):
    pattern, _, _, kept = system
    for name in ("scipy", "mumps"):
        assert make_solver(pattern, kept, name=name, precision="single").exact
    with pytest.raises(UnknownName, match="precision"):
        make_solver(pattern, precision="half")
