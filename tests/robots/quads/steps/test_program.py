"""The QP of one step as a program: the planner's own step, and terms of one's own."""

import numpy as np
import pytest
from pydrake.solvers import (
    ClarabelSolver,
    GetProgramType,
    ProgramType,
    SolverOptions,
)

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.robots.quads.steps import StepOptions, StepPlanner
from drakebots.robots.quads.steps.contact_state import FREE, STICK
from drakebots.robots.quads.steps.planner import StepGoal

ON = np.ones(4, bool)


@pytest.fixture(scope="module")
def moving(quad):
    """A planner, and the arguments of its third step towards a pose 1 mm ahead."""
    planner = StepPlanner(quad.stepper(), quad.feet, quad.limits)
    state = planner.stepper.start(quad.q0, np.zeros(18))
    memory, q = planner.start(state), quad.q0.copy()
    q[4] += 1e-3
    goal = StepGoal(q, ON, ON, ON, quad.q0)
    for _ in range(2):
        step = planner.step(state, memory, goal)
        state, memory = step.state, step.memory
    return planner, (state, memory, goal)


def gap(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def test_it_solves_to_the_planners_own_step(moving):
    planner, step = moving
    own, program = planner.step(*step), planner.mathematical_program(*step)
    result = program.solve()
    assert program.values(result, "torque").shape == (1, 12)
    found = program.plan(result)
    assert found.ok and found.qpcc.energy == pytest.approx(own.qpcc.energy, rel=1e-12)
    assert gap(found.qpcc.torques, own.qpcc.torques) < 1e-9
    assert gap(found.qpcc.forces, own.qpcc.forces) < 1e-9
    np.testing.assert_array_equal(found.qpcc.labels, own.qpcc.labels)
    assert found.qpcc.residual < 1e-9
    for name in ("dq", "torques", "anchors", "deviation"):
        ours, theirs = (getattr(s.memory, name) for s in (found, own))
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    np.testing.assert_allclose(found.state.q, own.state.q, atol=1e-10)
    # The objective's terms are costs of their own.
    terms = {term.block.name for term in program.program.costs}
    assert terms == set(own.qpcc.terms)


def test_names_are_what_the_step_does(moving):
    planner, step = moving
    program = planner.mathematical_program(*step)
    result = program.solve()
    found = program.plan(result)
    force = program.values(result, "contact_force")
    np.testing.assert_allclose(force[0], found.qpcc.forces, atol=1e-12)
    y = program.values(result, "patch_displacement")
    np.testing.assert_allclose(y[0], found.qpcc.y, atol=1e-12)
    dq = program.values(result, "dq")
    np.testing.assert_allclose(dq[0], found.memory.dq, atol=1e-12)
    # As symbols of Drake they are the same.
    patch = planner.feet.patch_names[3]
    shown = result.GetSolution(program[f"contact_force.{patch}"][0, 2])
    assert shown.Evaluate() == pytest.approx(force[0, 3, 2], abs=1e-10)


def test_drake_knows_it_as_a_qp(moving):
    planner, step = moving
    own, program = planner.step(*step), planner.mathematical_program(*step)
    assert GetProgramType(program.prog) == ProgramType.kQP
    options = SolverOptions()
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        options.SetOption(ClarabelSolver.id(), name, 1e-12)
    result = ClarabelSolver().Solve(program.prog, None, options)
    found = program.plan(result)
    assert found.ok and gap(found.qpcc.torques, own.qpcc.torques) < 1e-8


def test_a_term_of_ones_own_is_in_the_step_and_in_the_next(moving):
    planner, (state, memory, goal) = moving
    own = planner.step(state, memory, goal)
    k = int(np.argmax(np.abs(own.qpcc.torques)))
    most = 0.9 * abs(own.qpcc.torques[k])
    program = planner.mathematical_program(state, memory, goal)
    program.prog.AddLinearConstraint(program["torque"][0, k], -most, most)
    found = program.plan(program.solve())
    assert found.ok and abs(found.qpcc.torques[k]) <= most + 1e-8
    assert found.qpcc.energy > own.qpcc.energy
    after = planner.step(found.state, found.memory, goal)
    assert after.ok and not np.allclose(after.state.q, own.state.q, atol=1e-9)


def test_the_planner_may_step_on_before_the_answer_is_a_step(moving):
    """The skin is factored again."""
    planner, step = moving
    program = planner.mathematical_program(*step)
    result = program.solve()
    before = program.plan(result)
    planner.step(before.state, before.memory, step[2])
    np.testing.assert_array_equal(program.plan(result).state.q, before.state.q)


def test_another_branch(moving):
    """With one foot in the air the others carry the robot, at a higher energy."""
    planner, step = moving
    own = planner.step(*step)
    labels = np.where(planner.feet.foot_of == 0, FREE, STICK)
    program = planner.mathematical_program(*step, labels=labels)
    result = program.solve()
    assert not program.values(result, "contact_force")[
        0, planner.feet.foot_of == 0
    ].any()
    found = program.plan(result)
    assert not found.ok or found.qpcc.energy > own.qpcc.energy


def test_an_answer_that_is_none_is_a_failed_step(moving):
    planner, step = moving
    program = planner.mathematical_program(*step)
    weight = program["contact_force"][0, :, 2].sum()
    program.prog.AddLinearConstraint(weight >= 1e3)
    found = program.plan(program.solve())
    assert not found.ok and found.state is step[0] and found.memory is step[1]
    assert "failed" in found.message and found.qpcc is not None


@pytest.mark.parametrize(
    ("labels", "said"), [([1, 1], "0 to 9 for each of 20"), ([11] * 20, "0 to 9")]
)
def test_labels_that_do_not_fit(moving, labels, said):
    planner, step = moving
    with pytest.raises(InvalidInput, match=said):
        planner.mathematical_program(*step, labels=labels)


def test_a_patch_out_of_reach_is_free(quad):
    planner = StepPlanner(quad.stepper(), quad.feet, quad.limits)
    q = quad.q0.copy()
    q[6] += 0.02
    state = planner.stepper.start(q, np.zeros(18))
    step = state, planner.start(state), StepGoal(q, ~ON, ~ON, ~ON, q)
    with pytest.raises(InvalidInput, match=r"0 .free. for .0, 1, .*out of reach"):
        planner.mathematical_program(*step, labels=[STICK] * 20)
    flight = planner.mathematical_program(*step)
    assert flight.program.num_rows == 0
    assert flight.plan(flight.solve()).ok


def test_a_step_without_a_branch(quad):
    """The COP cannot be kept inside by torques that are far too small."""
    options, limits = StepOptions(cop="require"), np.full(12, 1e-3)
    planner = StepPlanner(quad.stepper(), quad.feet, limits, options)
    state = planner.stepper.start(quad.q0, np.r_[0, 0, 0, 0, 3.0, 0, np.zeros(12)])
    step = state, planner.start(state), StepGoal(quad.q0, ON, ON, ON, quad.q0)
    assert not planner.step(*step).ok
    with pytest.raises(NoSolution, match="step failed"):
        planner.mathematical_program(*step)
