"""Sparse solvers: solutions, Schur complements, failures, choice by name."""

import numpy as np
import pytest

from drakebots.core import threads
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.fem.assembly.assembly import build_model, force_and_tangent
from drakebots.fem.material.materials import Material
from drakebots.fem.mesh.shapes import box_mesh, hollow_capsule
from drakebots.fem.solver.sparse import ScipySolver, make_solver

needs_mkl = pytest.mark.skipif(threads.find_mkl() is None, reason="no MKL")
NAMES = [pytest.param("pardiso", marks=needs_mkl), "scipy"]


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


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_solves_and_refactors(name, definite, system):
    pattern, matrices, b, kept = system
    for keep in (None, kept):
        solver = make_solver(pattern, keep, name=name, definite=definite, threads=1)
        for values in (*matrices, matrices[0]):
            solver.factor(values)
            A = pattern.full(values)
            for right in (b, b[:, 0]):
                x = solver.solve(right)
                assert np.abs(A @ x - right).max() < 1e-9 * np.abs(right).max()
        solver.close()


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_schur_complement_against_dense(name, definite, system):
    pattern, matrices, b, kept = system
    solver = make_solver(pattern, kept, name=name, definite=definite)
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
def test_pardiso_and_scipy_agree(system):
    pattern, matrices, b, kept = system
    one, two = (make_solver(pattern, kept, name=n) for n in ("pardiso", "scipy"))
    for values in matrices:
        one.factor(values)
        two.factor(values)
        scale = np.abs(two.schur).max()
        assert np.abs(one.schur - two.schur).max() < 1e-9 * scale
        x = two.solve(b)
        assert np.abs(one.solve(b) - x).max() < 1e-9 * np.abs(x).max()


@needs_mkl
def test_pardiso_refuses_and_recovers():
    model = build_model(box_mesh((1, 1, 1), (3, 3, 3)), Material(youngs_modulus=1.0))
    K = force_and_tangent(model, model.rest)[1]
    shifted = K.copy()
    shifted[model.pattern.diagonal] -= 0.05
    solver = make_solver(model.pattern, name="pardiso")
    with pytest.raises(NoSolution, match="not positive definite"):
        solver.factor(shifted)
    good = K.copy()
    good[model.pattern.diagonal] += 1.0
    solver.factor(good)
    b = np.ones(model.pattern.size)
    assert np.allclose(model.pattern.multiply(good, solver.solve(b)), b)
    with pytest.raises(NoSolution, match="not finite"):
        solver.factor(good * np.nan)
    # LDL' takes the indefinite one.
    ldl = make_solver(model.pattern, name="pardiso", definite=False)
    ldl.factor(shifted)
    assert np.allclose(model.pattern.multiply(shifted, ldl.solve(b)), b)


def test_choice_by_name(system, monkeypatch):
    pattern, _, _, kept = system
    with pytest.raises(UnknownName, match="sparse solver"):
        make_solver(pattern, name="cholmod")
    for bad in ([-1], [pattern.size], [3, 3]):
        with pytest.raises(InvalidInput, match="kept dofs"):
            make_solver(pattern, bad, name="scipy")
    with monkeypatch.context() as patch:
        patch.setattr(threads, "find_mkl", lambda: None)
        assert isinstance(make_solver(pattern, kept), ScipySolver)
        with pytest.raises(InvalidInput, match="install pypardiso"):
            make_solver(pattern, name="pardiso")


@pytest.mark.parametrize("name", NAMES)
def test_factor_comes_first(name, system):
    solver = make_solver(system[0], [0], name=name)
    with pytest.raises(InvalidInput, match="before solving"):
        solver.solve(np.ones(system[0].size))
    with pytest.raises(InvalidInput, match="before solving"):
        _ = solver.schur


@needs_mkl
def test_pardiso_checks_its_values(system):
    pattern, matrices, _, _ = system
    solver = make_solver(pattern, name="pardiso")
    with pytest.raises(InvalidInput, match="matrix values"):
        solver.factor(matrices[0][1:])


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
    assert make_solver(pattern, kept, name="scipy", precision="single").exact
    with pytest.raises(UnknownName, match="precision"):
        make_solver(pattern, precision="half")
