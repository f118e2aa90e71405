"""HAMR's 10 Hz trot on card under several contact models, beside hard contact.

python scripts/bench/contact.py            # all models of contact
python scripts/bench/contact.py --quick

Stride, duty factors, and the largest loop gap (docs/evidence/hamr.md): hard contact by
our time stepping, and Drake's approximations of contact with its defaults and on the
ground that is used, in mm-g-ms and in SI.

JSON: trot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from measurement import Measurement, figure
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import LogVectorOutput

from drakebots import Ground, build_robot, load
from drakebots.cli.output import print_table
from drakebots.core.units import GRAVITY, MM_G_MS, SI, Scaling
from drakebots.multibody import CONTACT, TimeStepper, trajectory_dataset
from drakebots.robots.hamr import GaitSource, hamr_ground, make_waveform
from drakebots.robots.hamr.model import PiezoDrive, hamr_benders, parameters

USED = "1e4 N/m, 500 s/m"
"""The ground that is used."""

WEIGHT_SHARE = 0.01
"""A foot that carries this share of the weight stands."""


def trot_in_drake(
    ground: Ground, contact: str, seconds: float, scaling: Scaling = MM_G_MS
) -> dict:
    """Stride [mm] and duty factors of the trot in a Drake diagram."""
    waveform = make_waveform("trot", 10.0)
    builder = DiagramBuilder()
    robot = build_robot(
        load("hamr"),
        builder,
        time_step=1e-4,
        scaling=scaling,
        ground=ground,
        contact=contact,
    )
    plant = robot.plant
    source = builder.AddSystem(GaitSource(waveform, robot.scaling.time))
    drive = builder.AddSystem(PiezoDrive(robot.plant, robot.scaling))
    builder.Connect(source.get_output_port(), drive.GetInputPort("voltages"))
    builder.Connect(plant.get_state_output_port(), drive.GetInputPort("state"))
    builder.Connect(drive.get_output_port(), plant.get_actuation_input_port())
    instance = plant.GetModelInstanceByName("hamr")
    ports = (
        plant.get_state_output_port(),
        plant.get_generalized_contact_forces_output_port(instance),
    )
    period = 5e-4 / scaling.time
    logs = [LogVectorOutput(port, builder, publish_period=period) for port in ports]
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = simulator.get_mutable_context()
    robot.set_base_pose(
        plant.GetMyMutableContextFromRoot(context),
        RigidTransform([0, 0, parameters().number("stance")]),
    )
    start = time.perf_counter()
    simulator.AdvanceTo(seconds / robot.scaling.time)
    wall = time.perf_counter() - start
    state, force = (log.FindLog(context) for log in logs)
    data = trajectory_dataset(
        robot, state.sample_times(), state.data().T, force.data().T
    )
    x = data.base_position.sel(axis="x").values
    normal = data.foot_force.sel(axis="z").values
    return _gait_figures(data.time.values, x, normal) | {
        "loop_gap_mm": 1e3 * float(data.loop_gap.max()),
        "wall_s": wall,
    }


def trot_in_hard_contact(step: float, seconds: float) -> dict:
    """The same under our time stepping, `step` in ms."""
    robot = build_robot(load("hamr"), scaling=MM_G_MS, base="euler", time_step=0)
    stepper = TimeStepper(robot, step, friction=0.51)
    law, waveform = hamr_benders(), make_waveform("trot", 10.0)
    height = parameters().number("stance")
    robot.set_base_pose(stepper.context, RigidTransform([0, 0, height]))
    q = robot.plant.GetPositions(stepper.context).copy()
    v = np.zeros(robot.plant.num_velocities())
    tips = np.argmax(stepper.actuation, axis=0)
    moments, x, normal = [], [], []
    for k in range(round(1e3 * seconds / step)):
        u = law.force(waveform.voltages(k * step * 1e-3), 1e-3 * q[tips])
        q, v, forces = stepper.step(q, v, u)
        moments.append(1e-3 * (k + 1) * step)
        x.append(1e-3 * q[0])
        normal.append(forces.normal)
    return _gait_figures(np.array(moments), np.array(x), np.array(normal))


def _gait_figures(times, x, normal) -> dict:
    after = times >= 0.2
    weight = load("hamr").summary.mass * GRAVITY
    marks = np.interp(np.arange(0.2, times[-1] + 1e-6, 0.1), times, x)
    duty = (normal[after] > WEIGHT_SHARE * weight).mean(axis=0)
    return {
        "stride_mm": 1e3 * float(np.diff(marks).mean()),
        "duty_factors": duty.round(2).tolist(),
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the study; prints a table and one JSON object, returns it."""
    parser = Measurement(__doc__, quick="shorter runs, fewer")
    args = parser.parse_args(argv)
    seconds = 0.32 if args.quick else 0.7
    used = hamr_ground(0.51)
    rows = {"hard contact, dt 0.1 ms": trot_in_hard_contact(0.1, seconds)}
    if not args.quick:
        rows["hard contact, dt 0.05 ms"] = trot_in_hard_contact(0.05, seconds)
        for name, ground in (("Drake's defaults", Ground(0.51)), (USED, used)):
            for contact in ("lagged", "sap", "similar"):
                rows[f"{contact}, {name}"] = trot_in_drake(ground, contact, seconds)
        rows[f"{CONTACT}, {USED}, in SI"] = trot_in_drake(used, CONTACT, seconds, SI)
    else:
        rows[f"{CONTACT}, {USED}"] = trot_in_drake(used, CONTACT, seconds)
    print_table("HAMR, 10 Hz trot on card", rows)
    result = {"trot": figure(rows, "mm, 1, s")}
    return parser.report(result)


if __name__ == "__main__":
    main()
