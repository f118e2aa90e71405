"""Ends commands at random moments, by SIGINT, SIGTERM and SIGKILL, and goes on.

    python scripts/tools/fuzz/interrupts.py --count 100 --resumes 20 --seed 1

A command that got SIGINT or SIGTERM has survived if it ends in five seconds with exit
code 130 or 143 and without a traceback, leaves no hidden file, and every result and
checkpoint in its folder can be read. After SIGKILL the files that are there can be
read, and the hidden ones are gone once the next command claims the outputs.

A plan or a sweep that was ended so, and then goes on (`--resume`, or the same folder),
is equal if it comes to the verdict and the answer of one that nobody ended.

Moments are in processor time of the command, uniform up to what it takes. The five
seconds are of the clock or, on a busy machine, of its processor.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import DrakebotsError
from drakebots.core.files import check_output, claimed
from drakebots.results import load_result
from drakebots.trajopt.program import read_checkpoint

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = str(ROOT / "examples" / "my_robot.urdf")

COMMANDS: dict[str, tuple[str, ...]] = {
    "plan": ("plan", EXAMPLE, "--forward", "0.3", "--checkpoint", "x.npz", "-o"),
    "plan hop": ("plan", "monopod", "--hop", "0.1", "--checkpoint", "x.npz", "-o"),
    "plan hamr": ("plan", "hamr", "--knots", "17", "--checkpoint", "x.npz", "-o"),
    "simulate hamr": ("simulate", "hamr", "--cycles", "3", "--html", "x.html", "-o"),
    "simulate leg": ("simulate", "skinned-leg", "--duration", "0.3", "-o"),
    "simulate gecko": ("simulate", "gecko", "--html", "x.html", "-o"),
    "simulate voxel": ("simulate", "voxel", "--cycles", "1", "-o"),
    "simulate file": ("simulate", EXAMPLE, "--duration", "2", "--plot", "x.png", "-o"),
    "mpc": ("mpc", "mini_cheetah", "--duration", "0.5", "-o"),
    "track": ("track", "hamr:30hz_card", "--cycles", "2", "-o"),
    "sweep": ("sweep", "gecko.simulate", "--epsilon", "0.05,0.1,0.2", "-o"),
    "export": ("export", "hamr", "--urdf", "x.urdf", "--mjcf"),
}
"""Commands that are ended: the words of each up to its output."""

RESUMED = ("plan", "plan hop", "plan hamr", "sweep")

OUTPUTS = {"sweep": "x", "export": "x.xml"}

LIMIT = 5.0
"""Time that a command has to end [s]."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class Ended:
    """End of a command.

    Attributes:
        name: of the command.
        code: its exit code; -n for signal n.
        sent: the signal that it got; 0 where it was done before.
        cpu: processor time at the signal, or of the whole command [s].
        clock, busy: wall and processor time from the signal to the end [s].
        err: what it printed on stderr.
    """

    name: str
    code: int
    sent: int
    cpu: float
    clock: float
    busy: float
    err: str


def run(name: str, folder: Path, more: Sequence[str] = (), sent=0, at=0.0) -> Ended:
    """Runs a command in a folder; sends it a signal once it took `at` [s] of a core."""
    words = [*COMMANDS[name], OUTPUTS.get(name, "x.nc"), *more]
    # One thread each: the same on every machine.
    quiet = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "drakebots", *words],
        cwd=folder,
        env=os.environ | quiet | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listening,
    )
    done, before, began, cut = False, 0.0, time.monotonic(), 0.0
    while not done:
        done = os.waitid(os.P_PID, process.pid, _LOOK) is not None
        spent, now = _processor_time(process.pid), time.monotonic()
        if not cut and not done and sent and spent >= at:
            process.send_signal(sent)
            before, cut = spent, now
        late = cut and now - cut > 12 * LIMIT
        if late or now - began > 1800:
            process.kill()
        time.sleep(0.005)
    clock = now - cut if cut else 0.0
    err = process.communicate()[1]
    sent = sent if cut else 0
    cpu, busy = (before, spent - before) if cut else (spent, 0.0)
    return Ended(name, process.returncode, sent, cpu, clock, busy, err)


_LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT


def _listening() -> None:
    # A parent that ignores SIGINT would make the child ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _processor_time(pid: int) -> float:
    """Of a process and its children that ended [s]."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def faults(ended: Ended, folder: Path) -> Iterator[str]:
    """Faults of a command that was ended."""
    if "Traceback" in ended.err:
        yield "a traceback"
    if ended.sent == signal.SIGKILL:
        time.sleep(0.5)  # processes of a sweep end when they find it gone
        for path in list(folder.rglob(".*")):
            target = path.name.split(".part-")[0].removesuffix(".claim")[1:]
            with claimed([check_output(path.with_name(target))]):
                pass
    elif ended.sent:
        # Python's own handlers end it while the command is imported.
        codes = (128 + ended.sent, -ended.sent)
        if ended.code not in codes:
            yield f"exit code {ended.code}"
        if min(ended.clock, ended.busy) > LIMIT or ended.clock > 12 * LIMIT:
            yield f"{ended.clock:.1f} s to its end"
    elif ended.code:
        yield f"exit code {ended.code} by itself"
    for path in folder.rglob("*"):
        if path.name.startswith("."):
            yield f"{path.name} is left"
        elif path.suffix in _READERS:
            try:
                _READERS[path.suffix](path)
            except DrakebotsError as error:
                yield str(error)


_READERS: dict[str, Callable] = {".nc": load_result, ".npz": read_checkpoint}


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="drakebots-interrupts-"))
    try:
        yield path
    finally:
        with suppress(OSError):
            shutil.rmtree(path)


def _costs(names: Sequence[str]) -> dict[str, float]:
    """Processor time of each command [s]."""
    costs = {}
    for name in names:
        with _folder() as folder:
            ended = run(name, folder)
            costs[name] = ended.cpu
            _tell(-1, ended, "alone", list(faults(ended, folder)))
    return costs


def survived(count: int, seed: int) -> tuple[int, int]:
    """Number of `count` random commands that survive a random signal, and of all."""
    choose, good = random.Random(seed), 0
    costs = _costs(tuple(COMMANDS))
    for k in range(count):
        name, sent = choose.choice(tuple(COMMANDS)), choose.choice(SIGNALS)
        with _folder() as folder:
            ended = run(name, folder, sent=sent, at=choose.uniform(0, costs[name]))
            found = list(faults(ended, folder))
            kept = sorted(path.name for path in folder.iterdir())
        if not ended.sent:  # done before: nothing had to be compiled any more
            costs[name] = ended.cpu
        good += not found
        _tell(k, ended, f"kept {' '.join(kept) or 'nothing'}", found)
    return good, count


def resumed_equal(count: int, seed: int) -> tuple[int, int]:
    """Number of `count` ended commands that go on to the answer of an unbroken one, and
    of all."""
    choose, good, whole = random.Random(seed), 0, {}
    for name in RESUMED:
        with _folder() as folder:
            run(name, folder)
        with _folder() as folder:
            whole[name] = run(name, folder), _answer(folder)
    for k in range(count):
        name, sent = RESUMED[k % len(RESUMED)], choose.choice(SIGNALS)
        first, aim = whole[name]
        with _folder() as folder:
            ended = run(name, folder, sent=sent, at=choose.uniform(0.2, 1) * first.cpu)
            found = list(faults(ended, folder))
            there = (folder / "x.npz").exists()
            again = run(name, folder, ["--resume", "x.npz"] if there else [])
            answer = _answer(folder)
        far = _difference(aim, answer)
        if far > EQUAL:
            found.append(f"differs by {far:.1e}: {again.err.strip()[-200:]}")
        good += not found
        _tell(
            k, ended, f"{'resumed' if there else 'anew'}, differs by {far:.1e}", found
        )
    return good, count


EQUAL = 1e-3
"""Largest relative difference of equal answers: that of an objective at the loosest
tolerance at which a plan succeeds. Most differ by 0."""


def _answer(folder: Path) -> dict[str, float | str]:
    """The verdict, and the figures that tell one answer from another."""
    paths = [folder / "x.nc", folder / "x" / "sweep.nc"]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return {"verdict": "none"}
    result = load_result(path)
    answer: dict[str, float | str] = {"verdict": str(result.verdict)}
    if "objective" in result.metrics:
        return answer | {"objective": result.metrics["objective"]}
    timed = ("wall_time", "processor_time")
    return answer | {
        str(name): float(np.nansum(values.values))
        for name, values in result.data.data_vars.items()
        if values.dtype.kind == "f" and name not in timed and not name.endswith("_s")
    }


def _difference(aim: dict, answer: dict) -> float:
    if aim.keys() != answer.keys() or aim["verdict"] != answer["verdict"]:
        return np.inf
    numbers = [name for name in aim if name != "verdict"]
    pairs = [(aim[name], answer[name]) for name in numbers]
    return max(abs(a - b) / max(abs(a), 1e-12) if a != b else 0.0 for a, b in pairs)


def _tell(k: int, ended: Ended, text: str, found: Sequence[str]) -> None:
    name = signal.Signals(ended.sent).name if ended.sent else "no signal"
    if found:
        text += f"; FAULT: {'; '.join(found)}: {ended.err.strip()[-300:]}"
    print(
        f"{k + 1:4d} {ended.name:<15} {name:<9} at {ended.cpu:5.2f} s: exit "
        f"{ended.code:4d} after {ended.clock:5.2f} s, {ended.busy:5.2f} s of a core; "
        f"{text}",
        file=sys.stderr,
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--resumes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    found = {}
    if args.count:
        found["interrupts_survived_of"] = survived(args.count, args.seed)
    if args.resumes:
        found["resumed_equal_of"] = resumed_equal(args.resumes, args.seed)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
