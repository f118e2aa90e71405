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

TASKS = ("simulate", "plan", "track", "refine")
"""What a robot may do, or what may be done with its plans, each a command of the
command line."""


def resolve(reference: str) -> Any:
    """What a "module:name" stands for, imported now."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


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
    plan: Task | None = None
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
        track: what executes a plan of this kind.
        refine: what plans it again from its executions, for a better plan.
        export: "module:VARIANT" of the command line's `export`.
    """

    name: str
    plot: str
    record: str = ""
    track: Task | None = None
    refine: Task | None = None
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
    for name in ("track", "refine"):
        if name in wanted:
            found += [getattr(kind, name) for kind in kinds().values()]
    return [task for task in found if task is not None]


# --- the robots that come with drakebots, and the kinds of their results ----

_HAMR, _GECKO = "drakebots.robots.hamr", "drakebots.robots.gecko"
_VOXELS, _QUADS = "drakebots.robots.voxels", "drakebots.robots.quads"
_LEGGED = "drakebots.robots.legged"
_MOTION = "drakebots.plots:plot_motion"
_RECORD = "drakebots.view:record_motion"
_SKIN = "drakebots.view.skin:record_skin"

ROBOTS = (
    Robot(
        "hamr",
        "HAMR-VI, a microrobot of 1.5 g with 24 closed flexure loops",
        simulate=Task(
            f"{_HAMR}:Simulation",
            f"{_HAMR}:simulate",
            "simulate HAMR with a gait",
            options="drakebots.cli.hamr:SIMULATE",
        ),
        plan=Task(
            f"{_HAMR}:GaitProblem",
            f"{_HAMR}:plan",
            "plan a gait or the jump of HAMR by contact-implicit optimization",
            options="drakebots.cli.hamr:PLAN",
            also=(f"{_HAMR}:JumpProblem",),
        ),
        stored_plan=f"{_HAMR}:stored_plan",
    ),
    Robot(
        "gecko",
        "a pneumatic gecko with suction feet",
        simulate=Task(
            f"{_GECKO}:Simulation",
            f"{_GECKO}:simulate",
            "walk the gecko to its targets in a closed loop",
            options="drakebots.cli.gecko:GECKO_SIMULATE",
        ),
        plan=Task(
            f"{_GECKO}:VelocitySpace",
            f"{_GECKO}:plan",
            "simulate the gecko's velocity space and fit a polynomial to it",
            options="drakebots.cli.gecko:GECKO_PLAN",
        ),
    ),
    Robot(
        "voxel",
        "a walking robot of ten voxels",
        simulate=Task(
            f"{_VOXELS}:Simulation",
            f"{_VOXELS}:simulate",
            "walk the voxel robot with a gait",
            options="drakebots.cli.voxels:VOXEL_SIMULATE",
        ),
        plan=Task(
            f"{_VOXELS}:Problem",
            f"{_VOXELS}:plan",
            "find actuator displacements of the voxel robot for requested node motions",
            options="drakebots.cli.voxels:VOXEL_PLAN",
        ),
    ),
    Robot(
        "lattice",
        "a voxel lattice of any shape, from a file",
        plan=Task(
            f"{_VOXELS}:Problem",
            f"{_VOXELS}:plan",
            "find actuators of a lattice for requested node motions",
            options="drakebots.cli.voxels:LATTICE_PLAN",
        ),
        matches="drakebots.cli.inputs:is_lattice",
    ),
    Robot(
        "skinned",
        "a skeleton in an elastic skin: beetle, monster, lizard, cow, your own",
        simulate=Task(
            "drakebots.skin:SkinSimulation",
            "drakebots.skin:simulate_skinned",
            "simulate a robot in an elastic skin whose servos follow a motion",
            options="drakebots.cli.skin:SKIN_SIMULATE",
        ),
        plan=Task(
            f"{_QUADS}:Problem",
            f"{_QUADS}:plan",
            "plan a motion of a quad-robot in an elastic skin",
            options="drakebots.cli.quads:QUAD_PLAN",
        ),
        matches="drakebots.cli.inputs:names_skinned",
    ),
)

KINDS = (
    Kind("legged.simulation", _MOTION, _RECORD),
    Kind(
        "locomotion.plan",
        _MOTION,
        _RECORD,
        track=Task(
            "drakebots.robots.legged:Tracking",
            "drakebots.robots.legged:track",
            "execute a plan of any legged robot with feedback",
            "drakebots track plan.nc --cycles 5 -o run.nc",
        ),
        refine=Task(
            f"{_LEGGED}:Refinement",
            f"{_LEGGED}:refine",
            "refine a walk of any legged robot: plan again for what executions lack",
            "drakebots refine plan.nc --feedback servos -o refined.nc",
        ),
    ),
    Kind("legged.track", "drakebots.robots.legged:plot_track", _RECORD),
    Kind(
        "legged.mpc",
        "drakebots.robots.legged.mpc:plot_control",
        "drakebots.robots.legged.mpc:record_control",
    ),
    Kind("hamr.simulation", _MOTION, _RECORD),
    Kind(
        "hamr.plan",
        _MOTION,
        _RECORD,
        track=Task(
            f"{_HAMR}:Tracking",
            f"{_HAMR}:track",
            "execute a plan of HAMR under its leg estimator and controller",
            "drakebots track plan.nc --cycles 15 -o run.nc",
        ),
        refine=Task(
            f"{_HAMR}:Refinement",
            f"{_HAMR}:refine",
            "refine a gait of HAMR: plan again from executed runs, learn between them",
            "drakebots refine plan.nc --rounds 4 -o refined.nc",
        ),
        export="drakebots.cli.hamr:EXPORT",
    ),
    Kind("hamr.track", f"{_HAMR}:plot_track", _RECORD),
    Kind("gecko.simulation", f"{_GECKO}:plot_course", f"{_GECKO}:record_gecko"),
    Kind("gecko.velocity_space", f"{_GECKO}:plot_velocity_space"),
    Kind("voxels.simulation", f"{_VOXELS}:plot_walk", f"{_VOXELS}:record_voxel"),
    Kind(
        "voxels.plan",
        f"{_VOXELS}:plot_actuator_plan",
        "drakebots.view.lattice:record_nodes",
    ),
    Kind("voxels.gait_search", f"{_VOXELS}:plot_gait_search"),
    Kind("sweep", "drakebots.sweeps:plot_sweep"),
    Kind("skin.simulation", "drakebots.plots:plot_skin", _SKIN),
    *(
        Kind(
            f"quads.{name}",
            f"{_QUADS}:plot_plan",
            _SKIN,
            track=Task(
                f"{_QUADS}:Tracking",
                f"{_QUADS}:track",
                "execute a plan of a skinned robot open loop, on compliant ground",
                options="drakebots.cli.quads:QUAD_TRACK",
                also=(f"{_QUADS}:SapTracking",),
            ),
            export="drakebots.cli.quads:QUAD_EXPORT",
        )
        for name in ("plan", "space_time")
    ),
    Kind("quads.frames", f"{_QUADS}:plot_plan", _SKIN),
    Kind("quads.control", f"{_QUADS}:plot_control", _SKIN),
    *(
        Kind(
            f"quads.{name}",
            f"{_QUADS}:plot_track",
            _SKIN,
            export="drakebots.cli.quads:QUAD_EXPORT",
        )
        for name in ("track", "sap_track")
    ),
)

ANY_SIMULATE = Task(
    f"{_LEGGED}:Simulation",
    f"{_LEGGED}:simulate",
    "simulate any model on the ground, held by servos or left to itself",
)
ANY_PLAN = Task(
    "drakebots.trajopt.locomotion:LocomotionProblem",
    "drakebots.trajopt.locomotion:plan_locomotion",
    "plan a motion of any legged model by contact-implicit optimization",
)

ANY = Robot("any", "any model", simulate=ANY_SIMULATE, plan=ANY_PLAN)

register(*ROBOTS, ANY, *KINDS)
