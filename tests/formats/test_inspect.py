"""Links that move without inertia."""

import numpy as np
import pytest
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    RevoluteJoint,
    SpatialInertia,
    UnitInertia,
)

from drakebots.formats.inspect import moving_without_inertia


def pendulum(inertia: SpatialInertia) -> tuple[MultibodyPlant, np.ndarray]:
    """A bar on the world about y, and a second link at its end about z."""
    plant = MultibodyPlant(1e-3)
    bar = plant.AddRigidBody("bar", SpatialInertia.SolidSphereWithMass(1.0, 0.1))
    tip = plant.AddRigidBody("tip", inertia)
    hip = RevoluteJoint("hip", plant.world_frame(), bar.body_frame(), [0, 1, 0])
    plant.AddJoint(hip)
    X_BE = RigidTransform([0, 0, -0.3])
    end = plant.AddFrame(FixedOffsetFrame("end", bar.body_frame(), X_BE))
    plant.AddJoint(RevoluteJoint("wrist", end, tip.body_frame(), [0, 0, 1]))
    plant.Finalize()
    return plant, plant.CalcMassMatrix(plant.CreateDefaultContext())


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_a_regular_mass_matrix(scale):
    """However small the robot."""
    plant, M = pendulum(SpatialInertia.SolidSphereWithMass(0.1, 0.01))
    assert moving_without_inertia(plant, scale * M) == ()


@pytest.mark.parametrize("mass", [0.0, 0.2])
def test_a_point_on_its_axis_has_no_inertia_about_it(mass):
    point = SpatialInertia.Zero()
    if mass:
        p_BP = [0, 0, -0.1]
        point = SpatialInertia(mass, p_BP, UnitInertia.PointMass(p_BP))
    plant, M = pendulum(point)
    assert moving_without_inertia(plant, M) == ("link 'tip' on joint 'wrist'",)


def test_a_free_body_without_mass():
    plant = MultibodyPlant(1e-3)
    plant.AddRigidBody("ghost", SpatialInertia.Zero())
    plant.Finalize()
    M = plant.CalcMassMatrix(plant.CreateDefaultContext())
    assert moving_without_inertia(plant, M) == ("link 'ghost'",)
