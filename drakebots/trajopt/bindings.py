"""Block uses as evaluators of a MathematicalProgram: double in, double out.

Drake's solvers evaluate bindings in AutoDiffXd. An evaluator here takes values
and derivatives apart, evaluates its blocks' compiled functions in double and
puts dr/dx times the seed back:

    y = S r(x_local),    dy/dz = S (dr/dx) (dx/dz)

The seed dx/dz is no identity when a program has variable scaling (SNOPT).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff

from drakebots.trajopt.block import Block

_PROBE: ContextVar[list | None] = ContextVar("probe", default=None)


class Compute:
    """A block's functions on preallocated buffers; shared by all its uses.

    CasADi's ordinary call converts every argument, some 30 us; a buffer takes
    the memory as it is.
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
        for put, arrays in (
            (buffer.set_arg, (self.w, self.d)),
            (buffer.set_res, results),
        ):
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
    """One use of a block. It remembers what it gave for the last input.

    Several bindings ask one use, e.g. for the momentum at an interval's start
    and at its end: the second one finds the values there.
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
    """What a use adds to a binding with rows y and variables z.

    Attributes:
        use: of a block.
        take: positions in z of its inputs (num_inputs,).
        rows: its rows that go into y.
        targets: their rows in y.
        factors: of those rows: sign over row scale.
    """

    use: Use
    take: np.ndarray
    rows: np.ndarray
    targets: np.ndarray
    factors: np.ndarray


class Evaluator:
    """y(z) of a binding, in double and in AutoDiffXd.

    Args:
        parts: whose sum y is.
        num_rows, num_variables: of y and z.
        scale: the parts see scale * z (num_variables,).
        key: what the owner wants to recognise it by, see :func:`key_of`.
        scalar: a cost: one row, returned as a number.
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
        r = [p.use.value(x[p.take])[p.rows] for p in self.parts]
        return np.bincount(
            self._targets, self._factors * _stack(r, float), self.shape[0]
        )

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
        """What Drake calls: z of floats or of AutoDiffXd."""
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

    Drake keeps Python functions inside C++ objects, which copies of a program
    share and which have no Python attributes: only a call reaches them.
    """
    probe: list = []
    token = _PROBE.set(probe)
    try:
        evaluator.Eval(np.zeros(evaluator.num_vars()))
    except Exception:
        # Somebody else's function may fail at zero: it is none of ours.
        return None
    finally:
        _PROBE.reset(token)
    return probe[0] if probe else None


def _times(J: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """J @ seed. Solvers seed the identity or scales: a diagonal is 100 x cheaper."""
    diagonal = seed.diagonal()
    square = seed.shape[0] == seed.shape[1]
    if square and np.count_nonzero(seed) == np.count_nonzero(diagonal):
        return J * diagonal
    return J @ seed


def _stack(arrays: Sequence[np.ndarray], kind) -> np.ndarray:
    if len(arrays) == 1:
        return np.asarray(arrays[0], kind)
    return np.concatenate(arrays).astype(kind) if arrays else np.zeros(0, kind)
