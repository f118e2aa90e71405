r"""Multiple shooting: parameters and the states at the starts of segments, at once.

With parameters x, states s_i at the starts of segments and F_i(s_i, x) the states that
steps of :class:`~drakebots.identify.stepper.FittedStepper` reach from them, steps of
Gauss-Newton with Levenberg's damping minimize

    sum_k |(y_k - y(q_k, v_k)) / sigma|^2  +  sum_j ((x_j - x_j0) / sigma_j)^2
      + sum_i |W (F_i(s_i, x) - s_{i+1})|^2  +  sum_i |W_c c(q_i)|^2

over the samples y_k that are there, priors, and the gaps between segments. W grows from
round to round until the gaps are closed; sigma of each signal is what the last round
left of it (Bock 1987).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import casadi as ca
import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.core.checks import (
    by_name,
    check_memory,
    each,
    non_negative,
    positive,
    text,
)
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName, check_names
from drakebots.core.fields import checked
from drakebots.core.run import Progress, Stop, Verdict, run_steps
from drakebots.core.stages import timed
from drakebots.formats import loaded
from drakebots.identify.measured import Drives, Measured, read_measured
from drakebots.identify.outcome import result_of
from drakebots.identify.stepper import (
    SERVO,
    FittedStepper,
    Parameter,
    Run,
    Signals,
    choices_of,
    chosen_parameters,
    joint_signals,
)
from drakebots.model import Model, skin_path
from drakebots.multibody import (
    GROUND_FRICTION,
    base_body,
    build_robot,
    find_posture,
    floats,
)
from drakebots.results import Result
from drakebots.skin import SkinSimulation, build_stepper, on_ground
from drakebots.skin.file import SkinnedRobot, load_skinned

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
    """Measurements: a table (.csv), a result (.nc), or a log of ROS (.mcap, .db3, .bag,
    a bag's folder)."""
    fit: Annotated[Sequence[str], each(text(), "names of parameters", 1)]
    """Parameters to find: friction, mass:LINK, stiffness:JOINT, damping:JOINT,
    servo.stiffness, servo.damping, servo.delay; of a robot in a skin the servos'
    stiffness and damping, and youngs_modulus:REGION, stiffness_damping:REGION and
    density:REGION. Names may be patterns (*_knee), and with a ~ behind it one factor is
    found for all that a pattern names."""
    prior: Annotated[Mapping[str, float], by_name(positive())] = field(
        default_factory=dict
    )
    """How well parameters are known beforehand: standard deviation by parameter, as a
    share of the model's value."""
    servo: Annotated[Mapping[str, float], by_name(non_negative())] = field(
        default_factory=dict
    )
    """Servos that follow measured targets: stiffness, damping and delay at first [N
    m/rad, N m s/rad, s]; by default the gains of the model's motors."""
    segment: Annotated[float, positive("s")] = 0.1
    """Length of a segment that is simulated from a state of its own; in a skin the run
    is one."""
    time_step: Annotated[float | None, positive("s")] = None
    """Largest time step between two samples, by default 1 ms; 5 ms in a skin, whose
    steps are larger than its samples where it is less."""
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time; what was reached is kept."""

    def __post_init__(self):
        check_names("entry of servo", self.servo, SERVO)


class Fit:
    """The least-squares problem of an identification, built; and its best iterate."""

    def __init__(self, problem: Identification, data: Measured):
        self.model = model = loaded(problem.model)
        base = "euler" if model.summary.bases else "fixed"
        self.robot = robot = build_robot(model, base=base)
        known = {k[6:]: v for k, v in model.parameters.items() if k[:6] == "servo."}
        self.problem = problem = replace(problem, servo=known | dict(problem.servo))
        self.time = data.time
        spans = np.diff(data.time)
        sample = float(np.median(spans))
        servo = problem.servo
        self._choose(chosen_parameters(choices_of(robot, servo), problem.fit, sample))
        names = [p.name for p in self.parameters]
        self._delay = names.index("servo.delay") if "servo.delay" in names else None
        x = ca.SX.sym("x", len(self.x))
        values = {"friction": ca.SX(model.parameters.get("friction", GROUND_FRICTION))}
        for i, parameter in enumerate(self.parameters):
            values |= parameter.values(x[i])
        self._drives = Drives(robot, data, values, servo)
        self.stepper = FittedStepper(robot, values, x, self._drives.servos)
        self._signals(data, self.stepper.signals)
        # Stamps of logs are exact to 0.2 us.
        longest = problem.time_step or 1e-3
        counts = np.maximum(1, np.ceil(spans / longest - 1e-3)).astype(int)
        size, steps = 2 * self.stepper.nv, int(counts.sum())
        bytes_each, remedy = 8 * size * (size + len(self.x)), "take a larger time_step"
        check_memory(f"a fit of {steps:.3g} steps", steps, bytes_each, remedy)
        self.steps = np.repeat(spans / counts, counts)
        self.at = np.concatenate([[0], np.cumsum(counts)])
        length = max(2, round(problem.segment / sample))
        edges = list(range(0, len(spans), length))
        if len(edges) > 1 and len(spans) - edges[-1] < max(2, length // 2):
            edges.pop()
        self.edges = [*edges, len(spans)]
        self.states = self._guess()

    def _choose(self, parameters: Sequence[Parameter]) -> None:
        """The parameters, at their first values."""
        self.parameters = parameters
        self.x = np.array([p.first for p in parameters])
        prior, names = self.problem.prior, [p.name for p in parameters]
        check_names("parameter with a prior", prior, names)

    # --- what was measured ---

    def _signals(self, data: Measured, signals: Signals) -> None:
        """y (T, ny), NaN where missing, of the signals that the data has."""
        found = {}
        for row, (name, (unit, _)) in enumerate(signals.items()):
            column = data.column(self.robot, unit, *name.split(".", 1))
            if column is not None and np.isfinite(column).any():
                found[name] = row, column
        if not found:
            raise UnknownName("signal in the data", ", ".join(data.columns), signals)
        self.names = tuple(found)
        self.rows, columns = (list(part) for part in zip(*found.values()))
        self.y = np.column_stack(columns)
        self.units, self.places = zip(*(signals[name] for name in found))
        spread = np.nanstd(self.y, axis=0)
        largest = np.maximum(np.nanmax(np.abs(self.y), axis=0), 1e-6)
        self.least = 1e-5 * np.maximum(spread, 1e-3 * largest)
        self.sigma, self.gap = 1e3 * self.least, GAPS[0]
        self.cost, self.damping, self.done, self.runs = np.inf, 1e-3, False, None

    def _driven(self, x, steps, smooth: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Inputs w of steps, heights of the ground last, and their derivatives in the
        delay."""
        delay = self.problem.servo.get("delay", 0.0)
        if self._delay is not None:
            delay = self.parameters[self._delay].scale * x[self._delay]
        begin = self.time[0] + np.cumsum(steps) - steps
        level = ((0, 0), (0, len(self.model.feet)))
        return tuple(np.pad(w, level) for w in self._drives.at(begin, delay, smooth))

    # --- first guesses ---

    def _guess(self) -> np.ndarray:
        """States at the starts of segments (m, 2 nv), from what was measured there."""
        nv, plant, states = self.stepper.nv, self.robot.plant, []
        context = plant.CreateDefaultContext()
        if self.model.summary.bases:  # which the file need not have standing
            find_posture(self.model).put(self.robot, context, base=True)
        state = np.concatenate([plant.GetPositions(context), np.zeros(nv)])
        for k, edge in enumerate(self.edges[:-1]):
            if k:
                state = self._segment(k - 1, self.x, states[-1]).states[-1].copy()
            free = np.ones(nv)
            for j, at in enumerate(self.places):
                value, slope = self._line(edge, j)
                if at is None or np.isnan(value):
                    continue
                state[at] = value
                if at < nv:
                    state[nv + at], free[at] = slope, 1e-3
            states.append(self._closed(state, free))
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

    def _closed(self, state: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The nearest state that closes the loops, by the joints not measured first."""
        q, v = np.split(state.copy(), 2)
        for _ in range(20):
            c, C = self._loops(q)
            if np.abs(c).max(initial=0.0) < 1e-10:
                break
            q = q - free * np.linalg.lstsq(C * free, c, rcond=None)[0]
        v = v - free * np.linalg.lstsq(C * free, C @ v, rcond=None)[0]
        return np.concatenate([q, v])

    def _loops(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        context = self.robot.plant.CreateDefaultContext()
        self.robot.plant.SetPositions(context, q)
        return self.robot.closure.evaluate(context)

    # --- residuals ---

    def _segment(self, i: int, x, state, parts: int = 1) -> Run:
        """Segment i from a state; with each step in some parts, inputs are smooth."""
        steps = np.repeat(self.steps / parts, parts)
        a, b = parts * self.at[self.edges[i : i + 2]]
        w = self._driven(x, steps, parts > 1)[0][a:b]
        noise = self.gap * self.scale[: self.stepper.nv]
        level, slopes = self.stepper.levels(x, state, w[0], noise)
        w[:, w.shape[1] - len(level) :] = level
        states, solved = self.stepper.run(x, state, steps[a:b], w)
        return Run(states[::parts], solved, w, slopes)

    def run(self, x, states, parts: int = 1) -> list[Run]:
        """All segments."""
        return [self._segment(i, x, s, parts) for i, s in enumerate(states)]

    @property
    def scale(self) -> np.ndarray:
        """Noise of the states (2 nv,): that of the positions, and of their rates over a
        segment."""
        nv = self.stepper.nv
        noise = np.full(nv, float(np.median(self.sigma)))
        for at, sigma in zip(self.places, self.sigma):
            if at is not None and at < nv:
                noise[at] = sigma
        return np.r_[noise, np.maximum(noise / self.problem.segment, 1e-9)]

    def _sampled(self, i: int, run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps of the samples of segment i, all signals there and their derivatives;
        the last segment has the sample at its end too."""
        last = i == len(self.edges) - 2
        at = self.at[self.edges[i] : self.edges[i + 1] + last] - self.at[self.edges[i]]
        y, C = map(np.asarray, self.stepper.output.map(len(at))(run.states[at].T))
        C = C.reshape(len(y), len(at), -1).transpose(1, 0, 2)
        return at, y.T[:, self.rows], C[:, self.rows]

    def predicted(self, runs: Sequence[Run]) -> np.ndarray:
        """The measured signals at the samples (T, ny)."""
        return np.vstack([self._sampled(i, run)[1] for i, run in enumerate(runs)])

    def residuals(self, x, states, runs: Sequence[Run]) -> np.ndarray:
        """All rows, weighted; samples first, priors last."""
        gaps = [(run.states[-1] - s) / self.scale for run, s in zip(runs, states[1:])]
        loops = [self._loops(s[: self.stepper.nv])[0] for s in states]
        samples, priors = self._rows(x, runs)
        rows = [samples, *(gap / self.gap for gap in gaps)]
        return np.concatenate([*rows, *(c / self._loop_scale for c in loops), priors])

    def _rows(self, x, runs: Sequence) -> tuple[np.ndarray, np.ndarray]:
        """The weighted rows of the samples, and those of the priors."""
        y = (self.predicted(runs) - self.y) / self.sigma
        priors = [(x[i] - p) / std for i, p, std in self._priors]
        return np.nan_to_num(y).ravel(), np.array(priors)

    @property
    def _priors(self) -> list[tuple[int, float, float]]:
        prior = self.problem.prior
        found = [(i, p) for i, p in enumerate(self.parameters) if p.name in prior]
        return [(i, p.first, prior[p.name]) for i, p in found]

    @property
    def _loop_scale(self) -> float:
        sizes = [np.abs([loop.p_AP, loop.p_BQ]).max() for loop in self.model.loops]
        return 1e-4 * max([1e-6, *sizes])

    def jacobian(self, x, states, runs: Sequence[Run]) -> np.ndarray:
        """Derivative of :meth:`residuals` in (x, states), exact."""
        nv, n, size = self.stepper.nv, len(x), 2 * self.stepper.nv
        rate = self._driven(x, self.steps)[1]
        samples, gaps, loops = [], [], []

        def placed(D: np.ndarray, i: int) -> np.ndarray:
            """Derivatives in (s_i, x) among those in all."""
            out = np.zeros((*D.shape[:-1], n + states.size))
            out[..., :n] = D[..., size:]
            out[..., n + i * size : n + (i + 1) * size] = D[..., :size]
            return out

        for i, ((a, b), run) in enumerate(zip(pairwise(self.at[self.edges]), runs)):
            turned = np.zeros((*run.inputs.shape, size + n))
            turned[:, run.inputs.shape[1] - len(run.slopes) :, :nv] = run.slopes
            if (late := self._delay) is not None:
                turned[:, :, size + late] = self.parameters[late].scale * rate[a:b]
            D = self.stepper.sensitivities(x, run, self.steps[a:b], turned)
            at, _, C = self._sampled(i, run)
            samples.append(placed(C @ D[at], i) / self.sigma[:, None])
            if i < len(states) - 1:
                gap = placed(D[-1], i)
                gap[:, n + (i + 1) * size :][:, :size] -= np.eye(size)
                gaps.append(gap / (self.gap * self.scale[:, None]))
            C = self._loops(states[i, :nv])[1]
            loops.append(placed(np.pad(C / self._loop_scale, ((0, 0), (0, nv + n))), i))
        J = np.concatenate(samples)
        J[np.isnan(self.y)] = 0.0
        priors = [np.eye(J.shape[2])[i] / std for i, _, std in self._priors]
        return np.vstack([J.reshape(-1, J.shape[2]), *gaps, *loops, *priors])

    # --- steps ---

    def step(self, k: int) -> Stop | None:
        """One step of Gauss-Newton with Levenberg's damping."""
        if np.isinf(self.cost):
            runs = self.run(self.x, self.states)
            self.r = self.residuals(self.x, self.states, runs)
            if not np.isfinite(cost := float(self.r @ self.r)):
                raise NoSolution("a segment from the first guess does not stay finite")
            self.runs, self.cost, self.J, self._tries = runs, cost, None, 0
        if self.J is None:
            self.J = self.jacobian(self.x, self.states, self.runs)
            self.H, self.g = self.J.T @ self.J, self.J.T @ self.r
        n, diagonal = len(self.x), np.diag(self.H)
        root = np.sqrt(diagonal + 1e-12 * diagonal.max())
        H = self.H / np.outer(root, root) + self.damping * np.eye(len(root))
        d = -np.linalg.solve(H, self.g / root) / root
        least = 1e-3 * np.array([p.first for p in self.parameters])
        x = np.maximum(self.x + d[:n], least)
        states, cost = self.states + d[n:].reshape(self.states.shape), np.inf
        try:
            runs = self.run(x, states)
            r = self.residuals(x, states, runs)
            cost = float(r @ r)
        except NoSolution:  # too far
            pass
        self._tries += 1
        if cost < self.cost:
            small = self.cost - cost < 1e-7 * self.cost
            self.x, self.states, self.runs, self.r = x, states, runs, r
            self.cost, self.J = cost, None
            self.damping = max(self.damping / 10, 1e-12)
        else:
            small = self.damping > 1e3 or -self.g @ d < 1e-7 * self.cost
            self.damping = max(10 * self.damping, 1e-9)
        return self._next_round() if small or self._tries >= TRIES else None

    def _next_round(self) -> Stop | None:
        later = [gap for gap in GAPS if gap < self.gap]
        if not later:
            self.done = True
            return Stop(Verdict.SUCCESS, "the fit has converged")
        off = self.predicted(self.runs) - self.y
        self.sigma = np.maximum(np.sqrt(np.nanmean(off**2, axis=0)), self.least)
        self.gap, self.cost, self.damping = later[0], np.inf, 1e-6
        return None


POSE = (
    *("base_position.x", "base_position.y", "base_position.z"),
    *("base_rpy.roll", "base_rpy.pitch", "base_rpy.yaw"),
)
"""Signals of a base that floats."""

CHANGE = 1e-3
"""Share by which a parameter of a skin is changed for a derivative."""

_UNITS = {
    "youngs_modulus": "Pa",
    "stiffness_damping": "s",
    "density": "kg/m^3",
    **{f"servo.{name}": unit for name, unit in SERVO.items()},
}


class SkinnedFit(Fit):
    """That of a robot in its skin, in all tetrahedra: one run without segments.

    It starts at rest, with its joints where they were measured first. Derivatives are
    differences between runs. The torques of its servos are signals too.
    """

    def __init__(self, problem: Identification, data: Measured):
        self.problem, self.model, self.time = problem, problem.model, data.time
        # Its steps take targets without a delay.
        gains = [name for name in SERVO if name != "delay"]
        check_names("entry of servo of a robot in its skin", problem.servo, gains)
        servo = {f"servo.{name}": value for name, value in problem.servo.items()}
        self._given = {**problem.model.parameters, **servo}
        self._skinned = robot = load_skinned(problem.model).with_parameters(self._given)
        self.robot, joints = robot.robot, robot.joints
        units = {name: _UNITS[name.partition(":")[0]] for name in robot.parameters}
        choices = {name: (v, units[name]) for name, v in robot.parameters.items()}
        self._choose(chosen_parameters(choices, problem.fit, 1e-3))
        self._floats = floats(robot.model)
        pose = {name: "m" if name[-1] in "xyz" else "rad" for name in POSE}
        others = pose if self._floats else {}
        others |= {f"torque.{name}": "N m" for name in joints}
        places = enumerate(others.items(), robot.plant.num_multibody_states())
        others = {name: (unit, at) for at, (name, unit) in places}
        self._signals(data, joint_signals(robot.plant) | others)
        self._targets = []
        for name in joints:
            target = data.column(self.robot, "rad", "target", name)
            if target is None or not np.isfinite(target).all():
                raise InvalidInput(f"the data needs target.{name} at every sample")
            self._targets.append(target)
        # Without gaps two rounds are enough: the first finds what noise there is.
        self.states, self.gap = np.zeros((1, 1)), GAPS[-2]

    def run(self, x, states, parts: int = 1) -> list[np.ndarray]:
        """The signals at the samples (T, n), in one list."""
        given = dict(self._given)
        for parameter, value in zip(self.parameters, x):
            given |= parameter.values(value)
        robot = self._skinned.with_parameters(given)
        span, longest = np.ptp(self.time), self.problem.time_step or 5e-3
        count = parts * int(np.ceil(span / longest - 1e-3))
        how = {"friction": given.get("friction", SkinSimulation.friction)}
        problem = SkinSimulation(duration=span, time_step=span / count, **how)
        stepper = build_stepper(problem, robot)
        state = stepper.start(self._first(robot, on_ground(problem, robot)))
        times = np.linspace(self.time[0], self.time[-1], count + 1)
        targets = [np.interp(times, self.time, target) for target in self._targets]
        first, *others = np.transpose(targets)
        pull = robot.skin.servos.stiffness * (first - robot.joint_positions(state.q))
        pull = np.clip(pull, -robot.effort_limits, robot.effort_limits)
        rows = [self._row(robot, state, pull)]
        for target in others:
            result = stepper.step(state, servo=robot.servo(target))
            if not result.converged:
                raise NoSolution(result.message)
            state = result.state
            rows.append(self._row(robot, state, result.torques))
        rows = np.array(rows)
        if self._floats:  # as read_measured has them
            turns = slice(-len(targets) - 3, -len(targets))
            rows[:, turns] = np.unwrap(rows[:, turns], axis=0)
        return [np.column_stack([np.interp(self.time, times, y) for y in rows.T])]

    def _first(self, robot: SkinnedRobot, q: np.ndarray | None) -> np.ndarray:
        """The positions at the start: where the robot stands or rests, with its joints,
        and the place and heading of its base, as they were measured."""
        q = robot.rest_positions if q is None else q
        first = {name: y for name, y in zip(self.names, self.y[0]) if np.isfinite(y)}
        if self._floats:
            x, y, z, roll, pitch, yaw = self._pose(robot, q)
            p_WB = first.get(POSE[0], x), first.get(POSE[1], y), z
            rpy = RollPitchYaw(roll, pitch, first.get(POSE[5], yaw))
            robot.robot.set_base_pose(robot.context, RigidTransform(rpy, p_WB))
            q = robot.plant.GetPositions(robot.context)
        q = q.copy()
        for name, at in zip(self.names, self.places):
            if name.startswith("position."):
                q[at] = first.get(name, q[at])
        return q

    def _pose(self, robot: SkinnedRobot, q: np.ndarray) -> np.ndarray:
        """The base's pose, as :data:`POSE` (6,) [m, rad], with the robot at q."""
        robot.plant.SetPositions(robot.context, q)
        base = base_body(robot.plant)
        X_WB = robot.plant.EvalBodyPoseInWorld(robot.context, base)
        rpy = X_WB.rotation().ToRollPitchYaw().vector()
        return np.concatenate([X_WB.translation(), rpy])

    def _row(self, robot: SkinnedRobot, state, torques: np.ndarray) -> np.ndarray:
        """q, v, the pose of a base that floats, and torques."""
        pose = self._pose(robot, state.q) if self._floats else []
        return np.concatenate([state.q, state.v, pose, torques])

    def predicted(self, runs: Sequence[np.ndarray]) -> np.ndarray:
        """The measured signals at the samples (T, ny)."""
        return runs[0][:, list(self.places)]

    def residuals(self, x, states, runs: Sequence[np.ndarray]) -> np.ndarray:
        """All rows, weighted; samples first, priors last."""
        return np.concatenate(self._rows(x, runs))

    def jacobian(self, x, states, runs: Sequence[np.ndarray]) -> np.ndarray:
        """Derivative of :meth:`residuals` in x, and zeros for its one state."""
        r, columns = self.residuals(x, states, runs), []
        for change in CHANGE * np.eye(len(x)):
            moved = self.run(x + change, states)
            columns.append((self.residuals(x + change, states, moved) - r) / CHANGE)
        return np.column_stack([*columns, np.zeros(len(r))])


@timed("build")
def identify(problem: Identification, *, progress: Progress | None = None) -> Result:
    """Finds the parameters; returns what was reached even when cut short.

    The result is a success if the fit has converged, the segments join, and what is
    left is noise.

    Args:
        problem: what to find, and from what.
        progress: called as progress("fit", steps, most).

    Raises:
        UnknownName: for a parameter that the model does not have; lists those it has.
        FileProblem, InvalidInput: for data that cannot be used.
        NoSolution: when it ended before its first step.
    """
    model = loaded(problem.model)
    kind = SkinnedFit if os.path.isfile(skin_path(model.path)) else Fit
    fit = kind(replace(problem, model=model), read_measured(problem.data))
    limit, most = problem.time_limit, len(GAPS) * TRIES
    end = run_steps(fit.step, most, stage="fit", progress=progress, time_limit=limit)
    return result_of(fit, end)
