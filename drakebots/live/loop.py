"""One loop for all that runs live: commands, pace, pause, pictures, and the record.

class Turntable(Part):
    kind, name, period = "turntable", "turntable", 0.01
    controls = [Slider("speed", -1, 1, unit="rad/s", keys="SW")]

    def advance(self, time):
        self.angle += self.period * self.panel.values["speed"]

run_live(Live(headless=True, duration=2.0), Turntable())

A robot's live part is a :class:`Part` of its room; what they share is here, once.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from pydrake.geometry import Meshcat
from pydrake.math import RigidTransform
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context

from drakebots.core.convert import as_yaml
from drakebots.core.run import Progress, Stop, Verdict, run_steps
from drakebots.core.stages import spent
from drakebots.fem.mesh import TetMesh, surface_triangles
from drakebots.formats import model_provenance
from drakebots.live.panel import Button, Panel, Slider
from drakebots.live.script import Live, with_events
from drakebots.model import Model
from drakebots.multibody import (
    Flat,
    Robot,
    Terrain,
    advance_to,
    closure_residuals,
    floats,
    trajectory_dataset,
)
from drakebots.results import Result, provenance
from drakebots.view import (
    ROOT,
    VIEW,
    announce,
    draw_ground_lines,
    draw_terrain,
    look_at_motion,
    make_scene,
    set_stage,
)
from drakebots.view.skin import SkinView, colour_scale, draw_scale, scale_corners

PICTURE = 1 / 40
"""Time between two pictures [s]."""

LOOK = 5e-3
"""Time between two looks at the page's controls [s]."""

READING = 0.5
"""Time between two readings of the meters [s]."""

FACTOR = "real-time factor"
"""Name of a meter: a slider that the run sets."""

_ENDLESS = 10**12


class Part:
    """What is driven: its controls, its steps in time, its pictures.

    Attributes:
        kind: of the result.
        name: of the model.
        period: simulated time of a step [s].
        pace: simulated over wall time at first; None for what has no time of its own.
        picture: time between two pictures [s].
        done: said of a run that was not ended early.
        controls: its sliders and buttons.
        meters: sliders that only show :meth:`readings`.
        meshcat: server of its page; None without one.
        robot: the robot that it is, if it is one; others say an origin of their own.
        panel: of its controls, once it runs.
    """

    kind: str
    name: str
    period: float
    pace: float | None = 1.0
    picture = PICTURE
    done = "driven"
    controls: Sequence[Slider | Button] = ()
    meters: Sequence[Slider] = ()
    meshcat: Meshcat | None = None
    robot: Robot | None = None
    panel: Panel

    def advance(self, time: float) -> Stop | None:
        """One step, to a time [s]."""

    def told(self) -> None:
        """Called after controls changed."""

    def restart(self) -> None:
        """Goes back to where it began; time goes on."""

    def open(self, page: RobotPage) -> None:
        """Shows it on the page of a robot, and turns the camera to it."""
        self.page, self.meshcat = page, page.scene.meshcat
        self.draw()
        page.look()

    def draw(self) -> None:
        """Shows how it is now."""

    def readings(self) -> Mapping[str, float]:
        """Values of the meters; those that are not finite are not shown."""
        return {}

    def dataset(self) -> xr.Dataset:
        """What was reached over time, in SI."""
        return xr.Dataset(coords={"time": ("time", [0.0], {"units": "s"})})

    def metrics(self) -> dict[str, Any]:
        """Figures of the run."""
        return {}

    def origin(self, live: Live, data: xr.Dataset) -> dict[str, Any]:
        """Residuals and provenance of the result."""
        if self.robot is None:
            return {"residuals": {}, "provenance": provenance(None, as_yaml(live))}
        made = model_provenance(self.robot.model, as_yaml(live))
        return {"residuals": closure_residuals(data), "provenance": made}


class Loop:
    """The commands, the pace and the pictures of a live run, between its time steps.

    Args:
        live: how it runs.
        part: what runs.
        freely: whether a run without a page may go as fast as it can.

    Attributes:
        until: time at which it ends by itself [s].
        panel: the part's controls, and those of time.
        pace: of the run.
    """

    def __init__(self, live: Live, part: Part, *, freely: bool = True):
        events = live.events()
        self.until, self._part, self._now = live.end(events), part, 0.0
        self._looked = self._drawn = self._read = self._until_step = 0.0
        own = part.pace
        self.pace = Pace(np.inf if live.headless and freely else own or 1.0)
        controls = [*part.controls]
        restart = Button("restart", "R", lambda _: part.restart(), 9)
        if own is not None:
            keys = ["Comma", "Period"]
            controls += [
                Slider("pace", 0.05, 1, own, 0.05, keys=keys, act=self._slow),
                Button("pause", ["Space"], self._pause, 10),
                Button("step", "N", self._step),
                restart,
                Slider(FACTOR, 0, 2, 0, 0.01),
            ]
        else:
            controls.append(restart)
        controls += part.meters
        self._meshcat = part.meshcat
        self.panel = part.panel = Panel(controls, self._meshcat, events)
        self._announced = self._meshcat is None

    def turn(self, now: float) -> Stop | bool:
        """Looks at the controls and draws where that is due, and waits for a time [s].

        Returns:
            Whether to do the next step, or the end of the run.
        """
        self._now, wall, part = now, time.perf_counter(), self._part
        if not self._announced:
            # Not before: from here on Ctrl-C keeps a record.
            announce(self._meshcat)
            self._announced = True
        if self._meshcat is None or wall > self._looked + LOOK:
            self._looked = wall
            if self.panel.poll(now):
                part.told()
        if self._meshcat is not None:
            if wall > self._drawn + part.picture:
                self._drawn = wall
                part.draw()
            if wall > self._read + READING:
                self._read = wall
                self._show_readings()
        if self.pace.paused and now >= self._until_step - 1e-9:
            time.sleep(LOOK)
            return False
        self.pace.wait(now)
        if now >= self.until - 1e-9:
            return Stop(Verdict.SUCCESS, f"{part.done} for {now:g} s")
        return True

    def _show_readings(self) -> None:
        found = dict(self._part.readings())
        if self._part.pace is not None:
            found[FACTOR] = self.pace.factor
        for name, value in found.items():
            if np.isfinite(value):
                self.panel.show(name, float(value))

    def _slow(self, pace: float) -> None:
        if np.isfinite(self.pace.speed):
            self.pace.speed = pace

    def _pause(self, _: float) -> None:
        # Without a page nobody would end it.
        self.pace.paused = not self.pace.paused and self._meshcat is not None

    def _step(self, _: float) -> None:
        """A picture's time further, and pause."""
        self.pace.paused = self._meshcat is not None
        pace = self.pace.speed if np.isfinite(self.pace.speed) else 1.0
        self._until_step = self._now + max(pace * self._part.picture, self._part.period)


def run_live(live: Live, part: Part, progress: Progress | None = None) -> Result:
    """Runs a part until Ctrl-C, the end of its script, or the end of `duration`.

    Returns:
        What was reached, with the commands in it.
    """
    loop, done = Loop(live, part), 0
    end = loop.until if np.isfinite(loop.until) else 0.0
    told = progress and (lambda stage, *_: progress(stage, done * part.period, end))

    def step(_: int) -> Stop | None:
        nonlocal done
        due = loop.turn(done * part.period)
        if due is not True:
            return due or None
        done += 1
        return part.advance(done * part.period)

    ended = run_steps(step, _ENDLESS, stage="live", progress=told)
    data = with_events(part.dataset(), loop.panel.events)
    factor = done * part.period / max(ended.wall, 1e-9)
    own = {"commands": len(loop.panel.events), "real_time_factor": factor}
    return Result(
        kind=part.kind,
        model=part.name,
        verdict=ended.verdict,
        message=ended.message,
        data=data,
        timings=spent(),
        metrics=own | part.metrics(),
        **part.origin(live, data),
    )


# --- robots -------------------------------------------------------------------


def restarted(part: Any) -> None:
    """:meth:`Part.restart` of a part with a `simulator`, its context `root`, and the
    `first` that this was."""
    now = part.root.get_time()
    part.root.SetTimeStateAndParametersFrom(part.first)
    part.root.SetTime(now)
    part.simulator.Initialize()


class RobotPage:
    """The page of a robot, whose view follows its base.

    Args:
        model: the robot, alone.
        port: of its server.
        stands: whether it stands on the ground; by default where its base is free.
        terrain: the ground.

    Attributes:
        scene: the robot in Meshcat.
    """

    def __init__(
        self,
        model: Model,
        port: int | None,
        stands: bool | None = None,
        terrain: Terrain = Flat(),
    ):
        self._skin: SkinView | None = None
        self._lines: str | None = None
        self._floats = floats(model) if stands is None else stands
        height = 0.0 if self._floats else None
        self.scene = make_scene(model, ground_height=height, port=port)
        self.lay(terrain)

    def lay(self, terrain: Terrain) -> None:
        """Shows a terrain in place of the one before."""
        scene, self._terrain = self.scene, terrain
        for path in (f"{ROOT}/terrain", self._lines):
            if path is not None:
                scene.meshcat.Delete(path)
        self._floor, self._lines = draw_terrain(scene, terrain), None
        if self._floats and terrain == Flat():
            scene.put_ground(RigidTransform())
            scene.meshcat.SetProperty("/ground", "visible", True)
            wide = np.outer([-6, 6], scene.reach * np.array([1, 1, 0]))
            around = xr.Dataset({"base_position": (("time", "axis"), wide)})
            self._lines, self._spacing = draw_ground_lines(scene, around)

    def show_skin(
        self, mesh: TetMesh, positions: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        """Shows a skin by the positions of its nodes, in colours of its stress."""
        count, scene = len(mesh.vertices), self.scene
        values = np.zeros(count) if values is None else values
        if self._skin is None:
            triangles, scale = surface_triangles(mesh), colour_scale("stress", values)
            view = SkinView(scene.meshcat, mesh.vertices, triangles, scale)
            self._skin, points = view, mesh.vertices[view.vertices]
            low = np.minimum(scene.low, points.min(axis=0))
            high = np.maximum(scene.high, points.max(axis=0))
            stage = set_stage(scene.meshcat, low, high, min(0.0, float(low[2])))
            self.scene = replace(scene, **vars(stage))
        scale, known = colour_scale("stress", values), self._skin.scale
        if values.any() and (scale.top > known.top or known.top == 1.0):
            self._skin.scale = scale
            draw_scale(self.scene, scale)
        self._skin.show(positions[:count], values)

    def look(self) -> None:
        """Turns the camera to the robot as it is shown, and the scale of its skin."""
        scene, plant, how = self.scene, self.scene.plant, ()
        shown = plant.GetPositions(plant.GetMyContextFromRoot(scene.context))
        if self._skin is not None:
            how = VIEW, np.vstack([scene.low, scene.high, scale_corners(scene)])
        look_at_motion(scene, shown[None], *how)

    def show(self, robot: Robot, context: Context) -> None:
        """Shows the robot as it is in a plant of its own."""
        scene = self.scene
        x, y, _ = scene.show_state(robot, context).translation()
        if not self._floats:
            return
        below = np.array([x, y, self._terrain.heights(x, y)])
        scene.follow(*below)
        if self._floor is not None:
            scene.put_ground(self._floor, below)
        if self._lines is not None:
            near = self._spacing * np.round(below[:2] / self._spacing)
            scene.meshcat.SetTransform(self._lines, RigidTransform([*near, 0.0]))


class RunPage:
    """The page of a run that is shown while it is computed, for `core.run.watching`.

    It reads what there is to see into a context of its own, and takes a fifth of the
    time at most.

    Args:
        terrain: the ground of the run.
    """

    def __init__(self, terrain: Terrain = Flat()):
        self.page: RobotPage | None = None
        self._due, self._terrain = 0.0, terrain

    def __call__(self, seen: Callable[[], tuple]) -> None:
        """Shows what there is to see, where a picture is due."""
        began = time.perf_counter()
        if began < self._due:
            return
        robot, q, *skin = seen()
        if self.page is None:
            self.page = RobotPage(robot.model, None, terrain=self._terrain)
            self._context = robot.plant.CreateDefaultContext()
            announce(self.page.scene.meshcat)
        robot.plant.SetPositions(self._context, q)
        self.page.show(robot, self._context)
        if skin:
            self.page.show_skin(*skin)
        if not self._due:
            self.page.look()
        now = time.perf_counter()
        self._due = now + max(PICTURE, 4 * (now - began))


class SimulatedPart(Part):
    """A robot in a diagram that a Simulator steps.

    Args:
        simulator: of the diagram; it is initialized here.
        robot: the robot's plant, and its units.
        live: how it runs.
    """

    period = 1 / 200

    def __init__(self, simulator: Simulator, robot: Robot, live: Live):
        self.simulator, self.robot, self.name = simulator, robot, robot.model.name
        self.root = simulator.get_mutable_context()
        self.first = self.root.Clone()
        self.context = robot.plant.GetMyMutableContextFromRoot(self.root)
        simulator.Initialize()
        self._kept: list[tuple[float, np.ndarray]] = []
        self._keep()
        if not live.headless:
            self.open(RobotPage(robot.model, live.port))

    def _keep(self) -> None:
        state = self.robot.plant.GetPositionsAndVelocities(self.context)
        self._kept.append((self.root.get_time(), state))

    def advance(self, time: float) -> Stop | None:
        stop = advance_to(self.simulator, self.robot, time)
        if stop is None:
            self._keep()
        return stop

    restart = restarted

    def draw(self) -> None:
        self.page.show(self.robot, self.context)

    def dataset(self) -> xr.Dataset:
        return trajectory_dataset(self.robot, *map(np.array, zip(*self._kept)))


# --- simulated time beside the wall clock ----------------------------------------

GRAIN = 1.5e-3
"""Simulated time may be this far ahead of the wall clock [s]: sleeping is coarse."""

SLIP = 0.1
"""What is later than this is not made up for [s]: the simulation runs slow."""

MARKS = 20
"""Number of readings of both clocks in the last second."""


class Pace:
    """Keeps simulated time from running ahead of the wall clock, and waits for nothing
    that is late.

    Args:
        speed: simulated over wall time; infinite to run as fast as it goes.

    Attributes:
        speed: may be changed at any time.
        paused: whether time stands still.
    """

    def __init__(self, speed: float = 1.0):
        self.speed, self.paused, self._anchor = speed, False, (0.0, 0.0, math.nan)
        self._marks: deque[tuple[float, float]] = deque(maxlen=MARKS)

    def wait(self, now: float) -> None:
        """Returns when simulated time `now` [s] is due."""
        wall = time.perf_counter()
        if not self._marks or wall > self._marks[-1][0] + 1 / MARKS:
            self._marks.append((wall, now))
        began, at, speed = self._anchor
        late = wall - began - (now - at) / self.speed
        if speed != self.speed or late > SLIP:
            self._anchor = wall, now, self.speed
        elif -late > GRAIN:
            time.sleep(-late)

    @property
    def factor(self) -> float:
        """Simulated over wall time of the last second; NaN before there is one."""
        if len(self._marks) < 2:
            return math.nan
        (wall_0, now_0), (wall, now) = self._marks[0], self._marks[-1]
        return (now - now_0) / (wall - wall_0)
