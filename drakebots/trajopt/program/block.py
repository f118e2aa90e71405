"""A block: a CasADi function of a few variables, with exact derivatives.

    r(w; d) in R^m,     dr/dw sparse,     d2(mu'r)/dw2 sparse, upper triangle

w are decision variables of one knot or interval, d constants that differ from one use
of the block to the next. The same block serves every knot. Large blocks are compiled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import casadi as ca
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.trajopt.program.machine import compiled


@checked("block")
class Block:
    """An expression with named inputs and named groups of rows."""

    name: str
    """Name of the block."""
    inputs: Mapping[str, ca.SX]
    """SX symbols by name, column vectors."""
    rows: Mapping[str, ca.SX]
    """SX expressions by name, column vectors."""
    data: ca.SX | None = None
    """SX symbols of the constants d, or None."""

    def __post_init__(self):
        known = ca.vertcat(self.w, self.d)
        symbols = ca.symvar(self.r)
        free = [s.name() for s in symbols if not ca.depends_on(known, s)]
        if free:
            raise InvalidInput(
                f"block {self.name} uses {', '.join(free[:5])}, which are not among "
                f"its inputs {', '.join(self.inputs)}"
            )

    def _function(self, kind: str) -> str:
        """The name of a function, of what CasADi and C take for one: robots' links and
        feet are called otherwise, "3__shank" or "link:0,0,-0.2"."""
        name = "_".join([*re.findall("[A-Za-z0-9]+", self.name), kind])
        return name if name[0].isalpha() else f"f{name}"

    @cached_property
    def w(self) -> ca.SX:
        """All inputs stacked."""
        return ca.vertcat(*self.inputs.values())

    @cached_property
    def d(self) -> ca.SX:
        """The constants, possibly none."""
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
        return ca.Function(self._function("value"), [self.w, self.d], [self.r])

    @cached_property
    def jacobian_function(self) -> ca.Function:
        """(w, d) -> (r, nonzeros of dr/dw), interpreted."""
        outputs = [self.r, _nonzeros(self._jacobian)]
        return ca.Function(self._function("jacobian"), [self.w, self.d], outputs)

    @cached_property
    def _expressions(self) -> dict[str, ca.Function]:
        mu, hessian = self._hessian
        return {
            "value": self.value_function,
            "jacobian": self.jacobian_function,
            "hessian": ca.Function(
                self._function("hessian"), [self.w, self.d, mu], [_nonzeros(hessian)]
            ),
        }

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """The functions of this block, large ones compiled.

        "value": (w, d) -> r; "jacobian": (w, d) -> (r, nonzeros of dr/dw);
        "hessian": (w, d, mu) -> nonzeros of d2(mu'r)/dw2.
        """
        return compile_blocks([self])[0]

    @property
    def evaluator(self) -> ca.Function:
        """(w, d) -> r, compiled if the functions are, else interpreted."""
        made = vars(self).get("functions")
        return made["value"] if made else self.value_function

    def jacobian(self, w: np.ndarray, d: np.ndarray = ()) -> np.ndarray:
        """dr/dw as a dense array (num_rows, num_inputs)."""
        _, nonzeros = self.functions["jacobian"](w, d)
        out = np.zeros((self.num_rows, self.num_inputs))
        out[self.jacobian_pattern] = np.asarray(nonzeros).ravel()
        return out

    @cached_property
    def affine_rows(self) -> np.ndarray:
        """Mask of the rows that are affine in w, by their expressions."""
        return ~np.array(ca.which_depends(self.r, self.w, 2, True), bool)

    @cached_property
    def _quadratic(self) -> bool:
        """Whether the sum of the rows is quadratic in w, by their expressions."""
        f, (_, hessian) = self.value_function, self._hessian
        steps = {f.instruction_id(i) for i in range(f.n_instructions())}
        return steps <= _POLYNOMIAL and not ca.depends_on(hessian, self.w)

    def constant_hessian(self, d: np.ndarray) -> np.ndarray | None:
        """The Hessian of the sum of the rows (num_inputs, num_inputs) where that is
        quadratic; None elsewhere."""
        if not self._quadratic:
            return None
        values = self.functions["hessian"](np.zeros(self.num_inputs), d, 1.0)
        upper = np.zeros((self.num_inputs,) * 2)
        upper[self.hessian_pattern] = np.asarray(values).ravel()
        return upper + np.triu(upper, 1).T


_POLYNOMIAL = {
    *(ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_ADD, ca.OP_SUB),
    *(ca.OP_MUL, ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE),
}
"""Operations without kinks, which derivatives do not see."""


def _triplets(pattern: ca.Sparsity) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = pattern.get_triplet()
    return np.array(rows, int), np.array(columns, int)


def _nonzeros(matrix: ca.SX) -> ca.SX:
    return ca.vertcat(*matrix.nonzeros()) if matrix.nnz() else ca.SX.zeros(0, 1)


def compile_blocks(
    blocks: Sequence[Block], compiles: bool = True
) -> list[dict[str, ca.Function]]:
    """The functions of several blocks, the large ones compiled in parallel; or as they
    are, compiled if they were before, else interpreted."""
    todo = [b for b in blocks if vars(b).get("compiles") not in (True, compiles)]
    made = [(f, b) for b in todo for f in b._expressions.values()]
    done = [f for f, _ in made]
    if compiles and made:
        done = compiled(done, [b.value_function.serialize() for _, b in made])
    left = iter(done)
    for block in todo:
        functions = {kind: next(left) for kind in block._expressions}
        vars(block).update(functions=functions, compiles=compiles)
    return [block.functions for block in blocks]
