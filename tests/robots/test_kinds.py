"""Every kind of result is summarized, drawn, shown and exported by the command line.

A kind that the registry lists needs an entry here: what makes a small result of it,
given a progress function. The same call, interrupted, gives what an interrupted command
keeps, which must go the same ways.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from drakebots import load, load_result, stored_plan, track
from drakebots.cli import main
from drakebots.core.run import Progress
from drakebots.model import model_provenance
from drakebots.results import Result
from drakebots.robots import gecko, hamr, legged, quads, voxels
from drakebots.robots.legged.mpc import Control, control
from drakebots.robots.quads import control as quad_control
from drakebots.robots.quads.frames import FrameProblem, make_planner, plan_frames
from drakebots.robots.quads.robot import load_planned
from drakebots.robots.registry import KINDS
from drakebots.skin import SkinSimulation, simulate_skinned
from drakebots.sweeps import sweep
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion
from tests.helpers.scripts import ROOT, is_picture
from tests.helpers.small_quad import planned_lift
from tests.helpers.standing_plans import standing_plan

pytestmark = pytest.mark.long

MINE = ROOT / "examples" / "my_robot.urdf"


def _planned(progress: Progress | None) -> Result:
    """A plan of any robot; to find one takes long, so a complete one is made."""
    if progress is None:
        return standing_plan(load(MINE))
    return plan_locomotion(LocomotionProblem(MINE, knots=9), progress=_interrupting(12))


def _gait(progress: Progress | None) -> Result:
    if progress is None:
        return stored_plan("hamr:10hz_card")
    return hamr.plan(hamr.GaitProblem(frequency=10), progress=_interrupting(12))


def _quad_plan(progress: Progress | None) -> Result:
    """A plan of a skinned robot, which may end in its second stage, step by step."""
    if progress is None:
        return load_result(planned_lift()[1])
    return quads.plan(_lift(), progress=_only("frames", progress))


def _space_time(progress: Progress | None) -> Result:
    """What is left of a plan that ended in its first stage."""
    return quads.plan(_lift(), progress=_interrupting(12))


def _lift() -> quads.Problem:
    model = str(planned_lift()[0])
    return quads.Problem(model, motion="lift_single", duration=1.0)


def _frames(progress: Progress | None) -> Result:
    robot = load_planned(planned_lift()[0]).skinned
    rows = 21
    asked = FrameProblem(
        np.tile(robot.stepper(5e-3).home[0], (rows, 1)),
        np.ones((rows, len(robot.skin.patches)), bool),
        skin_every=1,
    )
    more = {"model": "small", "provenance": model_provenance(robot.model, {})}
    return plan_frames(make_planner(robot, 5e-3), asked, progress=progress, **more)


def _quad_control(progress: Progress | None) -> Result:
    more = {"speed": 0.0, "plant": "full", "duration": 0.3, "knots": 6}
    problem = quad_control.Control(str(planned_lift()[0]), **more)
    return quad_control.control(problem, progress=progress)


MAKERS = {
    "legged.simulation": lambda p: legged.simulate(
        legged.Simulation(MINE, duration=0.1), progress=p
    ),
    "locomotion.plan": _planned,
    "legged.track": lambda p: track(standing_plan(load(MINE)), cycles=1, progress=p),
    "legged.mpc": lambda p: control(Control(load("monopod"), duration=0.1), progress=p),
    "hamr.simulation": lambda p: hamr.simulate(
        hamr.Simulation(frequency=100, cycles=1), progress=p
    ),
    "hamr.plan": _gait,
    "hamr.track": lambda p: track(_gait(None), cycles=1, progress=p),
    "gecko.simulation": lambda p: gecko.simulate(
        gecko.Simulation(targets=((0.65, 0.0),)), progress=p and _interrupting(3)
    ),
    "gecko.velocity_space": lambda p: gecko.plan(progress=p),
    "voxels.simulation": lambda p: voxels.simulate(
        voxels.Simulation(cycles=1), progress=p
    ),
    "voxels.plan": lambda p: voxels.plan(
        voxels.Problem([voxels.Target("foot", "x", 5e-3)]), progress=p
    ),
    "voxels.gait_search": lambda p: voxels.search_gait(
        voxels.GaitSearch(voxels.Simulation(cycles=1), walks=3), progress=p
    ),
    "sweep": lambda p: sweep(
        gecko.Simulation(targets=((0.65, 0.0),)),
        {"epsilon": (0.1, 0.2)},
        workers=1,
        progress=p,
    ),
    "skin.simulation": lambda p: simulate_skinned(
        SkinSimulation("skinned_leg", duration=0.1), progress=p
    ),
    "quads.plan": _quad_plan,
    "quads.space_time": _space_time,
    "quads.frames": _frames,
    "quads.control": _quad_control,
    "quads.track": lambda p: quads.track(quads.Tracking(_quad_plan(None)), progress=p),
    "quads.sap_track": lambda p: quads.track(
        quads.SapTracking(_quad_plan(None)), progress=p
    ),
}


def _only(stage: str, progress: Progress) -> Progress:
    """Calls a progress function in the stages whose name begins so."""

    def show(name: str, done: float, end: float) -> None:
        if name.startswith(stage):
            progress(name, done, end)

    return show


def _interrupting(after: float = np.inf) -> Progress:
    """Interrupts work half-way, or once it has shown its progress so often."""
    calls = 0

    def show(stage: str, done: float, end: float) -> None:
        nonlocal calls
        calls += 1
        if calls >= after or 0 < end / 2 <= done:
            raise KeyboardInterrupt

    return show


@lru_cache
def _made(kind: str, whole: bool) -> Result:
    return MAKERS[kind](None if whole else _interrupting())


PROGRAMS = ("locomotion.plan", "hamr.plan", "quads.plan", "quads.space_time")
"""Programs of which a few iterations are taken: to compile them takes longer."""

UNKEPT = ("gecko.velocity_space",)
"""Of which nothing is kept where they are interrupted: a fit needs the whole grid."""

AT_ONCE = ("voxels.plan",)
"""What takes no time in which it could be interrupted."""

CASES = {f"{kind.name}, complete": (kind, True) for kind in KINDS} | {
    f"{kind.name}, interrupted": (kind, False)
    for kind in KINDS
    if kind.name not in AT_ONCE
}


@pytest.mark.parametrize("kind, whole", CASES.values(), ids=CASES)
def test_a_result_goes_every_way(kind, whole, tmp_path, capsys, monkeypatch):
    if kind.name in PROGRAMS:
        monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")
    if not whole and kind.name in UNKEPT:
        with pytest.raises(KeyboardInterrupt):
            _made(kind.name, whole)
        return
    result = _made(kind.name, whole)
    assert result.kind == kind.name
    assert (result.verdict == "interrupted") == (
        not whole or kind.name == "quads.space_time"
    )
    assert kind.name in result.summary()
    path = str(result.save(tmp_path / "result.nc"))
    assert load_result(path) == result

    picture, log = tmp_path / "result.png", tmp_path / "result.mcap"
    table, page = tmp_path / "result.csv", tmp_path / "result.html"
    assert main(["report", path, "--plot", str(picture), "--csv", str(table)]) == 0
    assert is_picture(picture) and table.read_text().startswith("time [s]")
    assert main(["export", path, "--mcap", str(log)]) == 0 and log.stat().st_size
    shown = main(["view", path, "--html", str(page)])
    if kind.record:
        assert shown == 0 and "<html" in page.read_text()
    else:
        assert shown == 2 and "has no motion" in capsys.readouterr().err


def test_every_kind_has_its_maker_and_no_other():
    assert set(MAKERS) == {kind.name for kind in KINDS}
