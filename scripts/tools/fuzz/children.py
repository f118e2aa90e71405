"""Runs inputs in forked children, within limits of time and memory, and judges them.

    with Children({"urdf": family}, 2, folder) as children:
        children.give("urdf", range(25))    # a batch: one child does one after another
        for outcome in children.finish():
            print(outcome.family, outcome.seed, outcome.word)

The parent imports drakebots once; a fork then costs some 20 ms where a start costs
seconds. A child names each input before it begins it, so one that crashes, loops or
eats memory is known, and the rest of its batch goes to a new child.
"""

from __future__ import annotations

import base64
import faulthandler
import gc
import json
import os
import re
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MEMORY = 2.0
"""Largest addition of an input to the memory of its process [GB]."""

WALL_FACTOR = 12.0
"""A child that waits is ended after so many times the limit of its processor time; the
machine may be shared."""

BAD = ("traceback", "crash", "hang", "memory", "leak")
"""The outcomes that must not be."""

SECRET = "root-of-this-machine-0123456789"
"""A text in a file of the machine, ../secret: no page may hold it."""

_LEAKED = [
    SECRET.encode(),
    *(base64.b64encode(b"x" * k + SECRET.encode())[4:-4] for k in range(3)),
    b"<script>alert(1)</script>",
]
"""Contents that no page may hold: that file, as it is or encoded, a name unescaped."""

_MASKED = re.compile(
    r"\b(Key|Index|Type|Value|Attribute|Assertion|Unicode\w*|ZeroDivision|Overflow|"
    r"FloatingPoint|Runtime|Recursion|LinAlg|NotImplemented|UnboundLocal|Name)Error\b"
)


@dataclass(frozen=True)
class Case:
    """One input.

    Attributes:
        argv: the command line after `drakebots`, run in a new folder.
        files: what is in that folder, by name.
        call: what to call in place of a command line; it raises nothing but a
            DrakebotsError.
        seconds: of processor time that it may take.
        label: what it is, in a few words.
    """

    argv: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    call: Callable[[], object] | None = None
    seconds: int = 20
    label: str = ""


Family = Callable[[int], Case]
"""Makes the input of a seed."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of an input.

    Attributes:
        family, seed: which one.
        word: "fine", "refused" (a line of ours), or one of :data:`BAD`.
        masked: whether its line names an exception of Python: it is no traceback, and
            does not say what to do either.
        cpu: processor time [s].
        label: what it was.
        text: the last of what it printed.
    """

    family: str
    seed: int
    word: str
    masked: bool
    cpu: float
    label: str
    text: str


class Children:
    """Some children at once, each with a batch of inputs of one family.

    Args:
        families: by name.
        jobs: how many children.
        folder: for what the inputs read and write; fast storage is worth it.
    """

    def __init__(self, families: Mapping[str, Family], jobs: int, folder: Path):
        self.families, self.jobs, self.folder = families, jobs, folder
        self._waiting: deque[tuple[str, list[int]]] = deque()
        self._running: list[_Child] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *error) -> None:
        for child in self._running:
            child.kill()

    def give(self, family: str, seeds: Sequence[int]) -> None:
        """Adds a batch."""
        self._waiting.append((family, list(seeds)))

    @property
    def free(self) -> bool:
        """Whether a child has nothing to do."""
        return len(self._running) + len(self._waiting) < self.jobs

    def ended(self, wait: float = 0.5) -> Iterator[Outcome]:
        """Starts what waits, and gives the inputs that ended meanwhile."""
        while self._waiting and len(self._running) < self.jobs:
            name, seeds = self._waiting.popleft()
            child = _Child(name, self.families[name], seeds, self.folder)
            self._running.append(child)
            self._selector.register(child.pipe, selectors.EVENT_READ, child)
        for key, _ in self._selector.select(wait):
            yield from key.data.read()
        for child in list(self._running):
            if child.late:
                child.kill()
                yield from child.read()
            if child.closed:
                self._running.remove(child)
                self._selector.unregister(child.pipe)
                yield from child.end()
                if child.left:
                    self._waiting.appendleft((child.name, child.left))

    def finish(self) -> Iterator[Outcome]:
        """Gives all that are still to end."""
        while self._running or self._waiting:
            yield from self.ended()


class _Child:
    """A child and the batch that it does; `left` is what it has not done."""

    def __init__(self, name: str, family: Family, seeds: list[int], folder: Path):
        self.name, self.left, self.closed = name, list(seeds), False
        self._line, self._label, self._wall = b"", "", 60.0
        self._began, self._killed = time.monotonic(), False
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # what the parent has is not copied by a collection in the child
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            _work(family, seeds, self.folder, write)
        os.close(write)
        os.set_blocking(read, False)
        self.pipe = read

    @property
    def late(self) -> bool:
        return time.monotonic() - self._began > self._wall and not self.closed

    def kill(self) -> None:
        self._killed = True
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def read(self) -> Iterator[Outcome]:
        while True:
            try:
                chunk = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                break
            if not chunk:
                self.closed = True
                break
            self._line += chunk
        *lines, self._line = self._line.split(b"\n")
        for line in lines:
            said, self._began = json.loads(line), time.monotonic()
            if "begins" in said:
                self._label, self._wall = said["begins"], WALL_FACTOR * said["seconds"]
            else:
                yield Outcome(self.name, self.left.pop(0), **said)

    def end(self) -> Iterator[Outcome]:
        """Judges the input that a child died of."""
        os.close(self.pipe)
        _, status, usage = os.wait4(self.pid, 0)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.left:
            ended = os.waitstatus_to_exitcode(status)
            hung = self._killed or ended == -signal.SIGXCPU
            word = "hang" if hung else "crash"
            cpu = usage.ru_utime + usage.ru_stime
            text = f"ended with {ended}\n{_tail(self.folder / '.printed')}"
            if "Fatal Python error: Segmentation" not in text and "MemoryError" in text:
                word = "memory"
            seed = self.left.pop(0)
            yield Outcome(self.name, seed, word, False, cpu, self._label, text)
        shutil.rmtree(self.folder, ignore_errors=True)


# --- in the child -------------------------------------------------------------------


def _work(family: Family, seeds: Sequence[int], folder: Path, pipe: int) -> None:
    """Does a batch, and ends the process."""
    status = 0
    try:
        os.setpgid(0, 0)
        _limit_memory()
        printed = os.open(folder / ".printed", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        (folder / "secret").write_text(f"newmtl x\n{SECRET}\n")
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((nothing, 0), (printed, 1), (printed, 2)):
            os.dup2(number, target)
        faulthandler.enable(file=2)
        faulthandler.register(signal.SIGXCPU, file=2, chain=True)
        for seed in seeds:
            case = family(seed)
            said = {"begins": case.label, "seconds": case.seconds}
            os.write(pipe, json.dumps(said).encode() + b"\n")
            os.ftruncate(1, 0)
            end = _judge(case, folder / "here")
            os.write(pipe, json.dumps(end).encode() + b"\n")
    except BaseException:
        traceback.print_exc()
        status = 99
    finally:
        os._exit(status)


def _judge(case: Case, folder: Path) -> dict[str, object]:
    """Runs one input here; what it says goes to the file that is stdout."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    os.chdir(folder)
    _restart_peak()
    before, held = _cpu(), _memory("VmRSS")
    limit = int(before) + 1 + case.seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    word = _run(case)
    sys.stdout.flush()
    sys.stderr.flush()
    text = _tail(folder.parent / ".printed")
    if _memory("VmHWM") - held > MEMORY:
        word = "memory"
    elif "Traceback (most recent" in text and word != "memory":
        word = "traceback"
    for page in folder.glob("*.html"):
        content = page.read_bytes()
        if any(part in content for part in _LEAKED):
            word = "leak"
    os.chdir(folder.parent)
    masked = word in ("fine", "refused") and bool(_MASKED.search(text))
    if word == "fine" and not masked:
        text = ""
    spent = _cpu() - before
    end = {"word": word, "masked": masked, "cpu": spent}
    return end | {"label": case.label[:300], "text": text}


def _run(case: Case) -> str:
    from drakebots.cli import main
    from drakebots.core.errors import DrakebotsError

    try:
        if case.call is not None:
            case.call()
            return "fine"
        code = main(list(case.argv))
    except DrakebotsError as error:
        print(error, file=sys.stderr)
        return "refused"
    except MemoryError:
        traceback.print_exc()
        return "memory"
    except SystemExit as error:
        if error.code in (0, 2, None):
            return "fine"
        traceback.print_exc()
        return "traceback"
    except BaseException:
        traceback.print_exc()
        return "traceback"
    return "refused" if code == 2 else "fine"


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    # Threads of Meshcat reserve, and do not use, some more.
    limit = used + int((MEMORY + 4.0) * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def _restart_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _memory(name: str) -> float:
    """A figure of this process's memory [GB]."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1e6  # type: ignore[index]


def _cpu() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _tail(path: Path, size: int = 6000) -> str:
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - size))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
