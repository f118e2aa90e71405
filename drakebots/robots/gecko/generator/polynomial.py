"""The gecko's motion per cycle as a bivariate polynomial of its gait.

    [rotation, forward, left](q1, q2) = sum_ij c_ij q1^i q2^j

maps step length q1 [rad] and steering q2 to what one cycle moves the robot, in
the body frame at its start: rotation [rad], forward and left [m]. Source: Schiller,
Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), eq. (16) and Table 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.polynomial import polynomial as npoly

from drakebots.core.errors import InvalidInput
from drakebots.core.units import si_factor
from drakebots.robots.gecko.model import array, raw

# The gaits q = (q1, q2) for which a motion model holds.

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


COMPONENTS = ("rotation", "forward", "left")
"""The components of a motion, in order: [rad], [m], [m]."""

# The units of the paper's tables.
_PAPER_UNITS = {"rotation": "deg", "forward": "cm", "left": "cm"}


@dataclass(frozen=True, eq=False)
class MotionPolynomial:
    """Motion per cycle as a polynomial.

    Attributes:
        coefficients: c[k, i, j] of q1^i q2^j for component k of
            :data:`COMPONENTS` (3, order + 1, order + 1), q1 in rad, SI.
        domain: where it holds; evaluation outside is refused.

    Raises:
        InvalidInput: for coefficients of another shape or not finite.
    """

    coefficients: np.ndarray
    domain: Domain

    def __post_init__(self):
        c = np.array(self.coefficients, float, order="C")
        if c.ndim != 3 or c.shape[0] != 3 or c.shape[1] != c.shape[2] or not c.size:
            raise InvalidInput(
                f"motion polynomial: coefficients must be (3, m, m), got {c.shape}"
            )
        if not np.isfinite(c).all():
            raise InvalidInput("motion polynomial: coefficients must be finite")
        c.setflags(write=False)
        object.__setattr__(self, "coefficients", c)

    @classmethod
    def table_3(cls) -> MotionPolynomial:
        """The paper's polynomial, fitted to the small robot in experiment."""
        return _table_3()

    @property
    def order(self) -> int:
        """The highest power of either variable."""
        return self.coefficients.shape[1] - 1

    def motion(self, q1, q2) -> np.ndarray:
        """Rotation [rad], forward and left [m] of one cycle (..., 3), eq. (16).

        Args:
            q1: step length [rad], q2: steering; broadcast against each other.

        Raises:
            InvalidInput: outside the domain.
        """
        q1, q2 = self.domain.check(q1, q2)
        return _values(self._by_power, q1, q2)

    def gradient(self, q1, q2) -> np.ndarray:
        """d motion / d (q1, q2) (..., 3, 2); per rad, and per unit of q2.

        Raises:
            InvalidInput: outside the domain.
        """
        q1, q2 = self.domain.check(q1, q2)
        slopes = [npoly.polyder(self._by_power, axis=axis) for axis in (0, 1)]
        return np.stack([_values(slope, q1, q2) for slope in slopes], axis=-1)

    def predict(self, q1, q2, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Where n equal cycles take the robot, in the body frame at the start.

        The displacement is sum_{k < n} R(k rotation) [forward, left], summed
        directly: the closed form divides by the rotation, which may be zero.

        Args:
            q1, q2: the gait (...); q1 in rad.
            n: cycles, >= 0.

        Returns:
            displacement (..., 2) [m], rotation (...) [rad, not wrapped].
        """
        motion = self.motion(q1, q2)
        rotation = motion[..., 0]
        turns = np.multiply.outer(np.arange(n), rotation)
        step = motion[..., 1] + 1j * motion[..., 2]
        total = (np.exp(1j * turns) * step).sum(axis=0)
        return np.stack([total.real, total.imag], axis=-1), n * rotation

    def paper_table(self) -> dict[str, dict[str, float]]:
        """Coefficients by component and monomial as the paper prints them.

        Rotation in deg, forward and left in cm, q1 in deg. Monomials that are
        zero in every component are left out.
        """
        used = np.abs(self.coefficients).max(axis=0) > 0
        table: dict[str, dict[str, float]] = {}
        for c, name in zip(self.coefficients, COMPONENTS):
            unit = si_factor(_PAPER_UNITS[name])
            table[name] = {
                _monomial(i, j): float(c[i, j] * si_factor("deg") ** i / unit)
                for i, j in np.argwhere(used)
            }
        return table

    @staticmethod
    def fit(q1, q2, motion, order: int = 2, domain: Domain | None = None) -> Fit:
        """Least squares over measured or simulated motions.

        All monomials with i + j <= order, in variables scaled to -1..1.

        Args:
            q1: step lengths (n,) [rad], q2: steerings (n,).
            motion: (n, 3): rotation [rad], forward, left [m].
            order: of the polynomial, >= 0.
            domain: that it will hold in; by default the range of the points.

        Raises:
            InvalidInput: for too few points or points that do not determine
                every monomial; for shapes that disagree; for values that are
                not finite.
        """
        q1, q2, motion = (np.asarray(value, float) for value in (q1, q2, motion))
        if q1.ndim != 1 or q2.shape != q1.shape or motion.shape != (q1.size, 3):
            raise InvalidInput(
                "fit: q1, q2 must be (n,) and motion (n, 3), got "
                f"{q1.shape}, {q2.shape}, {motion.shape}"
            )
        if not all(np.isfinite(value).all() for value in (q1, q2, motion)):
            raise InvalidInput("fit: q1, q2 and motion must be finite; drop the others")
        if int(order) != order or order < 0:
            raise InvalidInput(f"fit: order must be a whole number >= 0, got {order}")
        powers = [(i, t - i) for t in range(int(order) + 1) for i in range(t, -1, -1)]
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
        c = np.zeros((3, int(order) + 1, int(order) + 1))
        for (i, j), row in zip(powers, scaled):
            c[:, i, j] = row
        first, second = (_unscale(int(order), *scale) for scale in scales)
        c = np.einsum("kij,ia,jb->kab", c, first, second)
        domain = domain or Domain((q1.min(), q1.max()), (q2.min(), q2.max()))
        # The hat matrix gives every leave-one-out residual in closed form.
        free = 1.0 - (basis**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = np.where(free > 1e-9, residuals.T / free, np.nan).T
        return Fit(MotionPolynomial(c, domain), motion, residuals, left_out)

    @property
    def _by_power(self) -> np.ndarray:
        return self.coefficients.transpose(1, 2, 0)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted polynomial and how well it holds; columns as COMPONENTS, in SI.

    Attributes:
        polynomial: the fit.
        motion: what was fitted (n, 3).
        residuals: data less fit (n, 3).
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
        return np.where(
            constant, np.nan, 1 - unexplained / np.where(constant, 1, spread)
        )

    @property
    def left_out_rms(self) -> np.ndarray:
        """Root of the mean square leave-one-out residual (3,)."""
        return np.sqrt((self.left_out**2).mean(axis=0))


@cache
def _table_3() -> MotionPolynomial:
    table = raw()["table_3"]
    c = np.zeros((3, 3, 3))
    powers = ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
    degree = si_factor("deg")
    for k, name in enumerate(COMPONENTS):
        unit = si_factor(table["unit"][name])
        for (i, j), value in zip(powers, table["value"][name], strict=True):
            c[k, i, j] = unit * value / degree**i
    return MotionPolynomial(c, gait_domain())


def _values(by_power: np.ndarray, q1: np.ndarray, q2: np.ndarray) -> np.ndarray:
    return np.moveaxis(npoly.polyval2d(q1, q2, by_power), 0, -1)


def _monomial(i: int, j: int) -> str:
    factors = [
        name if power == 1 else f"{name}^{power}"
        for name, power in (("q1", i), ("q2", j))
        if power
    ]
    return " ".join(factors) or "1"


def _scale(q: np.ndarray) -> tuple[float, float]:
    """a, b of u = a q + b that takes the points to -1..1."""
    low, high = q.min(), q.max()
    a = 2.0 / (high - low) if high > low else 1.0
    return a, -a * (low + high) / 2


def _unscale(order: int, a: float, b: float) -> np.ndarray:
    """Row i: the coefficients of (a q + b)^i in powers of q."""
    rows = np.zeros((order + 1, order + 1))
    for i in range(order + 1):
        for k in range(i + 1):
            rows[i, k] = comb(i, k) * a**k * b ** (i - k)
    return rows
