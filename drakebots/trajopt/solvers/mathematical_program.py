"""A program as Drake's MathematicalProgram, for Drake's solvers and tools.

    lowered = lower(program)
    result = SnoptSolver().Solve(lowered.prog, program.pack(guess))
    parts = program.view(result.get_x_val())

There is one binding for each group of rows at each knot and one cost for each use of a
block, with exact derivatives, sparsity patterns and names:

    lower/rho <= (sum_t S_t r_t)/rho <= upper/rho,    x in physical units

Rows are divided by the program's row scales rho, since Drake has no scaling of rows;
variables keep their units and get `SetVariableScaling`, which SNOPT follows and IPOPT
ignores with a warning. Affine rows become linear constraints, affine costs linear and
quadratic costs quadratic ones.

Drake's solvers evaluate bindings in AutoDiffXd. An :class:`Evaluator` separates values
and derivatives, evaluates its blocks' compiled functions in double precision and
multiplies dr/dx by the seed:

    y = S r(x_local),    dy/dz = S (dr/dx) (dx/dz)

The seed dx/dz is not the identity when a program has variable scaling (SNOPT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.solvers import MathematicalProgram
from pydrake.symbolic import Variable

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.program import Block, Group, Program, Term, compile_blocks

_PROBE: ContextVar[list | None] = ContextVar("probe", default=None)


class Compute:
    """A block's functions on preallocated buffers; shared by all its uses.

    CasADi's ordinary call converts every argument, which takes about 30 us; a buffer
    uses the memory directly.
    """

    def __init__(self, block: Block):
        self.block = block
        self.w, self.d = np.zeros(block.num_inputs), np.zeros(block.d.shape[0])
        self.r = np.zeros(block.num_rows)
        self.nonzeros = np.zeros(len(block.jacobian_pattern[0]))
        self._value = self._buffer("value", [self.r])
        self._jacobian = self._buffer("jacobian", [self.r, self.nonzeros])

    def _buffer(self, kind: str, results: list[np.ndarray]):
        buffer, run = self.block.functions[kind].buffer()
        arguments = (self.w, self.d)
        for put, arrays in ((buffer.set_arg, arguments), (buffer.set_res, results)):
            for i, array in enumerate(arrays):
                if array.size:
                    put(i, memoryview(array))
        # The buffer must outlive the function that runs it.
        return run, buffer

    def value(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """r (num_rows,)."""
        self.w[:], self.d[:] = w, d
        self._value[0]()
        return self.r.copy()

    def jacobian(self, w: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """r and the nonzeros of dr/dw."""
        self.w[:], self.d[:] = w, d
        self._jacobian[0]()
        return self.r.copy(), self.nonzeros.copy()


class Use:
    """One use of a block, with its values at the last input.

    Several bindings share one use, e.g. those of the momentum at an interval's start
    and at its end: the second one finds the values computed.
    """

    def __init__(self, compute: Compute, data: np.ndarray):
        self.compute, self.data = compute, np.array(data)
        self._key, self._r, self._nonzeros = None, None, None

    def value(self, w: np.ndarray) -> np.ndarray:
        """r(w)."""
        key = w.tobytes()
        if key != self._key:
            self._r = self.compute.value(w, self.data)
            self._key, self._nonzeros = key, None
        return self._r

    def jacobian(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """r(w) and the nonzeros of dr/dw."""
        key = w.tobytes()
        if key != self._key or self._nonzeros is None:
            self._r, self._nonzeros = self.compute.jacobian(w, self.data)
            self._key = key
        return self._r, self._nonzeros


@dataclass(frozen=True)
class Part:
    """The contribution of a use to a binding with rows y and variables z.

    Attributes:
        use: the use of a block.
        take: positions of its inputs in z (num_inputs,).
        rows: those of its rows that go into y.
        targets: their rows in y.
        factors: factors of those rows: sign over row scale.
    """

    use: Use
    take: np.ndarray
    rows: np.ndarray
    targets: np.ndarray
    factors: np.ndarray


class Evaluator:
    """y(z) of a binding, in double and in AutoDiffXd.

    Args:
        parts: the contributions, which sum to y.
        num_rows, num_variables: lengths of y and z.
        scale: the parts are evaluated at scale * z (num_variables,).
        key: identifies the binding, see :func:`key_of`.
        scalar: whether y is a cost: one row, returned as a number.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        num_rows: int,
        num_variables: int,
        *,
        scale: np.ndarray | None = None,
        key: object = None,
        scalar: bool = False,
    ):
        self.parts, self.key, self.scalar = tuple(parts), key, scalar
        self.shape = num_rows, num_variables
        self.scale = np.ones(num_variables) if scale is None else scale
        self._targets = _stack([p.targets for p in parts], int)
        self._factors = _stack([p.factors for p in parts], float)
        self._picks, places, weights = [], [], []
        for part in self.parts:
            i, j = part.use.compute.block.jacobian_pattern
            # A row of a block may go to several rows of y, or to none.
            pick, which = np.nonzero(i[:, None] == part.rows[None, :])
            columns = part.take[j[pick]]
            self._picks.append(pick)
            places.append(part.targets[which] * num_variables + columns)
            weights.append(part.factors[which] * self.scale[columns])
        self._places, self._weights = _stack(places, int), _stack(weights, float)

    @property
    def pattern(self) -> list[tuple[int, int]]:
        """(row, column) of the nonzeros of dy/dz, sorted."""
        rows, columns = np.divmod(np.unique(self._places), self.shape[1])
        return list(zip(rows.tolist(), columns.tolist()))

    def value(self, z: np.ndarray) -> np.ndarray:
        """y (num_rows,)."""
        x = self.scale * z
        r = _stack([p.use.value(x[p.take])[p.rows] for p in self.parts], float)
        return np.bincount(self._targets, self._factors * r, self.shape[0])

    def jacobian(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y (num_rows,) and dy/dz (num_rows, num_variables), dense."""
        x, r, nonzeros = self.scale * z, [], []
        for part, pick in zip(self.parts, self._picks):
            values, slopes = part.use.jacobian(x[part.take])
            r.append(values[part.rows])
            nonzeros.append(slopes[pick])
        m, n = self.shape
        y = np.bincount(self._targets, self._factors * _stack(r, float), m)
        flat = np.bincount(self._places, self._weights * _stack(nonzeros, float), m * n)
        return y, flat.reshape(m, n)

    def __call__(self, z: np.ndarray):
        """y at z of floats or of AutoDiffXd; Drake calls it."""
        probe = _PROBE.get()
        if probe is not None:
            probe.append(self.key)
            return 0.0 if self.scalar else np.zeros(self.shape[0])
        if z.dtype == float:
            y = self.value(z)
            return float(y[0]) if self.scalar else y
        y, J = self.jacobian(ExtractValue(z).ravel())
        out = InitializeAutoDiff(y, _times(J, ExtractGradient(z)))
        return out[0, 0] if self.scalar else out


def key_of(evaluator) -> object | None:
    """The key of the :class:`Evaluator` behind a Drake evaluator, or None.

    Drake keeps Python functions inside C++ objects that copies of a program share and
    that have no Python attributes: only a call reaches the function.
    """
    probe: list = []
    token = _PROBE.set(probe)
    try:
        evaluator.Eval(np.zeros(evaluator.num_vars()))
    except Exception:
        # A user's function may fail at zero; it is not an Evaluator.
        return None
    finally:
        _PROBE.reset(token)
    return probe[0] if probe else None


def _times(J: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """J @ seed. Most seeds are diagonal (identity or scales): 100 times cheaper."""
    diagonal = seed.diagonal()
    square = seed.shape[0] == seed.shape[1]
    if square and np.count_nonzero(seed) == np.count_nonzero(diagonal):
        return J * diagonal
    return J @ seed


def _stack(arrays: Sequence[np.ndarray], kind) -> np.ndarray:
    if len(arrays) == 1:
        return np.asarray(arrays[0], kind)
    return np.concatenate(arrays).astype(kind) if arrays else np.zeros(0, kind)


@dataclass(frozen=True, eq=False)
class Origin:
    """Origin of the bindings of a lowered program.

    Attributes:
        program: the program that was lowered.
        variables: ids of its decision variables, in its order.
        unit: physical size of one unit of each.
    """

    program: Program
    variables: tuple[int, ...]
    unit: np.ndarray


@dataclass(frozen=True, eq=False)
class Key:
    """Identifies a nonlinear binding.

    Attributes:
        origin: the lowered program it belongs to.
        rows: positions of its rows in the program; None for a cost.
        columns: positions of its variables.
        cost: cost term and use, for a cost.
    """

    origin: Origin
    rows: np.ndarray | None
    columns: np.ndarray
    cost: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Lowered:
    """A MathematicalProgram and the program it came from.

    Attributes:
        program: the program that was lowered.
        prog: the MathematicalProgram; more may be added to it.
        x: its decision variables (num_variables,), in the program's order.
        unit: physical size of one unit of each: 1, or the program's x_scale.
        bindings: constraints by name: "dynamics[3]", "bounds of q[3]".
    """

    program: Program
    prog: MathematicalProgram
    x: np.ndarray
    unit: np.ndarray
    bindings: Mapping[str, object] = field(repr=False)

    def values(self, x: np.ndarray) -> np.ndarray:
        """Values of Drake's decision variables from physical ones."""
        return np.asarray(x, float) / self.unit

    def physical(self, values: np.ndarray) -> np.ndarray:
        """Physical values from those of Drake's decision variables."""
        return np.asarray(values, float) * self.unit

    def view(self) -> dict[str, np.ndarray]:
        """The decision variables by the program's names, (count, labels)."""
        groups = self.program.variables.items()
        return {n: self.x[g.start : g.stop].reshape(g.shape) for n, g in groups}


def lower(
    program: Program,
    *,
    scaled: bool = False,
    merged: bool = False,
    into: tuple[MathematicalProgram, np.ndarray] | None = None,
) -> Lowered:
    """Turns a program into a MathematicalProgram.

    Args:
        program: the program.
        scaled: whether the decision variables are x / x_scale, for solvers that
            ignore `SetVariableScaling` (IPOPT).
        merged: whether all rows of a knot that are not affine share a binding, which
            is faster to evaluate.
        into: a MathematicalProgram to add it to, and its decision variables in the
            program's order; None for one of its own.

    Raises:
        InvalidInput: for a row that no block adds to and whose bounds exclude zero.
    """
    return _Lowering(program, scaled, merged, into).lowered()


class _Lowering:
    """Builds the MathematicalProgram of :func:`lower`."""

    def __init__(self, program: Program, scaled: bool, merged: bool, into=None):
        self.program, self.merged = program, merged
        if into is None:
            groups = program.variables.values()
            names = [g.label(i) for g in groups for i in g.indices.flat]
            into = MathematicalProgram(), np.array([*map(Variable, names)], object)
            into[0].AddDecisionVariables(into[1])
        self.prog, self.x = into
        self.scale = program.x_scale if scaled else np.ones(len(self.x))
        ids = tuple(v.get_id() for v in self.x)
        self.origin = Origin(program, ids, self.scale)
        self.bindings: dict[str, object] = {}
        if not scaled and (program.x_scale != 1).any():
            for variable, scale in zip(self.x, program.x_scale):
                self.prog.SetVariableScaling(variable, float(scale))

    def lowered(self) -> Lowered:
        p = self.program
        compile_blocks([t.block for t in (*p.terms, *p.costs)], p.compiles)
        self.compute: dict[int, Compute] = {}
        self._bounds()
        self._rows()
        self._costs()
        return Lowered(p, self.prog, self.x, self.scale, self.bindings)

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
                bounds = low / scale, high / scale
                binding = self.prog.AddBoundingBoxConstraint(*bounds, self.x[index])
                self._name(binding, f"bounds of {_name(group, knot)}")

    def _name(self, binding, name: str, more: str = "") -> None:
        binding.evaluator().set_description(name + more)
        self.bindings[name] = binding

    # ---------------------------------------------------------------- rows
    def _rows(self) -> None:
        """Adds a binding for each group of rows at each knot, or for all of a knot's
        rows that are not affine."""
        parts = [(g, k) for g in self.program.rows.values() for k in range(g.count)]
        owner = np.repeat(np.arange(len(parts)), [len(g.labels) for g, _ in parts])
        collected: list[list] = [[] for _ in parts]
        for term in self.program.terms:
            for k, use in enumerate(self._uses(term)):
                rows = term.rows[k]
                for unit in np.unique(owner[rows[rows >= 0]]):
                    mine = np.flatnonzero((rows >= 0) & (owner[rows] == unit))
                    collected[unit].append((term, k, use, mine))
        together: dict[int, list[int]] = {}
        for unit, (group, knot) in enumerate(parts):
            alone = _are_affine(collected[unit]) or group.count == 1 or not self.merged
            key = -1 - unit if alone else knot
            together.setdefault(key, []).append(unit)
        for units in together.values():
            self._add_rows([parts[u] for u in units], [collected[u] for u in units])

    def _add_rows(self, parts: list[tuple[Group, int]], collected: list[list]) -> None:
        """Adds groups of rows at a knot as one binding.

        Args:
            parts: the groups with the knot.
            collected: (term, number of the use, use, its rows that belong here) of all
                uses that add to the rows of each.
        """
        names = [_name(group, knot) for group, knot in parts]
        for (group, knot), name, found in zip(parts, names, collected):
            low, high = group.lower[knot], group.upper[knot]
            if not found and ((low > 0).any() or (high < 0).any()):
                raise InvalidInput(
                    f"{name}: no block adds to it and 0 is out of bounds"
                )
        uses = [one for found in collected for one in found]
        if not uses:
            return
        p, rows = self.program, np.concatenate([g.indices[k] for g, k in parts])
        scale = p.row_scale[rows]
        low, high = p.lower[rows] / scale, p.upper[rows] / scale
        columns = np.unique(np.concatenate([t.columns[k] for t, k, *_ in uses]))
        order = np.argsort(rows)
        parts_of = []
        for t, k, use, mine in uses:
            targets = order[np.searchsorted(rows[order], t.rows[k][mine])]
            take, signs = np.searchsorted(columns, t.columns[k]), t.signs[mine]
            parts_of.append(Part(use, take, mine, targets, signs / scale[targets]))
        own = {"scale": self.scale[columns], "key": Key(self.origin, rows, columns)}
        evaluator = Evaluator(parts_of, len(rows), len(columns), **own)
        variables = self.x[columns]
        linear = _affine(evaluator) if _are_affine(uses) else None
        if linear is not None:
            b, A = linear
            if np.array_equal(low, high):
                binding = self.prog.AddLinearEqualityConstraint(A, low - b, variables)
            else:
                binding = self.prog.AddLinearConstraint(A, low - b, high - b, variables)
        else:
            binding = self.prog.AddConstraint(evaluator, low, high, variables)
            binding.evaluator().SetGradientSparsityPattern(evaluator.pattern)
        labels = [label for label in parts[0][0].labels if label]
        some = len(parts) == 1 and 1 < len(labels) <= 4
        more = f" ({', '.join(labels)})" if some else ""
        self._name(binding, ", ".join(names), more)

    # --------------------------------------------------------------- costs
    def _costs(self) -> None:
        """Adds one cost for each use of a block."""
        for number, term in enumerate(self.program.costs):
            what, m = term.block.name, term.block.num_rows
            for k, use in enumerate(self._uses(term)):
                columns, take = np.unique(term.columns[k], return_inverse=True)
                part = Part(use, take, np.arange(m), np.zeros(m, int), np.ones(m))
                key = Key(self.origin, None, columns, (number, k))
                own = {"scale": self.scale[columns], "key": key}
                evaluator = Evaluator([part], 1, len(columns), scalar=True, **own)
                binding = self._cost(evaluator, term, k, take, self.x[columns])
                name = f"cost {what}[{k}]" if term.count > 1 else f"cost {what}"
                binding.evaluator().set_description(name)

    def _cost(self, evaluator: Evaluator, term: Term, k: int, take, variables):
        """The binding of a cost; `take` are its inputs' positions in its variables."""
        affine = term.block.affine_rows.all()
        Q = None if affine else term.block.constant_hessian(term.data[k])
        at_zero = _affine(evaluator) if affine or Q is not None else None
        if at_zero is None:
            binding = self.prog.AddCost(evaluator, variables)
            binding.evaluator().SetGradientSparsityPattern(evaluator.pattern)
            return binding
        (c,), (b,) = at_zero
        if affine:
            return self.prog.AddLinearCost(b, c, variables)
        full = np.zeros((len(b), len(b)))
        np.add.at(full, np.ix_(take, take), Q)
        full *= np.outer(evaluator.scale, evaluator.scale)
        size = np.linalg.eigvalsh(full)
        convex = bool(size[0] >= -1e-13 * size[-1])
        return self.prog.AddQuadraticCost(full, b, c, variables, is_convex=convex)


def _name(group: Group, knot: int) -> str:
    """ "q[3]", or "slip[3].FL" of a group with one label."""
    which = f"{group.name}[{knot}]" if group.count > 1 else group.name
    label = group.labels[0] if len(group.labels) == 1 else ""
    return f"{which}.{label}" if label else which


def _are_affine(uses: list) -> bool:
    """Whether the rows that uses add are affine."""
    return all(term.block.affine_rows[mine].all() for term, _, _, mine in uses)


def _affine(evaluator: Evaluator) -> tuple[np.ndarray, np.ndarray] | None:
    """y(0) and dy/dz of an affine evaluator; None where they are not numbers."""
    b, A = evaluator.jacobian(np.zeros(evaluator.shape[1]))
    return (b, A) if np.isfinite(b).all() and np.isfinite(A).all() else None
