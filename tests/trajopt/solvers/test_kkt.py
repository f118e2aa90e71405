"""Our factorization against NumPy's eigenvalues, SciPy's solutions, and MUMPS."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.locomotion import (
    LocomotionProblem,
    first_guess,
    locomotion_program,
    stand,
    targets,
)
from drakebots.trajopt.program import ProgramBuilder
from drakebots.trajopt.solvers import ipopt_exact, kkt, solve_exact
from tests.helpers.scripts import load_script

quadruped_urdf, written = load_script("program_robots", "quadruped_urdf", "written")
(SymmetricFactors,) = load_script("symmetric_factors", "SymmetricFactors")

pytestmark = pytest.mark.skipif(
    not kkt.available(), reason="kkt.c was not compiled: no C compiler"
)


def kkt_matrix(n: int, m: int, seed: int, density: float = 0.2) -> sp.coo_matrix:
    """The lower triangle of [H J'; J 0] with an indefinite H."""
    random = np.random.default_rng(seed)
    H = sp.random(n, n, density, random_state=seed) - 0.5 * sp.eye(n)
    H = H + H.T + sp.diags(random.standard_normal(n))
    rows = np.arange(m)
    J = sp.random(m, n, density, random_state=seed + 1) + sp.coo_matrix(
        (1 + random.random(m), (rows, random.permutation(n)[:m])), (m, n)
    )
    zero = sp.coo_matrix((np.zeros(m), (rows, rows)), (m, m))
    A = sp.bmat([[sp.tril(H), None], [J, zero]]).tocoo()
    # Diagonals are stored even where they are zero, as IPOPT does.
    A.data = np.append(A.data, np.zeros(m))
    A.row, A.col = np.append(A.row, n + rows), np.append(A.col, n + rows)
    return A


def chain(knots: int, size: int = 30, rows: int = 12, ring: bool = False):
    """A KKT matrix like a trajectory's: dense steps between neighbouring knots."""
    random = np.random.default_rng(knots)
    n, steps = knots * size, knots if ring else knots - 1
    i, j, a = [np.arange(n)], [np.arange(n)], [1 + random.random(n)]
    for k in range(steps):
        here = k * size + np.arange(size)
        there = (k + 1) % knots * size + np.arange(size)
        dual = n + k * rows + np.arange(rows)
        for columns in (here, there):
            r, c = np.meshgrid(dual, columns, indexing="ij")
            i.append(r.ravel()), j.append(c.ravel())
            a.append(random.standard_normal(r.size))
        i.append(dual), j.append(dual), a.append(np.zeros(rows))
    total = n + steps * rows
    parts = map(np.concatenate, (a, i, j))
    data, row, column = parts
    return sp.coo_matrix((data, (row, column)), (total, total))


def full(A: sp.coo_matrix) -> np.ndarray:
    """Both triangles, dense."""
    lower = A.toarray()
    return lower + lower.T - np.diag(np.diag(lower))


@given(st.integers(2, 60), st.floats(0, 0.8), st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_inertia_and_solutions(n, share, seed):
    A = kkt_matrix(n, int(share * n), seed)
    dense = full(A)
    eigenvalues = np.linalg.eigvalsh(dense)
    if np.abs(eigenvalues).min() < 1e-8 * np.abs(eigenvalues).max():
        return  # nearly singular: the count of signs is rounding
    factors = SymmetricFactors(A)
    for _ in range(2):  # the second time with what the first has learned
        report = factors.factor(A.data)
        assert report.zero == 0
        assert report.negative == (eigenvalues < 0).sum()
        x = np.random.default_rng(seed).standard_normal(len(dense))
        solved = factors.solve(dense @ x)
        error = np.abs(dense @ (solved - x)).max() / np.abs(dense @ x).max()
        assert error < 1e-6


def test_a_diagonal_of_zeros_and_values_that_change():
    """Multipliers first, free variables without a Hessian, then other values."""
    n = 20
    i = np.r_[np.arange(n), np.arange(n, 2 * n), np.arange(n, 2 * n)]
    j = np.r_[np.arange(n), np.arange(n), np.arange(n, 2 * n)]
    A = sp.coo_matrix((np.r_[np.zeros(n), np.ones(n), np.zeros(n)], (i, j)))
    factors = SymmetricFactors(A)
    assert factors.factor(A.data).negative == n
    b = 1.0 + np.arange(2.0 * n)
    np.testing.assert_allclose(full(A) @ factors.solve(b), b)
    other = np.r_[np.full(n, 1e9), np.full(n, 1e-3), np.full(n, -1e-8)]
    assert factors.factor(other).negative == n
    B = sp.coo_matrix((other, (i, j)))
    np.testing.assert_allclose(full(B) @ factors.solve(b), b, rtol=1e-9)


def test_repeated_entries_add_up():
    A = sp.coo_matrix(([2.0, 3.0, 1.0], ([0, 0, 1], [0, 0, 1])), (2, 2))
    factors = SymmetricFactors(A)
    factors.factor(A.data)
    np.testing.assert_allclose(factors.solve(np.array([5.0, 1.0])), [1.0, 1.0])


def test_singular_matrices_are_told():
    A = kkt_matrix(8, 3, 0)
    rows = A.row.copy()
    # A row of J that is empty, and one that is twice there.
    data = np.where((rows == 10) & (A.col < 8), 0.0, A.data)
    assert SymmetricFactors(A).factor(data).zero > 0
    empty = sp.coo_matrix((np.zeros(3), (np.arange(3), np.arange(3))))
    assert SymmetricFactors(empty).factor(empty.data).zero == 3


@pytest.mark.long
def test_the_work_grows_with_the_number_of_knots():
    """Products of a chain are linear in its length: 11 to 401 knots."""
    for ring in (False, True):
        knots = np.array([11, 51, 201, 401])
        products = [
            SymmetricFactors(A).factor(A.data).products
            for A in (chain(k, ring=ring) for k in knots)
        ]
        exponent = np.polyfit(np.log(knots), np.log(products), 1)[0]
        assert 0.9 < exponent < 1.15


def test_what_waited_once_is_planned_for():
    """Of one matrix in the second factorization, of its pattern in the first one.

    Each row has a variable of its own, and all variables are coupled: an order of least
    fill begins with the multipliers, whose diagonal is zero.
    """
    n = 23
    H = np.random.default_rng(5).standard_normal((n, n))
    A = sp.tril(sp.block_array([[H + H.T, sp.eye(n)], [sp.eye(n), None]]), format="coo")
    factors = SymmetricFactors(A)
    reports = [factors.factor(A.data) for _ in range(2)]
    reports.append(SymmetricFactors(A).factor(A.data))
    assert [report.negative for report in reports] == [n, n, n]
    assert reports[0].delayed > n / 4
    assert reports[1].delayed == reports[2].delayed == 0


def test_an_order_is_a_permutation():
    A = chain(9)
    order = kkt.elimination_order(A.row, A.col, A.shape[0])
    np.testing.assert_array_equal(np.sort(order), np.arange(A.shape[0]))


def test_other_values_than_entries_are_refused():
    A = kkt_matrix(4, 1, 0)
    with pytest.raises(InvalidInput, match="entries"):
        SymmetricFactors(A).factor(A.data[:-1])


# --- embedded rows --------------------------------------------------------------


def bound_matrix(counts, w: int, others: int, rows: int, seed: int):
    """A KKT matrix in which counts[k] rows bind the w coordinates of knot k alone, its
    unknowns in any order, and the places of those rows."""
    random = np.random.default_rng(seed)
    n, m = len(counts) * w + others, sum(counts)
    H = random.standard_normal((n, n)) * (random.random((n, n)) < 0.4)
    H += H.T + np.diag(random.standard_normal(n))
    C, first = np.zeros((m, n)), 0
    for k, count in enumerate(counts):
        own = slice(first, first + count), slice(k * w, (k + 1) * w)
        C[own] = random.standard_normal((count, w))
        first += count
    J = random.standard_normal((rows, n))
    A = np.block(
        [[H, C.T, J.T], [C, np.zeros((m, m + rows))], [J, np.zeros((rows, m + rows))]]
    )
    order = random.permutation(len(A))
    place = np.argsort(order)
    lower = sp.tril(sp.csr_matrix(A[np.ix_(order, order)])).tocoo()
    every = np.arange(len(A))
    i, j = np.r_[lower.row, every], np.r_[lower.col, every]
    flipped = random.random(len(i)) < 0.5
    i, j = np.where(flipped, j, i), np.where(flipped, i, j)
    data = np.r_[lower.data, np.zeros(len(A))]
    return sp.coo_matrix((data, (i, j)), A.shape), place[n : n + m]


def both(A: sp.coo_matrix) -> np.ndarray:
    """The matrix of entries on either side of the diagonal, dense."""
    dense = A.toarray()
    return dense + dense.T - np.diag(np.diag(dense))


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.integers(1, 8),
    st.floats(0, 1),
    st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=60)
def test_embedded_rows(counts, others, share, seed):
    """Inertia and solutions are those of the whole matrix."""
    A, rows = bound_matrix(counts, 6, others, int(share * others), seed)
    dense = both(A)
    eigenvalues = np.linalg.eigvalsh(dense)
    if np.abs(eigenvalues).min() < 1e-6 * np.abs(eigenvalues).max():
        return  # nearly singular: the count of signs is rounding
    factors = SymmetricFactors(A, embedded=rows)
    for _ in range(2):
        report = factors.factor(A.data)
        assert report.embedded == len(rows)
        assert report.negative == (eigenvalues < 0).sum()
        x = np.random.default_rng(seed).standard_normal(len(dense))
        error = np.abs(dense @ (factors.solve(dense @ x) - x)).max()
        assert error < 1e-6 * np.abs(dense @ x).max()


def test_rows_that_cannot_be_embedded():
    """Relaxed or dependent rows: the whole matrix is factorized, and the next one that
    can be is reduced again."""
    A, rows = bound_matrix([2, 3], 6, 4, 2, seed=1)
    factors = SymmetricFactors(A, embedded=rows)
    relaxed = A.data.copy()
    relaxed[(A.row == rows[0]) & (A.col == rows[0])] = -0.3
    twice = A.data.copy()
    mine = ((A.row == rows[0]) | (A.col == rows[0])) & (A.row != A.col)
    twice[mine] = 0.0
    for data, reduced in ((relaxed, 0), (twice, 0), (A.data, 5)):
        B = sp.coo_matrix((data, (A.row, A.col)), A.shape)
        dense, report = both(B), factors.factor(data)
        assert report.embedded == reduced
        if data is twice:
            assert report.zero == 1
            continue
        assert report.negative == (np.linalg.eigvalsh(dense) < 0).sum()
        b = np.arange(1.0, len(dense) + 1)
        np.testing.assert_allclose(dense @ factors.solve(b), b, rtol=1e-7)
    # Unknowns that touch each other are no rows of a Jacobian.
    others = np.setdiff1d(np.arange(len(dense)), rows)
    report = SymmetricFactors(A, embedded=others).factor(A.data)
    assert report.embedded == 0
    assert report.negative == (np.linalg.eigvalsh(dense) < 0).sum()


@pytest.mark.parametrize("steps, embedded", [(20, 20), (400, 0)])
def test_a_chain_of_equalities_is_no_part(steps, embedded):
    """Rows x_(k+1) = a x_k + ..., of a program without knots, all hang together: short
    chains are eliminated at once, which is dense, long ones stay as sparse as they are,
    with at most a few entries a row."""
    n, random = steps + 1, np.random.default_rng(0)
    k, one = np.arange(steps), np.ones(steps)
    i = np.r_[np.arange(n), n + k, n + k, n + k]
    j = np.r_[np.arange(n), k + 1, k, n + k]
    A = sp.coo_matrix((np.r_[np.ones(n), one, random.random(steps), 0 * one], (i, j)))
    factors = SymmetricFactors(A, embedded=n + k)
    report = factors.factor(A.data)
    assert report.embedded == embedded and report.negative == steps
    dense, b = both(A), random.standard_normal(n + steps)
    np.testing.assert_allclose(dense @ factors.solve(b), b, atol=1e-9)


def knots_of_two(count: int):
    """A program whose rows `own` bind the two variables of a knot each."""
    b = ProgramBuilder("knots of two")
    x = b.add_variables("x", count, ["a", "c"], lower=-1)
    b.constraint("own", {"x": x.indices}, lambda x: x[0] * x[1], lower=0.2, upper=0.2)
    b.constraint("above", {"x": x.indices}, lambda x: x[0], lower=0.0)
    ends = {"p": x.indices[:-1], "q": x.indices[1:]}
    b.constraint("both", ends, lambda p, q: q[0] - p[0], lower=0.1, upper=0.1)
    b.cost("cost", {"x": x.indices}, lambda x: ca.sumsqr(x))
    b.bound("x", 0, 0.5, 0.5, labels=["c"])
    return b.build()


def test_which_rows_are_embedded():
    """Equalities of variables of one knot."""
    program = knots_of_two(2)
    own = program.rows["own"].indices.ravel()
    np.testing.assert_array_equal(kkt.embedded_rows(program), own)
    size, unknowns = kkt.embedded_unknowns(program)
    # Three free variables, two slacks, three multipliers of equalities, then two.
    assert size == 10
    np.testing.assert_array_equal(unknowns, [5, 6])


def test_a_matrix_that_was_not_factorized_is_never_taken_for_one_that_was():
    """After an indefinite Hessian the next is called so without a look: with more signs
    than any number of rows, of rows with a diagonal (IPOPT's restoration) too."""
    lib = kkt.library()
    rows, columns = np.array([[1, 2, 2], [1, 1, 2]], np.int32)
    keep, work, info = np.zeros((3, 40), np.int32)
    sizes, none, control = np.array([2], np.int32), np.zeros(1), np.zeros(5)
    entries = np.array([3], np.int32)

    def call(name: str, *arrays: np.ndarray) -> None:
        getattr(lib, name)(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))

    pattern = sizes, entries, rows, columns
    call("ma27ad_", *pattern, work, none, keep, *[none] * 5, info, none)
    counts = []
    for a in ([-3.0, 1.0, -0.5], [2.0, 0.9, -0.5]):  # two signs, then one
        values = np.array(a), none, work, none, keep, *[none] * 4, control
        call("ma27bd_", *pattern, *values, info)
        counts.append(int(info[14]))
    lib.kkt_release()
    assert counts == [2, 2]


# --- inside IPOPT -------------------------------------------------------------


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """A quadruped's walk of few knots and its first guess."""
    folder = tmp_path_factory.mktemp("walk")
    model = written(folder, "quadruped", quadruped_urdf())
    aim = targets(LocomotionProblem(model, knots=7), stand(model))
    _, program = locomotion_program(aim, slack_weight=30.0)
    return program, first_guess(aim, program)


@pytest.mark.long
def test_iterates_are_those_of_mumps(walk):
    program, x0 = walk
    ours = solve_exact(
        program, x0, options={"linear_solver": "structured", "tol": 1e-9}
    )
    theirs = solve_exact(program, x0, options={"linear_solver": "mumps", "tol": 1e-9})
    assert ours.success and theirs.success
    # Far from the answer rounding grows from one iterate to the next.
    for name, few in (("obj", 12), ("inf_pr", 8)):
        np.testing.assert_allclose(
            ours.log[name][:few], theirs.log[name][:few], rtol=1e-5
        )
    objective = program.objective(ours.x)
    assert objective == pytest.approx(program.objective(theirs.x), rel=1e-6)


def test_without_a_compiler_it_is_refused(monkeypatch, walk):
    monkeypatch.setattr(kkt, "library", lambda: None)
    assert not kkt.available()
    with pytest.raises(InvalidInput, match="C compiler"):
        solve_exact(*walk, options={"linear_solver": "structured"})


def test_without_a_compiler_mumps_solves(monkeypatch, walk):
    program, x0 = walk
    monkeypatch.setattr(kkt, "library", lambda: None)
    assert solve_exact(program, x0, options={"max_iter": 3}).log["obj"]


def test_mumps_is_tried_where_signs_were_in_doubt(monkeypatch, walk):
    """Where IPOPT failed, its factors were in doubt, and nobody asked for kkt.c."""
    program, x0 = walk
    short = {"max_iter": 3}
    plain = solve_exact(program, x0, options=short)
    assert len(plain.log["obj"]) == 4
    solvers, solved = [], ipopt_exact._solved

    def noted(program, x0, settings, *rest):
        solvers.append(settings["linear_solver"])
        return solved(program, x0, settings, *rest)

    monkeypatch.setattr(ipopt_exact, "_solved", noted)
    monkeypatch.setattr(kkt, "doubted", lambda: True)
    again = solve_exact(program, x0, options=short)
    assert solvers == ["ma27", "mumps"] and len(again.log["obj"]) == 4
    solvers.clear()
    solve_exact(program, x0, options=short | {"linear_solver": "structured"})
    solve_exact(program, x0, options=short, monitor=lambda iteration: True)
    assert solvers == ["ma27", "ma27"]


def test_what_mumps_is_tried_for_is_counted(monkeypatch):
    """Of two rows that are one; the next solve counts anew."""
    found, solved = [], ipopt_exact._solved

    def noted(*given):
        raw = solved(*given)
        found.append(kkt.doubted())
        return raw

    monkeypatch.setattr(ipopt_exact, "_solved", noted)
    for twice in (True, False):
        b = ProgramBuilder("two rows")
        x = b.add_variables("x", 1, ["a", "c"], lower=-5, upper=5)
        b.cost("cost", {"x": x.indices}, lambda x: ca.sumsqr(x))
        each = {"x": x.indices}, (lambda x: x[0] + x[1])
        b.constraint("one", *each, lower=1, upper=1)
        if twice:
            b.constraint("other", *each, lower=1, upper=1)
        raw = solve_exact(b.build(), np.ones(2))
        assert raw.success and raw.x == pytest.approx([0.5, 0.5], abs=1e-6)
    assert found == [True, False]


def test_a_solve_within_a_solve_works_with_its_own_rows():
    """Its embedded rows are those of its own program."""
    few, many = knots_of_two(2), knots_of_two(4)
    alone = solve_exact(many, np.ones(8))
    assert alone.success
    rows = many.values(alone.x)[many.rows["own"].indices]
    np.testing.assert_allclose(rows, 0.2, atol=1e-8)

    def inner(iteration) -> bool:
        assert solve_exact(few, np.ones(4)).success
        return False

    nested = solve_exact(many, np.ones(8), monitor=inner)
    np.testing.assert_array_equal(nested.x, alone.x)


def test_solves_in_threads_do_not_mix(walk):
    program, x0 = walk
    options = {"max_iter": 6, "linear_solver": "structured"}
    alone = solve_exact(program, x0, options=options).x
    with ThreadPoolExecutor(2) as pool:
        together = pool.map(
            lambda _: solve_exact(program, x0, options=options).x, range(4)
        )
        for x in together:
            np.testing.assert_allclose(x, alone, rtol=1e-9, atol=1e-12)
