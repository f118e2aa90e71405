"""Scenario files: a robot's problem in YAML, with the fields of its dataclass.

    # trot.yaml: drakebots simulate trot.yaml -o run.nc
    simulate: hamr                  # the command, and the robot or model as typed there
    gait: trot
    frequency: 10                   # SI, as all fields
    phases: {FL: 0.0, RR: 0.1}

    # hop.yaml: drakebots plan hop.yaml -o plan.nc
    plan: my_robot.urdf             # beside the scenario, or as from here
    kind: hop
    height: 0.1
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from drakebots.core.errors import DrakebotsError, FileProblem, InvalidInput, UnknownName
from drakebots.core.files import read_yaml
from drakebots.lattice import shape
from drakebots.robots.registry import Robot, Task, resolve, robots

COMMANDS = ("simulate", "plan")
ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class Scenario:
    """What a scenario file asks for.

    Attributes:
        command: "simulate" or "plan".
        robot: name of the robot in the registry.
        task: what runs it.
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
        return not {*COMMANDS}.isdisjoint(_mapping(read_yaml(Path(word)), "it"))
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
    document = read_yaml(path)
    try:
        return _scenario(_mapping(document, "a scenario"), path.parent)
    except FileProblem:
        raise
    except DrakebotsError as error:
        raise FileProblem(path, str(error)) from error


def _scenario(given: dict, folder: Path) -> Scenario:
    found = [command for command in COMMANDS if command in given]
    if len(found) != 1:
        raise InvalidInput(
            f"has {' and '.join(found) or 'neither'} of the keys simulate and plan; "
            "give one, with the robot or model, as `simulate: hamr`"
        )
    command = found[0]
    word = given.pop(command)
    if not isinstance(word, str):
        raise InvalidInput(f"{command} must be a robot or a model, got {word!r}")
    word = _near(word, folder)
    robot = _robot(word, command)
    task: Task = getattr(robot, command)
    problem = _problem_type(task, given.pop("problem", None))
    names = {field.name for field in fields(problem) if field.init}
    # What the word is: a model, or a lattice of the robot "lattice".
    subject = "model" if "model" in names else robot.name
    if subject in names:
        given.setdefault(subject, word)
    return Scenario(command, robot.name, task, _build(problem, given, "", folder))


def _robot(word: str, command: str) -> Robot:
    able = [r for r in robots().values() if getattr(r, command) is not None]
    named = [r for r in able if r.name != "any" and r.is_named(word)]
    return (named or [r for r in able if r.name == "any"])[0]


def _problem_type(task: Task, name: Any) -> type:
    choices = {
        resolve(ref).__name__: resolve(ref) for ref in (task.problem, *task.also)
    }
    if name is None:
        return next(iter(choices.values()))
    if name not in choices:
        raise UnknownName("problem", name, choices)
    return choices[name]


def _near(word: str, folder: Path) -> str:
    """A file beside the scenario, or the word itself."""
    return str(folder / word) if os.path.isfile(folder / word) else word


# --- values of types -------------------------------------------------------------


class _OtherType(InvalidInput):
    """A value that has another type than its field."""

    def __init__(self, where: str, what: str, value: Any):
        self.where, self.what = where, what
        super().__init__(f"{where} must be {what}, got {value!r:.60}")


def _mapping(value: Any, where: str) -> dict:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise _OtherType(where, "a mapping of names", value)
    return dict(value)


def _build(kind: type, value: Any, where: str, folder: Path) -> Any:
    """An instance of a dataclass from a mapping of its fields."""
    given, hints = _mapping(value, where or "a scenario"), get_type_hints(kind)
    known = [field.name for field in fields(kind) if field.init]
    for name in given:
        if name not in known:
            raise UnknownName(f"field of {where or kind.__name__}", name, known)
    converted = {
        name: _converted(
            hints[name], entry, f"{where}.{name}" if where else name, folder
        )
        for name, entry in given.items()
    }
    try:
        return kind(**converted)
    except TypeError as error:
        raise InvalidInput(f"{where or kind.__name__}: {error}") from None


def _converted(hint: Any, value: Any, where: str, folder: Path) -> Any:
    """A value as its field's type has it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(arguments, value, where, folder)
    if hint is Any:
        return value
    if hint is NoneType:
        if value is None:
            return None
        raise _OtherType(where, "null", value)
    if hint in (bool, int, str):
        if type(value) is hint:
            return value
        name = {bool: "true or false", int: "a whole number", str: "a text"}[hint]
        raise _OtherType(where, name, value)
    if hint is float:
        return _number(value, where)
    if hint is Path:
        if isinstance(value, str):
            return Path(_near(value, folder))
        raise _OtherType(where, "a path", value)
    if hint is tuple or origin is tuple:
        return _tuple(arguments, value, where, folder)
    if origin is Sequence:
        return _tuple((*arguments, ...), value, where, folder)
    if origin is not None and issubclass(origin, Mapping):
        given, of = _mapping(value, where), arguments[1]
        return {k: _converted(of, v, f"{where}.{k}", folder) for k, v in given.items()}
    if isinstance(value, str) and hint is shape.LatticeSpec:
        return shape.load_lattice(_near(value, folder))
    if is_dataclass(hint):
        return _build(hint, value, where, folder)
    return _named_class(hint, value, where, folder)


def _number(value: Any, where: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)  # YAML 1.1 takes 1e-3 for a text
    except (TypeError, ValueError):
        raise _OtherType(where, "a number", value) from None


def _one_of(hints: tuple, value: Any, where: str, folder: Path) -> Any:
    """A value as the first of several types that takes it."""
    if Path in hints and isinstance(value, str):
        return _near(value, folder)
    wrong = []
    for hint in hints:
        try:
            return _converted(hint, value, where, folder)
        except _OtherType as error:
            if error.where != where:  # the type is right, an entry is not
                raise
            wrong.append(error.what)
    raise _OtherType(where, " or ".join(dict.fromkeys(wrong)), value)


def _tuple(hints: tuple, value: Any, where: str, folder: Path) -> tuple:
    if not isinstance(value, list):
        raise _OtherType(where, "a list", value)
    if not hints:
        return tuple(tuple(v) if isinstance(v, list) else v for v in value)
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        raise _OtherType(where, f"a list of {len(hints)}", value)
    pairs = enumerate(zip(hints, value))
    return tuple(_converted(h, v, f"{where}[{i}]", folder) for i, (h, v) in pairs)


def _named_class(base: type, value: Any, where: str, folder: Path) -> Any:
    """An instance of a subclass by its name, `{Slope: {angle: 0.1}}`."""
    choices = {c.__name__: c for c in base.__subclasses__() if is_dataclass(c)}
    if not choices:
        raise _OtherType(where, f"a {base.__name__}, which no file can say", value)
    given = {value: {}} if isinstance(value, str) else _mapping(value, where)
    if len(given) != 1:
        raise _OtherType(where, f"one of {', '.join(choices)}", value)
    ((name, inner),) = given.items()
    if name not in choices:
        raise UnknownName(where, name, choices)
    return _build(choices[name], inner or {}, f"{where}.{name}", folder)
