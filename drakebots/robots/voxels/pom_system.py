"""Planes of motion in a Drake diagram: nodes from actuator displacements.

                       ┌────────────┐──▶ displacement (3 E) m
    actuators (M) m ──▶│ PomSystem  │──▶ position (3 E) m
                       └────────────┘──▶ effector (3 E') m
                       ┌────────────┐
    actuators (M) m ──▶│ PomDrawing │──▶ poses of the voxels, for a SceneGraph
                       └────────────┘

Both are functions of u without state, x = J u of
:class:`drakebots.lattice.pom.PlanesOfMotion`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydrake.common.value import Value
from pydrake.geometry import (
    Capsule,
    FramePoseVector,
    GeometryFrame,
    GeometryInstance,
    MakePhongIllustrationProperties,
    SceneGraph,
    Sphere,
)
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.systems.framework import Context, DiagramBuilder, LeafSystem
from scipy.spatial.transform import Rotation

from drakebots.lattice.pom import PlanesOfMotion
from drakebots.lattice.shape import BEAMS, OFFSETS
from drakebots.robots.voxels.model import NODE_RADIUS, STRUT_RADIUS


class PomSystem(LeafSystem):
    """A lattice's planes of motion as a system.

    Args:
        pom: the model; the ports `displacement` and `position` hold its effectors.
        effectors: places of the nodes whose positions the port `effector` holds;
            None for no such port.

    Raises:
        InvalidInput: for an effector that is no node.
    """

    def __init__(self, pom: PlanesOfMotion, effectors: Sequence | None = None):
        super().__init__()
        self.set_name("planes_of_motion")
        self.pom = pom
        self.DeclareVectorInputPort("actuators", len(pom.controls))
        rest = pom.lattice.positions[pom.effector_nodes].ravel()
        self._declare("displacement", pom.J, np.zeros(len(rest)))
        self._declare("position", pom.J, rest)
        if effectors is not None:
            chosen = PlanesOfMotion(
                pom.lattice,
                pom.controls,
                effectors,
                ideality=pom.ideality,
                planes=pom.planes,
            )
            rest = pom.lattice.positions[chosen.effector_nodes].ravel()
            self._declare("effector", chosen.J, rest)

    def _declare(self, name: str, J: np.ndarray, rest: np.ndarray) -> None:
        def calc(context: Context, output) -> None:
            u = self.get_input_port().Eval(context)
            output.SetFromVector(rest + J @ u)

        ticket = {self.get_input_port().ticket()}
        self.DeclareVectorOutputPort(name, len(rest), calc, ticket)


def voxel_turns(pom: PlanesOfMotion) -> np.ndarray:
    """Rotation of every voxel per displacement of the controls (V, 3, M) [rad/m].

    The least-squares rotation of a voxel's nodes about its centre, which does not
    move: theta = sum_n r_n x d_n / (4 r), with unit vectors r_n and r = pitch/2.
    """
    lattice = pom.lattice
    whole = PlanesOfMotion(lattice, pom.controls, planes=pom.planes)
    fields = whole.J.reshape(len(lattice.nodes), 3, -1)[lattice.voxel_nodes]
    turns = np.cross(OFFSETS[None, :, :, None], fields, axis=2).sum(axis=1)
    return turns / (2 * lattice.pitch)


class PomDrawing(LeafSystem):
    """The voxels of a lattice, tilted by its planes of motion, in a SceneGraph.

    Args:
        pom: the model.
        scene_graph: the SceneGraph that the voxels are registered with.
        rgba: colour of the beams (4,).
    """

    def __init__(
        self,
        pom: PlanesOfMotion,
        scene_graph: SceneGraph,
        rgba: Sequence[float] = (0.36, 0.47, 0.62, 1.0),
    ):
        super().__init__()
        self.set_name("planes_of_motion_drawing")
        self._turns = voxel_turns(pom)
        self._centres = pom.lattice.centres * (pom.lattice.pitch / 2)
        source = scene_graph.RegisterSource("planes_of_motion")
        self.source_id = source
        self._frames = []
        for voxel in pom.lattice.voxels.tolist():
            name = "voxel_" + "_".join(map(str, voxel))
            frame = scene_graph.RegisterFrame(source, GeometryFrame(name))
            self._frames.append(frame)
            for shape in _voxel_shapes(pom.lattice.pitch / 2, name, rgba):
                scene_graph.RegisterGeometry(source, frame, shape)
        self.DeclareVectorInputPort("actuators", len(pom.controls))
        self.DeclareAbstractOutputPort(
            "poses", lambda: Value(FramePoseVector()), self._poses
        )

    def _poses(self, context: Context, output) -> None:
        turns = self._turns @ self.get_input_port().Eval(context)
        poses = FramePoseVector()
        for frame, centre, turn in zip(self._frames, self._centres, turns):
            poses.set_value(frame, RigidTransform(_rotation(turn), centre))
        output.set_value(poses)


def _rotation(turn: np.ndarray) -> RotationMatrix:
    angle = np.linalg.norm(turn)
    if angle < 1e-12:
        return RotationMatrix()
    return RotationMatrix(Rotation.from_rotvec(turn).as_matrix())


def _voxel_shapes(r: float, name: str, rgba) -> list[GeometryInstance]:
    shapes = []
    for k, (a, b) in enumerate(r * OFFSETS[BEAMS]):
        length = float(np.linalg.norm(b - a))
        turned = RotationMatrix.MakeFromOneVector((b - a) / length, 2)
        X = RigidTransform(turned, (a + b) / 2)
        rod = Capsule(STRUT_RADIUS, length)
        shapes.append((GeometryInstance(X, rod, f"{name}_beam_{k}"), rgba))
    dark = np.array([*(0.72 * c for c in rgba[:3]), 1.0])
    for k, offset in enumerate(r * OFFSETS):
        ball = GeometryInstance(
            RigidTransform(offset), Sphere(NODE_RADIUS), f"{name}_node_{k}"
        )
        shapes.append((ball, dark))
    for shape, color in shapes:
        shape.set_illustration_properties(
            MakePhongIllustrationProperties(np.asarray(color, float))
        )
    return [shape for shape, _ in shapes]


def add_pom(
    builder: DiagramBuilder,
    pom: PlanesOfMotion,
    effectors: Sequence | None = None,
    *,
    scene_graph: SceneGraph | None = None,
) -> PomSystem:
    """Adds planes of motion to a diagram, drawn if there is a scene graph.

    Args:
        builder: the builder; the input port "actuators" becomes the diagram's own.
        pom, effectors: see :class:`PomSystem`.
        scene_graph: a SceneGraph in the builder; None for no drawing.
    """
    system = builder.AddSystem(PomSystem(pom, effectors))
    builder.ExportInput(system.get_input_port(), "actuators")
    if scene_graph is not None:
        drawing = builder.AddSystem(PomDrawing(pom, scene_graph))
        builder.ConnectInput("actuators", drawing.get_input_port())
        builder.Connect(
            drawing.get_output_port(),
            scene_graph.get_source_pose_port(drawing.source_id),
        )
    return system
