"""Time steps with factors of single precision: refined, they equal those in double."""

from dataclasses import replace

import numpy as np
import pytest
from pydrake.math import RollPitchYaw, RotationMatrix

from drakebots.core.errors import NoSolution, UnknownName
from drakebots.core.threads import find_mkl
from drakebots.fem import SkinState
from drakebots.multibody import Flat
from drakebots.skin.coupled import (
    CoupledState,
    PatchContact,
    ReducedSystem,
    Servo,
    StepSolution,
)
from drakebots.skin.coupled import solver as step_solver
from drakebots.skin.coupled.solver import EXACT, REFINED, SLOW_STEPS
from drakebots.skin.file import load_skinned
from drakebots.skin.file.description import Patches
from tests.helpers.scripts import load_script
from tests.helpers.skinned_brick import brick, brick_stepper
from tests.helpers.skinned_leg import (
    DT,
    LENGTH,
    SOFT,
    Leg,
    deformed,
    skin_model,
    sole,
    stepper,
)

solve_multipliers = load_script("skin_paper_systems").solve_multipliers

pytestmark = pytest.mark.skipif(find_mkl() is None, reason="no MKL")

SHINS = (Patches("foot", "shin", [[x, 0.0, -LENGTH / 2] for x in (-0.01, 0.01)]),)
PAPER = replace(SOFT, youngs_modulus=9e7, poisson_ratio=0.46)
RIGID = replace(SOFT, youngs_modulus=1e13)


@pytest.fixture(scope="module")
def model():
    return skin_model()


def off(value, exact):
    """Largest difference, relative."""
    return np.abs(value - exact).max() / np.abs(exact).max()


def both(model, steps, torques=None, forces=None, **options):
    """Results of every step in single and in double precision."""
    found = []
    for precision in ("single", "double"):
        leg = Leg()
        run = stepper(leg, model, precision=precision, threads=1, **options)
        state, results = run.start(v=[0.5, -1.0]), []
        for k in range(steps):
            servo = Servo(20.0, 0.2, np.array([0.4, -0.5]) * np.sin(0.3 * (k + 1)))
            result = run.step(state, torques, forces, servo=servo)
            assert result.converged, result.message
            state = result.state
            results.append(result)
        found.append(results)
    return zip(*found)


def agree(pairs, tolerance, notes=(REFINED,)):
    for quick, exact in pairs:
        assert quick.message in notes and exact.message == EXACT
        a, b = quick.state, exact.state
        assert off(a.q, b.q) < tolerance and off(a.v, b.v) < tolerance
        assert off(a.skin.positions, b.skin.positions) < tolerance
        assert off(a.skin.velocities, b.skin.velocities) < tolerance
        pull = exact.solution.glue_forces
        assert off(quick.solution.glue_forces, pull) < tolerance
        assert off(quick.torques, exact.torques) < tolerance


@pytest.mark.parametrize("material", [SOFT, PAPER], ids=["0.3 MPa", "90 MPa"])
@pytest.mark.parametrize("limits", [None, [0.15, 0.05]])
def test_runs_agree(material, limits):
    pairs = list(both(skin_model(material), 8, [0.02, 0.01], effort_limits=limits))
    agree(pairs, 1e-9)
    if limits is not None:  # some of the steps saturate
        assert any(np.isclose(np.abs(b.torques), limits).any() for _, b in pairs)


def test_forces_at_contacts_of_the_skin_agree(model):
    contacts = sole(model, Leg().glue(model.rest))
    forces = 0.05 * np.random.default_rng(0).normal(size=(len(contacts), 3))
    agree(both(model, 5, [0.1, 0.0], forces, contacts=contacts), 1e-9)


@pytest.mark.parametrize("friction", [0.0, 0.6])
def test_patches_on_the_ground_agree(model, friction):
    ground = PatchContact(friction, terrain=Flat(1e-3))
    limits = np.array([0.5, 0.5])
    options = {"patches": SHINS, "patch_contact": ground, "effort_limits": limits}
    pairs = list(both(model, 8, **options))
    agree(pairs, 1e-7 if friction else 1e-9)
    pressed = [pair for pair in pairs if pair[1].patch_forces[:, 2].max() > 0]
    assert pressed
    for quick, exact in pressed:
        assert off(quick.patch_forces, exact.patch_forces) < 1e-6


def test_a_glue_off_its_place_is_put_back(model):
    run, state, contacts = deformed(Leg(), model, precision="single")
    x = state.skin.positions.copy()
    x[run.glue.vertices] += 1e-4 * np.random.default_rng(1).normal(
        size=(len(run.glue), 3)
    )
    state = CoupledState(state.q, state.v, SkinState(0.0, x, state.skin.velocities))
    forces = np.zeros_like(x)
    forces[contacts] = 0.3
    exact = solve_multipliers(run.equations(state), [0.1, 0.2], forces)
    result = run.step(state, [0.1, 0.2], forces[contacts])
    assert result.message == REFINED
    for name in ("dq", "du", "glue_forces"):
        assert off(getattr(result.solution, name), getattr(exact, name)) < 1e-9


def test_a_pass_shrinks_the_error(model, monkeypatch):
    run, state, _ = deformed(Leg(), model, precision="double")
    quick = deformed(Leg(), model, precision="single")[0]._solver._quick
    equations = run.equations(state)
    exact = ReducedSystem(equations, run.solver).solve()
    drive = run.drive(state.q, equations.skeleton.B, np.zeros(2), None)
    rest = StepSolution(np.zeros(2), np.zeros_like(state.skin.positions), None)
    errors = []
    for tolerance in (1e-1, 1e-5, 1e-10):
        monkeypatch.setattr(step_solver, "TOLERANCE", tolerance)
        system = quick.system(equations, state.skin.positions)
        done = step_solver.refined(system, drive, rest)
        assert done.left <= tolerance
        errors.append(off(done.solution.du, exact.du))
        # What is said to be left is no less than what is, but for rounding.
        assert errors[-1] < 10 * done.left + 1e-11
    once = ReducedSystem(equations, quick.solver).solve()
    assert off(once.du, exact.du) > 100 * errors[-1]


@pytest.mark.parametrize("part", ["dq", "du"])
def test_rows_of_skeleton_and_skin_are_looked_at(model, part):
    """Servos, feet and contact included: of the solution nothing is missed, and of one
    that is off by a millionth more than a step may miss."""
    run, state, _ = deformed(Leg(), model, precision="single")
    servo = Servo(20.0, 0.2, np.array([0.3, -0.3]))
    equations = run.equations(state)
    drive = run.drive(state.q, equations.skeleton.B, np.zeros(2), servo)
    rest = StepSolution(np.zeros(2), np.zeros_like(state.skin.positions), None)
    system = run._solver._quick.system(equations, state.skin.positions)
    found = step_solver.refined(system, drive, rest).solution
    solved = {"dq": found.dq.copy(), "du": found.du.copy()}

    def missed():
        y = np.concatenate([solved["dq"], solved["du"].ravel()])
        left = equations.left(y)
        left[: system.nv] += drive.right_side(system)[: system.nv]
        return step_solver._missed(system, y, left, drive.laws)[1:]

    limits = step_solver.TOLERANCE * np.array([1, step_solver.LINKS])
    assert (missed() <= limits).all()
    solved[part] *= 1 + 1e-6
    assert (missed() > limits)[["du", "dq"].index(part)]


def test_a_step_that_cannot_be_refined_is_taken_in_double(model):
    """Of a skin of 1e13 Pa little is left in float32."""
    pairs = both(skin_model(RIGID), 2)
    agree(pairs, 1e-12, notes=(EXACT,))


def test_after_a_failure_some_steps_are_double(model, monkeypatch):
    run = stepper(Leg(), model, precision="single")
    tried = []

    def fails(*arguments):
        tried.append(1)
        raise NoSolution("not today")

    state = run.start()
    with monkeypatch.context() as patch:
        patch.setattr(step_solver, "refined", fails)
        for _ in range(SLOW_STEPS):
            result = run.step(state)
            assert result.message == EXACT
    assert len(tried) == 1
    assert run.step(result.state).message == REFINED


# Factors that are kept over steps.


def solved(run, state, **options):
    result = run.step(state, **options)
    assert result.converged, result.message
    return result


def counted(run, monkeypatch):
    """The list to which each factorization of single precision is added."""
    solver, made = run._solver._quick.solver, []
    factor = solver.factor

    def counting(values):
        made.append(values)
        factor(values)

    monkeypatch.setattr(solver, "factor", counting)
    return made


@pytest.mark.parametrize("solver", ["pardiso", "mumps", "scipy"])
def test_kept_factors_change_no_result(model, solver, monkeypatch):
    leg = Leg()
    runs = [
        stepper(leg, model, precision="single", threads=1, solver=solver),
        stepper(leg, model, precision="double", threads=1),
    ]
    made = counted(runs[0], monkeypatch)
    states = [run.start(v=[0.5, -1.0]) for run in runs]
    for k in range(30):
        servo = Servo(20.0, 0.2, np.array([0.8, -0.9]) * np.sin(0.1 * (k + 1)))
        states = [
            solved(run, state, servo=servo).state for run, state in zip(runs, states)
        ]
    assert np.ptp([states[0].q, [0, 0]], axis=0).max() > 0.2
    # Some are kept for long, and some are made anew.
    assert 1 < len(made) < 10
    assert off(states[0].q, states[1].q) < 1e-9
    assert off(states[0].v, states[1].v) < 1e-8
    assert off(states[0].skin.velocities, states[1].skin.velocities) < 1e-8


def test_turned_factors_are_near_those_of_a_turned_skin(model):
    """A free body that is turned as a whole has its own factors, turned."""
    leg = Leg("free", gravity=False)
    run, X = stepper(leg, model, precision="single"), RollPitchYaw(0.4, -0.3, 1.1)
    state = run.start()
    solved(run, state)
    q = state.q.copy()
    q[:4] = RotationMatrix(X).ToQuaternion().wxyz()
    x, v = state.skin.positions, np.zeros_like(state.skin.positions)
    centre = state.q[4:7]
    R = RotationMatrix(X).matrix()
    turned = CoupledState(q, state.v, SkinState(0.0, (x - centre) @ R.T + centre, v))
    forces = np.random.default_rng(3).normal(size=x.shape)
    exact = stepper(Leg("free", gravity=False), model, precision="double")
    want = solved(exact, turned, skin_forces=forces)
    found = solved(run, turned, skin_forces=forces)
    assert off(found.solution.du, want.solution.du) < 1e-9
    assert run._solver._quick.held
    # As few passes as with factors of its own.
    assert run._solver._quick._passes <= step_solver.FACTOR_COST + 2 * 4


@pytest.mark.parametrize("wrong", [1e-3, 3.0, 1e9])
def test_wrong_kept_factors_are_found_out(model, wrong, monkeypatch):
    run, state, _ = deformed(Leg(), model, precision="single")
    exact = deformed(Leg(), model, precision="double")[0]
    quick = run._solver._quick
    quick.held = False
    solved(run, state)
    values = run.equations(state).A_d.copy()
    values[model.pattern.diagonal] *= 1 + wrong * np.linspace(0, 1, model.pattern.size)
    quick.solver.factor(values)
    made = counted(run, monkeypatch)
    assert quick.held
    found, want = solved(run, state), solved(exact, state)
    assert off(found.solution.du, want.solution.du) < 1e-9
    assert off(found.solution.dq, want.solution.dq) < 1e-9
    assert bool(made) == (wrong > 1)
    assert found.message == REFINED


def test_kept_factors_of_another_step_or_material_are_dropped(model, monkeypatch):
    for change in ({"dt": 5e-4}, {"model": skin_model(PAPER)}):
        run, state, _ = deformed(Leg(), model, precision="single")
        exact = deformed(Leg(), model, precision="double")[0]
        solved(run, state)
        made = counted(run, monkeypatch)
        for each in (run, exact):
            vars(each).update(change)
        found, want = solved(run, state), solved(exact, state)
        assert len(made) == 1
        assert off(found.solution.du, want.solution.du) < 1e-9


def test_states_in_turn_do_not_mix(model):
    """One stepper for two motions, as a planner's replays are."""
    run = stepper(Leg(), model, precision="single")
    own = [stepper(Leg(), model, precision="double") for _ in range(2)]
    states = [run.start(v=[1.0, -2.0]), run.start(q=[0.9, -1.2])]
    wanted = list(states)
    for _ in range(6):
        states = [solved(run, state).state for state in states]
        wanted = [solved(each, state).state for each, state in zip(own, wanted)]
    for state, want in zip(states, wanted):
        assert off(state.q, want.q) < 1e-9
        assert off(state.skin.velocities, want.skin.velocities) < 1e-8


def test_an_indefinite_tangent_is_projected_in_both(model):
    found = []
    for precision in ("single", "double"):
        leg = Leg()
        run = stepper(leg, model, precision=precision)
        state = run.start()
        x = state.skin.positions * [1, 1, 0.9]
        state = CoupledState(state.q, state.v, SkinState(0.0, x, 0 * x))
        found.append(run.step(state))
    quick, exact = found
    assert exact.message == quick.message == EXACT + ", tangent projected"
    assert off(quick.solution.du, exact.solution.du) < 1e-12


@pytest.mark.long
def test_auto_takes_single_precision_for_large_skins(model):
    small = stepper(Leg(), model)
    assert small.step(small.start()).message == EXACT
    robot = load_skinned("skinned_leg")
    assert len(robot.fem.rest) > step_solver.SINGLE_FROM
    large = robot.stepper(DT, threads=1)
    assert large.step(large.start()).message == REFINED
    everywhere = robot.stepper(DT, solver="scipy", keep_factors=False)
    assert everywhere.step(everywhere.start()).message == EXACT
    with pytest.raises(UnknownName, match="precision"):
        stepper(Leg(), model, precision="half")


def test_the_exact_solver_is_left_alone(model):
    run, state, _ = deformed(Leg(), model, precision="single")
    system = ReducedSystem(run.equations(state), run.solver)
    stepped = run.step(state).solution
    assert off(system.solve().du, stepped.du) < 1e-9


def test_a_falling_brick_keeps_its_friction_in_single_precision():
    """Stiff contact under a feather of a skin."""
    ends = []
    for precision in ("single", "double"):
        plant, context = brick(gravity=(2.0, 0, -9.81))
        run = brick_stepper(
            plant, context, patch_contact=PatchContact(), precision=precision
        )
        state = run.start()
        for _ in range(10):
            result = run.step(state)
            assert result.converged, result.message
            state = result.state
        ends.append(state)
    assert off(ends[0].v, ends[1].v) < 1e-6
