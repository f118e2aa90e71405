"""A walk refined by executing it on its ground."""

from __future__ import annotations

import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.legged import Refinement, Servos, Tracking, refine, track
from drakebots.trajopt.locomotion import LocomotionProblem, Walk, plan_locomotion
from tests.helpers.scripts import load_script

quadruped_urdf, written = load_script("program_robots", "quadruped_urdf", "written")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadruped")
    robot = written(folder, "quadruped", quadruped_urdf(hip_roll=True))
    plan = plan_locomotion(LocomotionProblem(robot, Walk(forward=0.15)))
    assert plan.ok, plan.message
    return plan


@pytest.mark.slow
def test_a_walk_comes_closer_to_its_stride(walk):
    """Servos alone fall short of the planned stride; a refined walk does less so."""
    asked = Refinement(walk, feedback=Servos(), cycles=3, rounds=2, trials=2)
    assert asked.walk.motion.forward == 0.15
    opened = []
    better = refine(asked, add=opened.append)
    # Once planned again, by the gait's program.
    assert opened and all("by a gait" in each.program.name for each in opened)
    m = better.metrics
    assert better.kind == "locomotion.plan" and better.ok, better.message
    first = m["trials"][0]
    assert first["asked_m"] == pytest.approx(m["goal_m"])
    short = abs(first["executed_m"] - m["goal_m"])
    assert abs(m["executed_m"] - m["goal_m"]) <= short
    again = track(Tracking(better, feedback=Servos(), cycles=3)).metrics
    assert again["stride_m_per_cycle"] == pytest.approx(m["executed_m"])


def test_only_walks_are_refined(walk):
    with pytest.raises(InvalidInput, match="plan of one"):
        Refinement(track(Tracking(walk, cycles=1)))
    for change in ({"goal": 0.0}, {"cycles": 0}):
        with pytest.raises(InvalidInput, match=next(iter(change))):
            Refinement(walk, **change)
