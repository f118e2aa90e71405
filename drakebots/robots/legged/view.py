"""The page of a controlled run, with its pushes and horizons."""

from __future__ import annotations

import numpy as np
from pydrake.geometry import Cylinder, Rgba
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.model import Model
from drakebots.results import Result
from drakebots.view import ROOT, Scene, draw_arrow, draw_horizon, record_motion

SEEN = 0.4
"""An arrow stays for so long, though its push may be shorter [s]."""

_PUSH = Rgba(0.85, 0.15, 0.10, 1)
_GOAL = Rgba(0.15, 0.60, 0.25, 1)


def record_control(
    result: Result,
    *,
    model: Model | None = None,
    slow: float = 1.0,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Scene:
    """Records a controlled run in a new Meshcat scene.

    Shown are the robot and its path, a red arrow at the base for every push, as long as
    it is strong, the planned paths of base and feet as blue lines, and the goal as a
    green disc.

    Args:
        result: of kind legged.mpc.
        model, slow, frames_per_second, port: as in
            :func:`~drakebots.view.record_motion`.

    Raises:
        InvalidInput: when the result holds no such run.
    """
    check_controlled(result)
    return record_motion(
        result,
        model=model,
        slow=slow,
        frames_per_second=frames_per_second,
        port=port,
        draw=lambda scene, data: [_Marks(scene, result)],
    )


class _Marks:
    """Pushes and horizons of a controlled run, and its goal, which stays."""

    def __init__(self, scene: Scene, result: Result):
        self.scene, self.data = scene, result.data
        if (goal := result.metrics.get("goal_m")) is not None:
            place = [*(result.data.base_position.values[0, :2] + goal), 1e-3]
            scene.caption.add(_GOAL, "the goal")
            disc = Cylinder(0.12 * scene.reach, 2e-3)
            scene.meshcat.SetObject(f"{ROOT}/goal", disc, _GOAL)
            scene.meshcat.SetTransform(f"{ROOT}/goal", RigidTransform(place))
        pushes = result.metrics["pushes"]
        strongest = max((abs(push["force"]) for push in pushes), default=1.0)
        # An arrow's tip is at its origin, and it points along +z.
        self.arrows: dict[str, dict] = {}
        for i, push in enumerate(pushes):
            length = scene.reach * abs(push["force"]) / max(strongest, 1e-12)
            self.arrows[f"{ROOT}/push/{i}"] = push
            draw_arrow(scene, f"{ROOT}/push/{i}", length, _PUSH)
            scene.caption.add(_PUSH, "a push, while it acts")
        self.paths: list[str] = []
        horizons = self.data.horizon.values if "horizon" in self.data else ()
        for i, path in enumerate(horizons):
            self.paths.append(f"{ROOT}/horizon/{i}")
            draw_horizon(scene, self.paths[-1], path)
            scene.meshcat.SetProperty(self.paths[-1], "visible", False)

    def show(self, k: int, time: float) -> None:
        meshcat, data = self.scene.meshcat, self.data
        now = data.time.values[k]
        for path, push in self.arrows.items():
            acts = push["time"] <= now < push["time"] + max(push["duration"], SEEN)
            if acts:
                ahead = RotationMatrix.MakeZRotation(push["direction"])
                R = ahead @ RotationMatrix.MakeYRotation(np.pi / 2)  # from +z
                tip = data.base_position.values[k] - 0.3 * self.scene.reach * R.col(2)
                meshcat.SetTransform(path, RigidTransform(R, tip), time)
            meshcat.SetProperty(path, "visible", bool(acts), time)
        if self.paths:
            made = int(np.searchsorted(data.horizon_time.values, now, "right")) - 1
            for i, path in enumerate(self.paths):
                meshcat.SetProperty(path, "visible", i == made, time)


def check_controlled(result: Result) -> None:
    """Raises InvalidInput for a result that is no controlled run."""
    if "push" not in result.data or result.data.sizes.get("time", 0) < 2:
        raise InvalidInput(
            f"needs a controlled run, got a {result.kind}; make one with "
            "`drakebots mpc`"
        )
