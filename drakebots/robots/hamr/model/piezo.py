"""The piezoelectric actuators of HAMR-VI, and the encoders that sense their velocity.

Actuators, simplified from Jafferis et al. (2015) as the authors do: with both plates
biased at V_b and the centre driven at V, an actuator whose tip is at q pushes

    F = o C0 (V_b - 2 V) - V_b dC q          (on top of its spring -k q)

where o = +-1 is how it is mounted. The law is exactly affine in V and in q.

Encoders: an actuator is a capacitor C, a resistor R and a current source i_m (the
"mechanical" current, proportional to tip velocity) in parallel, behind a shunt
R_s (RSS 2018, Fig. 6 and eq. (18)):

    i_m = (u_sig - u_act)/R_s - zeta C du_act/dt - u_act/R,     qdot = X i_m

The circuit's constants are not published; those in `params.yaml` are ours. R and C
depend on voltage and frequency, in a way that is not published either: the simulated
circuit may differ from the one that the estimate inverts (`EncoderCircuit.plates`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import LeafSystem

from drakebots.core.checks import between, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.units import SI, Scaling
from drakebots.model import driven_joints
from drakebots.multibody import Sampled
from drakebots.robots.hamr.model.parameters import ACTUATORS, parameters

BIAS = 225.0
"""The bias voltage V_b of HAMR's actuators [V]: voltages are within 0..V_b."""

_KINDS = {"s": "swing", "l": "lift"}


def _of_actuators(section: str, name: str) -> np.ndarray:
    """A parameter of the swings and of the lifts, for each actuator (8,)."""
    names = [f"{name}_{_KINDS[each[-1]]}" for each in ACTUATORS]
    return np.array([parameters().number(section, each) for each in names])


# --- actuators --------------------------------------------------------------


class Bender:
    """One bending actuator, or several as arrays, from its materials and sizes.

    With r = l_ext/l, w_r the width ratio, t_p and t_c the thicknesses of piezo
    and carbon fibre (Jafferis et al. 2015):

        G_F = 8 (1-w_r)^3 (1+2r) / [ -6 (w_r-1) (-3 + 4 r (w_r-1) + 2 w_r)
              + 3 (-2 + 2 r (w_r-1) + w_r)^2 ln((2-w_r)/w_r) ]
        D   = E_p t_p (3/2 t_c^2 + 3 t_c t_p + 2 t_p^2)/3 + E_c t_c^3/12
        d_f = (1+2r)/4 f_free t_p l^2 (V_b/t_p) (t_p+t_c) / D
        k   = 3 (f_block/f_free) (w/l^3) G_F D / (1+2r)
        C0  = 3/(4 l) f_block w (t_p+t_c) G_F
        dC  = 3/(4 l) (f_free-f_block)/d_f w (t_p+t_c) G_F

    Args:
        carbon_thickness: t_c [m], of one or of several.
        orientation: o, +1 or -1.

    Attributes:
        stiffness: k [N/m]; the model file has it as a joint spring.
        force_per_volt: C0 [N/V].
        softening: dC [N/(V m)].
        free_deflection: deflection of the free tip at the bias voltage [m].
        bias: V_b [V].
    """

    def __init__(
        self,
        carbon_thickness: float | np.ndarray,
        orientation: float | np.ndarray = 1.0,
    ):
        value = partial(parameters().number, "actuator")
        length, width, wr = value("length"), value("width"), value("width_ratio")
        r = value("extension") / length
        tp, tc = value("thickness_piezo"), carbon_thickness
        blocked, free = value("f31_blocked"), value("f31_free")
        modulus_p, modulus_c = value("modulus_piezo"), value("modulus_carbon")
        self.bias, self.orientation = value("bias"), orientation
        slope = -6 * (wr - 1) * (-3 + 4 * r * (wr - 1) + 2 * wr)
        curve = 3 * (-2 + 2 * r * (wr - 1) + wr) ** 2 * math.log((2 - wr) / wr)
        geometry = 8 * (1 - wr) ** 3 * (1 + 2 * r) / (slope + curve)
        rigidity = (
            modulus_p * tp * (1.5 * tc**2 + 3 * tc * tp + 2 * tp**2) / 3
            + modulus_c * tc**3 / 12
        )
        lever = 0.75 / length * width * (tp + tc) * geometry
        bent = 0.25 * (1 + 2 * r) * free * length**2 * self.bias * (tp + tc) / rigidity
        stiffness = 3 * (blocked / free) * (width / length**3) * geometry * rigidity
        self.stiffness, self.free_deflection = stiffness / (1 + 2 * r), bent
        self.force_per_volt = lever * blocked
        self.softening = lever * (free - blocked) / bent

    def force(self, voltage, deflection):
        """F [N] at a voltage [V] and a tip deflection [m]; broadcasts."""
        return (
            self.orientation * self.force_per_volt * (self.bias - 2 * voltage)
            - self.bias * self.softening * deflection
        )


@cache
def hamr_benders() -> Bender:
    """The eight actuators of HAMR-VI as one `Bender` of arrays (8,)."""
    signs = parameters().table("actuator", "orientation")
    orientation = np.array([signs[name] for name in ACTUATORS])
    return Bender(_of_actuators("actuator", "thickness_carbon"), orientation)


def check_voltages(voltages) -> np.ndarray:
    """The voltages as an array, if all are within 0..V_b.

    Raises:
        InvalidInput: naming the worst voltage.
    """
    voltages = np.asarray(voltages, dtype=float)
    if not np.isfinite(voltages).all():
        raise InvalidInput("a voltage is not finite")
    low, high = voltages.min(initial=0.0), voltages.max(initial=0.0)
    if low < -1e-9 or high > BIAS + 1e-9:
        worst = low if low < -1e-9 else high
        raise InvalidInput(
            f"voltage {worst:.1f} V is outside 0..{BIAS:g} V; reduce the amplitude"
        )
    return voltages


class DriveLaw:
    """The actuators' forces in a plant's coordinates and units:

        force = offset - per_volt V - slope q[tips]

    Attributes:
        tips: indices of the tips in q (8,).
        per_volt: force lost per volt (8,).
        offset: force at 0 V and q = 0 (8,).
        slope: force lost per unit of deflection (8,).
    """

    def __init__(self, plant: MultibodyPlant, unit: Scaling = SI):
        law = hamr_benders()
        joints = driven_joints(plant)
        self.tips = np.array([joint.position_start() for joint in joints])
        self.per_volt = 2 * law.orientation * law.force_per_volt / unit.force
        self.offset = law.orientation * law.force_per_volt * law.bias / unit.force
        self.slope = law.bias * law.softening * unit.length / unit.force


class PiezoDrive(LeafSystem):
    """Turns drive voltages into actuator forces.

                          ┌────────────┐
        voltages (8) V ──▶│            │
                          │ PiezoDrive │──▶ actuation (8), the plant's units
        state (nq+nv)  ──▶│            │
                          └────────────┘

    `state` is the plant's, in the plant's units. Voltages are clipped to 0..V_b, as the
    drive electronics do.

    Args:
        plant: finalized plant with HAMR's actuators.
        scaling: the plant's units.
    """

    def __init__(self, plant: MultibodyPlant, scaling: Scaling = SI):
        super().__init__()
        self.set_name("piezo_drive")
        self._law = DriveLaw(plant, scaling)
        n = len(self._law.tips)
        self.DeclareVectorInputPort("voltages", n)
        self.DeclareVectorInputPort("state", plant.num_multibody_states())
        self.DeclareVectorOutputPort("actuation", n, self._calc)

    def _calc(self, context, output):
        law = self._law
        voltages = self.EvalVectorInput(context, 0).value()
        tips = self.EvalVectorInput(context, 1).value()[law.tips]
        voltages = np.minimum(np.maximum(voltages, 0.0), BIAS)
        output.SetFromVector(law.offset - law.per_volt * voltages - law.slope * tips)


# --- encoders ---------------------------------------------------------------

RELAXATION = 20.0
"""Frequency [Hz] up to which the late share of an actuator's charge follows its
voltage; ours, within the gaits' 2 to 30 Hz, where it does most harm."""


@checked("plates")
class Plates:
    """What actuators' electrical parts are other than the encoders' estimate assumes.

    So C and R of the simulated circuit depend on voltage V and frequency f, with d the
    late share, F = f / :data:`RELAXATION` and a = 1 + voltage (V - V_b/2)/(V_b/2):

        C(V, f) = capacitance C (a (1 - d) + d/(1 + F^2))
        1/R(V, f) = a/(resistance R) + capacitance C 2 pi f d F/(1 + F^2)
    """

    capacitance: Annotated[float, positive()] = 1.0
    """Factor on C at the middle voltage and low frequencies."""
    resistance: Annotated[float, positive()] = 1.0
    """Factor on R at the middle voltage and low frequencies."""
    current: Annotated[float, positive()] = 1.0
    """Factor on the mechanical current, i_m = current dq/dt / X."""
    voltage: Annotated[float, between(-0.9, 0.9)] = 0.0
    """Relative growth of C and of 1/R from the middle to the largest voltage."""
    late: Annotated[float, between(0.0, 0.9)] = 0.0
    """Share of C whose charge follows the voltage late, with the losses of that."""


@dataclass(frozen=True)
class EncoderCircuit:
    """Constants of the measurement circuit.

    Attributes:
        shunt: R_s [Ohm].
        resistance: R [Ohm].
        capacitance: zeta C [F].
        velocity_per_current: X of each actuator (8,) [m/s/A].
        period: sampling period [s].
        plates: what the simulated R and C are other than these constants.
    """

    shunt: float
    resistance: float
    capacitance: float
    velocity_per_current: np.ndarray
    period: float
    plates: Plates

    @property
    def conductance(self) -> float:
        """1/R_s + 1/R [S]."""
        return 1 / self.shunt + 1 / self.resistance

    def settle(self, u_act, u_late, u_sig, current):
        """u_act and u_late one period later, for held u_sig [V] and i_m [A].

        Solves, with a = 1 + voltage (u - V_b/2)/(V_b/2) taken in the middle of u_act
        and u_sig, d the late share and w = 2 pi :data:`RELAXATION`,

            (1 - d) a zeta C du/dt = (u_sig - u)/R_s - a u/R - i_m - d w zeta C (u - u')
            du'/dt = w (u - u')

        exactly where voltage and d are 0; else u' follows what u settles at.
        """
        other, rate = self.plates, 2 * np.pi * RELAXATION
        scale = 1 + other.voltage * ((u_act + u_sig) / BIAS - 1)
        full = other.capacitance * self.capacitance
        branch = other.late * rate * full
        leak = scale / (other.resistance * self.resistance)
        total = 1 / self.shunt + leak + branch
        rest = (u_sig / self.shunt - other.current * current + branch * u_late) / total
        late = u_late + (1 - np.exp(-rate * self.period)) * (rest - u_late)
        rest += branch * (late - u_late) / total
        decay = -total * self.period / ((1 - other.late) * scale * full)
        return rest + (u_act - rest) * np.exp(decay), late

    def current(self, u_sig, u_act, u_before):
        """i_m [A] by eq. (18), the derivative by a backward difference.

        The currents through the shunt and the resistor are averaged over the period.
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


@cache
def hamr_encoder() -> EncoderCircuit:
    """The circuit with the constants of `params.yaml`."""
    value = partial(parameters().number, "encoder")
    return EncoderCircuit(
        shunt=value("shunt_resistance"),
        resistance=value("resistance"),
        capacitance=value("capacitance") * value("blocking_factor"),
        velocity_per_current=_of_actuators("encoder", "velocity_per_current"),
        period=1 / value("sample_rate"),
        plates=Plates(),
    )


class Encoder(Sampled):
    """Measures the tip velocities of the actuators.

                          ┌─────────┐
        voltages (8) V ──▶│         │──▶ velocity (8) m/s, sampled and held
                          │ Encoder │
        state (nq+nv)  ──▶│         │──▶ actuator_voltage (8) V
                          └─────────┘

    `state` is the plant's, in the plant's units. The discrete state, u_act, the
    estimated velocity and the late voltage, is updated once per period of the circuit.

    Args:
        plant: finalized plant with HAMR's actuators.
        scaling: the plant's units.
        noise: standard deviation of the measured current [A].
        seed: seed of the noise.
        plates: what the simulated circuit is other than the estimate assumes.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        scaling: Scaling = SI,
        *,
        noise: float = 0.0,
        seed: int = 0,
        plates: Plates = Plates(),
    ):
        circuit = self._circuit = replace(hamr_encoder(), plates=plates)
        unit, joints = scaling, driven_joints(plant)
        n = len(joints)
        inputs = {"voltages": n, "state": plant.num_multibody_states()}
        super().__init__("encoder", np.zeros(3 * n), **inputs)
        self._size = n
        rates = [joint.velocity_start() for joint in joints]
        self._rates = plant.num_positions() + np.array(rates)
        self._current_per_rate = unit.velocity / circuit.velocity_per_current
        self._noise, self._random = noise, np.random.default_rng(seed)
        self._declare_update(self._update, circuit.period / unit.time)
        self._declare_output("velocity", slice(n, 2 * n))
        self._declare_output("actuator_voltage", slice(0, n))

    def _update(self, context, x):
        n, circuit = self._size, self._circuit
        before, late, u_sig = x[:n], x[2 * n :], self._input(context)
        current = self._current_per_rate * self._input(context, 1)[self._rates]
        u_act, late = circuit.settle(before, late, u_sig, current)
        measured = circuit.current(u_sig, u_act, before)
        measured = measured + self._noise * self._random.standard_normal(n)
        return np.concatenate([u_act, circuit.velocity_per_current * measured, late])
