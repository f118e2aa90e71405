"""The gecko's velocity space: the motion per cycle by gait, and its polynomial.

Source: Schiller, Seibel, Schlattmann, Front. Robot. AI 7:87 (2020), section 4,
Figs. 5 and 7, Table 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Annotated

import numpy as np
import xarray as xr

from drakebots.core.checks import array, check_value, flag, in_unit, whole
from drakebots.core.convert import as_yaml
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Verdict, silent
from drakebots.core.stages import spent, timed
from drakebots.core.units import si_factor
from drakebots.results import Result, provenance
from drakebots.robots.gecko.engines import (
    CycleMotion,
    PhaseTimes,
    check_gait,
    cycle_motion,
    motion_dataset,
)
from drakebots.robots.gecko.generator import (
    COMPONENTS,
    PAPER_UNITS,
    Fit,
    MotionPolynomial,
)
from drakebots.robots.gecko.model import MODEL, Bends, Gecko, gecko, parameters

KIND = "gecko.velocity_space"

Q1_GRID = tuple(np.radians([50.0, 60.0, 70.0, 80.0, 90.0]).tolist())
"""The paper's step lengths [rad]."""

Q2_GRID = (-0.5, -0.3, -0.1, 0.1, 0.3, 0.5)
"""The paper's steerings."""

MOST_SETTLE = 100
"""Cycles before a gait is measured; after four a cycle is like the one before."""


@checked("velocity space")
class Problem:
    """A velocity space: a grid of gaits to simulate, and the polynomial to fit."""

    q1: Annotated[tuple[float, ...], in_unit("rad")] = Q1_GRID
    """Step lengths of the grid, increasing."""
    q2: tuple[float, ...] = Q2_GRID
    """Steerings of the grid, increasing."""
    order: Annotated[int, whole(0)] = 2
    """Order of the polynomial."""
    settle: Annotated[int, whole(0, MOST_SETTLE)] = 4
    """Number of cycles before the one that is measured."""
    size: str = "small"
    """Name of the robot's size, "small" or "large"."""
    weights: str = "velocity_space"
    """Name of the pose step's weights, "velocity_space" or "single_cycle"."""
    pressure: Annotated[bool, flag()] = False
    """Whether the limbs bend no further than at 1.1 bar."""
    bends: Bends = Gecko.bends
    """How far each actuator bends its limb, as a share of what its calibration says
    (6,): FL, FR, torso to the left, torso to the right, RL, RR."""

    def __post_init__(self):
        gecko(self.size, self.weights, self.bends)
        for name in ("q1", "q2"):
            grid = check_value(name, getattr(self, name), array((None,)))
            values = tuple(grid.tolist())
            if len(values) < 2 or (np.diff(values) <= 0).any():
                raise InvalidInput(
                    f"{name}: the grid must increase and have at least 2 values, "
                    f"got {values}"
                )
            object.__setattr__(self, name, values)
        for gait in product(self.q1, self.q2):
            check_gait(*gait)
        fewest = min(len(self.q1), len(self.q2))
        if self.order >= fewest:
            raise InvalidInput(
                f"a polynomial of order {self.order} needs {self.order + 1} values of "
                f"q1 and of q2, the grid has {fewest}; lower the order or refine"
            )


@timed("simulate")
def plan(problem: Problem = Problem(), *, progress: Progress | None = None) -> Result:
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
    robot = gecko(problem.size, problem.weights, problem.bends)
    gaits = list(product(problem.q1, problem.q2))
    cycles: list[CycleMotion] = []
    for done, gait in enumerate(gaits, 1):
        options = {"settle": problem.settle, "limited": problem.pressure}
        cycles.append(cycle_motion(robot, *gait, **options))
        (progress or silent)("velocity space", done, len(gaits))
    data = _dataset(problem, cycles)
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
        provenance=provenance(parameters().path, as_yaml(problem)),
    )


def _dataset(problem: Problem, cycles: Sequence[CycleMotion]) -> xr.Dataset:
    """Motions and poses of the grid's gaits, whose order is that of q1, then q2."""

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
    coordinates = {
        "time": (("time",), PhaseTimes().half_cycle * np.arange(3), "s"),
        "q1": (("q1",), list(problem.q1), "rad"),
        "q2": (("q2",), list(problem.q2), "1"),
    }
    data = motion_dataset(coordinates, variables)
    units = ("component", ["rad", "m", "m"])
    return data.assign_coords(component=list(COMPONENTS), motion_unit=units)


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
            "`drakebots plan gecko -o space.nc`"
        )
    order = int(result.metrics["order"]) if order is None else order
    return fit_motion(result.data, order).polynomial


def _in_paper_units(values: np.ndarray, title: str) -> dict[str, float]:
    """Numbers by component in the paper's units; the keys begin with a title."""
    return {
        f"{title}_{name}_{unit}": float(value / si_factor(unit))
        for (name, unit), value in zip(PAPER_UNITS.items(), values)
    }


@lru_cache(maxsize=32)
def simulated_motion(problem: Problem = Problem()) -> MotionPolynomial:
    """The polynomial of a velocity space; the first call simulates it (0.2 s)."""
    return motion_of(plan(problem))
