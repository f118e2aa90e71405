"""Findings of a verdict on a motion, with one meaning and one limit for all robots, and
a run in simulation that is judged by them.

    findings = [tilted(np.radians(19)), *strides_of(strides, planned)]
    verdict, message = judged(end, findings, "walks")
    # success: "walks, but it tilts by 19 degrees; reached 2 s"

Each quantity is a :class:`Finding`: a number with its unit, a limit beyond which a
success is one with a "but", and one beyond which it is none. Limits are shares of the
robot's own size l and of sqrt(g/l), so that they are the same for a gram and a hundred
kilograms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.convert import as_yaml
from drakebots.core.run import RunEnd, Verdict
from drakebots.core.stages import spent
from drakebots.model import Model, model_provenance
from drakebots.results import Result

NARROW = 0.25
"""Half the width of a narrow stance, in heights of the centre of mass. What carries
that further aside takes the weight off feet that stay, be it by leaning, by sliding, or
by a speed of this many sqrt(g l): then the capture point leaves them."""

LEANING = float(np.arctan(NARROW))
"""Tilt from which a robot leans: its weight leaves a narrow stance [rad] (14 deg)."""

FALLEN_TILT = np.pi / 4
"""Tilt from which it has fallen [rad]. Legs that are in their place under the trunk
then push along 45 degrees, and feet slip at any friction below 1."""

SUNK = 0.2
"""Change of its height from which a robot has sunk or risen, as a share: legs of two
links that stood at 0.92 of their reach bend their knees by 40 degrees more."""

FALLEN_HEIGHT = 0.5
"""Share of the height that it should have below which it has fallen: legs are folded to
half their length, and a trunk half as high as it is carried is on the ground."""

FLUNG, SPUN = np.sqrt(2.0), np.sqrt(60.0)
"""Speed of what fell by l [sqrt(g l)]; and rate of a link of l/10, hinged at its end,
that fell through half a turn [sqrt(g/l)]. Gravity makes nothing larger faster."""

PLAY, APART = 1e-3, 1e-2
"""Gap of a loop, in l: more than the play of a worn joint; not joined at all."""

MISSED, HALF = 0.2, 0.5
"""Share of what was asked that is missed: a fifth is a whole stride in five; with half
of a stride, feet that should stay slide as far as the robot goes by them."""

ON_FEET = 0.1
"""Share of its weight that a walker's feet may miss in the mean; forces that jump
from step to step, sampled every 5 ms, miss up to 0.04."""

SATURATED = 0.1
"""Share of the time for which a motor is at its limit, and answers to nothing."""

_FULL = 1 - 1e-6  # share of a limit that counts as the limit


@dataclass(frozen=True)
class Finding:
    """A quantity that a verdict looks at.

    Attributes:
        name: of the quantity, e.g. "tilt".
        value: its magnitude.
        unit: of value and limits.
        limit: value beyond which a success is one with a "but".
        fails: value beyond which it is no success; infinite where none is.
        words: text on a value beyond a limit, with the number.
    """

    name: str
    value: float
    unit: str
    limit: float
    fails: float
    words: str

    @property
    def failed(self) -> bool:
        """Whether it is no success; no number is none."""
        return not self.value <= self.fails

    @property
    def doubtful(self) -> bool:
        """Whether a success is one with a "but"."""
        return not self.value <= self.limit


def judged(
    end: RunEnd, findings: Sequence[Finding], doing: str = "it stands"
) -> tuple[Verdict, str]:
    """The verdict of a run, and why, in one line.

    Args:
        end: end of the run.
        findings: those of the verdict, the gravest first; of those that fail two are
            said, of a fall nothing else.
        doing: activity of the robot where it is a success, for "walks, but ...".
    """
    failed = [finding for finding in findings if finding.failed]
    if end.verdict is Verdict.FAILED:
        before = [f.words for f in failed if f.name == FALLEN]
        return end.verdict, "; then ".join([*before, end.message])
    if failed:
        said = failed[:2] if failed[0].name != FALLEN else failed[:1]
        return Verdict.FAILED, ", ".join(finding.words for finding in said)
    doubts = [finding.words for finding in findings if finding.doubtful]
    if doubts:
        return end.verdict, f"{doing}, but {', '.join(doubts)}; {end.message}"
    return end.verdict, end.message


def looked_at(findings: Iterable[Finding]) -> dict[str, dict[str, float]]:
    """The findings as a metric: by "name [unit]", what it `is`, its `limit`, and the
    value beyond which it `fails`, if there is one."""
    found = {}
    for one in findings:
        row = {"is": float(one.value), "limit": float(one.limit)}
        row |= {"fails": float(one.fails)} if np.isfinite(one.fails) else {}
        found[f"{one.name} [{one.unit}]"] = row
    return found


# --- has it fallen? ---------------------------------------------------------

FALLEN = "fallen"


def tilt(rpy: np.ndarray, upright: np.ndarray | None = None) -> np.ndarray:
    """Angle between a body's vertical and what it should be (...,) [rad].

    Args:
        rpy: roll, pitch and yaw (..., 3) [rad]; the yaw does not matter.
        upright: roll, pitch and yaw in which it is upright (..., 3) [rad]; zero by
            default.
    """
    straight = np.array([0.0, 0.0, 1.0]) if upright is None else _up(upright)
    return np.arccos(np.clip((_up(rpy) * straight).sum(axis=-1), -1.0, 1.0))


def _up(rpy: np.ndarray) -> np.ndarray:
    """The world's z axis in the body (..., 3), R' e_z."""
    roll, pitch, _ = np.moveaxis(np.asarray(rpy, float), -1, 0)
    c = np.cos(pitch)
    return np.stack([-np.sin(pitch), np.sin(roll) * c, np.cos(roll) * c], axis=-1)


def has_fallen(tilt: np.ndarray, height: np.ndarray | float = 1.0) -> np.ndarray:
    """Whether a robot has fallen, element by element.

    Args:
        tilt: of its trunk from upright, or from what was planned [rad].
        height: as a share of what it should be.
    """
    # NaN is no standing robot's.
    return ~((np.asarray(tilt) <= FALLEN_TILT) & (np.asarray(height) >= FALLEN_HEIGHT))


def fall(tilt: float, height: float = 1.0) -> str:
    """Description of a fall, as :func:`has_fallen` has it; "" where there was none."""
    if not has_fallen(tilt, height):
        return ""
    if not tilt <= FALLEN_TILT:
        return f"fell: tilted by {np.degrees(tilt):.0f} degrees"
    return f"fell: sank to {height:.0%} of its height"


def fell_at(time: float | None, words: str = "") -> Finding:
    """The finding of a fall at a time [s]; None for none."""
    text = "" if time is None else words or f"it fell at {time:.2g} s"
    return Finding(FALLEN, float(time is not None), "1", 0.5, 0.5, text)


# --- the other quantities ---------------------------------------------------


def tilted(angle: float, fails: float = FALLEN_TILT) -> Finding:
    """The finding of a trunk's tilt [rad]."""
    degrees = float(np.degrees(angle))
    words = f"it tilts by {degrees:.2g} degrees"
    return Finding(
        "tilt", degrees, "deg", np.degrees(LEANING), np.degrees(fails), words
    )


def drifted(
    distance: float, size: float, words: str = "it drifts by", *, pushed: bool = False
) -> Finding:
    """The finding of a robot's distance from where it should end [m], for its size [m];
    one that is pushed may step aside."""
    said, fails = f"{words} {distance:.2g} m", np.inf if pushed else size
    return Finding("drift", float(distance), "m", NARROW * size, fails, said)


def carried(share: float) -> Finding:
    """The finding of the share of its weight that a robot's feet carry in the mean of a
    walk; what they do not, other parts do that drag on the ground."""
    words = f"its feet carry {share:.0%} of its weight"
    return Finding("weight not on feet", abs(1 - share), "1", ON_FEET, ON_FEET, words)


def moving(
    speeds: np.ndarray,
    names: Sequence[str],
    slides: np.ndarray,
    size: float,
    gravity: float,
) -> Finding:
    """The fastest coordinate of a robot that should be at rest.

    Args:
        speeds: rates of its coordinates (nv,) [rad/s, m/s].
        names: their names.
        slides: whether each is a length (nv,).
        size: the robot's size l [m].
        gravity: g [m/s^2].
    """
    natural = np.sqrt(gravity / size) * np.where(slides, size, 1.0)
    most = natural * np.where(slides, FLUNG, SPUN)
    shares = np.abs(speeds) / np.maximum(natural, 1e-12)
    if (np.abs(speeds) > most).any():
        shares = np.abs(speeds) / np.maximum(most, 1e-12)
    k = int(np.argmax(shares))
    unit = "m/s" if slides[k] else "rad/s"
    words = f"{names[k]} ends at {abs(speeds[k]):.3g} {unit}"
    if not abs(speeds[k]) <= most[k]:
        words += ", faster than a fall could make it (is the time step too long?)"
    limit = NARROW * natural[k]
    return Finding(
        "final speed", float(abs(speeds[k])), unit, float(limit), float(most[k]), words
    )


def open_loops(data: xr.Dataset, size: float) -> list[Finding]:
    """The finding of the loops' gaps in a run; nothing without loops.

    Args:
        data: of :func:`~drakebots.multibody.trajectory_dataset`.
        size: the robot's size [m].
    """
    if "loop_gap" not in data or not data.loop_gap.size:
        return []
    gaps, name = data.loop_gap.values, "loop gap"
    worst = str(data.loop.values[gaps.max(axis=0).argmax()])
    words = f"its loops open by {gaps.max():.2g} m ({worst})"
    if gaps[0].max() > APART * size:
        worst = str(data.loop.values[gaps[0].argmax()])
        words = (
            f"its loops are open by {gaps[0].max():.2g} m at the start ({worst}): give "
            "a pose that closes them (--pose), or mend the loops in the file"
        )
    return [Finding(name, float(gaps.max()), "m", PLAY * size, APART * size, words)]


def closure_residuals(data: xr.Dataset) -> dict[str, float]:
    """Largest gaps of loops and coupled joints in a run, by unit.

    Args:
        data: of :func:`trajectory_dataset`.

    Returns:
        "loop gap [m]", and where joints follow others "coupler slip [rad]" and, of
        joints that slide, "coupler slip [m]".
    """
    gap = float(data.loop_gap.max()) if "loop_gap" in data else 0.0
    found = {"loop gap [m]": gap}
    if "coupler_slip" in data:
        for unit in dict.fromkeys(data.coupler_unit.values.tolist()):
            slips = data.coupler_slip.values[:, data.coupler_unit.values == unit]
            found[f"coupler slip [{unit}]"] = float(slips.max())
    return found


def asked(name: str, share: float, words: str) -> Finding:
    """The finding of the reached share of a command."""
    return Finding(name, abs(1 - share), "1", MISSED, HALF, words)


def went(came: float, due: float, how: str = "ahead") -> Finding:
    """The finding of the distance covered of the one due [m]; further is no fault."""
    words = f"it went {came:.2g} m {how}, of {due:.2g} m"
    return asked("distance missed", min(came / due, 1.0), words)


def strides_of(
    strides: Sequence[float],
    planned: float | None = None,
    unit: str = "m",
    *,
    pushed: bool = False,
) -> list[Finding]:
    """Share and spread of strides.

    Args:
        strides: one a cycle.
        planned: target of each; None for no more than all the same, which no plan asks
            for and which is only said.
        unit: of both.
        pushed: whether the robot was, and may make other strides to catch itself.
    """
    if not len(strides) or planned == 0:
        return []
    strides, mean, found = np.asarray(strides, float), float(np.mean(strides)), []
    least, most = strides.min(), strides.max()
    words = f"its strides are {least:.2g} to {most:.2g} {unit}"
    if planned is not None:
        share = mean / planned
        said = f"it makes {share:.0%} of its stride"
        if not abs(1 - share) <= HALF:
            said = f"did not walk: made {share:.0%} of the planned stride"
        found = [asked("stride missed", share, said)]
        words += f" of {planned:.2g} {unit}"
    whole = abs(mean if planned is None else planned)
    spread = float(np.abs(strides - mean).max() / max(whole, 1e-12))
    fails = np.inf if planned is None or pushed else HALF
    return [*found, Finding("spread of strides", spread, "1", MISSED, fails, words)]


def saturated(
    efforts: np.ndarray, limits: np.ndarray, names: Sequence[str]
) -> list[Finding]:
    """The finding of the longest time of a motor at its limit; nothing without limits.

    Args:
        efforts: over time (T, nu) [N m, N, V].
        limits: of each (nu,); none where it is not positive and finite.
        names: of the motors.
    """
    words = "is at its limit of effort"
    return _at_limits(efforts, limits, names, "time at a limit", words)


def too_fast(data: xr.Dataset, limits: np.ndarray) -> list[Finding]:
    """The finding of the longest time of a joint beyond the speed that its file allows,
    which neither Drake nor our plants keep; nothing without limits.

    Args:
        data: of :func:`~drakebots.multibody.simulate.trajectory_dataset`.
        limits: of each generalized velocity (nv,) [rad/s, m/s].
    """
    names, words = data.rate.values, "is faster than its limit of velocity"
    return _at_limits(data.velocity.values, limits, names, "time too fast", words)


def _at_limits(values, limits, names, quantity, words) -> list[Finding]:
    limited = np.isfinite(limits) & (np.asarray(limits) > 0)
    if not limited.any() or not len(values):
        return []
    full = np.where(limited, limits, np.inf) * _FULL
    share = (np.abs(values) >= full).mean(axis=0)
    k = int(np.argmax(share))
    said = f"{names[k]} {words} for {share[k]:.0%} of the time"
    return [Finding(quantity, float(share[k]), "1", SATURATED, np.inf, said)]


# --- a run that is judged ------------------------------------------------------


class SimulatedRun(ABC):
    """A run in simulation that is judged, and its result.

    Attributes:
        kind: of the result.
        problem: as it is stored with the result.
        model: of the robot.
        end: how the run ended, where it has.
    """

    kind: str
    problem: Any
    model: Model
    end: RunEnd

    @abstractmethod
    def dataset(self) -> xr.Dataset:
        """What was logged, as named quantities in SI."""

    @abstractmethod
    def metrics(self, data: xr.Dataset) -> dict:
        """Figures of the run."""

    @abstractmethod
    def findings(self, data: xr.Dataset, figures: dict) -> list[Finding]:
        """Findings of the verdict, the gravest first."""

    @abstractmethod
    def verdict(self, figures: dict, findings: list[Finding]) -> tuple[Verdict, str]:
        """The verdict, and one line on what happened."""

    def options(self) -> dict[str, Any]:
        """The problem, for the provenance."""
        return as_yaml(self.problem)

    def origin(self, data: xr.Dataset) -> dict[str, Any]:
        """Model, residuals and provenance of the result."""
        seed = getattr(self.problem, "seed", None)
        return {
            "model": self.model.name,
            "residuals": closure_residuals(data),
            "provenance": model_provenance(self.model, self.options(), seed),
        }

    def result(self, end: RunEnd) -> Result:
        """The result of a run that ended so."""
        self.end, data = end, self.dataset()
        figures = self.metrics(data)
        findings = self.findings(data, figures)
        verdict, message = self.verdict(figures, findings)
        return Result(
            kind=self.kind,
            verdict=verdict,
            message=message,
            data=data,
            timings=spent(),
            metrics=figures | {"judged": looked_at(findings)},
            **self.origin(data),
        )
