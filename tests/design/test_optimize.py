"""The gradient of a design's torques, and the smallest change that meets a target."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.design import SkinResponse, optimize, redesigned, table1_problem
from drakebots.design.optimize import _Search, _Tried, least_change
from drakebots.design.skeleton import edit
from drakebots.design.variables import design_variables, shore_a, wall_velocity
from tests.helpers.robot_fields import coarse_beetle


@pytest.mark.long
def test_stiffness_by_the_wall_is_that_of_solving_again():
    """U' dA U against differences of whole factorizations of moved meshes."""
    design = coarse_beetle()
    joints = tuple(hinge.name for hinge in design.skeleton.hinges)
    here, h, sides, again = SkinResponse(design, joints), 2e-6, [], []
    mesh, move = design.shell.mesh, wall_velocity(design)
    for sign in (1, -1):
        x = mesh.vertices + sign * h * move
        sides.append(here.moved(x)[0])
        shell = replace(design.shell, mesh=replace(mesh, vertices=x))
        again.append(SkinResponse(replace(design, shell=shell), joints).moved()[0])
    found, exact = ((a - b) / (2 * h) for a, b in (sides, again))
    assert np.abs(np.diag(exact)).min() > 1
    np.testing.assert_allclose(found, exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.long
def test_stiffness_by_the_length_of_a_link_is_that_of_solving_again():
    design = coarse_beetle()
    joints = tuple(hinge.name for hinge in design.skeleton.hinges)
    here, sides, again = SkinResponse(design, joints), [], []
    x0, length = design.shell.mesh.vertices, design.template.front.upper
    for h in (1e-6, -1e-6):
        template = edit(design.template, {"front.upper": length + h})
        skeleton = template.skeleton()
        x = x0 + here.extended(here.carried(design.template.skeleton(), skeleton))
        sides.append(here.moved(x, skeleton)[0])
        shell = replace(design.shell, mesh=replace(design.shell.mesh, vertices=x))
        moved = replace(design, shell=shell, skeleton=skeleton)
        again.append(SkinResponse(moved, joints).moved()[0])
    found, exact = ((a - b) / 2e-6 for a, b in (sides, again))
    np.testing.assert_allclose(found, exact, atol=1e-4 * np.abs(exact).max())


def test_least_change_is_the_projection_onto_the_target():
    """Without bounds y = y_0 - gain g/|g|^2; within them, as much as they allow."""
    g, start = np.array([2.0, -1.0, 0.0]), np.array([0.5, 0.5, 0.5])
    wide = -np.ones(3), 2 * np.ones(3)
    found = least_change(g, 0.5, start, *wide, 1.0)
    np.testing.assert_allclose(found, start - 0.5 * g / (g @ g), atol=1e-9)
    narrow = least_change(g, 50.0, start, *wide, 0.1)
    np.testing.assert_allclose(narrow, [0.4, 0.6, 0.5])


def test_design_variables_start_within_what_can_be_made():
    problem = table1_problem("beetle")
    names = {variable.name: variable for variable in design_variables(problem)}
    assert {"wall", "modulus", "fold depth", "front.upper", "hind.lower"} <= set(names)
    assert shore_a(20) == pytest.approx(0.73e6, rel=0.01)  # data sheets' A20
    with pytest.raises(InvalidInput, match=r"wall of 0\.009 m"):
        design_variables(redesigned(problem, {"wall": 0.009}))
    with pytest.raises(InvalidInput, match="reduction"):
        optimize(problem, "nowhere", _Planner(True), reduction=20.0)


class _Model:
    """A model that is right: the rms torque is 0.8 + 0.4 (wall - 4 mm)/range."""

    gain = 0.4

    def __init__(self, plan):
        self.base = float(plan.data.torque.values[1, 0])

    def slope(self, variable):
        return self.gain if variable.name == "wall" else 0.0

    def of_design(self, design, path):
        return _torque(design)


def _torque(wall):
    return 0.8 + _Model.gain * (wall - 4e-3) / 3e-3


class _Planner:
    """A planner whose plans need what the model says, or always the same."""

    def __init__(self, reaches):
        self.reaches, self.walls = reaches, []

    def plan(self, model, stored, progress):
        wall = float(model.parent.joinpath("wall").read_text())
        self.walls.append(wall)
        value = _torque(wall) if self.reaches else 0.8
        torque = SimpleNamespace(values=np.array([[0.0], [value]]))
        return SimpleNamespace(ok=True, message="", data=SimpleNamespace(torque=torque))

    def replay(self, plan, model, progress):
        return SimpleNamespace(verdict="success", message="", save=lambda path: None)

    def model(self, design, model, plan, folder):
        return _Model(plan)


@pytest.mark.parametrize("reaches, reduction", [(True, 0.2), (True, 0.1), (False, 0.2)])
def test_search_succeeds_only_where_the_plan_needs_less(
    monkeypatch, tmp_path, reaches, reduction
):
    """The verdict is that of plan and replay, whatever the model says."""

    def design(search, values, name):
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        place.joinpath("wall").write_text(str(values["wall"]))
        return _Tried(values["wall"], place / "robot.sdf", values)

    monkeypatch.setattr(_Search, "design", design)
    planner = _Planner(reaches)
    found = optimize(table1_problem("beetle"), tmp_path, planner, reduction=reduction)
    assert planner.walls[0] == 4e-3
    assert (found.verdict == "success") is reaches
    if reaches:
        least = (1 - reduction) * found.rms[0]
        assert 0.9 * least < found.rms[1] <= least
        assert found.values["wall"] < 4e-3
    else:
        assert found.run is None
        assert found.values["wall"] == 4e-3
