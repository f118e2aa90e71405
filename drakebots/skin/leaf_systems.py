"""Skeleton and skin as one Drake system, for a plant of your own.

builder = DiagramBuilder()
scene_graph = builder.AddSystem(SceneGraph())
plant = MultibodyPlant(time_step=0.0)  # not added to the builder
plant.RegisterAsSourceForSceneGraph(scene_graph)
Parser(plant).AddModels("x.urdf")
plant.Finalize()
skinned = add_skin(builder, plant, "x.skin.yaml", meshcat=meshcat)
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from pydrake.common.value import AbstractValue
from pydrake.geometry import Meshcat, SceneGraph
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import (
    BasicVector,
    Context,
    DiagramBuilder,
    LeafSystem,
)
from pydrake.systems.rendering import MultibodyPositionToGeometryPose

from drakebots.core.errors import InvalidInput
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import surface_triangles
from drakebots.model import effort_limits
from drakebots.skin.coupled import (
    Collisions,
    CoupledState,
    CoupledStepper,
    PatchContact,
    Servo,
    SkinGround,
)
from drakebots.skin.file.description import read_skin
from drakebots.skin.file.robot import (
    check_above_ground,
    dress,
    rest_positions,
    skin_mesh,
)
from drakebots.skin.record import vertex_stress
from drakebots.view.skin import SkinView, colour_scale


class CoupledSkeleton(LeafSystem):
    """A skinned skeleton whose state advances by coupled time steps.

                                 ┌─────────────────┐──▶ position (nq), velocity (nv)
        desired_position (m) ───▶│                 │──▶ state (nq + nv)
                                 │ CoupledSkeleton │──▶ torque (m)
        torque (m) ─────────────▶│                 │──▶ vertices (3 n)
                                 └─────────────────┘──▶ stress (n)

    Inputs: `desired_position`, targets of the servos [rad, m], no servos if left
    unconnected; `torque`, torques added to the servos' [N m, N], zero if left
    unconnected. Outputs: `position` [rad, m] and `velocity` [rad/s, m/s] of the plant,
    `state`, one after the other; `torque`, applied in the last step [N m, N];
    `vertices`, positions of the mesh's vertices in the world [m]; `stress`, von Mises
    stress at the vertices [Pa].

    It takes the place of the MultibodyPlant in the diagram: each period, one linear
    solve advances joints and skin together
    (:class:`~drakebots.skin.coupled.stepper.CoupledStepper`), stable for any time step.
    The whole coupled state is discrete state of the Context.

    Args:
        stepper: stepper of the robot, with its limits, contact points and collisions;
            its plant stays outside the diagram.
        stiffness: stiffness of the servos, one number or (m,) [N m/rad].
        damping: damping of the servos, one number or (m,) [N m s/rad].
        start: initial state; `stepper.start()` by default.

    Raises:
        InvalidInput: for gains that are not >= 0. A step that fails raises RuntimeError
            from the simulator.
    """

    def __init__(
        self,
        stepper: CoupledStepper,
        *,
        stiffness: float | np.ndarray = 40.0,
        damping: float | np.ndarray = 1.0,
        start: CoupledState | None = None,
    ):
        super().__init__()
        self.set_name("coupled_skeleton")
        self.stepper = stepper
        plant, model = stepper.plant, stepper.model
        self._nq, self._nv = plant.num_positions(), plant.num_velocities()
        self._n, m = len(model.rest), len(stepper.actuated)
        Servo(stiffness, damping, np.zeros(m))  # checks the gains
        self._gains = stiffness, damping
        self._target = self.DeclareVectorInputPort("desired_position", BasicVector(m))
        self._torque = self.DeclareVectorInputPort("torque", BasicVector(m))
        begin = stepper.start() if start is None else start
        self.DeclareDiscreteState(self._packed(begin, np.zeros(m)))
        self.DeclarePeriodicUnrestrictedUpdateEvent(stepper.dt, 0.0, self._step)
        vertices = len(model.space.mesh.vertices)
        nq, nv, held = self._nq, self._nv, {self.xd_ticket()}
        for name, size, calc in (
            ("position", nq, lambda s: s.q),
            ("velocity", nv, lambda s: s.v),
            ("state", nq + nv, lambda s: np.concatenate([s.q, s.v])),
            ("vertices", 3 * vertices, lambda s: s.skin.positions[:vertices].ravel()),
            ("stress", vertices, lambda s: vertex_stress(model, s.skin.positions)),
        ):
            self.DeclareVectorOutputPort(name, size, self._out(calc), held)
        self.DeclareVectorOutputPort("torque", m, self._applied, held)

    def _packed(self, state: CoupledState, torque):
        skin = state.skin
        x, v = skin.positions.ravel(), skin.velocities.ravel()
        return np.concatenate([state.q, state.v, x, v, [skin.time], torque])

    def coupled_state(self, context: Context) -> CoupledState:
        """The state in this system's context."""
        s = context.get_discrete_state_vector().value()
        nq, nv, n = self._nq, self._nv, 3 * self._n
        q, v, x, xdot, rest = np.split(s, np.cumsum([nq, nv, n, n]))
        skin = SkinState(
            float(rest[0]), x.reshape(-1, 3).copy(), xdot.reshape(-1, 3).copy()
        )
        return CoupledState(q.copy(), v.copy(), skin)

    def set_coupled_state(self, context: Context, state: CoupledState) -> None:
        """Sets the state in this system's context.

        Raises:
            InvalidInput: for a state of another size.
        """
        new = self._packed(state, np.zeros(len(self.stepper.actuated)))
        size = context.get_discrete_state_vector().size()
        if len(new) != size:
            raise InvalidInput(f"coupled state: {len(new)} numbers, needs {size}")
        context.SetDiscreteState(new)

    def _out(self, calc):
        return lambda context, output: output.SetFromVector(
            calc(self.coupled_state(context))
        )

    def _applied(self, context, output):
        s = context.get_discrete_state_vector().value()
        output.SetFromVector(s[len(s) - len(self.stepper.actuated) :])

    def _step(self, context, state):
        servo = None
        if self._target.HasValue(context):
            servo = Servo(*self._gains, self._target.Eval(context))
        torque = self._torque.Eval(context) if self._torque.HasValue(context) else None
        result = self.stepper.step(self.coupled_state(context), torque, servo=servo)
        if not result.converged:
            raise RuntimeError(result.message)
        state.get_mutable_discrete_state().set_value(
            self._packed(result.state, result.torques)
        )


class SkinDrawing(LeafSystem):
    """Draws a skin in Meshcat, coloured by its stress.

                          ┌─────────────┐
        vertices (3 n) ──▶│             │
                          │ SkinDrawing │
        stress (n) ──────▶│             │
                          └─────────────┘

    Inputs are those outputs of :class:`CoupledSkeleton` [m], [Pa]; drawn every 1/30 s.

    Args:
        meshcat: the server.
        model: the skin.
        stress: stress at which the colours end [Pa].
        path: path of the mesh in Meshcat's tree.
    """

    def __init__(self, meshcat: Meshcat, model: FemModel, stress: float, path: str):
        super().__init__()
        self.set_name("skin_drawing")
        mesh = model.space.mesh
        scale = colour_scale("stress", np.array([stress]))
        triangles = surface_triangles(mesh)
        self._view = SkinView(meshcat, mesh.vertices, triangles, scale, path=path)
        count = len(mesh.vertices)
        self._vertices = self.DeclareVectorInputPort("vertices", 3 * count)
        self._stress = self.DeclareVectorInputPort("stress", count)
        self.DeclarePeriodicPublishEvent(1 / 30, 0.0, self._show)
        self.DeclareForcedPublishEvent(self._show)

    def _show(self, context):
        positions = self._vertices.Eval(context).reshape(-1, 3)
        self._view.show(positions, self._stress.Eval(context))


def add_skin(
    builder: DiagramBuilder,
    plant: MultibodyPlant,
    skin: str | Path,
    *,
    meshcat: Meshcat | None = None,
    time_step: float = 5e-3,
    friction: float | None = None,
    path: str = "/skin",
    **options,
) -> CoupledSkeleton:
    """Puts an elastic skin on a plant of your own, and the two into a diagram.

    The plant gives the equations of the skeleton and must stay outside of the diagram,
    where it would move by itself. The system that is added moves skeleton and skin, and
    poses the plant's shapes in the scene graph, for whatever draws or queries it.

    Args:
        builder: builder of the diagram, with the scene graph.
        plant: finalized, in SI; registered with the scene graph.
        skin: its `.skin.yaml`, with bodies and joints of the plant by name.
        meshcat: scene for the skin, coloured by its stress.
        time_step: time step of skeleton and skin [s].
        friction: friction of a ground at z = 0, which the skin and the contact points
            of its file touch; None for no ground.
        path: path of the skin in Meshcat's tree.
        options: options of :class:`~drakebots.skin.coupled.stepper.CoupledStepper`.

    Returns:
        The system; its servos have the gains of the skin's file.

    Raises:
        InvalidInput: for a plant in the builder, or without its scene graph, or a skin
            that starts below the ground.
        UnknownName, ModelProblem, FileProblem: for any fault of the skin's file.
    """
    file = Path(skin)
    description = read_skin(file)
    mesh, _ = skin_mesh(file, description)
    scene_graph = _scene_graph(builder, plant)
    context = _posed_context(plant, scene_graph, description.joints)
    fem, glue = dress(plant, context, file, description, mesh)
    options = {"context": context, "effort_limits": effort_limits(plant)} | options
    if friction is not None:
        check_above_ground(mesh, plant, context, description.patches)
        ground = {
            "patches": description.patches,
            "patch_contact": PatchContact(friction),
            "collisions": Collisions(ground=SkinGround(friction)),
        }
        options = ground | options
    stepper = CoupledStepper(plant, fem, glue, time_step, **options)
    system = builder.AddSystem(CoupledSkeleton(stepper, **asdict(description.servos)))
    poses = builder.AddSystem(MultibodyPositionToGeometryPose(plant))
    builder.Connect(system.GetOutputPort("position"), poses.get_input_port())
    shapes = scene_graph.get_source_pose_port(plant.get_source_id())
    builder.Connect(poses.get_output_port(), shapes)
    if meshcat is not None:
        _draw(builder, system, meshcat, path)
    return system


def _draw(builder: DiagramBuilder, system: CoupledSkeleton, meshcat, path: str) -> None:
    """Connects a drawing of the skin, coloured up to a fifth of its least modulus."""
    fem = system.stepper.model
    softest = min(material.youngs_modulus for material in fem.materials)
    drawing = builder.AddSystem(SkinDrawing(meshcat, fem, 0.2 * softest, path))
    for name in ("vertices", "stress"):
        builder.Connect(system.GetOutputPort(name), drawing.GetInputPort(name))


def _scene_graph(builder: DiagramBuilder, plant: MultibodyPlant) -> SceneGraph:
    """The scene graph of a plant that is not itself in the builder.

    Raises:
        InvalidInput: for a plant in the builder, or without its scene graph.
    """
    systems = builder.GetSystems()
    if any(system is plant for system in systems):
        raise InvalidInput(
            "add_skin: the plant is in the builder, where it would move by itself; "
            "make it by MultibodyPlant(0.0) and RegisterAsSourceForSceneGraph"
        )
    source = plant.get_source_id() if plant.geometry_source_is_registered() else None
    graphs = [system for system in systems if isinstance(system, SceneGraph)]
    for graph in graphs if source is not None else ():
        if graph.model_inspector().SourceIsRegistered(source):
            return graph
    raise InvalidInput(
        "add_skin: the plant is not registered with a scene graph in the builder; "
        "call plant.RegisterAsSourceForSceneGraph before you parse"
    )


def _posed_context(
    plant: MultibodyPlant, scene_graph: SceneGraph, joints: dict[str, float]
) -> Context:
    """A context of the plant alone in the skin's rest pose, and its shapes with it."""
    context, graph = plant.CreateDefaultContext(), scene_graph.CreateDefaultContext()
    plant.SetPositions(context, rest_positions(plant, joints))
    poses = plant.get_geometry_pose_output_port().Eval(context)
    scene_graph.get_source_pose_port(plant.get_source_id()).FixValue(graph, poses)
    query = scene_graph.get_query_output_port().Eval(graph)
    plant.get_geometry_query_input_port().FixValue(context, AbstractValue.Make(query))
    return context
