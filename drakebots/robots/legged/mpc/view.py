"""What a controlled run looks like: a page with pushes and horizons, and a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from pydrake.geometry import Box, Cylinder, MeshcatCone, Rgba
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.model import Model, model_of
from drakebots.plots import (
    COLOURS,
    check_ending,
    legend_below,
    literal,
    write_figure,
)
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

_PUSH, _WAY = Rgba(0.85, 0.15, 0.10, 1), Rgba(0.10, 0.45, 0.85, 1)
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
    _check(result)
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


def _check(result: Result) -> None:
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
    scene.caption.add(_WAY, "planned paths of base and feet")
    for i, way in enumerate(data.horizon.values):
        paths.append(f"{ROOT}/horizon/{i}")
        starts, ends = (
            np.asfortranarray(p.reshape(-1, 3).T) for p in (way[:-1], way[1:])
        )
        scene.meshcat.SetLineSegments(paths[-1], starts, ends, 3.0, _WAY)
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


def plot_control(result: Result, path: str | Path) -> Path:
    """Draws path, height, angles, efforts, pushes and the times of the solves.

    Args:
        result: of kind legged.mpc.
        path: of the picture (.png, .pdf, .svg).

    Raises:
        InvalidInput: for another result, or another ending.
        FileProblem: when the file cannot be written.
    """
    path = check_ending(path)
    _check(result)
    data, time, facts = result.data, result.data.time.values, result.metrics
    base, angles = data.base_position.values, np.degrees(data.base_rpy.values)
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, 3)
    way, height, tilt, effort, pushed, solves = panels.flat
    way.plot(base[:, 0], base[:, 1], color=COLOURS[0], label="base")
    if facts.get("goal_m") is not None:
        goal = base[0, :2] + facts["goal_m"]
        way.plot(*goal, "o", color=COLOURS[2], label="goal")
    for push in facts["pushes"]:
        at = base[min(np.searchsorted(time, push["time"]), len(time) - 1), :2]
        ahead = np.array([np.cos(push["direction"]), np.sin(push["direction"])])
        way.annotate(
            f"{push['force']:g} N",
            at,
            at - 40 * ahead,
            textcoords="offset points",
            arrowprops={"arrowstyle": "->", "color": COLOURS[3]},
        )
    way.set(xlabel="x [m]", ylabel="y [m]", title="path")
    way.set_aspect("equal", adjustable="datalim")
    legend_below(way)
    height.plot(time, base[:, 2], color=COLOURS[0])
    height.set(xlabel="time [s]", ylabel="z [m]", title="height of the base")
    for i, name in enumerate(("roll", "pitch", "yaw")):
        tilt.plot(time, angles[:, i], color=COLOURS[i], label=name)
    tilt.set(xlabel="time [s]", ylabel="angle [deg]", title="angles of the base")
    legend_below(tilt)
    effort.plot(time, data.torque.values, lw=0.7)
    effort.set(xlabel="time [s]", ylabel="[N m]", title="efforts of the motors")
    pushed.plot(time, np.linalg.norm(data.push.values, axis=1), color=COLOURS[3])
    pushed.set(xlabel="time [s]", ylabel="force [N]", title="pushes")
    solves.plot(data.solve_time, 1e3 * data.solve_seconds, ".", color=COLOURS[0])
    solves.set(xlabel="time [s]", ylabel="processor time [ms]", title="solves")
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{literal(result.model)} under {facts['controller']}: "
        + literal(result.message)
    )
    return write_figure(figure, path)
