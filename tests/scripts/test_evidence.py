"""The scripts that hold models against real measurements, on made-up data."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.units import GRAVITY
from tests.helpers.captures import animal, write_capture
from tests.helpers.scripts import load_script

CAPTURES = load_script("captures")
TENTACLE = load_script("tentacle")
INCLINES = load_script("inclines")
TOSSES = load_script("tosses")
PACKS = load_script("packs")

E, R, L, B = 4e5, 0.01, 0.3, 0.006


def rod(radii=(R, R), slope=0.0, step=0.01, **more):
    """A rod of 30 cm with one tendon beside its axis and markers at middle and end."""
    tendon = TENTACLE.Tendon(np.radians(30), B, slope, L)
    markers = np.array([L / 2, L]), np.array([[0, 0, 0.02], [0.005, 0, 0]])
    shape = TENTACLE.Shape(np.array([0, L]), np.array(radii), (tendon,), *markers)
    return TENTACLE.Rod(shape, step, **more)


def bend_and_stretch(one, q):
    """Angle of the tip [rad] and what the slides give [m]."""
    slides = np.array(["stretch" in x for x in one.plant.GetPositionNames()])
    return q[~slides].sum(), q[slides].sum()


def test_a_tendon_beside_the_axis_is_a_follower_moment():
    """Without gravity: curvature T b/(E I) and strain -T/(E A), all along."""
    tension, area, inertia = 4.0, np.pi * R**2, np.pi * R**4 / 4
    turn, shorter = tension * B * L / (E * inertia), tension * L / (E * area)
    assert turn > 2  # a large bend
    off = []
    for step in (0.02, 0.01):
        one = rod(step=step)
        q = one.rest([tension], E, 0.0)
        angle, stretch = bend_and_stretch(one, q)
        off.append(np.abs([angle / turn - 1, stretch / shorter + 1]))
    # Of second order, but for slides along the tangent before a limb, not its chord.
    assert (off[1] < off[0] / 3).all()
    assert off[1].max() < 2e-3
    # The tip of an arc of that angle and length, seen in the tendon's plane.
    length = L + stretch
    found = one.markers(q, one.plane([tension]))[1]
    radius = length / angle
    aside = radius * (1 - np.cos(angle)) + 0.005 * np.sin(angle)
    down = radius * np.sin(angle) + 0.005 * np.cos(angle)
    # y and z of the section are y and x of the robot.
    expected = [aside * np.sin(np.radians(30)), aside * np.cos(np.radians(30)), -down]
    assert found == pytest.approx(expected, abs=3e-4)
    assert one.residual(q, [tension], E, 0.0) < 1e-8


def test_a_cone_bends_by_the_integral_of_its_compliance():
    r0, r1, tension = 0.012, 0.006, 0.8
    one = rod((r0, r1), step=0.01)
    angle, stretch = bend_and_stretch(one, one.rest([tension], E, 0.0))
    slope = (r0 - r1) / L
    compliance = 4 / np.pi * (r1**-3 - r0**-3) / (3 * slope)
    assert angle == pytest.approx(tension * B * compliance / E, rel=5e-3)
    assert stretch == pytest.approx(-tension * L / (E * np.pi * r0 * r1), rel=5e-3)


def test_a_hanging_rod_stretches_by_its_own_weight():
    density = 1200.0
    for step, rel in ((0.03, 0.15), (0.01, 0.05)):
        one = rod(step=step)
        q = one.rest([0.0], E, density)
        angle, stretch = bend_and_stretch(one, q)
        assert angle == pytest.approx(0, abs=1e-9)
        assert stretch == pytest.approx(density * GRAVITY * L**2 / (2 * E), rel=rel)
    assert one.markers(q, 0.0)[0] == pytest.approx([0.02, 0, -L / 2], abs=4e-3)


def test_an_axis_that_does_not_give_way_keeps_its_length():
    one = rod(stretches=False)
    q = one.rest([2.0], E, 1200.0)
    points = [
        one.plant.GetBodyByName(tip).EvalPoseInWorld(at).translation()
        for at in [one.plant.CreateDefaultContext()]
        for tip in one.tips
        if one.plant.SetPositions(at, q) is None
    ]
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).sum() == pytest.approx(L)


@pytest.mark.long
def test_the_residual_sees_a_pose_that_is_not_at_rest():
    one = rod()
    q = one.rest([2.0], E, 1200.0)
    assert one.residual(q, [2.0], E, 1200.0) < 1e-8
    assert one.residual(1.01 * q, [2.0], E, 1200.0) > 1e-3
    with pytest.raises(NoSolution):
        one.rest([2.0], E, 1200.0, np.full(len(q), np.nan))


def test_a_planted_modulus_is_found():
    """From markers of a rod of 90 kPa less, with the poses that are not fitted on."""
    one = rod(step=0.05)
    tensions = np.array([[0.5], [1.5]])
    made = [one.markers(one.rest(t, 3.1e5, 1200.0), one.plane(t)) for t in tensions]
    zeros = np.zeros((2, 2))
    poses = TENTACLE.Poses(["a", "b"], zeros, tensions, np.array(made), np.array(made))
    found = TENTACLE.Predictions(one, poses).identify(np.array([False, True]), 1200.0)
    assert found == pytest.approx(3.1e5, rel=2e-3)


def test_absent_data_is_one_line(tmp_path, monkeypatch):
    """It says where it looked, and what to set; a given folder may be the pack."""
    with pytest.raises(InvalidInput, match=r"a\.csv.*DRAKEBOTS_DATA"):
        PACKS.pack_folder("x", tmp_path, ["a.csv"])
    pack = tmp_path / "real" / "x"
    pack.mkdir(parents=True)
    (pack / "a.csv").write_text("name,v\none,\ntwo,2.5\n")
    monkeypatch.setenv("DRAKEBOTS_DATA", str(tmp_path))
    for given in (None, tmp_path, pack):
        assert PACKS.pack_folder("x", given, ["a.csv"]) == pack
    one, two = PACKS.read_rows(pack / "a.csv")
    assert np.isnan(one["v"]) and two == {"name": "two", "v": 2.5}


# --- the geckos on inclines --------------------------------------------------------


def made_pack():
    """A pack of one robot, whose tuned pattern has twice the pressure at 76 deg."""
    angles = np.radians([80.0, 60.0, 76.0, 12.0, 10.0])
    rows = [
        INCLINES.Row("vS11", pattern, incline, 0.05, 0.001, angles)
        for pattern in ("std", "adj_new")
        for incline in (0.0, 76.0)
    ]
    halves = {0: (1, 2, 5), 3: (0, 3, 4)}  # step: chambers under pressure
    patterns = [
        {"robot": "vS11", "pattern_for_incline_deg": incline, "duration_s": 0.25}
        | {f"p{k}_ref_bar": p * (k in on) for k in range(6)}
        for incline, p in ((0.0, 0.7), (48.0, 0.4), (76.0, 0.8))
        for on in (halves[0], halves[0], halves[3], halves[3])
    ]
    common = {"robot": "vS11", "pattern": "std", "incline_deg": 0.0, "run": "1"}
    marks = {f"x{k}_m": 0.1 * k for k in range(6)}
    frames = [
        common | marks | {"phase": "rest", "time_s": 0.0, "fixed_FL_FR_RL_RR": 0.0},
        common
        | marks
        | {"phase": "end of B", "time_s": 5.0, "fixed_FL_FR_RL_RR": 110.0},
        common
        | marks
        | {"phase": "end of A", "time_s": 6.0, "fixed_FL_FR_RL_RR": 1001.0},
    ]
    for frame, torso in zip(frames, (5.0, -70.0, 80.0)):
        frame["alpha_torso_deg"] = torso
    frames[2]["x0_m"], frames[2]["x3_m"] = 0.5, 0.29
    return INCLINES.Pack(rows, patterns, frames)


def test_free_angles_follow_the_pressure():
    """As measured on the flat; a pattern of twice the pressure bends twice as far from
    rest; what is without pressure stays."""
    pack = made_pack()
    flat = pack.row("vS11", "std", 0.0)
    assert np.degrees(pack.free(flat)) == pytest.approx([80, 75, 76, 12, 10])
    steep = pack.row("vS11", "std", 76.0)
    assert np.degrees(pack.free(steep)) == pytest.approx([80, 75, 76, 12, 10])
    tuned = pack.row("vS11", "adj_new", 76.0)
    bent = np.degrees(pack.free(tuned, np.radians(50.0)))
    assert bent == pytest.approx([12 + 2 * 68, 100, 10 + 2 * 66, 12, 10])
    assert pack.cycle("vS11") == pytest.approx(4 * (0.25 + INCLINES.DELAY))
    assert pack.pressures("vS11", 76.0) == pytest.approx([8e4] * 3)


def test_held_feet_that_move_are_seen():
    """FR and RL are held from the end of B to that of A; RL slides by 1 cm."""
    moved = {row["foot"]: row["moved_mm"] for row in made_pack().held_feet()}
    assert moved == pytest.approx({"FR": 0.0, "RL": -10.0})


def test_moduli_keep_the_ratio_of_stiffness_and_weight():
    """A robot k times as large in all lengths is k times as stiff per weight and reach:
    K ~ E k^3, W l ~ k^4; the model's grows in length only."""
    assert INCLINES.growth("vS11") == 1.0
    assert INCLINES.solid_modulus("vS11") == pytest.approx(1e6)
    area, longer = INCLINES.growth("v40"), 11.9 / 9.1
    found = INCLINES.solid_modulus("v40")
    # K/(W l) of the real one beside the small one's, and of the model's legs.
    assert area**2 / longer / (area * longer**2) == pytest.approx(
        found / 1e6 / longer**3
    )
    # 0.7 bar on 3.76 ml in 9.1 cm, at half of 15 mm, over 68 and 66 deg.
    pressed = 7e4 * 3.76e-6 / 0.091 * 0.0075 / np.radians([68, 66])
    inertia = 0.02 * 0.015**3 / 12
    expected = pressed.mean() * 0.091 / inertia
    assert INCLINES.pressed_modulus(made_pack(), "vS11") == pytest.approx(expected)


@pytest.mark.long
def test_walks_sink_where_limbs_are_softer():
    """On a wall a soft robot climbs less than a firm one, and that less than on the
    flat; its front legs are bent less."""
    free = made_pack().free(made_pack().row("vS11", "std", 0.0))
    soft, firm = (INCLINES.walk("vS11", 48.0, free, E, cycles=1) for E in (5e5, 1e6))
    level = INCLINES.walk("vS11", 0.0, free, 5e5, cycles=1)
    assert soft.shift < firm.shift - 0.01 < level.shift - 0.02
    assert soft.angles[0] < firm.angles[0] < free[0]


# --- thrown blocks ---------------------------------------------------------------

BLOCKS = """<robot name="pair" xmlns:drake="http://drake.mit.edu">
<link name="one"><inertial><mass value="0.4"/>
<inertia ixx="6e-4" ixy="0" ixz="0" iyy="7e-4" iyz="0" izz="8e-4"/></inertial>
<collision><geometry><box size="0.1 0.06 0.05"/></geometry><origin xyz="0 0 0"/>
<drake:mu_static value="0.3"/></collision></link>{second}</robot>"""
SECOND = """<link name="two"><inertial><origin xyz="0.03 0 0"/><mass value="0.3"/>
<inertia ixx="5e-4" ixy="0" ixz="0" iyy="5e-4" iyz="0" izz="5e-4"/></inertial>
<collision><geometry><box size="0.1 0.05 0.05"/></geometry>
<origin xyz="0.03 0 0"/></collision></link>
<joint name="hinge" type="continuous"><parent link="one"/><child link="two"/>
<origin xyz="-0.03 0.06 0"/><axis xyz="0 1 0"/></joint>"""
STATE = np.r_[0.8, 0.2, -0.4, 0.4, 0.1, -0.2, 0.9]  # quaternion, not yet a unit; p_WB
RATES = np.r_[3.0, -5.0, 4.0, 1.0, 0.5, 0.8]  # w_WB, v_WB


def block_of(tmp_path, second=""):
    path = tmp_path / "block.urdf"
    path.write_text(BLOCKS.format(second=second))
    return TOSSES.Block.read(path)


def frames(count, hinge=False):
    """A toss of which only the first frame counts."""
    q = np.r_[STATE[:4] / np.linalg.norm(STATE[:4]), STATE[4:], [0.3] * hinge]
    return np.tile(np.r_[q, RATES, [2.0] * hinge], (count, 1))


@pytest.mark.parametrize("hinge", [False, True])
def test_all_simulators_fly_alike(tmp_path, hinge):
    """Quaternions, frames of angular velocities and hinges mean the same to all."""
    block = block_of(tmp_path, SECOND if hinge else "")
    toss = frames(20, hinge)  # 0.13 s, in the air
    paths = {
        one.name: one.plain(block, friction=0.3).run(toss) for one in TOSSES.CONTENDERS
    }
    reference = paths.pop("hard")
    assert np.linalg.norm(reference[-1, 4:7] - reference[0, 4:7]) > 0.1
    for name, path in paths.items():
        off = TOSSES.errors(block, reference, path)
        assert off["position"] < 5e-3, name
        assert off["rotation"] < 0.3 and off["hinge"] < 0.3, name


@pytest.mark.long
def test_a_planted_friction_is_found(tmp_path):
    """From tosses that hard contact itself makes, none of which fails."""
    block = block_of(tmp_path)
    start = frames(60)
    start[:, 6] = 0.15
    made = TOSSES.HardContact(block, 0.2)
    toss = np.hstack([made.run(start), start[:, 7:]])
    judged = TOSSES.judged(block, made, [toss])
    assert judged["position"] == 0 and judged["failed"] == 0 and judged["face"] == 1
    make = lambda friction: TOSSES.HardContact(block, friction)  # noqa: E731
    found = TOSSES.fitted(block, make, {"friction": 0.3}, [toss], 20)
    assert found["friction"] == pytest.approx(0.2, rel=0.03)


@pytest.mark.long
def test_a_planted_damping_of_the_hinge_is_found(tmp_path):
    block = block_of(tmp_path, SECOND)
    toss = frames(40, hinge=True)
    damped = TOSSES.HardContact(block.damped(0.003), 0.3).run(toss)
    toss = np.hstack([damped, toss[:, 8:]])
    assert TOSSES.in_flight(block, toss) > 15
    assert TOSSES.hinge_damping(block, [toss]) == pytest.approx(0.003, rel=0.02)


# --- strides from motion capture ---------------------------------------------------


@pytest.mark.long
def test_what_a_capture_asks_of_a_robot(tmp_path):
    """A made-up animal whose feet land one after the other, of which one flies."""
    trot = {"fl": 0.1, "rr": 0.1, "fr": 0.6, "rl": 0.6}
    for name, duty in (("trot", 0.4), ("pace", 0.6)):
        path = tmp_path / f"{name}_joint_positions.csv"
        write_capture(path, *animal(trot, duty))
    words = [str(tmp_path), "--quick"]
    for case in ("beetle,trot,0.3,-", "beetle,trot,0.3,0.5", "beetle,pace,0.3,-"):
        words += ["--only", case]
    said = CAPTURES.main(words)
    duty = [row["duty"] for row in said["rows"]]
    assert duty == pytest.approx([0.4, 0.5, 0.6], abs=0.02)
    assert said["flight_share"]["value"] == pytest.approx([0.2, 0.0, 0.0], abs=0.03)
    assert [row["asked_m_s"] for row in said["rows"]] == pytest.approx([0.3] * 3)
