"""Record the motion of a rigid robot in Meshcat, and serve a scene live."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from pydrake.geometry import (
    Box,
    HalfSpace,
    Meshcat,
    Rgba,
)
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.core.checks import check_value, positive
from drakebots.core.errors import DrakebotsError
from drakebots.core.lazy import late
from drakebots.formats import model_of, terrain_of
from drakebots.model import Model, joints_of
from drakebots.multibody import COLOUR, Flat, Terrain
from drakebots.results import Result, in_order, require
from drakebots.view.marks import ContactMarks, ControlMarks, Mark
from drakebots.view.scene import ROOT, Scene, Stage, make_scene


def check_playback(**values: float) -> None:
    """Refuses a speed, rate or magnification that is not > 0.

    Raises:
        InvalidInput: naming it.
    """
    for name, value in values.items():
        check_value(name, value, positive())


def frame_times(
    times: np.ndarray, slow: float, frames_per_second: float, most: int
) -> tuple[float, np.ndarray]:
    """The playback's rate [1/s], and the times of its frames (n,) [s].

    Args:
        times: of the motion's samples (T,) [s].
        slow: factor by which to play slower than these.
        frames_per_second: wanted; fewer when there would be too many frames.
        most: of frames.

    Raises:
        InvalidInput: as :func:`check_playback`.
    """
    check_playback(slow=slow, frames_per_second=frames_per_second)
    length = slow * float(times[-1] - times[0])
    count = int(np.clip(np.ceil(length * frames_per_second - 1e-9) + 1, 2, most))
    return (count - 1) / length, np.linspace(times[0], times[-1], count)


def play(
    stage: Stage,
    rate: float,
    count: int,
    show: Callable[[int, float], None],
    *,
    start: float,
    slow: float,
    publish: bool = True,
) -> None:
    """Records frames 0 .. count - 1.

    Args:
        stage: where.
        rate: frames per second of the playback.
        count: of frames.
        show: called with the frame and its time [s].
        start: the motion's time in the first frame [s], for the page's clock.
        slow: factor by which it plays slower than real time.
        publish: whether to send it to the browsers that are connected.
    """
    meshcat = stage.meshcat
    stage.caption.start, stage.caption.slow = float(start), float(slow)
    meshcat.StartRecording(rate, False)
    for frame in range(count):
        # Meshcat rounds the time down to a frame.
        show(frame, (frame + 0.25) / rate)
    meshcat.StopRecording()
    if publish:
        meshcat.PublishRecording()


MAX_FRAMES = 1500
"""A recording has at most so many frames."""

LOOKS = 12
"""Number of poses by which the room that a motion needs is found."""

SIDE = (0.35, -0.95, 0.55)
"""Direction from a motion to the camera."""

_TRAIL = Rgba(0.85, 0.25, 0.15, 1.0)
_LINES = Rgba(0.62, 0.64, 0.68, 1.0)


def positions_in_order(scene: Scene, data: xr.Dataset) -> np.ndarray:
    """The recorded positions (T, nq) in the order of the scene's plant.

    Raises:
        InvalidInput: when the result is of another model.
    """
    wanted = list(scene.plant.GetPositionNames(always_add_suffix=False))
    have, recorded = position_names(data), data.position.values
    base = _free_base(scene.plant, data, have)
    if base:
        # The run may hold its base by other coordinates (a plan by roll, pitch
        # and yaw); its pose says the same.
        have, recorded = [*base, *have], np.hstack([*base.values(), recorded])
    return in_order(recorded, have, wanted)


def position_names(data: xr.Dataset) -> list[str]:
    """The names of a result's joint positions, in order; none if it has none.

    They are the labels of whichever dimension `position` has beside time: a dataset
    may name other coordinates too.
    """
    if "position" not in data:
        return []
    return [
        str(name)
        for dim in data.position.dims
        if dim != "time" and dim in data.coords
        for name in data[dim].values
    ]


def _free_base(plant, data: xr.Dataset, have: list[str]) -> dict[str, np.ndarray]:
    """Columns (T, 1) of the scene's only floating joint from the base's pose."""
    names = plant.GetPositionNames(always_add_suffix=False)
    floating = [j for j in joints_of(plant) if j.type_name() == "quaternion_floating"]
    if len(floating) != 1 or "base_rpy" not in data:
        return {}
    start = floating[0].position_start()
    own = names[start : start + 7]
    if all(name in have for name in own):
        return {}
    angles, places = data.base_rpy.values, data.base_position.values
    quaternions = [RollPitchYaw(rpy).ToQuaternion().wxyz() for rpy in angles]
    columns = np.hstack([quaternions, places])
    return {name: columns[:, [i]] for i, name in enumerate(own)}


def record_motion(
    result: Result,
    *,
    model: Model | None = None,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
    draw: Callable[[Scene, xr.Dataset], Sequence[Mark]] | None = None,
) -> Scene:
    """Records the motion of a rigid robot in a new Meshcat scene.

    Shown are the robot, the path of its base, a red mark under each foot that
    carries load, and lines on the ground at a round distance.

    Args:
        result: with `position` and `base_position`.
        model: that moved; found by the result's name if None.
        slow: factor by which it plays slower than real time; None chooses one so that a
            stride takes half a second.
        frames_per_second: of the playback.
        port: of the server.
        draw: draws into the scene what else there is to see, and returns what moves
            with the robot; by default its loaded feet.

    Raises:
        InvalidInput: when the result holds no motion.
    """
    data = result.data
    require(data, "position", "motion to show", time=2)
    if slow is None:
        slow = max(1.0, 0.5 * float(result.metrics.get("frequency_hz", 0.0)))
    times = data.time.values
    rate, moments = frame_times(times, slow, frames_per_second, MAX_FRAMES)
    samples = np.minimum(np.searchsorted(times, moments), len(times) - 1)
    scene = make_scene(model or model_of(result), ground_height=0.0, port=port)
    q = positions_in_order(scene, data)
    draw_ground(scene, result)
    scene.show(q[0])
    if draw is None:
        marks = [ContactMarks(scene, data), ControlMarks(scene, result)]
    else:
        marks = draw(scene, data)

    def show(frame: int, time: float) -> None:
        scene.show(q[samples[frame]], time)
        for mark in marks:
            mark.show(samples[frame], time)

    play(scene, rate, len(samples), show, start=times[0], slow=slow)
    look_at_motion(scene, q[samples])
    return scene


def draw_ground(scene: Scene, result: Result) -> Terrain:
    """The ground of a result, and what lies on it; flat ground where it is lost.

    Of a result with `base_position` (time, 3) [m] that is the base's path, and on flat
    ground lines that show how far it goes.
    """
    try:
        terrain = terrain_of(result)
        draw_terrain(scene, terrain)
    except DrakebotsError:
        terrain = Flat()
    if "base_position" in result.data:
        if terrain == Flat():
            draw_ground_lines(scene, result.data)
        draw_trail(scene, result.data, terrain)
    return terrain


def draw_terrain(scene: Scene, terrain: Terrain) -> RigidTransform | None:
    """Draws the shapes of a terrain; a half space is the scene's own ground, turned,
    and flat ground at height 0 the scene's own.

    Returns:
        The pose of the half space, where there is one.
    """
    if terrain == Flat():
        return None
    meshcat, floor = scene.meshcat, None
    for number, (shape, X_WG) in enumerate(terrain.drawn()):
        if isinstance(shape, HalfSpace):
            floor = X_WG
            scene.put_ground(floor)
            continue
        if isinstance(shape, Box):
            width = min(shape.depth(), 4 * scene.reach)
            shape = Box(shape.width(), width, shape.height())
        path = f"{ROOT}/terrain/{number}"
        meshcat.SetObject(path, shape, Rgba(*COLOUR))
        meshcat.SetTransform(path, X_WG)
    meshcat.SetProperty("/ground", "visible", floor is not None)
    return floor


def draw_trail(scene: Scene, data: xr.Dataset, terrain: Terrain = Flat()) -> None:
    """The path of the base over the ground, from `base_position` (time, 3) [m]."""
    path = data.base_position.values.copy()
    # On the ground, where it hides nothing of the robot.
    path[:, 2] = terrain.heights(path[:, 0], path[:, 1]) + 0.002 * scene.reach
    step = max(1, len(path) // 2000)
    scene.caption.add(_TRAIL, "the path of the base")
    scene.meshcat.SetLine(f"{ROOT}/path", path[::step].T, 3.0, _TRAIL)


def draw_ground_lines(scene: Scene, data: xr.Dataset) -> tuple[str, float]:
    """Lines across the path, at a round distance; returns their path and it [m]."""
    spacing = round_distance(0.5 * scene.reach)
    base = data.base_position.values
    low = np.floor((base.min(axis=0) - 2 * scene.reach) / spacing)
    high = np.ceil((base.max(axis=0) + 2 * scene.reach) / spacing)
    scene.caption.add(_LINES, f"lines every {spacing * 1e3:g} mm")
    path = f"{ROOT}/lines_every_{spacing * 1e3:g}_mm"
    height = 0.001 * scene.reach
    draw_squares(scene.meshcat, path, low, high, spacing, height, _LINES)
    return path, spacing


def draw_squares(
    meshcat: Meshcat, path: str, low, high, spacing: float, height: float, colour: Rgba
) -> None:
    """Lines on the ground at whole multiples of a spacing [m], low to high (2,)."""
    x, y = (np.arange(low[k], high[k] + 1) for k in range(2))
    starts = [(a, low[1]) for a in x] + [(low[0], b) for b in y]
    ends = [(a, high[1]) for a in x] + [(high[0], b) for b in y]
    z = np.full(len(starts), height)
    corners = (np.vstack([spacing * np.transpose(k), z]) for k in (starts, ends))
    meshcat.SetLineSegments(path, *corners, 1.0, colour)


def round_distance(length: float) -> float:
    """The largest 1, 2 or 5 times a power of ten that is <= length."""
    most = length * (1 + 1e-9)
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(m * power for m in (1, 2, 5) if m * power <= most))


def look_at_motion(
    scene: Scene,
    q: np.ndarray,
    direction: tuple[float, float, float] = SIDE,
    also: np.ndarray | None = None,
) -> None:
    """Turns camera and light to a motion, so that all of it is seen and little more.

    Args:
        scene: of the model that moves.
        q: its positions (T, nq); some of them are looked at.
        direction: from the motion to the camera.
        also: further points to be seen (n, 3) [m].
    """
    moments = np.linspace(0, len(q) - 1, min(len(q), LOOKS)).astype(int)
    points = np.vstack([scene.corners(q[k]) for k in moments])
    if also is not None:
        points = np.vstack([points, also])
    if not len(points) or not np.ptp(points, axis=0).any():
        points = np.array([scene.low, scene.high])
    scene.look_at_points(points, direction)
    low, high = points.min(axis=0), points.max(axis=0)
    spot = "/Lights/SpotLight"
    middle = scene.scale * ((low + high) / 2 - scene.ground)[:2]
    scene.meshcat.SetTransform(spot, RigidTransform([*middle, 0.0]))
    # High enough that its cone lights the whole motion.
    size = float(np.linalg.norm(high - low)) / 2
    far = max(1.0, 1.3 * scene.scale * (size + scene.reach))
    height = [0.5 * far, -1.0 * far, 3.0 * far]
    scene.meshcat.SetProperty(f"{spot}/<object>", "position", height)


def announce(meshcat: Meshcat) -> str:
    """Says where a page is, which is returned; a notebook shows it."""
    url = meshcat.web_url()
    print(f"{url} (Ctrl-C ends)", flush=True)
    if "ipykernel" in sys.modules:
        ipython = late("IPython.display")
        ipython.display(ipython.IFrame(url, "100%", 480))
    return url


def serve(scene: Stage, *, seconds: float | None = None) -> None:
    """Keeps the server up until Ctrl-C, or for some seconds.

    What no animation of Meshcat can hold is played meanwhile (:meth:`Stage.at`).
    """
    try:
        scene.begin()
        start = time.monotonic()
        while seconds is None or time.monotonic() < start + seconds:
            scene.at(time.monotonic() - start)
            time.sleep(0.1 if type(scene).at is Stage.at else 0.03)
    except KeyboardInterrupt:
        return
