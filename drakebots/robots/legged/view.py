"""The page of a controlled run, with its pushes and horizons."""

from __future__ import annotations

import numpy as np
import xarray as xr
from pydrake.geometry import Box, Cylinder, MeshcatCone, Rgba
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.formats import model_of
from drakebots.model import Model
from drakebots.results import Result
from drakebots.view import (
    ROOT,
    Scene,
    check_playback,
    draw_ground_lines,
    draw_trail,
    frame_samples,
    look_at_motion,
    make_scene,
    play,
    positions_in_order,
)

FRAMES = 1500
"""A recording has at most so many frames."""

SEEN = 0.4
"""An arrow stays for so long, though its push may be shorter [s]."""

_PUSH, _PATH = Rgba(0.85, 0.15, 0.10, 1), Rgba(0.10, 0.45, 0.85, 1)
_GOAL, _STEP = Rgba(0.15, 0.60, 0.25, 1), Rgba(0.75, 0.77, 0.80, 1)


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
    it is strong, the planned paths of base and feet as blue lines, the goal as a green
    disc, and a step of the ground.

    Args:
        result: of kind legged.mpc.
        model, slow, frames_per_second, port: as in
            :func:`~drakebots.view.record_motion`.

    Raises:
        InvalidInput: when the result holds no such run.
    """
    data = result.data
    check_controlled(result)
    check_playback(slow=slow, frames_per_second=frames_per_second)
    scene = make_scene(model or model_of(result), ground_height=0.0, port=port)
    q, times = positions_in_order(scene, data), data.time.values
    draw_ground_lines(scene, data)
    draw_trail(scene, data)
    _draw_ground(scene, result)
    arrows, paths = _arrows(scene, result), _paths(scene, data)
    rate, samples = frame_samples(times, slow, frames_per_second, FRAMES)

    def show(frame: int, time: float) -> None:
        k = samples[frame]
        scene.show(q[k], time)
        for path, push in arrows:
            acts = push["time"] <= times[k] < push["time"] + max(push["duration"], SEEN)
            if acts:
                R = _towards(push)
                tip = data.base_position.values[k] - 0.3 * scene.reach * R.col(2)
                at = RigidTransform(R, tip)
                scene.meshcat.SetTransform(path, at, time)
            scene.meshcat.SetProperty(path, "visible", bool(acts), time)
        if len(paths):
            made = int(np.searchsorted(data.horizon_time.values, times[k], "right")) - 1
            for i, path in enumerate(paths):
                scene.meshcat.SetProperty(path, "visible", i == made, time)

    play(scene, rate, len(samples), show, start=times[0], slow=slow)
    look_at_motion(scene, q[samples])
    return scene


def check_controlled(result: Result) -> None:
    """Raises InvalidInput for a result that is no controlled run."""
    if "push" not in result.data or result.data.sizes.get("time", 0) < 2:
        raise InvalidInput(
            f"needs a controlled run, got a {result.kind}; make one with "
            "`drakebots mpc`"
        )


def _towards(push: dict) -> RotationMatrix:
    """Turns +z to where a push points."""
    return RotationMatrix(
        RotationMatrix.MakeZRotation(push["direction"]).matrix()
        @ RotationMatrix.MakeYRotation(np.pi / 2).matrix()
    )


def _arrows(scene: Scene, result: Result) -> list[tuple[str, dict]]:
    """An arrow for every push, its tip at the frame's origin, along +z; hidden."""
    pushes = result.metrics["pushes"]
    strongest = max((abs(push["force"]) for push in pushes), default=1.0)
    found = []
    for i, push in enumerate(pushes):
        length = scene.reach * abs(push["force"]) / max(strongest, 1e-12)
        path, width = f"{ROOT}/push/{i}", 0.02 * scene.reach
        head = 4 * width
        scene.meshcat.SetObject(f"{path}/shaft", Cylinder(width, length), _PUSH)
        back = RigidTransform([0, 0, -head - length / 2])
        scene.meshcat.SetTransform(f"{path}/shaft", back)
        scene.meshcat.SetObject(
            f"{path}/head", MeshcatCone(head, 0.6 * head, 0.6 * head), _PUSH
        )
        # The cone's tip is its origin, and it widens along +z.
        turned = RigidTransform(RotationMatrix.MakeXRotation(np.pi), [0, 0, 0])
        scene.meshcat.SetTransform(f"{path}/head", turned)
        scene.meshcat.SetProperty(path, "visible", False)
        scene.caption.add(_PUSH, "a push, while it acts")
        found.append((path, push))
    return found


def _paths(scene: Scene, data: xr.Dataset) -> list[str]:
    """The planned paths of base and feet, a hidden object for every stored horizon."""
    paths = []
    if "horizon" not in data:
        return paths
    scene.caption.add(_PATH, "planned paths of base and feet")
    for i, path in enumerate(data.horizon.values):
        paths.append(f"{ROOT}/horizon/{i}")
        starts, ends = (
            np.asfortranarray(p.reshape(-1, 3).T) for p in (path[:-1], path[1:])
        )
        scene.meshcat.SetLineSegments(paths[-1], starts, ends, 3.0, _PATH)
        scene.meshcat.SetProperty(paths[-1], "visible", False)
    return paths


def _draw_ground(scene: Scene, result: Result) -> None:
    goal, step = result.metrics.get("goal_m"), result.metrics.get("step_m")
    if goal is not None:
        start = result.data.base_position.values[0, :2]
        scene.caption.add(_GOAL, "the goal")
        path = f"{ROOT}/goal"
        scene.meshcat.SetObject(path, Cylinder(0.12 * scene.reach, 2e-3), _GOAL)
        scene.meshcat.SetTransform(path, RigidTransform([*(start + goal), 1e-3]))
    if step is not None:
        start, end, height = step
        path = f"{ROOT}/step"
        scene.meshcat.SetObject(path, Box(end - start, 4 * scene.reach, height), _STEP)
        place = RigidTransform([(start + end) / 2, 0, height / 2])
        scene.meshcat.SetTransform(path, place)
