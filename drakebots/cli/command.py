"""What a command is: its forms for robots, lattices and skins."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from drakebots.cli.inputs import is_lattice

Arguments = Callable[[argparse.ArgumentParser], None]
Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Variant:
    """A command for one robot, with options of its own.

    Attributes:
        help: one line.
        example: a whole command line.
        arguments: adds the options.
        run: does the work, returns the exit code.
    """

    help: str
    example: str
    arguments: Arguments
    run: Run


@dataclass(frozen=True)
class Command:
    """One command of the command line.

    Attributes:
        name: as typed.
        help: one line.
        example: a whole command line.
        arguments: adds the options; of any model, where robots have their own.
        run: does the work, returns the exit code.
        robots: by model name, what the command is for that robot.
        lattice: what the command is for a lattice's file.
        skin: what the command is for a model with a skin.
        has_skin: whether a word of a command line names such a model.
        find: raises where what a word names is not there.
    """

    name: str
    help: str
    example: str
    arguments: Arguments
    run: Run
    robots: Mapping[str, Variant] = field(default_factory=dict)
    lattice: Variant | None = None
    skin: Variant | None = None
    has_skin: Callable[[str], bool] = lambda word: False
    find: Callable[[str], object] = lambda word: None

    def variant(self, words: Iterable[str]) -> Command | Variant:
        """What the command is, for the robot or lattice a command line names."""
        inputs = self.inputs(words)
        if self.skin is not None and any(map(self.has_skin, inputs)):
            return self.skin
        if self.lattice is not None and any(map(is_lattice, inputs)):
            return self.lattice
        return next((self.robots[w] for w in inputs if w in self.robots), self)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All forms beside its own."""
        extra = (one for one in (self.lattice, self.skin) if one is not None)
        return (*self.robots.values(), *extra)

    @property
    def notes(self) -> str:
        """Of the general form's help: where the other forms have theirs."""
        notes = ""
        if self.robots:
            notes += (
                f"\n\nThese robots have options of their own: {', '.join(self.robots)};"
                f"\nsee `drakebots {self.name} {next(iter(self.robots))} --help`."
            )
        if self.skin is not None:
            notes += (
                "\n\nWhat has a skin has options of its own; see "
                f"`{' '.join(self.skin.example.split()[:3])} --help`."
            )
        if self.lattice is not None:
            notes += (
                f"\n\nA lattice's file has options of its own; see "
                f"`drakebots {self.name} lattice.json --help`."
            )
        return notes

    def inputs(self, words: Iterable[str]) -> list[str]:
        """Words behind the command's that are no option and no option's value.

        A file to write says nothing of the model.
        """
        switches = {"--json", "-h", "--help"}
        for form in (self, *self.variants):
            parser = argparse.ArgumentParser(add_help=False)
            form.arguments(parser)
            for action in parser._actions:  # argparse lists them nowhere else
                if action.nargs == 0:
                    switches.update(action.option_strings)
        inputs, last = [], ""
        for word in list(words)[1:]:
            if not word.startswith("-") and not _takes_value(last, switches):
                inputs.append(word)
            last = word
        return inputs


def _takes_value(word: str, switches: set[str]) -> bool:
    """Whether the next word is the value of this one."""
    if not word.startswith("-") or word in switches:
        return False
    return "=" not in word and (word.startswith("--") or len(word) == 2)
