"""What a command says on stderr while it works: bars, warnings, notes on a model."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from drakebots.core.errors import DrakebotsWarning, one_line
from drakebots.core.run import Progress


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar for long work; gives the function to call as progress(stage, done, end).

    Nothing is shown where stderr is no terminal.

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


def warn(message: str) -> None:
    """Prints a warning, one line."""
    print(f"drakebots: warning: {one_line(message)}", file=sys.stderr)


@contextmanager
def warnings_on_one_line() -> Iterator[None]:
    """Prints the warnings of drakebots by :func:`warn`, each once."""
    shown: set[str] = set()
    show_other = warnings.showwarning

    def show(message, category, *where, **more):
        if not issubclass(category, DrakebotsWarning):
            show_other(message, category, *where, **more)
        elif str(message) not in shown:
            shown.add(str(message))
            warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", DrakebotsWarning)
        warnings.showwarning = show
        yield


def print_notes(name: str, notes: Iterable[str]) -> None:
    """Prints what was ignored or inferred in a model, dim where stderr is a terminal.

    Args:
        name: of the model.
        notes: one line each.
    """
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for note in notes:
        console.print(Text(one_line(f"{name}: {note}"), style="dim"))
