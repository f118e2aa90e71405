"""What the reading of a model file found: problems, and what was changed or left out.

A file may have hundreds of things to say of the same kind. Findings of one kind make
one line, with the items that they are about, counted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from drakebots.core.errors import ModelProblem

ITEMS = 8
"""A line names so many items and counts the others."""

PROBLEMS = 20
"""A message names so many problems and counts the others."""


class Findings:
    """Collects problems and notes of one file.

    Attributes:
        problems: what makes the file unusable, one sentence each, in the order found.
    """

    def __init__(self):
        self.problems: list[str] = []
        self._notes: dict[str, Counter[str]] = {}

    def problem(self, message: str) -> None:
        """Something that makes the file unusable: the item, the fault, the remedy."""
        if message not in self.problems:
            self.problems.append(message)

    def note(self, line: str, item: str = "", count: int = 1) -> None:
        """Something that was changed or left out.

        Args:
            line: what happened; findings with the same line are told together.
            item: what it happened to; none for the file as a whole.
            count: how often.
        """
        self._notes.setdefault(line, Counter())[item] += count

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for every kind of note: "<line>: a, b (3 times), and 4 more"."""
        return tuple(_line(line, items) for line, items in self._notes.items())

    def check(self, path: Path, *, strict: bool = False) -> None:
        """Raises if there is a problem; with `strict`, also if there is a note.

        Raises:
            ModelProblem: with all problems in one line.
        """
        found = self.problems + (list(self.notes) if strict else [])
        if found:
            more = len(found) - PROBLEMS
            rest = [f"and {more} more"] if more > 0 else []
            raise ModelProblem(path, "; ".join(found[:PROBLEMS] + rest))


def _line(line: str, items: Counter[str]) -> str:
    named = [
        item + (f" ({count} times)" if count > 1 else "")
        for item, count in items.items()
        if item
    ]
    if not named:
        count = items[""]
        return line + (f" ({count} times)" if count > 1 else "")
    more = len(named) - ITEMS
    if more > 0:
        named[ITEMS:] = [f"and {more} more"]
    return f"{line}: {', '.join(named)}"
