"""The gaits q = (q1, q2) for which a motion model holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.gecko.parameters import array

# Rounding may take a bound, say radians(90), a hair outside.
_SLACK = 1e-9


@dataclass(frozen=True)
class Domain:
    """The gaits for which a motion model holds.

    Attributes:
        q1: least and greatest step length [rad].
        q2: least and greatest steering.

    Raises:
        InvalidInput: when a range is empty, reversed or not finite.
    """

    q1: tuple[float, float]
    q2: tuple[float, float]

    def __post_init__(self):
        for name in ("q1", "q2"):
            low, high = map(float, getattr(self, name))
            if not (np.isfinite([low, high]).all() and low < high):
                raise InvalidInput(
                    f"domain: {name} must be an increasing finite range, "
                    f"got {low:g}..{high:g}"
                )
            object.__setattr__(self, name, (low, high))

    def check(self, q1, q2) -> tuple[np.ndarray, np.ndarray]:
        """The arguments as arrays of one shape.

        Raises:
            InvalidInput: for a q outside or not finite, naming it and the range.
        """
        given = np.broadcast_arrays(np.asarray(q1, float), np.asarray(q2, float))
        ranges = (self.q1, self.q2)
        for name, q, (low, high) in zip(("q1", "q2"), given, ranges):
            outside = ~((q >= low - _SLACK) & (q <= high + _SLACK))
            if outside.any():
                unit = " rad" if name == "q1" else ""
                raise InvalidInput(
                    f"{name} = {q[outside].flat[0]:.6g}{unit} is outside the domain "
                    f"of the motion model, {low:.6g}..{high:.6g}{unit}; clip it or "
                    "fit a model there"
                )
        return given[0], given[1]


def gait_domain() -> Domain:
    """The domain of the paper: q1 in 50..90 deg, q2 in -0.5..0.5, in SI."""
    return Domain(tuple(array("step_length")), tuple(array("steering")))
