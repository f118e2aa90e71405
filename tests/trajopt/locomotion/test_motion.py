"""Motions as MathematicalPrograms: the planner's program, in SI, open to additions."""

import numpy as np
import pytest
from pydrake.solvers import SnoptSolver
from pydrake.symbolic import sin

from drakebots.core.errors import UnknownName
from drakebots.trajopt.locomotion import (
    Hop,
    LocomotionProblem,
    mathematical_program,
    plan_locomotion,
)
from drakebots.trajopt.solvers import ExactIpoptSolver
from tests.helpers.scripts import load_script

robots = load_script("program_robots")

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    return robots.written(
        tmp_path_factory.mktemp("hopper"), "hopper", robots.hopper_urdf()
    )


@pytest.fixture(scope="module")
def hop(hopper):
    return LocomotionProblem(hopper, Hop(0.08), knots=13)


@pytest.fixture(scope="module")
def solved(hop):
    """The program, to be cloned before it is changed, and its solution."""
    program = mathematical_program(hop)
    return program, ExactIpoptSolver().Solve(program.prog)


def test_it_is_the_planners_program(hop, solved):
    program, result = solved
    assert result.is_success()
    plan, planned = program.plan(result), plan_locomotion(hop)
    assert plan.ok and planned.ok and plan.kind == planned.kind
    assert plan.metrics["objective"] == pytest.approx(planned.metrics["objective"])
    for name in ("position", "input", "foot_force"):
        ours, theirs = plan.data[name].values, planned.data[name].values
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())


def test_names_are_in_si(solved):
    """Expressions and values by name are the plan's numbers."""
    program, result = solved
    data = program.plan(result).data
    np.testing.assert_allclose(program.values(result, "q"), data.position.values)
    np.testing.assert_allclose(program.values(result, "u"), data.input.values[:-1])
    np.testing.assert_allclose(
        program.values(result, "h").cumsum(), data.time.values[1:]
    )
    np.testing.assert_allclose(
        program.values(result, "gam")[:, 0], data.foot_force.values[1:, 0, 2], atol=1e-9
    )
    symbols = program["q"]
    assert symbols.shape == data.position.shape
    z = program.program.variables["q"].labels.index("z")
    found = result.GetSolution(program["q.z"][3]).Evaluate()
    assert found == pytest.approx(data.position.values[3, z])
    with pytest.raises(UnknownName, match="nonsense"):
        program["nonsense"]
    with pytest.raises(UnknownName, match="did you mean 'z'"):
        program["q.zz"]


def test_what_a_user_adds(solved):
    """A bound on the base's height and a cost on the hip, symbolic, in SI."""
    program, before = solved
    prog, solver = program.prog.Clone(), ExactIpoptSolver()
    height = program.values(before, "q.z").max()
    most = height - 0.01
    for z in program["q.z"]:
        prog.AddConstraint(z <= most)
    hips = program["q.leg_hip"]
    for angle in hips:
        prog.AddCost(3 * sin(angle) ** 2)
    prog.AddConstraint(sin(hips[6]) * program["u"][6, 0] <= 2.0)
    result = solver.Solve(prog)
    assert result.is_success()
    assert program.values(result, "q.z").max() <= most + 1e-6
    assert result.get_optimal_cost() > before.get_optimal_cost()
    hip, was = (np.abs(program.values(r, "q.leg_hip")).sum() for r in (result, before))
    assert hip < was
    # Newton's steps: what was added has exact Hessians too.
    assert len(result.get_solver_details().log["obj"]) < 80
    plan = program.plan(result)
    assert plan.ok and max(plan.residuals.values()) < 1e-6
    # Drake's SNOPT takes the same program, and stays.
    other = SnoptSolver().Solve(prog, result.get_x_val())
    assert other.is_success()
    assert other.get_optimal_cost() == pytest.approx(result.get_optimal_cost(), 1e-3)


@pytest.mark.long
def test_free_contacts(hopper):
    """The contact-implicit program, with the first weight of its penalty."""
    problem = LocomotionProblem(hopper, Hop(0.05), knots=13, contacts="free")
    program = mathematical_program(problem)
    result = ExactIpoptSolver().Solve(program.prog)
    assert result.is_success()
    assert {"psi", "s"} <= set(program.program.variables)
    plan = program.plan(result)
    assert plan.metrics["contacts"] == "free"
    assert plan.metrics["stages"][0]["slack_weight"] == 1.0
    np.testing.assert_allclose(
        program.values(result, "s").max(), plan.data.slack.values.max()
    )


def test_unsolved_programs_are_failed_plans(solved):
    program, _ = solved
    prog = program.prog.Clone()
    prog.SetSolverOption(ExactIpoptSolver.id(), "max_iter", 2)
    plan = program.plan(ExactIpoptSolver().Solve(prog))
    assert not plan.ok
    assert "ExactIpopt ended with kIterationLimit; largest violation" in plan.message
    assert "; worst: " in plan.message
