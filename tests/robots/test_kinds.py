"""Every kind of result is summarized, drawn, shown and exported by the command line.

A kind that the registry lists needs an entry here: what makes a small result of it. The
same call, interrupted, gives what an interrupted command keeps, which must go the same
ways. The timings of all of them add up to the time that the call took.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import Diagram, DiagramBuilder

from drakebots import load, load_result, stored_plan, track
from drakebots.cli import main
from drakebots.core.run import Progress
from drakebots.formats import model_provenance
from drakebots.identify import Identification, identify
from drakebots.live import Live, live, pose_by_hand
from drakebots.results import Result
from drakebots.robots import gecko, hamr, kinds, legged, quads, voxels
from drakebots.robots.legged import Control, Mpc, control
from drakebots.robots.quads.robot import load_planned
from drakebots.robots.quads.steps import StepsProblem, make_planner, plan_steps
from drakebots.skin import SkinSimulation, simulate_skinned
from drakebots.sweeps import sweep
from drakebots.trajopt.locomotion import LocomotionProblem, plan_locomotion
from tests.helpers.live_runs import PENDULUM
from tests.helpers.scripts import ROOT, is_picture
from tests.helpers.small_quad import planned_lift
from tests.helpers.standing_plans import standing_plan
from tests.helpers.swings import pendulum_in, swing

pytestmark = pytest.mark.long

MINE = ROOT / "examples" / "my_robot.urdf"
COURSE = gecko.Simulation(targets=((0.65, 0.0),))
DRIVEN = legged.Drive(
    "mini_cheetah", headless=True, duration=0.3, controller=Mpc(1 / 60, delay=8e-3)
)


@lru_cache
def _stands() -> Result:
    return standing_plan(load(MINE))


@lru_cache
def _gait() -> Result:
    return stored_plan("hamr:10hz_card")


@lru_cache
def _lifts() -> Result:
    return load_result(planned_lift()[1])


def _lift() -> quads.Problem:
    model = str(planned_lift()[0])
    return quads.Problem(model, motion="lift_single", more={"duration": 1.0})


def _frames() -> Callable[..., Result]:
    """The steps of a skinned robot that stands."""
    robot = load_planned(planned_lift()[0]).skinned
    rows = 21
    asked = StepsProblem(
        np.tile(robot.stepper(5e-3).home[0], (rows, 1)),
        np.ones((rows, len(robot.skin.patches)), bool),
        skin_every=1,
    )
    more = {"model": "small", "provenance": model_provenance(robot.model, {})}
    return partial(plan_steps, make_planner(robot, 5e-3), asked, **more)


def _diagram() -> Diagram:
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModelsFromString(PENDULUM, "urdf")
    plant.Finalize()
    return builder.Build()


def _measured() -> Callable[..., Result]:
    folder = Path(tempfile.mkdtemp())
    model = pendulum_in(folder)
    data = swing(model, folder / "run.csv", mass_thigh=1.2)
    return partial(identify, Identification(model, data, ("mass:thigh",)))


def _steps_in_skin() -> Callable[..., Result]:
    more = {
        "plant": quads.Skinned("full"),
        "controller": Mpc(0.05, 6, 0.02, delay=0.02),
    }
    problem = quads.Control(str(planned_lift()[0]), speed=0.0, duration=0.3, **more)
    return partial(quads.control, problem)


CALLS: Mapping[str, Callable[[], Callable[..., Result]]] = {
    "legged.simulation": lambda: partial(
        legged.simulate, legged.Simulation(MINE, duration=0.1)
    ),
    "locomotion.plan": lambda: partial(
        plan_locomotion, LocomotionProblem(MINE, knots=9)
    ),
    "legged.track": lambda: partial(track, _stands(), cycles=1),
    "legged.mpc": lambda: partial(control, Control(load("monopod"), duration=0.1)),
    "legged.live": lambda: partial(legged.drive, DRIVEN),
    "live.pose": lambda: partial(
        pose_by_hand, Live(headless=True, duration=0.3), load("minitaur")
    ),
    "live.joints": lambda: partial(
        legged.drive,
        legged.Drive("minitaur", headless=True, duration=0.3, joints="servos"),
    ),
    "live.diagram": lambda: partial(live, _diagram(), headless=True, duration=0.5),
    "gecko.live": lambda: partial(
        gecko.drive, gecko.Drive(headless=True, duration=8.0)
    ),
    "hamr.live": lambda: partial(hamr.drive, hamr.Drive(headless=True, duration=0.05)),
    "voxels.live": lambda: partial(
        voxels.drive, voxels.Drive(headless=True, duration=0.5)
    ),
    "skin.live": lambda: partial(quads.drive, quads.Drive(headless=True, duration=0.5)),
    "hamr.simulation": lambda: partial(
        hamr.simulate, hamr.Simulation(frequency=100, cycles=1)
    ),
    "hamr.plan": lambda: partial(hamr.plan, hamr.GaitProblem(frequency=10)),
    "hamr.track": lambda: partial(track, _gait(), cycles=1),
    "identification": _measured,
    "gecko.simulation": lambda: partial(gecko.simulate, COURSE),
    "gecko.velocity_space": lambda: gecko.plan,
    "voxels.simulation": lambda: partial(voxels.simulate, voxels.Simulation(cycles=1)),
    "voxels.plan": lambda: partial(
        voxels.plan, voxels.Problem([voxels.Target("foot", "x", 5e-3)])
    ),
    "voxels.gait_search": lambda: partial(
        voxels.search_gait, voxels.SearchProblem(voxels.Simulation(cycles=1), walks=3)
    ),
    "sweep": lambda: partial(sweep, COURSE, {"epsilon": (0.1, 0.2)}, workers=1),
    "skin.simulation": lambda: partial(
        simulate_skinned, SkinSimulation("skinned_leg", duration=0.1)
    ),
    "quads.plan": lambda: partial(quads.plan, _lift()),
    "quads.space_time": lambda: partial(quads.plan, _lift()),
    "quads.frames": _frames,
    "quads.control": _steps_in_skin,
    "quads.track": lambda: partial(quads.track, quads.Tracking(_lifts())),
}
"""By kind, what gives the call that makes a result, given a progress function."""

READY: Mapping[str, Callable[[], Result]] = {
    "locomotion.plan": _stands,
    "hamr.plan": _gait,
    "quads.plan": _lifts,
}
"""Complete results of kinds whose calls would take minutes."""

AT: Mapping[str, dict[str, Any]] = {
    "locomotion.plan": {"after": 12},
    "hamr.plan": {"after": 12},
    "quads.plan": {"stage": "steps"},
    "quads.space_time": {"after": 12},
    "gecko.simulation": {"after": 3},
    "identification": {"after": 3},
}
"""Where a call is interrupted, if not half-way through a stage."""

PROGRAMS = ("locomotion.plan", "hamr.plan", "quads.plan", "quads.space_time")
"""Programs of which a few iterations are taken: to compile them takes longer."""

INCOMPLETE = ("quads.space_time",)
"""What is only kept of a call that is interrupted."""

UNKEPT = ("gecko.velocity_space",)
"""Of which nothing is kept where they are interrupted: a fit needs the whole grid."""

AT_ONCE = ("voxels.plan",)
"""What takes no time in which it could be interrupted."""

UNDRAWN = ("live.diagram",)
"""Of a diagram of one's own nobody knows what its positions are."""

OURS = [kind for kind in kinds().values() if kind.plot.startswith("drakebots.")]
WHOLE = [kind for kind in OURS if kind.name not in INCOMPLETE]
CUT = [kind for kind in OURS if kind.name not in AT_ONCE]
CASES = {f"{kind.name}, complete": (kind, True) for kind in WHOLE} | {
    f"{kind.name}, interrupted": (kind, False) for kind in CUT
}


def _interrupting(*, after: float = np.inf, stage: str = "") -> Progress:
    """Interrupts work half-way through a stage, or once it has shown its progress so
    often."""
    calls = 0

    def show(name: str, done: float, end: float) -> None:
        nonlocal calls
        calls += 1
        if name.startswith(stage) and (calls >= after or 0 < end / 2 <= done):
            raise KeyboardInterrupt

    return show


def _made(kind: str, whole: bool) -> Result:
    """The result of a kind's call, whose timings are those of the call."""
    if whole and kind in READY:
        return READY[kind]()
    call = CALLS[kind]()
    progress = None if whole else _interrupting(**AT.get(kind, {}))
    began = time.perf_counter()
    result = call(progress=progress)
    wall = time.perf_counter() - began
    assert wall - 5 < sum(result.timings.values()) <= wall, result.timings
    return result


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
    assert (result.verdict == "interrupted") == (not whole)
    assert kind.name in result.summary()
    path = str(result.save(tmp_path / "result.nc"))
    assert load_result(path) == result

    picture, log = tmp_path / "result.png", tmp_path / "result.mcap"
    table, page = tmp_path / "result.csv", tmp_path / "result.html"
    if kind.name in UNDRAWN:
        assert main(["report", path, "--plot", str(picture)]) == 2
        assert "no motion to plot" in capsys.readouterr().err
        return
    assert main(["report", path, "--plot", str(picture), "--csv", str(table)]) == 0
    assert is_picture(picture) and table.read_text().startswith("time [s]")
    assert main(["export", path, "--mcap", str(log)]) == 0 and log.stat().st_size
    capsys.readouterr()
    if main(["compare", path, path]) != 0:
        assert "samples; at least 3 are needed" in capsys.readouterr().err
    if main(["export", path, "--ros", str(tmp_path / "bag.mcap")]) != 0:
        assert "holds no joint positions" in capsys.readouterr().err
    shown = main(["view", path, "--html", str(page)])
    if kind.record:
        assert shown == 0 and "<html" in page.read_text()
    else:
        assert shown == 2 and "has no motion" in capsys.readouterr().err


def test_every_kind_has_its_call_and_no_other():
    assert set(CALLS) == {kind.name for kind in OURS}
