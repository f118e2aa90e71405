"""Threads of the linear algebra libraries, and other processes of this Python.

with calm_threads():
    for ...:
        stepper.step(...)

child = Child("my_module:serve")      # there: serve(pipe) in the other process
child.pipe.send(...)
child.stop()

A time step of a skin alternates between MKL's sparse solver and small dense algebra in
OpenBLAS. After every call the threads of OpenBLAS keep spinning, waiting for work, on
the cores that the solver needs; those of MKL spin for 200 ms beside the rest of the
step.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import math
import os
import platform
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

from drakebots.core.lazy import resolve

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
"""Beginnings of the environment variables that limit a library's threads."""

DENSE = ("openblas", "blis", "flexiblas")
"""Libraries that get one thread; MKL keeps the threads given to its solver."""


class _CasadiBlas(threadpoolctl.OpenBLASController):
    """OpenBLAS as CasADi's wheel brings it for MUMPS, under a name of its own."""

    filename_prefixes = ("libcasadi-tp-openblas",)


threadpoolctl.register(_CasadiBlas)


@functools.lru_cache(maxsize=1)
def find_mkl() -> ctypes.CDLL | None:
    """The library libmkl_rt as the mkl wheel installs it, or None without MKL.

    It is looked for where the environment variable PYPARDISO_MKL_RT says, where a
    wheel in any folder of the import path has put it, in `lib` of the interpreter and
    of those folders (`pip install --target`), and where the system finds libraries.
    """
    places = [os.environ.get("PYPARDISO_MKL_RT")]
    for wheel in metadata.distributions(name="mkl"):
        listed = wheel.files or ()
        places += sorted(str(f.locate()) for f in listed if "mkl_rt" in f.name)
    home = os.path.expanduser("~/.local")
    for folder in dict.fromkeys((sys.prefix, sys.base_prefix, home, *sys.path)):
        places += sorted(glob.glob(os.path.join(folder, "lib/*mkl_rt*")))
    places.append(find_library("mkl_rt"))
    for place in filter(None, places):
        try:
            library = ctypes.CDLL(place)
            library.pardiso.restype = None
        except (OSError, AttributeError):
            continue
        return library
    return None


def numerics() -> dict[str, Any]:
    """Settings and machine that a result's speed and last bits depend on.

    Returns:
        `machine` ("x86_64") and `processor`, its name; `cores`; `threads`, the limits
        that environment variables set; `blas`, for each library of dense algebra that
        is loaded its name, version, threads and `kernel`: OpenBLAS computes by the one
        of the processor that it finds, or of `OPENBLAS_CORETYPE`, which stands beside
        them if it is set.
    """
    limits = {name: os.environ.get(f"{name}_NUM_THREADS") for name in LIBRARIES}
    loaded = [x for x in ThreadpoolController().info() if x["user_api"] == "blas"]
    heads = ("library", "version", "kernel", "threads")
    keys = ("internal_api", "version", "architecture", "num_threads")
    found: dict[str, Any] = {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "threads": {name: limit for name, limit in limits.items() if limit},
        "blas": [dict(zip(heads, map(x.get, keys))) for x in loaded],
    }
    if kernel := os.environ.get("OPENBLAS_CORETYPE"):
        found["OPENBLAS_CORETYPE"] = kernel
    return found


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """The processor's name; on Linux Python's own answer is often none."""
    cpus = Path("/proc/cpuinfo")
    text = cpus.read_text() if os.path.exists(cpus) else ""
    named = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def cores() -> int:
    """Number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def solver_threads() -> int:
    """Threads of a sparse solver: the environment's OMP_NUM_THREADS, one without it.

    A result so depends on the cores of the machine only where that is asked for.
    """
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return max(1, int(said)) if said.isdecimal() else 1


@contextmanager
def calm_threads() -> Iterator[None]:
    """Context in which dense algebra has one thread, and MKL's do not spin.

    Use it around a loop, not inside: it searches the loaded libraries each time.
    Afterwards everything is as before.
    """
    mkl = find_mkl()
    if mkl is not None:
        mkl.MKL_Get_Max_Threads()  # loads its OpenMP
    found = ThreadpoolController()
    spins = _blocktimes(found)
    for library in spins:
        library.kmp_set_blocktime(0)
    try:
        with found.select(internal_api=list(DENSE)).limit(limits=1):
            yield
    finally:
        for library, milliseconds in spins.items():
            library.kmp_set_blocktime(milliseconds)


def _blocktimes(found: ThreadpoolController) -> dict[ctypes.CDLL, int]:
    """Spinning time of the threads of each library of Intel's OpenMP [ms]."""
    intel = [e["filepath"] for e in found.info() if e["prefix"] == "libiomp"]
    return {lib: lib.kmp_get_blocktime() for lib in map(ctypes.CDLL, intel)}


# --- another process ----------------------------------------------------------


class Child:
    """A process that serves one end of a pipe until the other is closed.

    Not `multiprocessing.Process`, which would import the user's main program again and
    so demands `if __name__ == "__main__"` in it. It does not hear Ctrl-C, and ends when
    this process does, whatever ends it.

    Args:
        serve: "module:function", called there with its end of the pipe.
        alone: whether its libraries may use all cores.

    Attributes:
        process: the process.
        pipe: our end.
    """

    def __init__(self, serve: str, *, alone: bool = False):
        ours, theirs = socket.socketpair()
        calm = {} if alone else {f"{name}_NUM_THREADS": "1" for name in LIBRARIES}
        path = os.pathsep.join(filter(None, sys.path))
        environment = calm | dict(os.environ) | {"PYTHONPATH": path}
        call = f"threads._serve({theirs.fileno()}, {serve!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from drakebots.core import threads; {call}"],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else None,
            env=environment,
        )
        theirs.close()
        self.pipe = Connection(ours.detach())
        self._answers = select.poll()
        self._answers.register(self.pipe, select.POLLIN)

    def has_answered(self, patience: float = 0.0) -> bool:
        """Whether there is something to receive, after waiting for so long at most [s];
        `pipe.poll` makes a list of what to look at anew each time, which takes 30 us.
        """
        return bool(self._answers.poll(1e3 * patience))

    @property
    def seconds(self) -> float:
        """Processor time that it took so far [s]; NaN where the system does not say."""
        try:  # Linux's number of the clock of a process
            return time.clock_gettime((~self.process.pid << 3) | 2)
        except OSError:
            return math.nan

    def stop(self) -> None:
        """Ends the process, in the middle of its work too."""
        self.pipe.close()
        self.process.kill()
        self.process.wait()


def _has_descriptor(stream: Any) -> bool:
    try:
        return stream.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


def _serve(descriptor: int, serve: str) -> None:
    """The work of the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    threading.Thread(target=_end_with_parent, args=[descriptor], daemon=True).start()
    resolve(serve)(Connection(descriptor))


def _end_with_parent(descriptor: int) -> None:
    hung_up = select.poll()
    hung_up.register(descriptor, 0)  # nothing but hang-ups
    hung_up.poll()
    os._exit(1)
