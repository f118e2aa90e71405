"""A motion of a user's model in one line, as a plan or as a MathematicalProgram.

    result = walk("my_robot.urdf", forward=0.3).plan()

    program = walk("my_robot.urdf", forward=0.3).mathematical_program()
    program.prog.AddConstraint(program["q.trunk_z"][5] >= 0.35)       # SI
    for pitch in program["q.trunk_pitch"]:
        program.prog.AddCost(sin(pitch) ** 2)
    result = ExactIpoptSolver().Solve(program.prog)        # or SnoptSolver, IpoptSolver
    plan = program.plan(result)                            # as from .plan()

The program is the one that the planner solves: by the motion's gait, with given
contacts, or contact-implicit with `contacts="free"`. Its decision variables are in the
model's natural units (:mod:`.standing`); what a program shows by name is in SI, as
symbolic expressions of them, which costs and constraints of Drake's may use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from pydrake.solvers import MathematicalProgram, MathematicalProgramResult

from drakebots.core.errors import UnknownName
from drakebots.core.run import Verdict
from drakebots.model import Model, load
from drakebots.results import Result
from drakebots.trajopt.contact_implicit import PenaltyStage
from drakebots.trajopt.locomotion.attempts import (
    GAIT_OPTIONS,
    OPTIONS,
    Attempt,
    gait_attempt,
    judged,
)
from drakebots.trajopt.locomotion.gait import Gait, gait_program, plan_gait
from drakebots.trajopt.locomotion.kinematic_guess import kinematic_guess
from drakebots.trajopt.locomotion.plan import (
    has_gait,
    of_use,
    plan_locomotion,
    result_of,
)
from drakebots.trajopt.locomotion.problem import LocomotionProblem
from drakebots.trajopt.locomotion.program import (
    first_guess,
    input_units,
    locomotion_program,
)
from drakebots.trajopt.locomotion.standing import Standing, stand
from drakebots.trajopt.solvers import ExactIpoptSolver, Solution, lower
from drakebots.trajopt.solvers.mathematical_program import Lowered


@dataclass(frozen=True)
class Motion(LocomotionProblem):
    """A locomotion problem that plans itself, or becomes a MathematicalProgram."""

    def plan(self, **options) -> Result:
        """Plans it, see :func:`.plan.plan_locomotion`, which takes the options."""
        return plan_locomotion(self, **options)

    def mathematical_program(self) -> MotionProgram:
        """Its program, with its first guess, for Drake's solvers and ours.

        A walk's stride that takes several cycles is the program of one of them.

        Raises:
            As :func:`.plan.plan_locomotion`.
        """
        model = self.model if isinstance(self.model, Model) else load(self.model)
        standing = stand(model, terrain=self.terrain, pose=self.pose)
        gait, options = None, OPTIONS
        if has_gait(self):
            gait, options = plan_gait(self, standing), GAIT_OPTIONS
            _, program = gait_program(gait, standing)
            guess = program.pack(kinematic_guess(gait, standing))
        else:
            _, program = locomotion_program(self, standing)
            guess = first_guess(self, standing, program)
        lowered = lower(program)
        lowered.prog.SetInitialGuess(lowered.x, guess)
        for name, value in options.items():
            lowered.prog.SetSolverOption(ExactIpoptSolver.id(), name, value)
        return MotionProgram(self, model, standing, lowered, gait)


def walk(model: str | Path | Model, **fields) -> Motion:
    """A walk: a cycle that repeats `forward` [m] further on.

    Args:
        model: a name, a path, or a loaded model.
        fields: other fields of :class:`.problem.LocomotionProblem`.

    Raises:
        InvalidInput, UnknownName: for fields out of range, or that contradict each
            other.
    """
    return Motion(model, "walk", **fields)


def hop(model: str | Path | Model, **fields) -> Motion:
    """A hop of a `height` [m]; arguments as for :func:`walk`."""
    return Motion(model, "hop", **fields)


def turn(model: str | Path | Model, **fields) -> Motion:
    """A `turn` [rad] on the spot, from rest to rest; arguments as for :func:`walk`."""
    return Motion(model, "turn", **fields)


def goal(model: str | Path | Model, **fields) -> Motion:
    """A motion from rest to rest; arguments as for :func:`walk`."""
    return Motion(model, "goal", **fields)


@dataclass(frozen=True, eq=False)
class MotionProgram:
    """A motion as a MathematicalProgram; see the module.

    Attributes:
        motion: the motion.
        model: its model, loaded.
        standing: the model on its ground, in its natural units.
        lowered: the MathematicalProgram and the program it came from. Its decision
            variables `lowered.x` are in natural units.
        gait: the gait; None with free contacts.
    """

    motion: Motion = field(repr=False)
    model: Model = field(repr=False)
    standing: Standing = field(repr=False)
    lowered: Lowered = field(repr=False)
    gait: Gait | None = field(repr=False)

    @property
    def prog(self) -> MathematicalProgram:
        """The MathematicalProgram, with its first guess; more may be added to it."""
        return self.lowered.prog

    @cached_property
    def units(self) -> dict[str, np.ndarray]:
        """SI value of one unit of the variables of each group (number of labels,)."""
        unit, robot = self.standing.scaling, self.standing.system.robot
        given = {
            "h": unit.time,
            "q": robot.position_units(),
            "v0": robot.velocity_units(),
            "u": input_units(self.standing),
            "gam": unit.force,
            "beta": unit.force,
            "psi": unit.velocity,
            "eta": unit.velocity,
            "lam": unit.force,
            "s": unit.torque,
        }
        groups = self.lowered.program.variables.items()
        return {n: np.broadcast_to(given[n], (len(g.labels),)) for n, g in groups}

    def __getitem__(self, name: str) -> np.ndarray:
        """Decision variables in SI, as symbolic expressions.

        Args:
            name: a group, as "q" (knots, coordinates), "u" (intervals, inputs), "h"
                (intervals, 1) or "gam" (intervals, feet), or one column of it, as
                "q.trunk_z" (knots,). `print(program.lowered.program)` lists the groups.

        Raises:
            UnknownName: for another name.
        """
        group, at = self._find(name)
        # Drake's expressions are NaNs to the processor, of which NumPy warns.
        with np.errstate(invalid="ignore"):
            return (self.lowered.view()[group] * self.units[group])[at]

    def values(self, result: MathematicalProgramResult, name: str) -> np.ndarray:
        """The numbers of a result, in SI, by the names of :meth:`__getitem__`."""
        group, at = self._find(name)
        x = result.GetSolution(self.lowered.x)
        return (self.lowered.view(x)[group] * self.units[group])[at]

    def _find(self, name: str) -> tuple[str, tuple | slice]:
        group, _, label = name.partition(".")
        groups = self.lowered.program.variables
        if group not in groups:
            raise UnknownName("variables", group, groups)
        if not label:
            return group, slice(None)
        labels = groups[group].labels
        if label not in labels:
            raise UnknownName(f"variable of {group}", label, labels)
        return group, (slice(None), labels.index(label))

    def plan(self, result: MathematicalProgramResult) -> Result:
        """The plan that a solver's answer gives, judged like every plan.

        Costs and constraints that were added are not among its residuals.
        """
        program = self.lowered.program
        x = np.asarray(result.GetSolution(self.lowered.x), float)
        ok, name = result.is_success(), result.get_solver_id().name()
        status = str(result.get_solution_result()).rpartition(".")[2]
        solution = Solution(
            program,
            x,
            Verdict.SUCCESS if ok else Verdict.FAILED,
            f"{name} ended with {status}",
            program.residuals(x),
            {},
            {},
            name,
            status,
        )
        if self.gait is not None:
            attempt = gait_attempt(self.gait, self.standing, solution)
        else:
            implicit, _ = locomotion_program(self.motion, self.standing)
            slack = float(solution.parts["s"].max())
            weight = self.motion.weights.slack[0]
            objective = solution.objective
            stage = PenaltyStage(weight, ok, status, 0, slack, objective)
            attempt = Attempt(implicit, judged(implicit, solution), (stage,))
        attempt = of_use(attempt, self.motion, self.standing)
        return result_of(self.motion, self.model, self.standing, [attempt], solver=name)
