"""Assembles a program's blocks into the five functions that an NLP solver needs.

Each block is evaluated at all its uses at once, and its nonzeros are scattered into
fixed sparsity patterns; nothing is differentiated again. Variables and rows are divided
by their scales.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy.sparse as sp

from drakebots.trajopt.program.block import compile_blocks
from drakebots.trajopt.program.machine import many
from drakebots.trajopt.program.program import Program, Term


@dataclass(frozen=True)
class Assembled:
    """f, g and their derivatives in scaled variables y = x / x_scale.

    Attributes:
        objective: (y, p) -> f
        gradient: (y, p) -> (f, df/dy)
        rows: (y, p) -> g
        jacobian: (y, p) -> (g, dg/dy)
        hessian: (y, p, lam_f, lam_g) -> upper triangle of the Lagrangian's
        p is empty; CasADi's solvers require it.
    """

    objective: ca.Function
    gradient: ca.Function
    rows: ca.Function
    jacobian: ca.Function
    hessian: ca.Function


def assemble(program: Program) -> Assembled:
    """Compiles and assembles a program's blocks."""
    compile_blocks(
        [t.block for t in (*program.terms, *program.costs)], program.compiles
    )
    n, m = program.num_variables, program.num_rows
    y, p = ca.MX.sym("y", n), ca.MX.sym("p", 0)
    lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", m)
    x = y * ca.DM(program.x_scale)
    values = (
        _scatter(t.rows, t.signs, m) @ ca.vec(_call(t, "value", x))
        for t in program.terms
    )
    g = sum(values, ca.MX.zeros(m))
    costs = (ca.sum1(ca.vec(_call(t, "value", x))) for t in program.costs)
    f = sum(costs, ca.MX.zeros(1))
    g_jac, J = _jacobian(program, x)
    f_grad, df = _gradient(program, x)
    H = _hessian(program, x, lam_f, lam_g)
    row_scale, given = ca.DM(program.row_scale), ["x", "p", "lam_f", "lam_g"]
    return Assembled(
        ca.Function("nlp_f", [y, p], [f], ["x", "p"], ["f"]),
        ca.Function("nlp_grad_f", [y, p], [f_grad, df], ["x", "p"], ["f", "grad_f_x"]),
        ca.Function("nlp_g", [y, p], [g / row_scale], ["x", "p"], ["g"]),
        ca.Function(
            "nlp_jac_g", [y, p], [g_jac / row_scale, J], ["x", "p"], ["g", "jac_g_x"]
        ),
        ca.Function("nlp_hess_l", [y, p, lam_f, lam_g], [H], given, ["hess_gamma_x_x"]),
    )


def _call(term: Term, kind: str, x: ca.MX, mu: ca.MX | None = None):
    """One column of outputs for each use."""
    columns = term.columns.ravel().tolist()
    arguments = [ca.reshape(x[columns], term.columns.shape[1], term.count)]
    arguments.append(ca.MX(ca.DM(term.data.T)))
    if mu is not None:
        arguments.append(mu)
    return many(term.block.functions[kind], term.count)(*arguments)


def _scatter(rows: np.ndarray, factors: np.ndarray, size: int) -> ca.DM:
    """S with S[rows[k, i], k m + i] = factors[i], or factors[k, i]."""
    values = np.broadcast_to(factors, rows.shape).ravel()
    columns, rows = np.arange(rows.size), rows.ravel()
    kept = rows >= 0
    entries = (values[kept], (rows[kept], columns[kept]))
    matrix = sp.csc_matrix(entries, (size, rows.size))
    matrix.sort_indices()
    # DM(matrix) would take fifteen times as long.
    pattern = (matrix.indptr.tolist(), matrix.indices.tolist())
    return ca.DM(ca.Sparsity(*matrix.shape, *pattern), ca.DM(matrix.data))


class _Pattern:
    """Nonzeros of many blocks into one matrix, in CasADi's column order."""

    def __init__(self, shape: tuple[int, int]):
        self.shape, self.entries = shape, []

    def add(self, rows, columns, factors) -> None:
        factors = np.broadcast_to(factors, rows.shape)
        self.entries.append((rows.ravel(), columns.ravel(), factors.ravel()))

    def matrix(self, nonzeros: list[ca.MX]) -> ca.MX:
        """The sum of all entries, given their values in the order they were added."""
        if not self.entries:
            return ca.MX(*self.shape)
        rows, columns, factors = map(np.concatenate, zip(*self.entries))
        kept = rows >= 0
        keys, places = (columns * self.shape[0] + rows)[kept], rows.copy()
        unique, places[kept] = np.unique(keys, return_inverse=True)
        columns, rows = np.divmod(unique, self.shape[0])
        pattern = ca.Sparsity.triplet(*self.shape, rows.tolist(), columns.tolist())
        collect = _scatter(places, factors, len(unique))
        return ca.MX(pattern, collect @ ca.vertcat(*nonzeros))


def _jacobian(program: Program, x: ca.MX):
    m, n = program.num_rows, program.num_variables
    pattern, parts, values = _Pattern((m, n)), [], []
    for term in program.terms:
        r, nonzeros = _call(term, "jacobian", x)
        i, j = term.block.jacobian_pattern
        rows, columns = term.rows[:, i], term.columns[:, j]
        scale = program.x_scale[columns] / program.row_scale[np.maximum(rows, 0)]
        pattern.add(rows, columns, term.signs[i] * scale)
        parts.append(ca.vec(nonzeros))
        values.append(_scatter(term.rows, term.signs, m) @ ca.vec(r))
    return sum(values, ca.MX.zeros(m)), pattern.matrix(parts)


def _gradient(program: Program, x: ca.MX):
    n = program.num_variables
    f, df = ca.MX(0), ca.MX.zeros(n)
    for term in program.costs:
        r, nonzeros = _call(term, "jacobian", x)
        _, j = term.block.jacobian_pattern
        columns = term.columns[:, j]
        f = f + ca.sum1(ca.vec(r))
        df = df + _scatter(columns, program.x_scale[columns], n) @ ca.vec(nonzeros)
    return f, df


def _hessian(program: Program, x, lam_f, lam_g):
    """Upper triangle of the Lagrangian's Hessian, scaled variables and rows."""
    n = program.num_variables
    pattern, parts = _Pattern((n, n)), []
    weight = lam_g / ca.DM(program.row_scale)
    for term in (*program.terms, *program.costs):
        i, j = term.block.hessian_pattern
        if not len(i):
            continue
        shape = (term.block.num_rows, term.count)
        if term.rows is None:
            mu = ca.repmat(lam_f, *shape)
        else:
            # Rows that are left out (-1) take any multiplier times zero.
            mu = ca.reshape(weight[np.maximum(term.rows, 0).ravel().tolist()], *shape)
            mu = mu * ca.DM((term.signs * (term.rows >= 0)).T)
        nonzeros = _call(term, "hessian", x, mu)
        a, b = term.columns[:, i], term.columns[:, j]
        scale = program.x_scale[a] * program.x_scale[b]
        # Off-diagonal entries of one variable with itself count twice.
        double = np.where((a == b) & (i != j), 2.0, 1.0)
        pattern.add(np.minimum(a, b), np.maximum(a, b), scale * double)
        parts.append(ca.vec(nonzeros))
    return pattern.matrix(parts)
