"""Programs of motions as Drake's MathematicalProgram, with costs of one's own.

The walk of a quadruped's file is one call away; its trunk is then kept lower and
steadier by a constraint and a cost in Drake's symbols, for which exact Hessians hold.

A planar hopper (two slides, a hip and a leg that extends) shows what is below: a
contact-implicit program of one's own, lowered. It moves 10 cm forward on flat ground,
and the program itself decides when its foot pushes. The same MathematicalProgram is
solved by our IPOPT with exact sparse Hessians and by Drake's SNOPT; then a linear
constraint of Drake's is added to it, and it is solved again.

    python examples/mathematical_program.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import casadi as ca
import numpy as np
from pydrake.solvers import SnoptSolver
from pydrake.symbolic import sin

from drakebots import build_robot, load
from drakebots.multibody import Flat
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    ContactSystem,
    Scales,
    Slack,
)
from drakebots.trajopt.locomotion import LocomotionProblem, Walk, mathematical_program
from drakebots.trajopt.program import Program
from drakebots.trajopt.solvers import ExactIpoptSolver, lower

INERTIA = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
LINK = '<link name="{}"><inertial><mass value="{}"/>' + INERTIA + "</inertial>{}</link>"
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>'
    '<axis xyz="{4}"/><limit lower="{5}" upper="{6}" effort="200" velocity="100"/>'
    "</joint>"
)
MOTOR = (
    '<transmission name="{0}_drive"><type>SimpleTransmission</type>'
    '<joint name="{0}"/><actuator name="{0}"/></transmission>'
)
FOOT = '<collision><geometry><sphere radius="0.03"/></geometry></collision>'
HOPPER = "".join(
    [
        '<robot name="hopper"><link name="world"/>',
        LINK.format("rail", 0.1, ""),
        LINK.format("body", 3.0, ""),
        LINK.format("hip_link", 0.2, ""),
        LINK.format("foot", 0.2, FOOT),
        JOINT.format("x", "prismatic", "world", "rail", "1 0 0", -5, 5),
        JOINT.format("z", "prismatic", "rail", "body", "0 0 1", 0, 2),
        JOINT.format("hip", "revolute", "body", "hip_link", "0 1 0", -1, 1),
        JOINT.format("leg", "prismatic", "hip_link", "foot", "0 0 -1", 0.3, 0.6),
        MOTOR.format("hip") + MOTOR.format("leg") + "</robot>",
    ]
)

KNOTS, STEP, DISTANCE = 4, 0.05, 0.1
START = np.array([0.0, 0.53, 0.0, 0.5])
"""Positions x, z [m], hip [rad] and leg [m] at the start: the foot touches."""


def hopper_program(folder: Path) -> tuple[Program, np.ndarray]:
    """The program of the motion, and a first guess."""
    path = folder / "hopper.urdf"
    path.write_text(HOPPER)
    robot = build_robot(load(path), time_step=0, base="fixed")
    problem = ContactImplicit(
        ContactSystem(robot, Flat()),
        knots=KNOTS,
        step=(STEP, STEP),
        friction=0.8,
        input_bounds=(-150.0, 150.0),
        slack=Slack(1e-6, 10.0),
        scales=Scales(force=30.0, input=30.0, momentum=2.0),
    )
    b = problem.builder()
    b.bound("q", 0, START, START)
    b.bound("q", -1, DISTANCE, DISTANCE, labels=["x"])
    b.bound("v0", 0, 0.0, 0.0)
    b.running_cost(lambda q, v, u: 1e-3 * ca.sumsqr(u) + 0.1 * ca.sumsqr(v))
    program = b.build()
    weight = robot.model.summary.mass * 9.81
    q = START + np.linspace(0, 1, KNOTS)[:, None] * [DISTANCE, 0, 0, 0]
    guess = {"h": STEP, "q": q, "u": [0.0, weight], "gam": weight, "s": 1.0}
    return program, program.pack(guess)


def lower_walk() -> dict[str, float]:
    """The walk of my_robot.urdf, then with its trunk 4 mm lower and steadier."""
    model = Path(__file__).parent / "my_robot.urdf"
    program = mathematical_program(LocomotionProblem(model, Walk(forward=0.3)))
    prog, solver = program.prog, ExactIpoptSolver()
    result = solver.Solve(prog)
    assert program.plan(result).ok
    most = program.values(result, "q.trunk_z").max() - 0.004  # [m]

    for height in program["q.trunk_z"]:
        prog.AddConstraint(height <= most)
    for pitch in program["q.trunk_pitch"]:
        prog.AddCost(2 * sin(pitch) ** 2)
    steady = solver.Solve(prog, result.get_x_val())
    assert steady.is_success()
    assert program.values(steady, "q.trunk_z").max() <= most + 1e-6
    pitches = [np.abs(program.values(r, "q.trunk_pitch")) for r in (result, steady)]
    assert pitches[1].max() < pitches[0].max()
    assert program.plan(steady).ok
    costs = {"walk": result.get_optimal_cost(), "steady": steady.get_optimal_cost()}
    print(f"walk:           cost {costs['walk']:.6f}")
    print(f"steadier walk:  cost {costs['steady']:.6f}, with the cost of pitch")
    return costs


def hop_ahead() -> dict[str, float]:
    """Solves the hopper's program; prints and returns its costs."""
    with tempfile.TemporaryDirectory() as folder:
        program, guess = hopper_program(Path(folder))

    lowered = lower(program)
    result = ExactIpoptSolver().Solve(lowered.prog, guess)
    parts = program.view(result.get_x_val())

    assert result.is_success()
    assert not result.GetInfeasibleConstraintNames(lowered.prog, 1e-5)
    assert max(program.residuals(result.get_x_val()).values()) < 1e-6
    assert abs(parts["q"][-1, 0] - DISTANCE) < 1e-9
    cost = result.get_optimal_cost()
    assert abs(cost - 0.217327) < 1e-5
    print(f"exact Hessians: cost {cost:.6f}, {result.get_solver_details().status}")

    # SNOPT, which has no second derivatives, stays at this optimum.
    other = SnoptSolver().Solve(lowered.prog, 1.001 * result.get_x_val())
    assert other.is_success()
    assert abs(other.get_optimal_cost() - cost) < 1e-3 * cost
    print(f"Drake's SNOPT:  cost {other.get_optimal_cost():.6f}")

    # The MathematicalProgram takes more: here the leg's force may not exceed 90 % of
    # its largest value so far. Exact Hessians remain.
    leg = lowered.view()["u"][:, 1]
    most = 0.9 * parts["u"][:, 1].max()
    lowered.prog.AddLinearConstraint(
        np.eye(len(leg)), np.full(len(leg), -np.inf), np.full(len(leg), most), leg
    )
    limited = ExactIpoptSolver().Solve(lowered.prog, result.get_x_val())
    assert limited.is_success()
    assert limited.GetSolution(leg).max() <= most + 1e-6
    assert limited.get_optimal_cost() > cost
    print(f"weaker leg:     cost {limited.get_optimal_cost():.6f}")
    return {
        "exact": cost,
        "snopt": other.get_optimal_cost(),
        "limited": limited.get_optimal_cost(),
    }


def main() -> dict[str, float]:
    """Runs both parts; returns the costs of all solutions."""
    return lower_walk() | hop_ahead()


if __name__ == "__main__":
    main()
