"""Skeleton and skin as one Drake system, and the skin's drawing as another.

:func:`~drakebots.skin.diagram.add_skin` puts them into a diagram.
"""

from __future__ import annotations

import numpy as np
from pydrake.common.value import AbstractValue
from pydrake.geometry import GeometryConfigurationVector, GeometryId, Meshcat
from pydrake.multibody.tree import ModelInstanceIndex, MultibodyForces
from pydrake.systems.framework import BasicVector, Context, LeafSystem, OutputPort

from drakebots.core.errors import InvalidInput
from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.coupled import CoupledState, CoupledStepper, SceneForces, Servo
from drakebots.skin.record import vertex_stress
from drakebots.view.skin import SkinView, colour_scale


class CoupledSkeleton(LeafSystem):
    """A plant with a skinned robot in it, whose state advances by coupled time steps.

                                      ┌─────────────────┐──▶ position, velocity, state
        desired_position (m) ────────▶│                 │──▶ <instance>_state
        actuation (m) ───────────────▶│                 │──▶ body_poses
        pressure (c) ────────────────▶│                 │──▶ cavity_volume (c)
        applied_spatial_force ───────▶│ CoupledSkeleton │──▶ body_spatial_velocities
        applied_generalized_force ───▶│                 │──▶ geometry_pose
                                      │                 │──▶ net_actuation (m)
                                      │                 │──▶ contact_results
                                      └─────────────────┘──▶ vertices (3 n), stress (n)

    It takes the place of the MultibodyPlant in the diagram, with the plant's ports
    under their names: each period, one linear solve advances all bodies and the skin
    (:class:`~drakebots.skin.coupled.stepper.CoupledStepper`), stable for any time step.
    Inputs that are left unconnected are zero, and there are no servos without
    `desired_position` [rad, m]; `actuation` [N m, N] adds to theirs. `net_actuation`
    and `contact_results`, a :class:`~drakebots.skin.coupled.driven.SceneForces`, are
    those of the last step; `pressure` is that of the skin's cavities over the air
    around [Pa], and `cavity_volume` what is in them [m^3]; `vertices` are the positions
    of the mesh's vertices in the world [m], `stress` is the von Mises stress there
    [Pa]. The whole coupled state is discrete state of the Context.

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
        self._torque = self.DeclareVectorInputPort("actuation", BasicVector(m))
        c = len(stepper.cavities)
        self._pressure = self.DeclareVectorInputPort("pressure", BasicVector(c))
        name, nv = "applied_generalized_force", BasicVector(self._nv)
        self._on_velocities = self.DeclareVectorInputPort(name, nv)
        port = plant.GetInputPort("applied_spatial_force")
        list_of_them = plant.AllocateInputAbstract(port)
        self._on_bodies = self.DeclareAbstractInputPort(port.get_name(), list_of_them)
        begin = stepper.start() if start is None else start
        self.DeclareDiscreteState(self._packed(begin, np.zeros(m)))
        self._forces = self.DeclareAbstractState(AbstractValue.Make(SceneForces()))
        self.DeclarePeriodicUnrestrictedUpdateEvent(stepper.dt, 0.0, self._step)
        vertices = len(model.space.mesh.vertices)
        nq, nv, held = self._nq, self._nv, {self.xd_ticket()}
        for name, size, calc in (
            ("position", nq, lambda s: s.q),
            ("velocity", nv, lambda s: s.v),
            ("state", nq + nv, lambda s: np.concatenate([s.q, s.v])),
            ("vertices", 3 * vertices, lambda s: s.skin.positions[:vertices].ravel()),
            ("cavity_volume", c, self._volumes),
            ("stress", vertices, lambda s: vertex_stress(model, s.skin.positions)),
        ):
            self.DeclareVectorOutputPort(name, size, self._out(calc), held)
        self.DeclareVectorOutputPort("net_actuation", m, self._applied, held)
        self.DeclareStateOutputPort("contact_results", self._forces)
        for name in ("body_poses", "body_spatial_velocities", "geometry_pose"):
            port = plant.GetOutputPort(name)
            told = self._told(port, "set_value")
            self.DeclareAbstractOutputPort(name, port.Allocate, told, held)
        for instance in map(ModelInstanceIndex, range(plant.num_model_instances())):
            port = plant.get_state_output_port(instance)
            told = self._told(port, "SetFromVector")
            self.DeclareVectorOutputPort(port.get_name(), port.size(), told, held)

    def _told(self, port: OutputPort, put: str):
        """What a port of the plant says of the state in this system's context."""

        def calc(context, output):
            state = self.coupled_state(context)
            self.stepper.pose(state.q, state.v)
            getattr(output, put)(port.Eval(self.stepper.context))

        return calc

    def declare_configuration(self, id: GeometryId) -> OutputPort:
        """A port of the skin's vertices as a deformable geometry of a scene graph."""

        def calc(context, output):
            x = self.coupled_state(context).skin.positions
            vertices = len(self.stepper.model.space.mesh.vertices)
            output.get_mutable_value().set_value(id, x[:vertices].ravel())

        made = AbstractValue.Make(GeometryConfigurationVector()).Clone
        held = {self.xd_ticket()}
        return self.DeclareAbstractOutputPort("configuration", made, calc, held)

    def _packed(self, state: CoupledState, torque):
        skin = state.skin
        x, v = skin.positions.ravel(), skin.velocities.ravel()
        return np.concatenate([state.q, state.v, x, v, [skin.time], torque])

    def coupled_state(self, context: Context) -> CoupledState:
        """The state in this system's context."""
        s = context.get_discrete_state_vector().value().copy()
        nq, nv, n = self._nq, self._nv, 3 * self._n
        q, v, x, xdot, rest = np.split(s, np.cumsum([nq, nv, n, n]))
        skin = SkinState(float(rest[0]), x.reshape(-1, 3), xdot.reshape(-1, 3))
        return CoupledState(q, v, skin)

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
        return lambda context, out: out.SetFromVector(calc(self.coupled_state(context)))

    def _volumes(self, state):
        x = state.skin.positions
        return np.array([cavity.volume(x) for cavity in self.stepper.cavities])

    def _applied(self, context, output):
        s = context.get_discrete_state_vector().value()
        output.SetFromVector(s[len(s) - len(self.stepper.actuated) :])

    def _step(self, context, state):
        servo = None
        if self._target.HasValue(context):
            servo = Servo(*self._gains, self._target.Eval(context))
        torque = self._torque.Eval(context) if self._torque.HasValue(context) else None
        before, port = self.coupled_state(context), self._pressure
        given = {"generalized_forces": self._generalized(context, before)}
        given["pressures"] = port.Eval(context) if port.HasValue(context) else None
        result = self.stepper.step(before, torque, servo=servo, **given)
        if not result.converged:
            raise RuntimeError(result.message)
        after = self._packed(result.state, result.torques)
        state.get_mutable_discrete_state().set_value(after)
        state.get_mutable_abstract_state(int(self._forces)).set_value(result.forces)

    def _generalized(self, context: Context, state: CoupledState) -> np.ndarray:
        """Forces of both ports on the plant's velocities (nv,) [N, N m]."""
        plant, total = self.stepper.plant, np.zeros(self._nv)
        if self._on_velocities.HasValue(context):
            total += self._on_velocities.Eval(context)
        if self._on_bodies.HasValue(context):
            self.stepper.pose(state.q, state.v)
            forces = MultibodyForces(plant)
            at, world = self.stepper.context, plant.world_frame()
            for each in self._on_bodies.Eval(context):
                body = plant.get_body(each.body_index)
                R_WB = plant.EvalBodyPoseInWorld(at, body).rotation()
                p_W = R_WB @ each.p_BoBq_B
                body.AddInForce(at, p_W, each.F_Bq_W, world, forces)
            total += plant.CalcGeneralizedForces(at, forces)
        return total


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
