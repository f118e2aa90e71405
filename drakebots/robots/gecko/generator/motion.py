"""Motion models: where n equal cycles of a gait take the gecko.

Two models are offered. :class:`MotionPolynomial` is the paper's,

    [rotation, forward, left](q1, q2) = sum_ij c_ij q1^i q2^j,

the motion of one cycle in the body frame at its start, as a polynomial of step length
q1 [rad] and steering q2. :class:`PoseStepMotion` goes beyond the paper, whose
simulation was too slow for the loop: it simulates the gait from the robot's present
pose, so that it also predicts the transition from one gait to the next.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), eq. (16) and
Table 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Protocol

import numpy as np
from numpy.polynomial import polynomial as npoly

from drakebots.core.checks import array, check_value, interval, whole
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.core.units import si_factor
from drakebots.robots.gecko.engines import half_cycle, relative_motion
from drakebots.robots.gecko.model import Gecko, Pose, parameters

# Rounding may put a bound, say radians(90), outside by this much.
_SLACK = 1e-9


@checked("domain")
class Domain:
    """The gaits for which a motion model is valid.

    Raises:
        InvalidInput: when a range is empty, reversed or not finite.
    """

    q1: Annotated[tuple[float, float], interval("rad")]
    """Smallest and largest step length."""
    q2: Annotated[tuple[float, float], interval()]
    """Smallest and largest steering."""

    def holds(self, q1: float, q2: float) -> bool:
        """Whether a gait is within the domain, but for rounding."""
        ends = zip((q1, q2), (self.q1, self.q2))
        return all(low - _SLACK <= q <= high + _SLACK for q, (low, high) in ends)

    def check(self, q1, q2) -> tuple[np.ndarray, np.ndarray]:
        """q1 and q2 as arrays of one shape.

        Raises:
            InvalidInput: for a value outside the domain, naming it and the range.
        """
        given = np.broadcast_arrays(np.asarray(q1, float), np.asarray(q2, float))
        for name, q, (low, high) in zip(("q1", "q2"), given, (self.q1, self.q2)):
            outside = ~((q >= low - _SLACK) & (q <= high + _SLACK))
            if outside.any():
                unit = " rad" if name == "q1" else ""
                raise InvalidInput(
                    f"{name} = {q[outside].flat[0]:.6g}{unit} is outside the domain "
                    f"of the motion model, {low:.6g}..{high:.6g}{unit}; clip it or "
                    "fit a model there"
                )
        return given[0], given[1]

    def grid(self, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """q1 by rows and q2 by columns of a grid that spans the domain."""
        values = [np.linspace(*ends, n) for ends, n in zip((self.q1, self.q2), shape)]
        return tuple(np.meshgrid(*values, indexing="ij"))


def gait_domain() -> Domain:
    """The domain of the paper: q1 in 50..90 deg, q2 in -0.5..0.5, in SI."""
    own = parameters()
    return Domain(tuple(own.array("step_length")), tuple(own.array("steering")))


class MotionModel(Protocol):
    """Anything that predicts where n equal cycles take the robot.

    Attributes:
        domain: the gaits for which it is valid.
    """

    domain: Domain

    def predict(self, q1, q2, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (..., 2) [m] and rotation (...) [rad] after n cycles.

        The displacement of the robot's position (the torso's front end) is in
        the body frame before the first cycle: x forward, y left.

        Args:
            q1: step lengths (...) [rad], within the domain.
            q2: steerings (...), within the domain.
            n: number of cycles, >= 1.
        """


COMPONENTS = ("rotation", "forward", "left")
"""The components of a motion, in order: [rad], [m], [m]."""

PAPER_UNITS = {"rotation": "deg", "forward": "cm", "left": "cm"}
"""The components and their units in the paper's tables."""


@checked("motion polynomial", eq=False)
class MotionPolynomial:
    """Motion per cycle as a polynomial.

    Raises:
        InvalidInput: for coefficients of another shape or not finite.
    """

    coefficients: Annotated[np.ndarray, array((3, None, None))]
    """Coefficients c[k, i, j] of q1^i q2^j for component k of :data:`COMPONENTS`
    (3, order + 1, order + 1), q1 in rad, SI."""
    domain: Domain
    """Gaits for which it is valid; others are refused."""

    def __post_init__(self):
        shape = self.coefficients.shape
        if shape[1] != shape[2] or not shape[1]:
            raise InvalidInput(
                f"motion polynomial: coefficients must be (3, m, m), got {shape}"
            )

    @staticmethod
    @cache
    def table_3() -> MotionPolynomial:
        """The paper's polynomial, fitted to the small robot in experiment."""
        table = parameters().table("table_3")
        c = np.zeros((3, 3, 3))
        powers = ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
        for k, name in enumerate(COMPONENTS):
            for (i, j), value in zip(powers, table[name], strict=True):
                c[k, i, j] = value / si_factor("deg") ** i
        return MotionPolynomial(c, gait_domain())

    def motion(self, q1, q2) -> np.ndarray:
        """Rotation [rad], forward and left [m] of one cycle (..., 3), eq. (16).

        Args:
            q1: step length [rad], q2: steering; broadcast against each other.

        Raises:
            InvalidInput: outside the domain.
        """
        q1, q2 = self.domain.check(q1, q2)
        by_power = self.coefficients.transpose(1, 2, 0)
        return np.moveaxis(npoly.polyval2d(q1, q2, by_power), 0, -1)

    def predict(self, q1, q2, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (..., 2) [m] and rotation (...) [rad], as :class:`MotionModel`.

        The displacement is sum_{k < n} R(k rotation) [forward, left], summed
        directly: the closed form divides by the rotation, which may be zero. The
        rotation is not wrapped.
        """
        motion = self.motion(q1, q2)
        rotation = motion[..., 0]
        turns = np.multiply.outer(np.arange(n), rotation)
        step = motion[..., 1] + 1j * motion[..., 2]
        total = (np.exp(1j * turns) * step).sum(axis=0)
        return np.stack([total.real, total.imag], axis=-1), n * rotation

    def paper_table(self) -> dict[str, dict[str, float]]:
        """Coefficients by component and monomial in the units of the paper's table.

        Rotation is in deg, forward and left in cm, q1 in deg. Monomials that are
        zero in every component are left out.
        """
        used = np.abs(self.coefficients).max(axis=0) > 0
        table: dict[str, dict[str, float]] = {}
        for c, name in zip(self.coefficients, COMPONENTS):
            unit = si_factor(PAPER_UNITS[name])
            table[name] = {
                _monomial(i, j): float(c[i, j] * si_factor("deg") ** i / unit)
                for i, j in np.argwhere(used)
            }
        return table

    @staticmethod
    def fit(q1, q2, motion, order: int = 2, domain: Domain | None = None) -> Fit:
        """Least-squares fit to measured or simulated motions.

        It has all monomials with i + j <= order, in variables scaled to -1..1.

        Args:
            q1: step lengths (n,) [rad].
            q2: steerings (n,).
            motion: rotation [rad], forward and left [m] of each gait (n, 3).
            order: order of the polynomial, >= 0.
            domain: gaits for which it is valid; by default the range of the points.

        Raises:
            InvalidInput: for too few points or points that do not determine
                every monomial; for shapes that disagree; for values that are
                not finite.
        """
        q1 = check_value("fit: q1", q1, array((None,)))
        q2 = check_value("fit: q2", q2, array((q1.size,)))
        motion = check_value("fit: motion", motion, array((q1.size, 3)))
        order = check_value("fit: order", order, whole(0))
        powers = [(i, t - i) for t in range(order + 1) for i in range(t, -1, -1)]
        if q1.size < len(powers):
            raise InvalidInput(
                f"fit: order {order} has {len(powers)} monomials but there are "
                f"{q1.size} points; lower the order or add points"
            )
        scales = [_scale(q) for q in (q1, q2)]
        u, v = (a * q + b for q, (a, b) in zip((q1, q2), scales))
        design = np.stack([u**i * v**j for i, j in powers], axis=1)
        rank = np.linalg.matrix_rank(design)
        if rank < len(powers):
            raise InvalidInput(
                f"fit: the points determine {rank} of the {len(powers)} monomials of "
                f"order {order}; lower the order or spread q1 and q2 over more values"
            )
        basis, triangle = np.linalg.qr(design)
        scaled = np.linalg.solve(triangle, basis.T @ motion)
        residuals = motion - design @ scaled
        c = np.zeros((3, order + 1, order + 1))
        for (i, j), row in zip(powers, scaled):
            c[:, i, j] = row
        first, second = (_unscale(order, *scale) for scale in scales)
        c = np.einsum("kij,ia,jb->kab", c, first, second)
        domain = domain or Domain((q1.min(), q1.max()), (q2.min(), q2.max()))
        # The hat matrix gives every leave-one-out residual in closed form.
        free = 1.0 - (basis**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = np.where(free > 1e-9, residuals.T / free, np.nan).T
        return Fit(MotionPolynomial(c, domain), motion, residuals, left_out)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted polynomial and its residuals; columns as COMPONENTS, in SI.

    Attributes:
        polynomial: the fit.
        motion: the fitted data (n, 3).
        residuals: data minus fit (n, 3).
        left_out: residual of each point against the fit without it (n, 3); not a
            number for a point without which the fit would be undetermined.
    """

    polynomial: MotionPolynomial
    motion: np.ndarray
    residuals: np.ndarray
    left_out: np.ndarray

    @property
    def rms(self) -> np.ndarray:
        """Root of the mean square residual (3,)."""
        return np.sqrt((self.residuals**2).mean(axis=0))

    @property
    def worst(self) -> np.ndarray:
        """Greatest absolute residual (3,)."""
        return np.abs(self.residuals).max(axis=0)

    @property
    def r_squared(self) -> np.ndarray:
        """Share of the variance that is explained (3,); nan for constant data."""
        spread = ((self.motion - self.motion.mean(axis=0)) ** 2).sum(axis=0)
        unexplained = (self.residuals**2).sum(axis=0)
        constant = spread <= 1e-24 * np.maximum((self.motion**2).sum(axis=0), 1.0)
        share = 1 - unexplained / np.where(constant, 1, spread)
        return np.where(constant, np.nan, share)

    @property
    def left_out_rms(self) -> np.ndarray:
        """Root of the mean square leave-one-out residual (3,)."""
        return np.sqrt((self.left_out**2).mean(axis=0))


def _monomial(i: int, j: int) -> str:
    powers = {"q1": i, "q2": j}
    factors = [n if k == 1 else f"{n}^{k}" for n, k in powers.items() if k]
    return " ".join(factors) or "1"


def _scale(q: np.ndarray) -> tuple[float, float]:
    """a, b of u = a q + b that maps the points to -1..1."""
    low, high = q.min(), q.max()
    a = 2.0 / (high - low) if high > low else 1.0
    return a, -a * (low + high) / 2


def _unscale(order: int, a: float, b: float) -> np.ndarray:
    """Row i: the coefficients of (a q + b)^i in powers of q."""
    rows = [npoly.polypow((b, a), i) for i in range(order + 1)]
    return np.array([np.pad(row, (0, order + 1 - len(row))) for row in rows])


class PoseStepMotion:
    """A motion model that simulates the gait from the present pose.

    Args:
        robot: lengths and weights.
        pose: the present pose; :meth:`observe` updates it.
        sign: sign of q1 in the next half cycle.
    """

    def __init__(self, robot: Gecko, pose: Pose, sign: int = 1):
        self.robot, self.domain = robot, gait_domain()
        self.observe(pose, sign)

    def observe(self, pose: Pose, sign: int) -> None:
        """Updates the present pose and the sign of q1 in the next half cycle."""
        self._pose, self._sign = pose, sign

    def predict(self, q1, q2, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (..., 2) [m] and rotation (...) [rad], as :class:`MotionModel`.

        The displacement is infinite for a gait that cannot start from this pose.
        """
        q1, q2 = self.domain.check(q1, q2)
        moved, turned = np.empty((*q1.shape, 2)), np.empty(q1.shape)
        for at in np.ndindex(q1.shape):
            try:
                end = self._walk(q1[at], q2[at], 2 * n)
                turned[at], moved[at] = relative_motion(self._pose, end)
            except NoSolution:
                turned[at], moved[at] = 0.0, np.inf
        return moved, turned

    def _walk(self, q1, q2, half_cycles: int) -> Pose:
        pose = self._pose
        for k in range(half_cycles):
            pose = half_cycle(self.robot, pose, self._sign * (-1) ** k * q1, q2).pose
        return pose
