"""A body that lands while it slides: what contact models take off its speed.

python scripts/bench/landing.py            # a minute
python scripts/bench/landing.py --quick    # steps of 1 and 0.1 ms

A mass that cannot turn comes down at 1 m/s and ahead at 1 m/s, without gravity. By
Coulomb's law the impulse of friction over that of the ground is mu = 0.225 as long as
it slides, and an inelastic ground leaves no speed upward. Drake's approximations of
contact on three grounds, and our hard contact; the worst of four phases of a step at
which it touches. Drake's `lagged` bounds
friction by the normal force of the step before; the formula that is beside it is

    1 + h^2 k/m (1 + d v)    times mu, until the body stands

with time step h, stiffness k, dissipation d, mass m and speed of the fall v.

JSON: lagged_ratio_1ms, lagged_over_formula, hard_off_coulomb, rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from measurement import Measurement, figure
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots import Ground, build_robot, load
from drakebots.cli.output import one_line_errors, print_rows
from drakebots.control import stiff_ground
from drakebots.core.units import GRAVITY
from drakebots.model import Model, Point
from drakebots.multibody import Flat, TimeStepper, add_soles

MASS, FRICTION = 0.37, 0.225  # kg
VELOCITY = np.array([1.0, 0, -1.0])  # m/s
HEIGHT = 0.0524  # of the centre of mass on the ground that is stiff for it [m]
DRAKES = 5e5, 50.0  # stiffness and dissipation of its defaults, of two in series
FALL = 0.02  # m
PHASES = (0.05, 0.35, 0.65, 0.95)  # of a step, at which it touches
AFTER = 0.04  # s
APPROXIMATIONS = ("lagged", "similar", "sap", "tamsi")
BODY = f"""<robot name="puck"><link name="puck"><inertial><mass value="{MASS}"/>
<inertia ixx="1e6" ixy="0" ixz="0" iyy="1e6" iyz="0" izz="1e6"/></inertial></link>
</robot>"""


def puck() -> Model:
    """A mass that stands on one point and cannot be turned."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "puck.urdf"
        path.write_text(BODY)
        return replace(
            load(path), text=BODY, feet=(Point("foot", "puck", np.zeros(3)),)
        )


def grounds(model: Model) -> dict[str, tuple[Ground, float, float]]:
    """Grounds by name with stiffness [N/m] and dissipation [s/m] of their contact, of
    soles that are as stiff."""
    ours = stiff_ground(model, HEIGHT, FRICTION, GRAVITY, Flat())
    soft = Ground(FRICTION, stiffness=31e3, dissipation=1.3)
    return {
        "Drake's defaults": (Ground(FRICTION), *DRAKES),
        "stiff_ground": (ours, ours.stiffness / 2, ours.dissipation),
        "15.5 kN/m, 1.3 s/m": (soft, soft.stiffness / 2, soft.dissipation),
    }


def figures(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Impulse of friction over that of the ground, and the speed upward [m/s], of
    velocities (3,) [m/s]."""
    return float((before[0] - after[0]) / (after[2] - before[2])), float(after[2])


def in_drake(model: Model, ground: Ground, contact: str, h: float, height: float):
    """The two figures of a landing from a height [m] in steps of h [s]."""

    def prepare(plant) -> None:
        plant.mutable_gravity_field().set_gravity_vector([0, 0, 0])
        add_soles(plant, model.feet, ground.material())

    builder = DiagramBuilder()
    robot = build_robot(
        model, builder, time_step=h, ground=ground, contact=contact, prepare=prepare
    )
    simulator = Simulator(builder.Build())
    root, plant = simulator.get_mutable_context(), robot.plant
    context = plant.GetMyMutableContextFromRoot(root)
    plant.SetPositions(context, [1, 0, 0, 0, 0, 0, height])
    plant.SetVelocities(context, [0, 0, 0, *VELOCITY])
    simulator.AdvanceTo(height / -VELOCITY[2] + AFTER)
    return figures(VELOCITY, plant.GetVelocities(context)[3:])


def in_hard_contact(model: Model, h: float, height: float) -> tuple[float, float]:
    """The same by our time stepping."""

    def prepare(plant) -> None:
        plant.mutable_gravity_field().set_gravity_vector([0, 0, 0])

    robot = build_robot(model, time_step=0, prepare=prepare)
    stepper = TimeStepper(robot, h, friction=FRICTION)
    q, v = np.array([1.0, 0, 0, 0, 0, 0, height]), np.r_[0, 0, 0, VELOCITY]
    for _ in range(round((height / -VELOCITY[2] + AFTER) / h)):
        q, v, _ = stepper.step(q, v, np.zeros(0))
    return figures(VELOCITY, v[3:])


def worst(landing: Callable[[float], tuple[float, float]], h: float) -> dict:
    """The largest of both figures of landings from a height [m], over the phases."""
    heights = FALL - np.array(PHASES) * h * VELOCITY[2]
    ratio, bounce = np.max([landing(z) for z in heights], axis=0)
    return {"ratio": float(ratio), "bounce_m_s": float(bounce)}


def main(argv: Sequence[str] | None = None) -> dict:
    """Lets it land; prints a table and one JSON object, returns it."""
    parser = Measurement(__doc__, quick="steps of 1 and 0.1 ms")
    args = parser.parse_args(argv)
    model, rows = puck(), []
    steps = (1e-3, 1e-4) if args.quick else (1e-3, 1e-4, 1e-5)
    for h in steps[:2]:
        found = worst(partial(in_hard_contact, model, h), h)
        rows.append({"ground": "hard", "contact": "stepping", "h_ms": 1e3 * h} | found)
    off = max(abs(row["ratio"] / FRICTION - 1) for row in rows)
    formula = []
    for name, (ground, k, d) in grounds(model).items():
        for h in steps:
            bound = FRICTION * (1 + h**2 * k / MASS * (1 - d * VELOCITY[2]))
            for contact in APPROXIMATIONS:
                found = worst(partial(in_drake, model, ground, contact, h), h)
                row = {"ground": name, "contact": contact, "h_ms": 1e3 * h} | found
                if contact == "lagged":
                    row["formula"] = bound
                    # Where it stands before, the formula says no more.
                    if bound < -VELOCITY[0] / VELOCITY[2]:
                        formula.append(found["ratio"] / bound - 1)
                rows.append(row)
    print_rows("a landing at 1 m/s down and 1 m/s ahead", rows)
    first = next(row for row in rows if row["contact"] == "lagged")
    return parser.report(
        {
            "lagged_ratio_1ms": figure(first["ratio"], target=FRICTION),
            "lagged_over_formula": figure(max(formula)),
            "hard_off_coulomb": figure(off),
            "rows": rows,
        }
    )


if __name__ == "__main__":
    with one_line_errors("landing"):
        main()
