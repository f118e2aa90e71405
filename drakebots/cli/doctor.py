"""The command that examines an installation: what is there, and what is slow and why.

Nothing is decided here: each line asks the function by which the code itself chooses.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import webbrowser
from collections.abc import Mapping
from typing import Any

from drakebots import __version__
from drakebots.cli import command
from drakebots.cli.output import print_table, tell
from drakebots.core.files import cache_folder
from drakebots.core.installed import EXTRAS, version_of
from drakebots.core.threads import cores, numerics, solver_threads
from drakebots.fem.solver import fast_blas, installed_solvers
from drakebots.trajopt.program import compiler
from drakebots.trajopt.solvers import SOLVERS, is_installed, kkt

VERSIONS = ("drake", "numpy", "scipy", "casadi", "numba", "mujoco")


def examined() -> dict[str, Any]:
    """What is installed, and by what it computes.

    Returns:
        `versions` of packages; `python`, `system` and `package`, where drakebots is;
        `machine`, as :func:`~drakebots.core.threads.numerics` has it, with `usable`
        cores, `load` and the `solver_threads`; `plans` and `skins`, the solvers that
        are installed, for skins the one that is used first; `c_parts`, `compiler`,
        `browser`, `extras` with their versions, or None; `cache`, the folder of what is
        made once, and whether it is `cached`; `slow`, as :func:`_slow` has it.
    """
    found: dict[str, Any] = {
        "versions": {name: version_of(name) or "unknown" for name in VERSIONS},
        "python": platform.python_version(),
        "system": f"{platform.platform(terse=True)} {platform.machine()}",
        "package": os.path.dirname(sys.modules["drakebots"].__file__ or ""),
        "machine": numerics()
        | {
            "usable": cores(),
            "load": os.getloadavg()[0],
            "solver_threads": solver_threads(),
        },
        "plans": [name for name in SOLVERS if is_installed(name)],
        "skins": list(installed_solvers()),
        "c_parts": {"kkt": kkt.available(), "blas": fast_blas() is not None},
        "compiler": compiler(),
        "browser": _browser(),
        "extras": {name: version_of(name) for name in EXTRAS},
        "cache": str(cache_folder()),
        "cached": _is_writable(str(cache_folder())),
    }
    return {"drakebots": __version__, **found, "slow": _slow(found)}


def _slow(found: Mapping[str, Any]) -> list[str]:
    """What is slower here than it could be, why, and the remedy; one line each."""
    skins, machine, parts = found["skins"][0], found["machine"], found["c_parts"]
    x86 = machine["machine"] == "x86_64" and sys.platform == "linux"
    busy = machine["load"] / machine["usable"]
    once = "install a C compiler (apt install gcc)"
    lines = {
        "skins: SciPy solves them, ten and more times slower than MUMPS; pip install "
        "'casadi>=3.8'": skins == "scipy",
        "skins: MUMPS solves them; PARDISO takes 0.6 to 0.7 of its time; pip install "
        "mkl (0.9 GB)": skins == "mumps" and x86,
        "skins: blas.c was not compiled, and MUMPS multiplies two to four times "
        f"slower; {once}, then drakebots again": skins == "mumps" and not parts["blas"],
        "plans: kkt.c was not compiled, and by MUMPS HAMR's gaits take two to three "
        f"times as long; {once}, then drakebots again": not parts["kkt"],
        "plans, control: derivatives are interpreted, ten to seventy times slower; "
        f"{once}, and do not set DRAKEBOTS_COMPILE=0": found["compiler"] is None,
        f"all: nothing can be kept in {found['cache']}, so that derivatives are "
        "compiled in every run; set XDG_CACHE_HOME": not found["cached"],
        f"all: other work keeps {busy:.0%} of the cores busy": busy > 0.5,
    }
    return [line for line, holds in lines.items() if holds]


def _browser() -> str | None:
    """The browser that Python would open here."""
    try:
        return getattr(webbrowser.get(), "name", "yes")
    except webbrowser.Error:
        return None


def _is_writable(folder: str) -> bool:
    """Whether a folder can be written, or made."""
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


@command("doctor", "drakebots doctor --json")
def examine(args: argparse.Namespace) -> int:
    """Say what is installed, which solvers are used, and what is slow and why."""
    found = examined()
    machine, extras = found["machine"], found["extras"]
    limits = "".join(f", {k}_NUM_THREADS={v}" for k, v in machine["threads"].items())
    first, *others = found["skins"]
    rows: dict[str, Any] = {
        "drakebots": f"{found['drakebots']}, {found['package']}",
        "Python": f"{found['python']}, {sys.executable}",
        "with": found["versions"],
        "system": found["system"],
        "processor": f"{machine['processor']}, {machine['usable']} cores, "
        f"load {machine['load']:.1f}",
        "threads": f"{machine['solver_threads']} of a sparse solver{limits}",
        "plans are solved by": found["plans"],
        "skins are solved by": first + (f" (or {', '.join(others)})" if others else ""),
        "C parts": {k: "yes" if v else "missing" for k, v in found["c_parts"].items()},
        "C compiler": found["compiler"] or "none",
        "browser": found["browser"]
        or "none here; pages (.html) and addresses open in that of another machine",
    }
    for name, version in extras.items():
        missing = f"not installed; for {EXTRAS[name]}; pip install {name}"
        rows[name] = version or missing
    rows |= {f"slow {k}": line for k, line in enumerate(found["slow"], 1)}
    print_table("drakebots doctor", rows if found["slow"] else rows | {"slow": "–"})
    return tell(args, found)
