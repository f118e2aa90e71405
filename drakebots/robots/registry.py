"""What there is for each robot and each kind of result, by name.

One table says what simulates, plans and tracks a robot, and what plots, draws,
tracks and exports each kind of result. The command line, :mod:`drakebots.robots.show`
and :func:`drakebots.simulate` look here and nowhere else, so a robot of your own that
is registered behaves like one of ours:

    from drakebots.robots import Kind, Robot, Task, register

    register(
        Robot("hopper", "a planar hopper", simulate=Task("hopper:Simulation", ...)),
        Kind("hopper.simulation", plot="hopper:plot", record="drakebots.view:record"),
    )

Everything is named as "module:name" and imported when it is used: looking up a name
loads no robot. Installed packages register through the entry point group
`drakebots.robots`, whose entries are functions without arguments.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from drakebots.core.errors import InvalidInput, UnknownName

TASKS = ("simulate", "plan", "track")
"""What a robot may do, each a command of the command line."""


def resolve(reference: str) -> Any:
    """What a "module:name" stands for, imported now."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Task:
    """One thing that a robot does: a problem in, a result out.

    Attributes:
        problem: "module:Class", a frozen dataclass. For `track` its first field is the
            plan's result.
        run: "module:function", called as run(problem, progress=...); it returns a
            :class:`~drakebots.results.Result`.
        help: one line for the command line.
        example: a whole command line.
        options: "module:VARIANT", the command line's options; by default the fields of
            the problem are the options.
        also: further problems that `run` takes.
    """

    problem: str
    run: str
    help: str
    example: str = ""
    options: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Robot:
    """A robot by name, and what it does without a plan.

    Attributes:
        name: as typed; usually the name of its model folder.
        about: one line.
        simulate, plan: its tasks.
        matches: "module:function" that says whether a word of a command line names this
            robot; by default the word is its name. For families: models with a skin,
            files of lattices.
    """

    name: str
    about: str
    simulate: Task | None = None
    plan: Task | None = None
    matches: str = ""

    def is_named(self, word: str) -> bool:
        """Whether a word of a command line names this robot."""
        if self.matches:
            return resolve(self.matches)(word)
        return word.replace("-", "_") == self.name


@dataclass(frozen=True)
class Kind:
    """A kind of result, and what can be done with one.

    Attributes:
        name: "robot.what", unique.
        plot: "module:function", called as plot(result, path).
        record: "module:function", called as record(result, **playback), which returns a
            :class:`~drakebots.view.Stage`; "" where there is no motion.
        track: what executes a plan of this kind.
        export: "module:VARIANT" of the command line's `export`.
    """

    name: str
    plot: str
    record: str = ""
    track: Task | None = None
    export: str = ""


@dataclass
class _Registry:
    robots: dict[str, Robot] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)


_REGISTRY = _Registry()


def register(*entries: Robot | Kind) -> None:
    """Adds robots and kinds of results.

    Raises:
        InvalidInput: for a name that is taken by another entry.
    """
    for entry in entries:
        table = _REGISTRY.robots if isinstance(entry, Robot) else _REGISTRY.kinds
        if table.get(entry.name, entry) != entry:
            raise InvalidInput(
                f"{type(entry).__name__.lower()} {entry.name!r} is registered already; "
                "choose another name"
            )
        table[entry.name] = entry


@cache
def _load_plugins() -> None:
    importlib.import_module("drakebots.robots.builtin")
    for entry in entry_points(group="drakebots.robots"):
        entry.load()()


def robots() -> Mapping[str, Robot]:
    """All robots by name."""
    _load_plugins()
    return dict(_REGISTRY.robots)


def kinds() -> Mapping[str, Kind]:
    """All kinds of results by name."""
    _load_plugins()
    return dict(_REGISTRY.kinds)


def find_kind(name: str) -> Kind:
    """The entry of a kind of result.

    Raises:
        UnknownName: for one that nobody registered.
    """
    found = kinds().get(name)
    if found is None:
        raise UnknownName("kind of result", name, kinds())
    return found


def find_task(problem: Any, what: Iterable[str] = TASKS) -> Task:
    """The task whose problem this is.

    Args:
        problem: an instance of a problem's class.
        what: which tasks to look among.

    Raises:
        InvalidInput: for an object that is no registered problem.
    """
    bases = type(problem).__mro__
    for task in _tasks(what):
        if any(_loaded(name) in bases for name in (task.problem, *task.also)):
            return task
    raise InvalidInput(
        f"{type(problem).__name__} is no problem of a registered robot; see "
        "drakebots.robots.register"
    )


def _loaded(reference: str) -> Any:
    """What a reference stands for if its module is loaded, as an object's must be."""
    module, _, name = reference.partition(":")
    return getattr(sys.modules.get(module), name, None)


def _tasks(what: Iterable[str]) -> list[Task]:
    wanted = set(what)
    found = [
        getattr(robot, name)
        for robot in robots().values()
        for name in ("simulate", "plan")
        if name in wanted
    ]
    if "track" in wanted:
        found += [kind.track for kind in kinds().values()]
    return [task for task in found if task is not None]
