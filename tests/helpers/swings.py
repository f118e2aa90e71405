"""A pendulum, and measurements of one whose parameters are others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drakebots.core.files import write_csv
from drakebots.formats import load
from drakebots.model import Model
from drakebots.multibody import TimeStepper, build_robot
from tests.helpers.robot_files import write

LINK = """<link name="{}"><inertial><origin xyz="0 0 {}"/><mass value="{}"/>
<inertia ixx="{}" iyy="{}" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>
<origin xyz="0 0 {}"/><axis xyz="0 1 0"/><dynamics damping="{}"/>
<limit lower="-9" upper="9" effort="20" velocity="99"/></joint>"""
PENDULUM = "\n".join(
    [
        '<robot name="pendulum"><link name="world"/>',
        JOINT.format("hip", "revolute", "world", "thigh", 0.5, 0.1),
        LINK.format("thigh", -0.1, 1.0, 0.01, 0.01),
        JOINT.format("mount", "fixed", "thigh", "load", -0.1, 0),
        LINK.format("load", 0.0, 0.3, 0.002, 0.002),
        JOINT.format("wall", "fixed", "world", "brick", 0, 0),
        LINK.format("brick", 0.0, 2.0, 0.01, 0.01),
        "</robot>",
    ]
)
STEP, SAMPLE = 2.5e-4, 5e-3
EFFORT = 20.0


def pendulum_in(folder: Path) -> Model:
    """A driven pendulum that carries a load, and a brick bolted to the world."""
    return load(write(folder, PENDULUM, "pendulum.urdf"), actuate="all", effort=EFFORT)


def swing(
    model: Model,
    path: Path,
    *,
    noise: float = 0.01,
    seed: int = 0,
    duration: float = 0.6,
    servo: tuple[float, float] | None = None,
    **values: float,
) -> Path:
    """Writes measurements of a pendulum with other parameters, driven by a torque or by
    a servo of this stiffness and damping, up to its limit of effort."""
    named = {name.replace("_", ":"): value for name, value in values.items()}
    moved = load(model.path, actuate="all", effort=EFFORT, parameters=named)
    stepper = TimeStepper(build_robot(moved, base="fixed"), STEP)
    q, v, rows = np.array([0.4]), np.zeros(1), []
    for k in range(round(duration / STEP) + 1):
        u = drive = np.array([2.0 * np.sin(30 * STEP * k)])
        if servo is not None:
            u = np.clip(servo[0] * (drive - q) - servo[1] * v, -EFFORT, EFFORT)
        rows.append([STEP * k, *q, *drive])
        q, v, _ = stepper.step(q, v, u)
    rows = np.array(rows)[:: round(SAMPLE / STEP)]
    rng = np.random.default_rng(seed)
    rows[:, 1] += noise * rows[:, 1].std() * rng.normal(size=len(rows))
    drive = "torque.hip [N m]" if servo is None else "target.hip [rad]"
    heads = ["time [s]", "position.hip [rad]", drive]
    return write_csv(path, heads, rows)
