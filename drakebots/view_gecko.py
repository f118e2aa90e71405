"""See a gecko's run in Meshcat: curved limbs, feet that hold, and its course.

Meshcat records transforms only. Each limb is therefore a chain of straight pieces,
each in the frame of the one before it: between two recorded frames their angles are
interpolated, and the chain stays an arc.
"""

from __future__ import annotations

import numpy as np
from pydrake.geometry import Capsule, Cylinder, Meshcat, Rgba, Sphere
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.results import Result
from drakebots.robots.gecko.kinematics import Pose, arc_end, limb_starts
from drakebots.robots.gecko.parameters import FEET, LEGS, LIMBS, MARKERS, raw
from drakebots.robots.gecko.playback import check_gecko_run, frames, in_half_cycles
from drakebots.scene import ROOT, Stage, make_stage
from drakebots.view_gecko_course import course_points, draw_course, draw_grid
from drakebots.view_playback import check_playback, play

PIECES = 8
"""Of a limb's chain: 0.2 mm from the arc at 90 degrees."""

MAX_FRAMES = 600
"""A recording has at most so many; Meshcat interpolates between them."""

ROBOT = f"{ROOT}/gecko"

CUP_HEIGHT = 0.004
"""Of a foot's disc [m]."""

MARGIN = 0.04
"""Shown around the course [m]."""

_LEG = Rgba(0.66, 0.47, 0.27)
_TORSO = Rgba(0.90, 0.42, 0.05)
_FRONT, _REAR = Rgba(0.05, 0.50, 0.18), Rgba(0.60, 0.25, 0.03)
_HOLDS, _FREE = Rgba(0.85, 0.05, 0.08), Rgba(0.42, 0.44, 0.48)
_ALONG_X = RollPitchYaw(0, np.pi / 2, 0).ToRotationMatrix()
_CAMERA = np.array([0.0, -0.45, 0.9])
_VIEW_ANGLE, _ASPECT = np.radians(40.0), 1.5


def record_gecko(
    result: Result,
    *,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Stage:
    """Records a gecko's run in a new Meshcat scene.

    Shown are the robot with its front end in green, feet that hold in red and
    free ones in grey, the way of its front end, and the course: targets with
    the distance at which they count as reached, obstacles, waypoints, path.

    Args:
        result: of `simulate_gecko`, by either engine; with "pose", poses
            between those simulated are interpolated.
        slow: how many times slower than real; None for real time.
        frames_per_second: of the playback, as far as MAX_FRAMES goes.
        port: of the server.

    Raises:
        InvalidInput: for a result that is not a gecko's motion, or a speed or
            rate that is not > 0.
    """
    data = check_gecko_run(result)
    slow = 1.0 if slow is None else slow
    check_playback(slow=slow, frames_per_second=frames_per_second)
    length = slow * float(data.time.values[-1] - data.time.values[0])
    motion = frames(data, int(np.clip(length * frames_per_second, 2, MAX_FRAMES)))
    shown = np.vstack([motion.markers.reshape(-1, 2), course_points(result)])
    low, high = _bounds(shown)
    stage = make_stage(low, high, ground_height=0.0, port=port)
    draw_grid(stage.meshcat, low, high)
    way = motion.markers if in_half_cycles(data) else data.marker_position.values
    draw_course(stage.meshcat, result, way[:, MARKERS.index("front")])
    body = _Body(stage.meshcat, motion.poses[0])
    rate = len(motion.times) / length
    body.forget()
    poses = list(zip(motion.poses, motion.held, strict=True))
    play(
        stage.meshcat,
        rate,
        len(poses),
        lambda frame, time: body.show(*poses[frame], time),
    )
    _look(stage)
    return stage


class _Body:
    """The robot in Meshcat: a frame at its front end, and five chains."""

    def __init__(self, meshcat: Meshcat, first: Pose):
        self.meshcat, self.held = meshcat, [None] * len(FEET)
        self.radius = {name: 1e-3 * mm for name, mm in raw()["radius"]["value"].items()}
        self.chains = []
        for i, name in enumerate(LIMBS):
            start = f"{ROBOT}/{'rear' if i > 2 else 'front'}/{name}"
            pieces = [start + "/piece" * k for k in range(1, PIECES + 1)]
            self.chains.append(pieces)
            self._draw_limb(pieces, float(first.ell[i]) / PIECES, name == "torso")
        self.feet = [f"{self.chains[limb][-1]}/foot" for limb in LEGS]
        for foot, limb in zip(self.feet, LEGS, strict=True):
            self._draw_foot(foot, float(first.ell[limb]) / PIECES)
        for end, color in (("front", _FRONT), ("rear", _REAR)):
            ball = Sphere(1.25 * self.radius["torso"])
            meshcat.SetObject(f"{ROBOT}/{end}/end", ball, color)
        self.show(first, np.ones(len(FEET), bool))

    def _draw_limb(self, pieces: list[str], length: float, torso: bool) -> None:
        radius = self.radius["torso" if torso else "leg"]
        for piece in pieces:
            shape = f"{piece}/limb"
            color = _TORSO if torso else _LEG
            self.meshcat.SetObject(shape, Capsule(radius, length), color)
            middle = [length / 2, 0, 0]
            self.meshcat.SetTransform(shape, RigidTransform(_ALONG_X, middle))

    def _draw_foot(self, path: str, length: float) -> None:
        """Two discs at the end of a leg; one of them is seen."""
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

    @property
    def height(self) -> float:
        """Of the limbs' centre lines above the ground [m]."""
        return CUP_HEIGHT + self.radius["torso"]

    def show(self, pose: Pose, held: np.ndarray, time: float | None = None) -> None:
        """Places all frames; recorded at `time` [s] while recording."""
        directions, bends = limb_starts(pose.alpha, 0.0)
        rear = arc_end(np.zeros(2), directions[2], bends[2], pose.ell[2])
        place = [*pose.position, self.height]
        self._move(ROBOT, place, pose.heading, time)
        self._move(f"{ROBOT}/rear", [*rear, 0], 0.0, time)
        piece_bends = bends / PIECES
        chords = pose.ell / PIECES * np.sinc(piece_bends / (2 * np.pi))
        for pieces, direction, bend, chord in zip(
            self.chains, directions, piece_bends, chords, strict=True
        ):
            self._move(pieces[0], [0, 0, 0], direction + bend / 2, time)
            for piece in pieces[1:]:
                self._move(piece, [chord, 0, 0], bend, time)
        for i, foot in enumerate(self.feet):
            if held[i] != self.held[i]:  # a property keeps until it is set again
                self.meshcat.SetProperty(
                    f"{foot}/holds", "visible", bool(held[i]), time
                )
                self.meshcat.SetProperty(f"{foot}/free", "visible", not held[i], time)
        self.held = list(held)

    def forget(self) -> None:
        """Makes the next pose state all properties."""
        self.held = [None] * len(FEET)

    def _move(self, path: str, place, yaw: float, time: float | None) -> None:
        turned = RotationMatrix.MakeZRotation(float(yaw))
        self.meshcat.SetTransform(path, RigidTransform(turned, place), time)


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    return np.append(low, 0.0), np.append(high, MARGIN)


def _look(stage: Stage) -> None:
    """Puts the camera where a page of 3 : 2 just shows all, in its middle."""
    back = _CAMERA / np.linalg.norm(_CAMERA)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    up = np.cross(back, right)
    corners = np.array(np.meshgrid(*zip(stage.low, stage.high))).reshape(3, -1).T
    half = np.tan(_VIEW_ANGLE / 2)
    target = stage.middle
    for _ in range(10):  # perspective: what is near takes more of the page
        away = corners - target
        sides = np.stack([away @ right / (half * _ASPECT), away @ up / half], axis=1)
        depth = away @ back
        distance = (abs(sides).max(axis=1) + depth).max()
        seen = sides / (distance - depth)[:, None]
        off = distance * (seen.min(axis=0) + seen.max(axis=0)) / 2
        target = target + off[0] * half * _ASPECT * right + off[1] * half * up
    stage.look(target + 1.05 * distance * back, target)
