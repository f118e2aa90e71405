"""CasADi functions as machine code, compiled once and kept on disk.

A C compiler makes the large expressions of a program some seven times faster.
Without one, or with DRAKEBOTS_COMPILE=0, CasADi interprets them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import casadi as ca

WORTH_IT = 2000
"""Functions with fewer instructions are interpreted."""

_FLAGS = ("-O1", "-fPIC", "-shared", "-fno-math-errno")


def compiler() -> str | None:
    """The path of the C compiler to use, or None to interpret."""
    if os.environ.get("DRAKEBOTS_COMPILE", "1") == "0":
        return None
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = name and shutil.which(name)
        if found:
            return found
    return None


def cache_folder() -> Path:
    """Where compiled functions are kept: $XDG_CACHE_HOME/drakebots."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "drakebots"


def compiled(functions: Sequence[ca.Function]) -> list[ca.Function]:
    """The functions compiled where that is worth it, in the same order.

    What cannot be compiled (no compiler, a read-only disk, an error of the
    compiler) is returned as it is.
    """
    cc = compiler()
    if cc is None:
        return list(functions)
    jobs = [_Job(f, cc) if f.n_instructions() >= WORTH_IT else None for f in functions]
    return [job.finish() if job else f for job, f in zip(jobs, functions)]


class _Job:
    """One function on its way to machine code; compilers run side by side."""

    def __init__(self, function: ca.Function, cc: str):
        self.function, self.process, self.target = function, None, None
        # The name is part of the code, so that it must not hold a counter.
        generator = ca.CodeGenerator(function.name(), {"with_header": False})
        generator.add(function)
        code = generator.dump()
        key = hashlib.sha256("\n".join([code, cc, *_FLAGS]).encode()).hexdigest()
        try:
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            self.target = folder / f"{function.name()}_{key[:24]}.so"
            if not self.target.exists():
                self._start(code, cc)
        except OSError:
            self.target = None

    def _start(self, code: str, cc: str) -> None:
        self.work = Path(tempfile.mkdtemp(dir=self.target.parent))
        source = self.work / "function.c"
        source.write_text(code)
        self.process = subprocess.Popen(
            [cc, *_FLAGS, str(source), "-o", str(self.work / "function.so")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def finish(self) -> ca.Function:
        if self.target is None:
            return self.function
        try:
            if self.process is not None:
                try:
                    code = self.process.wait()
                    if code == 0:
                        os.replace(self.work / "function.so", self.target)
                finally:
                    if self.process.poll() is None:
                        self.process.kill()
                    shutil.rmtree(self.work, ignore_errors=True)
                if code != 0:
                    return self.function
            return ca.external(self.function.name(), str(self.target))
        except (OSError, RuntimeError):
            return self.function
