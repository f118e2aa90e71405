"""A skin as a system beside any Drake plant, exchanging motion and forces.

    plant ── body_poses, body_spatial_velocities ──▶ Skin ── spatial_forces ──▶ plant
                                    Skin ── generalized_forces ──▶ plant (implicit)

Every step takes one factorization of the skin's frame with the glue's motion given
(:mod:`prescribed_glue`). At the start of a step the glue is predicted to go on with the
links' velocities, du_c = dt v_c, which gives the forces on the links over the step;
once the plant has moved, the step is completed with the glue where it really went.

The exchange alone is stable only where the plant carries the skin, about
dt^2 J'S J < A, A the plant's own matrix of joints, damping and implicit servos. With
``implicit`` what the skin does to a change of the joints' velocities goes into the
plant's own step (:mod:`joint_impedance`); a free base keeps that limit.

Measured at dt = 5 ms on models/skinned_leg, skin of 0.8 and 90 MPa, with servos of
40 N m/rad and 0.4 N m s/rad in the plant and with constant torques: the plain exchange
is stable at 0.8 MPa with servos only; with ``implicit`` all four are, over 0.6 s, and
with servos settle within 1e-7 rad of the coupled frame. Joints without servos and
damping may still swing up over longer times under a skin heavier than their links:
CoupledSkeleton has no such limit.
"""

from __future__ import annotations

import numpy as np
from pydrake.common.value import AbstractValue
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce, SpatialVelocity
from pydrake.multibody.plant import ExternallyAppliedSpatialForce, MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import (
    BasicVector,
    Context,
    DiagramBuilder,
    LeafSystem,
    ValueProducer,
)

from drakebots.errors import InvalidInput
from drakebots.fem.assembly import FemModel
from drakebots.fem.dynamics import SkinState
from drakebots.multibody.loops import find_body
from drakebots.skin.coupled import check_glue
from drakebots.skin.exchange_state import ExchangeState
from drakebots.skin.glue import Glue
from drakebots.skin.joint_impedance import JointImpedance
from drakebots.skin.prescribed_glue import PrescribedGlue
from drakebots.skin.record import vertex_stress
from drakebots.skin.skeleton import check_skeleton, glue_points


class Skin(LeafSystem):
    """An elastic skin; see the module.

    Input ports: "body_poses", "body_spatial_velocities" of the plant, and with
    `implicit` its "state" (nq + nv,).
    Output ports: "spatial_forces", for the plant's applied_spatial_force;
    "vertices" (3 n,) [m] and "stress", von Mises (n,) [Pa], of the mesh's vertices;
    with `implicit` "generalized_forces" (nv,), for applied_generalized_force.

    The state lies in the Context, see :mod:`~drakebots.skin.exchange_state`.

    Args:
        plant: finalized, discrete, in SI.
        model: the skin.
        glue: between them.
        dt: of the skin, a multiple of the plant's step [s].
        rest: q in which the skin lies at rest (nq,); the default pose by default.
        implicit: see the module; :meth:`prepare` must see the plant's context.
        solver, threads: for :func:`~drakebots.fem.linear_solver.make_solver`.

    Raises:
        InvalidInput: for what cannot be. A frame that fails raises RuntimeError
            from the simulator.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        model: FemModel,
        glue: Glue,
        dt: float = 5e-3,
        *,
        rest: np.ndarray | None = None,
        implicit: bool = False,
        solver: str = "auto",
        threads: int | None = None,
    ):
        super().__init__()
        self.set_name("skin")
        self._implicit = implicit
        check_skeleton(plant, glue)
        check_glue(model, glue)
        _check_step(plant, dt)
        self.model, self.glue, self.dt = model, glue, float(dt)
        self._plant, self._links = plant, list(glue.by_body().items())
        self._bodies = [int(find_body(plant, n).index()) for n, _ in self._links]
        nv = plant.num_velocities()
        self._layout = ExchangeState(len(model.rest), nv, len(self._links))
        gravity = plant.gravity_field().gravity_vector()
        self._steps = PrescribedGlue(
            model, glue, self.dt, gravity, solver=solver, threads=threads
        )
        self.solver = self._steps.solver
        context = self._scratch = plant.CreateDefaultContext()
        if rest is not None:
            plant.SetPositions(context, rest)
        self._impedance = JointImpedance(plant, glue, self.dt)
        if implicit:
            self._steps.factor(self._rest(), 0.0)
            self._impedance.set_damping(context, self.solver.schur)
        self._declare(nv, implicit)

    def _declare(self, nv, implicit):
        pose = AbstractValue.Make([RigidTransform()])
        speed = AbstractValue.Make([SpatialVelocity.Zero()])
        self._poses = self.DeclareAbstractInputPort("body_poses", pose)
        self._speeds = self.DeclareAbstractInputPort("body_spatial_velocities", speed)
        n = len(self.model.space.mesh.vertices)
        self.DeclareDiscreteState(self._layout.pack(self._rest()))
        inputs = [self._poses, self._speeds]
        if implicit:
            nq = self._plant.num_positions()
            self._state = self.DeclareVectorInputPort("state", BasicVector(nq + nv))
            inputs.append(self._state)
        self._frame = self.DeclareCacheEntry(
            "frame",
            ValueProducer(
                allocate=lambda: AbstractValue.Make(object()), calc=self._calc_frame
            ),
            {self.xd_ticket()}
            | {self.input_port_ticket(port.get_index()) for port in inputs},
        )
        forces = AbstractValue.Make([ExternallyAppliedSpatialForce()])
        self.DeclareAbstractOutputPort(
            "spatial_forces", lambda: forces.Clone(), self._spatial_forces
        )
        held = {self.xd_ticket()}
        self.DeclareVectorOutputPort("vertices", 3 * n, self._vertices, held)
        self.DeclareVectorOutputPort("stress", n, self._stress, held)
        if implicit:
            self.DeclareVectorOutputPort("generalized_forces", nv, self._generalized)
        # Unrestricted, as Drake's plant steps: both see the step's start.
        self.DeclarePeriodicUnrestrictedUpdateEvent(self.dt, 0.0, self._step)

    @property
    def joint_damping(self) -> np.ndarray:
        """That `implicit` adds to the joints' own (nv,) [N m s/rad]."""
        return self._impedance.damping

    def prepare(self, context: Context, plant_context: Context) -> None:
        """Puts the skin where the plant stands, and the joints' damping in place.

        Args:
            context: of this system.
            plant_context: of the plant, posed near the skin's rest pose.
        """
        x = self.model.rest.copy()
        x[self.glue.vertices] = glue_points(self._plant, plant_context, self.glue)[0]
        self.set_skin(context, SkinState(context.get_time(), x, np.zeros_like(x)))
        self._impedance.damp(plant_context)

    def _rest(self):
        return SkinState(0.0, self.model.rest, np.zeros_like(self.model.rest))

    def skin(self, context: Context) -> SkinState:
        """The skin at the start of the step under way."""
        return self._layout.skin(_vector(context))

    def set_skin(self, context: Context, skin: SkinState) -> None:
        """Sets the skin; no forces on the links yet.

        Raises:
            InvalidInput: for positions or velocities of another shape.
        """
        N = self._layout.nodes
        if skin.positions.shape != (N, 3) or skin.velocities.shape != (N, 3):
            raise InvalidInput(f"skin: positions and velocities need shape ({N}, 3)")
        context.SetDiscreteState(self._layout.pack(skin))

    def _glue_motion(self, context):
        """Where the glue is, and its velocity, by the plant's ports."""
        poses, speeds = self._poses.Eval(context), self._speeds.Eval(context)
        x, v = np.empty((len(self.glue), 3)), np.empty((len(self.glue), 3))
        for body, (_, rows) in zip(self._bodies, self._links):
            arm = self.glue.p_BG[rows] @ poses[body].rotation().matrix().T
            x[rows] = poses[body].translation() + arm
            spin = speeds[body].rotational()
            v[rows] = speeds[body].translational() + np.cross(spin, arm)
        return x, v

    def _calc_frame(self, context, value):
        """The state now, the last step completed, and the forces of the next."""
        x_c, v_c = self._glue_motion(context)
        skin, now = self.skin(context), context.get_time()
        if skin.time < now - 1e-6 * self.dt:
            move = x_c - skin.positions[self.glue.vertices]
            du, _ = self._steps.step(skin, move, now)
            skin = SkinState(now, skin.positions + du, du / self.dt)
            self._steps.check(skin)
        _, pull = self._steps.step(skin, self.dt * v_c, now)
        poses = self._poses.Eval(context)
        wrenches = np.empty((len(self._links), 6))
        for k, (body, (_, rows)) in enumerate(zip(self._bodies, self._links)):
            arm = x_c[rows] - poses[body].translation()
            wrenches[k, :3] = -np.cross(arm, pull[rows]).sum(axis=0)
            wrenches[k, 3:] = -pull[rows].sum(axis=0)
        value.set_value((skin, *self._joint_forces(context), wrenches))

    def _joint_forces(self, context):
        """The joints' velocities, and the forces that cancel their damping (nv,)."""
        nv = len(self.joint_damping)
        if not self._implicit:
            return np.zeros(nv), np.zeros(nv)
        nq, now = self._plant.num_positions(), self._state.Eval(context)
        v = now[nq:]
        held, layout = _vector(context), self._layout
        before = layout.velocity(held) if layout.held(held) else v
        self._plant.SetPositions(self._scratch, now[:nq])
        schur = self.solver.schur
        return v, self._impedance.force(self._scratch, schur, v, before)

    def _forces(self, context):
        """On joints (nv,) and links (l, 6): those held, or of a step that is due."""
        if self._due(context):
            return self._frame.Eval(context)[2:]
        state = _vector(context)
        return self._layout.force(state), self._layout.wrenches(state)

    def _due(self, context):
        """Whether the step whose forces the state holds is over, or none began."""
        state = _vector(context)
        if not self._layout.held(state):
            return True
        begun = self._layout.time(state)
        return context.get_time() > begun + self.dt * (1 - 1e-6)

    def _spatial_forces(self, context, output):
        out = []
        for body, row in zip(self._bodies, self._forces(context)[1]):
            one = ExternallyAppliedSpatialForce()
            one.body_index = BodyIndex(body)
            one.p_BoBq_B = np.zeros(3)
            one.F_Bq_W = SpatialForce(tau=row[:3], f=row[3:])
            out.append(one)
        output.set_value(out)

    def _step(self, context, state):
        state.get_mutable_discrete_state().set_value(
            self._layout.pack(*self._frame.Eval(context))
        )

    def _generalized(self, context, output):
        output.SetFromVector(self._forces(context)[0])

    def _vertices(self, context, output):
        n = len(self.model.space.mesh.vertices)
        output.SetFromVector(_vector(context)[: 3 * n])

    def _stress(self, context, output):
        output.SetFromVector(vertex_stress(self.model, self.skin(context).positions))


def _vector(context):
    return context.get_discrete_state_vector().value()


def _check_step(plant, dt):
    step = plant.time_step()
    if not (np.isfinite(dt) and dt > 0):
        raise InvalidInput(f"skin's time step dt = {dt} s must be > 0")
    if step <= 0:
        raise InvalidInput("skin: the plant must be discrete; give it a time step > 0")
    ratio = dt / step
    if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-6:
        raise InvalidInput(
            f"skin's time step {dt:g} s must be a multiple of the plant's, {step:g} s"
        )


def add_skin(builder: DiagramBuilder, plant: MultibodyPlant, skin: Skin) -> Skin:
    """Adds a skin to a diagram and connects it with its plant."""
    builder.AddSystem(skin)
    poses, speeds = (
        skin.GetInputPort(n) for n in ("body_poses", "body_spatial_velocities")
    )
    builder.Connect(plant.get_body_poses_output_port(), poses)
    builder.Connect(plant.get_body_spatial_velocities_output_port(), speeds)
    builder.Connect(
        skin.GetOutputPort("spatial_forces"),
        plant.get_applied_spatial_force_input_port(),
    )
    if skin.HasOutputPort("generalized_forces"):
        builder.Connect(plant.get_state_output_port(), skin.GetInputPort("state"))
        builder.Connect(
            skin.GetOutputPort("generalized_forces"),
            plant.get_applied_generalized_force_input_port(),
        )
    return skin
