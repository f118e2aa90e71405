"""A block: a CasADi function of a few variables, with exact derivatives.

    r(w; d) in R^m,     dr/dw sparse,     d2(mu'r)/dw2 sparse, upper triangle

w are decision variables of one knot or interval, d constants that differ from
one use of the block to the next. The same block serves every knot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from drakebots.errors import InvalidInput
from drakebots.trajopt.compiled import compiled


@dataclass(frozen=True)
class Block:
    """An expression with named inputs and named groups of rows.

    Attributes:
        name: a C identifier.
        inputs: SX symbols by name, column vectors.
        rows: SX expressions by name, column vectors.
        data: SX symbols of the constants, or None.
    """

    name: str
    inputs: Mapping[str, ca.SX]
    rows: Mapping[str, ca.SX]
    data: ca.SX | None = None

    def __post_init__(self):
        known = ca.vertcat(self.w, self.d)
        free = [
            s.name()
            for s in ca.symvar(self.r)
            if not ca.depends_on(known, s)  # a symbol not among the inputs
        ]
        if free:
            raise InvalidInput(
                f"block {self.name} uses {', '.join(free[:5])}, which are not among "
                f"its inputs {', '.join(self.inputs)}"
            )

    @cached_property
    def w(self) -> ca.SX:
        """All inputs stacked."""
        return ca.vertcat(*self.inputs.values())

    @cached_property
    def d(self) -> ca.SX:
        """The constants, maybe empty."""
        return ca.SX.zeros(0, 1) if self.data is None else self.data

    @cached_property
    def r(self) -> ca.SX:
        """All rows stacked, dense."""
        return ca.densify(ca.vertcat(*self.rows.values()))

    @property
    def num_inputs(self) -> int:
        """Length of w."""
        return self.w.shape[0]

    @property
    def num_rows(self) -> int:
        """Length of r."""
        return self.r.shape[0]

    @cached_property
    def _jacobian(self) -> ca.SX:
        return ca.jacobian(self.r, self.w)

    @cached_property
    def _hessian(self) -> tuple[ca.SX, ca.SX]:
        mu = ca.SX.sym("mu", self.num_rows)
        return mu, ca.triu(ca.hessian(ca.dot(mu, self.r), self.w)[0])

    @cached_property
    def jacobian_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, columns) of the nonzeros of dr/dw, in their order."""
        return _triplets(self._jacobian.sparsity())

    @cached_property
    def hessian_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, columns) of the nonzeros of the Hessian's upper triangle."""
        return _triplets(self._hessian[1].sparsity())

    @cached_property
    def value_function(self) -> ca.Function:
        """(w, d) -> r, interpreted."""
        return ca.Function(f"{self.name}_value", [self.w, self.d], [self.r])

    @cached_property
    def _expressions(self) -> dict[str, ca.Function]:
        mu, hessian = self._hessian
        return {
            "value": self.value_function,
            "jacobian": ca.Function(
                f"{self.name}_jacobian",
                [self.w, self.d],
                [self.r, _nonzeros(self._jacobian)],
            ),
            "hessian": ca.Function(
                f"{self.name}_hessian", [self.w, self.d, mu], [_nonzeros(hessian)]
            ),
        }

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """The functions of this block, compiled where that is worth it.

        "value": (w, d) -> r; "jacobian": (w, d) -> (r, nonzeros of dr/dw);
        "hessian": (w, d, mu) -> nonzeros of d2(mu'r)/dw2.
        """
        return compile_blocks([self])[0]

    def jacobian(self, w: np.ndarray, d: np.ndarray = ()) -> np.ndarray:
        """dr/dw as a dense array (num_rows, num_inputs)."""
        _, nonzeros = self.functions["jacobian"](w, d)
        out = np.zeros((self.num_rows, self.num_inputs))
        out[self.jacobian_pattern] = np.asarray(nonzeros).ravel()
        return out


def compile_blocks(blocks) -> list[dict[str, ca.Function]]:
    """The functions of several blocks, compiled side by side."""
    todo = [b for b in blocks if "functions" not in b.__dict__]
    flat = [f for b in todo for f in b._expressions.values()]
    done = iter(compiled(flat))
    for block in todo:
        block.__dict__["functions"] = {kind: next(done) for kind in block._expressions}
    return [block.functions for block in blocks]


def _triplets(pattern: ca.Sparsity) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = pattern.get_triplet()
    return np.array(rows, int), np.array(columns, int)


def _nonzeros(matrix: ca.SX) -> ca.SX:
    return ca.vertcat(*matrix.nonzeros()) if matrix.nnz() else ca.SX.zeros(0, 1)
