"""Workers that solve the cases of a sweep: processes of this machine, or a cluster.

Both give the outcome of each job as it comes, and neither lets one job's end be
another's: a job that raises is an outcome like any other, and one whose process dies
is tried once more in a new process.
"""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from drakebots.core.errors import DrakebotsError, InvalidInput, one_line
from drakebots.core.installed import extra
from drakebots.core.lazy import resolve
from drakebots.core.threads import Child
from drakebots.results import Result

TRIES = 2
"""Number of times that a job is started whose process dies."""


@dataclass(frozen=True)
class Job:
    """A problem to solve, and where its result is kept.

    Attributes:
        run: "module:function", called as run(problem).
        problem: its argument.
        path: file for the result; None to send the result back instead.
    """

    run: str
    problem: Any
    path: str | None = None


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job.

    Attributes:
        verdict: of the result, or "error" where there is none.
        message: of the result, or of the error.
        model, kind, metrics: of the result; metrics that are numbers or texts.
        wall, cpu: wall and processor time of the job, without saving [s].
        result: the result itself, of a job without a path.
    """

    verdict: str
    message: str
    model: str = ""
    kind: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    wall: float = 0.0
    cpu: float = 0.0
    result: Result | None = None

    @classmethod
    def of(cls, result: Result, wall: float, cpu: float) -> Outcome:
        """The outcome of a job with a result, which it does not hold."""
        metrics = result.metrics.items()
        figures = {n: v for n, v in metrics if isinstance(v, str | int | float)}
        own = str(result.verdict), result.message, result.model, result.kind
        return cls(*own, figures, wall, cpu)


def run_job(job: Job) -> Outcome:
    """Solves a problem and saves its result; never raises but for Ctrl-C."""
    began = time.perf_counter(), time.process_time()

    def spent() -> tuple[float, float]:
        return time.perf_counter() - began[0], time.process_time() - began[1]

    try:
        result = resolve(job.run)(job.problem)
        outcome = Outcome.of(result, *spent())
        if job.path is None:
            return replace(outcome, result=result)
        result.save(job.path)
        return outcome
    # Drake's failed assertions reach Python as SystemExit.
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, DrakebotsError) else f"{type(error).__name__}: "
        wall, cpu = spent()
        return Outcome("error", kind + one_line(error), wall=wall, cpu=cpu)


# --- this machine -----------------------------------------------------------


def run_here(jobs: Sequence[Job], count: int) -> Iterator[tuple[int, Outcome]]:
    """Solves jobs in processes of this machine; gives (index, outcome) as they end.

    A process keeps its imports and compiled code from one job to the next. It does not
    hear Ctrl-C, and ends when this process does, whatever ends it.

    Args:
        jobs: jobs to solve.
        count: number of processes.
    """
    waiting, tries = deque(range(len(jobs))), Counter[int]()
    workers = [_Worker(alone=count == 1) for _ in range(min(count, len(jobs)))]
    try:
        while waiting or any(worker.job is not None for worker in workers):
            for worker in workers:
                if worker.job is None and waiting:
                    index = waiting.popleft()
                    tries[index] += 1
                    worker.send(index, jobs[index])
            busy = [worker for worker in workers if worker.job is not None]
            ready = wait([worker.pipe for worker in busy])
            for worker in [worker for worker in busy if worker.pipe in ready]:
                index, worker.job = worker.job, None
                try:
                    yield index, worker.pipe.recv()
                except (EOFError, OSError):
                    worker.stop()
                    workers[workers.index(worker)] = _Worker(alone=count == 1)
                    if tries[index] < TRIES:
                        waiting.appendleft(index)
                    else:
                        yield index, Outcome("error", worker.died())
    finally:
        for worker in workers:
            worker.stop()


class _Worker(Child):
    """A process that solves one job after the other."""

    def __init__(self, *, alone: bool):
        super().__init__(f"{__name__}:serve", alone=alone)
        self.job: int | None = None

    def send(self, index: int, job: Job) -> None:
        """Starts a job. Where the process is gone, nothing but the end will come back.

        Raises:
            InvalidInput: for a problem that no other process can read.
        """
        try:
            with suppress(OSError):
                self.pipe.send(job)
        except Exception as error:  # what cannot be pickled, in many ways
            raise InvalidInput(
                f"the problem cannot be sent to another process ({error}); make it of "
                "classes that a module defines"
            ) from error
        self.job = index

    def died(self) -> str:
        """End of the process in words, for a job's message."""
        code = self.process.wait()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"its process ended {TRIES} times without a result ({name})"


def serve(pipe: Connection) -> None:
    """The work of a process of :func:`run_here`: solves jobs until nobody asks."""
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        except Exception as error:  # a problem whose module is not to be found here
            pipe.send(Outcome("error", f"{type(error).__name__}: {one_line(error)}"))
            continue
        pipe.send(run_job(job))


# --- a cluster --------------------------------------------------------------


def run_on_cluster(
    jobs: Sequence[Job], scheduler: Any
) -> Iterator[tuple[int, Outcome]]:
    """Solves jobs on a cluster of dask; gives (index, outcome) as they end.

    Jobs of a worker that dies go to another one (dask's `allowed-failures`). Results
    come back through the scheduler: no folder need be shared.

    Args:
        jobs: jobs to solve, without paths.
        scheduler: its address, "tcp://host:8786", or a `distributed.Client`.

    Raises:
        InvalidInput: without dask, or when nobody answers at the address.
    """
    dask = extra("distributed")
    own = isinstance(scheduler, str | Path)
    try:
        client = scheduler
        if own:
            client = dask.Client(str(scheduler), timeout=5, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInput(
            f"scheduler {scheduler!r} does not answer ({one_line(error)}); start one "
            "with `dask scheduler`"
        ) from error
    # Keys of our own: dask would take equal problems for one and the same task.
    futures = {client.submit(run_job, job, pure=False): k for k, job in enumerate(jobs)}
    try:
        for future in dask.as_completed(list(futures), loop=client.loop):
            if future.status == "finished":
                outcome = future.result()
            else:
                outcome = Outcome("error", one_line(future.exception()))
            yield futures.pop(future), outcome
            future.release()
    finally:
        client.cancel(list(futures))
        if own:
            client.close()
