"""A walk of the voxel robot in Meshcat: actuators, loaded feet, the path."""

from __future__ import annotations

import numpy as np
import xarray as xr
from pydrake.geometry import Rgba

from drakebots.results import Result, require
from drakebots.robots.voxels.model import ACTUATORS
from drakebots.view import ROOT, ContactMarks, Mark, Scene, Stage, record_motion
from drakebots.view.lattice import ActuatorRods

_STRUT = 0.9e-3
"""Radius of the struts between which the actuators are drawn [m]."""

_LOADED = Rgba(0.95, 0.25, 0.08)

LOADED = 0.02
"""Share of the largest load from which a foot is shown as loaded."""


def record_voxel(
    result: Result,
    *,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Stage:
    """Records a walk in a new Meshcat scene.

    It shows the voxels, the actuators in the colours of their names (a sleeve on
    the lower node, a rod on the upper one), feet in red while they carry load, and
    the path of the core's middle on the ground.

    Args:
        result: a result of kind "voxels.simulation".
        slow: factor by which it plays slower than real time; None shows a cycle in 4 s.
        frames_per_second: frame rate of the playback, limited as for other motions.
        port: port of the server.

    Raises:
        InvalidInput: for a result that is not a voxel robot's walk, or a speed or
            rate that is not > 0.
    """
    walk = "walk of the voxel robot to show"
    require(result.data, "actuator_length", walk, time=2)
    if slow is None:
        options = dict(result.provenance.get("options", {}))
        gait = options.get("gait", "forward")
        poses = 8 if isinstance(gait, str) else len(gait)
        period = poses * float(options.get("pose_time", 0.5))
        slow = 4.0 / period if period else 1.0

    def draw(scene: Scene, data: xr.Dataset) -> list[Mark]:
        marks = {"radius": 5.5e-3, "share": LOADED, "colour": _LOADED}
        return [_Actuators(scene, data), ContactMarks(scene, data, **marks)]

    playback = {"frames_per_second": frames_per_second, "port": port}
    return record_motion(result, slow=slow, draw=draw, **playback)


class _Actuators:
    """The actuators between the nodes of a walk."""

    def __init__(self, scene: Scene, data: xr.Dataset):
        self.nodes, path = data.node_position.values, f"{ROOT}/actuators"
        rows = {tuple(p): k for k, p in enumerate(data.node_place.values.tolist())}
        pairs = np.array([[rows[a.node], rows[a.other]] for a in ACTUATORS])
        names, rest = [a.name for a in ACTUATORS], self.nodes[0]
        self.rods = ActuatorRods(scene.meshcat, path, names, rest, pairs, _STRUT)
        self.show(0)

    def show(self, k: int, time: float | None = None) -> None:
        self.rods.show(self.nodes[k], time)
