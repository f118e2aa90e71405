"""What a user asks of a quad-robot: COM, feet and footfall over time.

The input of the paper's section 5, every 5 ms: where the centre of mass and each
foot should be, and when each foot is on the ground.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.quads.footfall import Footfall

PERIODS = (None, "joints", "cycle")
"""Nothing repeats; joint angles do (eq. 6); the whole motion does."""

OFF_GROUND = 5e-3
"""A foot in contact may be asked this far from the ground [m]."""

SLIP = 5e-3
"""A foot in contact may be asked to move this much in all [m]."""


@dataclass(frozen=True)
class MotionInput:
    """A motion to plan, in the world; the ground is z = 0.

    Attributes:
        footfall: contacts; it has the feet's names, N and dt.
        com: centre of mass (N, 3) [m].
        feet: p_WF of the soles' middles (N, feet, 3) [m], in the footfall's order.
        heading: yaw of the body (N,) [rad].
        period: of :data:`PERIODS`.
        flight: whether frames without support are meant.
        reference: positions of some joints (N,) [rad] by name.
        name: for reports.

    Raises:
        InvalidInput: for shapes, values that are not finite, frames without
            support that are not meant, feet that slip or hover in contact.
    """

    footfall: Footfall
    com: np.ndarray
    feet: np.ndarray
    heading: np.ndarray | float = 0.0
    period: str | None = None
    flight: bool = False
    reference: Mapping[str, np.ndarray] = field(default_factory=dict)
    name: str = "motion"

    def __post_init__(self):
        N, names = len(self.footfall), self.footfall.feet
        heading = np.broadcast_to(np.asarray(self.heading, float), (N,))
        reference = {k: np.array(v, float) for k, v in self.reference.items()}
        arrays = {
            "com": (np.array(self.com, float), (N, 3)),
            "feet": (np.array(self.feet, float), (N, len(names), 3)),
            "heading": (np.array(heading), (N,)),
            **{f"reference {k}": (v, (N,)) for k, v in reference.items()},
        }
        for what, (array, shape) in arrays.items():
            if array.shape != shape:
                raise InvalidInput(
                    f"{self.name}: {what} has shape {array.shape}, needs {shape} "
                    f"({N} frames)"
                )
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                raise InvalidInput(
                    f"{self.name}: {what} is not a number at frame {bad[0][0]}"
                )
            array.setflags(write=False)
        if self.period not in PERIODS:
            raise InvalidInput(
                f"{self.name}: period {self.period!r} must be one of "
                f"{', '.join(map(str, PERIODS))}"
            )
        for what in ("com", "feet", "heading"):
            object.__setattr__(self, what, arrays[what][0])
        object.__setattr__(self, "reference", MappingProxyType(reference))
        self._check_support()
        self._check_ground()

    def _check_support(self) -> None:
        gaps = self.footfall.unsupported()
        if gaps and not self.flight:
            text = ", ".join(f"{a}..{b - 1}" for a, b in gaps[:4])
            first = gaps[0][0] * self.dt
            raise InvalidInput(
                f"{self.name}: no foot is on the ground in frames {text} (from "
                f"{first:.3f} s); lengthen the contacts, or set flight: true for a "
                "jump"
            )

    def _check_ground(self) -> None:
        for j, foot in enumerate(self.footfall.feet):
            for start, stop in self.footfall.bars(foot):
                p = self.feet[start:stop, j]
                worst = int(np.abs(p[:, 2]).argmax())
                if abs(p[worst, 2]) > OFF_GROUND:
                    raise InvalidInput(
                        f"{self.name}: foot {foot} is to be on the ground at frame "
                        f"{start + worst} but {p[worst, 2] * 1e3:.1f} mm above it; "
                        "change its path or the pattern"
                    )
                slip = np.linalg.norm(p[:, :2] - p[0, :2], axis=1)
                worst = int(slip.argmax())
                if slip[worst] > SLIP:
                    raise InvalidInput(
                        f"{self.name}: foot {foot} is in contact from frame {start} "
                        f"and asked to slide {slip[worst] * 1e3:.1f} mm by frame "
                        f"{start + worst}; lift it, or keep it in place"
                    )

    def __len__(self) -> int:
        return len(self.footfall)

    @property
    def dt(self) -> float:
        """Between frames [s]."""
        return self.footfall.dt

    @property
    def times(self) -> np.ndarray:
        """Of the frames (N,) [s]."""
        return self.footfall.times

    @property
    def duration(self) -> float:
        """[s]."""
        return self.dt * (len(self) - 1)

    @property
    def speed(self) -> float:
        """Mean, of the COM along the ground [m/s]."""
        way = self.com[-1, :2] - self.com[0, :2]
        return float(np.linalg.norm(way)) / self.duration

    @property
    def turn(self) -> float:
        """Change of heading [rad]."""
        return float(self.heading[-1] - self.heading[0])

    def with_footfall(self, contact: np.ndarray) -> MotionInput:
        """The same paths with another pattern (N, feet)."""
        return replace(self, footfall=Footfall(self.footfall.feet, contact, self.dt))
