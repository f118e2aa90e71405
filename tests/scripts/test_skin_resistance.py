"""The skin's torque on a joint, and the ankle of the experiment of Fig. 17."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.design.skin import in_folds
from drakebots.model import package_root
from drakebots.skin.file import load_skinned, read_skin
from tests.helpers.robot_fields import coarse_beetle
from tests.helpers.scripts import load_script

FoldExperiment, ankle_skin, write_ankle = load_script(
    "fold_experiment", "FoldExperiment", "ankle_skin", "write_ankle"
)
joint_resistance, limb_skin, rest_stiffness = load_script(
    "skin_resistance", "joint_resistance", "limb_skin", "rest_stiffness"
)

ANGLES = np.radians([4.0, 8.0])


@pytest.fixture(scope="module")
def leg():
    return load_skinned("skinned_leg")


@pytest.mark.long
def test_folds_are_as_stiff_as_with_p2():
    """The file's moduli of P1 folds against P2 tets and the silicone's own modulus."""
    robot = load_skinned("beetle")
    of_limb = [k for k, joint in enumerate(robot.joints) if joint.startswith("FL_")]
    first, second = (
        rest_stiffness(limb_skin(robot, "FL_knee", **options))[of_limb]
        for options in ({}, {"modulus": 1.0, "second_order": robot.mesh.regions})
    )
    np.testing.assert_allclose(first / second, 1, atol=0.1)
    locked = rest_stiffness(limb_skin(robot, "FL_knee", modulus=1.0))[of_limb]
    assert (locked / second).max() > 2


@pytest.mark.slow
def test_torque_is_in_proportion_to_the_modulus(leg):
    """At rest without stress, without weight: tau(2 E) = 2 tau(E), and 0 at 0."""
    joint = "knee"
    once = joint_resistance(leg, joint, ANGLES).torques
    skin = read_skin(package_root() / "skinned_leg/skinned_leg.skin.yaml")
    twice = replace(
        skin,
        material=skin.material.with_modulus(2 * skin.material.youngs_modulus),
        regions={
            k: m.with_modulus(2 * m.youngs_modulus) for k, m in skin.regions.items()
        },
    )
    stiff = load_skinned("skinned_leg", twice)
    np.testing.assert_allclose(
        joint_resistance(stiff, joint, ANGLES).torques, 2 * once, rtol=1e-3
    )
    # Held towards the turn, the more the farther.
    assert 0 < 1.5 * once[0] < once[1]
    assert joint_resistance(leg, joint, [0.0]).torques == pytest.approx(0, abs=1e-6)


def test_resistance_refuses(leg):
    with pytest.raises(UnknownName, match="joint"):
        joint_resistance(leg, "elbow", ANGLES)
    with pytest.raises(InvalidInput, match="grow"):
        joint_resistance(leg, "knee", [0.1, 0.05])


def test_slope_at_rest_is_that_of_small_turns(leg):
    """dtau/dq of the condensed stiffness against equilibria half a degree away."""
    small = np.radians(0.5)
    slopes = dict(zip(leg.joints, rest_stiffness(leg)))
    both = [joint_resistance(leg, "knee", [s * small]).torques[0] for s in (1, -1)]
    assert slopes["knee"] == pytest.approx((both[0] - both[1]) / (2 * small), rel=5e-3)


def test_a_limb_with_a_wide_margin_is_the_whole_skin(leg):
    whole = limb_skin(leg, "knee", margin=10.0)
    assert len(whole.mesh.tets) == len(leg.mesh.tets)
    np.testing.assert_allclose(rest_stiffness(whole), rest_stiffness(leg), rtol=1e-6)


@pytest.mark.long
def test_a_limb_cut_off_and_held_is_stiffer_and_p2_softer():
    robot = load_skinned("beetle")
    k = robot.joints.index("FL_knee")
    slopes = [
        rest_stiffness(limb_skin(robot, "FL_knee", margin=m, modulus=1.0))[k]
        for m in (0.06, 0.12)
    ]
    assert slopes[0] >= slopes[1] * (1 - 1e-9)
    folds = np.unique(robot.mesh.region[in_folds(robot.mesh)])
    assert len(folds) == 12
    part = limb_skin(robot, "FL_knee", margin=0.06, modulus=1.0, second_order=folds)
    assert rest_stiffness(part)[k] < slopes[0]
    soft = limb_skin(robot, "FL_knee", margin=0.06, modulus=0.4)
    assert 0.4 * slopes[0] < rest_stiffness(soft)[k] < slopes[0]
    with pytest.raises(UnknownName, match="joint"):
        limb_skin(robot, "FL_wing")


@pytest.fixture(scope="module")
def coarse():
    return coarse_beetle()


@pytest.mark.long
def test_ankle_is_the_robots_own_skin_glued_at_its_cut(coarse, tmp_path):
    mesh, glue = ankle_skin(coarse, "FL")
    whole = {tuple(x) for x in coarse.shell.mesh.vertices}
    assert {tuple(x) for x in mesh.vertices} <= whole
    assert mesh.volumes.min() > 0
    assert set(glue) == {"FL_lower", "FL_foot"}
    assert not set(glue["FL_lower"]) & set(glue["FL_foot"])
    lower = coarse.skeleton.link("FL_lower")
    down = (lower.p_WB - lower.p_WA) / lower.length
    s = (mesh.vertices - lower.p_WA) @ down
    # Nothing above the glued rim; the foot's sole is in it.
    assert s[list(glue["FL_lower"])].min() == pytest.approx(s.min())
    assert mesh.vertices[:, 2].min() < 2e-3
    robot = load_skinned(write_ankle(coarse, tmp_path))
    assert list(robot.joints) == ["FL_ankle"]


@pytest.mark.long
def test_experiment_refuses(coarse, tmp_path):
    with pytest.raises(InvalidInput, match="80 degrees"):
        FoldExperiment(angle=2.0)
    with pytest.raises(InvalidInput, match="> 0 s"):
        FoldExperiment(time_step=0.0)
    with pytest.raises(UnknownName, match="limb"):
        write_ankle(coarse, tmp_path, "tail")
