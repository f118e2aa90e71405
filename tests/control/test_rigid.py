"""What a contact model does to a body that lands while it slides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import drakebots
from drakebots.control import Command, HardPlant, SapPlant, stiff_ground
from drakebots.core.units import GRAVITY
from drakebots.model import Point
from drakebots.multibody import Flat

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


def test_drakes_friction_exceeds_coulombs_law_in_landings(puck):
    """Drake's `lagged` contact bounds friction by the normal force of the step before,
    the first of which comes at a depth of up to h v: mu (1 + h^2 k/m (1 + d v)), until
    the body stands."""
    ground = stiff_ground(puck, 0.05, FRICTION, GRAVITY, Flat())
    stiffness = ground.stiffness / 2  # of ground and sole in series
    for h in (1e-3, 2.5e-4, 6.25e-5):
        plant = SapPlant(puck, base="quaternion", time_step=h, ground=ground)
        excess = h**2 * stiffness / 0.37 * (1 + ground.dissipation * 1.1)
        found = worst(plant, h) / FRICTION - 1
        if h == 1e-3:  # it stands: all of its speed is gone
            assert excess > 3 and found > 2
        else:
            assert 0.6 * excess < found < excess


def test_friction_and_payload_change_while_it_runs(puck):
    """It slides at mu g, then at the new one; the ground carries what it carries."""
    ground = stiff_ground(puck, 0.05, FRICTION, GRAVITY, Flat())
    plant = SapPlant(puck, base="quaternion", time_step=1e-3, ground=ground)
    plant.start(np.r_[1, 0, 0, 0, 0, 0, 0], np.r_[0, 0, 0, 1.0, 0, 0])

    def after(count: int) -> tuple[float, float]:
        """Speed ahead and force of the ground after some steps."""
        for _ in range(count):
            plant.advance(Command(np.zeros(0), np.zeros(0)))
        return plant.state()[1][3], plant.forces()[0, 2]

    after(100)  # it settles
    for friction, payload in ((FRICTION, 0.0), (0.6, 0.0), (0.1, 0.2), (0.1, 0.0)):
        plant.set_friction(friction)
        plant.set_payload(payload)
        before, _ = after(30)
        speed, force = after(20)
        assert before - speed == pytest.approx(friction * GRAVITY * 0.02, rel=1e-3)
        assert force == pytest.approx((0.37 + payload) * GRAVITY, rel=1e-3)
