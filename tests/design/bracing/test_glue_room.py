"""Glue of a limb lies around that limb, not on the belly beside it."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.design.bracing.glue import around_limbs
from drakebots.design.robots import table1_problem
from tests.helpers.robot_fields import coarse_beetle


def around(link, radius, count=400, seed=0):
    """Points on a tube around the middle of a link."""
    random = np.random.default_rng(seed)
    along = (link.p_WB - link.p_WA) / link.length
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    side /= np.linalg.norm(side)
    angle = random.uniform(0, 2 * np.pi, count)
    s = random.uniform(0.25, 0.9, count) * link.length
    ways = np.cos(angle)[:, None] * side
    ways = ways + np.sin(angle)[:, None] * np.cross(along, side)
    return link.p_WA + s[:, None] * along + radius * ways


@pytest.mark.parametrize("name", ["monster", "cow", "lizard"])
def test_a_belly_beside_a_thigh_is_not_its(name):
    skeleton = table1_problem(name).template.skeleton()
    link = skeleton.link("FL_upper")
    tube = around(link, 0.03)
    middle = (link.p_WA + link.p_WB) / 2
    # Between the legs, nearer to the thigh's axis than to any other.
    belly = middle - np.linspace(0.052, 0.06, 9)[:, None] * [0, 1, 0]
    able = around_limbs(np.concatenate([tube, belly]), skeleton)
    assert able[: len(tube)].all()
    assert not able[len(tube) :].any()


def test_what_is_not_a_limbs_stays():
    skeleton = table1_problem("lizard").template.skeleton()
    torso = skeleton.links[0]
    points = torso.origin + np.array([[0, 0, 0.1], [0.05, 0.02, 0.2], [0.0, 0.0, 5.0]])
    assert around_limbs(points, skeleton).all()
    assert around_limbs(np.zeros((0, 3)), skeleton).shape == (0,)


def test_designed_robots_glue_limbs_to_limbs():
    """The beetle's shins and thighs are 40 mm wide; glue lay up to 86 mm away."""
    design = coarse_beetle()
    x = design.shell.mesh.vertices
    for name, ids in design.glue.items():
        if not name.endswith(("_upper", "_lower")):
            continue
        link = design.skeleton.link(name)
        along = (link.p_WB - link.p_WA) / link.length
        away = np.linalg.norm(np.cross(x[ids] - link.p_WA, along), axis=1)
        assert away.max() < 0.045, name
