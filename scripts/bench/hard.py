"""Nothing breaks it: damaged files, extreme numbers, wrong types, stops, long runs.

    python scripts/bench/hard.py --minutes 10 --json
    python scripts/bench/hard.py --quick
    python scripts/bench/hard.py --minutes 1 --only urdf,results --keep out/fuzz
    python scripts/bench/hard.py --again "urdf 17"      # one input, with what it prints

Each input is a command line or a call, in a child process with limits: 20 to 60 s of
processor time, and 2 GB of memory more than before the input. It may succeed or be
refused with one line. What ends otherwise is counted:

    traceback   Python's, instead of a line of ours
    crash       a signal
    hang        more processor time than the limit, or 12 times as much of the clock
    memory      more than 2 GB
    leak        a page with another file of the machine in it, or a name unescaped

These are kept below --keep, and so are `masked` ones: lines of ours that quote an
exception of Python, which does not tell a user what to do. Small inputs that failed
belong into tests/scripts/seeds, where a test runs them again. The exit code is 1 if an
input failed.

JSON: inputs, tracebacks, crashes, hangs, over_memory, leaks_into_pages, masked, cpu_s.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "tools"))

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")  # a fork keeps no threads

from fuzz import interrupts, leaks  # noqa: E402
from fuzz.children import BAD, Children, Family, Outcome  # noqa: E402
from fuzz.formats import FORMATS, make_results, results_family, seeded  # noqa: E402
from fuzz.options import option_families  # noqa: E402
from fuzz.problems import modules, types_family  # noqa: E402
from measurement import Measurement  # noqa: E402

BATCH = 25
RESULTS = HERE.parents[2] / "out" / "fuzz" / "results"


def families(results: Path, only: tuple[str, ...] = ("",)) -> dict[str, Family]:
    """The families of inputs whose names begin with one of `only`.

    Args:
        results: folder of the sound results that are damaged and used in command
            lines; where such a family is chosen, missing ones are computed first.
        only: beginnings of names.
    """
    made = dict(FORMATS)
    if any("results".startswith(o) or o.startswith("option") for o in only):
        made["results"] = results_family(make_results(results))
    found = {name: seeded(name, make) for name, make in made.items()}
    found |= option_families(sorted(results.glob("*.nc")))
    found |= {"types": types_family()}
    return {name: found[name] for name in found if name.startswith(only)}


def fuzz(
    chosen: Mapping[str, Family],
    seconds: float,
    *,
    first: int = 0,
    most: int | None = None,
    jobs: int = 2,
) -> list[Outcome]:
    """Runs inputs of all families for some time, each family the same time.

    Args:
        chosen: the families by name.
        seconds: of the clock, inf with `most`.
        first: the first seed of each.
        most: inputs of each, where there is time.
        jobs: how many children at once.
    """
    _load(chosen)
    began, outcomes = time.monotonic(), []
    spent, following = Counter(dict.fromkeys(chosen, 0.0)), dict.fromkeys(chosen, first)
    fast = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=fast if fast.is_dir() else None) as folder,
        Children(chosen, jobs, Path(folder)) as children,
    ):

        def note(outcome: Outcome) -> None:
            spent[outcome.family] += outcome.cpu
            outcomes.append(outcome)

        while time.monotonic() - began < seconds:
            while children.free:
                left = [
                    n for n in chosen if most is None or following[n] < most + first
                ]
                if not left:
                    break
                name = min(left, key=lambda n: spent[n])
                count = BATCH if most is None else most + first - following[name]
                batch = range(following[name], following[name] + min(count, BATCH))
                following[name] = batch.stop
                spent[name] += 1e-3
                children.give(name, batch)
            for outcome in children.ended():
                note(outcome)
            if most is not None and all(n >= most + first for n in following.values()):
                break
        for outcome in children.finish():
            note(outcome)
    return outcomes


def _load(chosen: Mapping[str, Family]) -> None:
    """Imports what inputs need, so that no child has to."""
    if all(name in FORMATS for name in chosen):
        for name in ("cli.look", "cli.task", "view", "formats.write.mjcf"):
            importlib.import_module(f"drakebots.{name}")
        importlib.import_module("trimesh")
    else:
        modules()
    importlib.import_module("xarray.backends.h5netcdf_")
    importlib.import_module("matplotlib.pyplot").switch_backend("agg")


def table(outcomes: list[Outcome]) -> None:
    """Prints a line for each family."""
    head = ("inputs", "fine", "refused", *BAD, "masked", "cpu [s]")
    print(f"{'family':28}" + "".join(f"{word:>10}" for word in head))
    for name in dict.fromkeys(o.family for o in outcomes):
        own = [o for o in outcomes if o.family == name]
        words = Counter(o.word for o in own)
        row = [len(own), *(words[w] for w in head[1:-2])]
        row += [sum(o.masked for o in own), round(sum(o.cpu for o in own), 1)]
        print(f"{name[:27]:28}" + "".join(f"{value:>10}" for value in row))


def keep(outcomes: list[Outcome], chosen: Mapping[str, Family], folder: Path) -> None:
    """Writes what failed: its files, its command and what it printed."""
    for outcome in outcomes:
        if outcome.word not in BAD and not outcome.masked:
            continue
        name = f"{outcome.family}-{outcome.seed}".replace(" ", "_").replace("/", "_")
        word = outcome.word if outcome.word in BAD else "masked"
        place = folder / word / name
        place.mkdir(parents=True, exist_ok=True)
        case = chosen[outcome.family](outcome.seed)
        for file, content in case.files.items():
            (place / file).write_bytes(content)
        (place / "COMMAND").write_text(json.dumps(list(case.argv)) + "\n")
        (place / "PRINTED").write_text(f"{outcome.label}\n\n{outcome.text}\n")


def figures(outcomes: list[Outcome], *, stops: bool = True) -> dict[str, object]:
    """Figures of the last line."""
    words = Counter(o.word for o in outcomes)
    found: dict[str, object] = {
        "inputs": len(outcomes),
        "tracebacks": words["traceback"],
        "crashes": words["crash"],
        "hangs": words["hang"],
        "over_memory": words["memory"],
        "leaks_into_pages": words["leak"],
        "masked": sum(o.masked for o in outcomes),
        "cpu_s": round(sum(o.cpu for o in outcomes), 1),
    }
    if stops:
        found["interrupts_survived_of"] = list(interrupts.survived(100, 1))
        found["resumed_equal_of"] = list(interrupts.resumed_equal(20, 1))
        found["leak_mb_per_minute"] = leaks.mb_per_minute()
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it; prints a table and one JSON object; returns the exit code."""
    parser = Measurement(__doc__, quick="3 inputs of each file format")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--most", type=int, help="inputs of each family")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="families, separated by commas")
    parser.add_argument("--again", metavar="'FAMILY SEED'", help="one input")
    parser.add_argument(
        "--keep", type=Path, default=HERE.parents[2] / "out/fuzz/failed"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--inputs-only", action="store_true", help="no stops, no leaks")
    parser.add_argument("--json", action="store_true", help="the JSON alone")
    args = parser.parse_args(argv)
    if args.quick:
        args.only, args.most, args.inputs_only = ",".join(FORMATS), 3, True
    only = tuple((args.only or "").split(","))
    if args.again:
        name, _, seed = args.again.rpartition(" ")
        only, args.first, args.most = (name,), int(seed), 1
        args.inputs_only = True
    chosen = families(args.results, only)
    outcomes = fuzz(
        chosen, 60 * args.minutes, first=args.first, most=args.most, jobs=args.jobs
    )
    if not args.json:
        for outcome in outcomes:
            if args.again:
                print(outcome.word, outcome.label, outcome.text, sep="\n")
        table(outcomes)
    keep(outcomes, chosen, args.keep)
    found = figures(outcomes, stops=not args.inputs_only)
    parser.report(found)
    return int(any(outcome.word in BAD for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
