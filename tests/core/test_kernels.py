"""What kernels must not do, that Numba does not say, and elimination."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drakebots
from drakebots.core.kernels import reduced, solved

SOURCES = sorted(Path(drakebots.__file__).parent.rglob("*.py"))


@pytest.mark.long
def test_compiled_generators_are_not_cached():
    """Numba lowers a call of a generator by its body, which its cache does not hold:
    what uses one and is to be compiled fails with a KeyError where another process
    has compiled the generator."""
    generators = [
        (source.name, f.name, [ast.unparse(each) for each in f.decorator_list])
        for source in SOURCES
        for f in ast.walk(ast.parse(source.read_text()))
        if isinstance(f, ast.FunctionDef)
        and any(ast.unparse(each).startswith("njit") for each in f.decorator_list)
        and any(isinstance(part, ast.Yield) for part in ast.walk(f))
    ]
    assert generators, "none is left: this test may go"
    for source, name, decorators in generators:
        assert decorators == ["njit"], (source, name)


@pytest.mark.long
def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(tmp_path):
    """Numba alone looks at the caller's file only, and would go on with the old one."""
    head = "from drakebots.core.kernels import njit\n"
    called, between = tmp_path / "called.py", tmp_path / "between.py"
    (tmp_path / "caller.py").write_text(
        head + "from between import g\n@njit(cache=True)\ndef h(x):\n    return g(x)\n"
    )
    between.write_text(
        head + "from called import f\n@njit(cache=True)\ndef g(x):\n    return f(x)\n"
    )
    program = "from caller import h\nprint(h(1.0), len(h.stats.cache_hits))"
    environment = os.environ | {
        "PYTHONPATH": str(Path(drakebots.__file__).parents[1]),
        # A file that changes within a second keeps its size: Python's own cache of it
        # would be taken for new.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    said = []
    for term in ("1.0", "1.0", "2.0"):
        called.write_text(
            head + f"@njit(cache=True)\ndef f(x):\n    return x + {term}\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(run.stdout.split())
    assert said == [["2.0", "0"], ["2.0", "1"], ["3.0", "0"]]


@given(n=st.integers(1, 12), m=st.integers(1, 9), seed=st.integers(0, 2**31))
def test_elimination_solves_as_lapack(n, m, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, m))
    A[rng.random((n, n)) < 0.4] = 0.0  # zeros on the diagonal ask for pivots
    A += np.eye(n)[rng.permutation(n)]
    if np.linalg.cond(A) > 1e8:
        return
    kept = A.copy(), B.copy()
    X = solved(A, B)
    np.testing.assert_allclose(A @ X, B, atol=1e-13 * np.linalg.cond(A))
    np.testing.assert_array_equal(A, kept[0])
    np.testing.assert_array_equal(B, kept[1])


def test_a_singular_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        solved(np.ones((3, 3)), np.eye(3))


@given(st.integers(0, 8), st.integers(0, 12), st.integers(0, 99))
def test_rows_solved_for_some_unknowns_hold_whatever_the_others_are(rows, free, seed):
    """Rows of any size; the others are chosen at random."""
    rng, n = np.random.default_rng(seed), free + rows
    C = rng.normal(size=(rows, n)) * 10.0 ** rng.uniform(-6, 6, size=(rows, 1))
    x, e = rng.normal(size=n), rng.normal(size=rows) * np.abs(C).sum(axis=1)
    dependent, R = reduced(C)
    assert len(set(dependent)) == rows
    x[dependent] = 0.0
    x[dependent] = R[:, n:] @ e - R[:, :n] @ x
    size = np.abs(C).max(axis=1, initial=0.0) * np.abs(x).max(initial=1.0)
    own = C[:, dependent] / np.abs(C).max(axis=1, initial=0.0, keepdims=True)
    worst = np.linalg.cond(own) if rows else 1.0
    assert (np.abs(C @ x - e) <= 1e-13 * worst * size).all()


def test_dependent_rows_are_refused():
    with pytest.raises(np.linalg.LinAlgError, match="depend"):
        reduced(np.ones((2, 3)))
