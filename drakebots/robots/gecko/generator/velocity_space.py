"""The velocity space: what every gait of a grid does in a cycle, and its fit.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), section 4,
Figs. 5 and 7, Table 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.model import package_root
from drakebots.results import Result, provenance
from drakebots.robots.gecko.generator.polynomial import (
    COMPONENTS,
    Fit,
    MotionPolynomial,
)
from drakebots.robots.gecko.model import LIMBS, MARKERS, gecko, raw
from drakebots.robots.gecko.pose_step import check_gait, cycle_motion

Q1_GRID = tuple(np.radians([50.0, 60.0, 70.0, 80.0, 90.0]).tolist())
"""The paper's step lengths [rad]."""

Q2_GRID = (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5)
"""The paper's steerings."""

Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class VelocitySpace:
    """A grid of gaits to simulate and fit.

    Attributes:
        q1: step lengths [rad], increasing.
        q2: steerings, increasing.
        order: of the polynomial.
        settle: cycles before the one that counts.
        size, weights: names of the robot's lengths and of its weights.
    """

    q1: tuple[float, ...] = Q1_GRID
    q2: tuple[float, ...] = Q2_GRID
    order: int = 2
    settle: int = 4
    size: str = "small"
    weights: str = "velocity_space"

    def __post_init__(self):
        gecko(self.size, self.weights)
        for name in ("q1", "q2"):
            values = tuple(map(float, getattr(self, name)))
            if len(values) < 2 or (np.diff(values) <= 0).any():
                raise InvalidInput(
                    f"{name}: the grid must increase, 2 values at least, got {values}"
                )
            object.__setattr__(self, name, values)
        for q1 in self.q1:
            for q2 in self.q2:
                check_gait(q1, q2)
        fewest = min(len(self.q1), len(self.q2))
        if not 0 <= self.order < fewest:
            raise InvalidInput(
                f"a polynomial of order {self.order} needs {self.order + 1} values of "
                f"q1 and of q2, the grid has {fewest}; lower the order or refine"
            )
        if self.settle < 0:
            raise InvalidInput(f"settle must be >= 0 cycles, got {self.settle}")


def simulate_velocity_space(
    problem: VelocitySpace = VelocitySpace(), *, progress: Progress | None = None
) -> Result:
    """Simulates the grid and fits it.

    Returns:
        A result of kind "gecko.velocity_space": `motion` (q1, q2, component) and the
        poses of the cycle; the metrics hold the fit in the paper's units.

    Raises:
        NoSolution: when a pose step fails.
    """
    began = time.perf_counter()
    robot = gecko(problem.size, problem.weights)
    shape = (len(problem.q1), len(problem.q2))
    motion = np.empty((*shape, 3))
    markers, alpha = np.empty((*shape, 3, 6, 2)), np.empty((*shape, 3, 5))
    ell, heading = np.empty((*shape, 3, 5)), np.empty((*shape, 3))
    count = motion[..., 0].size
    for done, (i, j) in enumerate(np.ndindex(shape), 1):
        cycle = cycle_motion(robot, problem.q1[i], problem.q2[j], settle=problem.settle)
        motion[i, j] = cycle.rotation, cycle.forward, cycle.left
        for k, pose in enumerate(cycle.poses):
            markers[i, j, k], alpha[i, j, k] = pose.markers, pose.alpha
            ell[i, j, k], heading[i, j, k] = pose.ell, pose.heading
        if progress is not None:
            progress(done, count)
    data = xr.Dataset(
        {
            "motion": (
                ("q1", "q2", "component"),
                motion,
                {"units": "rad, m, m: see motion_unit"},
            ),
            "marker_position": (
                ("q1", "q2", "time", "marker", "axis"),
                markers,
                {"units": "m"},
            ),
            "alpha": (("q1", "q2", "time", "limb"), alpha, {"units": "rad"}),
            "ell": (("q1", "q2", "time", "limb"), ell, {"units": "m"}),
            "heading": (("q1", "q2", "time"), heading, {"units": "rad"}),
        },
        {
            "time": ("time", half_cycle_time() * np.arange(3), {"units": "s"}),
            "q1": ("q1", list(problem.q1), {"units": "rad"}),
            "q2": ("q2", list(problem.q2), {"units": "1"}),
            "component": list(COMPONENTS),
            "motion_unit": ("component", ["rad", "m", "m"]),
            "marker": list(MARKERS),
            "limb": list(LIMBS),
            "axis": ["x", "y"],
        },
    )
    fit = fit_motion(data, problem.order)
    return Result(
        kind="gecko.velocity_space",
        model="gecko",
        verdict="success",
        message=f"{count} gaits",
        data=data,
        residuals=_paper(fit.worst, "fit, worst"),
        timings={"simulate": time.perf_counter() - began},
        metrics={
            "order": problem.order,
            "coefficients": fit.polynomial.paper_table(),
            **_paper(fit.rms, "residual_rms"),
            **_paper(fit.left_out_rms, "left_out_rms"),
            "r_squared": dict(zip(COMPONENTS, map(float, fit.r_squared))),
        },
        provenance=provenance(
            package_root() / "gecko" / "params.yaml", asdict(problem)
        ),
    )


def half_cycle_time() -> float:
    """Of all phases of a half cycle together [s]."""
    return float(sum(raw()["phase_times"]["value"].values()))


def fit_motion(data: xr.Dataset, order: int) -> Fit:
    """Fits a polynomial to the dataset of a velocity space."""
    q1, q2 = np.meshgrid(data.q1.values, data.q2.values, indexing="ij")
    motion = data.motion.values.reshape(-1, 3)
    return MotionPolynomial.fit(q1.ravel(), q2.ravel(), motion, order)


def motion_of(result: Result, order: int | None = None) -> MotionPolynomial:
    """The polynomial of a stored velocity space.

    Raises:
        InvalidInput: for another kind of result.
    """
    if result.kind != "gecko.velocity_space":
        raise InvalidInput(
            f"the result is a {result.kind}, not a velocity space; make one with "
            "`drakebots plan gecko --velocity-space -o space.nc`"
        )
    order = int(result.metrics["order"]) if order is None else order
    return fit_motion(result.data, order).polynomial


def _paper(values: np.ndarray, title: str) -> dict[str, float]:
    rotation, forward, left = map(float, values)
    return {
        f"{title}_rotation_deg": float(np.degrees(rotation)),
        f"{title}_forward_cm": 100 * forward,
        f"{title}_left_cm": 100 * left,
    }


def simulated_motion(problem: VelocitySpace = VelocitySpace()) -> MotionPolynomial:
    """The polynomial of a velocity space simulated on the spot (about 0.2 s)."""
    return motion_of(simulate_velocity_space(problem))
