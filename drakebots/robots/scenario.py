"""Scenario files: a robot's problem in YAML, with the fields of its dataclass.

    # trot.yaml: drakebots simulate trot.yaml -o run.nc
    simulate: hamr                  # the command, and the robot or model as typed there
    gait: trot
    frequency: 10                   # SI, as all fields
    phases: {FL: 0.0, RR: 0.1}

    # hop.yaml: drakebots plan hop.yaml -o plan.nc
    plan: my_robot.urdf             # beside the scenario, or as from here
    motion: {Hop: {height: 0.1}}
    terrain: {Slope: {angle: 0.1}}  # a class that the field allows, by its name
    weights: {effort: 2.0}

    # reach.yaml: drakebots plan reach.yaml -o reach.nc
    plan: lattice.json
    targets: [{node: "1,3,4", axis: x, displacement: 0.005}]

As Drake's `yaml_load_typed` it refuses what the dataclass does not have. Lists become
tuples. A robot with several kinds of problems takes `problem: JumpProblem`; the first
is the default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drakebots.core.convert import build, names_of, near, schema
from drakebots.core.errors import FileProblem, InvalidInput, check_names
from drakebots.core.fields import declared
from drakebots.core.files import read_yaml, reading
from drakebots.core.lazy import resolve
from drakebots.robots.registry import Robot, Task, robots

COMMANDS = ("simulate", "mpc", "plan")
ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class Scenario:
    """Contents of a scenario file.

    Attributes:
        command: "simulate", "mpc" or "plan".
        robot: name of the robot in the registry.
        task: task that runs it.
        problem: the problem.
    """

    command: str
    robot: str
    task: Task
    problem: Any


def is_scenario(word: str) -> bool:
    """Whether a word of a command line names a scenario file, readable or not."""
    name = word.lower()
    if not name.endswith(ENDINGS) or name.endswith(".dmd.yaml"):
        return False
    if not os.path.isfile(word):
        return False
    try:
        return not {*COMMANDS}.isdisjoint(names_of(read_yaml(Path(word)), "it"))
    except InvalidInput:
        return False
    except FileProblem:
        return True


def read_scenario(path: str | Path) -> Scenario:
    """The problem of a scenario file.

    Raises:
        FileProblem: naming the file and the field: for a file that cannot be read, a
            field that the problem does not have, and a value of another type or out of
            range.
    """
    path = Path(path)
    with reading(path):
        return _scenario(names_of(read_yaml(path), "a scenario"), path.parent)


def _scenario(given: dict, folder: Path) -> Scenario:
    found = [command for command in COMMANDS if command in given]
    if len(found) != 1:
        raise InvalidInput(
            f"has {' and '.join(found) or 'none'} of the keys {', '.join(COMMANDS)}; "
            "give one, with the robot or model, as `simulate: hamr`"
        )
    command = found[0]
    word = given.pop(command)
    if not isinstance(word, str):
        raise InvalidInput(f"{command} must be a robot or a model, got {word!r}")
    word = near(word, folder)
    robot = _robot(word, command)
    task: Task = getattr(robot, command)
    problem = _problem_type(task, given.pop("problem", None))
    names = declared(problem)
    # What the word is: a model, or a lattice of the robot "lattice".
    subject = "model" if "model" in names else robot.name
    if subject in names:
        given.setdefault(subject, word)
    return Scenario(command, robot.name, task, build(problem, given, "", folder))


def _robot(word: str, command: str) -> Robot:
    able = [r for r in robots().values() if getattr(r, command) is not None]
    named = [r for r in able if r.name != "any" and r.is_named(word)]
    return (named or [r for r in able if r.name == "any"])[0]


def _problem_type(task: Task, name: Any) -> type:
    kinds = map(resolve, (task.problem, *task.also))
    choices = {kind.__name__: kind for kind in kinds}
    if name is None:
        return next(iter(choices.values()))
    check_names("problem", [name], choices)
    return choices[name]


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors that complete and check them.

    Each command with each of its problems is a case. Numbers carry `unit`, which
    validators leave alone.
    """
    cases, kinds = [], {}
    for command in COMMANDS:
        for robot in robots().values():
            task = getattr(robot, command)
            for reference in (task.problem, *task.also) if task else ():
                kind = resolve(reference)
                kinds[kind] = None
                own = {"type": "string"} if robot.matches else {"const": robot.name}
                named = {command: {"type": "string"} if robot.name == "any" else own}
                if task.also:
                    named["problem"] = {"const": kind.__name__}
                cases.append((kind, robot.name, command, named))
    found = schema(*kinds)
    places = {said["$comment"]: said for said in found["$defs"].values()}
    scenarios = []
    for kind, name, command, named in cases:
        said = places[f"{kind.__module__}.{kind.__qualname__}"]
        needed = [n for n in said["required"] if n not in ("model", name)]
        said = said | {"properties": named | said["properties"]}
        scenarios.append(said | {"required": [command, *needed]})
    return {"title": "a scenario of drakebots", "anyOf": scenarios} | found
