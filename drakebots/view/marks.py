"""What moves with a robot in a recording: contacts, forces, pushes, plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import xarray as xr
from pydrake.geometry import Cylinder, MeshcatCone, Rgba, Sphere
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.results import Result
from drakebots.view.scene import ROOT, Scene

_CONTACT = Rgba(0.90, 0.20, 0.10, 0.85)
_HORIZON = Rgba(0.10, 0.45, 0.85, 1.0)
_PUSH, _GOAL = Rgba(0.85, 0.15, 0.10, 1), Rgba(0.15, 0.60, 0.25, 1)

SEEN = 0.4
"""An arrow stays for so long, though its push may be shorter [s]."""


class Mark(Protocol):
    """Something that moves with a robot in a recording."""

    def show(self, k: int, time: float) -> None:
        """Records how it is at sample k of the motion, at a time [s] of the page."""


class ContactMarks:
    """A ball at each foot, visible while it carries load.

    Args:
        scene: to draw in.
        data: with `foot_force` and `foot_position`; without them nothing is drawn.
        radius: of the balls [m]; by default in proportion to the scene.
        share: of the largest load from which on a foot counts as loaded.
        colour: of the balls.
    """

    def __init__(
        self,
        scene: Scene,
        data: xr.Dataset,
        *,
        radius: float | None = None,
        share: float = 0.01,
        colour: Rgba = _CONTACT,
    ):
        self.scene, self.paths = scene, []
        if "foot_force" not in data or not data.sizes.get("foot", 0):
            return
        self.loaded = data.foot_force.values[..., 2]
        self.loaded = self.loaded > share * max(self.loaded.max(), 1e-12)
        self.places = data.foot_position.values
        scene.caption.add(colour, "a foot that carries load")
        ball = Sphere(0.022 * scene.reach if radius is None else radius)
        self.paths = [f"{ROOT}/contact/{name}" for name in data.foot.values]
        for path in self.paths:
            scene.meshcat.SetObject(path, ball, colour)

    def show(self, k: int, time: float) -> None:
        for i, path in enumerate(self.paths):
            state = bool(self.loaded[k, i])
            if state:
                pose = RigidTransform(self.places[k, i])
                self.scene.meshcat.SetTransform(path, pose, time)
            self.scene.meshcat.SetProperty(path, "visible", state, time)


def draw_arrow(scene: Scene, path: str, length: float, colour: Rgba) -> None:
    """A hidden arrow along +z of a length [m], its tip at the origin."""
    meshcat, width = scene.meshcat, 0.02 * scene.reach
    head = 4 * width
    meshcat.SetObject(f"{path}/shaft", Cylinder(width, length), colour)
    meshcat.SetTransform(f"{path}/shaft", RigidTransform([0, 0, -head - length / 2]))
    meshcat.SetObject(f"{path}/head", MeshcatCone(head, 0.6 * head, 0.6 * head), colour)
    # The cone's tip is its origin, and it widens along +z.
    turned = RigidTransform(RotationMatrix.MakeXRotation(np.pi))
    meshcat.SetTransform(f"{path}/head", turned)
    meshcat.SetProperty(path, "visible", False)


class ForceArrows:
    """Forces as arrows from where they act, as long as they are strong.

    Args:
        scene: to draw in.
        names: of the places where they act.
        whole: force of an arrow [N] that has the `length` [m].
    """

    def __init__(self, scene: Scene, names: Iterable, whole: float, length: float):
        self.scene, self.whole, self.length = scene, whole, length
        self.paths = [f"{ROOT}/force/{name}".replace("::", "/") for name in names]
        for path in self.paths:
            draw_arrow(scene, path, length, _CONTACT)

    def draw(self, forces, points, time: float | None = None) -> None:
        """Records, or without a time draws, forces [N] at points [m], both (n, 3)."""
        meshcat = self.scene.meshcat
        for path, force, point in zip(self.paths, forces, points):
            length = np.linalg.norm(force) / self.whole
            if seen := length > 0.02:
                R = RotationMatrix.MakeFromOneVector(force, 2)
                tip = point + length * self.length * R.col(2)
                meshcat.SetTransform(path, RigidTransform(R, tip), time)
                meshcat.SetProperty(path, "scale", [length] * 3, time)
            meshcat.SetProperty(path, "visible", bool(seen), time)


class LoggedForces(ForceArrows):
    """Forces of the ground in a recording.

    Args:
        scene: to draw in.
        data: with `ground_force` [N] and `ground_point` [m] (time, body, axis); without
            them nothing is drawn.
    """

    def __init__(self, scene: Scene, data: xr.Dataset):
        self.paths = []
        if "ground_force" not in data:
            return
        self.force, self.point = data.ground_force.values, data.ground_point.values
        size = np.linalg.norm(self.force, axis=-1)
        # One strong blow is not to make all others invisible.
        whole = np.quantile(size[size > 0], 0.95)
        meaning = f"forces of the ground; {whole:.2g} N: a third of the robot's size"
        scene.caption.add(_CONTACT, meaning)
        super().__init__(scene, data.body.values, whole, 0.35 * scene.reach)

    def show(self, k: int, time: float | None = None) -> None:
        """Records, or without a time draws, the forces at sample k of the motion."""
        if self.paths:
            self.draw(self.force[k], self.point[k], time)


def draw_horizon(scene: Scene, path: str, points: np.ndarray) -> None:
    """Lines through the planned places (knots, n, 3) [m] of base and feet."""
    sides = points[:-1], points[1:]
    starts, ends = (np.asfortranarray(side.reshape(-1, 3).T) for side in sides)
    scene.caption.add(_HORIZON, "planned paths of base and feet")
    scene.meshcat.SetLineSegments(path, starts, ends, 3.0, _HORIZON)


class ControlMarks:
    """Pushes and horizons of a controlled run, and its goal, which stays.

    Args:
        scene: to draw in.
        result: with `pushes` among its metrics; without them nothing is drawn.
    """

    def __init__(self, scene: Scene, result: Result):
        self.scene, self.data = scene, result.data
        self.arrows: dict[str, dict] = {}
        self.paths: list[str] = []
        if "pushes" not in result.metrics:
            return
        if (goal := result.metrics.get("goal_m")) is not None:
            place = [*(result.data.base_position.values[0, :2] + goal), 1e-3]
            scene.caption.add(_GOAL, "the goal")
            disc = Cylinder(0.12 * scene.reach, 2e-3)
            scene.meshcat.SetObject(f"{ROOT}/goal", disc, _GOAL)
            scene.meshcat.SetTransform(f"{ROOT}/goal", RigidTransform(place))
        pushes = result.metrics["pushes"]
        strongest = max((abs(push["force"]) for push in pushes), default=1.0)
        # An arrow's tip is at its origin, and it points along +z.
        for i, push in enumerate(pushes):
            length = scene.reach * abs(push["force"]) / max(strongest, 1e-12)
            self.arrows[f"{ROOT}/push/{i}"] = push
            draw_arrow(scene, f"{ROOT}/push/{i}", length, _PUSH)
            scene.caption.add(_PUSH, "a push, while it acts")
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
