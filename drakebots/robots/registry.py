"""Registry of what there is for each robot and each kind of result, by name.

One table says what simulates, plans and tracks a robot, and what plots, draws,
tracks and exports each kind of result. The command line and the functions below look
here and nowhere else, so a robot of your own that is registered behaves like one of
ours:

    from drakebots.robots import Kind, Robot, Task, register

    register(
        Robot("hopper", "a planar hopper", simulate=Task("hopper:Simulation", ...)),
        Kind("hopper.simulation", plot="hopper:plot", record="drakebots.view:record"),
    )

Everything is named as "module:name" and imported when it is used: looking up a name
loads no robot. Our own robots have their entries in `register.py` of their folders.
Installed packages register through the entry point group `drakebots.robots`, whose
entries are functions without arguments. One function does each task for all robots:

    result = simulate(hamr.Simulation(gait="trot"))
    plot(result, "trot.png")
    record(result).save("trot.html")
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    InvalidInput,
    UnknownName,
    check_names,
)
from drakebots.core.lazy import late, resolve, show_dask

if TYPE_CHECKING:
    from drakebots.core.run import Progress
    from drakebots.model import Model
    from drakebots.results import Result
    from drakebots.view import Stage

metadata = late("importlib.metadata")
results = late("drakebots.results")

TASKS = ("simulate", "mpc", "plan", "live", "track", "refine")
"""Tasks of a robot, and of its plans, each a command of the command line."""


@dataclass(frozen=True)
class Task:
    """One thing that a robot does: a problem in, a result out.

    Attributes:
        problem: "module:Class", a frozen dataclass. For `track` and `refine` its first
            field is the plan's result.
        run: "module:function", called as run(problem, progress=...); it returns a
            :class:`~drakebots.results.Result`.
        help: one line for the command line.
        example: a whole command line.
        also: further problems that `run` takes; each has a switch on the command line,
            JumpProblem `--jump`.
        file: contents of an export, which names its option: "voltages"; then it is
            called as run(problem, path).
        pictures: more pictures of the result by the names of their options, each
            "module:function", called as plot(result, path).
    """

    problem: str
    run: str
    help: str
    example: str = ""
    also: tuple[str, ...] = ()
    file: str = ""
    pictures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Robot:
    """A robot by name, and what it does without a plan.

    Attributes:
        name: as typed; usually the name of its model folder.
        about: one line.
        simulate, mpc, plan, live: its tasks.
        stored_plan: "module:function", called as stored_plan(name) for the plans that
            come with it, or with the path of a file (.npz) of one; it returns a result
            without solving, or raises UnknownName with the names that there are.
        matches: "module:function" that says whether a word of a command line names this
            robot; by default the word is its name. For families: models with a skin,
            files of lattices.
    """

    name: str
    about: str
    simulate: Task | None = None
    mpc: Task | None = None
    plan: Task | None = None
    live: Task | None = None
    stored_plan: str = ""
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
        track: tracker of a plan of this kind.
        refine: function that plans it again from its executions, for a better plan.
        export: function that writes a file of its own from one.
    """

    name: str
    plot: str
    record: str = ""
    track: Task | None = None
    refine: Task | None = None
    export: Task | None = None


_ROBOTS: dict[str, Robot] = {}
_KINDS: dict[str, Kind] = {}


def register(*entries: Robot | Kind) -> None:
    """Adds robots and kinds of results.

    Raises:
        InvalidInput: for a name that is taken by another entry.
    """
    for entry in entries:
        table: dict = _ROBOTS if isinstance(entry, Robot) else _KINDS
        if table.get(entry.name, entry) != entry:
            raise InvalidInput(
                f"{type(entry).__name__.lower()} {entry.name!r} is registered already; "
                "choose another name"
            )
        table[entry.name] = entry


@cache
def _load() -> None:
    """Loads the entries of our own robots, and those of installed packages."""
    package = __name__.rpartition(".")[0]
    folder = importlib.import_module(package).__path__
    for robot in pkgutil.iter_modules(folder, f"{package}."):
        if robot.ispkg:
            register(*importlib.import_module(f"{robot.name}.register").ENTRIES)
    for entry in metadata.entry_points(group="drakebots.robots"):
        show_dask()  # theirs may use it
        entry.load()()


def robots() -> Mapping[str, Robot]:
    """All robots by name."""
    _load()
    return dict(_ROBOTS)


def kinds() -> Mapping[str, Kind]:
    """All kinds of results by name."""
    _load()
    return dict(_KINDS)


def find_kind(name: str) -> Kind:
    """The entry of a kind of result.

    Raises:
        UnknownName: for one that nobody registered.
    """
    check_names("kind of result", [name], kinds())
    return kinds()[name]


def find_task(problem: Any, what: Iterable[str] = TASKS) -> Task:
    """The task whose problem this is.

    Args:
        problem: an instance of a problem's class.
        what: tasks to look among.

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
    """Object of a reference if its module is loaded, as an object's must be."""
    module, _, name = reference.partition(":")
    return getattr(sys.modules.get(module), name, None)


def _tasks(what: Iterable[str]) -> list[Task]:
    owners = (*robots().values(), *kinds().values())
    found = [getattr(owner, name, None) for owner in owners for name in what]
    return [task for task in found if task is not None]


_MOTION = "drakebots.view:record_motion"

register(
    Kind("sweep", "drakebots.plots:plot_sweep"),
    Kind("identification", "drakebots.identify:plot_identified"),
    *(
        Kind(f"live.{what}", "drakebots.plots:plot_motion", _MOTION)
        for what in ("pose", "joints", "diagram")
    ),
)

# --- one function for all robots --------------------------------------------------


def simulate(problem: Any, *, progress: Progress | None = None) -> Result:
    """Simulates the problem of any registered robot.

    Args:
        problem: e.g. `hamr.Simulation(...)`.
        progress: called as progress(stage, done, end).

    Raises:
        InvalidInput: for an object that is no such problem.
    """
    return resolve(find_task(problem, ["simulate"]).run)(problem, progress=progress)


def plan(problem: Any, *, progress: Progress | None = None) -> Result:
    """Plans a motion: the problem of any registered robot; see :func:`simulate`."""
    return resolve(find_task(problem, ["plan"]).run)(problem, progress=progress)


def track(problem: Any, *, progress: Progress | None = None, **options: Any) -> Result:
    """Executes a plan on its robot.

    Args:
        problem: a plan's result, or a tracking problem, e.g. `hamr.Tracking(plan)`.
        progress: called as progress(stage, done, end).
        options: fields of the tracking problem, for a plan's result.

    Raises:
        InvalidInput: for a result of a kind that nothing executes.
    """
    kind = getattr(problem, "kind", None)
    if isinstance(kind, str) and hasattr(problem, "metrics"):
        task = find_kind(kind).track
        if task is None:
            raise InvalidInput(f"nothing tracks a result of kind {kind!r}")
        results.check_layout(problem)
        warn_if_failed(problem)
        problem = resolve(task.problem)(problem, **options)
    elif options:
        raise InvalidInput("options are fields of the problem; set them there")
    else:
        task = find_task(problem, ["track"])
    return resolve(task.run)(problem, progress=progress)


def warn_if_failed(plan: Result) -> None:
    """Warns of a plan that is no solution, which can be executed all the same."""
    if not plan.ok:
        text = f"this plan is no solution: {plan.verdict}: {plan.message}"
        warnings.warn(DrakebotsWarning(text), stacklevel=3)


def names_stored_plan(word: str) -> bool:
    """Whether a word names a stored plan: ROBOT:NAME, or a file (.npz)."""
    name, colon, _ = word.partition(":")
    stored = bool(colon) and name.replace("-", "_") in _with_stored_plans()
    return stored or word.lower().endswith(".npz")


def _with_stored_plans() -> dict[str, Robot]:
    return {name: robot for name, robot in robots().items() if robot.stored_plan}


def stored_plan(word: str) -> Result:
    """A plan that came with a robot, as it is: evaluated, and not solved again.

    Args:
        word: ROBOT:NAME, e.g. "hamr:30hz_card"; or a file (.npz) of a stored plan.

    Raises:
        UnknownName: for a robot without stored plans, and for the name of no plan; it
            lists those that there are.
        FileProblem: for a file that is missing, damaged, or no stored plan.
    """
    able = _with_stored_plans()
    name, colon, of = word.partition(":")
    if colon and name.replace("-", "_") in able:
        return resolve(able[name.replace("-", "_")].stored_plan)(of)
    if not word.lower().endswith(".npz"):
        raise UnknownName("robot with stored plans", name, able)
    # The name of a checkpoint's program begins with its robot's.
    program = resolve("drakebots.trajopt.program:program_name")(word)
    if program.split(" ")[0] not in able:
        raise FileProblem(
            word,
            f"is a checkpoint of {program!r}, no stored plan; go on from it with "
            "`drakebots plan --resume`",
        )
    return resolve(able[program.split(" ")[0]].stored_plan)(word)


def plot(result: Result, path: str | Path) -> Path:
    """Draws a result as a picture (.png, .pdf, .svg), in the way of its kind.

    Raises:
        UnknownName: for a kind that nobody registered.
        InvalidInput: for another ending.
        InvalidInput: for data that is not what its kind promises.
        FileProblem: when the file cannot be written.
    """
    kind = find_kind(result.kind)
    results.check_layout(result)
    return resolve(kind.plot)(result, path)


def record(result: Result, *, model: Model | None = None, **playback: Any) -> Stage:
    """Records a result's motion in a new Meshcat scene, in the way of its kind.

    Args:
        result: result with a motion.
        model: model that moved; by default found by the result's name. Robots that draw
            themselves need none.
        playback: `slow`, how many times slower than real; `frames_per_second` of the
            playback; `port` of the server; more where a kind has more.

    Raises:
        UnknownName: for a kind that nobody registered.
        InvalidInput: for a result without a motion, or a playback it does not have.
    """
    kind = find_kind(result.kind)
    if not kind.record:
        raise InvalidInput(
            f"a result of kind {result.kind!r} has no motion to show; plot it instead"
        )
    results.check_layout(result)
    chosen = {name: value for name, value in playback.items() if value is not None}
    drawn = resolve(kind.record)
    known = inspect.signature(drawn).parameters
    if model is not None and "model" in known:
        chosen["model"] = model
    unknown = set(chosen) - set(known)
    if unknown:
        raise InvalidInput(
            f"{sorted(unknown)[0]} does not apply to a result of kind {result.kind!r}; "
            "leave it out"
        )
    return drawn(result, **chosen)
