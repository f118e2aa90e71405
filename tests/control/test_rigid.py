"""What a contact model does to a body that lands while it slides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import drakebots
from drakebots.control import Command, HardPlant, SapPlant, stiff_ground
from drakebots.core.units import GRAVITY
from drakebots.formats import write_limbs
from drakebots.model import Point
from drakebots.multibody import Flat
from drakebots.trajopt.locomotion import stand
from tests.helpers.limb_samples import limb
from tests.helpers.standing_robots import quadruped

FRICTION = 0.225

# So hard to turn that only its centre matters.
BODY = """<robot name="puck"><link name="puck"><inertial><mass value="0.37"/>
<inertia ixx="1e6" ixy="0" ixz="0" iyy="1e6" iyz="0" izz="1e6"/></inertial></link>
</robot>"""


@pytest.fixture(scope="module")
def puck(tmp_path_factory):
    path = tmp_path_factory.mktemp("puck") / "puck.urdf"
    path.write_text(BODY)
    foot = Point("foot", "puck", np.zeros(3))
    return dataclasses.replace(drakebots.load(path), feet=(foot,))


def friction_ratio(plant, height: float) -> float:
    """Friction's impulse over the ground's normal impulse, of a landing at 1 m/s
    ahead and down, until 4 ms later."""
    plant.start(np.r_[1, 0, 0, 0, 0, 0, height], np.r_[0, 0, 0, 1.0, 0, -1.0])
    count = round((height + 0.004) / plant.time_step)
    for _ in range(count):
        plant.advance(Command(np.zeros(0), np.zeros(0)))
    v = plant.state()[1]
    fallen = GRAVITY * count * plant.time_step
    return (1.0 - v[3]) / (v[5] + 1.0 + fallen)


def worst(plant, h: float) -> float:
    """The largest ratio, over four phases of a step at which it touches."""
    heights = 0.01 + h * np.array([0.05, 0.35, 0.65, 0.95])
    return max(friction_ratio(plant, height) for height in heights)


def test_hard_contact_lands_by_coulombs_law(puck):
    """Sliding all the while, friction is mu times the normal force, in impacts too."""
    plant = HardPlant(puck, base="quaternion", time_step=1e-3, friction=FRICTION)
    assert worst(plant, 1e-3) == pytest.approx(FRICTION, rel=1e-9)


def test_our_plant_lands_by_coulombs_law(puck):
    """Drake's own default, "lagged", bounds friction by the normal force of the step
    before: the puck would stand after a step of 1 ms."""
    ground = stiff_ground(puck, 0.05, FRICTION, GRAVITY, Flat())
    for h in (1e-3, 2.5e-4, 6.25e-5):
        plant = SapPlant(puck, base="quaternion", time_step=h, ground=ground)
        assert worst(plant, h) == pytest.approx(FRICTION, rel=1e-4)


@pytest.mark.parametrize("kind", ["hard", "sap"])
def test_pushes_give_their_impulse(puck, kind):
    """Several forces in some steps, on a body that flies: m v is their impulse."""
    plant = HardPlant(puck, base="quaternion", time_step=1e-3, friction=FRICTION)
    if kind == "sap":
        ground = stiff_ground(puck, 0.05, FRICTION, GRAVITY, Flat())
        plant = SapPlant(puck, base="quaternion", time_step=1e-3, ground=ground)
    plant.start(np.r_[1, 0, 0, 0, 0, 0, 1], np.zeros(6))
    pushes = [np.array([2.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.5])]
    for k in range(60):
        forces = pushes if 10 <= k < 50 else []
        plant.advance(Command(np.zeros(0), np.zeros(0)), forces)
    gained = 0.37 * (plant.state()[1][3:] + np.array([0, 0, 0.06 * GRAVITY]))
    assert gained == pytest.approx(0.04 * sum(pushes), rel=1e-9)


def test_friction_and_payload_change_while_it_runs(puck):
    """It slides by the friction of now, and the ground carries what it carries: by
    momentum, since "similar" throws up what slides."""
    ground = stiff_ground(puck, 0.05, FRICTION, GRAVITY, Flat())
    plant = SapPlant(puck, base="quaternion", time_step=1e-3, ground=ground)
    plant.start(np.r_[1, 0, 0, 0, 0, 0, 0], np.r_[0, 0, 0, 1.0, 0, 0])

    def after(count: int) -> tuple[float, float, float]:
        """Changes of the speeds ahead and up, and the impulse of the ground."""
        before, impulse = plant.state()[1], 0.0
        for _ in range(count):
            plant.advance(Command(np.zeros(0), np.zeros(0)))
            impulse += 1e-3 * plant.forces()[0, 2]
        _, _, _, ahead, _, up = plant.state()[1] - before
        return ahead, up, impulse

    for friction, payload in ((FRICTION, 0.0), (0.6, 0.0), (0.1, 0.2), (0.1, 0.0)):
        plant.set_friction(friction)
        plant.set_payload(payload)
        ahead, up, impulse = after(50)
        mass = 0.37 + payload
        assert impulse == pytest.approx(mass * (GRAVITY * 0.05 + up), rel=1e-6)
        assert -ahead == pytest.approx(friction * impulse / mass, rel=1e-4)
        assert plant.state()[1][3] > 0.1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*no motors")
def test_a_soft_limb_is_a_spring_to_programs_and_to_their_plant(tmp_path):
    """A tail without damping hangs where K/w_j q_j balances gravity, and stays there,
    with a tip too light for explicit steps of 1 ms."""
    tail = limb(parent="trunk", segments=3, stiffness=0.5, mass=0.3, damping=0.0)
    tail = dataclasses.replace(tail, length=0.2, axis=(0.0, 1.0, 0.0))
    path = write_limbs(quadruped(tmp_path), (tail,), tmp_path / "soft.dmd.yaml")
    standing = stand(drakebots.load(path, actuate="all", effort=40))
    robot, q = standing.system.robot, standing.q
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    assert plant.num_actuators() == 12
    plant.SetPositions(context, q)
    gravity = plant.CalcGravityGeneralizedForces(context) * robot.scaling.torque
    bent = [plant.GetJointByName(name).position_start() for name in tail.joints]
    assert tail.stiffness / tail.weights * q[bent] == pytest.approx(gravity[bent])
    assert 0.15 < q[bent].sum() < 0.3

    spun = BODY.replace(
        "</robot>",
        """<link name="rotor"><inertial><mass value="1"/><inertia ixx="1" ixy="0"
        ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="spin"
        type="continuous"><axis xyz="0 0 1"/><parent link="puck"/><child link="rotor"/>
        </joint></robot>""",
    )
    (tmp_path / "puck.urdf").write_text(spun)
    on_puck = dataclasses.replace(tail, parent="puck")
    path = write_limbs(tmp_path / "puck.urdf", (on_puck,), tmp_path / "spun.dmd.yaml")
    model = drakebots.load(path, actuate="spin", effort=1.0, feet=())
    model = dataclasses.replace(model, sprung=True)
    ground = stiff_ground(model, 0.3, 0.6, GRAVITY, Flat())
    sap = SapPlant(model, base="fixed", time_step=1e-3, ground=ground)
    assert sap.plant.num_actuators() == 1
    sap.start(np.zeros(5), np.zeros(5))
    seen = []
    for _ in range(1000):
        sap.advance(Command(np.zeros(1), np.zeros(0)))
        seen.append(sap.state()[0])
    swings = np.sum(seen, axis=1)
    assert np.ptp(swings) < 2.2 * q[bent].sum()
    assert swings.mean() == pytest.approx(q[bent].sum(), rel=0.1)
