"""Skeleton templates: counts, masses, sizes, soles, edits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.design import table1_template
from drakebots.design.skeleton import DS3218, Build, Limb, Servo, Solid, edit, parameter
from drakebots.design.skeleton.parameters import MG995R
from drakebots.design.table1 import SIZES, WEIGHTS
from tests.helpers.clashes import box_overlap, clashes
from tests.helpers.standing import size_of, standing_torques

JOINTS = {"beetle": 12, "monster": 16, "lizard": 17, "cow": 16}
ROBOTS = list(JOINTS)


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    template = table1_template(request.param)
    return template, template.skeleton()


def test_joints_of_table_1(robot):
    template, skeleton = robot
    assert len(skeleton.hinges) == JOINTS[template.name]
    assert {h.child for h in skeleton.hinges} == {k.name for k in skeleton.links[1:]}


def test_inside_the_papers_size_with_room_for_the_skin(robot):
    template, skeleton = robot
    room = np.array(SIZES[template.name]) - size_of(skeleton)
    skin = 2 * np.array([0.004, 0.004, 0.002])
    assert (room >= skin).all()
    assert (size_of(skeleton) >= 0.7 * np.array(SIZES[template.name])).all()


def test_nothing_clashes_at_rest(robot):
    _, skeleton = robot
    assert clashes(skeleton) == []


def test_boxes_that_overlap_are_found():
    eye, one = np.eye(3), np.ones(3)
    assert box_overlap(one, eye, np.zeros(3), one, eye, np.array([0.9, 0, 0])) == (
        pytest.approx(0.1)
    )
    turn = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    far = np.array([(1 + np.sqrt(2)) / 2, 0, 0])
    assert box_overlap(one, eye, np.zeros(3), one, turn, far) == pytest.approx(0)


def test_a_shin_through_the_torso_clashes():
    template = table1_template("beetle")
    broad = edit(template, {"torso.size": (0.25, 0.24, 0.06)})
    with pytest.raises(InvalidInput, match="overlaps the motor bay"):
        broad.skeleton()
    wide = edit(template, {"torso.brace": (0.32, 0.4)})
    assert any("rib" in c.A and "upper" in c.B for c in clashes(wide.skeleton()))


def test_five_patches_a_foot_on_the_ground(robot):
    _, skeleton = robot
    assert len(skeleton.soles) == 4
    for sole in skeleton.soles:
        p = skeleton.link(sole.link).origin + sole.p_BP
        np.testing.assert_allclose(p[:, 2], 0, atol=1e-12)
        assert np.ptp(p[:, 0]) == pytest.approx(sole.size[0])
        assert np.ptp(p[:, 1]) == pytest.approx(sole.size[1])
        np.testing.assert_allclose(p[:4].mean(axis=0), p[4], atol=1e-12)


def test_left_mirrors_right(robot):
    _, skeleton = robot
    for link in skeleton.links:
        if link.name[:2] in ("FL", "RL"):
            twin = skeleton.link(link.name.replace("L_", "R_", 1))
            mirror = np.array([1, -1, 1])
            np.testing.assert_allclose(twin.p_WA, mirror * link.p_WA, atol=1e-12)
            assert twin.mass == pytest.approx(link.mass)
            np.testing.assert_allclose(twin.com, mirror * link.com, atol=1e-12)


def test_standing_height_is_the_legs(robot):
    template, skeleton = robot
    limb = template.front
    down = limb.upper * np.cos(limb.upper_pitch) * np.cos(limb.splay)
    down += limb.lower * np.cos(limb.lower_pitch) + limb.foot.ankle_height
    knee = skeleton.link("FL_upper").p_WA
    assert knee[2] == pytest.approx(down) == pytest.approx(limb.hip_height)


def test_servos_hold_the_robot_at_rest(robot):
    template, skeleton = robot
    torque = standing_torques(skeleton, WEIGHTS[template.name])
    assert np.abs(torque).max() < template.build.servo.effort


def test_a_foot_that_would_pull():
    template = table1_template("cow")
    names = [f"{a}.{b}_pitch" for a in ("front", "hind") for b in ("upper", "lower")]
    back = edit(template, dict.fromkeys(names, -1.2))
    with pytest.raises(InvalidInput, match=r"foot R[LR] would have to pull"):
        standing_torques(back.skeleton())


def test_link_inertia_is_the_solids(robot):
    """Against a sum of small cubes of each solid."""
    _, skeleton = robot
    link = skeleton.link("FL_upper")
    points, mass = [], []
    n = 24
    grid = (np.arange(n) + 0.5) / n - 0.5
    cell = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    for solid in link.solids:
        p = cell * solid.size
        keep = ~(np.abs(p) < solid.hole / 2).all(axis=1)
        points.append(solid.p_BG + p[keep] @ solid.R_BG.T)
        mass.append(np.full(keep.sum(), solid.mass / keep.sum()))
    p, m = np.concatenate(points), np.concatenate(mass)
    com = m @ p / m.sum()
    np.testing.assert_allclose(com, link.com, atol=2e-4)
    r = p - com
    about = np.einsum("n,nij->ij", m, _squares(r))
    np.testing.assert_allclose(about, link.inertia, atol=0.03 * link.inertia.max())


def _squares(r):
    return (
        np.square(r).sum(axis=1)[:, None, None] * np.eye(3)
        - r[:, :, None] * (r[:, None, :])
    )


def test_hollow_box_inertia_closed_form():
    size, hole = np.array([0.1, 0.2, 0.3]), np.array([0.05, 0.1, 0.9])
    solid = Solid("s", "shell", size, np.zeros(3), np.eye(3), 2.0, hole)
    volume = 0.006 - 0.05 * 0.1 * 0.3
    assert solid.volume == pytest.approx(volume)
    rho = 2.0 / volume
    izz = rho * (0.006 * (0.01 + 0.04) - 0.0015 * (0.0025 + 0.01)) / 12
    assert solid.inertia[2, 2] == pytest.approx(izz)


def test_every_servo_fits_its_bay(robot):
    template, skeleton = robot
    count = 0
    for link in skeleton.links:
        solids = {s.name: s for s in link.solids}
        for name, servo in solids.items():
            if servo.kind != "servo":
                continue
            bay = solids[name.replace("_servo", "_bay")]
            play = bay.hole - servo.size
            build = template.build
            np.testing.assert_allclose(play[:2], 2 * build.clearance, atol=1e-12)
            assert play[2] >= -1e-12
            # The shaft is on the joint.
            hinge = next(h for h in skeleton.hinges if name == f"{h.name}_servo")
            tip = link.origin + servo.p_BG
            shaft = tip + servo.R_BG[:, 0] * (
                build.servo.shaft - build.servo.size[0] / 2
            )
            off = np.cross(shaft - hinge.p_WJ, hinge.axis)
            assert np.linalg.norm(off) < 1e-9
            count += 1
    assert count == len(skeleton.hinges)


def test_servo_catalogue_is_the_papers():
    assert MG995R.size == (0.0408, 0.020, 0.038)
    assert (MG995R.effort, DS3218.effort) == (1.96, 3.13)
    # 20 kg cm.
    assert MG995R.effort == pytest.approx(20 * 9.81 * 0.01, rel=2e-3)
    template = edit(table1_template("beetle"), {"build.servo": "DS3218"})
    assert template.build.servo is DS3218
    with pytest.raises(UnknownName, match="MG995R"):
        edit(template, {"build.servo": "MG996R"})
    with pytest.raises(InvalidInput, match="effort"):
        replace(MG995R, effort=0.0)
    assert isinstance(MG995R, Servo)


@settings(max_examples=40)
@given(
    upper=st.floats(0.04, 0.2),
    lower=st.floats(0.04, 0.2),
    upper_pitch=st.floats(-1.0, 1.0),
    lower_pitch=st.floats(-1.0, 1.0),
    splay=st.floats(0, 0.6),
    wall=st.floats(0.002, 0.006),
    name=st.sampled_from(ROBOTS),
)
def test_any_legs_make_a_physical_skeleton_or_are_refused(
    upper, lower, upper_pitch, lower_pitch, splay, wall, name
):
    changes = {
        "build.wall": wall,
        "front.upper": upper,
        "front.lower": lower,
        "front.upper_pitch": upper_pitch,
        "front.lower_pitch": lower_pitch,
        "front.splay": splay,
    }
    template = edit(table1_template(name), changes)
    short = min(upper, lower) < template.build.shortest
    try:
        skeleton = template.skeleton()
    except InvalidInput as error:
        # One part and the parameter to set.
        kind = str(error).split()[0]
        assert {"link": "; set ", "torso:": "torso."}[kind] in str(error)
        return
    assert not short
    for sole in skeleton.soles:
        z = (skeleton.link(sole.link).origin + sole.p_BP)[:, 2]
        np.testing.assert_allclose(z, 0, atol=1e-12)
    for link in skeleton.links:
        assert link.mass > 0
        moments = np.linalg.eigvalsh(link.inertia)
        assert moments[0] > 0 and moments[2] <= moments[0] + moments[1]


def test_short_links_are_refused_with_the_length_they_need():
    template = edit(table1_template("beetle"), {"front.upper": 0.05})
    need = 1e3 * template.build.shortest
    with pytest.raises(InvalidInput, match=rf"FL_upper: 50.0 mm .* >= {need:.1f} mm"):
        template.skeleton()
    low = edit(table1_template("cow"), {"hind.foot.ankle_height": 0.02})
    with pytest.raises(InvalidInput, match=r"RL_foot: .*foot.ankle_height >="):
        low.skeleton()
    hip = edit(table1_template("cow"), {"hind.hip": 0.01})
    with pytest.raises(InvalidInput, match="RL_hip"):
        hip.skeleton()


def test_bad_parameters():
    template = table1_template("beetle")
    with pytest.raises(UnknownName, match="uper"):
        edit(template, {"front.uper": 0.1})
    with pytest.raises(InvalidInput, match="wall"):
        edit(template, {"build.wall": 0.0})
    with pytest.raises(InvalidInput, match="build: pilot_hole"):
        Build(pilot_hole=0.02)
    with pytest.raises(InvalidInput, match="limb: upper"):
        Limb(x=0.1, y=0.1, upper=float("nan"), lower=0.1)
    with pytest.raises(InvalidInput, match="limb: upper must be > 0 m"):
        Limb(x=0.1, y=0.1, upper="10 cm", lower=0.1)
    with pytest.raises(InvalidInput, match="upper_pitch must be within"):
        edit(template, {"front.upper_pitch": 2.0})
    with pytest.raises(UnknownName, match="shoulder"):
        edit(template, {"shoulder": "roll"})
    with pytest.raises(UnknownName, match="robot"):
        table1_template("bear")
    assert parameter(template, "front.upper") == template.front.upper


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("torso", 5, "template: torso must be of type Torso"),
        ("torso.size", (0.2, 0.1), "torso: size must be 3 finite numbers"),
        ("torso.brace", 0.1, "torso: brace must be 2 finite numbers"),
        ("torso.stations", 5, "torso: stations must be n finite numbers"),
        ("torso.battery", 5, "torso: battery must be a size"),
        ("torso.struts", (("neck", (0.0, 0.0, 0.1)),), "must be 2x3 finite numbers"),
        ("front.beam", (0.0, 0.02), "limb: beam must be > 0 m"),
    ],
)
def test_parameters_of_another_form_are_refused(name, value, text):
    with pytest.raises(InvalidInput, match=text):
        edit(table1_template("cow"), {name: value})


def test_lists_of_a_file_are_kept_as_tuples():
    """So that their entries can be changed, as a fit does."""
    given = edit(table1_template("cow"), {"torso.size": [0.2, 0.1, 0.08]})
    assert given.torso.size == (0.2, 0.1, 0.08)
    assert edit(given, {"torso.size[0]": 0.3}).torso.size == (0.3, 0.1, 0.08)


def test_battery_must_fit():
    template = edit(table1_template("beetle"), {"torso.battery": ((0.3, 0.1, 0.1), 1)})
    with pytest.raises(InvalidInput, match="battery"):
        template.skeleton()


@pytest.mark.parametrize("shoulder", ["yaw", "abduction"])
def test_other_shoulders(shoulder):
    template = edit(table1_template("beetle"), {"shoulder": shoulder})
    skeleton = template.skeleton()
    axis = {"yaw": [0, 0, 1], "abduction": [1, 0, 0]}[shoulder]
    np.testing.assert_array_equal(skeleton.hinges[0].axis, axis)
