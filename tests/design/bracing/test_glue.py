"""Glue lies on plates and soles, out of folds, around its own limb."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.design import table1_problem, table1_template
from drakebots.design.bracing.glue import around_limbs, brace_vertices
from drakebots.design.skin import FoldSettings, SkinSettings
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


@pytest.mark.long
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


@pytest.mark.long
def test_glue_keeps_out_of_folds_and_on_soles():
    design = coarse_beetle()
    skeleton, points, glue = design.skeleton, design.shell.mesh.vertices, design.glue
    clearance = design.problem.skin.folds.length / 2 + 0.004
    for hinge in skeleton.hinges:
        for name in (hinge.parent, hinge.child):
            link = skeleton.link(name)
            if link.parent is None or name.endswith("_foot"):
                continue
            d = (link.p_WB - link.p_WA) / link.length
            away = np.abs((points[glue[name]] - hinge.p_WJ) @ d)
            assert away.min() > clearance
    for sole in skeleton.soles:
        p = points[glue[sole.link]] - skeleton.link(sole.link).origin - sole.p_BP[4]
        assert (np.abs(p[:, :2]) <= np.array(sole.size) / 2 + 0.0121).all()
        assert (p[:, 2] < 0.02).all()


@pytest.mark.long
def test_every_link_gets_glue_and_the_choice_repeats():
    design = coarse_beetle()
    skeleton, x = design.skeleton, design.shell.mesh.vertices
    skin = SkinSettings(glue=150, folds=FoldSettings(length=0.042))
    glue, again = (brace_vertices(x, skeleton, skin, touch=5e-3) for _ in range(2))
    ids = np.concatenate(list(glue.values()))
    assert len(ids) == len(np.unique(ids)) == 150
    assert set(glue) == {link.name for link in skeleton.links}
    assert all(np.array_equal(glue[name], again[name]) for name in glue)


def test_bracing_refuses():
    skeleton = table1_template("beetle").skeleton()
    few = skeleton.corners()[0][:50]
    with pytest.raises(InvalidInput, match="140 are requested"):
        brace_vertices(few, skeleton, SkinSettings(), touch=0.01)
