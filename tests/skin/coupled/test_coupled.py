"""Time steps of skeleton and skin: three ways to solve them, and what fails."""

import numpy as np
import pytest

from drakebots.core.errors import (
    DrakebotsWarning,
    InvalidInput,
    NoSolution,
    UnknownName,
)
from drakebots.fem import SkinState
from drakebots.fem.assembly import build_model
from drakebots.fem.solver.mumps import MumpsEngine, find_mumps
from drakebots.skin.coupled import (
    CoupledState,
    CoupledStepper,
    Glue,
    ReducedSystem,
    Servo,
    glue_midside,
)
from drakebots.skin.coupled import equations as equations_module
from tests.helpers.scripts import load_script
from tests.helpers.skinned_leg import (
    DT,
    SOFT,
    Leg,
    deformed,
    skin_mesh,
    skin_model,
    stepper,
)

solve_multipliers, solve_right_sides = load_script(
    "skin_paper_systems", "solve_multipliers", "solve_right_sides"
)


@pytest.fixture(scope="module")
def model():
    return skin_model()


def close(a, b, tolerance=1e-9):
    for name in ("dq", "du", "glue_forces"):
        x, y = getattr(a, name), getattr(b, name)
        assert np.abs(x - y).max() <= tolerance * np.abs(x).max(), name


@pytest.mark.parametrize("solver", ["auto", "scipy"])
@pytest.mark.parametrize("base", ["hip", "free"])
@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_multipliers_elimination_and_maps_agree(model, base, solver, gap):
    leg = Leg(base)
    run, state, contacts = deformed(leg, model, solver=solver)
    rng = np.random.default_rng(0)
    x = state.skin.positions.copy()
    x[run.glue.vertices] += gap * rng.normal(size=(len(run.glue), 3))
    state = CoupledState(state.q, state.v, SkinState(0, x, state.skin.velocities))
    equations = run.equations(state, skin_forces=1e-3 * rng.normal(size=x.shape))
    torques = rng.normal(size=leg.plant.num_actuators())
    forces = rng.normal(size=(len(contacts), 3))
    on_all = np.zeros_like(x)
    on_all[contacts] = forces

    exact = solve_multipliers(equations, torques, on_all)
    system = ReducedSystem(equations, run.solver)
    close(exact, system.solve(torques, forces))
    close(exact, solve_right_sides(equations, torques, on_all))
    # The glue follows the links.
    moved = exact.du[run.glue.vertices].ravel() - equations.skeleton.J @ exact.dq
    assert np.allclose(moved, equations.gap, atol=1e-12)


def test_p2_skin_agrees():
    leg = Leg()
    model = build_model(skin_mesh((2, 2, 8)), SOFT, quadratic=(0,))
    rest = model.space.mesh.vertices
    glue = glue_midside(leg.glue(rest, bodies=["shin"]), model.space)
    run = CoupledStepper(leg.plant, model, glue, DT)
    state = run.step(run.start(v=[0.5, 1.0])).state
    equations = run.equations(state)
    close(solve_multipliers(equations), ReducedSystem(equations, run.solver).solve())


def test_a_step_knows_when_its_factors_are_gone(model):
    run, state, _ = deformed(Leg(), model)
    system = ReducedSystem(run.equations(state), run.solver)
    expected = run.step(state).solution
    z = system.back(system.right_side())
    assert np.allclose(z[: system.nv], expected.dq, rtol=1e-12)
    with pytest.raises(InvalidInput, match="later step"):
        system.solution(z)


def test_a_broken_elimination_is_not_believed(model, monkeypatch):
    leg = Leg()
    run, state, _ = deformed(leg, model)
    system = ReducedSystem(run.equations(state), run.solver)
    plain = equations_module.cho_solve
    monkeypatch.setattr(equations_module, "cho_solve", lambda *a: 1.0001 * plain(*a))
    with pytest.raises(NoSolution, match="skeleton and contacts misses its equations"):
        system.solve()


@pytest.mark.skipif(find_mumps() is None, reason="no MUMPS 5.8")
def test_a_step_goes_on_with_the_next_solver(model, monkeypatch):
    """A Schur complement that breaks in the middle of a run: the step is made anew."""
    leg = Leg()
    run, state, _ = deformed(leg, model, solver="mumps")
    exact = run.step(state)
    plain = MumpsEngine.factor

    def wrong(self, values):
        plain(self, values)
        self.schur *= 1 + 1e-6

    monkeypatch.setattr(MumpsEngine, "factor", wrong)
    with pytest.warns(DrakebotsWarning, match="mumps: an answer of .*scipy goes on"):
        found = run.step(state)
    assert found.converged and "projected" not in found.message
    assert run.solver.name == "scipy"
    close(exact.solution, found.solution)


def test_a_failed_step_keeps_the_state(model):
    run = stepper(Leg(), model)
    state = run.start()
    x = state.skin.positions.copy()
    x[np.setdiff1d(np.arange(len(x)), run.glue.vertices)[7]] += [0.05, 0.05, 0.05]
    state = CoupledState(state.q, state.v, SkinState(0, x, state.skin.velocities))
    result = run.step(state)
    assert not result.converged and result.state is state
    assert "0.005 s failed" in result.message and "\n" not in result.message


@pytest.mark.parametrize("solver", ["auto", "scipy"])
@pytest.mark.parametrize("what", ["positions", "velocities"])
def test_a_state_that_is_not_finite_fails(model, solver, what):
    run = stepper(Leg(), model, solver=solver)
    good = run.start()
    skin = {k: getattr(good.skin, k).copy() for k in ("positions", "velocities")}
    skin[what][3] = np.nan
    state = CoupledState(good.q, good.v, SkinState(0.0, **skin))
    result = run.step(state)
    assert not result.converged and result.state is state
    assert run.step(good).converged


def test_a_torque_too_large_fails(model):
    run = stepper(Leg(), model)
    state = run.start()
    result = run.step(state, [1e6, 0.0])
    assert not result.converged and "inverted" in result.message
    assert result.state is state


def test_bad_input(model):
    leg = Leg()
    glue = leg.glue(model.rest)

    def make(glue=glue, dt=DT, **options):
        return CoupledStepper(leg.plant, model, glue, dt, **options)

    def refuse(error, said, call, *arguments, **options):
        with pytest.raises(error, match=said) as caught:
            call(*arguments, **options)
        assert "\n" not in str(caught.value)

    for dt in (0.0, -1.0, np.nan):
        refuse(InvalidInput, "time step", make, dt=dt)
    one = np.zeros((1, 3))
    refuse(InvalidInput, "9999", make, Glue(np.array([9999]), ("shin",), one))
    refuse(UnknownName, "toe", make, Glue(np.array([1]), ("toe",), one))
    refuse(InvalidInput, "glued to a link", make, contacts=glue.vertices[:1])
    refuse(InvalidInput, "9999", make, contacts=[9999])
    refuse(InvalidInput, "twice", make, contacts=[0, 0])
    run = make(contacts=[0])
    state = run.start()
    refuse(InvalidInput, "torques", run.step, state, [1.0])
    refuse(InvalidInput, "torques", run.step, state, [1.0, np.nan])
    refuse(InvalidInput, "contact forces", run.step, state, None, np.zeros((2, 3)))
    skin_forces = np.zeros_like(model.rest)
    skin_forces[5] = np.inf
    refuse(InvalidInput, "node 5", run.step, state, skin_forces=skin_forces)
    refuse(InvalidInput, "servo: 3", run.step, state, servo=Servo(1, 1, np.zeros(3)))
    refuse(InvalidInput, "servo stiffness", Servo, -1.0, 0.0, np.zeros(2))
    refuse(InvalidInput, "servo damping", Servo, 1.0, np.zeros(3), np.zeros(2))
    refuse(InvalidInput, "skeleton's q", run.start, [1.0])
    refuse(InvalidInput, "skeleton's v", run.start, None, [np.nan, 0.0])
    leg.plant.GetJointByName("knee").Lock(run.context)
    refuse(InvalidInput, "locked", run.step, state)
