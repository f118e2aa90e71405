"""Footfall patterns: which foot is on the ground in which frame.

A gait is given by its period T, the share of it a foot is down (duty beta) and
each foot's phase phi, the moment it lands as a share of T:

    foot j is down at t  <=>  frac(t/T - phi_j) < beta
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class Footfall:
    """Contact bars, sampled.

    Attributes:
        feet: names.
        contact: whether a foot is down (N, feet).
        dt: between frames [s].

    Raises:
        InvalidInput: for shapes that differ.
    """

    feet: tuple[str, ...]
    contact: np.ndarray
    dt: float

    def __post_init__(self):
        contact = np.array(self.contact, dtype=bool)
        if contact.ndim != 2 or contact.shape[1] != len(self.feet) or len(contact) < 2:
            raise InvalidInput(
                f"footfall pattern: shape {contact.shape} must be (frames >= 2, "
                f"{len(self.feet)}), a column a foot"
            )
        if not (np.isfinite(self.dt) and self.dt > 0):
            raise InvalidInput(f"footfall pattern: dt = {self.dt} s must be > 0")
        contact.setflags(write=False)
        object.__setattr__(self, "contact", contact)
        object.__setattr__(self, "feet", tuple(self.feet))

    def __len__(self) -> int:
        return len(self.contact)

    @property
    def times(self) -> np.ndarray:
        """Of the frames (N,) [s]."""
        return self.dt * np.arange(len(self))

    def bars(self, foot: str) -> list[tuple[int, int]]:
        """First frame and one past the last of each contact of a foot."""
        if foot not in self.feet:
            raise UnknownName("foot", foot, self.feet)
        return runs(self.contact[:, self.feet.index(foot)])

    def unsupported(self) -> list[tuple[int, int]]:
        """Runs of frames in which no foot is down."""
        return runs(~self.contact.any(axis=1))

    def near_contact(self, frames: int = 5) -> np.ndarray:
        """Frames in which a foot is down, or lands or left within `frames`
        (N, feet): where the paper wants it flat."""
        near = self.contact.copy()
        for shift in range(1, frames + 1):
            near[shift:] |= self.contact[:-shift]
            near[:-shift] |= self.contact[shift:]
        return near

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Contact at some frames (k, feet)."""
        return self.contact[np.asarray(frames)]


def gait_footfall(
    feet: Sequence[str],
    phases: Mapping[str, float],
    *,
    period: float,
    duty: float,
    frames: int,
    dt: float = 5e-3,
) -> Footfall:
    """The pattern of a gait; see the module.

    Args:
        feet: names.
        phases: phi of every foot [periods].
        period: T [s].
        duty: beta in (0, 1].
        frames: N.
        dt: [s].

    Raises:
        InvalidInput, UnknownName: for values that cannot be, a foot left out.
    """
    if not 0 < duty <= 1:
        raise InvalidInput(f"duty = {duty} must be in (0, 1]")
    if not (np.isfinite(period) and period > 0):
        raise InvalidInput(f"period = {period} s must be > 0")
    for name in phases:
        if name not in feet:
            raise UnknownName("foot", name, feet)
    missing = [name for name in feet if name not in phases]
    if missing:
        raise InvalidInput(f"phases: give one for {', '.join(missing)}")
    t = dt * np.arange(frames) / period
    # A frame on the boundary belongs to what begins there.
    turn = np.stack([(t - phases[f] + 1e-9) % 1.0 for f in feet], axis=1)
    return Footfall(tuple(feet), turn < duty, dt)


def bar_footfall(
    feet: Sequence[str],
    bars: Mapping[str, Sequence[tuple[float, float]]],
    *,
    frames: int,
    dt: float = 5e-3,
) -> Footfall:
    """The pattern of bars [start, end) in seconds.

    Raises:
        UnknownName: for a foot that is none.
        InvalidInput: for a bar that ends before it starts.
    """
    t = dt * np.arange(frames)
    contact = np.zeros((frames, len(feet)), bool)
    for foot, rows in bars.items():
        if foot not in feet:
            raise UnknownName("foot", foot, feet)
        for start, end in rows:
            if not end > start:
                raise InvalidInput(f"bar of {foot}: {start} .. {end} s ends too early")
            inside = (t >= start - 1e-9) & (t < end - 1e-9)
            contact[inside, list(feet).index(foot)] = True
    return Footfall(tuple(feet), contact, dt)


def runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """[first, one past the last) of each run of True."""
    edges = np.diff(np.concatenate([[0], np.asarray(mask, int), [0]]))
    return list(
        zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist())
    )
