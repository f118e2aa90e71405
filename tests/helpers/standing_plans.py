"""A plan to stand still, made by statics, for tests of its execution."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from drakebots.core.run import Verdict
from drakebots.formats import model_provenance
from drakebots.model import Model
from drakebots.multibody import (
    TimeStepper,
    build_robot,
    find_posture,
    soles_jacobian,
    trajectory_dataset,
)
from drakebots.results import Result


def standing_plan(
    model: Model, *, duration: float = 0.4, knots: int = 5, friction: float = 0.7
) -> Result:
    """A periodic plan of kind "locomotion.plan" that stays in the standing posture.

    The forces f >= 0 of the feet are vertical; with the inputs u and the forces of
    loops they hold it:

        tau(q) + B u + J'f + C'lam = 0

    Args:
        model: with a free base, feet and motors.
        duration: of a cycle [s].
        knots: their number.
        friction: coefficient.
    """
    robot = build_robot(model, base="euler", time_step=0)
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    posture = find_posture(model)
    posture.put(robot, context, base=True)
    q, zero = plant.GetPositions(context), np.zeros(plant.num_velocities())
    stepper = TimeStepper(robot, 1.0)
    B, nu = stepper.actuation, stepper.actuation.shape[1]
    tau = stepper.generalized_forces(q, zero, np.zeros(nu))
    N = soles_jacobian(robot, context)[2::3]
    C = robot.closure.jacobian(context) if robot.closure.num_rows else N[:0]
    least = np.full(nu + len(N) + len(C), -np.inf)
    least[nu : nu + len(N)] = 0.0
    rows = np.hstack([B, N.T, C.T])
    found = scipy.optimize.lsq_linear(rows, -tau, (least, np.inf))
    assert np.abs(rows @ found.x + tau).max() < 1e-6 * np.abs(tau).max()
    times = np.linspace(0, duration, knots)
    data = trajectory_dataset(robot, times, np.tile(np.r_[q, zero], (knots, 1)))
    force = np.zeros((knots, len(N), 3))
    force[:, :, 2] = found.x[nu : nu + len(N)]
    motors = map(plant.get_joint_actuator, plant.GetJointActuatorIndices())
    data = data.assign(
        foot_force=(("time", "foot", "axis"), force, {"units": "N"}),
        input=(
            ("time", "input_name"),
            np.tile(found.x[:nu], (knots, 1)),
            {"units": "N m"},
        ),
    ).assign_coords(input_name=[motor.name() for motor in motors])
    return Result(
        kind="locomotion.plan",
        model=model.name,
        verdict=Verdict.SUCCESS,
        message="stands",
        data=data,
        residuals={},
        timings={},
        metrics={"periodic": True, "friction": friction},
        provenance=model_provenance(model, {}),
    )
