"""The program of a planning problem in Drake's terms, open to terms of a user's own.

    program = problem.mathematical_program()
    program.prog.AddLinearConstraint(program["q.trunk_z"][5] >= 0.35)     # SI
    head = program.position(5, "head")
    program.prog.AddCost((head[2] - 0.4) ** 2)
    result = program.solve(solver="snopt")     # or SnoptSolver().Solve(program.prog)
    program.values(result, "q.trunk_z")
    plan = program.plan(result)                # as of the planner

Every planner's problem has it. Its decision variables are scaled; what it shows by name
is in SI, as symbolic expressions of them, which costs and constraints of Drake's may
use. Functions of bodies, as `position`, are new variables with rows that define them,

    y - f(x) = 0

so that what is asked of them is as simple as it is said, and exact derivatives of f
reach every solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import casadi as ca
import numpy as np
from pydrake.solvers import MathematicalProgram, MathematicalProgramResult

from drakebots.core.checks import array, check_value
from drakebots.core.errors import InvalidInput, UnknownName, check_names
from drakebots.core.run import Verdict
from drakebots.core.units import SI, Scaling
from drakebots.multibody import Twin
from drakebots.trajopt.program import ADDED, Group, Program, ProgramBuilder
from drakebots.trajopt.solvers import (
    TOLERANCE,
    ExactIpoptSolver,
    ProgramResult,
    ReadBack,
    Solution,
    lower,
    name_of,
    options_of,
    scaled_violation,
    solve,
)
from drakebots.trajopt.solvers.drake_solvers import IDS
from drakebots.trajopt.solvers.mathematical_program import Lowered

Plan = TypeVar("Plan")
"""What a planner makes: a Result, or one step of one."""

Add = Callable[["PlanProgram"], None]
"""Adds a user's own terms to the `prog` of a program."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """The robot whose motion is the variables q of a program.

    Attributes:
        twin: its plant as expressions.
        scaling: the plant's units.
        points: points of bodies by name: the body and p_BP in plant units (3,).
        spatial: function of a knot that gives m, m p_BBcm and the inertia about Bo of
            bodies there, as for `Twin.centroidal`; None for those of the plant.
    """

    twin: Twin
    scaling: Scaling = SI
    points: Mapping[str, tuple[str, np.ndarray]] = field(default_factory=dict)
    spatial: Callable[[int], Callable[[int], tuple | None]] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class PlanProgram(Generic[Plan]):
    """A planning problem's program; see the module.

    Attributes:
        program: the program in blocks.
        guess: its first guess (num_variables,).
        units: SI value of one unit of the variables of each group, a number or one for
            each label; 1 where there is none.
        finish: function that makes the plan from an answer.
        options: options of IPOPT that the planner gives.
        names: names of the field for groups: "voltage" for "u".
        bodies: the robot; None where no body moves.
        derived: further quantities that are linear in groups, by name: their labels,
            and the function of `program[...]` that gives them (count, labels, ...).
    """

    program: Program
    guess: np.ndarray
    units: Mapping[str, np.ndarray | float]
    finish: Callable[[Solution], Plan]
    options: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    bodies: Bodies | None = None
    derived: Mapping[str, tuple[Sequence[str], Callable]] = field(default_factory=dict)
    _functions: dict[str, np.ndarray] = field(default_factory=dict, init=False)

    @property
    def lowered(self) -> Lowered:
        """The MathematicalProgram as the planner poses it; its decision variables
        `lowered.x` are scaled."""
        return self._lowered[0]

    @cached_property
    def _lowered(self) -> tuple[Lowered, dict[Any, bytes]]:
        """`lowered`, and the planner's bindings with what may be changed in them."""
        lowered = lower(self.program, scaled=True)
        lowered.prog.SetInitialGuess(lowered.x, lowered.values(self.guess))
        for name, value in self.options.items():
            lowered.prog.SetSolverOption(ExactIpoptSolver.id(), name, value)
        return lowered, {b: _stamp(b) for b in _bindings(lowered.prog)}

    @property
    def prog(self) -> MathematicalProgram:
        """The MathematicalProgram, with its first guess; more may be added to it."""
        return self.lowered.prog

    # ------------------------------------------------------------------ names
    def __getitem__(self, name: str) -> np.ndarray:
        """Decision variables in SI, as symbolic expressions.

        Args:
            name: a group, as "q" (knots, coordinates), "u" (intervals, inputs), "h"
                (intervals, 1) or "foot_force" (intervals, feet, 3; of skinned robots
                knots, 3 feet), or one column of it, as "q.trunk_z" (knots,).
                `print(program.program)` lists the groups.

        Raises:
            UnknownName: for another name.
        """
        # Drake's expressions are NaNs to the processor, of which NumPy warns.
        with np.errstate(invalid="ignore"):
            return self._named(name, self.lowered.x * self.lowered.unit)

    def values(self, result: MathematicalProgramResult, name: str) -> np.ndarray:
        """The numbers of a result, in SI, by the names of :meth:`__getitem__`."""
        return self._named(name, self._physical(result))

    def _physical(self, result: MathematicalProgramResult) -> np.ndarray:
        x = np.asarray(result.GetSolution(self.lowered.x), float)
        return self.lowered.physical(x)

    def _named(self, name: str, x: np.ndarray) -> np.ndarray:
        """A group of physical variables, or a column of it, in SI."""
        word, _, label = name.partition(".")
        groups, group = self.program.variables, self.names.get(word, word)
        if group in self.derived:
            labels, function = self.derived[group]
            values = function(lambda other: self._named(other, x))
        elif group in groups:
            found = groups[group]
            labels, values = found.labels, x[found.start : found.stop]
            unit = np.broadcast_to(self.units.get(group, 1.0), found.shape)
            values = values.reshape(found.shape) * unit
        else:
            raise UnknownName("variables", word, [*self.names, *self.derived, *groups])
        if not label:
            return values
        check_names(f"variable of {word}", [label], labels)
        return values[:, list(labels).index(label)]

    # ------------------------------------------------------- functions of bodies
    def position(
        self, knot: int, point: str, p_BP: np.ndarray | None = None
    ) -> np.ndarray:
        """p_WP (3,) of a point at a knot [m]: of a foot or another named point, or of a
        body's frame.

        Args:
            knot: number of the knot; counted from the end where it is negative.
            point: name of the point or the body.
            p_BP: another point of the body [m].

        Raises:
            UnknownName: for a point that does not exist.
            InvalidInput: for a knot outside, or a point that is no three numbers.
        """
        robot, name = self._robot(), f"position({{}}, {point})"
        length, bodies = robot.scaling.length, robot.twin.body_names
        body, place = robot.points.get(point, (point, np.zeros(3)))
        if p_BP is not None:
            place = check_value("p_BP", p_BP, array((3,), "m")) / length
            body, name = point, f"position({{}}, {point} at {[*map(float, p_BP)]})"
        if body not in bodies:
            raise UnknownName("point or body", point, [*robot.points, *bodies])

        def moved(q: ca.SX) -> ca.SX:
            return robot.twin.point(q, body, place)

        return self._defined(name, knot, moved, ("q",), length)

    def com(self, knot: int) -> np.ndarray:
        """p_WCcm (3,) of the robot at a knot [m]."""
        if "com" in self.names:
            return self["com"][self._knot(knot)]

        def place(q: ca.SX) -> ca.SX:
            return self._robot().twin.centroidal(q, 0 * q)[0]

        unit = self._robot().scaling.length
        return self._defined("com({})", knot, place, ("q",), unit)

    def angular_momentum(self, knot: int) -> np.ndarray:
        """The robot's angular momentum about its centre of mass (3,) at a knot, or in
        the interval that begins there where velocities are difference quotients
        [kg m^2/s]. A skin turns with its links."""
        robot = self._robot()
        spatial = None if robot.spatial is None else robot.spatial(self._knot(knot))

        def turning(q: ca.SX, v: ca.SX) -> ca.SX:
            return robot.twin.centroidal(q, v, spatial)[1]

        def across(q: ca.SX, after: ca.SX, h: ca.SX) -> ca.SX:
            return turning((q + after) / 2, (after - q) / h)

        name, size = "angular_momentum({})", robot.scaling.of(mass=1, length=2, time=-1)
        if "v" in self.program.variables:
            return self._defined(name, knot, turning, ("q", "v"), size)
        return self._defined(name, knot, across, ("q", "after", "h"), size)

    def _robot(self) -> Bodies:
        if self.bodies is None:
            raise InvalidInput(f"{self.program.name}: no body moves in this program")
        return self.bodies

    def _knot(self, knot: int, intervals: bool = False) -> int:
        """A knot counted from the first, or that at which an interval begins.

        Raises:
            InvalidInput: for one outside.
        """
        count = self.program.variables["q"].count
        found, last = knot + count * (knot < 0), count - 1 - intervals
        if not 0 <= found <= last:
            raise InvalidInput(
                f"{self.program.name}: no such knot as {knot}; give one of 0 to {last}"
            )
        return found

    def _defined(
        self,
        name: str,
        knot: int,
        function: Callable[..., ca.SX],
        given: Sequence[str],
        unit: float,
    ) -> np.ndarray:
        """New variables that are a function of others, as expressions in SI.

        Args:
            name: their name in reports, with {} for the knot.
            knot: the knot.
            function: from groups at the knot to their values.
            given: those groups; "after" is q at the next knot.
            unit: SI value of one unit.
        """
        at = self._knot(knot, intervals="after" in given)
        name = name.format(at)
        if name in self._functions:
            return self._functions[name]
        b, columns = ProgramBuilder(name), []
        for key in given:
            group = self.program.variables["q" if key == "after" else key]
            b.add_variables(key, 1, group.labels, scale=group.scale)
            columns.append(group.indices[at + (key == "after")])
        b.add_variables(name, 1, "xyz")
        inputs = {key: b[key].indices for key in (*given, name)}
        b.constraint(
            name.partition("(")[0],
            {"y" if key == name else key: index for key, index in inputs.items()},
            lambda y, **others: y - function(**others),
            lower=0.0,
            upper=0.0,
            labels="xyz",
        )
        program, prog = b.build(), self.prog
        new = prog.NewContinuousVariables(3, name)
        known = np.concatenate(columns)
        variables = np.concatenate([self.lowered.x[known], new])
        lower(program, scaled=True, into=(prog, variables))
        x = np.append(self.guess[known], np.zeros(3))
        prog.SetInitialGuess(new, -program.values(x))
        with np.errstate(invalid="ignore"):
            return self._functions.setdefault(name, new * unit)

    # ---------------------------------------------------------------- solving
    def solve(
        self,
        solver: str = "exact",
        *,
        options: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> ProgramResult:
        """Solves the program with all that was added to it.

        Args:
            solver: one of :data:`drakebots.trajopt.solvers.SOLVERS`.
            options: options of the solver, which override the planner's.
            how: `time_limit`, `progress` and more of :func:`.solvers.solve`.

        Raises:
            InvalidInput: for an added term without exact derivatives, by name, or an
                option that the solver does not know.
            UnknownName: for an unknown solver.
        """
        mine = self._set(solver)
        how |= {"solver": solver, "options": {**mine, **(options or {})}}
        values, cost, solution = self._solved(how)
        return ProgramResult.of(solution, self.prog, values, cost)

    def _set(self, solver: str) -> Mapping[str, Any]:
        """Options that `prog` has for a solver."""
        if solver in IDS:
            return self.prog.solver_options().options.get(IDS[solver].name(), {})
        return options_of(self.prog, None, ExactIpoptSolver.id().name())

    def _solved(self, how: Mapping[str, Any]) -> tuple[np.ndarray, float, Solution]:
        """Values of all decision variables, the cost with all that was added, and the
        answer to the planner's own program."""
        program, unit = self._extended()
        prog, size = self.prog, self.program.num_variables
        guess = np.nan_to_num(prog.initial_guess()) * unit
        x = prog.decision_variables()
        # Without callbacks, larger bindings are faster for Drake's solvers.
        lowered = replace(self.lowered, program=program, x=x, unit=unit)
        lowered = lowered if prog.visualization_callbacks() else None
        answer = solve(program, guess, lowered=lowered, **how)
        values = answer.x / unit
        x = self.lowered.physical(values[:size])
        solution = replace(answer, program=self.program, x=x, multipliers=None)
        return values, answer.objective, self._judged(solution, values)

    def _extended(self) -> tuple[Program, np.ndarray]:
        """The program with all that was added to `prog`, and the physical size of one
        unit of each of its decision variables.

        It is the planner's own and more; where something of the planner's was changed
        or removed, all of it is read back.
        """
        (lowered, posed), prog, base = self._lowered, self.prog, self.program
        found = {b: _stamp(b) for b in _bindings(prog) if b in posed}
        if found != posed:
            read = ReadBack(prog)
            groups = self._variables(read.program, {})
            return replace(read.program, name=base.name, variables=groups), read.unit
        more, variables = MathematicalProgram(), prog.decision_variables()
        more.AddDecisionVariables(variables)
        for binding in prog.GetAllConstraints():
            if binding not in posed:
                more.AddConstraint(binding)
        for binding in prog.GetAllCosts():
            if binding not in posed:
                more.AddCost(binding)
        unit = np.ones(len(variables))
        unit[: base.num_variables] = lowered.unit
        start, own = base.num_rows, ReadBack(more, unit).program
        rows = {**base.rows, ADDED: replace(own.rows["rows"], name=ADDED, start=start)}
        terms, variables = [*base.terms], self._variables(own, base.variables)
        for term in own.terms:
            places = np.where(term.rows < 0, -1, term.rows + start)
            terms.append(replace(term, rows=places))
        costs = *base.costs, *own.costs
        parts = variables, rows, tuple(terms), costs
        extended = Program(base.name, *parts, base.compiles)
        extended.check()
        return extended, unit

    def _variables(self, read: Program, kept: Mapping[str, Group]) -> dict[str, Group]:
        """The planner's groups within the bounds that were read and those that are
        kept, and the variables that were added."""
        (all_,), size = read.variables.values(), self.program.num_variables
        variables = {}
        for name, group in self.program.variables.items():
            at = slice(group.start, group.stop)
            low = all_.lower[0, at].reshape(group.shape)
            high = all_.upper[0, at].reshape(group.shape)
            if name in kept:
                low, high = np.maximum(low, group.lower), np.minimum(high, group.upper)
            variables[name] = replace(group, lower=low, upper=high)
        if len(all_.labels) > size:
            low, high = all_.lower[:, size:], all_.upper[:, size:]
            labels, scale = all_.labels[size:], all_.scale[size:]
            variables[ADDED] = Group(ADDED, size, 1, labels, low, high, scale)
        return variables

    def _judged(self, solution: Solution, values: np.ndarray) -> Solution:
        """The solution, judged by the planner's own rows and by what was added.

        Args:
            solution: an answer to the planner's program.
            values: values of all decision variables of `prog`.
        """
        (_, posed), added = self._lowered, {}
        for binding in self.prog.GetAllConstraints():
            if binding not in posed:
                y, rows = self.prog.EvalBinding(binding, values), binding.evaluator()
                excess = np.maximum(rows.lower_bound() - y, y - rows.upper_bound())
                worst = np.nan_to_num(excess, nan=np.inf).max(initial=0.0)
                name = name_of(binding)
                added[name] = max(added.get(name, 0.0), float(worst))
        found = {**self.program.residuals(solution.x), **added}
        found = dict(sorted(found.items(), key=lambda item: -item[1]))
        own = scaled_violation(self.program, solution.x)
        solution = replace(solution, residuals=MappingProxyType(found))
        if not solution.ok or max(own, *added.values(), 0.0) <= TOLERANCE:
            return solution
        name, worst = next(iter(found.items()))
        message = f"{solution.message}; {name} is violated by {worst:.2g}"
        return replace(solution, verdict=Verdict.FAILED, message=message)

    # ------------------------------------------------------------------ plans
    def plan(self, result: MathematicalProgramResult | np.ndarray) -> Plan:
        """The plan that an answer of any solver is, judged like every plan, and by the
        constraints that were added where all decision variables are in the answer.

        An answer that is not feasible is a failed plan with its worst rows.

        Args:
            result: an answer, or values of the decision variables `lowered.x` or of
                all of `prog`.

        Raises:
            InvalidInput: for another number of values.
        """
        size, count = self.program.num_variables, self.prog.num_vars()
        if isinstance(result, ProgramResult):
            return self.finish(result.get_solver_details())
        if isinstance(result, np.ndarray):
            if result.shape not in ((size,), (count,)):
                raise InvalidInput(
                    f"{self.program.name}: a plan needs the {size} values of lowered.x "
                    f"or the {count} of prog, got an array of shape {result.shape}"
                )
            x, name, ok = self.lowered.physical(result[:size]), "none", True
            status = "values from elsewhere"
        else:
            x, name = self._physical(result), result.get_solver_id().name()
            status = str(result.get_solution_result()).rpartition(".")[2]
            ok = result.is_success()
        x = np.where(np.isfinite(x), x, self.guess)
        given = {"solver": name, "status": status, "ok": ok}
        solution = Solution.of_point(self.program, x, **given)
        values = result if isinstance(result, np.ndarray) else result.get_x_val()
        if len(values) == count:
            solution = self._judged(solution, values)
        return self.finish(solution)


def _bindings(prog: MathematicalProgram) -> list:
    """All constraints and costs of a program."""
    return [*prog.GetAllConstraints(), *prog.GetAllCosts()]


def _stamp(binding) -> bytes:
    """All that can be changed in a binding: its bounds and coefficients."""
    names = ("lower_bound", "upper_bound", "GetDenseA", "a", "b", "Q", "c")
    found = (getattr(binding.evaluator(), name, None) for name in names)
    return b"".join(np.asarray(part()).tobytes() for part in found if part)
