"""A gecko that moves exactly as its motion polynomial says, for tests.

A half cycle moves the robot such that two equal ones make a cycle: it turns by
e/2 and moves by s with s + R(e/2) s = p, where e and p = [forward, left] are
the cycle's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.robots.gecko.engines import Decision, Generator
from drakebots.robots.gecko.generator import MotionPolynomial, check_point
from drakebots.robots.gecko.generator.planner import check_heading


@dataclass(frozen=True, eq=False)
class PolynomialRun:
    """Log of a run, by half cycles.

    Attributes:
        position: before each half cycle and at the end (T + 1, 2) [m].
        heading: likewise, not wrapped (T + 1,) [rad].
        decisions: of each half cycle (T).
        reached: whether the generator said it was done.
    """

    position: np.ndarray
    heading: np.ndarray
    decisions: tuple[Decision, ...]
    reached: bool

    @property
    def half_cycles(self) -> int:
        """T, how many there were."""
        return len(self.decisions)

    @property
    def length(self) -> float:
        """Of the track [m]."""
        return float(np.linalg.norm(np.diff(self.position, axis=0), axis=1).sum())


def half_cycle(polynomial: MotionPolynomial, q1, q2) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (..., 2) [m] and rotation (...) [rad] of half a cycle.

    Arguments and errors as in :meth:`MotionPolynomial.motion`.
    """
    motion = polynomial.motion(q1, q2)
    rotation = motion[..., 0] / 2
    step = (motion[..., 1] + 1j * motion[..., 2]) / (1 + np.exp(1j * rotation))
    return np.stack([step.real, step.imag], axis=-1), rotation


def run_polynomial(
    generator: Generator,
    position,
    heading: float,
    *,
    robot: MotionPolynomial | None = None,
    most: int = 400,
) -> PolynomialRun:
    """Runs a generator until it is done.

    Args:
        generator: as it stands; it is not reset.
        position: start in the world (2,) [m].
        heading: at the start [rad].
        robot: how the robot moves, by default Table 3; the generator may well
            believe in another model.
        most: half cycles before giving up.

    Raises:
        InvalidInput: for a start that is not finite.
    """
    robot = robot or MotionPolynomial.table_3()
    positions = [check_point(position, "position")]
    headings = [check_heading(heading)]
    decisions: list[Decision] = []
    reached = False
    while True:
        decision = generator.decide(positions[-1], headings[-1])
        if decision is None:
            reached = True
            break
        if len(decisions) >= most:
            break
        step, turn = half_cycle(robot, decision.q1, decision.q2)
        c, s = np.cos(headings[-1]), np.sin(headings[-1])
        positions.append(positions[-1] + np.array([[c, -s], [s, c]]) @ step)
        headings.append(headings[-1] + float(turn))
        decisions.append(decision)
    return PolynomialRun(
        np.array(positions), np.array(headings), tuple(decisions), reached
    )
