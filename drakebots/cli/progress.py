"""Bars on stderr; silent where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_LABEL = TextColumn("{task.description}", markup=False)
_STATE = TextColumn("{task.fields[state]}", markup=False)


@contextmanager
def _bar(
    label: str, *columns: ProgressColumn, total: float | None = None, state: str = ""
) -> Iterator[Callable[..., None]]:
    """One task; gives the function that changes it."""
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(label, total=total, state=state)

        def change(**what: Any) -> None:
            bar.update(task, **what)

        yield change


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float, float], None]]:
    """Of a simulation: seconds done, and of how many."""
    far = TextColumn("{task.completed:.3f} / {task.total:.3f} s simulated")
    with _bar(
        label, _LABEL, BarColumn(), far, TimeRemainingColumn(), total=1.0
    ) as change:
        yield lambda done, total: change(completed=done, total=total)


@contextmanager
def counter(label: str, what: str) -> Iterator[Callable[[float, float], None]]:
    """Of things: how many are done, and of how many."""
    columns = (_LABEL, BarColumn(), MofNCompleteColumn(), TextColumn(what))
    with _bar(label, *columns) as change:
        yield lambda done, total: change(completed=done, total=total)


@contextmanager
def stage_bar(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """Of stages: the stage, its number, and of how many."""
    with _bar(
        label, _LABEL, BarColumn(), _STATE, TimeElapsedColumn(), total=1
    ) as change:
        yield lambda stage, k, n: change(completed=k, total=n, state=stage)


@contextmanager
def stages(label: str) -> Iterator[Callable[[str, float, float], None]]:
    """Of stages of unlike kinds: the stage, and how far it is."""
    with _bar(label, SpinnerColumn(), _LABEL, _STATE, TimeElapsedColumn()) as change:

        def show(stage: str, done: float, end: float) -> None:
            far = f"{done:.3f} of {end:.3f} s" if end else f"iteration {done:g}"
            change(state=f"{stage}: {far}")

        yield show


@contextmanager
def iterations(label: str) -> Iterator[Callable[[int, float, float], None]]:
    """Of a solver: iteration, objective and violation."""
    with _bar(label, SpinnerColumn(), _LABEL, _STATE, TimeElapsedColumn()) as change:

        def show(number: int, objective: float, violation: float) -> None:
            change(state=f"{number}: cost {objective:.4g}, violation {violation:.1e}")

        yield show
