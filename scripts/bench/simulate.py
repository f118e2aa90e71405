"""Cost of our Python systems: HAMR with contact beside the bare Drake diagram.

python scripts/bench/simulate.py
python scripts/bench/simulate.py --quick

Both run the same trot at dt = 0.1 ms in this process, in turns. The bare
diagram is the same plant with the same contact and the same logger of the
state, its actuators driven by a C++ trajectory source that plays the forces
the first run recorded.

JSON: system_overhead_ratio, wall_s_per_simulated_s, leg_map_s.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np
from measurement import Measurement, figure
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import LogVectorOutput, TrajectorySource
from pydrake.trajectories import PiecewisePolynomial

from drakebots import build_robot, load
from drakebots.cli.output import print_table
from drakebots.core.units import MM_G_MS
from drakebots.robots.hamr import Simulation, build, hamr_ground
from drakebots.robots.hamr.track import build_leg_map

TARGET = 1.3


def bare_diagram(times: np.ndarray, forces: np.ndarray, time_step: float):
    """The plant alone, driven by recorded forces (T, 8) at times [ms]."""
    builder = DiagramBuilder()
    robot = build_robot(
        load("hamr"),
        builder,
        time_step=time_step,
        scaling=MM_G_MS,
        ground=hamr_ground(0.51),
    )
    source = builder.AddSystem(
        TrajectorySource(PiecewisePolynomial.FirstOrderHold(times, forces.T))
    )
    plant = robot.plant
    builder.Connect(source.get_output_port(), plant.get_actuation_input_port())
    LogVectorOutput(plant.get_state_output_port(), builder, publish_period=0.5)
    return builder.Build(), robot


def seconds(diagram, place, duration: float) -> float:
    """Wall seconds to simulate `duration` [ms] from the start pose."""
    simulator = Simulator(diagram)
    place(simulator.get_mutable_context())
    simulator.Initialize()
    start = time.perf_counter()
    simulator.AdvanceTo(duration)
    return time.perf_counter() - start


def clocked_leg_map() -> float:
    """Wall seconds to tabulate the legs' kinematics for the estimator."""
    model = load("hamr")
    start = time.perf_counter()
    build_leg_map(model)
    return time.perf_counter() - start


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="0.1 s, one round")
    args = parser.parse_args(argv)
    duration, rounds = (100.0, 1) if args.quick else (500.0, 5)
    problem = Simulation(log_period=5e-4)
    ours = build(problem)
    # Forces at every step, once, for the bare diagram to play.
    fine = build(Simulation(log_period=problem.time_step))
    simulator = Simulator(fine.diagram)
    fine.place(simulator.get_mutable_context())
    simulator.AdvanceTo(duration)
    times, forces = fine.logged(simulator.get_context(), "actuation")
    bare, robot = bare_diagram(times, forces, problem.time_step)

    def place(context):
        robot.set_base_pose(
            robot.plant.GetMyMutableContextFromRoot(context),
            RigidTransform([0, 0, 0.01269]),
        )

    pairs = [
        (
            seconds(ours.diagram, ours.place, duration),
            seconds(bare, place, duration),
        )
        for _ in range(rounds)
    ]
    simulated = duration * 1e-3
    leg_map = clocked_leg_map()
    ratio = statistics.median(a / b for a, b in pairs)
    with_systems = statistics.median(a for a, _ in pairs) / simulated
    plant_only = statistics.median(b for _, b in pairs) / simulated
    print_table(
        f"HAMR trot with contact, dt = 0.1 ms, median of {rounds}",
        {
            "with our systems [wall s / simulated s]": with_systems,
            "bare Drake diagram [wall s / simulated s]": plant_only,
            "ratio": ratio,
            "the estimator's table of the legs [s]": leg_map,
        },
    )
    result = {
        "system_overhead_ratio": figure(ratio, "1", TARGET),
        "wall_s_per_simulated_s": figure(with_systems),
        "leg_map_s": figure(leg_map, "s", 5.0),
    }
    return parser.report(result)


if __name__ == "__main__":
    main()
