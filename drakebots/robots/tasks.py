"""Simulate, plan, track, plot and record by the registry: one function for all robots.

result = simulate(hamr.Simulation(gait="trot"))
plot(result, "trot.png")
record(result).save("trot.html")
"""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    InvalidInput,
    UnknownName,
)
from drakebots.core.lazy import late, resolve
from drakebots.robots.registry import find_kind, find_task, robots

results = late("drakebots.results")

if TYPE_CHECKING:
    from drakebots.core.run import Progress
    from drakebots.model import Model
    from drakebots.results import Result
    from drakebots.view import Stage


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
        warnings.warn(
            DrakebotsWarning(
                f"this plan is no solution: {plan.verdict}: {plan.message}"
            ),
            stacklevel=3,
        )


def names_stored_plan(word: str) -> bool:
    """Whether a word names a stored plan: ROBOT:NAME, or a file (.npz)."""
    name, colon, _ = word.partition(":")
    robot = robots().get(name.replace("-", "_"))
    if colon and robot is not None and robot.stored_plan:
        return True
    return word.lower().endswith(".npz")


def stored_plan(word: str) -> Result:
    """A plan that came with a robot, as it is: evaluated, and not solved again.

    Args:
        word: ROBOT:NAME, e.g. "hamr:30hz_card"; or a file (.npz) of a stored plan.

    Raises:
        UnknownName: for a robot without stored plans, and for the name of no plan; it
            lists those that there are.
        FileProblem: for a file that is missing, damaged, or no stored plan.
    """
    able = {name: robot for name, robot in robots().items() if robot.stored_plan}
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
