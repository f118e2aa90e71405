"""The exceptions of drakebots.

Every error a user can cause is a :class:`DrakebotsError` whose message is one
line: the item, what is wrong with it, and the remedy. The command line prints
that line and exits with :attr:`DrakebotsError.exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any


def one_line(text: object) -> str:
    """A text of several lines as one line that a terminal shows as it is."""
    return printable(" ".join(str(text).split()))


def printable(text: str) -> str:
    """A text with its control characters written out, "\\x1b" for an escape."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def text_of(value: Any) -> str:
    """Formats a value for a person."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {text_of(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(text_of, value))
    return "–" if value is None else str(value)


def some(names: Iterable[object], most: int = 4, separator: str = ", ") -> str:
    """The first names of a list, and how many more there are: "a, b and 7 more"."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return separator.join(texts[:most]) + more


class DrakebotsError(Exception):
    """An error that a user can cause and correct. The message is one line.

    Attributes:
        exit_code: of the command line.
    """

    exit_code = 2

    def __init__(self, message: str):
        super().__init__(one_line(message))


class DrakebotsWarning(UserWarning):
    """Warning for the user, although the work goes on. The message is one line.

    The command line prints it on stderr.
    """


class InvalidInput(DrakebotsError):
    """A value outside its range: NaN, a negative mass, a frequency <= 0."""


class UnknownName(DrakebotsError):
    """A name that is not among the valid choices.

    Attributes:
        kind: kind of choice, e.g. "gait".
        name: the unknown name.
        available: the valid choices, sorted.
        short: the message without them.
    """

    def __init__(self, kind: str, name: object, available: Iterable[str]):
        self.kind, self.name = kind, str(name)
        self.available = sorted(map(str, available))
        close = difflib.get_close_matches(self.name, self.available, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        choices = ", ".join(self.available) or "none"
        self.short = f"unknown {kind} {self.name!r}{hint}"
        super().__init__(f"{self.short}; choose one of: {choices}")


def check_names(kind: str, names: Iterable[Any], known: Collection[Any]) -> None:
    """Raises UnknownName for the first name that is not among the known ones."""
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)


class FileProblem(DrakebotsError):
    """A file that is missing, unreadable, malformed or of another version.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str | Path, message: str):
        self.path = Path(path)
        super().__init__(f"{path}: {message}")


class ModelProblem(FileProblem):
    """A model file that Drake or drakebots cannot use."""


class ResultProblem(FileProblem):
    """A result file that cannot be read back."""


class DrawingProblem(DrakebotsError):
    """A result or a model that could not be drawn."""

    exit_code = 1


class NoSolution(DrakebotsError):
    """A simulation or a solver that ended without a usable answer.

    Attributes:
        worst: the worst residuals by name, largest first.
    """

    exit_code = 1

    def __init__(self, message: str, worst: dict[str, float] | None = None):
        self.worst = dict(worst or {})
        named = ", ".join(f"{k} = {v:.3g}" for k, v in self.worst.items())
        super().__init__(message + (f"; worst: {named}" if named else ""))


class SolverProblem(NoSolution):
    """Linear equations that a library could not solve; its words, and what they mean.

    A stage (:func:`drakebots.core.stages.stage`) adds what was being done.
    """

    def __str__(self) -> str:
        return (
            f"equations have no answer that could be trusted ({super().__str__()}); a "
            "part that nothing holds, or a mesh with flat or loose elements, is a cause"
        )
