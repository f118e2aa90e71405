"""What a plan asks HAMR-VI to do: states and voltages over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from drakebots.core.errors import InvalidInput
from drakebots.core.units import MM_G_MS
from drakebots.model import load
from drakebots.multibody import Robot, build_robot
from drakebots.robots.hamr.model import LEGS, check_voltages

BODY = "Chassis"
"""The body in whose frame leg positions are given."""

CLOSED_LEGS = 1e-3
"""How far a leg of a periodic plan may end from its start [m]."""

_EARLY = 1e-9
"""Of a duration; a moment this little before a knot counts as on it."""


@cache
def reference_robot() -> Robot:
    """The plant whose coordinates references are in; mm, g, ms inside."""
    return build_robot(load("hamr"), base="euler", time_step=0, scaling=MM_G_MS)


def coordinate_names() -> list[str]:
    """The names of the 38 coordinates, in order."""
    plant = reference_robot().plant
    return list(plant.GetPositionNames(always_add_suffix=False))


@dataclass(frozen=True, eq=False)
class Reference:
    """States and voltages to be executed, in SI.

    The coordinates are those of :func:`coordinate_names`: x, y, z, yaw, pitch,
    roll of the chassis, then eight a leg.

    Attributes:
        time: of the knots (N,) [s], from 0, increasing.
        q: positions at the knots (N, 38) [m, rad].
        v: their rates (N, 38) [m/s, rad/s].
        voltages: held from each knot to the next (N-1, 8) [V].
        periodic: whether the last knot is the first of the next cycle, but for
            where the body is.
        friction: coefficient the plan was made for.
        name: of the plan.

    Raises:
        InvalidInput: for shapes that do not fit, values that are not finite,
            times that do not increase from 0, voltages outside 0..225 V, or
            legs of a periodic plan that do not come back.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    voltages: np.ndarray
    periodic: bool
    friction: float
    name: str = "plan"

    def __post_init__(self):
        shape = np.shape(self.time)
        if len(shape) != 1 or shape[0] < 2:
            raise InvalidInput(
                f"reference time must be a list of two knots or more, got shape {shape}"
            )
        n, nq = shape[0], len(coordinate_names())
        sizes = {"time": (n,), "q": (n, nq), "v": (n, nq), "voltages": (n - 1, 8)}
        for name, size in sizes.items():
            object.__setattr__(self, name, _array(name, getattr(self, name), size))
        if self.time[0] != 0 or np.diff(self.time).min() <= 0:
            raise InvalidInput("reference time must start at 0 s and increase")
        check_voltages(self.voltages)
        if not (np.isfinite(self.friction) and self.friction >= 0):
            raise InvalidInput(f"reference friction must be >= 0, got {self.friction}")
        if self.periodic:
            gap = np.linalg.norm(self.legs[-1] - self.legs[0], axis=1)
            worst = int(gap.argmax())
            if gap[worst] > CLOSED_LEGS:
                raise InvalidInput(
                    f"reference {self.name} is not periodic: leg {LEGS[worst]} ends "
                    f"{1e3 * gap[worst]:.2g} mm from where it starts; set "
                    "periodic=False or give a whole cycle"
                )

    @property
    def duration(self) -> float:
        """Of a cycle, or of the whole plan [s]."""
        return float(self.time[-1])

    @property
    def base_position(self) -> np.ndarray:
        """Of the chassis at the knots (N, 3) [m]."""
        return self.q[:, :3]

    @property
    def base_rpy(self) -> np.ndarray:
        """Roll, pitch, yaw of the chassis at the knots (N, 3) [rad]."""
        return self.q[:, 5:2:-1]

    @cached_property
    def legs(self) -> np.ndarray:
        """The legs' markers in the chassis frame at the knots (N, 4, 3) [m]."""
        robot = reference_robot()
        context = robot.plant.CreateDefaultContext()
        units, legs = robot.position_units(), np.zeros((len(self.time), 4, 3))
        for k, q in enumerate(self.q):
            robot.plant.SetPositions(context, q / units)
            legs[k] = robot.points_positions(context, BODY)
        legs.setflags(write=False)
        return legs

    @cached_property
    def _curve(self) -> CubicSpline:
        legs = self.legs
        if not self.periodic:
            return CubicSpline(self.time, legs)
        # What a cycle lacks to close is spread over it, so that no step is left.
        share = (self.time / self.duration)[:, None, None]
        closed = legs - share * (legs[-1] - legs[0])
        closed[-1] = closed[0]
        return CubicSpline(self.time, closed, bc_type="periodic")

    @cached_property
    def _slope(self) -> CubicSpline:
        return self._curve.derivative()

    def phase(self, t: float) -> float:
        """The moment of the plan at time t [s]: wrapped, or held at its ends."""
        if self.periodic:
            t = np.mod(t + _EARLY * self.duration, self.duration)
        return float(min(max(t, 0.0), self.duration))

    def voltages_at(self, t: float) -> np.ndarray:
        """The voltages of the actuators (8,) [V] at time t [s]."""
        moment = self.phase(t) + _EARLY * self.duration
        k = int(np.searchsorted(self.time, moment, "right")) - 1
        return self.voltages[min(k, len(self.voltages) - 1)]

    def legs_at(self, t: float) -> np.ndarray:
        """The legs' markers in the chassis frame (4, 3) [m] at time t [s].

        A cubic spline through the knots.
        """
        return self._curve(self.phase(t))

    def leg_velocities_at(self, t: float) -> np.ndarray:
        """The time derivative of :meth:`legs_at` (4, 3) [m/s]."""
        if not self.periodic and not 0 <= t <= self.duration:
            return np.zeros((4, 3))
        return self._slope(self.phase(t))


def _array(name: str, values, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"reference {name} must be numbers ({error})") from error
    if array.shape != shape:
        raise InvalidInput(
            f"reference {name} must have shape {shape}, got {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InvalidInput(f"reference {name} has a value that is not finite")
    array.setflags(write=False)
    return array
