"""Plans of actuators and searches of gaits: problems, refusals, pictures by kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots import plan, plot
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.lattice.pom import (
    Control,
    Gains,
    frame_motion,
    place_actuators,
    without_rigid_motion,
)
from drakebots.lattice.shape import Lattice, LatticeSpec, block
from drakebots.results import load_result
from drakebots.robots import voxels
from drakebots.robots.voxels import Problem, SearchProblem, Target, search_gait
from tests.helpers.scripts import is_picture, load_script

grown = load_script("random_lattices").grown

SPEC = LatticeSpec(block(2, 2, 2))


def test_the_robots_plan_by_name_and_place(tmp_path):
    named = plan(Problem([Target("foot", "x", 5e-3)]))
    placed = plan(Problem([Target("1,3,0", "x", 5e-3)]))
    assert named.kind == "voxels.plan" and named.model == voxels.MODEL
    assert named.metrics["actuator_mm"] == {
        "blue": 0,
        "yellow": 0,
        "red": 5,
        "green": 0,
    }
    assert named.metrics["predicted_mm"] == {"foot:x": 5}
    # What is reached is the frame's: facts 2.9, slope 0.998.
    assert named.metrics["reached_mm"]["foot:x"] == pytest.approx(4.985, abs=2e-3)
    assert np.array_equal(named.data.control, placed.data.control)
    assert load_result(named.save(tmp_path / "plan.nc")) == named


def test_a_lattices_plan_places_or_takes_actuators():
    target, progress = Target((1, 3, 4), "x", 5e-3), []
    found = plan(Problem([target], SPEC), progress=lambda *at: progress.append(at))
    assert found.ok and len(found.data.actuator) == 1
    assert progress == [("sets of actuators", 1, 6)]
    given = plan(Problem([target], SPEC, [Control((2, 3, 1), "z")], stroke=1e-3))
    assert not given.ok and "stroke" in given.message
    assert given.data.actuator_node.values.tolist() == [[2, 3, 1]]
    assert given.data.actuator_axis.values.tolist() == ["z"]


L_SHAPE = Lattice(
    np.array([(i, j, 0) for i in range(3) for j in range(2)]
             + [(0, j, k) for j in range(2) for k in range(1, 4)])
)  # fmt: skip
"""3 x 2 x 4 with arms of one voxel, which planes of motion do not describe."""


def in_the_frame(lattice, actuators, u, node, axis) -> float:
    """A component of a node's motion by the frame, from the body's mean pose."""
    motion = frame_motion(lattice, actuators, u).displacement[:, :3]
    return without_rigid_motion(lattice, motion, 0 * motion)[lattice.node(node), axis]


def test_a_plan_that_planes_would_get_backwards():
    """Planes alone move the foot of the L by -10 mm where 5 mm are requested."""
    node, control = (6, 1, 1), Control((6, 1, 1), "z")
    alone = place_actuators(L_SHAPE, [control], [5e-3])
    moved = in_the_frame(L_SHAPE, alone.actuators, alone.controls[0], node, 2)
    assert moved == pytest.approx(-10.29e-3, abs=1e-4)
    found = plan(Problem([Target(node, "z", 5e-3)], LatticeSpec(L_SHAPE)))
    data = found.data
    places = zip(data.actuator_node.values.tolist(), data.actuator_axis.values)
    actuators = [Control(tuple(at), str(axis)) for at, axis in places]
    moved = in_the_frame(L_SHAPE, actuators, data.control.values[1], node, 2)
    assert found.ok and moved == pytest.approx(5e-3, rel=1e-6)
    assert found.metrics["planned_by"] == "frame"
    given = Problem([Target(node, "z", 5e-3)], LatticeSpec(L_SHAPE), [control])
    assert plan(replace(given, actuators=alone.actuators)).ok
    short = plan(replace(given, actuators=alone.actuators, stroke=1e-3))
    assert not short.ok and "stroke" in short.message


def test_plans_of_random_shapes_keep_their_word():
    """Success is said of the frame: within 5 % of what was requested."""
    for seed in range(8):
        lattice, rng = grown(seed, 3 + 4 * seed), np.random.default_rng(seed)
        row, axis = rng.integers(len(lattice.nodes)), rng.integers(3)
        target = Target(tuple(lattice.nodes[row].tolist()), "xyz"[axis], 5e-3)
        try:
            found = plan(Problem([target], LatticeSpec(lattice)))
        except NoSolution:
            continue
        places = zip(found.data.actuator_node.values, found.data.actuator_axis.values)
        actuators = [Control(tuple(at.tolist()), str(axis)) for at, axis in places]
        u = found.data.control.values[1]
        moved = in_the_frame(lattice, actuators, u, lattice.nodes[row], axis)
        error = abs(moved - 5e-3)
        assert found.ok == (error <= 0.05 * 5e-3), seed
        assert next(iter(found.residuals.values())) == pytest.approx(
            moved - 5e-3, abs=1e-9
        )


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Target("nose", "x", 1e-3), UnknownName, "FL node"),
        (lambda: Target("FL", "w", 1e-3), UnknownName, "axis 'w'"),
        (lambda: Target("FL", "x", np.nan), InvalidInput, "finite"),
        (lambda: Target((1, 2.5, 3), "x", 0.0), InvalidInput, "half pitches"),
        (lambda: Problem([]), InvalidInput, "a list of 1 or more targets"),
        (lambda: Problem([Target("FL", "x", 0)], stroke=0), InvalidInput, "stroke"),
        (
            lambda: Problem([Target("FL", "x", 0)], None, [Control((2, 1, 1))]),
            InvalidInput,
            "its own actuators",
        ),
    ],
)
def test_problems_refuse(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_the_robots_stroke_and_its_frame():
    """A stroke of one's own bounds it; where planes miss, the frame plans."""
    short = plan(Problem(targets=[Target("foot", "x", 5e-3)], stroke=2e-3))
    assert not short.ok and "its stroke is 0.002 m" in short.message
    lifted = plan(Problem(targets=[Target("FR", "z", 2e-3)]))
    assert lifted.ok and lifted.metrics["planned_by"] == "frame"
    assert lifted.metrics["reached_mm"]["FR:z"] == pytest.approx(2, rel=1e-3)


def test_a_plan_asks_more_of_actuators_that_move_less():
    gains = {"blue": 0.5, "yellow": 0.8, "red": 0.4, "green": 1.1}
    problem = Problem([Target("BL", "x", 1e-3), Target("BL", "y", 2e-3)])
    plain, found = plan(problem), plan(replace(problem, gains=Gains(gains)))
    assert found.ok and found.metrics["planned_by"] == "frame"
    for target, mm in {"BL:x": 1, "BL:y": 2}.items():
        assert found.metrics["reached_mm"][target] == pytest.approx(mm, rel=1e-6)
    # Where one actuator does it, the command is that of the plain plan by its gain.
    for name, u in plain.metrics["actuator_mm"].items():
        geared = gains[name] * found.metrics["actuator_mm"][name]
        assert geared == pytest.approx(u, abs=0.05)
    ask = Problem([Target("foot", "x", 3e-3)], gains=Gains(dict.fromkeys(gains, 0.5)))
    assert not plan(ask).ok and "stroke" in plan(ask).message


def test_pictures_of_plans_and_searches(tmp_path):
    found = plan(Problem([Target("foot", "x", 5e-3), Target("FL", "z", 8e-3)]))
    assert is_picture(plot(found, tmp_path / "plan.png"))
    walk = voxels.Simulation(cycles=1, pose_time=0.1, time_step=2e-3)
    search = search_gait(SearchProblem(walk=walk, walks=1))
    assert is_picture(plot(search, tmp_path / "search.png"))
    for draw in (voxels.plot_walk, voxels.plot_gait_search):
        with pytest.raises(InvalidInput, match="holds no"):
            draw(found, tmp_path / "none.png")


def test_its_program_is_open_to_terms_of_ones_own():
    """Its start is the planner's answer; a bound of one's own holds."""
    problem = Problem([Target("foot", "x", 3e-3)])
    planned, program = plan(problem), problem.mathematical_program()
    again = program.plan(program.lowered.values(program.guess))
    assert again.ok and again.kind == planned.kind
    for name in ("control", "node_position"):
        np.testing.assert_allclose(again.data[name], planned.data[name], atol=1e-12)
    result = program.solve()
    assert program.plan(result).ok
    (moved,) = program.values(result, "target")[0]
    assert moved == pytest.approx(3e-3, rel=1e-4)
    controls = np.abs(program.values(result, "control"))
    most = 0.5 * controls.max()
    for u in program["control"].ravel():
        program.prog.AddLinearConstraint(u, -most, most)
    bounded = program.solve()
    assert np.abs(program.values(bounded, "control")).max() <= most + 1e-9
    assert not program.plan(bounded).ok  # the foot does not come that far
