"""IPOPT, by each linear solver, finds the optima that the literature prints."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import hock_schittkowski
from tests.helpers.scripts import load_script

LINEAR_SOLVERS, Published, kkt_error, solved = load_script(
    "published", "LINEAR_SOLVERS", "Published", "kkt_error", "solved"
)
macmpec = load_script("published.macmpec")

TOLERANCE = 1e-6
"""Relative error of an objective, beyond half a unit of its last printed digit."""

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(params=LINEAR_SOLVERS)
def linear_solver(request):
    return request.param


def answer(problem: Published, linear_solver: str):
    """x and the problem's own f at a point that satisfies the program's KKT."""
    program = problem.program()
    raw = solved(program, problem.guess(program), linear_solver)
    assert raw.status == "Solve_Succeeded"
    errors = kkt_error(program, raw)
    # Products end at the barrier parameter, 1e-9 or less, times the multipliers' scale.
    limits = {"stationarity": 1e-8, "sign": 1e-9, "product": 1e-6, "violation": 1e-8}
    assert {k: v for k, v in errors.items() if v > limits[k]} == {}
    return program.view(raw.x)["x"][0], program.cost_table(raw.x)["f"]


def agrees(problem: Published, f: float) -> None:
    error = TOLERANCE * max(1.0, abs(problem.optimum)) + problem.printed
    assert f == pytest.approx(problem.optimum, rel=0, abs=error)


@pytest.mark.parametrize("problem", hock_schittkowski.PROBLEMS, ids=lambda p: p.name)
def test_nonlinear_programs(problem, linear_solver):
    agrees(problem, answer(problem, linear_solver)[1])


@pytest.mark.parametrize("problem", macmpec.PROBLEMS, ids=lambda p: p.name)
def test_complementarity(problem, linear_solver):
    """The penalty is exact: pairs are complementary at the printed optimum."""
    x, f = answer(problem, linear_solver)
    agrees(problem, f)
    G, H = np.array([[float(e) for e in pair] for pair in problem.pairs(x)]).T
    assert min(G.min(), H.min()) > -1e-8
    assert (G * H).max() < 1e-7


@pytest.mark.parametrize("problem", macmpec.NOT_STATIONARY, ids=lambda p: p.name)
@pytest.mark.parametrize("weight", [1e2, 1e3])
def test_where_no_penalty_is_exact(problem, weight, linear_solver):
    """The program's optimum lies below the problem's, by c/w with c known."""
    c = {"ralph1": 1 / 4, "scholtes4": 1.0}[problem.name]
    problem = replace(problem, weight=weight)
    program = problem.program()
    raw = solved(program, problem.guess(program), linear_solver)
    assert raw.status == "Solve_Succeeded"
    assert program.objective(raw.x) == pytest.approx(-c / weight, rel=1e-3)
