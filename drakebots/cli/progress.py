"""Bars on stderr; silent where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from drakebots.core.run import Progress


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar for long work; gives the function to call as progress(stage, done, end).

    Args:
        label: of the whole work, e.g. the model's name.
    """
    with Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(label, total=None, state="")

        def show(stage: str, done: float, end: float) -> None:
            far = f"{done:.4g} of {end:.4g}" if end else f"{done:.4g}"
            state = f"{stage}: {far}"
            bar.update(task, completed=done, total=end or None, state=state)

        yield show
