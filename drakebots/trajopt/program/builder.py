"""Build a program from variables, rows and blocks.

b = ProgramBuilder("name")
x = b.add_variables("x", knots, ["a", "b"], lower=0.0)
b.cost("effort", {"x": x.indices}, lambda x: ca.sumsqr(x))
program = b.build()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput, check_names
from drakebots.trajopt.program.block import Block
from drakebots.trajopt.program.program import Group, Program, Term


class ProgramBuilder:
    """Collects variables, rows and blocks; `build` makes the program."""

    compiles = True
    """Whether the program's large blocks are compiled."""

    def __init__(self, name: str):
        self.name = name
        self._variables: dict[str, Group] = {}
        self._rows: dict[str, Group] = {}
        self._terms: list[Term] = []
        self._costs: list[Term] = []

    def add_variables(self, name: str, count: int, labels, **bounds) -> Group:
        """Adds a group of variables; `bounds` are lower, upper, scale, units."""
        return self._add(self._variables, name, count, labels, bounds)

    def add_rows(self, name: str, count: int, labels, **bounds) -> Group:
        """Adds a group of rows, which blocks add to; bounds as for variables."""
        return self._add(self._rows, name, count, labels, bounds)

    def equalities(self, name: str, count: int, labels, **how) -> np.ndarray:
        """Indices of new rows that must be zero; `how` are scale and units."""
        return self.add_rows(name, count, labels, lower=0.0, upper=0.0, **how).indices

    def _add(self, groups, name, count, labels, bounds) -> Group:
        if name in groups:
            raise InvalidInput(f"{name} exists already; choose another name")
        labels = tuple(labels)
        shape = (count, len(labels))
        start = sum(g.size for g in groups.values())
        scale = _spread(f"scale of {name}", bounds.pop("scale", 1.0), shape[1:])
        units = bounds.pop("units", "1")
        low = _spread(f"lower of {name}", bounds.pop("lower", -np.inf), shape)
        high = _spread(f"upper of {name}", bounds.pop("upper", np.inf), shape)
        if np.isnan(low).any() or np.isnan(high).any():
            raise InvalidInput(f"bounds of {name} are not numbers")
        if not ((scale > 0) & np.isfinite(scale)).all():
            raise InvalidInput(f"scale of {name} must be > 0, got {scale.min():g}")
        groups[name] = Group(name, start, count, labels, low, high, scale, units)
        return groups[name]

    def __getitem__(self, name: str) -> Group:
        check_names("variables", [name], self._variables)
        return self._variables[name]

    def bound(self, name: str, knot, lower=None, upper=None, labels=None) -> None:
        """Tightens the bounds of variables at a knot, or a slice of knots."""
        group = self[name]
        items = slice(None)
        if labels is not None:
            check_names(name, labels, group.labels)
            items = [group.labels.index(label) for label in labels]
        if lower is not None:
            group.lower[knot, items] = np.maximum(group.lower[knot, items], lower)
        if upper is not None:
            group.upper[knot, items] = np.minimum(group.upper[knot, items], upper)

    def add_term(
        self,
        block: Block,
        inputs: Mapping[str, np.ndarray],
        rows: Mapping[str, np.ndarray],
        *,
        signs: Mapping[str, float] | None = None,
        data: np.ndarray | None = None,
    ) -> None:
        """Uses a block K times.

        Args:
            block: the block.
            inputs: positions of the variables of each input (K, n), see
                `Group.indices`.
            rows: positions of the rows of each group of the block's rows (K, m).
            signs: factors of the block's groups of rows, 1 by default.
            data: constants (K, num_data).
        """
        columns = self._columns(block, inputs)
        K = len(columns)
        where, factor = [], []
        for name, row in block.rows.items():
            at = np.atleast_2d(rows[name])
            if at.shape[1] != row.numel():
                raise InvalidInput(
                    f"block {block.name}: {name} has {row.numel()} entries, and "
                    f"{at.shape[1]} rows or labels for them"
                )
            where.append(np.broadcast_to(at, (K, row.numel())))
            factor.append(np.full(row.numel(), (signs or {}).get(name, 1.0)))
        signs, data = np.concatenate(factor), _data(block, data, K)
        self._terms.append(Term(block, columns, np.hstack(where), signs, data))

    def add_cost(self, block: Block, inputs, *, data=None) -> None:
        """Adds a block's rows to the objective, K times."""
        columns = self._columns(block, inputs)
        data = _data(block, data, len(columns))
        self._costs.append(Term(block, columns, None, np.ones(block.num_rows), data))

    def cost(
        self,
        name: str,
        inputs: Mapping[str, np.ndarray],
        function: Callable[..., ca.SX],
    ) -> None:
        """Adds the cost function(**inputs) for every row of the inputs' positions."""
        inputs, symbols = _symbols(inputs)
        value = ca.SX(function(**symbols))
        self.add_cost(Block(name, symbols, {name: value}), inputs)

    def constraint(
        self,
        name: str,
        inputs: Mapping[str, np.ndarray],
        function: Callable[..., ca.SX],
        *,
        lower=-np.inf,
        upper=np.inf,
        labels: Sequence[str] | None = None,
        scale: float = 1.0,
    ) -> None:
        """Adds lower <= function(**inputs) <= upper for every row of positions."""
        inputs, symbols = _symbols(inputs)
        value = ca.SX(function(**symbols))
        labels = labels or [str(i) for i in range(value.numel())]
        count = max(len(v) for v in inputs.values())
        rows = self.add_rows(name, count, labels, lower=lower, upper=upper, scale=scale)
        self.add_term(Block(name, symbols, {name: value}), inputs, {name: rows.indices})

    def difference(self, after: np.ndarray, before: np.ndarray, rows: np.ndarray):
        """Adds x[after] - x[before] to rows, each (K, n)."""
        n = after.shape[1]
        a, b = ca.SX.sym("a", n), ca.SX.sym("b", n)
        block = Block(f"difference_{n}", {"a": a, "b": b}, {"difference": a - b})
        self.add_term(block, {"a": after, "b": before}, {"difference": rows})

    def _columns(self, block: Block, inputs) -> np.ndarray:
        missing = set(block.inputs) ^ set(inputs)
        if missing:
            raise InvalidInput(
                f"block {block.name}: inputs {', '.join(sorted(missing))} do not match"
            )
        parts, size = [], sum(group.size for group in self._variables.values())
        for name, symbol in block.inputs.items():
            part = np.atleast_2d(np.asarray(inputs[name]))
            if part.shape[1] != symbol.numel():
                raise InvalidInput(
                    f"block {block.name}: input {name} has {symbol.numel()} entries, "
                    f"got {part.shape[1]}"
                )
            if not np.isin(part, np.arange(size)).all():
                raise InvalidInput(
                    f"block {block.name}: input {name} needs positions of variables, "
                    f"whole numbers of 0 to {size - 1}; take indices of their groups"
                )
            parts.append(part.astype(int))
        K = max(len(part) for part in parts)
        what = f"block {block.name}: input"
        return np.hstack([_spread(what, p, (K, p.shape[1]), int) for p in parts])

    def build(self) -> Program:
        """The program.

        Raises:
            InvalidInput: for bounds that exclude each other, by name.
        """
        groups = dict(self._variables), dict(self._rows)
        terms = tuple(self._terms), tuple(self._costs)
        program = Program(self.name, *groups, *terms, self.compiles)
        program.check()
        for group in (*groups[0].values(), *groups[1].values()):
            for array in (group.lower, group.upper, group.scale):
                array.setflags(write=False)
        return program


def _symbols(inputs) -> tuple[dict[str, np.ndarray], dict[str, ca.SX]]:
    """Positions (K, n) by name, and a symbol (n,) for each."""
    inputs = {name: np.atleast_2d(value) for name, value in inputs.items()}
    symbols = {name: ca.SX.sym(name, v.shape[1]) for name, v in inputs.items()}
    return inputs, symbols


def _spread(what: str, value, shape: tuple[int, ...], of: type = float) -> np.ndarray:
    """A copy of a value, in the shape that it must fit."""
    try:
        return np.broadcast_to(value, shape).astype(of)
    except ValueError as error:
        got = "x".join(map(str, np.shape(value)))
        size = "x".join(map(str, shape))
        raise InvalidInput(f"{what} must be one number or {size}, got {got}") from error


def _data(block: Block, data, K: int) -> np.ndarray:
    size = block.d.shape[0]
    if data is None:
        data = np.zeros((K, 0))
    data = np.broadcast_to(np.atleast_2d(np.asarray(data, float)), (K, size))
    if not np.isfinite(data).all():
        raise InvalidInput(f"block {block.name}: constants are not finite")
    return data
