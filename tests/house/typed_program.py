"""What a user writes, for the type checker: it is checked and not run.

Each line with `assert_type` says what a public name gives. `make types` checks it with
the faces, and `.ci/run` again, strictly, against the installed wheel, as a user's own
type checker would.
"""

from pathlib import Path
from typing import assert_type

import xarray as xr
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import DiagramBuilder

from drakebots import (
    Ground,
    InvalidInput,
    Model,
    Result,
    Robot,
    build_robot,
    gecko,
    hamr,
    load,
    load_result,
    plan,
    plot,
    quads,
    record,
    simulate,
    stored_plan,
    track,
    voxels,
)
from drakebots.core.run import Verdict
from drakebots.fem import ImplicitEuler, at_rest
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.material import SILICONE
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.lattice.shape import Lattice, block
from drakebots.multibody import Posture, find_posture
from drakebots.robots import legged
from drakebots.skin import SkinSimulation, simulate_skinned
from drakebots.trajopt.locomotion import (
    LocomotionProblem,
    Walk,
    mathematical_program,
    plan_locomotion,
)
from drakebots.trajopt.solvers import ExactIpoptSolver
from drakebots.view import Stage


def results(path: Path) -> None:
    result = hamr.simulate(hamr.Simulation(gait="trot", frequency=10, surface="card"))
    assert_type(result, Result)
    assert_type(result.verdict, Verdict)
    assert_type(result.ok, bool)
    assert_type(result.data, xr.Dataset)
    assert_type(result.save(path), Path)
    assert_type(load_result(path), Result)
    assert_type(plot(result, path), Path)
    assert_type(record(result), Stage)
    assert_type(record(result).save(path), Path)


def robots() -> None:
    planned = hamr.plan(hamr.GaitProblem(frequency=10, surface="card"))
    assert_type(planned, Result)
    assert_type(hamr.track(hamr.Tracking(planned, cycles=15)), Result)
    assert_type(stored_plan("hamr:30hz_card"), Result)
    assert_type(gecko.simulate(gecko.Simulation(epsilon=0.1)), Result)
    assert_type(quads.plan(quads.Problem(model="beetle", motion="walk")), Result)
    assert_type(quads.track(quads.Tracking(planned)), Result)
    assert_type(voxels.plan(voxels.Problem([voxels.Target("foot", "x", 5e-3)])), Result)
    assert_type(simulate_skinned(SkinSimulation(model="skinned_leg")), Result)
    assert_type(simulate(object()), Result)
    assert_type(plan(object()), Result)
    assert_type(track(planned), Result)


def a_model_of_ones_own() -> None:
    model = load("my_robot.urdf")
    assert_type(model, Model)
    assert_type(find_posture(model), Posture)
    robot = build_robot(model, DiagramBuilder(), time_step=1e-3, ground=Ground(0.6))
    assert_type(robot, Robot)
    assert_type(robot.plant, MultibodyPlant)
    assert_type(legged.simulate(legged.Simulation(model, duration=2.0)), Result)
    problem = LocomotionProblem(model, Walk(forward=0.3))
    walk = plan_locomotion(problem)
    assert_type(walk, Result)
    assert_type(legged.track(legged.Tracking(walk, cycles=5)), Result)
    program = mathematical_program(problem)
    assert_type(program.plan(ExactIpoptSolver().Solve(program.prog)), Result)


def below() -> None:
    mesh = box_mesh((0.04, 0.04, 0.2), (2, 2, 10))
    assert_type(mesh, TetMesh)
    model = build_model(mesh, SILICONE)
    assert_type(model, FemModel)
    ImplicitEuler(model, 5e-3).step(at_rest(model))
    assert_type(block(2, 2, 2), Lattice)
    raise InvalidInput("a message")
