"""Skeleton and skin as one Drake system."""

from __future__ import annotations

import numpy as np
from pydrake.systems.framework import BasicVector, Context, LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.fem import SkinState
from drakebots.skin.frame import CoupledState, CoupledStepper, Servo
from drakebots.skin.record import vertex_stress


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
    (:class:`~drakebots.skin.frame.stepper.CoupledStepper`), stable for any time step.
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
