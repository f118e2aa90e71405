"""SNOPT 7.4's options, its return codes, and the table in its print file.

SNOPT reads options by their first letters and silently mistakes a misspelt one for
another ("Major iteration limt" is accepted). So names are checked against the list of
the manual: Gill, Murray, Saunders, Wong, User's Guide for SNOPT Version 7, section 7.
"""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Mapping
from typing import Any

from drakebots.core.errors import InvalidInput


def _names(text: str) -> tuple[str, ...]:
    return tuple(" ".join(text.split()).split(", "))


OPTIONS = _names("""
Central difference interval, CG iterations, CG tolerance, Check frequency, Crash
option, Crash tolerance, Derivative level, Derivative linesearch, Derivative option,
Difference interval, Elastic mode, Elastic weight, Expand frequency, Factorization
frequency, Feasibility tolerance, Function precision, Hessian dimension, Hessian
flush, Hessian frequency, Hessian full memory, Hessian limited memory, Hessian
updates, Infinite bound, Iterations limit, Linesearch tolerance, LU complete pivoting,
LU density tolerance, LU factor tolerance, LU partial pivoting, LU rook pivoting, LU
singularity tolerance, LU swap tolerance, LU update tolerance, Major feasibility
tolerance, Major iterations limit, Major optimality tolerance, Major print level,
Major step limit, Minor feasibility tolerance, Minor iterations limit, Minor
optimality tolerance, Minor print level, New superbasics limit, Nonderivative
linesearch, Optimality tolerance, Partial price, Penalty parameter, Pivot tolerance,
Print file, Print frequency, Proximal iterations limit, Proximal point method,
QPSolver Cholesky, QPSolver CG, QPSolver QN, QPSolver, Reduced Hessian dimension, Save
frequency, Scale option, Scale tolerance, Start constraint check at column, Start
objective check at column, Sticky parameters, Stop constraint check at column, Stop
objective check at column, Summary frequency, Superbasics limit, Suppress parameters,
System information, Time limit, Timing level, Total integer workspace, Total real
workspace, Unbounded objective value, Unbounded step size, Verify gradients, Verify
level, Violation limit
""")
"""Names of options, without their values. Options that are files by Fortran unit
numbers or change the problem (maximize, feasible point) are left out."""

TEXTS = _names("""
Derivative linesearch, Hessian full memory, Hessian limited memory, LU complete
pivoting, LU partial pivoting, LU rook pivoting, Nonderivative linesearch, Print file,
QPSolver, QPSolver CG, QPSolver Cholesky, QPSolver QN, Sticky parameters, Suppress
parameters, System information
""")
"""Options whose value is a word, or "" where the name says it all."""

_BY_KEY = {name.lower(): name for name in OPTIONS}

INFO = {
    1: "optimal",
    2: "feasible point found",
    3: "requested accuracy could not be achieved",
    11: "infeasible linear constraints",
    12: "infeasible linear equalities",
    13: "nonlinear infeasibilities minimized",
    14: "infeasibilities minimized",
    15: "infeasible linear constraints in QP subproblem",
    21: "unbounded objective",
    22: "constraint violation limit reached",
    31: "iteration limit reached",
    32: "major iteration limit reached",
    33: "the superbasics limit is too small",
    34: "time limit reached",
    41: "current point cannot be improved",
    42: "singular basis",
    43: "cannot satisfy the general constraints",
    44: "ill-conditioned null-space basis",
    51: "incorrect objective derivatives",
    52: "incorrect constraint derivatives",
    61: "undefined function at the first feasible point",
    62: "undefined function at the initial point",
    63: "unable to proceed into undefined region",
    71: "terminated during function evaluation",
    81: "work arrays must have at least 500 elements",
    82: "not enough character storage",
    83: "not enough integer storage",
    84: "not enough real storage",
    91: "invalid input argument",
    141: "wrong number of basic variables",
    142: "error in basis package",
}
"""Meaning of SNOPT's return code `info`."""

TIME_LIMIT = 34
"""The `info` of a solve that ran into its time limit."""

STORAGE = (82, 83, 84)
"""The `info` of a solve that ran out of workspace."""


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options under the manual's spelling.

    Case and repeated blanks do not matter.

    Raises:
        InvalidInput: for an unknown name, with similar ones, and for a value that
            is not a number where SNOPT needs one: it would read a text as 0.
    """
    out = {}
    for name, value in options.items():
        key = " ".join(str(name).lower().split())
        if key not in _BY_KEY:
            close = difflib.get_close_matches(key, _BY_KEY, n=3, cutoff=0.5)
            near = ", ".join(repr(_BY_KEY[c]) for c in close)
            hint = (
                f"did you mean {near}?" if near else "see the User's Guide, section 7"
            )
            raise InvalidInput(f"SNOPT has no option {str(name)!r}; {hint}")
        name = _BY_KEY[key]
        if name in TEXTS:
            if not isinstance(value, str):
                raise InvalidInput(
                    f"SNOPT's option {name!r} takes a text, got {value!r}"
                )
        elif (
            isinstance(value, bool)
            or not isinstance(value, numbers.Real)
            or not math.isfinite(value)
        ):
            raise InvalidInput(f"SNOPT's option {name!r} takes a number, got {value!r}")
        elif name.startswith("Total"):
            value = int(value)
        out[name] = value
    return out


_COLUMNS = {
    "Step": "step",
    "nCon": "evaluations",
    "nObj": "evaluations",
    "Feasible": "infeasibility",
    "Optimal": "optimality",
    "MeritFunction": "objective",
    "Objective": "objective",
}


def read_log(text: str) -> dict[str, list[float]]:
    """The table of major iterations in a print file, by columns.

    `number`, `minors`, `step` (0 for none), `evaluations`, `objective` (merit
    function or objective), `infeasibility` (0 without constraints) and
    `optimality`, as SNOPT scales them.
    """
    keys = ("number", "minors", *dict.fromkeys(_COLUMNS.values()))
    out: dict[str, list[float]] = {key: [] for key in keys}
    header: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:3] == ["Itns", "Major", "Minors"]:
            header = [w for w in words[3:] if w in _COLUMNS]
            continue
        row = _row(words, header) if header else None
        if row is not None:
            for key in keys:
                out[key].append(row.get(key, 0.0))
    return out if out["number"] else {}


def _row(words: list[str], header: list[str]) -> dict[str, float] | None:
    """One line of the table, or None for another line."""
    if len(words) < 3 + len(header) - 1:
        return None
    if not all(re.fullmatch(r"\d+", w) for w in words[:3]):
        return None
    rest = words[3:]
    if "Step" in header and re.fullmatch(r"\d+", rest[0]):
        rest = ["0", *rest]  # no step before the first iterate
    row = {"number": float(words[1]), "minors": float(words[2])}
    for name, word in zip(header, rest):
        try:
            row[_COLUMNS[name]] = float(word.strip("()"))
        except ValueError:
            return None
    return row
