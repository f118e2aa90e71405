"""A program as Drake's MathematicalProgram, for Drake's solvers and tools.

There is one binding for each group of rows at each knot and one cost for each
use of a block, with derivatives by hand, sparsity patterns and names:

    lower/rho <= (sum_t S_t r_t)/rho <= upper/rho,    x in physical units

Rows are divided by the program's row scales rho, since Drake has no scaling of
rows; variables keep their units and get `SetVariableScaling`, which SNOPT
follows and IPOPT ignores with a warning. Rows that are affine become linear
constraints, affine costs linear costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from pydrake.solvers import MathematicalProgram
from pydrake.symbolic import Variable

from drakebots.errors import InvalidInput
from drakebots.trajopt.bindings import Compute, Evaluator, Part, Use
from drakebots.trajopt.block import Block, compile_blocks
from drakebots.trajopt.program import Group, Program, Term


@dataclass(frozen=True, eq=False)
class Origin:
    """Where the bindings of a lowered program come from.

    Attributes:
        program: that was lowered.
        variables: its decision variables' ids, in its order.
        scaled: whether they are x / x_scale.
    """

    program: Program
    variables: tuple[int, ...]
    scaled: bool


@dataclass(frozen=True, eq=False)
class Key:
    """What a nonlinear binding stands for.

    Attributes:
        origin: of the binding.
        rows: positions of its rows in the program; None for a cost.
        columns: positions of its variables.
        cost: (cost term, use) of a cost.
    """

    origin: Origin
    rows: np.ndarray | None
    columns: np.ndarray
    cost: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Lowered:
    """A MathematicalProgram and what it came from.

    Attributes:
        program: that was lowered.
        prog: Drake's; add to it what you like.
        x: its decision variables (num_variables,), in the program's order.
        scaled: whether they are x / x_scale instead of physical.
        bindings: constraints by name: "dynamics[3]", "bounds of q[3]".
    """

    program: Program
    prog: MathematicalProgram
    x: np.ndarray
    scaled: bool
    bindings: Mapping[str, object] = field(repr=False)

    def values(self, x: np.ndarray) -> np.ndarray:
        """Drake's decision variables from physical ones."""
        return np.asarray(x, float) / self.program.x_scale if self.scaled else x

    def physical(self, values: np.ndarray) -> np.ndarray:
        """Physical variables from Drake's."""
        values = np.asarray(values, float)
        return values * self.program.x_scale if self.scaled else values

    def view(self, variables: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The decision variables by the program's names, (count, labels)."""
        x = self.x if variables is None else variables
        groups = self.program.variables.items()
        return {n: x[g.start : g.stop].reshape(g.shape) for n, g in groups}


def lower(program: Program, *, scaled: bool = False) -> Lowered:
    """Makes a MathematicalProgram of a program.

    Args:
        program: to lower.
        scaled: take x / x_scale for decision variables, for solvers that
            ignore `SetVariableScaling` (IPOPT).

    Raises:
        InvalidInput: for a row nothing adds to and whose bounds exclude zero.
    """
    return _Lowering(program, scaled).lowered()


class _Lowering:
    def __init__(self, program: Program, scaled: bool):
        self.program, self.prog = program, MathematicalProgram()
        names = [g.label(i) for g in program.variables.values() for i in g.indices.flat]
        self.x = np.array([Variable(name) for name in names], dtype=object)
        self.prog.AddDecisionVariables(self.x)
        self.scale = program.x_scale if scaled else np.ones(len(self.x))
        ids = tuple(v.get_id() for v in self.x)
        self.origin = Origin(program, ids, scaled)
        self.bindings: dict[str, object] = {}
        if not scaled and (program.x_scale != 1).any():
            for variable, scale in zip(self.x, program.x_scale):
                self.prog.SetVariableScaling(variable, float(scale))

    def lowered(self) -> Lowered:
        p = self.program
        compile_blocks([t.block for t in (*p.terms, *p.costs)])
        self.compute: dict[int, Compute] = {}
        self._bounds()
        self._rows()
        self._costs()
        return Lowered(p, self.prog, self.x, self.origin.scaled, self.bindings)

    def _uses(self, term: Term) -> list[Use]:
        block = term.block
        if id(block) not in self.compute:
            self.compute[id(block)] = Compute(block)
        return [Use(self.compute[id(block)], d) for d in term.data]

    def _bounds(self) -> None:
        for group in self.program.variables.values():
            for knot, index in enumerate(group.indices):
                low, high = group.lower[knot], group.upper[knot]
                if not (np.isfinite(low).any() or np.isfinite(high).any()):
                    continue
                scale = self.scale[index]
                binding = self.prog.AddBoundingBoxConstraint(
                    low / scale, high / scale, self.x[index]
                )
                self._name(binding, f"bounds of {_name(group, knot)}")

    def _name(self, binding, name: str, more: str = "") -> None:
        binding.evaluator().set_description(name + more)
        self.bindings[name] = binding

    # ---------------------------------------------------------------- rows
    def _rows(self) -> None:
        p = self.program
        owner = np.repeat(
            np.arange(sum(g.count for g in p.rows.values())),
            [len(g.labels) for g in p.rows.values() for _ in range(g.count)],
        )
        collected: dict[int, list] = {}
        for term in p.terms:
            for k, use in enumerate(self._uses(term)):
                rows = term.rows[k]
                for unit in np.unique(owner[rows[rows >= 0]]):
                    mine = np.flatnonzero((rows >= 0) & (owner[rows] == unit))
                    collected.setdefault(int(unit), []).append((term, k, use, mine))
        unit = 0
        for group in p.rows.values():
            for knot in range(group.count):
                self._add_rows(group, knot, collected.get(unit, []))
                unit += 1

    def _add_rows(self, group: Group, knot: int, contributions: list) -> None:
        low, high = (b[knot] / group.scale for b in (group.lower, group.upper))
        name = _name(group, knot)
        if not contributions:
            if (low > 0).any() or (high < 0).any():
                raise InvalidInput(
                    f"{name}: no block adds to it and 0 is out of bounds"
                )
            return
        rows = group.indices[knot]
        columns = np.unique(
            np.concatenate([t.columns[k] for t, k, *_ in contributions])
        )
        parts = [
            Part(
                use,
                np.searchsorted(columns, t.columns[k]),
                mine,
                t.rows[k][mine] - rows[0],
                t.signs[mine] / group.scale[t.rows[k][mine] - rows[0]],
            )
            for t, k, use, mine in contributions
        ]
        evaluator = Evaluator(
            parts,
            len(rows),
            len(columns),
            scale=self.scale[columns],
            key=Key(self.origin, rows, columns),
        )
        variables = self.x[columns]
        affine = all(
            _affine_rows(t.block)[mine].all() for t, _, _, mine in contributions
        )
        linear = _affine(evaluator) if affine else None
        if linear is not None:
            b, A = linear
            if np.array_equal(low, high):
                binding = self.prog.AddLinearEqualityConstraint(A, low - b, variables)
            else:
                binding = self.prog.AddLinearConstraint(A, low - b, high - b, variables)
        else:
            binding = self.prog.AddConstraint(evaluator, low, high, variables)
            binding.evaluator().SetGradientSparsityPattern(evaluator.pattern)
        labels = [label for label in group.labels if label]
        more = f" ({', '.join(labels)})" if 1 < len(labels) <= 4 else ""
        self._name(binding, name, more)

    # --------------------------------------------------------------- costs
    def _costs(self) -> None:
        for number, term in enumerate(self.program.costs):
            what, m = term.block.name, term.block.num_rows
            for k, use in enumerate(self._uses(term)):
                columns, take = np.unique(term.columns[k], return_inverse=True)
                part = Part(use, take, np.arange(m), np.zeros(m, int), np.ones(m))
                evaluator = Evaluator(
                    [part],
                    1,
                    len(columns),
                    scale=self.scale[columns],
                    key=Key(self.origin, None, columns, (number, k)),
                    scalar=True,
                )
                name = f"cost {what}[{k}]" if term.count > 1 else f"cost {what}"
                variables = self.x[columns]
                affine = _affine_rows(term.block).all()
                linear = _affine(evaluator) if affine else None
                if linear is not None:
                    b, A = linear
                    binding = self.prog.AddLinearCost(A[0], b[0], variables)
                else:
                    binding = self.prog.AddCost(evaluator, variables)
                    binding.evaluator().SetGradientSparsityPattern(evaluator.pattern)
                binding.evaluator().set_description(name)


def _name(group: Group, knot: int) -> str:
    """ "q[3]", or "slip[3].FL" of a group with one label."""
    which = f"{group.name}[{knot}]" if group.count > 1 else group.name
    label = group.labels[0] if len(group.labels) == 1 else ""
    return f"{which}.{label}" if label else which


def _affine_rows(block: Block) -> np.ndarray:
    """Which rows of a block are affine in its inputs, by their expressions."""
    if "affine_rows" not in block.__dict__:
        curved = ca.which_depends(block.r, block.w, 2, True)
        block.__dict__["affine_rows"] = ~np.array(curved, bool)
    return block.__dict__["affine_rows"]


def _affine(evaluator: Evaluator) -> tuple[np.ndarray, np.ndarray] | None:
    """y(0) and dy/dz of an affine evaluator; None where they are not numbers."""
    b, A = evaluator.jacobian(np.zeros(evaluator.shape[1]))
    return (b, A) if np.isfinite(b).all() and np.isfinite(A).all() else None
