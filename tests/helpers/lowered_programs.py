"""Small programs to lower: a chain of Rosenbrock valleys and a one-legged hopper."""

import casadi as ca
import numpy as np

import drakebots
from drakebots import build_robot
from drakebots.multibody import Flat
from drakebots.trajopt.contact_implicit import (
    ContactImplicit,
    ContactSystem,
    Scales,
    Slack,
)
from drakebots.trajopt.program import Block, ProgramBuilder

_INERTIA = "<inertia ixx='0.01' iyy='0.01' izz='0.01' ixy='0' ixz='0' iyz='0'/>"
_LIMIT = "<limit lower='{}' upper='{}' effort='200' velocity='100'/>"


def _link(name, mass, more=""):
    return (
        f"<link name='{name}'><inertial><mass value='{mass}'/>{_INERTIA}</inertial>"
        f"{more}</link>"
    )


def _joint(name, kind, parent, child, axis, low, high):
    return (
        f"<joint name='{name}' type='{kind}'><parent link='{parent}'/>"
        f"<child link='{child}'/><axis xyz='{axis}'/>{_LIMIT.format(low, high)}</joint>"
    )


def _motor(joint):
    return (
        f"<transmission name='{joint}_t'><type>transmission_interface/"
        f"SimpleTransmission</type><joint name='{joint}'/>"
        f"<actuator name='{joint}'/></transmission>"
    )


HOPPER = "".join(
    [
        "<robot name='hopper'><link name='world'/>",
        _link("rail", 0.1),
        _link("body", 3.0),
        _link("hip_link", 0.2),
        _link(
            "foot",
            0.2,
            "<collision><geometry><sphere radius='0.03'/></geometry></collision>",
        ),
        _joint("x", "prismatic", "world", "rail", "1 0 0", -5, 5),
        _joint("z", "prismatic", "rail", "body", "0 0 1", 0, 2),
        _joint("hip", "revolute", "body", "hip_link", "0 1 0", -1, 1),
        _joint("leg", "prismatic", "hip_link", "foot", "0 0 -1", 0.3, 0.6),
        _motor("hip"),
        _motor("leg"),
        "</robot>",
    ]
)


def chain(count=5, *, scale=1.0):
    """sum_k (1 - a_k)^2 + 100 (b_k - a_k^2)^2, circles, coupled neighbours.

    Row group "sum" gathers what two neighbouring uses contribute; "order" is
    affine.
    """
    builder = ProgramBuilder("chain")
    x = builder.add_variables(
        "x", count, ("a", "b"), lower=-3, upper=3, scale=(scale, 2 * scale)
    )
    circle = builder.add_rows("circle", count, [""], upper=1.5, scale=2.0)
    both = builder.add_rows("sum", count - 1, ["p", "q"], lower=-2, upper=2)
    order = builder.add_rows("order", count - 1, [""], lower=-0.1, upper=0.1)
    w, d = ca.SX.sym("w", 2), ca.SX.sym("d")
    a, b = w[0], w[1]
    builder.add_cost(
        Block("rosenbrock", {"w": w}, {"cost": (1 - a) ** 2 + 100 * (b - a**2) ** 2}),
        {"w": x.indices},
    )
    block = Block(
        "node",
        {"w": w},
        {
            "circle": a**2 + b**2 - d,
            "left": ca.vertcat(ca.sin(a), a * b),
            "right": ca.vertcat(ca.exp(-b), b),
        },
        d,
    )
    none = np.full((1, 2), -1)
    builder.add_term(
        block,
        {"w": x.indices},
        {
            "circle": circle.indices,
            "left": np.vstack([both.indices, none]),
            "right": np.vstack([none, both.indices]),
        },
        signs={"right": -1.0},
        data=np.linspace(0, 0.2, count)[:, None],
    )
    b, c = ca.SX.sym("b"), ca.SX.sym("c")
    builder.add_term(
        Block("gap", {"b": b, "c": c}, {"gap": c - b + 0.01}),
        {"b": x.indices[:-1, 1:], "c": x.indices[1:, 1:]},
        {"gap": order.indices},
    )
    return builder.build()


def hopper(folder, *, knots=6, terrain=None, levels=None):
    """A planar hopper's step forward by 10 cm, and a guess."""
    path = folder / "hopper.urdf"
    path.write_text(f"<?xml version='1.0'?>{HOPPER}")
    robot = build_robot(drakebots.load(path), time_step=0, base="fixed")
    problem = ContactImplicit(
        ContactSystem(robot, terrain or Flat()),
        knots=knots,
        levels=levels,
        step=(0.05, 0.05),
        friction=0.8,
        input_bounds=(-150.0, 150.0),
        slack=Slack(1e-6, 10.0),
        scales=Scales(force=30.0, input=30.0, momentum=2.0),
    )
    builder = problem.builder()
    start = np.array([0.0, 0.53, 0.0, 0.5])
    goal = np.array([0.1, 0.53, 0.0, 0.5])
    q = builder["q"]
    q.lower[0] = q.upper[0] = start
    q.lower[-1, 0] = q.upper[-1, 0] = goal[0]
    builder["v0"].lower[:] = builder["v0"].upper[:] = 0.0
    builder.running_cost(lambda q, v, u: 1e-3 * ca.sumsqr(u) + 0.1 * ca.sumsqr(v))
    program = builder.build()
    share = np.linspace(0, 1, knots)[:, None]
    weight = 3.5 * 9.81
    guess = program.pack(
        {
            "h": 0.05,
            "q": start + share * (goal - start),
            "u": [0.0, weight],
            "gam": weight,
            "s": 1.0,
        }
    )
    return program, guess
