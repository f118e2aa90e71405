"""The piezoelectric bending actuators of HAMR-VI.

Simplified from Jafferis et al. (2015) as the authors do: with both plates
biased at V_b and the centre driven at V, an actuator whose tip is at q pushes

    F = o C0 (V_b - 2 V) - V_b dC q          (on top of its spring -k q)

where o = +-1 is how it is mounted. The law is affine in V and in q exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pydrake.systems.framework import LeafSystem

from drakebots.core.errors import InvalidInput
from drakebots.multibody import Robot
from drakebots.robots.hamr.model.parameters import (
    ACTUATORS,
    HamrParameters,
    parameters,
)

BIAS = 225.0
"""The bias voltage V_b of HAMR's actuators [V]: voltages are within 0..V_b."""


@dataclass(frozen=True)
class Bender:
    """One bending actuator.

    Attributes:
        stiffness: k [N/m]; the model file carries it as a joint spring.
        force_per_volt: C0 [N/V].
        softening: dC [N/(V m)].
        free_deflection: of the tip at the bias voltage [m].
        bias: V_b [V].
        orientation: o, +1 or -1.
    """

    stiffness: float
    force_per_volt: float
    softening: float
    free_deflection: float
    bias: float
    orientation: float

    def force(self, voltage, deflection):
        """F [N] at a voltage [V] and a tip deflection [m]; broadcasts."""
        return (
            self.orientation * self.force_per_volt * (self.bias - 2 * voltage)
            - self.bias * self.softening * deflection
        )

    def voltage(self, force, deflection):
        """The voltage [V] that gives a force [N] at a deflection [m]."""
        push = self.orientation * (force + self.bias * self.softening * deflection)
        return 0.5 * (self.bias - push / self.force_per_volt)

    @property
    def blocked_force(self) -> float:
        """|F| at full voltage with the tip held at zero [N]."""
        return self.force_per_volt * self.bias


def bender(
    table: HamrParameters, carbon_thickness: float, orientation: float = 1.0
) -> Bender:
    """The constants of an actuator from its materials and sizes.

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
        table: parameters with an `actuator` section.
        carbon_thickness: t_c [m].
        orientation: o.
    """

    def value(name: str) -> float:
        return table.number("actuator", name)

    length, width, wr = value("length"), value("width"), value("width_ratio")
    r = value("extension") / length
    tp, tc = value("thickness_piezo"), carbon_thickness
    blocked, free = value("f31_blocked"), value("f31_free")
    modulus_p, modulus_c = value("modulus_piezo"), value("modulus_carbon")
    bias = value("bias")
    geometry = (
        8
        * (1 - wr) ** 3
        * (1 + 2 * r)
        / (
            -6 * (wr - 1) * (-3 + 4 * r * (wr - 1) + 2 * wr)
            + 3 * (-2 + 2 * r * (wr - 1) + wr) ** 2 * math.log((2 - wr) / wr)
        )
    )
    rigidity = (
        modulus_p * tp * (1.5 * tc**2 + 3 * tc * tp + 2 * tp**2) / 3
        + modulus_c * tc**3 / 12
    )
    deflection = 0.25 * (1 + 2 * r) * free * length**2 * bias * (tp + tc) / rigidity
    lever = 0.75 / length * width * (tp + tc) * geometry
    return Bender(
        stiffness=3
        * (blocked / free)
        * (width / length**3)
        * geometry
        * rigidity
        / (1 + 2 * r),
        force_per_volt=lever * blocked,
        softening=lever * (free - blocked) / deflection,
        free_deflection=deflection,
        bias=bias,
        orientation=orientation,
    )


def hamr_benders(table: HamrParameters | None = None) -> Bender:
    """The eight actuators of HAMR-VI as one `Bender` of arrays (8,)."""
    table = table or parameters()
    signs = table.table("actuator", "orientation")
    kinds = {
        kind: bender(table, table.number("actuator", f"thickness_carbon_{name}"))
        for kind, name in (("s", "swing"), ("l", "lift"))
    }
    each = [kinds[name[-1]] for name in ACTUATORS]

    def stack(field: str) -> np.ndarray:
        return np.array([getattr(b, field) for b in each])

    return Bender(
        stiffness=stack("stiffness"),
        force_per_volt=stack("force_per_volt"),
        softening=stack("softening"),
        free_deflection=stack("free_deflection"),
        bias=each[0].bias,
        orientation=np.array([signs[name] for name in ACTUATORS]),
    )


def check_voltages(voltages, bias: float = BIAS) -> np.ndarray:
    """The voltages as an array, if all are within 0..bias.

    Raises:
        InvalidInput: naming the worst voltage.
    """
    voltages = np.asarray(voltages, dtype=float)
    if not np.isfinite(voltages).all():
        raise InvalidInput("a voltage is not finite")
    low, high = voltages.min(initial=0.0), voltages.max(initial=0.0)
    if low < -1e-9 or high > bias + 1e-9:
        worst = low if low < -1e-9 else high
        raise InvalidInput(
            f"voltage {worst:.1f} V is outside 0..{bias:g} V; reduce the amplitude"
        )
    return voltages


class PiezoDrive(LeafSystem):
    """Turns drive voltages into actuator forces.

                          ┌────────────┐
        voltages (8) V ──▶│            │
                          │ PiezoDrive │──▶ actuation (8), the plant's units
        state (nq+nv)  ──▶│            │
                          └────────────┘

    `state` is the plant's, in the plant's units. The drive electronics cannot
    leave 0..V_b: voltages are clipped there.
    """

    def __init__(self, robot: Robot, benders: Bender | None = None):
        super().__init__()
        self.set_name("piezo_drive")
        plant, unit = robot.plant, robot.scaling
        law = benders or hamr_benders()
        joints = [
            plant.get_joint_actuator(i).joint() for i in plant.GetJointActuatorIndices()
        ]
        self._tips = np.array([joint.position_start() for joint in joints])
        # F/unit = offset - gain V - slope q, with q in plant units.
        self._bias = law.bias
        self._gain = 2 * law.orientation * law.force_per_volt / unit.force
        self._offset = law.orientation * law.force_per_volt * law.bias / unit.force
        self._slope = law.bias * law.softening * unit.length / unit.force
        self.DeclareVectorInputPort("voltages", len(joints))
        self.DeclareVectorInputPort("state", plant.num_multibody_states())
        self.DeclareVectorOutputPort("actuation", len(joints), self._calc)

    def _calc(self, context, output):
        voltages = self.EvalVectorInput(context, 0).value()
        tips = self.EvalVectorInput(context, 1).value()[self._tips]
        voltages = np.minimum(np.maximum(voltages, 0.0), self._bias)
        output.SetFromVector(self._offset - self._gain * voltages - self._slope * tips)
