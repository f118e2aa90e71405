"""Frames of skeleton and skin: three ways to solve them, and what fails."""

import numpy as np
import pytest
from skin_paper_systems import solve_multipliers, solve_right_sides

from drakebots.core.errors import (
    DrakebotsWarning,
    InvalidInput,
    NoSolution,
    UnknownName,
)
from drakebots.fem.assembly.assembly import build_model
from drakebots.fem.dynamics import SkinState
from drakebots.fem.solver.mumps import MumpsEngine, find_mumps
from drakebots.skin.frame import coupled
from drakebots.skin.frame.coupled import ReducedSystem, condense
from drakebots.skin.frame.glue import Glue, glue_midside
from drakebots.skin.frame.skeleton import Servo, torque_map
from drakebots.skin.frame.stepper import CoupledState, CoupledStepper
from tests.helpers.skinned_leg import (
    DT,
    SOFT,
    Leg,
    deformed,
    skin_mesh,
    skin_model,
    stepper,
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
    frame = run.frame(state, skin_forces=1e-3 * rng.normal(size=x.shape))
    torques = rng.normal(size=leg.plant.num_actuators())
    forces = rng.normal(size=(len(contacts), 3))
    on_all = np.zeros_like(x)
    on_all[contacts] = forces

    exact = solve_multipliers(frame, torques, on_all)
    system = ReducedSystem(frame, run.solver)
    maps = condense(system)
    close(exact, system.solve(torques, forces))
    close(exact, maps.solution(torques, forces))
    close(exact, solve_right_sides(frame, torques, on_all))
    # The glue follows the links.
    moved = exact.du[run.glue.vertices].ravel() - frame.skeleton.J @ exact.dq
    assert np.allclose(moved, frame.gap, atol=1e-12)
    assert np.allclose(maps.contacts(torques, forces), exact.du[contacts], atol=1e-12)


def test_p2_skin_agrees():
    leg = Leg()
    model = build_model(skin_mesh((2, 2, 8)), SOFT, quadratic=(0,))
    rest = model.space.mesh.vertices
    glue = glue_midside(leg.glue(rest, bodies=["shin"]), model.space)
    run = CoupledStepper(leg.plant, model, glue, DT)
    state = run.step(run.start(v=[0.5, 1.0])).state
    frame = run.frame(state)
    close(solve_multipliers(frame), ReducedSystem(frame, run.solver).solve())


def test_a_frame_knows_when_its_factors_are_gone(model):
    run, state, _ = deformed(Leg(), model)
    maps = condense(ReducedSystem(run.frame(state), run.solver))
    expected = run.step(state).solution
    assert np.allclose(maps.skeleton(), expected.dq, rtol=1e-12)
    for call in (maps.skin, maps.solution):
        with pytest.raises(InvalidInput, match="later step"):
            call()


def test_a_broken_elimination_is_not_believed(model, monkeypatch):
    leg = Leg()
    run, state, _ = deformed(leg, model)
    system = ReducedSystem(run.frame(state), run.solver)
    plain = coupled.cho_solve
    monkeypatch.setattr(coupled, "cho_solve", lambda *a: 1.0001 * plain(*a))
    with pytest.raises(NoSolution, match="skeleton and contacts misses its equations"):
        condense(system)


@pytest.mark.skipif(find_mumps() is None, reason="no MUMPS 5.8")
def test_a_step_goes_on_with_the_next_solver(model, monkeypatch):
    """A Schur complement that breaks in the middle of a run: the step is made anew."""
    leg = Leg()
    run, state, _ = deformed(leg, model, solver="mumps")
    exact = run.step(state)
    plain = MumpsEngine.factor

    def wrong(self, values):
        plain(self, values)
        self._schur *= 1 + 1e-6

    monkeypatch.setattr(MumpsEngine, "factor", wrong)
    with pytest.warns(DrakebotsWarning, match="mumps: an answer of .*scipy goes on"):
        found = run.step(state)
    assert found.converged and "projected" not in found.message
    assert run.solver.name == "scipy"
    close(exact.solution, found.solution)


def test_a_failed_frame_keeps_the_state(model):
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
    refuse(UnknownName, "knee", make, joints=["kneee"])
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
    free = Leg("free")
    names = [free.plant.get_joint(i).name() for i in free.plant.GetJointIndices()]
    wide = next(n for n in names if n != "knee" and "thigh" in n and "weld" not in n)
    refuse(InvalidInput, "degrees of freedom", torque_map, free.plant, [wide])
