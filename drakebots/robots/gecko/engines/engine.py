"""What both engines of the gecko share: who chooses its gaits, times, the dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import xarray as xr

from drakebots.core.checks import between, check_value, finite, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.model import given
from drakebots.results import with_units
from drakebots.robots.gecko.model import FEET, LIMBS, MARKERS, MODEL, Gecko, Pose

MET_AT_THE_START = "every target was met at the start; the robot did not walk"


@dataclass(frozen=True)
class Decision:
    """The gait of the next half cycle, and its reason.

    Attributes:
        q1: step length, > 0; the engine gives it the half cycle's sign [rad].
        q2: steering; positive turns right.
        n: horizon for which the gait was chosen [cycles]; 0 when it leaves a circle.
            "least time" expects to arrive in so many.
        distance: predicted distance d_n to the target after n cycles ("least time":
            after one) [m].
        target: index of the target.
        d0: present distance to that target [m].
    """

    q1: float
    q2: float
    n: int
    distance: float
    target: int
    d0: float


class Generator(Protocol):
    """Anything that chooses gaits: a generator of targets or of a path."""

    def decide(self, position, heading: float) -> Decision | None:
        """The gait of the next half cycle, or None at the end."""


Law = Callable[[float, float], np.ndarray]
"""Reference angles (5,) [rad] at the end of a half cycle, of q1 with its sign [rad] and
of q2."""


class Engine:
    """A way to simulate a walk to targets."""


class Asked(Protocol):
    """What an engine is asked to walk: a dataclass, which the result is stored with.

    Attributes:
        engine: options of the engine.
        robot: lengths and weights of the robot.
        half_cycles: largest number of half cycles.
        time_limit: limit of the wall time [s].
    """

    engine: Any
    robot: Gecko
    half_cycles: int
    time_limit: float | None

    def start_pose(self) -> Pose:
        """The first pose."""


@checked("phase times")
class PhaseTimes:
    """Durations of a half cycle's phases; by default those of `params.yaml`."""

    fix: Annotated[float, positive("s")] = given(MODEL, "phase_times", "fix")
    """Duration of the phase with all feet fixed."""
    free: Annotated[float, positive("s")] = given(MODEL, "phase_times", "free")
    """Duration of the phase in which feet let go."""
    move: Annotated[float, positive("s")] = given(MODEL, "phase_times", "move")
    """Duration of the phase in which the limbs move."""

    @property
    def half_cycle(self) -> float:
        """Duration of all three phases [s]."""
        return self.fix + self.free + self.move

    def rounded(self, step: float) -> PhaseTimes:
        """Each phase rounded to a whole number, >= 1, of time steps [s]."""
        return PhaseTimes(*(max(1, round(t / step)) * step for t in astuple(self)))


def check_gait(q1, q2) -> tuple[float, float]:
    """The gait's step length [rad] and steering as numbers.

    Raises:
        InvalidInput: unless q1 is within 0..180 deg, 0 excluded, and q2 within -1..1.
    """
    q1 = float(check_value("step length q1", q1, finite("rad")))
    q2 = float(check_value("steering q2", q2, between(-1, 1)))
    if not 0 < q1 <= np.pi:
        raise InvalidInput(
            f"step length q1 must be > 0 and within 0..180 deg, got {np.degrees(q1):g}"
        )
    return q1, q2


def motion_dataset(coordinates: dict, variables: dict) -> xr.Dataset:
    """A gecko's motion: (dimensions, values, unit) of each coordinate and variable."""
    used = {dim for dims, *_ in variables.values() for dim in dims}
    names = {"marker": MARKERS, "axis": "xy", "limb": LIMBS, "foot": FEET}
    named = {name: list(entries) for name, entries in names.items() if name in used}
    return xr.Dataset(with_units(variables), with_units(coordinates) | named)
