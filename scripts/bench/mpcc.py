"""Small published programs with complementarity constraints (MPCC), by three solvers.

All of the collection in published/ (MacMPEC, with each problem's source), written in
Drake's symbols and solved from the collection's starts by

    ours     ComplementaritySolver
    SNOPT    Drake's SNOPT on the same MathematicalProgram, products as rows G H <= 0
    exact    ExactIpoptSolver on it, which has exact Hessians but no ladder

A problem counts as solved when the solver claims success, the cost is the published
one (relative error 1e-6 beyond half a unit of its last printed digit), and every row,
bound and product is within 1e-6; "x" marks the others, most of them local optima.
`complementarity_solved_of_40` is 40 times the share of ours, rounded down. Seconds are
processor time of one thread, building included.

python scripts/bench/mpcc.py
python scripts/bench/mpcc.py --quick
python scripts/bench/mpcc.py --only ralph1 hs044-i

JSON: complementarity_solved_of_40, complementarity_problems,
complementarity_solved_ours, complementarity_solved_snopt, complementarity_solved_exact,
complementarity_seconds_ours, complementarity_seconds_snopt,
complementarity_seconds_exact.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measurement import Measurement
from published import handbook_bilevel, macmpec
from pydrake.solvers import SnoptSolver
from rich.console import Console
from rich.table import Table

from drakebots.trajopt.solvers import ComplementaritySolver, ExactIpoptSolver

PROBLEMS = {
    p.name: p
    for p in (
        *macmpec.PROBLEMS,
        *macmpec.NOT_STATIONARY,
        *macmpec.MORE,
        *handbook_bilevel.PROBLEMS,
    )
}
QUICK = ("ralph1", "hs044-i", "ex9.2.2")
SOLVERS = {
    "ours": ComplementaritySolver,
    "SNOPT": SnoptSolver,
    "exact": ExactIpoptSolver,
}


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick=", ".join(QUICK))
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, metavar="NAME")
    args = parser.parse_args(argv)
    # These programs take longer to compile than to solve.
    os.environ.setdefault("DRAKEBOTS_COMPILE", "0")
    names = args.only or list(QUICK if args.quick else PROBLEMS)
    table = Table("problem", "variables", "pairs", "published", *SOLVERS, "seconds")
    solved, spent = dict.fromkeys(SOLVERS, 0), dict.fromkeys(SOLVERS, 0.0)
    for name in names:
        problem, cells = PROBLEMS[name], []
        for kind, solver in SOLVERS.items():
            began = time.process_time()
            prog = problem.mathematical_program()
            result = solver().Solve(prog)
            seconds = time.process_time() - began
            spent[kind] += seconds
            right = problem.solved_by(prog, result)
            solved[kind] += right
            cost = result.get_optimal_cost()
            cells.append(f"{cost:.8g}" + ("" if right else " x"))
            if kind == "ours":
                ours = f"{seconds:.2f}"
        names_of = [b.evaluator().get_description() for b in prog.generic_constraints()]
        pairs = sum(name.startswith("pair ") for name in names_of)
        sizes = str(prog.num_vars()), str(pairs)
        table.add_row(name, *sizes, f"{problem.optimum:g}", *cells, ours)
    Console(width=110).print(table)
    result = {
        "complementarity_solved_of_40": 40 * solved["ours"] // len(names),
        "complementarity_problems": len(names),
        **{f"complementarity_solved_{k.lower()}": v for k, v in solved.items()},
        **{f"complementarity_seconds_{k.lower()}": spent[k] for k in SOLVERS},
    }
    return parser.report(result)


if __name__ == "__main__":
    main()
