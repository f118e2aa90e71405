"""Feet that touch the ground as points, and the motion of those points."""

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.formats import load
from drakebots.multibody import (
    Ground,
    add_soles,
    build_robot,
    soles_jacobian,
    touch_by_soles,
)
from tests.helpers.robot_files import flat_feet, plain


def test_the_lowest_points_move_with_their_bodies(tmp_path):
    """J v is the velocity of the material point that is lowest now."""
    robot = build_robot(load(plain(tmp_path)), base="euler", time_step=0)
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    rng = np.random.default_rng(0)
    q, v = 0.3 * rng.standard_normal((2, plant.num_positions()))
    plant.SetPositions(context, q)
    J = soles_jacobian(robot, context)
    lowest = []
    for (frame, p), foot in zip(robot.frames(robot.model.feet), robot.model.feet):
        R = frame.CalcPoseInWorld(context).rotation().matrix()
        lowest.append((frame, p - foot.radius * R.T @ [0, 0, 1]))

    def places(h):
        plant.SetPositions(context, q + h * v)
        world = plant.world_frame()
        found = [plant.CalcPointsPositions(context, *x, world) for x in lowest]
        return np.concatenate([p.ravel() for p in found])

    h = 1e-6
    assert np.allclose(J @ v, (places(h) - places(-h)) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("write", [plain, flat_feet])
def test_feet_carry_the_weight_at_their_points(tmp_path, write):
    """Left to itself on stiff ground, the ground touches soles alone."""
    model = load(write(tmp_path))
    builder, soles = DiagramBuilder(), []
    ground = Ground(0.8, stiffness=1e5, dissipation=10.0)

    def prepare(plant):
        soles.extend(add_soles(plant, model.feet, ground.material()))

    robot = build_robot(
        model, builder, base="euler", ground=ground, prepare=prepare, time_step=1e-3
    )
    touch_by_soles(robot.plant, robot.scene_graph, soles)
    simulator = Simulator(builder.Build())
    plant = robot.plant
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    feet = robot.feet_positions(context)[:, 2] - [f.radius for f in model.feet]
    plant.get_actuation_input_port().FixValue(context, np.zeros(plant.num_actuators()))
    q = plant.GetPositions(context)
    q[2] -= feet.min() + 1e-4
    plant.SetPositions(context, q)
    simulator.AdvanceTo(2e-3)
    found = plant.get_contact_results_output_port().Eval(context)
    pairs = [
        found.point_pair_contact_info(k).point_pair()
        for k in range(found.num_point_pair_contacts())
    ]
    touching = {key for pair in pairs for key in (pair.id_A, pair.id_B)}
    assert set(soles) <= touching and len(pairs) == len(soles)
