"""A nonlinear program made of blocks, as a value to print, evaluate and solve.

    minimise    sum_c f_c(x[I_c]; d_c)
    subject to  lower <= sum_t S_t r_t(x[I_t]; d_t) <= upper
                x_lower <= x <= x_upper

Every sum runs over uses of blocks: I_t picks the variables of one knot or interval, and
S_t adds its rows to named rows of the program (so that two neighbouring intervals may
contribute to one row).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from drakebots.core.errors import FileProblem, InvalidInput, check_names, one_line
from drakebots.core.files import replacing
from drakebots.trajopt.program.block import Block
from drakebots.trajopt.program.machine import many

ADDED = "added"
"""Name of the last group, of variables that a user added: checkpoints leave them out,
since they follow from the others."""


@dataclass(frozen=True)
class Group:
    """A named group of variables or rows: `count` knots with `labels` each.

    Attributes:
        name: name of the group.
        start: position of the first entry.
        count: number of knots or intervals.
        labels: names of the entries of one knot.
        lower, upper: bounds (count, len(labels)).
        scale: typical sizes (len(labels),) by which solvers' entries are divided.
        units: unit of the entries, for display.
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
        label = self.labels[item]
        return f"{self.name}{which}" + (f".{label}" if label else "")


@dataclass(frozen=True)
class Term:
    """A block used K times.

    Attributes:
        block: the block.
        columns: positions of the inputs of each use (K, num_inputs).
        rows: positions of the rows that it adds to (K, num_rows), -1 where a row
            is left out; None for a cost.
        signs: factors of its rows (num_rows,).
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
    """A nonlinear program, made by a :class:`.builder.ProgramBuilder`.

    Attributes:
        name: name of the program in reports.
        variables, rows: groups by name, in the order of their positions.
        terms: the terms that add to the rows.
        costs: the terms that add to the objective.
        x_lower, x_upper: bounds of the variables (num_variables,).
        lower, upper: bounds of the rows (num_rows,).
        x_scale, row_scale: typical sizes of the variables and of the rows.
        compiles: whether large blocks are compiled. It takes tens of seconds, once for
            a model, which a program that is solved in a hundred iterations does not
            win back.
    """

    name: str
    variables: Mapping[str, Group]
    rows: Mapping[str, Group]
    terms: tuple[Term, ...]
    costs: tuple[Term, ...]
    compiles: bool = True

    @property
    def num_variables(self) -> int:
        """Length of x."""
        return sum(g.size for g in self.variables.values())

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(g.size for g in self.rows.values())

    x_lower = cached_property(lambda self: _gather(self.variables, "lower"))
    x_upper = cached_property(lambda self: _gather(self.variables, "upper"))
    lower = cached_property(lambda self: _gather(self.rows, "lower"))
    upper = cached_property(lambda self: _gather(self.rows, "upper"))
    x_scale = cached_property(lambda self: _gather(self.variables, "scale"))
    row_scale = cached_property(lambda self: _gather(self.rows, "scale"))

    def view(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The parts of x by name, each (count, labels)."""
        x = self._check(x)
        groups = self.variables.items()
        return {n: x[g.start : g.stop].reshape(g.shape) for n, g in groups}

    def pack(self, parts: Mapping[str, np.ndarray], default=None) -> np.ndarray:
        """x from its parts by name; other parts come from `default` or are 0.

        Raises:
            UnknownName: for a part that is not among the variables.
            InvalidInput: for a part of the wrong shape, or not finite.
        """
        x = np.zeros(self.num_variables) if default is None else np.array(default)
        for name, values in parts.items():
            check_names("variables", [name], self.variables)
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

    def _check(self, x, said: str = "x") -> np.ndarray:
        x = np.asarray(x, float).ravel()
        if x.shape != (self.num_variables,):
            raise InvalidInput(
                f"{self.name} has {self.num_variables} variables, {said} has {len(x)}; "
                "make it with program.pack"
            )
        return x

    def check_guess(self, x0: np.ndarray) -> np.ndarray:
        """The guess as an array of floats.

        Raises:
            InvalidInput: for a wrong number of values, or one that is not finite.
        """
        x0 = self._check(x0, "the guess")
        bad = np.flatnonzero(~np.isfinite(x0))
        if len(bad):
            group = next(g for g in self.variables.values() if bad[0] < g.stop)
            raise InvalidInput(f"the guess of {group.label(bad[0])} is {x0[bad[0]]}")
        return x0

    def objective(self, x: np.ndarray) -> float:
        """The cost at x."""
        x = self._check(x)
        return float(sum(_evaluate(term, x).sum() for term in self.costs))

    def cost_table(self, x: np.ndarray) -> dict[str, float]:
        """The contributions to the cost, by the name of the block's row."""
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
        total = sp.csr_matrix((self.num_rows, self.num_variables))
        for term in self.terms:
            i, j = term.block.jacobian_pattern
            nonzeros = _map(term, "jacobian", x)[1] * term.signs[i]
            rows, columns = term.rows[:, i], term.columns[:, j]
            kept = rows >= 0
            entries = nonzeros[kept], (rows[kept], columns[kept])
            total = total + sp.coo_matrix(entries, total.shape).tocsr()
        return total

    def violations(self, x: np.ndarray) -> dict[str, tuple[float, str]]:
        """Worst violation of each group of rows and bounds, and its label."""
        x, out = self._check(x), {}
        g = self.values(x)
        for groups, values in ((self.rows, g), (self.variables, x)):
            for name, group in groups.items():
                if not np.isfinite([group.lower, group.upper]).any():
                    continue
                part = values[group.start : group.stop].reshape(group.shape)
                excess = np.maximum(group.lower - part, part - group.upper)
                excess = np.where(np.isnan(part), np.inf, excess)
                worst = int(np.argmax(excess))
                label = group.label(group.start + worst)
                out[name] = (float(max(excess.ravel()[worst], 0.0)), label)
        return out

    def residuals(self, x: np.ndarray) -> dict[str, float]:
        """Worst violation by the name of the worst entry, largest first."""
        worst = {label: value for value, label in self.violations(x).values()}
        return dict(sorted(worst.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        terms = (*self.terms, *self.costs)
        jacobian = sum(len(t.block.jacobian_pattern[0]) * t.count for t in self.terms)
        hessian = sum(len(t.block.hessian_pattern[0]) * t.count for t in terms)
        lines = [
            f"{self.name}: {self.num_variables} variables, {self.num_rows} rows, "
            f"{jacobian} Jacobian and {hessian} Hessian nonzeros"
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
        for term in terms:
            what = ", ".join(term.block.rows)
            kind = "cost" if term.rows is None else "rows"
            lines.append(
                f"    {term.block.name:<16} {term.count:>4} uses, {kind} {what}"
            )
        return "\n".join(lines)

    def check(self) -> None:
        """Refuses bounds that exclude each other, before any solver runs.

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
    """The bounds or scales of all entries of all groups."""
    parts = [np.broadcast_to(getattr(g, what), g.shape) for g in groups.values()]
    return np.concatenate([p.ravel() for p in parts]) if parts else np.zeros(0)


def _map(term: Term, kind: str, x: np.ndarray, *more: np.ndarray) -> list[np.ndarray]:
    """A block's function at all its uses; each array has a row per use."""
    block = term.block
    # A value alone is not worth compiling for.
    function = block.evaluator if kind == "value" else block.functions[kind]
    K = term.count
    args = (x[term.columns].T, term.data.T, *(m.T for m in more))
    outputs = many(function, K)(*args)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [np.asarray(o).reshape(-1, K).T for o in outputs]


def _evaluate(term: Term, x: np.ndarray) -> np.ndarray:
    return _map(term, "value", x)[0]


# --- checkpoints ------------------------------------------------------------------
#
# The best iterate of a running solver on disk, to resume from.


def _signature(program: Program) -> str:
    own = (g for name, g in program.variables.items() if name != ADDED)
    groups = {g.name: list(g.shape) for g in own}
    return json.dumps({"name": program.name, "variables": groups})


def save_checkpoint(
    path: str | Path, program: Program, x: np.ndarray, **more: np.ndarray | str
) -> None:
    """Writes an iterate atomically (NumPy .npz).

    Args:
        path: file to write.
        program: program of which x is an iterate.
        x: the iterate (num_variables,).
        more: further contents of the file, by name; see :func:`read_arrays`.

    Raises:
        FileProblem: when the file cannot be written.
    """
    if ADDED in program.variables:
        x = x[: program.variables[ADDED].start]
    with replacing(path) as part, open(part, "wb") as file:
        np.savez(file, x=np.asarray(x), program=_signature(program), **more)


def read_checkpoint(path: str | Path) -> tuple[np.ndarray, str]:
    """The iterate of a checkpoint, and the signature of its program.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    arrays = read_arrays(path)
    return arrays["x"], str(arrays["program"])


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Everything a checkpoint holds, by name: "x", "program" (the program's signature,
    a JSON text), and what was saved with them.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            names = ("x", "program", *file.files)
            arrays = {name: np.array(file[name]) for name in names}
            return arrays | {"x": arrays["x"].astype(float)}
    except FileNotFoundError:
        raise FileProblem(path, "no such checkpoint; check the name") from None
    except Exception as error:  # of NumPy, zipfile and zlib
        why = f"is not a checkpoint, or damaged ({one_line(error)})"
        advice = "give a file that --checkpoint wrote, or start without --resume"
        raise FileProblem(path, f"{why}; {advice}") from error


def program_name(path: str | Path) -> str:
    """The name of a checkpoint's program.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    try:
        return str(json.loads(read_checkpoint(path)[1])["name"])
    except (ValueError, KeyError, TypeError) as error:
        why = "is not a checkpoint; its program has no name"
        raise FileProblem(path, why) from error


def belongs(path: str | Path, program: Program) -> bool:
    """Whether a checkpoint is one of this program.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    x, found = read_checkpoint(path)
    return found == _signature(program) and x.shape == (program.num_variables,)


def load_checkpoint(path: str | Path, program: Program) -> np.ndarray:
    """The iterate of a checkpoint of the same program.

    Raises:
        FileProblem: for a file that is missing, damaged, or of a program with
            other variables.
    """
    if not belongs(path, program):
        raise FileProblem(
            path,
            f"belongs to another program than {program.name}; start without --resume",
        )
    return read_checkpoint(path)[0]
