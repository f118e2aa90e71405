"""The give of suction cups in torsion: a spring, or the pose step's weights.

A cup with a spring resists a twist psi with a moment k psi; the robot then comes
to rest where sum K |alpha - alpha_ref|^2 + sum k psi^2 is least. The pose step
minimises f_a |alpha - alpha_ref| + f_o |psi| instead, norms without squares.
Its minimum is that of springs with the ratio

    k/K = (f_o/f_a) |alpha - alpha_ref| / |psi|

at the minimum itself. :class:`WeightedCups` follows that ratio while the robot
moves, as iteratively reweighted least squares do, and comes to rest in it.
Source: the pose step's objective, RA-L 5:1199 (2020); the law is ours.
"""

from __future__ import annotations

import numpy as np
from pydrake.systems.framework import DiscreteStateIndex, LeafSystem

from drakebots.errors import InvalidInput

CUP_LAWS = ("weighted", "spring")
"""How a cup resists being twisted."""

TORSION = 3.0
"""k/K of the gains in the plant that the law of weights acts through."""

RATIOS = (0.05, 3.5)
"""Least and largest k/K: norms have kinks, springs have not."""

LEAST_TWIST = np.radians(0.02)


class WeightedCups(LeafSystem):
    """Desired state of the cups that makes their stiffness follow the ratio.

    With gains k0 = TORSION K in the plant, a desired twist of (1 - r/TORSION)
    psi leaves the moment r K psi.

                    ┌──────────────┐
        twist (4) ─▶│ WeightedCups │──▶ desired (8) twists, zeros
        bend (5) ──▶└──────────────┘

    Inputs: the twists psi, zero for feet that do not hold [rad], and what the
    limbs lack, alpha - alpha_ref [rad].

    Args:
        weight: f_o/f_a.
        period: of sampling [s].
        lag: time constant with which the ratio follows [s].

    Raises:
        InvalidInput: for a number <= 0.
    """

    def __init__(self, weight: float, *, period: float = 0.005, lag: float = 0.005):
        super().__init__()
        self.set_name("weighted_cups")
        for name, value in (("weight", weight), ("period", period), ("lag", lag)):
            if not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"cups: {name} must be > 0, got {value}")
        self._weight, self._share = weight, 1 - np.exp(-period / lag)
        self.DeclareVectorInputPort("twist", 4)
        self.DeclareVectorInputPort("bend", 5)
        # log of the ratio, then the desired twists
        self.DeclareDiscreteState(np.array([np.log(TORSION), 0, 0, 0, 0]))
        self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, self._update)
        state = {self.discrete_state_ticket(DiscreteStateIndex(0))}
        self.DeclareVectorOutputPort("desired", 8, self._desired, state)

    def _update(self, context, state):
        x = context.get_discrete_state_vector().value().copy()
        twist = self.EvalVectorInput(context, 0).value()
        bend = self.EvalVectorInput(context, 1).value()
        size = max(float(np.linalg.norm(twist)), LEAST_TWIST)
        ratio = self._weight * float(np.linalg.norm(bend)) / size
        x[0] += self._share * (np.log(min(max(ratio, RATIOS[0]), RATIOS[1])) - x[0])
        x[1:] = (1 - np.exp(x[0]) / TORSION) * twist
        state.get_mutable_discrete_state().set_value(x)

    def _desired(self, context, output):
        x = context.get_discrete_state_vector().value()
        output.SetFromVector(np.concatenate([x[1:], np.zeros(4)]))
