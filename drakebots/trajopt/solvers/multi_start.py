"""A ladder climbed from several starts, one after the other or side by side."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.solvers.ladder import Climb


@dataclass(frozen=True)
class MultiStart:
    """What became of the starts that ran, in the order they were asked for.

    Attributes:
        seeds: of the starts.
        climbs: from each.
    """

    seeds: tuple[int, ...]
    climbs: tuple[Climb, ...]

    @property
    def num_feasible(self) -> int:
        """Starts that led to an answer."""
        return sum(climb.feasible for climb in self.climbs)

    @property
    def best(self) -> Climb | None:
        """The answer of lowest objective, None without answers."""
        answers = [climb for climb in self.climbs if climb.feasible]
        return min(answers, key=lambda climb: climb.objective, default=None)

    @property
    def median_seconds(self) -> float:
        """Of all starts, with an answer or without [s]."""
        return float(np.median([climb.seconds for climb in self.climbs]))

    def __str__(self) -> str:
        lines = [f"{'seed':>6} {'seconds':>8}  {'objective':>12} {'worst':>8}  rungs"]
        for seed, climb in zip(self.seeds, self.climbs):
            rungs = ", ".join(f"{r.label} {r.iterations}" for r in climb.rungs)
            objective = f"{climb.objective:.6g}" if climb.feasible else "no answer"
            lines.append(
                f"{seed:>6} {climb.seconds:8.1f}  {objective:>12} "
                f"{climb.worst[1]:8.1e}  {rungs}"
            )
        best = self.best
        lines.append(
            f"{self.num_feasible} of {len(self.climbs)}, median "
            f"{self.median_seconds:.1f} s, best "
            + ("–" if best is None else f"{best.objective:.6g}")
        )
        return "\n".join(lines)


def multi_start(
    run: Callable[[int], Climb],
    seeds: Iterable[int],
    *,
    processes: int = 1,
    done: Callable[[int, Climb], None] | None = None,
) -> MultiStart:
    """Climbs from every start; Ctrl-C ends with those that have run.

    Args:
        run: from a seed to its climb. For several processes it must be a
            function of a module, or another thing that pickles; each process
            builds its own programs, since CasADi's functions do not travel.
        seeds: of the starts, all different.
        processes: to run side by side, each with its own threads.
        done: told of each start as it ends, in the order they end.

    Raises:
        InvalidInput: for no seeds, one that comes twice, or processes < 1.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise InvalidInput("there are no starts; give one seed or more")
    if len(set(seeds)) != len(seeds):
        raise InvalidInput("a seed comes twice; its start would be the same")
    if processes < 1:
        raise InvalidInput(f"processes must be >= 1, got {processes}")
    found = {}
    for seed, climb in _climbs(run, seeds, processes):
        found[seed] = climb
        if done is not None:
            done(seed, climb)
        if climb.interrupted:
            break
    ended = tuple(seed for seed in seeds if seed in found)
    return MultiStart(ended, tuple(found[seed] for seed in ended))


def _climbs(run, seeds: Sequence[int], processes: int) -> Iterator[tuple[int, Climb]]:
    if processes == 1 or len(seeds) == 1:
        for seed in seeds:
            yield seed, run(seed)
        return
    # A fork of a process that has run CasADi's threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(seeds)), context) as pool:
        waiting = {pool.submit(run, seed): seed for seed in seeds}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


__all__: Sequence[str] = ("MultiStart", "multi_start")
