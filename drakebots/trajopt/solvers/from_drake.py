"""A MathematicalProgram read back into a program of blocks.

Nonlinear bindings must come from :func:`lower`: their blocks are found again
and keep their exact Hessians. Whatever Drake knows by coefficients becomes
blocks of its own, one for all bindings of the same sparsity:

    A x    b'x    x'Q x/2 + b'x + c

so that a lowered program may lose bindings and gain bounds, variables, linear
and quadratic costs and constraints before it is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from pydrake.solvers import MathematicalProgram
from pydrake.symbolic import Variable

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Block, Group, Program, Term
from drakebots.trajopt.solvers.mathematical_program import Key, Origin, key_of

_REFUSED = (
    "l2norm_costs",
    "lorentz_cone_constraints",
    "rotated_lorentz_cone_constraints",
    "exponential_cone_constraints",
    "positive_semidefinite_constraints",
    "linear_matrix_inequality_constraints",
    "linear_complementarity_constraints",
)


@dataclass(frozen=True)
class ReadBack:
    """A program in the order of a MathematicalProgram's decision variables.

    Attributes:
        program: the blocks; its rows are the bindings' rows.
        rows: positions of a binding's rows.
    """

    program: Program
    rows: dict[object, np.ndarray]


def read_back(prog: MathematicalProgram) -> ReadBack:
    """The program of blocks behind a MathematicalProgram.

    Raises:
        InvalidInput: for a binding without a block, by its name, for bindings
            lowered in scaled variables or moved to other variables, and for
            variables that are not continuous.
    """
    return _Reader(prog).read()


class _Reader:
    def __init__(self, prog: MathematicalProgram):
        self.prog = prog
        self.variables = prog.decision_variables()
        self.position = {v.get_id(): i for i, v in enumerate(self.variables)}
        self.terms: list[Term] = []
        self.costs: list[Term] = []
        self.rows: dict[object, np.ndarray] = {}
        self.count = 0
        self.labels: list[str] = []
        self.lower, self.upper, self.scale = [], [], []
        # By kind and sparsity: (block, columns, rows, coefficients).
        self.patterns: dict[tuple, tuple[Block, list, list, list]] = {}

    def read(self) -> ReadBack:
        prog = self.prog
        for variable in self.variables:
            if variable.get_type() != Variable.Type.CONTINUOUS:
                raise InvalidInput(f"variable {variable} is not continuous")
        for kind in _REFUSED:
            for binding in getattr(prog, kind)():
                raise _refusal(binding)
        self._lowered()
        for binding in (
            *prog.linear_constraints(),
            *prog.linear_equality_constraints(),
        ):
            evaluator = binding.evaluator()
            A = evaluator.get_sparse_A().tocoo()
            rows = self._new_rows(
                binding, evaluator.lower_bound(), evaluator.upper_bound()
            )
            self._linear(A, self._columns(binding), rows)
        for binding in prog.quadratic_constraints():
            e = binding.evaluator()
            rows = self._new_rows(binding, e.lower_bound(), e.upper_bound())
            self._quadratic(e.Q(), e.b(), 0.0, self._columns(binding), rows)
        for binding in prog.linear_costs():
            e = binding.evaluator()
            n = len(e.a())
            self._quadratic(
                np.zeros((n, n)), e.a(), e.b(), self._columns(binding), None
            )
        for binding in prog.quadratic_costs():
            e = binding.evaluator()
            self._quadratic(e.Q(), e.b(), e.c(), self._columns(binding), None)
        for (kind, *_), (block, columns, rows, data) in self.patterns.items():
            where = None if kind == "cost" else np.array(rows)
            ones = np.ones(block.num_rows)
            term = Term(block, np.array(columns), where, ones, np.array(data))
            (self.costs if where is None else self.terms).append(term)
        program = Program(
            "MathematicalProgram",
            {"x": self._variables()},
            {"rows": self._group("rows", self.labels, *self._stacked())},
            tuple(self.terms),
            tuple(self.costs),
        )
        program.check()
        return ReadBack(program, self.rows)

    def _stacked(self):
        parts = (self.lower, self.upper, self.scale)
        return [np.concatenate(p) if p else np.zeros(0) for p in parts]

    @staticmethod
    def _group(name, labels, lower, upper, scale) -> Group:
        return Group(name, 0, 1, tuple(labels), lower[None], upper[None], scale)

    def _variables(self) -> Group:
        n = len(self.variables)
        low, high, scale = np.full(n, -np.inf), np.full(n, np.inf), np.ones(n)
        for binding in self.prog.bounding_box_constraints():
            columns, e = self._columns(binding), binding.evaluator()
            np.maximum.at(low, columns, e.lower_bound())
            np.minimum.at(high, columns, e.upper_bound())
        for index, value in self.prog.GetVariableScaling().items():
            scale[index] = value
        return self._group(
            "x", [v.get_name() for v in self.variables], low, high, scale
        )

    def _columns(self, binding) -> np.ndarray:
        return np.array([self.position[v.get_id()] for v in binding.variables()], int)

    def _new_rows(self, binding, lower, upper, scale=None) -> np.ndarray:
        rows = self.count + np.arange(len(lower))
        scale = np.ones(len(lower)) if scale is None else scale
        self.count += len(lower)
        self.rows[binding] = rows
        name = _name(binding)
        self.labels += [f"{name}[{i}]" for i in range(len(lower))]
        self.lower.append(lower * scale)
        self.upper.append(upper * scale)
        self.scale.append(scale)
        return rows

    # ------------------------------------------------------------- blocks
    def _lowered(self) -> None:
        """The blocks of nonlinear bindings, in as many terms as they had."""
        rows: dict[Origin, np.ndarray] = {}
        uses: dict[Origin, dict[int, list[int]]] = {}
        prog = self.prog
        for binding in (*prog.generic_constraints(), *prog.generic_costs()):
            key = key_of(binding.evaluator())
            if not isinstance(key, Key):
                raise _refusal(binding)
            self._check(binding, key)
            origin = key.origin
            target = rows.setdefault(origin, np.full(origin.program.num_rows, -1))
            if key.rows is None:
                term, use = key.cost
                uses.setdefault(origin, {}).setdefault(term, []).append(use)
                continue
            if (target[key.rows] >= 0).any():
                raise InvalidInput(
                    f"{_name(binding)} is in the program twice; remove one"
                )
            scale = origin.program.row_scale[key.rows]
            e = binding.evaluator()
            target[key.rows] = self._new_rows(
                binding, e.lower_bound(), e.upper_bound(), scale
            )
        for origin, target in rows.items():
            position = np.array([self.position.get(i, -1) for i in origin.variables])
            target = np.append(target, -1)  # for rows that were of no interest
            for term in origin.program.terms:
                where = target[term.rows]
                kept = (where >= 0).any(axis=1)
                if kept.any():
                    self.terms.append(_part(term, kept, position, where[kept]))
            for number, which in uses.get(origin, {}).items():
                term = origin.program.costs[number]
                self.costs.append(_part(term, np.array(which), position, None))

    def _check(self, binding, key: Key) -> None:
        if key.origin.scaled:
            raise InvalidInput(
                f"{_name(binding)} was lowered in scaled variables; use "
                "lower(program) without scaled"
            )
        ids = [v.get_id() for v in binding.variables()]
        if ids != [key.origin.variables[i] for i in key.columns]:
            raise InvalidInput(
                f"{_name(binding)} was moved to other variables; lower a program that "
                "has it there"
            )

    def _linear(self, A, columns: np.ndarray, rows: np.ndarray) -> None:
        m, n = A.shape
        i, j = A.row, A.col
        signature = ("rows", "linear", m, n, i.tobytes(), j.tobytes())
        if signature not in self.patterns:
            x, a = ca.SX.sym("x", n), ca.SX.sym("a", len(i))
            y = [ca.SX(0) for _ in range(m)]
            for k, (row, column) in enumerate(zip(i.tolist(), j.tolist())):
                y[row] += a[k] * x[column]
            block = self._block("linear", x, ca.vertcat(*y), a)
            self.patterns[signature] = (block, [], [], [])
        self._use(signature, columns, rows, A.data)

    def _quadratic(self, Q, b, c, columns, rows) -> None:
        n = len(b)
        i, j = np.nonzero(np.triu(Q + Q.T))
        kind = "cost" if rows is None else "rows"
        signature = (kind, "quadratic", n, i.tobytes(), j.tobytes())
        if signature not in self.patterns:
            x, a = ca.SX.sym("x", n), ca.SX.sym("a", len(i) + n + 1)
            y = a[len(i) + n] + ca.dot(a[len(i) : len(i) + n], x)
            for k, (row, column) in enumerate(zip(i.tolist(), j.tolist())):
                y += a[k] * x[row] * x[column]
            block = self._block(f"quadratic_{kind}", x, y, a)
            self.patterns[signature] = (block, [], [], [])
        factor = np.where(i == j, 0.5, 1.0)
        data = np.concatenate([factor * (Q + Q.T)[i, j] / 2, b, [c]])
        self._use(signature, columns, rows, data)

    def _block(self, name: str, x: ca.SX, y: ca.SX, data: ca.SX) -> Block:
        name = f"{name}_{len(self.patterns)}"
        return Block(name, {"x": x}, {name: y}, data)

    def _use(self, signature, columns, rows, data) -> None:
        _, all_columns, all_rows, all_data = self.patterns[signature]
        all_columns.append(columns)
        all_rows.append(rows)
        all_data.append(data)


def _part(term: Term, kept: np.ndarray, position: np.ndarray, rows) -> Term:
    """Some uses of a term, at the variables' positions in another program."""
    columns = position[term.columns[kept]]
    return replace(term, columns=columns, rows=rows, data=term.data[kept])


def _name(binding) -> str:
    """What a person calls a binding."""
    name = binding.evaluator().get_description()
    if name:
        return name
    variables: Sequence = binding.variables()
    some = ", ".join(str(v) for v in variables[:3])
    return f"a binding of {some}{', ...' if len(variables) > 3 else ''}"


def _refusal(binding) -> InvalidInput:
    return InvalidInput(
        f"{_name(binding)} has no block and so no exact Hessian; add it to "
        "the program before lower(), or use SnoptSolver or IpoptSolver"
    )
