"""Whether anything here can be wrong without a word: the figures of trust.

python scripts/bench/trust.py                     # an hour
python scripts/bench/trust.py --quick             # broken solvers alone
python scripts/bench/trust.py no_mkl_difference   # figures by name

Most are counts of tests of this repository, so they need a checkout and the `test`
extra; those without MKL need .venv-plain, which .ci/plain makes.

Multipliers of a cycle that HAMR's plans used to tell ranked nothing and are gone, so
there is no figure of them (docs/evidence/hamr.md).

    poisoned_equal           no answer depends on what memory held (poisoned.py)
    solver_breaks_caught_of  solvers broken on purpose whose answers were refused
    no_mkl_tests_failed      tests of the rooms of skins that fail without MKL
    no_mkl_difference        largest relative difference of skins' steps to MKL's
    bench_scripts_ok_of      scripts that measure whose --quick form runs to its end
    docs_commands_ok_of      shell commands of README.md and docs/ that are right

JSON: solver_breaks_caught_of.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import docs_commands
import numpy as np
import poisoned
from measurement import Measurement

from drakebots.cli.output import print_rows
from drakebots.core.errors import FileProblem, NoSolution

ROOT = Path(__file__).resolve().parents[2]
PLAIN = ROOT / ".venv-plain" / "bin" / "python"
ROOMS = ("tests/fem", "tests/skin", "tests/robots/quads", "tests/design")
QUICK = ("solver_breaks_caught_of",)


def counts(python: Path | str, *options: str) -> dict[str, int]:
    """Numbers of tests by outcome: "passed", "failed", "error", "skipped"."""
    command = [str(python), "-m", "pytest", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = (run.stdout.strip() or run.stderr.strip()).splitlines()[-1]
    found = {word.rstrip("s"): int(n) for n, word in re.findall(r"(\d+) (\w+)", last)}
    if not {"passed", "failed"} & set(found):
        raise NoSolution(f"pytest {' '.join(options)}: {last}")
    return found


def of(found: dict[str, int]) -> list[int]:
    """[passed, all that were run]."""
    good = found.get("passed", 0)
    return [good, good + found.get("failed", 0) + found.get("error", 0)]


def poisoned_equal(quick: bool) -> bool:
    """Of all items, or the quick ones."""
    return poisoned.main(["--quick"] if quick else [])["poisoned_equal"]


def solver_breaks_caught_of(quick: bool) -> list[int]:
    """Each library and each part of its answer in turn."""
    rooms = ("tests/fem/test_solver.py", "tests/trajopt/solvers", "tests/lattice")
    words = "broken or breaks or complements_alone or next_solver"
    return of(counts(sys.executable, "-k", words, *rooms, "tests/skin/coupled"))


def no_mkl_tests_failed(quick: bool) -> int:
    """All but the slow ones."""
    good, run = of(counts(_plain(), "-n", "2", "-m", "not slow", *ROOMS))
    return run - good


def no_mkl_difference(quick: bool) -> float:
    """Two coupled steps, their maps, and the rest stiffness, of every skin."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in poisoned.SKINS[: 1 if quick else None]:
            arrays = []
            for python in (sys.executable, _plain()):
                found, said = poisoned.answers(
                    f"step:{name}", "none", Path(folder), python=str(python)
                )
                if said:
                    raise NoSolution(f"{python}: {said}")
                arrays.append([*found.values()])
            mkl, plain = arrays
            # By PARDISO in double and in single precision and by MUMPS; or by MUMPS.
            for a, b in zip((*mkl[: len(plain) - 1], mkl[-1]), plain):
                worst = max(worst, np.abs(a - b).max() / np.abs(a).max())
    return float(worst)


def bench_scripts_ok_of(quick: bool) -> list[int]:
    """Each from an empty folder, as its docstring says."""
    file = "tests/scripts/test_quick_forms.py::test_quick_form"
    return of(counts(sys.executable, "-n", "2", file))


def docs_commands_ok_of(quick: bool) -> list[int]:
    """They parse, and what is quick runs (docs_commands.py)."""
    good, total, failed = docs_commands.docs_commands_ok_of(run=not quick)
    print(*failed, sep="\n")
    return [good, total]


def _plain() -> Path:
    if not PLAIN.exists():
        raise FileProblem(PLAIN, "not there; run .ci/plain, which makes it")
    return PLAIN


FIGURES = {
    f.__name__: f
    for f in (
        poisoned_equal,
        solver_breaks_caught_of,
        no_mkl_tests_failed,
        no_mkl_difference,
        bench_scripts_ok_of,
        docs_commands_ok_of,
    )
}


def main(argv: Sequence[str] | None = None) -> dict:
    """Gathers the figures, prints a table and the JSON line."""
    measurement = Measurement(__doc__, quick="solver_breaks_caught_of alone")
    measurement.add_argument(
        "figures", nargs="*", metavar="FIGURE", help="all by default"
    )
    args = measurement.parse_args(argv)
    names = args.figures or (QUICK if args.quick else tuple(FIGURES))
    if unknown := set(names) - set(FIGURES):
        measurement.error(f"no figure {min(unknown)!r}; choose from {[*FIGURES]}")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found = {name: FIGURES[name](args.quick) for name in names}
    print_rows("trust", [{"figure": k, "measured": str(v)} for k, v in found.items()])
    return measurement.report(found)


if __name__ == "__main__":
    main()
