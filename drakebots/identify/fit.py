r"""Multiple shooting: parameters and the states at the starts of segments, at once.

With parameters x, states s_i at the starts of segments and F_i(s_i, x) the states that
steps of :class:`~drakebots.identify.stepper.FittedStepper` reach from them, steps of
Gauss-Newton with Levenberg's damping minimize

    sum_k |(y_k - y(q_k, v_k)) / sigma|^2  +  sum_j ((x_j - x_j0) / sigma_j)^2
      + sum_i |W (F_i(s_i, x) - s_{i+1})|^2  +  sum_i |W_c c(q_i)|^2

over the samples y_k that are there, priors, and the gaps between segments. W grows from
round to round until the gaps are closed; sigma of each kind of signal is what the last
round left of it, unless it is given. The covariance of x is that block of the inverse
of J'J at the end, times the variance of the residuals (Bock 1987).
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import casadi as ca
import numpy as np

from drakebots.core.checks import each, non_negative, positive, text
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict, run_steps
from drakebots.formats import load
from drakebots.identify.measured import Measured, read_measured
from drakebots.identify.outcome import Estimate, estimate, result_of, signal_unit
from drakebots.identify.stepper import FittedStepper, Inputs
from drakebots.model import (
    Model,
    actuators_of,
    bodies_of,
    force_elements,
    joints_of,
    slides,
    spring_law,
)
from drakebots.multibody import Robot, build_robot, find_posture
from drakebots.results import Result

GROUND = 0.6
"""Friction coefficient of a ground of which nothing is said."""

GAPS = (1.0, 1e-2, 1e-4)
"""Weights of the rounds: a gap between segments counts as this share of the noise."""

TRIES = 40
"""Most steps of a round."""


@checked("identification")
class Identification:
    """Parameters of a model to be found from measurements.

    Raises:
        InvalidInput: for a value out of range.
    """

    model: str | Path | Model
    """The model: a name, a path, or a loaded model; its numbers are the first guess."""
    data: str | Path | Result
    """Measurements: a table (.csv), a log (.mcap) or a result (.nc)."""
    fit: Annotated[Sequence[str], each(text(), "names of parameters", 1)]
    """Parameters to find: friction, mass:LINK, stiffness:JOINT, damping:JOINT,
    servo.stiffness, servo.damping, servo.delay; names may be patterns (*_knee), and
    with a ~ behind it one factor is found for all that a pattern names."""
    prior: Mapping[str, float] = field(default_factory=dict)
    """How well parameters are known beforehand: standard deviation by parameter, as a
    share of the model's value."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation of the noise by kind of signal, e.g. position, in SI; by
    default what the fit leaves."""
    servo: Mapping[str, float] = field(default_factory=dict)
    """Servos that follow measured targets: stiffness, damping and delay at first [N
    m/rad, N m s/rad, s]; by default the gains of the model's motors."""
    segment: Annotated[float, positive("s")] = 0.1
    """Length of a segment that is simulated from a state of its own."""
    time_step: Annotated[float, positive("s")] = 1e-3
    """Largest time step between two samples."""
    confidence: Annotated[float, positive()] = 0.95
    """Probability that an interval shall hold the true value."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        if self.confidence >= 1:
            raise InvalidInput("identification: confidence must be < 1")
        for name, values in (("prior", self.prior), ("noise", self.noise)):
            for key, value in values.items():
                if not (np.isfinite(value) and value > 0):
                    raise InvalidInput(f"{name} of {key} must be > 0, got {value:g}")
        names = ("stiffness", "damping", "delay")
        for key, value in self.servo.items():
            if key not in names:
                raise UnknownName("entry of servo", key, names)
            non_negative()(value)


@dataclass(frozen=True)
class Parameter:
    """One number to find.

    Attributes:
        name: as asked for.
        start: its values in the model [SI], by the names that stand in a YAML.
        unit: its unit; "1" of a factor for several.
        scale: its value where x is 1.
    """

    name: str
    start: Mapping[str, float]
    unit: str
    scale: float

    @property
    def first(self) -> float:
        """x of the model's own value."""
        return 1.0 if any(self.start.values()) else 0.0

    def values(self, x) -> dict:
        """Each value at x."""
        return {n: (v or self.scale) * x for n, v in self.start.items()}


def _choices(robot: Robot, servo: Mapping[str, float]) -> dict[str, tuple[float, str]]:
    """What can be found of a robot: value in the model and unit, by name."""
    plant, found = robot.plant, {}
    if robot.model.feet:
        found["friction"] = robot.model.parameters.get("friction", GROUND), "1"
    for body in bodies_of(plant):
        if body.default_mass() > 0:
            found[f"mass:{body.name()}"] = body.default_mass(), "kg"
    for joint in joints_of(plant):
        own = joint.name() not in _base_joints(robot)
        if joint.num_velocities() == 1 and own:
            unit = "N s/m" if slides(joint) else "N m s/rad"
            damping = float(joint.default_damping_vector()[0])
            found[f"damping:{joint.name()}"] = damping, unit
    for element in force_elements(plant):
        if hasattr(element, "joint"):
            joint = element.joint()
            unit = "N/m" if slides(joint) else "N m/rad"
            found[f"stiffness:{joint.name()}"] = spring_law(element)[0], unit
    for motor in actuators_of(plant):
        if motor.has_controller():
            unit = "N/m" if slides(motor.joint()) else "N m/rad"
            gain = motor.get_controller_gains().p
            found[f"stiffness:{motor.joint().name()}"] = gain, unit
    units = {"stiffness": "N m/rad", "damping": "N m s/rad", "delay": "s"}
    found |= {f"servo.{k}": (servo.get(k, 0.0), u) for k, u in units.items()}
    return found


def _base_joints(robot: Robot) -> set[str]:
    return {joint.name() for joint in joints_of(robot.plant)} - set(
        robot.model.summary.joints
    )


def _parameters(problem: Identification, robot: Robot, sample: float) -> list:
    """The parameters that are asked for, patterns written out."""
    choices, chosen = _choices(robot, problem.servo), []
    for word in problem.fit:
        pattern = word.removesuffix("~")
        names = [n for n in choices if fnmatch.fnmatchcase(n, pattern)]
        if not names:
            raise UnknownName("parameter", word, choices)
        for group in [names] if word.endswith("~") else [[n] for n in names]:
            start = {n: choices[n][0] for n in group}
            name, unit = (word, "1") if word.endswith("~") else (names[0], "")
            if not unit:
                name, unit = group[0], choices[group[0]][1]
            scale = 1.0 if word.endswith("~") else abs(start[name]) or _SMALL.get(unit)
            if name == "servo.delay":
                scale = start[name] or sample
            chosen.append(Parameter(name, start, unit, scale or 1e-2))
    names = [n for p in chosen for n in p.start]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise InvalidInput(f"fit: {twice} is asked for twice; name it once")
    for name in problem.prior:
        if name not in (own := [p.name for p in chosen]):
            raise UnknownName("parameter with a prior", name, own)
    return chosen


_SMALL = {"N m s/rad": 1e-2, "N s/m": 1.0, "N m/rad": 1.0}
"""Scales of parameters that are 0 in the model."""


class _Fit:
    """The least-squares problem of an identification, built; and its best iterate."""

    def __init__(self, problem: Identification, data: Measured):
        model = problem.model
        self.model = model = model if isinstance(model, Model) else load(model)
        base = "euler" if model.summary.bases else "fixed"
        self.robot = robot = build_robot(model, base=base)
        known = {k[6:]: v for k, v in model.parameters.items() if k[:6] == "servo."}
        self.problem = problem = replace(problem, servo=known | dict(problem.servo))
        self.time = data.time
        sample = float(np.median(np.diff(data.time)))
        self.parameters = _parameters(problem, robot, sample)
        self.x = np.array([p.first for p in self.parameters])
        x = ca.SX.sym("x", len(self.x))
        values = {} if not model.feet else {"friction": ca.SX(GROUND)}
        values |= {k: ca.SX(v) for k, v in model.parameters.items() if k == "friction"}
        for i, parameter in enumerate(self.parameters):
            values |= parameter.values(x[i])
        self.stepper = FittedStepper(robot, values, x, self._inputs(data, values))
        self._measured(data)
        self._stepping(data)
        self.states = self._guess()
        self.sigma = self._first_noise()
        self.gap, self.cost, self.damping = GAPS[0], np.inf, 1e-3
        self.done = False

    # --- what was measured ---

    def _columns(self, data: Measured, kind: str) -> dict[str, np.ndarray]:
        """Columns of a kind by the names of signals, those of one model instance in
        Drake's own words too: "position.dog_knee"."""
        prefix = f"{kind}."
        return {
            k[len(prefix) :]: v for k, v in data.columns.items() if k.startswith(prefix)
        }

    def _inputs(self, data: Measured, values: Mapping) -> Inputs:
        motors, servo = actuators_of(self.robot.plant), self.problem.servo
        self._effort, self._target = (
            {
                i: found
                for i, motor in enumerate(motors)
                for found in [self._of_motor(data, kind, motor)]
                if found is not None
            }
            for kind in ("torque", "target")
        )
        for i, motor in enumerate(motors):
            if i not in self._effort and i not in self._target:
                raise InvalidInput(
                    f"the data has neither torque.{motor.name()} nor "
                    f"target.{motor.name()}; add a column with either (0 if it rests)"
                )
        gains: list[list] = [[], []]
        for i, motor in enumerate(motors):
            own = motor.get_controller_gains() if motor.has_controller() else None
            p = values.get("servo.stiffness", servo.get("stiffness"))
            d = values.get("servo.damping", servo.get("damping"))
            p = (own.p if own else None) if p is None else p
            p = values.get(f"stiffness:{motor.joint().name()}", p)
            d = (own.d if own else 0.0) if d is None else d
            if i in self._target and p is None:
                raise InvalidInput(
                    f"target.{motor.name()} needs the servo's stiffness; give --servo "
                    "stiffness=..., or the motor gains in the model"
                )
            gains[0].append(p)
            gains[1].append(d)
        return Inputs(tuple(self._effort), tuple(self._target), gains)

    @staticmethod
    def _of_motor(data: Measured, kind: str, motor) -> np.ndarray | None:
        for name in (motor.name(), motor.joint().name()):
            found = data.columns.get(f"{kind}.{name}")
            if found is not None:
                if not np.isfinite(found).all():
                    raise InvalidInput(f"{kind}.{name}: every sample needs a number")
                return found
        return None

    def _measured(self, data: Measured) -> None:
        """y (T, ny), NaN where missing, of the signals that the data has."""
        columns = dict(data.columns)
        for name, values in data.columns.items():  # "position.dog_knee"
            kind, _, rest = name.partition(".")
            for signal in self.stepper.signals:
                own_kind, _, own = signal.partition(".")
                if kind == own_kind and rest.endswith(f"_{own}"):
                    columns.setdefault(signal, values)
        joints = {n.partition(".")[2]: n for n in self.stepper.signals if n[0] == "p"}
        columns |= {joints[n]: x for n, x in data.columns.items() if n in joints}
        chosen = [
            n for n in self.stepper.signals if np.isfinite(columns.get(n, np.nan)).any()
        ]
        if not chosen:
            raise UnknownName(
                "signal in the data", ", ".join(data.columns), self.stepper.signals
            )
        self.names = tuple(chosen)
        self.rows = np.array([self.stepper.signals.index(n) for n in chosen])
        self.y = np.column_stack([columns[n] for n in chosen])
        self.kinds = [n.partition(".")[0] for n in chosen]
        self.units = [signal_unit(self.robot, n) for n in chosen]
        for kind in self.problem.noise:
            if kind not in self.kinds:
                raise UnknownName("kind of signal with a noise", kind, set(self.kinds))

    def _stepping(self, data: Measured) -> None:
        """Steps between samples, and segments of them."""
        spans = np.diff(self.time)
        counts = np.maximum(1, np.round(spans / self.problem.time_step)).astype(int)
        self.steps = np.repeat(spans / counts, counts)
        self.at = np.concatenate([[0], np.cumsum(counts)])
        begin = np.repeat(self.time[:-1], counts)
        self._starts = begin + self.steps * np.concatenate(
            [np.arange(n) for n in counts]
        )
        length = max(2, round(self.problem.segment / float(np.median(spans))))
        edges = list(range(0, len(self.time) - 1, length))
        if len(edges) > 1 and len(self.time) - 1 - edges[-1] < max(2, length // 2):
            edges.pop()
        self.edges = np.array([*edges, len(self.time) - 1])

    def _driven(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs w of all steps, and their derivative in the delay."""
        nu = len(self.stepper.motors)
        size = 2 * nu + len(self.model.feet)
        w, rate = np.zeros((2, len(self.steps), size))
        delay = self.problem.servo.get("delay", 0.0)
        if (i := self._delay) is not None:
            delay = self.parameters[i].scale * x[i]
        for i, values in self._effort.items():
            if i not in self._target:
                w[:, i] = np.interp(self._starts, self.time, values)
        for i, values in self._target.items():
            late = self._starts - delay
            w[:, nu + i] = np.interp(late, self.time, values)
            slopes = np.diff(values) / np.diff(self.time)
            at = np.searchsorted(self.time, late, side="right") - 1
            inside = (at >= 0) & (at < len(slopes))
            rate[inside, nu + i] = -slopes[at[inside]]
        return w, rate

    @cached_property
    def _delay(self) -> int | None:
        names = [p.name for p in self.parameters]
        return names.index("servo.delay") if "servo.delay" in names else None

    # --- first guesses ---

    def _guess(self) -> np.ndarray:
        """States at the starts of segments (m, 2 nv), from what was measured there."""
        nv, stepper, states = self.stepper.nv, self.stepper, []
        w, _ = self._driven(self.x)
        q = _standing(self.robot, self.model)
        v = np.zeros(nv)
        _, picked = (np.asarray(part) for part in stepper.output(q, v))
        for k, edge in enumerate(self.edges[:-1]):
            if k:
                steps = slice(self.at[self.edges[k - 1]], self.at[edge])
                q, v = np.split(
                    stepper.run(self.x, states[-1], self.steps[steps], w[steps])[0][-1],
                    2,
                )
            q, v = q.copy(), v.copy()
            fixed = np.zeros(nv, bool)
            for j, row in enumerate(self.rows):
                (column,) = np.nonzero(picked[row])
                if len(column) != 1 or self.names[j].startswith("foot"):
                    continue
                value, slope = self._line(edge, j)
                if column[0] >= nv:
                    v[column[0] - nv] = (
                        value if np.isfinite(value) else v[column[0] - nv]
                    )
                elif np.isfinite(value):
                    q[column[0]], fixed[column[0]] = value, True
                    v[column[0]] = slope
            q, v = self._closed(q, v, ~fixed)
            states.append(np.concatenate([q, v]))
        return np.array(states)

    def _line(self, k: int, j: int) -> tuple[float, float]:
        """Value and slope of signal j at sample k, by a parabola through those near."""
        near = slice(max(0, k - 3), k + 4)
        t, y = self.time[near] - self.time[k], self.y[near, j]
        good = np.isfinite(y)
        if good.sum() < 3:
            return (float(y[good].mean()) if good.any() else np.nan), 0.0
        *_, slope, value = np.polyfit(t[good], y[good], 2)
        return float(value), float(slope)

    def _closed(self, q, v, free) -> tuple[np.ndarray, np.ndarray]:
        """The nearest state that closes the loops, by the joints not measured first."""
        closure, plant = self.robot.closure, self.robot.plant
        if not closure.num_rows:
            return q, v
        context = plant.CreateDefaultContext()
        weight = np.where(free, 1.0, 1e-3)
        for _ in range(20):
            plant.SetPositions(context, q)
            c, C = closure.evaluate(context)
            if np.abs(c).max() < 1e-10:
                break
            q = q - weight * np.linalg.lstsq(C * weight, c, rcond=None)[0]
        return q, v - weight * np.linalg.lstsq(C * weight, C @ v, rcond=None)[0]

    def _first_noise(self) -> np.ndarray:
        """A hundredth of each kind's motion (ny,)."""
        spread = np.nanstd(self.y, axis=0)
        spread = np.maximum(
            spread, 1e-3 * np.maximum(np.nanmax(np.abs(self.y), axis=0), 1e-6)
        )
        return self._by_kind(1e-2 * spread)

    def _by_kind(self, sigma: np.ndarray) -> np.ndarray:
        """One noise for each kind of signal: the given one, or the mean square."""
        out, pairs = sigma.copy(), list(zip(self.kinds, self.units))
        for pair in set(pairs):
            same = np.array([other == pair for other in pairs])
            own = np.sqrt(np.mean(sigma[same] ** 2))
            out[same] = self.problem.noise.get(pair[0], own)
        return out

    # --- residuals ---

    def _runs(self, x: np.ndarray, states: np.ndarray) -> list:
        """States, z, inputs and the slopes of the ground's heights of segments."""
        w, _ = self._driven(x)
        noise, runs = self._gap_scale()[: self.stepper.nv], []
        for s, (a, b) in zip(states, self._parts):
            own = w[a:b].copy()
            level, slope = self.stepper.levels(x, s, w[a], noise)
            own[:, own.shape[1] - len(level) :] = level
            runs.append((*self.stepper.run(x, s, self.steps[a:b], own), own, slope))
        return runs

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        ends = self.at[self.edges]
        return list(pairwise(ends))

    def _samples(self, i: int) -> np.ndarray:
        """The samples of segment i; the last has that at its end too."""
        last = i == len(self.edges) - 2
        return np.arange(self.edges[i], self.edges[i + 1] + last)

    def predicted(self, runs: list) -> np.ndarray:
        """All measurable signals at the samples (T, n signals)."""
        nv, parts = self.stepper.nv, []
        for i, (states, *_) in enumerate(runs):
            at = self.at[self._samples(i)] - self.at[self.edges[i]]
            y = self.stepper.output.map(len(at))(states[at, :nv].T, states[at, nv:].T)[
                0
            ]
            parts.append(np.asarray(y).T)
        return np.vstack(parts)

    def _gap_scale(self) -> np.ndarray:
        """Noise of the states (2 nv,): that of the positions, and of their rates over a
        segment."""
        nv, typical = self.stepper.nv, np.ones(2 * self.stepper.nv)
        _, picked = (
            np.asarray(a) for a in self.stepper.output(np.zeros(nv), np.zeros(nv))
        )
        usual = float(np.median(self.sigma))
        typical[:] = usual
        for j, row in enumerate(self.rows):
            (column,) = np.nonzero(picked[row])
            if len(column) == 1:
                typical[column[0]] = self.sigma[j]
        typical[nv:] = np.maximum(typical[:nv] / self.problem.segment, 1e-9)
        return typical

    def residuals(self, x, states, runs) -> np.ndarray:
        """All rows, weighted; samples first."""
        y = (self.predicted(runs)[:, self.rows] - self.y) / self.sigma
        parts = [np.where(np.isnan(y), 0.0, y).ravel()]
        W = 1 / (self.gap * self._gap_scale())
        for run, following in zip(runs, states[1:]):
            parts.append(W * (run[0][-1] - following))
        if self.robot.closure.num_rows:
            for s in states:
                c, _ = self._loops(s)
                parts.append(c / self._loop_scale)
        parts.append(self._prior(x)[0])
        return np.concatenate(parts)

    @cached_property
    def _loop_scale(self) -> float:
        return 1e-4 * max(self._largest(), 1e-6)

    def _largest(self) -> float:
        loops = self.model.loops
        return max((float(np.abs([x.p_AP, x.p_BQ]).max()) for x in loops), default=1.0)

    def _loops(self, state) -> tuple[np.ndarray, np.ndarray]:
        context = self.robot.plant.CreateDefaultContext()
        self.robot.plant.SetPositions(context, state[: self.stepper.nv])
        return self.robot.closure.evaluate(context)

    def _prior(self, x) -> tuple[np.ndarray, np.ndarray]:
        rows, J = [], []
        for i, parameter in enumerate(self.parameters):
            share = self.problem.prior.get(parameter.name)
            if share is not None:
                rows.append((x[i] - parameter.first) / share)
                J.append(np.eye(len(x))[i] / share)
        return np.array(rows), np.array(J).reshape(-1, len(x))

    def jacobian(self, x, states, runs) -> np.ndarray:
        """Derivative of :meth:`residuals` in (x, states), exact."""
        nv, n, m = self.stepper.nv, len(x), len(states)
        _, rate = self._driven(x)
        size = 2 * nv
        samples, gaps = [], []
        W = 1 / (self.gap * self._gap_scale())
        for i, ((a, b), (found, solved, w, slope)) in enumerate(zip(self._parts, runs)):
            A = self.stepper.sensitivities(x, found, solved, self.steps[a:b], w)
            S, X = np.eye(size), np.zeros((size, n))
            all_S, all_X = [S], [X]
            nw = w.shape[1]
            for k in range(b - a):
                step, push, by_x = np.split(A[k], [size, size + nw], axis=1)
                if self._delay is not None:
                    by_x = by_x.copy()
                    scale = self.parameters[self._delay].scale
                    by_x[:, self._delay] += scale * push @ rate[a + k]
                S, X = step @ S, step @ X + by_x
                S[:, :nv] += push[:, nw - len(slope) :] @ slope
                all_S.append(S)
                all_X.append(X)
            at = self.at[self._samples(i)] - a
            C = self.stepper.output.map(len(at))(found[at, :nv].T, found[at, nv:].T)[1]
            C = (
                np.asarray(C)
                .reshape(-1, len(at), size)
                .transpose(1, 0, 2)[:, self.rows]
            )
            rows = np.zeros((len(at), len(self.rows), n + m * size))
            rows[:, :, :n] = C @ np.array(all_X)[at]
            own = slice(n + i * size, n + (i + 1) * size)
            rows[:, :, own] = C @ np.array(all_S)[at]
            samples.append(rows)
            if i < m - 1:
                gap = np.zeros((size, n + m * size))
                gap[:, :n], gap[:, own] = X, S
                gap[:, n + (i + 1) * size : n + (i + 2) * size] = -np.eye(size)
                gaps.append(W[:, None] * gap)
        J = np.concatenate(samples) / self.sigma[:, None]
        J[np.isnan(self.y)] = 0.0
        parts = [J.reshape(-1, J.shape[2]), *gaps]
        if self.robot.closure.num_rows:
            for i, s in enumerate(states):
                _, C = self._loops(s)
                row = np.zeros((len(C), n + m * size))
                row[:, n + i * size : n + i * size + nv] = C / self._loop_scale
                parts.append(row)
        prior = self._prior(x)[1]
        parts.append(np.hstack([prior, np.zeros((len(prior), m * size))]))
        return np.vstack(parts)

    # --- steps ---

    def step(self, k: int) -> Stop | None:
        """One step of Gauss-Newton with Levenberg's damping."""
        if np.isinf(self.cost):
            self.runs = self._runs(self.x, self.states)
            self.r = self.residuals(self.x, self.states, self.runs)
            self.cost, self.J, self._tries = float(self.r @ self.r), None, 0
        if self.J is None:
            self.J = self.jacobian(self.x, self.states, self.runs)
            self.H, self.g = self.J.T @ self.J, self.J.T @ self.r
        n, scale = len(self.x), np.diag(self.H) + 1e-12 * np.diag(self.H).max()
        root = np.sqrt(scale)
        H = self.H / np.outer(root, root) + self.damping * np.eye(len(scale))
        d = -np.linalg.solve(H, self.g / root) / root
        x = np.maximum(
            self.x + d[:n], 1e-3 * np.array([p.first for p in self.parameters])
        )
        states = self.states + d[n:].reshape(self.states.shape)
        runs = self._runs(x, states)
        r = self.residuals(x, states, runs)
        cost, self._tries = float(r @ r), self._tries + 1
        small = False
        if np.isfinite(cost) and cost < self.cost:
            small = self.cost - cost < 1e-7 * self.cost
            self.x, self.states, self.runs, self.r = x, states, runs, r
            self.cost, self.J = cost, None
            self.damping = max(self.damping / 10, 1e-12)
        else:
            self.damping = max(10 * self.damping, 1e-9)
            small = self.damping > 1e3
        if small or self._tries >= TRIES:
            return self._next_round()
        return None

    def _next_round(self) -> Stop | None:
        later = [gap for gap in GAPS if gap < self.gap]
        if not later:
            self.done = True
            return Stop(Verdict.SUCCESS, "the fit has converged")
        self.renew_noise()
        self.gap, self.cost, self.damping = later[0], np.inf, 1e-6
        return None

    def renew_noise(self) -> None:
        """sigma from what the fit leaves of each signal."""
        off = self.predicted(self.runs)[:, self.rows] - self.y
        spread = np.sqrt(np.nanmean(off**2, axis=0))
        self.sigma = self._by_kind(np.maximum(spread, 1e-3 * self._first_noise()))


def _standing(robot: Robot, model: Model) -> np.ndarray:
    """Positions to begin with (nv,): as the file has them; standing, of a free one."""
    plant = robot.plant
    context = plant.CreateDefaultContext()
    if not model.summary.bases:
        return plant.GetPositions(context)
    posture = find_posture(model)
    robot.set_base_pose(context, posture.X_WB)
    q = plant.GetPositions(context)
    for name, value in posture.joints.items():
        q[plant.GetJointByName(name).position_start()] = value
    return q


def identify(problem: Identification, *, progress: Progress | None = None) -> Result:
    """Finds the parameters; returns what was reached even when cut short.

    The result is a success if the fit has converged, and the segments join: a single
    run from the first state comes to what the segments predict.

    Args:
        problem: what to find, and from what.
        progress: called as progress("fit", steps, most).

    Raises:
        UnknownName: for a parameter that the model does not have; lists those it has.
        FileProblem, InvalidInput: for data that cannot be used.
    """
    began = time.perf_counter()
    fit = _Fit(problem, read_measured(problem.data))
    built = time.perf_counter()
    end = run_steps(
        fit.step,
        len(GAPS) * TRIES,
        stage="fit",
        progress=progress,
        time_limit=problem.time_limit,
    )
    found: Estimate = estimate(fit, problem.confidence)
    timings = {"build": built - began, "fit": time.perf_counter() - built}
    return result_of(fit, end, found, timings)
