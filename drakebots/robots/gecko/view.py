"""The gecko's motion in Meshcat: curved limbs, fixed feet, and its course.

Meshcat records transforms only. Each limb is therefore a chain of straight pieces,
each in the coordinate frame of the one before it: when Meshcat interpolates their
angles between two recorded poses, the chain stays one. Limbs that stay arcs are chains
of PIECES; beams are drawn as the chains of joints that Drake simulated.
"""

from __future__ import annotations

import manifold3d
import numpy as np
import xarray as xr
from matplotlib.textpath import TextPath
from pydrake.geometry import Capsule, Cylinder, Meshcat, Rgba, Sphere
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.results import Result
from drakebots.robots.gecko.model import (
    FEET,
    LEGS,
    LIMBS,
    MARKERS,
    Pose,
    limb_pieces,
    parameters,
)
from drakebots.robots.gecko.playback import (
    check_motion,
    corners_of,
    course_points,
    epsilon_of,
    frames,
    in_half_cycles,
    obstacles_of,
)
from drakebots.view import (
    ROOT,
    Stage,
    check_playback,
    draw_squares,
    make_stage,
    play,
)

PIECES = 8
"""Number of pieces of a limb's chain: 0.2 mm from the arc at 90 degrees."""

MAX_FRAMES = 600
"""Largest number of recorded poses; Meshcat interpolates between them."""

ROBOT = f"{ROOT}/gecko"

CUP_HEIGHT = 0.004
"""Height of a foot's disc [m]."""

MARGIN = 0.04
"""Width of the ground around the course [m]."""

COURSE = f"{ROOT}/course"

OBSTACLE_HEIGHT = 0.03
"""Height of an obstacle [m]."""

DIGIT = 0.045
"""Height of a target's number [m]."""

GRID = 0.1
"""Spacing of the lines on the ground [m]."""

_LEG = Rgba(0.66, 0.47, 0.27)
_TORSO = Rgba(0.90, 0.42, 0.05)
_FRONT, _REAR = Rgba(0.05, 0.50, 0.18), Rgba(0.60, 0.25, 0.03)
_HOLDS, _FREE = Rgba(0.85, 0.05, 0.08), Rgba(0.42, 0.44, 0.48)
_ALONG_X = RollPitchYaw(0, np.pi / 2, 0).ToRotationMatrix()
CAMERA = (0.0, -0.45, 0.9)

_TARGET = Rgba(0.45, 0.16, 0.60)
_RING = Rgba(0.45, 0.16, 0.60, 0.55)
_OBSTACLE = Rgba(0.36, 0.42, 0.50)
_PATH = Rgba(0.25, 0.45, 0.75)
_WALKED = Rgba(0.90, 0.45, 0.08)
_LINES = Rgba(0.66, 0.68, 0.72)

_MEANINGS = {
    "a foot that holds": _HOLDS,
    "a foot that is free": _FREE,
    "the front end": _FRONT,
    "where the front end went": _WALKED,
}

# Heights of flat objects above the ground, one above the other [m].
_LAYER = {
    "grid": 0.0003,
    "ring": 0.0006,
    "path": 0.0009,
    "walked": 0.0012,
    "target": 0.0015,
}


# --- the robot -----------------------------------------------------------------


def record_gecko(
    result: Result,
    *,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Stage:
    """Records a gecko's motion in a new Meshcat scene.

    The scene shows the robot with a green front end, fixed feet in red and free ones
    in grey, the path of its front end, and the course: targets with the distance at
    which they count as reached, obstacles, waypoints, and the planned path.

    Args:
        result: result of kind "gecko.simulation", of either engine; the poses between
            those of the engine "pose" are interpolated.
        slow: factor by which it plays slower than real time; None for real time.
        frames_per_second: rate of the recording, up to MAX_FRAMES in all.
        port: port of the server.

    Raises:
        InvalidInput: for another kind of result, or a speed or rate that is not > 0.
    """
    data = check_motion(result)
    slow = 1.0 if slow is None else slow
    check_playback(slow=slow, frames_per_second=frames_per_second)
    length = slow * float(data.time.values[-1] - data.time.values[0])
    motion = frames(data, int(np.clip(length * frames_per_second, 2, MAX_FRAMES)))
    shown = np.vstack([motion.markers.reshape(-1, 2), course_points(result)])
    low = np.append(shown.min(axis=0) - MARGIN, 0.0)
    high = np.append(shown.max(axis=0) + MARGIN, MARGIN)
    stage = make_stage(low, high, ground_height=0.0, port=port)
    draw_grid(stage.meshcat, low, high)
    walked = motion.markers if in_half_cycles(data) else data.marker_position.values
    front = walked[:, MARKERS.index("front")]
    draw_course(stage.meshcat, data, epsilon_of(result), front)
    body = Body(stage.meshcat, motion.poses[0], motion.joints[0])
    count = len(motion.times)

    def show(k: int, time: float) -> None:
        body.show(motion.poses[k], motion.joints[k], motion.held[k], time)

    for meaning, colour in _MEANINGS.items():
        stage.caption.add(colour, meaning)
    start = data.time.values[0]
    play(stage, (count - 1) / length, count, show, start=start, slow=slow)
    stage.look_at_box(stage.low, stage.high, CAMERA)
    return stage


class Body:
    """The robot in Meshcat: a frame at its front end, and five chains."""

    def __init__(self, meshcat: Meshcat, first: Pose, joints: np.ndarray | None):
        self.meshcat, self.held = meshcat, [None] * len(FEET)
        self.radius = parameters().table("radius")
        self.height = CUP_HEIGHT + self.radius["torso"]  # of the limbs' centre lines
        self.chains = []
        count = limb_pieces(first, joints, PIECES)[1].shape[1]
        for i, name in enumerate(LIMBS):
            start = f"{ROBOT}/{'rear' if i > 2 else 'front'}/{name}"
            pieces = [start + "/piece" * k for k in range(1, count + 1)]
            self.chains.append(pieces)
            self._draw_limb(pieces, float(first.ell[i]) / count, name == "torso")
        self.feet = [f"{self.chains[limb][-1]}/foot" for limb in LEGS]
        for foot, limb in zip(self.feet, LEGS, strict=True):
            self._draw_foot(foot, float(first.ell[limb]) / count)
        for end, color in (("front", _FRONT), ("rear", _REAR)):
            ball = Sphere(1.25 * self.radius["torso"])
            meshcat.SetObject(f"{ROBOT}/{end}/end", ball, color)
        self.show(first, joints, np.ones(len(FEET), bool))
        self.held = [None] * len(FEET)  # the recording sets all properties again

    def _draw_limb(self, pieces: list[str], length: float, torso: bool) -> None:
        radius = self.radius["torso" if torso else "leg"]
        for piece in pieces:
            shape = f"{piece}/limb"
            color = _TORSO if torso else _LEG
            self.meshcat.SetObject(shape, Capsule(radius, length), color)
            middle = [length / 2, 0, 0]
            self.meshcat.SetTransform(shape, RigidTransform(_ALONG_X, middle))

    def _draw_foot(self, path: str, length: float) -> None:
        """Two discs at the end of a leg; one of them is visible."""
        low = CUP_HEIGHT / 2 - self.height
        for name, color, radius in (
            ("holds", _HOLDS, self.radius["foot"]),
            ("free", _FREE, 0.8 * self.radius["foot"]),
        ):
            cup = Cylinder(radius, CUP_HEIGHT)
            self.meshcat.SetObject(f"{path}/{name}", cup, color)
            stem = f"{path}/{name}/stem"
            tall = self.height - CUP_HEIGHT / 2
            self.meshcat.SetObject(stem, Cylinder(0.6 * radius, tall), color)
            self.meshcat.SetTransform(stem, RigidTransform([0, 0, tall / 2]))
        self.meshcat.SetTransform(path, RigidTransform([length, 0, low]))

    def show(self, pose: Pose, joints, held, time: float | None = None) -> None:
        """Sets all transforms, at `time` [s] of a recording."""
        directions, turns, chords = limb_pieces(pose, joints, PIECES)
        directions = directions - pose.heading
        along = directions[2] + np.cumsum(turns[2])
        rear = chords[2] * np.array([np.cos(along).sum(), np.sin(along).sum()])
        self._move(ROBOT, [*pose.position, self.height], pose.heading, time)
        self._move(f"{ROBOT}/rear", [*rear, 0], 0.0, time)
        for pieces, direction, turn, chord in zip(
            self.chains, directions, turns, chords, strict=True
        ):
            self._move(pieces[0], [0, 0, 0], direction + turn[0], time)
            for piece, bend in zip(pieces[1:], turn[1:], strict=True):
                self._move(piece, [chord, 0, 0], bend, time)
        for i, foot in enumerate(self.feet):
            if held[i] != self.held[i]:  # properties stay until they are set again
                for name, visible in (("holds", bool(held[i])), ("free", not held[i])):
                    self.meshcat.SetProperty(f"{foot}/{name}", "visible", visible, time)
        self.held = list(held)

    def _move(self, path: str, place, yaw: float, time: float | None) -> None:
        turned = RotationMatrix.MakeZRotation(float(yaw))
        self.meshcat.SetTransform(path, RigidTransform(turned, place), time)


# --- the course ----------------------------------------------------------------


def draw_course(
    meshcat: Meshcat, data: xr.Dataset, epsilon: float, walked: np.ndarray
) -> None:
    """Draws a course, where targets count as reached at epsilon [m], and the path
    (n, 2) [m] of the robot's front end."""
    ribbon(meshcat, f"{COURSE}/walked", walked, 0.004, _LAYER["walked"], _WALKED)
    if "path" in data:
        path = data.path.values
        ribbon(meshcat, f"{COURSE}/path", path, 0.006, _LAYER["path"], _PATH)
    for k, polygon in enumerate(obstacles_of(data)):
        place = f"{COURSE}/obstacle/{k}", [polygon], (0.0, 0.0)
        prism(meshcat, *place, OBSTACLE_HEIGHT, _OBSTACLE)
    if "waypoint" in data:
        planned = np.vstack([walked[:1], data.waypoint.values])
        ribbon(meshcat, f"{COURSE}/planned", planned, 0.002, _LAYER["path"], _PATH)
        for k, point in enumerate(corners_of(data)):
            _disc(meshcat, f"{COURSE}/waypoint/{k}", point, 0.007, _PATH)
    for k, point in enumerate(data.target.values if "target" in data else ()):
        path = f"{COURSE}/target/{k + 1}"
        _disc(meshcat, path, point, 0.014, _TARGET)
        if epsilon > 0:
            turn = np.linspace(0, 2 * np.pi, 73)
            circle = point + epsilon * np.stack([np.cos(turn), np.sin(turn)], axis=1)
            ribbon(meshcat, f"{path}/ring", circle, 0.003, _LAYER["ring"], _RING)
        number(meshcat, f"{path}/number", k + 1, point + np.array([0.022, 0.012]))


def draw_grid(meshcat: Meshcat, low: np.ndarray, high: np.ndarray) -> None:
    """Lines on the ground, one every GRID, over a box with corners (3,) [m]."""
    ends = np.round(low / GRID), np.round(high / GRID)
    path = f"{COURSE}/lines_every_{100 * GRID:g}_cm"
    draw_squares(meshcat, path, *ends, GRID, _LAYER["grid"], _LINES)


def _disc(meshcat: Meshcat, path: str, point, radius: float, color: Rgba) -> None:
    meshcat.SetObject(f"{path}/disc", Cylinder(radius, 2 * _LAYER["target"]), color)
    meshcat.SetTransform(f"{path}/disc", RigidTransform([*point, 0.0]))


def ribbon(meshcat: Meshcat, path: str, points, width: float, z: float, color) -> None:
    """A flat line with a width; browsers draw lines one pixel wide.

    Args:
        meshcat: the scene.
        path: name in the scene.
        points: points of the line (n, 2) [m].
        width: width of the line [m].
        z: height above the ground [m].
        color: colour.
    """
    points = np.asarray(points, float)
    moved = np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6
    points = points[np.append(True, moved)]
    if len(points) < 2:
        return
    along = np.gradient(points, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    side = width / 2 * np.stack([-along[:, 1], along[:, 0]], axis=1)
    corners = np.vstack([points + side, points - side])
    n = len(points)
    a = np.arange(n - 1)
    faces = np.hstack([[a, a + 1, a + n], [a + 1, a + n + 1, a + n]])
    corners = np.vstack([corners.T, np.full(2 * n, z)])
    meshcat.SetTriangleMesh(path, corners, faces, color)


def number(meshcat: Meshcat, path: str, value: int, corner) -> None:
    """A flat number; its lower left corner is given (2,) [m]."""
    outlines = TextPath((0, 0), str(value), size=DIGIT / 0.73).to_polygons()
    prism(meshcat, path, outlines, corner, 2 * _LAYER["target"], _TARGET)


def prism(meshcat: Meshcat, path: str, outlines, corner, height: float, color) -> None:
    """Polygons (m, 2) [m], concave or with holes, extruded from the ground; they are
    moved by the place of a corner (2,) [m]."""
    section = manifold3d.CrossSection(outlines, manifold3d.FillRule.EvenOdd)
    mesh = section.extrude(height).to_mesh()
    # Every triangle has its own corners: shared ones would be shaded as round.
    corners = mesh.vert_properties[mesh.tri_verts.ravel(), :3] + [*corner, 0.0]
    faces = np.arange(len(corners)).reshape(-1, 3).T
    meshcat.SetTriangleMesh(path, corners.T, faces, color)
