"""A planner's program, opened: functions of bodies, terms of one's own, solvers."""

import numpy as np
import pytest
from pydrake.solvers import IpoptSolver, SnoptSolver

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.model import find_body
from drakebots.trajopt.locomotion import Hop, LocomotionProblem, plan_locomotion
from drakebots.trajopt.solvers import ExactIpoptSolver
from tests.helpers.scripts import load_script

robots = load_script("program_robots")

pytestmark = pytest.mark.usefixtures("interpreted")

KNOT = 4


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hopper")
    model = robots.written(folder, "hopper", robots.hopper_urdf())
    return LocomotionProblem(model, Hop(0.08), knots=13)


@pytest.fixture(scope="module")
def first(problem):
    """The program with functions of bodies, and its solution."""
    program = problem.mathematical_program()
    functions = {
        "position": program.position(KNOT, "leg_shank", np.array([0.01, 0.02, -0.1])),
        "foot": program.position(-1, "leg_shank"),
        "com": program.com(KNOT),
        "angular_momentum": program.angular_momentum(KNOT),
    }
    return program, functions, program.solve()


def numbers(result, expressions):
    return np.array([result.GetSolution(e).Evaluate() for e in expressions])


def test_functions_are_drakes(first):
    """In SI, from the plant of the model at the answer's positions."""
    program, functions, result = first
    assert result.is_success()
    twin, unit = program.bodies.twin, program.bodies.scaling
    plant, context = twin.plant, twin.plant.CreateDefaultContext()
    q, h = program.values(result, "q"), program.values(result, "h")
    units = program.units["q"]

    def pose(k, v=None):
        plant.SetPositions(context, k / units)
        if v is not None:
            plant.SetVelocities(context, v / units * unit.time)

    pose(q[KNOT])
    X_WB = find_body(plant, "leg_shank").EvalPoseInWorld(context)
    p_BP = np.array([0.01, 0.02, -0.1]) / unit.length
    expected = X_WB.multiply(p_BP) * unit.length
    np.testing.assert_allclose(
        numbers(result, functions["position"]), expected, atol=1e-8
    )
    com = plant.CalcCenterOfMassPositionInWorld(context) * unit.length
    np.testing.assert_allclose(numbers(result, functions["com"]), com, atol=1e-8)

    pose((q[KNOT] + q[KNOT + 1]) / 2, (q[KNOT + 1] - q[KNOT]) / h[KNOT])
    p_WCcm = plant.CalcCenterOfMassPositionInWorld(context)
    momentum = plant.CalcSpatialMomentumInWorldAboutPoint(context, p_WCcm)
    turning = momentum.rotational() * unit.of(mass=1, length=2, time=-1)
    found = numbers(result, functions["angular_momentum"])
    np.testing.assert_allclose(found, turning, atol=1e-9)
    assert np.abs(turning).max() > 1e-5

    pose(q[-1])
    X_WB = find_body(plant, "leg_shank").EvalPoseInWorld(context)
    p_FB = next(f for f in program.bodies.points.values())[1]
    expected = X_WB.multiply(p_FB) * unit.length
    np.testing.assert_allclose(numbers(result, functions["foot"]), expected, atol=1e-8)


def test_forces_of_feet_are_vectors(first):
    program, _, result = first
    plan = program.plan(result)
    force = program.values(result, "foot_force")
    np.testing.assert_allclose(force, plan.data.foot_force.values[1:], atol=1e-9)
    (foot,) = plan.data.foot.values
    np.testing.assert_allclose(
        program.values(result, f"foot_force.{foot}"), force[:, 0]
    )
    up = result.GetSolution(program["foot_force"][2, 0, 2]).Evaluate()
    assert up == pytest.approx(force[2, 0, 2], abs=1e-9)


@pytest.fixture(scope="module")
def bound(first):
    """A lower bound of the centre of mass that the free answer breaks by 2 cm [m]."""
    _, functions, result = first
    return numbers(result, functions["com"])[2] + 0.02


def with_bound(program, bound):
    program.prog.AddLinearConstraint(program.com(KNOT)[2] >= bound)


@pytest.mark.long
@pytest.mark.parametrize("solver", ["exact", "snopt", "ipopt"])
def test_terms_hold_by_every_solver(problem, first, bound, solver):
    program = problem.mathematical_program()
    with_bound(program, bound)
    result = program.solve(solver, time_limit=60)
    assert result.is_success(), result.get_solver_details().message
    assert result.get_solver_id().name() == solver
    height = numbers(result, program.com(KNOT))[2]
    assert height >= bound - 1e-6
    assert result.get_optimal_cost() > first[2].get_optimal_cost()
    plan = program.plan(result)
    assert plan.ok and plan.metrics["solver"] == solver
    assert result.get_solver_details().iterations > 2
    # Drake's own call takes the program as it is, and stays.
    again = SnoptSolver().Solve(program.prog, result.get_x_val())
    assert again.is_success() and program.plan(again).ok
    assert again.get_optimal_cost() == pytest.approx(result.get_optimal_cost(), 1e-3)


def test_terms_hold_in_the_planner(problem, first, bound):
    plan = plan_locomotion(problem, add=lambda program: with_bound(program, bound))
    assert plan.ok
    program, _, _ = first
    plant = program.bodies.twin.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, plan.data.position.values[KNOT] / program.units["q"])
    height = plant.CalcCenterOfMassPositionInWorld(context)[2]
    assert height * program.bodies.scaling.length >= bound - 1e-6


def test_options_that_are_set_with_terms_count(problem):
    """They override the planner's, and the call's override them."""

    def hurried(program):
        program.prog.SetSolverOption(ExactIpoptSolver.id(), "max_iter", 3)

    plan = plan_locomotion(problem, add=hurried)
    assert plan.metrics["solver_status"] == "Maximum_Iterations_Exceeded"
    plan = plan_locomotion(problem, add=hurried, options={"max_iter": 200})
    assert plan.ok


@pytest.mark.long
def test_a_checkpoint_with_terms_is_one_of_the_problem(problem, bound, tmp_path):
    """Variables that define a user's functions are left out."""
    path = tmp_path / "kept.npz"
    plan_locomotion(
        problem,
        checkpoint=path,
        options={"max_iter": 5},
        add=lambda program: with_bound(program, bound),
    )
    again = plan_locomotion(problem, resume=path)
    assert again.ok


def test_impossible_terms_are_failed_plans_by_name(problem):
    program = problem.mathematical_program()
    com = program.com(KNOT)
    program.prog.AddLinearConstraint(com[2] >= 9.0)
    binding = program.prog.AddLinearConstraint(com[2] + com[0] >= 20.0)
    binding.evaluator().set_description("as high as a house")
    result = program.solve()
    assert not result.is_success()
    plan = program.plan(result)
    assert not plan.ok
    assert plan.residuals["as high as a house"] > 1e-2
    assert any("com(4)" in name for name in plan.residuals)


def test_answers_of_drakes_solvers_are_judged_by_own_terms(problem, bound):
    """Here by a term that Drake's solver was not told."""
    program = problem.mathematical_program()
    com = program.com(KNOT)
    found = SnoptSolver().Solve(program.prog)
    assert found.is_success() and program.plan(found).ok
    program.prog.AddLinearConstraint(com[2] >= bound)
    plan = program.plan(found)
    assert not plan.ok and "is violated by" in plan.message


def test_what_was_loosened_is_still_the_planners(problem):
    """An answer to a program without one of the planner's rows is no plan of it."""
    program = problem.mathematical_program()
    for name, binding in program.lowered.bindings.items():
        if name.startswith("distance"):
            program.prog.RemoveConstraint(binding)
    result = program.solve()
    assert not result.is_success()
    plan = program.plan(result)
    assert not plan.ok and "distance" in plan.message


@pytest.mark.long
@pytest.mark.parametrize(
    ("solver", "drakes", "option"),
    [
        ("exact", ExactIpoptSolver, "max_iter"),
        ("snopt", SnoptSolver, "Major iterations limit"),
        ("ipopt", IpoptSolver, "max_iter"),
    ],
)
def test_options_of_the_program_count(problem, solver, drakes, option):
    """Where they are set for the solver that is called; a call's own override them."""
    program = problem.mathematical_program()
    program.prog.SetSolverOption(drakes.id(), option, 2)
    cut = program.solve(solver).get_solver_details()
    assert not cut.ok and cut.iterations == 3  # the start and two
    assert program.solve(solver, options={option: 1000}).is_success()


def test_points_of_one_body_are_apart(first):
    program, _, _ = first
    one, other = (
        program.position(KNOT, "leg_shank", np.array([0.0, 0.0, z])) for z in (0.0, 0.1)
    )
    gap = np.linalg.norm(
        numbers(program.solve(), one) - numbers(program.solve(), other)
    )
    assert gap == pytest.approx(0.1, abs=1e-8)
    assert program.com(KNOT - 13) is program.com(KNOT)
    last = program.angular_momentum(-2)
    assert last is program.angular_momentum(11)


def test_values_from_elsewhere_are_judged(first):
    program, _, result = first
    x = result.GetSolution(program.lowered.x)
    plan = program.plan(x)
    assert plan.ok
    np.testing.assert_array_equal(
        plan.data.position.values, program.plan(result).data.position.values
    )
    bad = program.plan(x + 0.1)
    assert not bad.ok and max(bad.residuals.values()) > 1e-3
    assert not program.plan(np.full_like(x, np.nan)).ok


def test_values_of_all_variables_are_judged_by_what_was_added(problem):
    """`com` adds variables, and so `get_x_val()` is longer than `lowered.x`."""
    program = problem.mathematical_program()
    program.com(KNOT)
    values = program.solve().get_x_val().copy()
    assert len(values) > len(program.lowered.x)
    assert program.plan(values).ok
    values[-1] += 1.0
    assert not program.plan(values).ok
    with pytest.raises(InvalidInput, match=r"values of lowered\.x or the"):
        program.plan(values[:3])


def test_bad_input(first):
    program, _, _ = first
    with pytest.raises(UnknownName, match="point or body 'tail'"):
        program.position(2, "tail")
    for knot in (13, -14):
        with pytest.raises(InvalidInput, match=r"no such knot .* give one of 0 to 12"):
            program.com(knot)
    with pytest.raises(InvalidInput, match=r"give one of 0 to 11"):
        program.angular_momentum(12)
    with pytest.raises(InvalidInput, match="p_BP must be 3"):
        program.position(2, "leg_shank", [1.0, 2.0])
    with pytest.raises(UnknownName, match="foot_force"):
        program["contact_force"]
    with pytest.raises(UnknownName, match="exact"):
        program.solve("nlopt")


def test_terms_without_second_derivatives_are_refused_by_name(problem):
    program = problem.mathematical_program()
    height = program["q.z"][3]
    variables = np.array([*height.GetVariables()])
    program.prog.AddCost(lambda z: z[0] ** 3, vars=variables, description="cubed")
    with pytest.raises(InvalidInput, match="cubed has no block"):
        program.solve()
