"""Complementarity programs of NOSBENCH: ours beside IPOPT with Scholtes' relaxation.

    python scripts/bench/nosbench.py FOLDER               # of its problems/casadi
    python scripts/bench/nosbench.py FOLDER --every 6     # a sixth of them
    python scripts/bench/nosbench.py --quick              # one of our own

NOSBENCH (A. Nurkanovic, A. Pozharskiy, M. Diehl, Vietnam J. Math. 2024) is a public
repository, nosnoc/nosbench, of 603 programs of optimal control with switches, friction
and impacts, as files of CasADi:

    min f(w)    with    lbw <= w <= ubw,  lbg <= g(w) <= ubg,  0 <= G(w) _|_ H(w) >= 0

Its files are read from where they lie and never copied. A program is solved when the
answer holds all rows, bounds and products G_i H_i to 1e-6, and the solver calls it an
optimum; to its sides, when the smaller side of every pair holds to 1e-6 as well. The
peer solves it with G_i H_i <= t for t = 1, 0.1, ..., 1e-9 (Scholtes 2001) by CasADi's
IPOPT with MUMPS, each from the answer of the one before, and answers with the last that
solves the program. Every solve has a process of its own and --limit seconds of
processor time. Ours is told most of it as wall time, and so answers before it is
stopped; the peer keeps its answers between its solves, but loses one that is stopped.

JSON: nosbench_files.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
from measurement import Measurement

from drakebots.cli.output import one_line_errors, print_rows
from drakebots.core.errors import FileProblem
from drakebots.core.threads import cores
from drakebots.trajopt.program import Block, Group, Program, Term
from drakebots.trajopt.solvers import Clock, ComplementaritySolver

TOLERANCE = 1e-6
"""Largest violation of an answer."""

RELAXED = 10.0 ** -np.arange(10)
"""Bounds of the peer's products."""

SOLVERS = ("ours", "scholtes")

SHARE = 0.85
"""Share of the limit that a solver is told; reading and derivatives take some."""


@dataclass(frozen=True)
class Problem:
    """A program: expressions in w (n,), bounds and a guess."""

    w: ca.SX
    f: ca.SX
    g: ca.SX
    G: ca.SX
    H: ca.SX
    lower: np.ndarray
    upper: np.ndarray
    g_lower: np.ndarray
    g_upper: np.ndarray
    guess: np.ndarray

    def violation(self, w: np.ndarray) -> tuple[float, float]:
        """Largest violation of bounds, rows and products, and largest smaller side of a
        pair at a point."""
        values = ca.Function("rows", [self.w], [self.g, self.G, self.H])(w)
        g, G, H = (np.array(value).ravel() for value in values)
        parts = [
            *(self.lower - w, w - self.upper, self.g_lower - g, g - self.g_upper),
            *(-G, -H, G * H),
        ]
        most = max(float(part.max(initial=0.0)) for part in parts)
        return most, float(np.minimum(G, H).max(initial=0.0))

    def cost(self, w: np.ndarray) -> float:
        """f at a point."""
        return float(ca.Function("cost", [self.w], [self.f])(w))


def read(path: Path) -> Problem:
    """A file of problems/casadi."""
    try:
        data = json.loads(path.read_text())
        p = _numbers(data["p0"])
        named = ("g_fun", "G_fun", "H_fun", "augmented_objective_fun")
        functions = [ca.Function.deserialize(data[name]) for name in named]
    except (KeyError, ValueError, RuntimeError) as error:
        raise FileProblem(path, f"is no file of problems/casadi ({error})") from error
    w = ca.SX.sym("w", len(data["w0"]))
    g, G, H, f = (ca.densify(function(w, p)) for function in functions)
    bounds = (_numbers(data[name]) for name in ("lbw", "ubw", "lbg", "ubg", "w0"))
    return Problem(w, f, g, G, H, *bounds)


def _numbers(values) -> np.ndarray:
    return np.array([float(value) for value in np.ravel(values)])


def example() -> Problem:
    """A block is pushed from 0 to 1 against friction that sticks, in 20 steps."""
    n, h, mass, most = 20, 0.1, 1.0, 0.3
    v, u, slip, gain = (ca.SX.sym(name, n) for name in ("v", "u", "slip", "gain"))
    before = ca.vertcat(0, v[:-1])
    # Friction is (2 gain - 1) `most` against the velocity, v = slip_+ - slip_-.
    forward = ca.SX.sym("forward", n)
    friction = most * (1 - 2 * gain)
    g = ca.vertcat(
        mass * (v - before) - h * (u + friction), v - forward + slip, h * ca.sum1(v) - 1
    )
    w = ca.vertcat(v, u, slip, gain, forward)
    G, H = ca.vertcat(gain, 1 - gain), ca.vertcat(slip, forward)
    rest = np.zeros(2 * n + 1)
    free = np.full(5 * n, np.inf)
    guess = np.r_[np.zeros(3 * n), np.full(n, 0.5), np.zeros(n)]
    return Problem(w, ca.sumsqr(u), g, G, H, -free, free, rest, rest, guess)


def ours(problem: Problem, limit: float) -> tuple[np.ndarray, bool, str]:
    """The answer of ComplementaritySolver in a wall time [s], whether it is one, and
    what it says."""
    count, n = problem.G.shape[0], problem.w.shape[0]
    products = problem.G * problem.H
    rows = {"g": problem.g, "G": problem.G, "H": problem.H, "GH": products}
    block = Block("rows", {"w": problem.w}, rows)
    cost = Block("cost", {"w": problem.w}, {"f": problem.f})
    zero, free = np.zeros(2 * count), np.full(2 * count, np.inf)
    lower = np.r_[problem.g_lower, zero, np.full(count, -np.inf)]
    upper = np.r_[problem.g_upper, free, np.zeros(count)]
    first = problem.g.shape[0]
    columns, none = np.arange(n)[None], np.zeros((1, 0))
    all_rows = np.arange(len(lower))[None]
    program = Program(
        "nosbench",
        {"x": _group("x", problem.lower, problem.upper)},
        {"rows": _group("rows", lower, upper)},
        (Term(block, columns, all_rows, np.ones(len(lower)), none),),
        (Term(cost, columns, None, np.ones(1), none),),
        compiles=False,
    )
    pairs = first + np.arange(count)[:, None] + count * np.arange(3)
    posed = SimpleNamespace(program=program, pairs=pairs)
    solver = ComplementaritySolver(tolerance=TOLERANCE)
    options = {"max_wall_time": limit}
    raw, details = solver._answer(posed, problem.guess, options=options, monitor=None)
    return raw.x, raw.success, details.status


def _group(name: str, lower: np.ndarray, upper: np.ndarray) -> Group:
    labels = tuple(str(k) for k in range(len(lower)))
    return Group(name, 0, 1, labels, lower[None], upper[None], np.ones(len(lower)))


def scholtes(problem: Problem, limit: float) -> tuple[np.ndarray, bool, str]:
    """The same of IPOPT with products that are bounded by less and less."""
    clock = Clock(limit)
    t, G, H = ca.SX.sym("t"), problem.G, problem.H
    rows = ca.vertcat(problem.g, G, H, G * H - t)
    count = G.shape[0]
    nlp = {"x": problem.w, "p": t, "f": problem.f, "g": rows}
    quiet = {"ipopt.print_level": 0, "print_time": False}
    options = {"ipopt.tol": 1e-8, "ipopt.max_iter": 500, "ipopt.bound_relax_factor": 0}
    solver = ca.nlpsol("relaxed", "ipopt", nlp, quiet | options)
    lower = np.r_[problem.g_lower, np.zeros(2 * count), np.full(count, -np.inf)]
    upper = np.r_[problem.g_upper, np.full(2 * count, np.inf), np.zeros(count)]
    x, status, kept = problem.guess, "", None
    for bound in RELAXED:
        left = clock.left
        bounds = {"lbx": problem.lower, "ubx": problem.upper, "lbg": lower}
        x = np.array(solver(x0=x, p=bound, ubg=upper, **bounds)["x"]).ravel()
        status = solver.stats()["return_status"]
        violation, side = problem.violation(x)
        if status == "Solve_Succeeded" and violation <= TOLERANCE:
            kept = x, True, status
            if side <= TOLERANCE:
                break
        if kept and clock.left < left - clock.left:  # no time for another
            break
    return kept or (x, False, status)


def solve_one(problem: Problem, solver: str, limit: float = 60.0) -> dict:
    """The row of one solve, in a wall time of at most SHARE of a limit [s]."""
    began = time.process_time()
    solve = {"ours": ours, "scholtes": scholtes}[solver]
    x, success, status = solve(problem, SHARE * limit)
    violation, side = problem.violation(x)
    solved = bool(success and violation <= TOLERANCE)
    return {
        "solved": solved,
        "to_its_sides": solved and side <= TOLERANCE,
        "cost": problem.cost(x),
        "violation": violation,
        "side": side,
        "seconds": time.process_time() - began,
        "status": status,
        "variables": problem.w.shape[0],
        "pairs": problem.G.shape[0],
    }


def in_a_process(path: Path, solver: str, limit: float) -> dict:
    """The same in a process of its own, which ends with the limit."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))

    words = [sys.executable, __file__, str(path), "--one", solver]
    words += ["--limit", str(limit)]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=bounded)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"solved"'):
            return json.loads(line)
    said = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
    late = done.returncode < 0
    return {
        "solved": False,
        "status": "time limit" if late else said[0][:200],
        "seconds": limit if late else None,
    }


def summary(rows: Sequence[dict]) -> dict:
    """Shares of solved programs, and who found the lower cost."""
    found: dict = {"nosbench_files": len(rows)}
    for solver in SOLVERS:
        solved = [row[solver] for row in rows if row[solver]["solved"]]
        found[f"nosbench_solved_{solver}"] = len(solved)
        sides = sum(one["to_its_sides"] for one in solved)
        found[f"nosbench_to_sides_{solver}"] = sides
        found[f"nosbench_share_{solver}"] = len(solved) / max(1, len(rows))
        seconds = [one["seconds"] for one in solved]
        found[f"nosbench_median_s_{solver}"] = float(np.median(seconds or [np.nan]))
    both = [row for row in rows if all(row[solver]["solved"] for solver in SOLVERS)]
    gaps = [row["ours"]["cost"] - row["scholtes"]["cost"] for row in both]
    size = [1e-4 * (1e-4 + abs(row["scholtes"]["cost"])) for row in both]
    found["lower_cost_ours"] = sum(g < -s for g, s in zip(gaps, size))
    found["lower_cost_scholtes"] = sum(g > s for g, s in zip(gaps, size))
    return found


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="a block that sticks, in this process")
    parser.add_argument("folder", type=Path, nargs="?", help="of files, or a file")
    parser.add_argument("--every", type=int, default=1, help="take every n-th file")
    parser.add_argument("--limit", type=float, default=120.0, help="of a solve [s]")
    parser.add_argument("--workers", type=int, default=cores(), help="processes")
    parser.add_argument("--one", choices=SOLVERS, help="solve one file here")
    args = parser.parse_args(argv)
    if args.one:
        found = solve_one(read(args.folder), args.one, args.limit)
        print(json.dumps(found))
        return found
    if args.quick or args.folder is None:
        problem = example()
        rows = [{solver: solve_one(problem, solver) for solver in SOLVERS}]
        names = ["sticking block"]
    else:
        files = sorted(args.folder.glob("*.json"))[:: args.every]
        names, rows = [path.stem for path in files], [{} for _ in files]

        def fill(job: tuple[int, str]) -> None:
            k, solver = job
            row = rows[k][solver] = in_a_process(files[k], solver, args.limit)
            line = {name: row.get(name) for name in ("solved", "seconds", "status")}
            print(names[k], solver, line, file=sys.stderr, flush=True)

        with ThreadPoolExecutor(args.workers) as pool:
            list(pool.map(fill, [(k, s) for k in range(len(files)) for s in SOLVERS]))
    print_rows(
        "complementarity programs of NOSBENCH",
        [
            {"program": name}
            | {
                f"{solver}": f"{row[solver]['seconds'] or 0:.1f} s"
                if row[solver]["solved"]
                else row[solver]["status"][:40]
                for solver in SOLVERS
            }
            for name, row in zip(names, rows)
        ],
    )
    return parser.report(summary(rows) | {"rows": dict(zip(names, rows))})


if __name__ == "__main__":
    with one_line_errors("nosbench"):
        main()
