"""Baselines of control: they hold a robot, by plans and samples that make sense."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from drakebots import load
from drakebots.robots.legged import Control, Mpc, Rigid, control
from drakebots.robots.legged.control import Run
from tests.helpers.scripts import load_script

planned, sampling, tracking = load_script(
    "control_baselines", "planned", "sampling", "tracking"
)


@pytest.mark.parametrize("controller", [tracking, partial(sampling, budget=0.5)])
def test_baselines_hold_a_standing_robot(controller):
    """Over 0.3 s, at the standing pose, with the same face."""
    problem = Control(
        load("mini_cheetah"),
        controller=Mpc(period=0.05),
        plant=Rigid(time_step=2e-3),
        duration=0.3,
    )
    done = control(problem, controller=controller)
    assert done.ok and done.metrics["tilt_max_deg"] < 3
    assert done.metrics["solves"] > 5
    assert "horizon" not in done.data


def test_loads_of_a_plan_made_once_are_the_weight():
    """Vertical forces sum to m g, and the motors' efforts hold body and loads."""
    run = Run(Control(load("mini_cheetah"), gait="trot"), tracking)
    plan = planned(run.own, run.reference, 0.5)
    weight = 9.81 * run.model.summary.mass
    assert plan.force[:, :, 2].sum(axis=1) == pytest.approx(weight)
    plant, context = run.own.plant, run.own.plant.CreateDefaultContext()
    plant.SetPositions(context, plan.q[7])
    rest = plant.CalcGravityGeneralizedForces(context)
    rest += run.own.feet_jacobian(context).T @ plan.force[7].ravel()
    rest += plant.MakeActuationMatrix() @ plan.input[7]
    assert np.abs(rest[6:]).max() < 1e-9
    assert abs(rest[2]) < 1e-9  # the base's height


def test_samples_prefer_what_holds():
    """A change of the servos' targets by half a radian costs more than none."""
    run = Run(Control(load("mini_cheetah")), sampling)
    planner, q = run.controller, run.reference.q
    v = np.zeros(run.own.plant.num_velocities())
    wanted = run.reference.sample(np.append(0.0, planner._after), q)
    none = np.zeros_like(planner._change)
    cost = planner._cost(q, v, wanted, none)
    assert np.isfinite(cost) and cost == planner._cost(q, v, wanted, none)
    bent = none.copy()
    bent[:, 2] = 0.5
    assert planner._cost(q, v, wanted, bent) > 2 * cost
