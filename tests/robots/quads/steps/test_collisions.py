"""Steps of the plan in which the skin touches links."""

import numpy as np
import pytest

from drakebots.core.errors import UnknownName
from drakebots.core.units import GRAVITY
from drakebots.fem import SkinState
from drakebots.results import load_result
from drakebots.robots.quads import Problem, Tracking
from drakebots.robots.quads.plan import step_planner
from drakebots.robots.quads.robot import feet_kinematics, load_planned
from drakebots.robots.quads.steps import StepsProblem, make_planner, plan_steps
from drakebots.robots.quads.steps import planner as planning
from drakebots.robots.quads.steps.planner import StepGoal
from drakebots.skin import skin_collisions
from drakebots.skin.coupled import CoupledState, SpringSystem
from drakebots.skin.file import load_skinned
from tests.helpers.small_quad import planned_lift, small_quad

DT = 5e-3
BALLS = {"torso": (0.15, 0.0, -0.042), "fl_lower": (0.018, -0.055, 0.042)}
"""Balls of 10 mm on links, 2 mm from vertices of the skin (link's frame) [m]."""


@pytest.fixture(scope="module")
def touchy(tmp_path_factory):
    """The small robot, with balls on links."""
    path = small_quad(tmp_path_factory.mktemp("touchy"))
    text = path.read_text()
    for link, at in BALLS.items():
        p = " ".join(map(str, at))
        ball = (
            f'<collision name="ball"><pose>{p} 0 0 0</pose><geometry><sphere>'
            "<radius>0.01</radius></sphere></geometry></collision></link>"
        )
        begin = text.index(f'<link name="{link}"')
        end = text.index("</link>", begin)
        text = text[:end] + ball + text[end + len("</link>") :]
    path.write_text(text)
    return load_planned(path)


def planner(robot, kind="links"):
    collisions = skin_collisions(robot.skinned, kind)
    return make_planner(robot.skinned, DT, collisions=collisions, threads=1)


def lifting():
    """The small robot's lift of a foot, as a motion to follow."""
    data = load_result(planned_lift()[1]).data
    return StepsProblem(data.planned_position.values, data.contact.values > 0)


def flying(run, speeds):
    """The robot at rest, vertices flying into its balls [m/s]."""
    state, stepper = run.stepper.start(lifting().q_ref[0]), run.stepper
    x, v = state.skin.positions, state.skin.velocities.copy()
    stepper.pose(state.q, state.v)
    links = stepper.collisions.links
    for shape, speed in zip(links.shapes, speeds):
        hit, _, n = shape.near(stepper.plant, stepper.context, x[links.nodes], 0.02)
        v[links.nodes[hit]] = -speed * n
    return CoupledState(state.q, state.v, SkinState(0.0, x, v))


@pytest.fixture(scope="module")
def meeting(touchy):
    """A planner, a state in which vertices fly into balls, the step from it, pairs."""
    run = planner(touchy)
    state, stepper = flying(run, (4.0, 1.0)), run.stepper
    step = run.step(state, run.start(state), lifting().goal(0))
    assert step.ok, step.message
    stepper.pose(state.q, state.v)
    near = stepper.plant, stepper.context, state.skin, DT
    return run, state, step, stepper.collisions.pairs(*near)


def push(pairs, solution):
    """Forces of pairs from their own law, not from the solver (r,) [N]."""
    G, L = pairs.rows()
    s = G @ solution.du.ravel() + L @ solution.dq
    kappa = pairs.stiffness + pairs.damping / DT
    return np.maximum(pairs.stiffness * pairs.depth - kappa * s, 0.0)


def simulated(run, state, step):
    """The simulated step under the torques and the feet's forces of a planned one."""
    run.stepper.pose(state.q, state.v)
    feet = feet_kinematics(run.stepper.plant, run.stepper.context, run.feet)
    on_feet = feet.J.T @ step.qpcc.forces.ravel()
    found = run.stepper.step(state, step.qpcc.torques, generalized_forces=on_feet)
    assert found.converged, found.message
    return found.solution


def test_a_planned_step_is_the_simulated_one(meeting):
    """At the same torques and forces on the feet, to rounding."""
    run, state, step, pairs = meeting
    assert (push(pairs, step.solution) > 1.0).sum() > 1
    found = simulated(run, state, step)
    for name in ("dq", "du", "glue_forces"):
        a, b = getattr(found, name), getattr(step.solution, name)
        assert np.abs(a - b).max() <= 1e-9 * np.abs(a).max(), name
    assert np.array_equal(step.state.skin.velocities, step.solution.du / DT)


def test_the_planner_knows_of_the_contact(meeting):
    """What the QPCC optimized over is the step that is taken."""
    run, state, step, pairs = meeting
    goal, memory = lifting().goal(0), run.start(state)
    ready, found = run._searched(run.prepare(state, memory, goal))
    assert isinstance(ready.maps.system, SpringSystem)
    assert ready.maps.system.pushing.sum() == (push(pairs, step.solution) > 0).sum()
    dq = ready.maps.dq(found.w)
    assert np.abs(dq - step.solution.dq).max() <= 1e-9 * np.abs(dq).max()
    free = planner_step_without(run, state, memory, goal)
    assert np.abs(free - dq).max() > 1e-3 * np.abs(dq).max()
    # Patches that stick stay on their anchors although the skin pushes the links.
    feet = (ready.maps.y0 + ready.maps.Y @ found.w).reshape(-1, 3)
    assert np.allclose(feet, found.y, atol=1e-12)


def planner_step_without(run, state, memory, goal):
    """dq of the same step without contact."""
    collisions, run.stepper.collisions = (
        run.stepper.collisions,
        type(run.stepper.collisions)(),
    )
    try:
        return run.step(state, memory, goal).solution.dq
    finally:
        run.stepper.collisions = collisions


def test_action_is_reaction_and_forces_balance(meeting):
    """From rest, the links' and the skin's momentum changes by weight and feet."""
    run, state, step, pairs = meeting
    G, L = pairs.rows()
    N = len(state.skin.positions)
    for axis in range(3):
        along = np.zeros((N, 3))
        along[:, axis] = 1.0
        moved = np.zeros(L.shape[1])
        moved[3 + axis] = 1.0
        # Skin and links moved together: no pair does work.
        assert np.abs(G @ along.ravel() + L @ moved).max() < 1e-12
    stepper = run.stepper
    stepper.pose(state.q, state.v)
    M = stepper.plant.CalcMassMatrix(stepper.context)[3:6]
    mass = stepper.model.node_mass
    change = M @ step.solution.dq / DT
    change += mass @ (step.state.skin.velocities - state.skin.velocities)
    own = stepper.plant.CalcTotalMass(stepper.context) + mass.sum()
    forces = step.qpcc.forces.sum(axis=0) - [0.0, 0.0, GRAVITY * own]
    assert np.abs(change / DT - forces).max() < 1e-8 * np.abs(change / DT).max()


@pytest.mark.parametrize("speeds, turn", [((0.0, 0.5), 0.1), ((1.0, 1.0), 0.02)])
def test_other_pairs_push_than_would_without_the_torques(
    touchy, monkeypatch, speeds, turn
):
    """A ball is turned away from its vertex and released, or turned into another."""
    run, plan = planner(touchy), lifting()
    state, sets, own = flying(run, speeds), [], SpringSystem.at
    q, on = plan.q_ref[0].copy(), plan.contact[0].copy()
    q[run.stepper.plant.GetJointByName("fl_knee").position_start()] += turn
    on[0] = False
    goal, memory = StepGoal(q, on, on, on, state.q), run.start(state)

    def noted(self, z):
        sets.append(self.pushing)
        return own(self, z)

    monkeypatch.setattr(SpringSystem, "at", noted)
    step = run.step(state, memory, goal)
    assert step.ok and len(sets) == 2
    first, last = (int(one.sum()) for one in sets)
    assert last < first if speeds[0] == 0 else last > first
    # Nothing pulls even where there is no other set to try.
    monkeypatch.setattr(planning, "SETS", 1)
    for tried in (step, run.step(state, memory, goal)):
        assert tried.ok
        found = simulated(run, state, tried)
        assert np.allclose(found.du, tried.solution.du, atol=1e-12)
        assert np.allclose(found.dq, tried.solution.dq, atol=1e-12)


def deepest(robot, plan):
    """Largest depth of a vertex in a ball [m]; below 0 where none is inside."""
    contact = skin_collisions(robot.skinned, "links").links
    plant, context = robot.skinned.plant, robot.skinned.new_context()[0]
    rows = np.searchsorted(plan.data.time.values, plan.data.skin_time.values - 1e-9)
    depth = []
    for q, x in zip(plan.data.position.values[rows], plan.data.skin_position.values):
        plant.SetPositions(context, q)
        depth += [
            -shape.near(plant, context, x[contact.nodes], 1.0)[1].min()
            for shape in contact.shapes
        ]
    return max(depth)


@pytest.mark.long
def test_a_lifted_leg_does_not_enter_the_skin(touchy):
    """Where the same motion planned without contact goes in by more than 1 mm."""
    depth = {}
    for kind in ("none", "links"):
        plan = plan_steps(planner(touchy, kind), lifting())
        assert plan.ok, plan.message
        depth[kind] = deepest(touchy, plan)
    assert depth["none"] > 1e-3
    assert depth["links"] < 0


@pytest.mark.long
def test_the_skin_may_touch_bracing_plates():
    """Nine more shapes than the links of the beetle have for collisions."""
    beetle = load_skinned("beetle")
    count = {
        kind: len(skin_collisions(beetle, kind).links.shapes)
        for kind in ("links", "bracing")
    }
    assert count == {"links": 21, "bracing": 30}


def test_plan_and_track_take_the_words_of_simulate(touchy):
    lift = {"model": touchy, "motion": "lift_single"}
    for kind, held in (("links", (True, False)), ("none", (False, False))):
        found = step_planner(Problem(**lift, collisions=kind)).stepper.collisions
        assert (found.links is not None, found.itself is not None) == held
    assert not step_planner(Problem(**lift)).stepper.collisions.paired
    model, plan = planned_lift()
    track = Tracking(load_result(plan), model=str(model), collisions="itself")
    assert track.stepper().collisions.itself is not None
    with pytest.raises(UnknownName, match="all, bracing, itself, links, none"):
        Problem(collisions="feet")
