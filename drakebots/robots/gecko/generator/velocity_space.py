"""The velocity space: the motion per cycle of a grid of gaits, and its polynomial.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), section 4,
Figs. 5 and 7, Table 3.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import xarray as xr

from drakebots.core.checks import array, check, check_value, flag, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, Verdict
from drakebots.core.stages import spent, timed
from drakebots.results import Result, provenance
from drakebots.robots.gecko.generator.motion import (
    COMPONENTS,
    Fit,
    MotionPolynomial,
)
from drakebots.robots.gecko.model import (
    LIMBS,
    MARKERS,
    MODEL,
    gecko,
    parameters,
    saturate,
)
from drakebots.robots.gecko.pose_step import CycleMotion, check_gait, cycle_motion

KIND = "gecko.velocity_space"

Q1_GRID = tuple(np.radians([50.0, 60.0, 70.0, 80.0, 90.0]).tolist())
"""The paper's step lengths [rad]."""

Q2_GRID = (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5)
"""The paper's steerings."""

MOST_SETTLE = 100
"""Cycles before a gait is measured; after four a cycle is like the one before."""


@dataclass(frozen=True)
class VelocitySpace:
    """A grid of gaits to simulate, and the polynomial to fit.

    Attributes:
        q1: step lengths of the grid, increasing [rad].
        q2: steerings of the grid, increasing.
        order: order of the polynomial.
        settle: number of cycles before the one that is measured, at most MOST_SETTLE.
        size: name of the robot's size, "small" or "large".
        weights: name of the pose step's weights, "velocity_space" or "single_cycle".
        pressure: whether the limbs bend no further than at 1.1 bar.
    """

    q1: tuple[float, ...] = Q1_GRID
    q2: tuple[float, ...] = Q2_GRID
    order: int = 2
    settle: int = 4
    size: str = "small"
    weights: str = "velocity_space"
    pressure: bool = False

    def __post_init__(self):
        gecko(self.size, self.weights)
        for name in ("q1", "q2"):
            grid = check_value(name, getattr(self, name), array((None,)))
            values = tuple(grid.tolist())
            if len(values) < 2 or (np.diff(values) <= 0).any():
                raise InvalidInput(
                    f"{name}: the grid must increase and have at least 2 values, "
                    f"got {values}"
                )
            object.__setattr__(self, name, values)
        for q1 in self.q1:
            for q2 in self.q2:
                check_gait(q1, q2)
        check(self, "velocity space", order=whole(0), settle=whole(0, MOST_SETTLE))
        check(self, "velocity space", pressure=flag())
        fewest = min(len(self.q1), len(self.q2))
        if self.order >= fewest:
            raise InvalidInput(
                f"a polynomial of order {self.order} needs {self.order + 1} values of "
                f"q1 and of q2, the grid has {fewest}; lower the order or refine"
            )


@timed("simulate")
def plan(
    problem: VelocitySpace = VelocitySpace(), *, progress: Progress | None = None
) -> Result:
    """Simulates the gaits of the grid by pose steps and fits a polynomial.

    Args:
        problem: grid and polynomial.
        progress: called after each gait.

    Returns:
        A result of kind "gecko.velocity_space": `motion` (q1, q2, component) and the
        poses of the cycle; the metrics hold the fit in the paper's units.

    Raises:
        NoSolution: when a pose step fails.
    """
    robot = gecko(problem.size, problem.weights)
    limit = saturate if problem.pressure else None
    gaits = list(product(problem.q1, problem.q2))
    cycles: list[CycleMotion] = []
    for done, (q1, q2) in enumerate(gaits, 1):
        cycle = cycle_motion(robot, q1, q2, settle=problem.settle, saturate=limit)
        cycles.append(cycle)
        if progress is not None:
            progress("velocity space", done, len(gaits))

    def grid(rows) -> np.ndarray:
        return np.reshape(rows, (len(problem.q1), len(problem.q2), *np.shape(rows[0])))

    def poses(name: str) -> np.ndarray:
        return grid([[getattr(pose, name) for pose in c.poses] for c in cycles])

    motion = grid([(c.rotation, c.forward, c.left) for c in cycles])
    by_pose = ("q1", "q2", "time")
    variables = {
        "motion": (("q1", "q2", "component"), motion, "rad, m, m: see motion_unit"),
        "marker_position": ((*by_pose, "marker", "axis"), poses("markers"), "m"),
        "alpha": ((*by_pose, "limb"), poses("alpha"), "rad"),
        "ell": ((*by_pose, "limb"), poses("ell"), "m"),
        "heading": (by_pose, poses("heading"), "rad"),
    }
    data = xr.Dataset(
        {n: (dims, values, {"units": u}) for n, (dims, values, u) in variables.items()},
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
        kind=KIND,
        model=MODEL,
        verdict=Verdict.SUCCESS,
        message=f"{len(gaits)} gaits",
        data=data,
        residuals=_in_paper_units(fit.worst, "fit, worst"),
        timings=spent(),
        metrics={
            "order": problem.order,
            "coefficients": fit.polynomial.paper_table(),
            **_in_paper_units(fit.rms, "residual_rms"),
            **_in_paper_units(fit.left_out_rms, "left_out_rms"),
            "r_squared": dict(zip(COMPONENTS, map(float, fit.r_squared))),
        },
        provenance=provenance(parameters().path, asdict(problem)),
    )


def half_cycle_time() -> float:
    """Duration of a half cycle with all its phases [s]."""
    return float(sum(parameters().table("phase_times").values()))


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
    if result.kind != KIND:
        raise InvalidInput(
            f"the result is a {result.kind}, not a velocity space; make one with "
            "`drakebots plan gecko --velocity-space -o space.nc`"
        )
    order = int(result.metrics["order"]) if order is None else order
    return fit_motion(result.data, order).polynomial


def _in_paper_units(values: np.ndarray, title: str) -> dict[str, float]:
    """Numbers by component in the paper's units; the keys begin with a title."""
    units = (("deg", np.degrees(1.0)), ("cm", 100.0), ("cm", 100.0))
    return {
        f"{title}_{name}_{unit}": float(factor * value)
        for name, (unit, factor), value in zip(COMPONENTS, units, values)
    }


@lru_cache(maxsize=32)
def simulated_motion(problem: VelocitySpace = VelocitySpace()) -> MotionPolynomial:
    """The polynomial of a velocity space; the first call simulates it (0.2 s)."""
    return motion_of(plan(problem))
