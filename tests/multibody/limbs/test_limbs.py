"""Soft limbs: their shape, softness and mass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.common.value import Value
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    ExternallyAppliedSpatialForce,
    MultibodyPlant,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import UnknownName
from drakebots.formats import add_limbs, limbs_sdf, load
from drakebots.multibody import LimbMap
from tests.helpers.limb_samples import limb, plant_with


def tip(plant, alpha, limbs):
    context = plant.CreateDefaultContext()
    limb_map = LimbMap(plant, limbs)
    q = limb_map.positions(plant.GetPositions(context), alpha)
    plant.SetPositions(context, q)
    X_RT = plant.CalcRelativeTransform(
        context,
        plant.GetFrameByName(limbs[0].root),
        plant.GetFrameByName(limbs[0].tip),
    )
    return X_RT, q, limb_map


def arc_end(length, alpha):
    chord = length * np.sinc(alpha / 2 / np.pi)
    return chord * np.array([np.cos(alpha / 2), np.sin(alpha / 2)])


@pytest.mark.parametrize("alpha", [0.0, 0.4, -1.0, np.pi / 2])
def test_end_is_on_the_arc_to_second_order(alpha):
    errors = []
    for n in (3, 6, 12, 24):
        limbs = (limb(segments=n),)
        plant = plant_with(limbs)
        X, q, limb_map = tip(plant, [alpha], limbs)
        end = X.translation()[:2]
        np.testing.assert_allclose(end, limbs[0].end(alpha), atol=1e-12)
        yaw = X.rotation().ToRollPitchYaw().yaw_angle()
        assert yaw == pytest.approx(alpha, abs=1e-12)
        assert limb_map.angles(q)[0] == pytest.approx(alpha)
        errors.append(np.linalg.norm(end - arc_end(0.1, alpha)))
    if alpha:
        ratios = np.array(errors[:-1]) / errors[1:]
        np.testing.assert_allclose(ratios, 4.0, rtol=0.02)
    assert errors[1] < 0.3e-3


def bent_by(limbs, force, *, seconds=1.5, alpha_ref=0.0, coupled=False):
    """Tip deflection (y) and alpha at rest under a force across the tip."""
    builder = DiagramBuilder()
    plant = builder.AddSystem(plant_with(limbs, welded=True, coupled=coupled))
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    limb_map = LimbMap(plant, limbs)
    port = plant.get_desired_state_input_port(limb_map.instance)
    port.FixValue(context, limb_map.desired([alpha_ref]))
    push = ExternallyAppliedSpatialForce()
    push.body_index = plant.GetBodyByName(limbs[0].tip).index()
    push.F_Bq_W = SpatialForce(np.zeros(3), np.array([0.0, force, 0.0]))
    plant.get_applied_spatial_force_input_port().FixValue(
        context, Value[list[ExternallyAppliedSpatialForce]]([push])
    )
    simulator.AdvanceTo(seconds)
    root = plant.GetBodyByName(limbs[0].root).EvalPoseInWorld(context)
    end = plant.GetBodyByName(limbs[0].tip).EvalPoseInWorld(context)
    p = root.inverse().multiply(end.translation())
    return p[1], limb_map.angles(plant.GetPositions(context))[0]


def tip_deflection(soft, force):
    """delta = F l^2/K (1/3 + 1/(6 N^2)); without the last term a beam's, EI = K l."""
    shape = 1 / 3 + 1 / (6 * soft.segments**2)
    return force * soft.length**2 / soft.stiffness * shape


@pytest.mark.parametrize("n", [1, 2, 6])
def test_deflection_under_a_tip_load(n):
    limbs = (limb(segments=n),)
    force = 0.02
    found, alpha = bent_by(limbs, force)
    # The chain's own sum, joint by joint.
    x = np.arange(n + 1) / n
    by_joints = force * 0.1**2 / 0.2 * ((1 - x) ** 2 * limbs[0].weights).sum()
    assert tip_deflection(limbs[0], force) == pytest.approx(by_joints, rel=1e-12)
    assert found == pytest.approx(by_joints, rel=5e-3)
    # alpha = F l/K int (1 - s) ds, whatever N.
    assert alpha == pytest.approx(force * 0.1 / 0.2 / 2, rel=5e-3)


def test_deflection_goes_to_the_beam():
    beam = 0.02 * 0.1**3 / (3 * 0.2 * 0.1)
    found = tip_deflection(limb(segments=50), 0.02)
    assert found == pytest.approx(beam, rel=1e-3)


def test_a_free_limb_goes_where_asked():
    _, alpha = bent_by((limb(),), 0.0, alpha_ref=1.2)
    assert alpha == pytest.approx(1.2, abs=1e-3)


def test_coupled_limb_stays_an_arc():
    # A force F across the end at F l small does work F l/2 alpha.
    force = 0.02
    found, alpha = bent_by((limb(),), force, coupled=True)
    assert alpha == pytest.approx(force * 0.1 / 2 / 0.2, rel=0.01)
    assert found == pytest.approx(0.1 * alpha / 2, rel=0.01)
    assert found < bent_by((limb(),), force)[0]


def test_many_limbs_step(tmp_path):
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    load("brick").add_to(plant)
    limbs = tuple(limb(name=f"leg{k}") for k in range(8))
    add_limbs(plant, limbs)
    plant.Finalize()
    limb_map = LimbMap(plant, limbs)
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    alpha = np.linspace(-1, 1, 8)
    port = plant.get_desired_state_input_port(limb_map.instance)
    port.FixValue(context, limb_map.desired(alpha))
    simulator.AdvanceTo(0.02)
    assert np.isfinite(plant.GetPositionsAndVelocities(context)).all()


def test_map_reads_and_clips():
    limbs = (limb(range=(-0.1, 0.5)), limb(name="b"))
    plant = plant_with(limbs)
    limb_map = LimbMap(plant, limbs)
    np.testing.assert_allclose(limb_map.clip([1.0, 1.0]), [0.5, 1.0])
    assert limb_map.desired([1.0, 2.0]).shape == (2 * 14,)
    assert limb_map.desired([1.0, 2.0]).sum() == pytest.approx(3.0)
    q = limb_map.positions(np.zeros(plant.num_positions()), [0.3, -0.2])
    np.testing.assert_allclose(limb_map.angles(q), [0.3, -0.2])
    with pytest.raises(UnknownName, match="nobody"):
        LimbMap(plant, (limb(name="nobody"),))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 12),
    stiffness=st.floats(1e-4, 1e3),
    mass=st.floats(1e-6, 10),
    length=st.floats(1e-3, 2),
)
def test_any_limb_parses(n, stiffness, mass, length):
    made = limb(segments=n, stiffness=stiffness, mass=mass, length=length)
    plant = MultibodyPlant(1e-3)
    Parser(plant).AddModelsFromString(limbs_sdf([made]), "sdf")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    assert plant.CalcTotalMass(context) == pytest.approx(mass, rel=1e-9)
    assert plant.num_actuators() == n + 1
