"""Bars on stderr; silent where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[..., None]]:
    """A bar for long work; gives the function to call as progress(stage, done, end).

    Args:
        label: of the whole work, e.g. the model's name.
    """
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(label, total=None, state="")

        def show(*args: Any) -> None:
            stage, done, end = args if isinstance(args[0], str) else ("", *args[:2])
            far = f"{done:.4g} of {end:.4g}" if end else f"{done:.4g}"
            state = f"{stage}: {far}" if stage else far
            bar.update(task, completed=done, total=end or None, state=state)

        yield show


def counter(label: str, what: str):
    """Until all callers use :func:`progress_bar`."""
    return progress_bar(label)


stage_bar = stages = iterations = progress_bar
