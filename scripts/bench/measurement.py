"""What a script measured: its command line and its last line; without a command."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from typing import Any

from drakebots.cli.output import print_json
from drakebots.core.threads import numerics


def figure(value: Any, unit: str = "1", target: Any = None, **more: Any) -> dict:
    """One measured figure as it stands in a script's JSON object."""
    return {"value": value, "unit": unit, "target": target, **more}


BESIDE = 0.1
"""Number of cores that others may keep busy before a measurement says so."""


class Measurement(argparse.ArgumentParser):
    """The command line of a script that measures, and the last line that it prints.

    measurement = Measurement(__doc__, quick="one round")
    args = measurement.parse_args(argv)
    ...
    return measurement.report({"step_s": 1.2})

    The first line of the docstring is the description, the others follow the options.

    Args:
        text: the script's docstring.
        quick: its short form, `--quick`.
    """

    def __init__(self, text: str, quick: str):
        first, _, others = text.strip().partition("\n")
        super().__init__(
            description=first,
            epilog=others.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("--quick", action="store_true", help=quick)
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        self._began = time.perf_counter(), _others_seconds()

    def report(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Prints the figures as one JSON object, with where they were measured.

        Other work of the machine, meanwhile, gets a line of its own before that.

        Returns:
            The object: the figures and `environment`, which is that of
            :func:`~drakebots.core.threads.numerics`, with `load_at_start` (mean of
            the minute before), `wall_s`, `other_busy_cores` (mean number of cores that
            other processes kept busy; None where the system does not say) and
            `beside_other_work`.
        """
        began, others_before = self._began
        wall, others = time.perf_counter() - began, _others_seconds()
        busy = None
        if others is not None and others_before is not None:
            busy = max(0.0, others - others_before) / wall
        said = (self._load or 0.0) if busy is None else busy
        environment = numerics() | {
            "load_at_start": self._load,
            "wall_s": wall,
            "other_busy_cores": busy,
            "beside_other_work": said > BESIDE,
        }
        if said > BESIDE:
            cores = environment["cores"]
            print(f"measured beside other work: {said:.1f} of {cores} cores were busy")
        result = dict(figures) | {"environment": environment}
        print_json(result)
        return result


def _others_seconds() -> float | None:
    """Processor time that others have had on the cores of this process [s]."""
    try:
        with open("/proc/stat") as file:
            rows = [line.split() for line in file if line.startswith("cpu")]
        mine = {f"cpu{k}" for k in os.sched_getaffinity(0)}
        tick = os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal
    busy = sum(sum(map(int, r[1:4] + r[6:9])) for r in rows if r[0] in mine)
    return busy / tick - sum(os.times()[:4])
