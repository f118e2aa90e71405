"""A problem that waits, for tests of sweeps: it notes every run in a file."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr

from drakebots.core.checks import finite, non_negative
from drakebots.core.errors import NoSolution
from drakebots.core.fields import checked
from drakebots.core.run import Verdict
from drakebots.results import Result, provenance
from drakebots.robots import Robot, Task, register


@dataclass(frozen=True)
class Inner:
    """A part of the problem.

    Attributes:
        share: any number [1].
    """

    share: float = 0.5


@checked("waiting")
class Waiting:
    """Waits, and answers with a square."""

    root: Annotated[float, finite("m")] = 1.0
    """A number, squared by the result. It may be negative."""
    other: Annotated[float, finite("m")] = 0.0
    """A number, squared by the result. It may be negative."""
    seconds: Annotated[float, non_negative("s")] = 0.0
    """Time to wait."""
    mode: str = "square"
    """Way to end: "square"; "raise", "exit", "die" or "fail" at the root 2."""
    log: str = ""
    """File that gets a line "root pid" at the start of every run."""
    inner: Any = Inner()
    """Another dataclass."""


def wait(problem: Waiting, *, progress=None) -> Result:
    """Waits as the problem says."""
    if problem.log:
        with open(problem.log, "a") as file:
            file.write(f"{problem.root:g} {os.getpid()}\n")
    time.sleep(problem.seconds)
    bad = problem.root == 2
    if bad and problem.mode == "raise":
        raise NoSolution("two is too much", {"gap": 1.0})
    if bad and problem.mode == "exit":
        raise SystemExit("a failed assertion of Drake")
    if bad and problem.mode == "die":
        os._exit(7)
    verdict = Verdict.FAILED if bad and problem.mode == "fail" else Verdict.SUCCESS
    square = np.full(3, problem.root**2 + problem.other)
    return Result(
        kind="waiting.simulation",
        model="waiting",
        verdict=verdict,
        message="waited",
        data=xr.Dataset(
            {"square": ("time", square, {"units": "m^2"})},
            {"time": ("time", np.arange(3.0), {"units": "s"})},
        ),
        residuals={},
        timings={"wait": problem.seconds},
        metrics={"square": float(square[0]), "sign": "+", "root_again": problem.root},
        provenance=provenance(None, {}),
    )


def runs(log: str | Path) -> list[tuple[float, int]]:
    """(root, process) of every run that a log noted."""
    if not os.path.exists(log):
        return []
    lines = Path(log).read_text().splitlines()
    return [(float(root), int(pid)) for root, pid in map(str.split, lines)]


class Killer(threading.Thread):
    """Kills the process of the third run that a log notes, in the middle of the run.

    Attributes:
        killed: (root, process) of that run.
    """

    def __init__(self, log: str | Path):
        super().__init__(daemon=True)
        self._log = log
        self.killed: tuple[float, int] = (0.0, 0)

    def run(self):
        deadline = time.time() + 60
        while len(runs(self._log)) < 3 and time.time() < deadline:
            time.sleep(0.02)
        self.killed = runs(self._log)[2]
        os.kill(self.killed[1], signal.SIGKILL)


register(
    Robot(
        "waiting",
        "waits",
        simulate=Task(
            "tests.helpers.waiting:Waiting", "tests.helpers.waiting:wait", "wait"
        ),
    )
)
