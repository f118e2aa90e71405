"""Plans of actuators and searches of gaits: problems, refusals, pictures by kind."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots import plan, plot
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import LatticeSpec, block
from drakebots.results import load_result
from drakebots.robots import voxels
from drakebots.robots.voxels import GaitSearch, Problem, Target, search_gait
from tests.helpers.scripts import is_picture

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
    assert named.metrics["reached_mm"] == {"foot:x": 5}
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


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Target("nose", "x", 1e-3), UnknownName, "FL node"),
        (lambda: Target("FL", "w", 1e-3), UnknownName, "axis 'w'"),
        (lambda: Target("FL", "x", np.nan), InvalidInput, "finite"),
        (lambda: Target((1, 2.5, 3), "x", 0.0), InvalidInput, "half pitches"),
        (lambda: Problem([]), InvalidInput, "at least one"),
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


def test_pictures_of_plans_and_searches(tmp_path):
    found = plan(Problem([Target("foot", "x", 5e-3), Target("FL", "z", 8e-3)]))
    assert is_picture(plot(found, tmp_path / "plan.png"))
    walk = voxels.Simulation(cycles=1, pose_time=0.1, time_step=2e-3)
    search = search_gait(GaitSearch(walk=walk, walks=1))
    assert is_picture(plot(search, tmp_path / "search.png"))
    for draw in (voxels.plot_walk, voxels.plot_gait_search):
        with pytest.raises(InvalidInput, match="holds no"):
            draw(found, tmp_path / "none.png")
