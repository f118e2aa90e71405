"""Suction feet: they hold where they took hold, and let go."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.engines import Drake
from drakebots.robots.gecko.engines.plant import build_gecko_plant, default_cup
from drakebots.robots.gecko.engines.suction import Cup, SuctionFeet
from drakebots.robots.gecko.model import Gecko, fixation, gait_law, pose_at

ROBOT = Gecko()
POSE = pose_at(ROBOT, gait_law(np.radians(-60), 0.2), 0.4, (0.3, -0.2))


class Bench:
    """A gecko that is asked for constant angles."""

    def __init__(self, **options):
        builder = DiagramBuilder()
        self.body = build_gecko_plant(builder, ROBOT, Drake(**options))
        self.simulator = Simulator(builder.Build())
        root = self.simulator.get_mutable_context()
        self.plant, self.suction = self.body.plant, self.body.suction
        self.context = self.plant.GetMyMutableContextFromRoot(root)
        self.body.place(self.context, POSE)
        self.suction.place(self.context, np.zeros(4, bool))
        rest = self.plant.get_desired_state_input_port(self.suction.instance)
        rest.FixValue(self.context, np.zeros(8))
        self.ask(POSE.alpha)

    def ask(self, alpha):
        limbs = self.body.limbs
        port = self.plant.get_desired_state_input_port(limbs.instance)
        port.FixValue(self.context, limbs.desired(alpha))

    def twist(self):
        return self.suction.twist_matrix @ self.plant.GetPositions(self.context)

    def go(self, seconds):
        self.simulator.AdvanceTo(self.simulator.get_context().get_time() + seconds)


def test_model_has_the_kinematics_of_the_paper():
    bench = Bench()
    found = bench.body.markers(bench.context)
    np.testing.assert_allclose(found, POSE.markers, atol=3e-4)
    q = bench.plant.GetPositions(bench.context)
    np.testing.assert_allclose(bench.body.limbs.angles(q), POSE.alpha, atol=1e-12)
    np.testing.assert_allclose(bench.body.pose(q), [0.3, -0.2, 0.4], atol=1e-12)
    np.testing.assert_allclose(bench.suction.feet(bench.context), POSE.feet, atol=3e-4)


@pytest.mark.parametrize("reproduction", [False, True])
def test_fixed_feet_stay_and_others_move(reproduction):
    bench = Bench(reproduction=reproduction)
    held = fixation(1)
    bench.suction.hold(bench.context, held)
    assert (bench.suction.held(bench.context) == held).all()
    before = bench.suction.feet(bench.context)
    bench.ask(gait_law(np.radians(60), 0.2))
    drift = []
    for _ in range(20):
        bench.go(0.03)
        drift.append(bench.suction.drift(bench.context, held))
    moved = np.linalg.norm(bench.suction.feet(bench.context) - before, axis=1)
    assert np.max(drift) < 0.5e-3
    assert (moved[held] < 0.5e-3).all()
    assert (moved[~held] > 0.02).all()
    assert (np.abs(bench.twist()[held]) > 0.01).any()


def test_release_and_hold_again_elsewhere():
    bench = Bench()
    bench.suction.hold(bench.context, [1, 1, 1, 1])
    bench.go(0.1)
    bench.suction.hold(bench.context, [0, 0, 0, 0])
    joint = bench.plant.GetJointByName("planar")
    joint.set_translational_velocity(bench.context, [0.3, 0.1])
    start = bench.suction.feet(bench.context)
    bench.go(0.2)
    free = bench.suction.feet(bench.context)
    # Nothing holds it: no forces in the plane.
    np.testing.assert_allclose(free - start, [[0.06, 0.02]] * 4, atol=2e-3)
    bench.plant.SetVelocities(bench.context, np.zeros(bench.plant.num_velocities()))
    held = np.array([True, False, False, True])
    bench.suction.hold(bench.context, held)
    assert bench.suction.drift(bench.context, held).max() < 1e-12
    bench.go(0.2)
    np.testing.assert_allclose(
        bench.suction.feet(bench.context)[[0, 3]], free[[0, 3]], atol=0.5e-3
    )


@pytest.mark.parametrize("incline", [0.0, 0.5, np.radians(84)])
def test_shear_carries_the_robot(incline):
    bench = Bench(incline=incline)
    bench.suction.hold(bench.context, [1, 0, 0, 1])
    bench.go(3.0)
    shear = bench.suction.shear(bench.context)
    mass = bench.plant.CalcTotalMass(bench.context, [bench.body.limbs.instance])
    weight = 9.81 * mass * np.sin(incline)
    np.testing.assert_allclose(shear.sum(axis=0), [weight, 0.0], atol=0.02)
    assert (shear[[1, 2]] == 0).all()


def test_cup_gives_like_its_spring():
    soft, hard = (Bench(torsion=t) for t in (0.3, 30.0))
    twist = []
    for bench in (soft, hard):
        bench.suction.hold(bench.context, fixation(1))
        bench.ask(gait_law(np.radians(60), 0.2))
        bench.go(1.0)
        twist.append(np.abs(bench.twist()).max())
    assert twist[0] > 5 * twist[1] > 0


def test_bad_feet_are_refused():
    cup = default_cup(0.2)
    with pytest.raises(UnknownName, match="paw"):
        SuctionFeet(MultibodyPlant(1e-3), ["paw"], cup)
    for name in ("stiffness", "damping", "mass", "radius"):
        values = {"stiffness": 1.0, "damping": 1.0} | {name: -1.0}
        with pytest.raises(InvalidInput, match=name):
            Cup(**values)
    with pytest.raises(InvalidInput, match="torsion"):
        Drake(torsion=-1.0)
