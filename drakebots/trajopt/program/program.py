"""A nonlinear program made of blocks, as a value to print, evaluate and solve.

    minimise    sum_c f_c(x[I_c]; d_c)
    subject to  lower <= sum_t S_t r_t(x[I_t]; d_t) <= upper
                x_lower <= x <= x_upper

Every sum runs over uses of blocks: I_t picks the variables of one knot or
interval, S_t adds its rows into named rows of the program (so that a row may
gather what two neighbouring intervals contribute).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.trajopt.program.block import Block


@dataclass(frozen=True)
class Group:
    """Variables or rows with one name: `count` of them with `labels` each.

    Attributes:
        name: of the group.
        start: position of the first entry.
        count: knots or intervals.
        labels: of the entries of one knot.
        lower, upper: bounds (count, len(labels)).
        scale: typical size of a variable, or of a row (count-independent,
            (len(labels),)); solvers see entries divided by it.
        units: of the entries, for people.
    """

    name: str
    start: int
    count: int
    labels: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    units: str = "1"

    @property
    def shape(self) -> tuple[int, int]:
        """(count, number of labels)."""
        return self.count, len(self.labels)

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.count * len(self.labels)

    @property
    def indices(self) -> np.ndarray:
        """Positions of the entries, (count, len(labels))."""
        return self.start + np.arange(self.size).reshape(self.shape)

    @property
    def stop(self) -> int:
        """One past the last position."""
        return self.start + self.size

    def label(self, index: int) -> str:
        """The full name of the entry at a position."""
        knot, item = divmod(index - self.start, len(self.labels))
        which = f"[{knot}]" if self.count > 1 else ""
        return f"{self.name}{which}" + (
            f".{self.labels[item]}" if self.labels[item] else ""
        )


@dataclass(frozen=True)
class Term:
    """A block used K times.

    Attributes:
        block: the function.
        columns: positions of its inputs for each use (K, num_inputs).
        rows: positions of the rows it adds to (K, num_rows), -1 where a row
            is of no interest; None for a cost.
        signs: factor of each of its rows (num_rows,).
        data: constants of each use (K, num_data).
    """

    block: Block
    columns: np.ndarray
    rows: np.ndarray | None
    signs: np.ndarray
    data: np.ndarray

    @property
    def count(self) -> int:
        """Number of uses K."""
        return len(self.columns)


@dataclass(frozen=True)
class Program:
    """See the module. `program_builder` builds one.

    Attributes:
        name: for reports and file names.
        variables, rows: groups in order of their positions.
        terms: what adds to the rows.
        costs: what adds to the objective.
    """

    name: str
    variables: Mapping[str, Group]
    rows: Mapping[str, Group]
    terms: tuple[Term, ...]
    costs: tuple[Term, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def num_variables(self) -> int:
        """Length of x."""
        return sum(g.size for g in self.variables.values())

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(g.size for g in self.rows.values())

    @cached_property
    def x_lower(self) -> np.ndarray:
        """Lower bounds of the variables."""
        return _gather(self.variables, "lower")

    @cached_property
    def x_upper(self) -> np.ndarray:
        """Upper bounds of the variables."""
        return _gather(self.variables, "upper")

    @cached_property
    def lower(self) -> np.ndarray:
        """Lower bounds of the rows."""
        return _gather(self.rows, "lower")

    @cached_property
    def upper(self) -> np.ndarray:
        """Upper bounds of the rows."""
        return _gather(self.rows, "upper")

    @cached_property
    def x_scale(self) -> np.ndarray:
        """Typical sizes of the variables."""
        return _gather_scale(self.variables)

    @cached_property
    def row_scale(self) -> np.ndarray:
        """Typical sizes of the rows."""
        return _gather_scale(self.rows)

    def view(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of x by name, each (count, labels)."""
        x = self._check(x)
        return {n: x[g.start : g.stop].reshape(g.shape) for n, g in self._items()}

    def _items(self):
        return self.variables.items()

    def pack(self, parts: Mapping[str, np.ndarray], default=None) -> np.ndarray:
        """x from parts by name; what is left out comes from `default` or is 0.

        Raises:
            UnknownName: for a part that is not a group of variables.
            InvalidInput: for a part of the wrong shape, or not finite.
        """
        x = np.zeros(self.num_variables) if default is None else np.array(default)
        for name, values in parts.items():
            if name not in self.variables:
                raise UnknownName("variables", name, self.variables)
            group = self.variables[name]
            values = np.asarray(values, float)
            try:
                values = np.broadcast_to(values, group.shape)
            except ValueError as error:
                raise InvalidInput(
                    f"{name} must have shape {group.shape}, got {values.shape}"
                ) from error
            if not np.isfinite(values).all():
                raise InvalidInput(f"{name} has values that are not finite")
            x[group.start : group.stop] = values.ravel()
        return x

    def _check(self, x) -> np.ndarray:
        x = np.asarray(x, float).ravel()
        if x.shape != (self.num_variables,):
            raise InvalidInput(
                f"{self.name} has {self.num_variables} variables, got {len(x)} values"
            )
        return x

    def objective(self, x: np.ndarray) -> float:
        """The value of the cost."""
        x = self._check(x)
        return float(sum(_evaluate(term, x).sum() for term in self.costs))

    def cost_table(self, x: np.ndarray) -> dict[str, float]:
        """The objective's parts by the name of the block's row."""
        x, out = self._check(x), {}
        for term in self.costs:
            values = _evaluate(term, x).sum(axis=0)
            start = 0
            for name, row in term.block.rows.items():
                stop = start + row.numel()
                out[name] = out.get(name, 0.0) + float(values[start:stop].sum())
                start = stop
        return out

    def values(self, x: np.ndarray) -> np.ndarray:
        """The rows at x (num_rows,)."""
        x = self._check(x)
        g = np.zeros(self.num_rows)
        for term in self.terms:
            kept = term.rows >= 0
            np.add.at(g, term.rows[kept], (term.signs * _evaluate(term, x))[kept])
        return g

    def jacobian(self, x: np.ndarray) -> sp.csr_matrix:
        """d rows / dx, sparse."""
        x = self._check(x)
        parts = []
        for term in self.terms:
            i, j = term.block.jacobian_pattern
            nonzeros = _map(term, "jacobian", x)[1] * term.signs[i]
            rows, columns = term.rows[:, i], term.columns[:, j]
            kept = rows >= 0
            parts.append(
                sp.coo_matrix(
                    (nonzeros[kept], (rows[kept], columns[kept])),
                    shape=(self.num_rows, self.num_variables),
                )
            )
        return sum((p.tocsr() for p in parts), sp.csr_matrix(parts[0].shape))

    def violations(self, x: np.ndarray) -> dict[str, tuple[float, str]]:
        """Worst violation of each group of rows and bounds, and where it is."""
        x, out = self._check(x), {}
        g = self.values(x)
        for groups, values, prefix in ((self.rows, g, ""), (self.variables, x, "")):
            for name, group in groups.items():
                part = values[group.start : group.stop].reshape(group.shape)
                excess = np.maximum(group.lower - part, part - group.upper)
                excess = np.where(np.isnan(part), np.inf, excess)
                if (
                    not np.isfinite(group.lower).any()
                    and not np.isfinite(group.upper).any()
                ):
                    continue
                worst = int(np.argmax(excess))
                label = group.label(group.start + worst)
                out[prefix + name] = (float(max(excess.ravel()[worst], 0.0)), label)
        return out

    def residuals(self, x: np.ndarray) -> dict[str, float]:
        """Worst violation by the name of the worst entry, largest first."""
        worst = {label: value for value, label in self.violations(x).values()}
        return dict(sorted(worst.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.num_variables} variables, {self.num_rows} rows, "
            f"{self.jacobian_nonzeros} Jacobian and {self.hessian_nonzeros} Hessian "
            "nonzeros"
        ]
        for title, groups in (("variables", self.variables), ("rows", self.rows)):
            lines.append(f"  {title}")
            for g in groups.values():
                low, high = np.min(g.lower), np.max(g.upper)
                lines.append(
                    f"    {g.name:<16} {g.count:>4} x {len(g.labels):<4}"
                    f" in [{low:.4g}, {high:.4g}] {g.units if g.units != '1' else ''}"
                )
        lines.append("  blocks")
        for term in (*self.terms, *self.costs):
            what = ", ".join(term.block.rows)
            kind = "cost" if term.rows is None else "rows"
            lines.append(
                f"    {term.block.name:<16} {term.count:>4} uses, {kind} {what}"
            )
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @cached_property
    def jacobian_nonzeros(self) -> int:
        """Nonzeros of all uses of the blocks."""
        return sum(len(t.block.jacobian_pattern[0]) * t.count for t in self.terms)

    @cached_property
    def hessian_nonzeros(self) -> int:
        """Upper-triangle nonzeros of all uses of the blocks."""
        return sum(
            len(t.block.hessian_pattern[0]) * t.count
            for t in (*self.terms, *self.costs)
        )

    def check(self) -> None:
        """Finds bounds that exclude each other, before any solver runs.

        Raises:
            InvalidInput: naming the first variable or row.
        """
        for groups in (self.variables, self.rows):
            for group in groups.values():
                bad = ~(group.lower <= group.upper)
                if bad.any():
                    k, i = np.argwhere(bad)[0]
                    label = group.label(group.indices[k, i])
                    raise InvalidInput(
                        f"{label}: lower bound {group.lower[k, i]:g} is above upper "
                        f"bound {group.upper[k, i]:g}; relax one of them"
                    )


def _gather(groups: Mapping[str, Group], what: str) -> np.ndarray:
    parts = [getattr(g, what).ravel() for g in groups.values()]
    return np.concatenate(parts) if parts else np.zeros(0)


def _gather_scale(groups: Mapping[str, Group]) -> np.ndarray:
    parts = [np.tile(g.scale, g.count) for g in groups.values()]
    return np.concatenate(parts) if parts else np.zeros(0)


def _map(term: Term, kind: str, x: np.ndarray, *more: np.ndarray) -> list[np.ndarray]:
    """A block's function at all its uses; arrays with a use in each row."""
    function = term.block.functions[kind]
    K = term.count
    args = (x[term.columns].T, term.data.T, *(m.T for m in more))
    outputs = function.map(K)(*args)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [np.asarray(o).reshape(-1, K).T for o in outputs]


def _evaluate(term: Term, x: np.ndarray) -> np.ndarray:
    return _map(term, "value", x)[0]
