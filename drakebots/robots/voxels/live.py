"""Voxel lattices in the browser: sliders move the actuators, planes of motion follow.

drive(Drive(headless=True, script="commands.csv"))        # the walking robot
drive(Drive(lattice=load_lattice("lattice.json"), headless=True, duration=1.0))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress
from drakebots.core.stages import timed
from drakebots.lattice.pom import (
    Control,
    PlanesOfMotion,
    candidates,
    frame_response,
    without_rigid_motion,
)
from drakebots.lattice.shape import Lattice, LatticeSpec, Planes, require_connected
from drakebots.live import Live, Part, Slider, run_live
from drakebots.model import parameters_of
from drakebots.results import Result, provenance
from drakebots.robots.voxels.model import ACTUATORS, MODEL, VoxelRobot, walker
from drakebots.robots.voxels.plan import LONGEST_STROKE, lattice_dataset
from drakebots.view.lattice import draw_lattice

MOST = 12
"""Largest number of actuators that are placed by themselves."""

OFF = "off the frame"
"""Name of a meter."""


@checked("live", kw_only=True)
class Drive(Live):
    """A lattice whose actuators are moved, or the walking robot."""

    lattice: LatticeSpec | None = None
    """The lattice; None for the walking robot."""
    actuators: Sequence[Control] = ()
    """The lattice's actuators; left out, there is one for each plane of motion, a dozen
    at most. The walking robot has its own."""

    def __post_init__(self):
        super().__post_init__()
        if self.lattice is None and self.actuators:
            raise InvalidInput("the walking robot has its own actuators; give none")


class Moved(Part):
    """The planes of motion of a live lattice."""

    kind, period, pace, done = "voxels.live", 1 / 60, None, "moved"
    picture = 1 / 60

    def __init__(self, live: Drive):
        self._path, self.name = parameters_of(MODEL).path, MODEL
        if live.lattice is None:
            robot = VoxelRobot()
            self._lattice, self._actuators = robot.lattice, ACTUATORS
            self._predict = lambda u: robot.displacements(u)[0]
            stroke, strut = robot.stroke, walker().strut
            self._core = [robot.lattice.node(place) for place in robot.core.nodes]
        else:
            self._path, self.name = live.lattice.path, "lattice"
            self._lattice = lattice = live.lattice.lattice
            require_connected(lattice)
            self._actuators = tuple(live.actuators) or one_a_plane(lattice)
            self._predict = PlanesOfMotion(lattice, self._actuators).displacements
            stroke, strut = LONGEST_STROKE * lattice.pitch, live.lattice.strut
            self._core = None
        given = self._lattice, self._actuators, strut, self._core
        self._response = frame_response(*given)[0]
        names, most = [a.name for a in self._actuators], 1e3 * stroke
        self.controls = [Slider(name, -most, most, 0.0, unit="mm") for name in names]
        self.meters = [Slider(OFF, 0, 2e3 * stroke, 0.0, unit="mm")]
        self._u = self._drawn = np.zeros(len(self._actuators))
        self._rows, self._now = [(0.0, self._u, self._moved())], 0.0
        if not live.headless:
            how = {"room": 2 * stroke, "port": live.port}
            stage, self._body = draw_lattice(self._lattice, self._actuators, **how)
            self.meshcat = stage.meshcat

    def _moved(self) -> np.ndarray:
        return np.asarray(self._predict(self._u)).reshape(-1, 3)

    def told(self) -> None:
        self._u = np.array([1e-3 * self.panel.values[a.name] for a in self._actuators])

    def advance(self, time: float) -> None:
        self._now = time
        if not np.array_equal(self._u, self._rows[-1][1]):
            self._rows.append((time, self._u, self._moved()))

    def restart(self) -> None:
        for actuator in self._actuators:
            self.panel.show(actuator.name, 0.0)

    def draw(self) -> None:
        if self._drawn is not self._u:  # a page takes its time for so many objects
            self._drawn = self._u
            self._body.show(self._lattice.positions + self._moved(), None)

    def _off(self) -> float:
        """Largest distance of a node from where the beam frame has it [m]."""
        planes, frame = self._rows[-1][2], np.tensordot(self._u, self._response, 1)
        frame = without_rigid_motion(self._lattice, frame, planes, self._core)
        return float(np.linalg.norm(frame - planes, axis=1).max())

    def readings(self) -> Mapping[str, float]:
        """How far the planes of motion are from the beam frame."""
        return {OFF: 1e3 * self._off()}

    def dataset(self) -> xr.Dataset:
        # Where it is at the end, as it has been since it moved last.
        end = [(self._now, *self._rows[-1][1:])] * (self._now > self._rows[-1][0])
        times, u, moved = map(np.array, zip(*self._rows, *end))
        return lattice_dataset(self._lattice, self._actuators, times, u, moved)

    def metrics(self) -> dict[str, Any]:
        """Where the actuators are in the end, and how far the frame is from it."""
        mm = {a.name: 1e3 * float(u) for a, u in zip(self._actuators, self._u)}
        return {"actuator_mm": mm, "off_the_frame_mm": 1e3 * self._off()}

    def origin(self, live: Live, data: xr.Dataset) -> dict[str, Any]:
        made = provenance(self._path, as_yaml(live) | {"lattice": str(self._path)})
        return {"residuals": {}, "provenance": made}


def one_a_plane(lattice: Lattice) -> tuple[Control, ...]:
    """An actuator for each plane of motion, those nearest the middle first."""
    planes, found = Planes(lattice), {}
    for control in candidates(lattice):
        found.setdefault(planes.driven(control.node, control.axis), control)
    if not found:
        raise InvalidInput("the lattice has no place for an actuator; use more voxels")
    return tuple(found.values())[:MOST]


@timed("load")
def drive(
    problem: Drive = Drive(duration=1.0), *, progress: Progress | None = None
) -> Result:
    """Moves actuators until Ctrl-C, the end of its script or of `duration`.

    Returns:
        The nodes over time, where they moved, with all commands, kind "voxels.live".
    """
    return run_live(problem, Moved(problem), progress)
