"""Messages of a command at work, on stderr: bars and warnings."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from drakebots.core.errors import DrakebotsWarning, one_line
from drakebots.core.run import Progress
from drakebots.core.stages import doing

SILENCE = 10.0
"""Time after which a command first says what it is doing, where stderr is no terminal
[s]; then after twice that time, and so on, and at least each minute."""


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A bar for long work; gives the function to call as progress(stage, done, end).

    What is done without progress, such as compiling, is said in its place. Where stderr
    is no terminal, a line from time to time says what is being done.

    Args:
        label: of the whole work, e.g. the model's name.
    """
    state = _State()
    if not sys.stderr.isatty():
        with _telling(label, state):
            yield state.note
        return
    with Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        state,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(label, total=None)

        def show(stage: str, done: float, end: float) -> None:
            state.note(stage, done, end)
            bar.update(task, completed=done, total=end or None)

        yield show


class _State(ProgressColumn):
    """What is being done, read whenever the bar is drawn, ten times a second."""

    said = ""

    def note(self, stage: str, done: float, end: float) -> None:
        """Notes how far a stage has come."""
        reached = f"{done:.4g} of {end:.4g}" if end else f"{done:.4g}"
        self.said = f"{stage}: {reached}"

    def __str__(self) -> str:
        return doing() or self.said

    def render(self, task: Task) -> Text:
        return Text(str(self))


@contextmanager
def _telling(label: str, state: _State) -> Iterator[None]:
    """Says on stderr from time to time what is being done."""
    ended, began = Event(), time.monotonic()

    def tell() -> None:
        silence = SILENCE
        while not ended.wait(silence):
            spent = time.monotonic() - began
            what = one_line(f"{label}: {str(state) or 'loading'} ({spent:.0f} s)")
            print(what, file=sys.stderr, flush=True)
            silence = min(2 * silence, 60.0)

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


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
