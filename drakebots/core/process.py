"""Another process of this Python, and a pipe to it.

child = Child("my_module:serve")      # there: serve(pipe) in the other process
child.pipe.send(...)
child.stop()
"""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from drakebots.core.lazy import resolve

_ONE_THREAD = ("OMP", "OPENBLAS", "MKL", "NUMBA")
"""Libraries that would use all cores in each of several processes."""


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
        calm = {} if alone else {f"{name}_NUM_THREADS": "1" for name in _ONE_THREAD}
        path = os.pathsep.join(filter(None, sys.path))
        environment = calm | dict(os.environ) | {"PYTHONPATH": path}
        call = f"process._serve({theirs.fileno()}, {serve!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from drakebots.core import process; {call}"],
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
