"""A model in a Meshcat scene: scaled to a comfortable size, on a ground, lit.

Meshcat's near plane, lights and shadows are made for robots of a metre. A
model of any size is therefore shown under a scaled path; poses that are
published keep their SI numbers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from html import escape
from itertools import product
from pathlib import Path

import numpy as np
from pydrake.geometry import (
    Cylinder,
    Meshcat,
    MeshcatParams,
    MeshcatVisualizer,
    MeshcatVisualizerParams,
    Rgba,
    Role,
    SceneGraph,
    Sphere,
)
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context, Diagram, DiagramBuilder

from drakebots.core.errors import InvalidInput
from drakebots.core.files import write_text
from drakebots.model import Model, bodies_of, box_corners, joints_of
from drakebots.multibody import Robot, base_body, set_base_pose
from drakebots.view.page import Caption

VIEW = (0.72, -0.90, 0.58)
"""Direction from what is shown to the default camera."""

_FIELD_OF_VIEW = 40.0
"""Field of view of the camera, from bottom to top [deg]."""

_ASPECT = 1.5
"""Width over height of the narrowest window in which all is to be seen."""

_MARGIN = 1.07
"""Distance of the camera over the least at which all is seen."""

ROOT = "/drake"
"""Everything in robot coordinates lies below this path."""

_LIGHT = [  # with the model scaled to a half diagonal of 0.5 m
    ("/Grid", "visible", False),
    ("/Axes", "visible", False),
    ("/Background/<object>", "top_color", [0.98, 0.98, 0.99]),
    ("/Background/<object>", "bottom_color", [0.86, 0.87, 0.89]),
    ("/Lights/AmbientLight/<object>", "intensity", 1.0),
    ("/Lights/FillLight/<object>", "intensity", 0.5),
    ("/Lights/PointLightPositiveX/<object>", "intensity", 3.0),
    ("/Lights/PointLightNegativeX/<object>", "intensity", 4.0),
    ("/Lights/SpotLight", "visible", True),
    ("/Lights/SpotLight/<object>", "position", [0.5, -1.0, 3.0]),
    ("/Lights/SpotLight/<object>", "decay", 0.0),
    ("/Lights/SpotLight/<object>", "penumbra", 1.0),
    ("/Lights/SpotLight/<object>", "intensity", 2.6),
    ("/Lights/SpotLight/<object>", "castShadow", True),
    # Twice as many make pages that a processor draws half as fast.
    ("/Lights/SpotLight/<object>", "shadow.mapSize.width", 1024.0),
    ("/Lights/SpotLight/<object>", "shadow.mapSize.height", 1024.0),
    ("/Lights/SpotLight/<object>", "shadow.bias", -0.0005),
    ("/Lights/SpotLight/<object>", "shadow.radius", 5.0),
    ("/Cameras/default/rotated/<object>", "fov", _FIELD_OF_VIEW),
]


def axes_of_view(direction) -> np.ndarray:
    """Right, up and back of a camera, unit vectors as rows (3, 3).

    Args:
        direction: direction to the camera (3,), not vertical.
    """
    back = np.asarray(direction, float) / np.linalg.norm(direction)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return np.array([right, np.cross(back, right), back])


@dataclass(frozen=True)
class Stage:
    """A lit ground in Meshcat for things of a known size.

    Attributes:
        meshcat: the server.
        low, high: corners of what is shown at first (3,) [m].
        scale: scale of the scene.
        ground: the point that is drawn at the scene's origin (3,) [m].
        caption: caption of its page.
    """

    meshcat: Meshcat
    low: np.ndarray
    high: np.ndarray
    scale: float
    ground: np.ndarray
    caption: Caption = field(default_factory=Caption, kw_only=True, repr=False)

    @property
    def middle(self) -> np.ndarray:
        """Centre of what is shown (3,) [m]."""
        return (self.low + self.high) / 2

    @property
    def reach(self) -> float:
        """Half the diagonal of what is shown [m]."""
        return float(np.linalg.norm(self.high - self.low)) / 2

    def look(self, camera=None, target=None) -> None:
        """Places the camera; both (3,) in the world [m]. By default it sees all."""
        if camera is None:
            return self.look_at_box(self.low, self.high)
        target = self.middle if target is None else np.asarray(target, float)
        if not np.isfinite([*camera, *target]).all():
            raise InvalidInput("camera and target must be finite, in m")
        eye = self.scale * (np.asarray(camera, float) - self.ground)
        self.meshcat.SetCameraPose(eye, self.scale * (target - self.ground))

    def follow(self, x: float, y: float, z: float = 0.0) -> None:
        """Moves the world so that the view is about (x, y, z) [m] as it was about the
        world's origin."""
        ground = np.add(self.ground, [x, y, z])
        self.meshcat.SetTransform(ROOT, _scaling(self.scale, ground))

    def put_ground(self, X_WG: RigidTransform, about: np.ndarray | None = None) -> None:
        """Shows a half space as the ground.

        Args:
            X_WG: its pose; its surface is the plane through Gx and Gy.
            about: the point (3,) [m] that the view follows; None for the origin.
        """
        R, n = X_WG.rotation(), X_WG.rotation().col(2)
        at = self.ground if about is None else self.ground + about
        away = self.scale * (n @ (X_WG.translation() - at))
        self.meshcat.SetTransform("/ground", RigidTransform(R, (away - 5e-3) * n))

    def look_at_box(self, low, high, direction=VIEW) -> None:
        """Places the camera as near as all of a box is in the picture.

        Args:
            low, high: corners of the box (3,) [m].
            direction: as in :meth:`look_at_points`.
        """
        self.look_at_points(np.array(list(product(*zip(low, high)))), direction)

    def look_at_points(self, points: np.ndarray, direction=VIEW) -> None:
        """Places the camera as near as all points are in the picture, in its middle.

        Args:
            points: points in the world (n, 3) [m].
            direction: direction from them to the camera (3,), not vertical.
        """
        points = np.asarray(points, float)
        right, up, back = axes_of_view(direction)
        half = np.tan(np.radians(_FIELD_OF_VIEW) / 2)
        target = (points.min(axis=0) + points.max(axis=0)) / 2
        for _ in range(10):  # in perspective, near points take more of the picture
            away = points - target
            sides = np.stack([away @ right / (half * _ASPECT), away @ up / half], 1)
            depth = away @ back
            distance = float((abs(sides).max(axis=1) + depth).max())
            projected = sides / (distance - depth)[:, None]
            off = distance * (projected.min(axis=0) + projected.max(axis=0)) / 2
            target = target + off[0] * half * _ASPECT * right + off[1] * half * up
        self.look(target + _MARGIN * distance * back, target)

    def begin(self) -> None:
        """Called before the scene is served; draws what only a live scene shows."""

    def at(self, elapsed: float) -> None:
        """Called while the scene is served: draws what a recording cannot hold.

        Args:
            elapsed: since the scene is served [s].
        """

    def html(self) -> str:
        """One self-contained page, with the published recording if any."""
        return self.caption.on(self.meshcat.StaticHtml())

    def _repr_html_(self) -> str:
        """Page in a frame of a notebook cell's width."""
        style = "width: 100%; height: 420px; border: 0"
        return f'<iframe srcdoc="{escape(self.html())}" style="{style}"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Writes the scene as one self-contained page, atomically.

        Raises:
            FileProblem: when the folder cannot be written to.
        """
        return write_text(path, self.html())


@dataclass(frozen=True)
class Scene(Stage):
    """A model shown in Meshcat.

    Attributes:
        plant: plant in SI, with the base of the file.
        diagram, context: diagram and context to publish with.
    """

    plant: MultibodyPlant
    diagram: Diagram
    context: Context

    def corners(self, q: np.ndarray) -> np.ndarray:
        """Corners (n, 3) [m] of the boxes around what is drawn at positions (nq,)."""
        graph = self.diagram.GetSubsystemByName("scene_graph")
        context = self.diagram.CreateDefaultContext()
        self.plant.SetPositions(self.plant.GetMyMutableContextFromRoot(context), q)
        return _corners(graph, graph.GetMyContextFromRoot(context), _drawn_role(graph))

    def show(self, q: np.ndarray, time: float = 0.0) -> None:
        """Publishes positions (nq,) in SI; recorded at `time` if recording."""
        self.plant.SetPositions(self.plant.GetMyContextFromRoot(self.context), q)
        self.context.SetTime(time)
        self.diagram.ForcedPublish(self.context)

    def show_state(self, robot: Robot, context: Context) -> RigidTransform:
        """Publishes a robot as it is in a plant of its own; returns X_WB of its base.

        The plant may have other units and another kind of base.
        """
        plant, own = self.plant, robot.plant
        mine = plant.GetMyMutableContextFromRoot(self.context)
        names = own.GetPositionNames(always_add_suffix=False)
        values = own.GetPositions(context) * robot.position_units()
        joints = dict(zip(names, values))
        wanted = plant.GetPositionNames(always_add_suffix=False)
        plant.SetPositions(mine, [joints.get(name, 0.0) for name in wanted])
        X_WB = own.EvalBodyPoseInWorld(context, base_body(own))
        p_WB = robot.scaling.length * X_WB.translation()
        X_WB = RigidTransform(X_WB.rotation(), p_WB)
        if any(name not in joints for name in wanted):
            set_base_pose(plant, mine, X_WB)
        self.diagram.ForcedPublish(self.context)
        return X_WB


def make_scene(
    model: Model,
    *,
    positions: np.ndarray | None = None,
    ground_height: float | None = None,
    port: int | None = None,
) -> Scene:
    """Shows a model in a new Meshcat server.

    Args:
        model: model, as of :func:`drakebots.load`.
        positions: positions to show (nq,) in SI; None for the defaults.
        ground_height: z of the ground [m]; None for the model's lowest point.
        port: port of the server; None for the first one free.
    """
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    model.add_to(plant, close_loops=False)
    if not scene_graph.model_inspector().num_geometries():
        add_sticks(plant, model)
    plant.Finalize()
    meshcat = _server(port)
    params = MeshcatVisualizerParams()
    params.role = role = _drawn_role(scene_graph)
    MeshcatVisualizer.AddToBuilder(builder, scene_graph, meshcat, params)
    diagram = builder.Build()
    context = diagram.CreateDefaultContext()
    if positions is not None:
        plant.SetPositions(plant.GetMyContextFromRoot(context), positions)
    inner = scene_graph.GetMyContextFromRoot(context)
    stage = set_stage(meshcat, *_bounds(scene_graph, inner, role), ground_height)
    scene = Scene(**vars(stage), plant=plant, diagram=diagram, context=context)
    scene.look()
    diagram.ForcedPublish(context)
    return scene


def stage_of(graph: SceneGraph, context: Context, *, port: int | None = None) -> Stage:
    """A new Meshcat server's stage for what a SceneGraph draws in a context of it."""
    return make_stage(*_bounds(graph, context, Role.kIllustration), port=port)


def make_stage(
    low, high, *, ground_height: float | None = None, port: int | None = None
) -> Stage:
    """An empty lit stage in a new Meshcat server, for things within a box.

    Args:
        low, high: corners of the box (3,) [m].
        ground_height, port: as in :func:`make_scene`.

    Raises:
        InvalidInput: unless the corners are finite and low < high.
    """
    low, high = (np.array(corner, float) for corner in (low, high))
    good = low.shape == high.shape == (3,) and np.isfinite([low, high]).all()
    if not (good and np.all(low < high)):
        raise InvalidInput(f"the stage needs corners low < high, got {low}, {high}")
    stage = set_stage(_server(port), low, high, ground_height)
    stage.look()
    return stage


def _server(port: int | None) -> Meshcat:
    """A new Meshcat server.

    Raises:
        InvalidInput: for a port that is taken.
    """
    try:
        return Meshcat(MeshcatParams(show_stats_plot=False, port=port))
    except RuntimeError as error:
        raise InvalidInput(
            f"port {port} is taken; choose another one, or none for the first one free"
        ) from error


def set_stage(meshcat: Meshcat, low, high, ground_height: float | None) -> Stage:
    """Scales and lights a server for a box, with a ground; see :func:`make_stage`."""
    middle = (low + high) / 2
    height = low[2] if ground_height is None else ground_height
    ground = np.array([middle[0], middle[1], height])
    scale = 1.0 / float(np.linalg.norm(high - low))
    meshcat.SetTransform(ROOT, _scaling(scale, ground))
    meshcat.SetObject("/ground", Cylinder(30.0, 0.01), Rgba(0.86, 0.87, 0.89))
    meshcat.SetTransform("/ground", RigidTransform([0, 0, -0.0052]))
    for path, name, value in _LIGHT:
        meshcat.SetProperty(path, name, value)
    meshcat.SetProperty("/Lights/SpotLight/<object>", "angle", 0.6)
    return Stage(meshcat, low, high, scale, ground)


def _drawn_role(scene_graph) -> Role:
    """Role of the geometry to draw: visual, or collision where there is none."""
    inspector = scene_graph.model_inspector()
    has_visuals = bool(inspector.GetAllGeometryIds(Role.kIllustration))
    return Role.kIllustration if has_visuals else Role.kProximity


def _bounds(scene_graph, context, role) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner of all geometry drawn in the world (3,) [m]."""
    corners = _corners(scene_graph, context, role)
    if not len(corners):
        return np.full(3, -0.5), np.full(3, 0.5)
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    size = float(np.linalg.norm(high - low))
    # A plate or a point has no extent along an axis, but the camera needs one.
    margin = np.where(high - low < 1e-3 * size, 0.01 * size, 0.0) if size else 0.5
    return low - margin, high + margin


def _corners(scene_graph, context, role) -> np.ndarray:
    """Corners (n, 3) [m] of the oriented boxes around all geometry drawn.

    Geometry of which Drake knows no bounds (a mesh that it cannot read) counts by its
    origin; half spaces have no corners.
    """
    query = scene_graph.get_query_output_port().Eval(context)
    found = [np.zeros((0, 3))]
    for geometry in query.inspector().GetAllGeometryIds(role):
        try:
            box = query.ComputeObbInWorld(geometry)
        except RuntimeError:
            found.append(query.GetPoseInWorld(geometry).translation()[None])
            continue
        if box is not None:
            found.append(box_corners(box))
    corners = np.vstack(found)
    return corners[np.isfinite(corners).all(axis=1)]


def _scaling(scale: float, origin: np.ndarray) -> np.ndarray:
    """The matrix (4, 4) that takes p to scale (p - origin)."""
    matrix = scale * np.eye(4)
    matrix[:3, 3] = -scale * origin
    matrix[3, 3] = 1.0
    return matrix


# --- a model without any geometry ---------------------------------------------

_STICK = np.array([0.45, 0.50, 0.58, 1.0])
_BALL = np.array([0.85, 0.45, 0.20, 1.0])
_THICKNESS = 0.05
"""Radius of the sticks, as a share of the median of their lengths."""

_LONE_RADIUS = 0.05
"""Radius of the ball that stands for a model without any length [m]."""


def add_sticks(plant: MultibodyPlant, model: Model) -> None:
    """Adds visual geometry to the bodies of a model that has none, before Finalize.

    A link's sticks begin at the joint that holds it, or at its origin, and end at the
    joints and feet that it carries; a link that carries none gets one to its COM.

    Args:
        plant: plant with the model's bodies, registered with a SceneGraph.
        model: model that was added to it.
    """
    starts, ends = _ends(plant, model)
    sticks = [
        (body, starts[body], end)
        for body, found in ends.items()
        for end in found
        if np.linalg.norm(end - starts[body]) > 1e-9
    ]
    lengths = [float(np.linalg.norm(end - start)) for _, start, end in sticks]
    radius = _THICKNESS * float(np.median(lengths)) if lengths else _LONE_RADIUS
    for k, ((index, start, end), length) in enumerate(zip(sticks, lengths)):
        # The cylinder's axis is z.
        R = RotationMatrix.MakeFromOneVector(end - start, 2)
        body, X_BG = plant.get_body(index), RigidTransform(R, (start + end) / 2)
        shape = Cylinder(radius, length)
        plant.RegisterVisualGeometry(body, X_BG, shape, f"stick_{k}", _STICK)
    for index, start in starts.items():
        body, X_BG = plant.get_body(index), RigidTransform(start)
        shape = Sphere(1.6 * radius)
        plant.RegisterVisualGeometry(body, X_BG, shape, "joint_ball", _BALL)


def _ends(
    plant: MultibodyPlant, model: Model
) -> tuple[dict[BodyIndex, np.ndarray], dict[BodyIndex, list[np.ndarray]]]:
    """Starts (3,) and ends of each body's sticks, in the body [m]."""
    bodies = bodies_of(plant)[1:]
    starts = {body.index(): np.zeros(3) for body in bodies}
    ends: dict[BodyIndex, list[np.ndarray]] = defaultdict(list)
    for joint in joints_of(plant):
        inner, outer = joint.frame_on_parent(), joint.frame_on_child()
        if joint.child_body().index() in starts:
            p = outer.GetFixedPoseInBodyFrame().translation()
            starts[joint.child_body().index()] = p
        if joint.parent_body().index() in starts:
            p = inner.GetFixedPoseInBodyFrame().translation()
            ends[joint.parent_body().index()].append(p)
    for foot, body in product(model.feet, bodies):
        if body.name() == foot.body:
            ends[body.index()].append(foot.p_BF)
    for body in bodies:
        if not ends[body.index()]:
            com = np.array(body.default_com())
            ends[body.index()].append(com if np.isfinite(com).all() else np.zeros(3))
    return starts, ends
