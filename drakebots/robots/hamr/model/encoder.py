"""The piezoelectric encoders of HAMR-VI: tip velocity from drive currents.

An actuator is a capacitor C, a resistor R and a current source i_m (the
"mechanical" current, proportional to tip velocity) in parallel, behind a shunt
R_s (RSS 2018, Fig. 6 and eq. (18)):

    i_m = (u_sig - u_act)/R_s - zeta C du_act/dt - u_act/R,     qdot = X i_m

The circuit's constants are not published; those in `params.yaml` are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.multibody import Robot
from drakebots.robots.hamr.model.parameters import (
    ACTUATORS,
    HamrParameters,
    parameters,
)


@dataclass(frozen=True)
class EncoderCircuit:
    """Constants of the measurement circuit.

    Attributes:
        shunt: R_s [Ohm].
        resistance: R [Ohm].
        capacitance: zeta C [F].
        velocity_per_current: X of each actuator (8,) [m/s/A].
        period: of sampling [s].
    """

    shunt: float
    resistance: float
    capacitance: float
    velocity_per_current: np.ndarray
    period: float

    @property
    def conductance(self) -> float:
        """1/R_s + 1/R [S]."""
        return 1 / self.shunt + 1 / self.resistance

    def settle(self, u_act, u_sig, current):
        """u_act one period later, for held u_sig [V] and i_m [A]; exact.

        Solves zeta C du/dt = (u_sig - u)/R_s - u/R - i_m.
        """
        rest = (u_sig / self.shunt - current) / self.conductance
        decay = np.exp(-self.conductance * self.period / self.capacitance)
        return rest + (u_act - rest) * decay

    def current(self, u_sig, u_act, u_before):
        """i_m [A] by eq. (18), the derivative by a backward difference.

        The shunt's and the leak's currents are averaged over the period.
        """
        decay_time = self.capacitance / self.conductance
        weight = decay_time / self.period
        # Mean of the exponential between the samples, exact for held inputs.
        rest = (u_act - u_before * np.exp(-1 / weight)) / (1 - np.exp(-1 / weight))
        mean = rest + (u_before - rest) * weight * (1 - np.exp(-1 / weight))
        slope = (u_act - u_before) / self.period
        return (
            (u_sig - mean) / self.shunt
            - self.capacitance * slope
            - mean / self.resistance
        )


def hamr_encoder(table: HamrParameters | None = None) -> EncoderCircuit:
    """The circuit with the constants of `params.yaml`."""
    table = table or parameters()
    velocity = {
        kind: table.number("encoder", f"velocity_per_current_{name}")
        for kind, name in (("s", "swing"), ("l", "lift"))
    }
    return EncoderCircuit(
        shunt=table.number("encoder", "shunt_resistance"),
        resistance=table.number("encoder", "resistance"),
        capacitance=table.number("encoder", "capacitance")
        * table.number("encoder", "blocking_factor"),
        velocity_per_current=np.array([velocity[name[-1]] for name in ACTUATORS]),
        period=1 / table.number("encoder", "sample_rate"),
    )


class Encoder(LeafSystem):
    """Measures the tip velocities of the actuators.

                          ┌─────────┐
        voltages (8) V ──▶│         │──▶ velocity (8) m/s, sampled and held
                          │ Encoder │
        state (nq+nv)  ──▶│         │──▶ actuator_voltage (8) V
                          └─────────┘

    `state` is the plant's, in the plant's units. Discrete state: u_act and the
    velocity estimate, updated every `circuit.period`.

    Args:
        robot: whose state is measured.
        circuit: its constants.
        noise: standard deviation of the measured current [A].
        seed: of the noise.
    """

    def __init__(
        self,
        robot: Robot,
        circuit: EncoderCircuit | None = None,
        *,
        noise: float = 0.0,
        seed: int = 0,
    ):
        super().__init__()
        self.set_name("encoder")
        plant, unit = robot.plant, robot.scaling
        self._circuit = circuit or hamr_encoder()
        joints = [
            plant.get_joint_actuator(i).joint() for i in plant.GetJointActuatorIndices()
        ]
        n = self._size = len(joints)
        self._rates = plant.num_positions() + np.array(
            [joint.velocity_start() for joint in joints]
        )
        self._current_per_rate = unit.velocity / self._circuit.velocity_per_current
        self._noise, self._random = noise, np.random.default_rng(seed)
        self.DeclareVectorInputPort("voltages", n)
        self.DeclareVectorInputPort("state", plant.num_multibody_states())
        self.DeclareDiscreteState(2 * n)
        # Unrestricted as the plant's own step is: Drake does those before the
        # discrete ones, which would see the plant a step ahead.
        self.DeclarePeriodicUnrestrictedUpdateEvent(
            self._circuit.period / unit.time, 0.0, self._update
        )
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("velocity", n, self._velocity, state)
        self.DeclareVectorOutputPort("actuator_voltage", n, self._voltage, state)

    def _update(self, context, state):
        n, circuit = self._size, self._circuit
        before = context.get_discrete_state_vector().value()[:n]
        u_sig = self.EvalVectorInput(context, 0).value()
        rates = self.EvalVectorInput(context, 1).value()[self._rates]
        u_act = circuit.settle(before, u_sig, self._current_per_rate * rates)
        measured = circuit.current(u_sig, u_act, before)
        if self._noise:
            measured = measured + self._noise * self._random.standard_normal(n)
        velocity = circuit.velocity_per_current * measured
        discrete = state.get_mutable_discrete_state()
        discrete.set_value(np.concatenate([u_act, velocity]))

    def _velocity(self, context, output):
        values = context.get_discrete_state_vector().value()
        output.SetFromVector(values[self._size :])

    def _voltage(self, context, output):
        values = context.get_discrete_state_vector().value()
        output.SetFromVector(values[: self._size])
