"""Changes the design of a skinned robot until its motion needs less torque.

    found = optimize(table1_problem("beetle"), "out", planner)

What is lowered is the rms torque of all joints over the planned motion. A full plan of
every design would take too long, so between plans a model estimates it, with its
gradient. Plans and models are a :class:`Planner`'s; what may change, and how the skin's
stiffness follows, is in :mod:`~drakebots.design.variables`.

The search repeats two things. It looks for the smallest change of the parameters, in
shares of their ranges and within a trust region, that meets the target by this
gradient; every design on the way is built by the whole pipeline, with a new mesh, and
judged by the model. The design found is then planned. The search ends with a plan that
meets the target, and its replay.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.optimize import brentq

from drakebots.core.checks import between, check_value
from drakebots.core.errors import DrakebotsError, NoSolution
from drakebots.core.run import Progress, Verdict, check_stop, ended_by, silent
from drakebots.design.pipeline import design_robot
from drakebots.design.problem import Design, DesignProblem, write_design
from drakebots.design.table1 import redesigned
from drakebots.design.variables import DesignVariable, design_variables
from drakebots.results import Result, load_result

REDUCTION = 0.2
"""Share by which the rms torque should fall, by default."""

MARGIN = 0.03
"""The model must predict a torque below the target by this share, as plans differ."""

MOST_PLANS = 3
"""Largest number of full plans of changed designs."""

MOST_DESIGNS = 6
"""Largest number of designs that are built before each of these plans."""

TRUST = 0.6
"""First radius of the trust region, in shares of the parameters' ranges."""

LEAST = 1e-3
"""Smallest gain for which a design is changed, as a share of the rms torque."""


# The planner, and what it says of designs between plans.


class TorqueModel(Protocol):
    """An estimate of the rms torque of designs near one that was planned."""

    @property
    def base(self) -> float:
        """rms torque of the plan [N m]."""

    def slope(self, variable: DesignVariable) -> float:
        """Derivative of the rms torque with a parameter, times its range [N m]."""

    def of_design(self, design: Design, path: Path) -> float:
        """rms torque of another design, which was written to a path [N m]."""


class Planner(Protocol):
    """Planner of the motion of robots in files, whose result has joint torques."""

    def plan(self, model: Path, stored: Path, progress: Progress | None) -> Result:
        """A plan of the robot in a file, kept in another file."""

    def replay(self, plan: Result, model: Path, progress: Progress | None) -> Result:
        """An execution of a plan by its robot."""

    def model(
        self, design: Design, model: Path, plan: Result, folder: Path
    ) -> TorqueModel:
        """The torques of designs near a planned one; the folder is for its files."""


# The search.


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


@dataclass(frozen=True)
class Improved:
    """The outcome of :func:`optimize`.

    Attributes:
        verdict, message: success if a changed design was planned and replayed, and
            needs less torque by the share that was asked for.
        variables: the design variables, with their first values.
        values: their last values, in SI, by name.
        slopes: derivatives of the rms torque at the first design, times the ranges of
            the parameters [N m], by name.
        rms: rms torque of the walk before and after [N m]; the latter is that of the
            best plan.
        plans: the plans before and after.
        run: the replay of the plan after, or None where the search failed.
        path: file of the changed robot.
        steps: one entry for each design that was tried, with its parameters ("values"),
            and either the modelled rms torque ("model_rms_N_m") or why it could not be
            built ("message"); "plan_rms_N_m" too if it was planned.
    """

    verdict: Verdict
    message: str
    variables: tuple[DesignVariable, ...]
    values: Mapping[str, float]
    slopes: Mapping[str, float]
    rms: tuple[float, float]
    plans: tuple[Result, Result]
    run: Result | None
    path: Path
    steps: tuple[dict[str, Any], ...]

    @property
    def changes(self) -> dict[str, str]:
        """First value, last value and bounds of each parameter, as text."""
        return {
            k.name: f"{k.shown(k.value)} to {k.shown(self.values[k.name])}, of "
            f"{k.shown(k.low)} to {k.shown(k.high)}"
            for k in self.variables
        }


def optimize(
    problem: DesignProblem,
    folder: Path | str,
    planner: Planner,
    *,
    reduction: float = REDUCTION,
    progress: Progress | None = None,
) -> Improved:
    """Changes a design until the rms torque of its motion is lower by a share.

    Args:
        problem: the design problem to start from.
        folder: folder for the designs, before/, trial_1/ and so on. A plan that is
            there already is used again if it is of the same design.
        planner: plans and replays the motion.
        reduction: the share, from 0.001 to 0.99.
        progress: called with the stage, and what is done of it.

    Returns:
        The best design. Ctrl-C ends the search and keeps the best so far.

    Raises:
        InvalidInput: for a reduction out of range.
        DrakebotsError: when the first design cannot be built or planned.
    """
    check_value("reduction", reduction, between(1e-3, 0.99))
    return _Search(problem, Path(folder), planner, reduction, progress).run()


@dataclass(frozen=True)
class _Tried:
    """A design that was built.

    Attributes:
        design, path: the design, and its file.
        values: its parameters, in SI, by name.
        modelled: rms torque by the model [N m], if it was asked.
        plan: the plan, if it was planned.
        run: replay of the plan, if it was replayed.
    """

    design: Design
    path: Path
    values: dict[str, float]
    modelled: float = np.inf
    plan: Result | None = None
    run: Result | None = None

    @property
    def rms(self) -> float:
        """rms torque of the plan [N m]."""
        return rms(self.plan.data.torque.values[1:])


class _Search:
    """The search of :func:`optimize`, whose arguments it takes."""

    def __init__(self, problem, folder, planner, reduction, progress):
        self.problem, self.folder = problem, folder
        self.planner, self.reduction = planner, reduction
        self.progress = progress or silent
        self.variables = design_variables(problem)
        self.steps: list[dict[str, Any]] = []
        self.slopes: dict[str, float] = {}
        self.best: _Tried | None = None

    def run(self) -> Improved:
        """Plans the first design, and changes it until the target is met."""
        values = {k.name: k.value for k in self.variables}
        first = self.best = self.planned(self.design(values, "before"))
        if not first.plan.ok:
            raise NoSolution(f"{self.problem.name}, before: {first.plan.message}")
        try:
            verdict, message = self.lower()
        except KeyboardInterrupt as error:
            verdict, message = ended_by(error)
        except DrakebotsError as error:
            verdict, message = Verdict.FAILED, str(error)
        best = self.best
        if best.run is None and verdict is Verdict.FAILED and best is not first:
            share = 1 - best.rms / first.rms
            message = f"only {100 * share:.1f} % less torque; {message}"
        return Improved(
            verdict,
            message,
            self.variables,
            best.values,
            self.slopes,
            rms=(first.rms, best.rms),
            plans=(first.plan, best.plan),
            run=best.run,
            path=best.path,
            steps=tuple(self.steps),
        )

    def lower(self) -> tuple[Verdict, str]:
        """Changes and plans designs until one meets the target; keeps the best."""
        last = self.best
        target = (1 - self.reduction) * last.rms
        aim = (1 - MARGIN) * target
        for _ in range(MOST_PLANS):
            made = last.design, last.path, last.plan
            model = self.planner.model(*made, self.folder / "skeleton")
            found = self.approach(model, last.values, aim)
            check_stop()
            last = self.planned(found)
            self.steps[-1]["plan_rms_N_m"] = last.rms
            if not last.plan.ok:
                return Verdict.FAILED, f"{last.path.parent.name}: {last.plan.message}"
            if last.rms < self.best.rms:
                self.best = last
            if last.rms <= target:
                run = self.planner.replay(last.plan, last.path, self.progress)
                run.save(last.path.parent / "track.nc")
                self.best = replace(last, run=run)
                return run.verdict, run.message
            # Plans gain less than the model predicts: aim lower by the same factor.
            predicted, gained = model.base - last.modelled, model.base - last.rms
            factor = np.clip(predicted / max(gained, 1e-9), 1, 2)
            aim = last.rms - factor * (last.rms - (1 - MARGIN) * target)
        return Verdict.FAILED, "no design that needs less torque was found"

    def design(self, values: dict[str, float], name: str) -> _Tried:
        """The design with these parameters, whose file is in the folder `name`.

        A plan of another design that is there is removed.
        """
        check_stop()
        place, problem = self.folder / name, redesigned(self.problem, values)
        design = design_robot(problem, progress=self._reporting(name))
        before = _descriptions(place)
        path = write_design(design, place)
        if _descriptions(place) != before:
            (place / "plan.nc").unlink(missing_ok=True)
        return _Tried(design, path, values)

    def planned(self, one: _Tried) -> _Tried:
        """A design with its plan: one stored beside its file, or a new one."""
        stored = one.path.parent / "plan.nc"
        if os.path.isfile(stored) and (kept := load_result(stored)).ok:
            return replace(one, plan=kept)
        reporting = self._reporting(one.path.parent.name)
        return replace(one, plan=self.planner.plan(one.path, stored, reporting))

    def _reporting(self, name: str) -> Progress:
        return lambda stage, done, end: self.progress(f"{name}, {stage}", done, end)

    def approach(self, model: TorqueModel, values, aim: float) -> _Tried:
        """The best of a few designs, the last of which meets the aim by the model.

        All start from the last planned design and use its gradient.

        Args:
            model: model at the last planned design.
            values: parameters of that design, in SI, by name.
            aim: rms torque to reach [N m].

        Raises:
            NoSolution: when no changed design can be built.
        """
        here = [replace(k, value=values[k.name]) for k in self.variables]
        g = np.array([model.slope(k) for k in here])
        self.slopes = self.slopes or {k.name: float(s) for k, s in zip(here, g)}
        start = np.array([values[k.name] / k.range for k in here])
        low = np.array([k.low / k.range for k in here])
        high = np.array([k.high / k.range for k in here])
        goal, radius, best, failed = aim, TRUST, None, ""
        for _ in range(MOST_DESIGNS):
            y = least_change(g, model.base - goal, start, low, high, radius)
            asked = float(g @ (start - y))
            if asked < LEAST * model.base:
                failed = failed or "their bounds allow no more"
                break
            trial = {k.name: float(v * k.range) for k, v in zip(here, y)}
            name = f"trial_{len(self.steps) + 1}"
            try:
                built = self.design(trial, name)
                modelled = model.of_design(built.design, built.path)
            except DrakebotsError as error:
                failed = str(error)
                self.steps.append({"values": trial, "message": failed})
                radius /= 2
                continue
            self.steps.append({"values": trial, "model_rms_N_m": modelled})
            if best is None or modelled < best.modelled:
                best = replace(built, modelled=modelled)
            if modelled <= aim:
                break
            # The model gained less than its gradient promised: ask it for more.
            gain = model.base - modelled
            if gain < 0.2 * asked:
                radius /= 2
            else:
                goal = model.base - (model.base - aim) * 1.05 * asked / gain
                radius = min(1.5 * radius, 1.0)
        if best is None:
            raise NoSolution(f"no further change of the parameters: {failed}")
        return best


def _descriptions(folder: Path) -> dict[str, bytes]:
    """Contents of the YAML files of a design, by name.

    They hold its parameters, the moduli of its folds and its feet.
    """
    return {path.name: path.read_bytes() for path in folder.glob("*.yaml")}


def least_change(g, gain: float, start, low, high, radius: float) -> np.ndarray:
    """The y nearest to `start` with g (start - y) = gain, within bounds (n,).

    It is start - rate g, clipped to the bounds, with the rate found by Brent's method.
    Where the bounds do not allow that gain, it is the y of the largest gain.

    Args:
        g: gradient (n,).
        gain: decrease that is requested.
        start, low, high: y to start from, and its bounds (n,).
        radius: largest change of each entry.
    """
    low, high = np.maximum(low, start - radius), np.minimum(high, start + radius)

    def at(rate):
        return np.clip(start - rate * g, low, high)

    most = 1e3 / max(np.abs(g).max(), 1e-12)
    if g @ (start - at(most)) <= gain:
        return at(most)
    return at(brentq(lambda rate: g @ (start - at(rate)) - gain, 0.0, most))
