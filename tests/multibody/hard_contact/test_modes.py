"""Small motions: closed forms, and HAMR's modes in air and on its feet."""

import numpy as np
import pytest

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.units import MM_G_MS
from drakebots.multibody import TimeStepper
from drakebots.robots.hamr.model import hamr_benders, hamr_variant
from tests.helpers.modes import natural_modes, stand

HZ = 1e3  # of a frequency in 1/ms


@pytest.fixture(scope="module")
def in_air():
    model = drakebots.load("hamr")
    robot = build_robot(model, scaling=MM_G_MS, base="fixed", time_step=0)
    return TimeStepper(robot, 0.1)


@pytest.fixture(scope="module")
def on_ground():
    model = drakebots.load("hamr")
    robot = build_robot(model, scaling=MM_G_MS, base="euler", time_step=0)
    return TimeStepper(robot, 0.1, friction=0.0)


def base_index(stepper, name):
    return stepper.plant.GetJointByName(f"Chassis_{name}").position_start()


@pytest.fixture(scope="module")
def standing(on_ground):
    guess = np.zeros(38)
    guess[base_index(on_ground, "z")] = 12.54
    level = np.array([base_index(on_ground, k) for k in ("x", "y", "yaw")])
    return stand(on_ground, guess, level)


def test_pendulum(tmp_path):
    """A physical pendulum swings at sqrt(m g l / (I + m l^2)), with damping
    ratio d / (2 sqrt(K M)); hanging up a spring k adds to m g l."""
    m, length, inertia, d = 0.7, 0.4, 0.02, 0.05
    box = "<inertia><ixx>1</ixx><iyy>{0}</iyy><izz>1</izz></inertia>"
    path = tmp_path / "pendulum.sdf"
    path.write_text(
        f"""<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass>
        {box.format(1)}</inertial></link>
        <link name="b"><inertial><pose>0 0 {-length} 0 0 0</pose><mass>{m}</mass>
        {box.format(inertia).replace(">1<", f">{inertia}<")}</inertial></link>
        <joint name="pivot" type="revolute"><parent>a</parent><child>b</child><axis>
        <xyz>0 1 0</xyz><dynamics><damping>{d}</damping></dynamics></axis></joint>
        </model></sdf>"""
    )
    robot = build_robot(drakebots.load(path), base="fixed", time_step=0)
    stepper = TimeStepper(robot, 1e-3)
    M, K = inertia + m * length**2, m * 9.81 * length
    modes = natural_modes(stepper, np.zeros(1))
    assert modes.frequency[0] == pytest.approx(np.sqrt(K / M) / 2 / np.pi, rel=1e-7)
    assert modes.damping[0] == pytest.approx(d / 2 / np.sqrt(K * M), rel=1e-7)
    assert abs(modes.shapes[0, 0]) == pytest.approx(M**-0.5, rel=1e-9)
    stiffer = natural_modes(stepper, np.zeros(1), extra_stiffness=np.array([3.0]))
    assert stiffer.frequency[0] == pytest.approx(
        np.sqrt((K + 3) / M) / 2 / np.pi, rel=1e-7
    )
    upside_down = natural_modes(stepper, np.array([np.pi]))
    assert upside_down.frequency[0] == 0 and upside_down.damping[0] == 0
    held = natural_modes(stepper, np.zeros(1), held=np.ones((1, 1)))
    assert held.frequency.size == 0


def test_hamr_in_air(in_air):
    """Four legs swing at 84.4 Hz and lift at 113.3 Hz, damped by 2 to 3 %."""
    modes = natural_modes(in_air, np.zeros(32))
    assert modes.frequency.shape == (8,)
    np.testing.assert_allclose(modes.frequency[:4] * HZ, 84.4, atol=0.6)
    np.testing.assert_allclose(modes.frequency[4:] * HZ, 113.3, atol=0.3)
    np.testing.assert_allclose(modes.damping[:4], 0.020, atol=1e-3)
    np.testing.assert_allclose(modes.damping[4:], 0.028, atol=1e-3)


def test_mode_shapes_keep_the_loops(in_air):
    """Modes are orthonormal in the mass and leave every loop closed."""
    modes = natural_modes(in_air, np.zeros(32))
    plant, context = in_air.plant, in_air.context
    plant.SetPositions(context, np.zeros(32))
    M = plant.CalcMassMatrix(context)
    np.testing.assert_allclose(modes.shapes.T @ M @ modes.shapes, np.eye(8), atol=1e-9)
    C = in_air.robot.closure.jacobian(context)
    assert np.abs(C @ modes.shapes).max() < 1e-9 * np.abs(modes.shapes).max()


def test_hamr_driven_by_voltage(in_air):
    """At fixed voltage the benders add V_b dC to their stiffness: the modes
    rise to 95.5 and 128.1 Hz."""
    law, extra = hamr_benders(), np.zeros(32)
    tips = np.argmax(in_air.actuation, axis=0)
    extra[tips] = law.bias * law.softening * 1e-3  # N/mm
    frequency = natural_modes(in_air, np.zeros(32), extra_stiffness=extra).frequency
    np.testing.assert_allclose(frequency[:4] * HZ, 95.5, atol=0.6)
    np.testing.assert_allclose(frequency[4:] * HZ, 128.1, atol=0.6)


def test_standing_pose(on_ground, standing):
    """HAMR stands level; its feet share its weight."""
    assert standing.q[base_index(on_ground, "z")] == pytest.approx(12.21, abs=0.01)
    for name in ("roll", "pitch"):
        assert abs(standing.q[base_index(on_ground, name)]) < 5e-3
    plant, context = on_ground.plant, on_ground.context
    plant.SetPositions(context, standing.q)
    com = plant.CalcCenterOfMassPositionInWorld(context)
    assert com[2] == pytest.approx(11.68, abs=0.01)
    np.testing.assert_allclose(standing.normal * 1e3, 3.617, atol=0.02)  # mN
    weight = plant.CalcTotalMass(context) * 9.81e-3  # g mm/ms^2 = N
    assert standing.normal.sum() == pytest.approx(weight, rel=1e-6)
    feet = on_ground.robot.feet_positions(context)
    np.testing.assert_allclose(feet[:, 2], 0, atol=1e-9)
    assert on_ground.robot.closure.gaps(context).max() < 1e-6


def test_standing_pose_stays_in_time(on_ground, standing):
    """The static solution is a rest of the dynamics: a step leaves it there."""
    stepper = TimeStepper(on_ground.robot, 0.1, friction=0.5)
    q, v, forces = stepper.step(standing.q, np.zeros(38), np.zeros(8))
    assert np.abs(v).max() < 1e-6
    np.testing.assert_allclose(q, standing.q, atol=1e-7)
    assert forces.normal.sum() == pytest.approx(standing.normal.sum(), rel=1e-5)


@pytest.mark.long
def test_stand_without_a_pose(on_ground):
    """Held at a slope of 1 rad HAMR's feet cannot all be on the ground at rest;
    a NaN guess is no pose either."""
    names = ("x", "y", "yaw", "roll", "pitch")
    level = np.array([base_index(on_ground, k) for k in names])
    guess = np.zeros(38)
    guess[level[3]] = 1.0
    with pytest.raises(NoSolution, match="no standing pose"):
        stand(on_ground, guess, level)
    with pytest.raises(InvalidInput, match="finite"):
        stand(on_ground, np.full(38, np.nan), level)


def test_standing_modes_on_ice(on_ground, standing):
    """On frictionless feet HAMR bounces (z) at 26.7, pitches at 38.0 and rolls
    at 67.9 Hz; x, y and yaw are free."""
    terms = on_ground.terms(standing.q, np.zeros(38), np.zeros(8))
    modes = natural_modes(on_ground, standing.q, held=terms.N)
    frequency = modes.frequency * HZ
    assert (frequency[:3] < 1).all()
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    index = [base_index(on_ground, k) for k in names]
    share = np.abs(modes.shapes[index]) * np.array([1, 1, 1, 10, 10, 10])[:, None]
    found = {}
    for name in ("z", "pitch", "roll"):
        k = np.argmin(np.abs(frequency - {"z": 26.7, "pitch": 38, "roll": 67.9}[name]))
        assert names[int(np.argmax(share[:, k] * [0, 0, 1, 1, 1, 0]))] == name
        found[name] = frequency[k]
    assert found["z"] == pytest.approx(26.7, abs=0.1)
    assert found["pitch"] == pytest.approx(38.0, abs=0.1)
    assert found["roll"] == pytest.approx(67.9, abs=0.1)


def test_standing_modes_without_slip(on_ground, standing):
    """With feet that do not slip the lowest modes are 22.2 and 27.9 Hz."""
    terms = on_ground.terms(standing.q, np.zeros(38), np.zeros(8))
    tangent = terms.P.reshape(4, 4, -1)[:, [0, 2]].reshape(8, -1)
    held = np.vstack([terms.N, tangent])
    frequency = natural_modes(on_ground, standing.q, held=held).frequency * HZ
    np.testing.assert_allclose(frequency[:2], [22.2, 27.9], atol=0.1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("stiffness", "z", "roll"),
    [(1e-3, 20.8, 54.2), (3e-4, 14.9, 40.5), (1e-4, 9.6, 28.4)],
)
def test_standing_modes_on_compliant_legs(on_ground, stiffness, z, roll):
    """Hinges in series with the legs soften the bounce as springs in series do, 1/K' =
    1/K + r^2/(4 k) with feet r = 7.58 mm beside them. At 1e-4 N m/rad both modes are
    those of the experiments, some 10 and 30 Hz (docs/evidence/hamr.md)."""
    model = hamr_variant(serial_stiffness=stiffness)
    robot = build_robot(model, scaling=MM_G_MS, base="euler", time_step=0)
    stepper = TimeStepper(robot, 0.1, friction=0.0)
    count = robot.plant.num_positions()
    guess = np.zeros(count)
    guess[base_index(stepper, "z")] = 11.3
    level = np.array([base_index(stepper, k) for k in ("x", "y", "yaw")])
    q = stand(stepper, guess, level).q
    terms = stepper.terms(q, np.zeros(count), np.zeros(8))
    modes = natural_modes(stepper, q, held=terms.N)
    frequency = modes.frequency * HZ
    for name, expected in (("z", z), ("roll", roll)):
        k = np.argmin(np.abs(frequency - expected))
        share = np.abs(modes.shapes[[base_index(stepper, n) for n in ("z", "roll")], k])
        assert (share[0] > 10 * share[1]) == (name == "z")
        assert frequency[k] == pytest.approx(expected, abs=0.1)
    mass = model.summary.mass
    own, lever = mass * (2 * np.pi * 26.7) ** 2, 7.58e-3
    series = 1 / (1 / own + lever**2 / (4 * stiffness))
    # Legs sink by millimetres, so the lever is not quite that of the pose at 0.
    assert z == pytest.approx(np.sqrt(series / mass) / (2 * np.pi), rel=0.06)
