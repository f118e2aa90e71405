"""The registry: every reference exists; lookups by name, kind and problem."""

from __future__ import annotations

import importlib
from dataclasses import is_dataclass

import pytest

import drakebots
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.fields import declared
from drakebots.core.lazy import resolve
from drakebots.robots import (
    Kind,
    Robot,
    Task,
    find_kind,
    find_task,
    kinds,
    register,
    robots,
)

TASKS = [
    (name, what, task)
    for name, robot in robots().items()
    for what in ("simulate", "plan")
    if (task := getattr(robot, what)) is not None
] + [(name, "track", kind.track) for name, kind in kinds().items() if kind.track]


@pytest.mark.parametrize(("name", "what", "task"), TASKS, ids=str)
def test_tasks_exist(name, what, task):
    """Problems are frozen dataclasses, and every field of theirs is explained."""
    for reference in (task.problem, *task.also):
        problem = resolve(reference)
        assert is_dataclass(problem) and problem.__dataclass_params__.frozen
        missing = {name for name, f in declared(problem).items() if not f.text}
        assert not missing, f"{reference} does not explain {missing}"
    assert callable(resolve(task.run))


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
def test_kinds_exist(kind):
    assert callable(resolve(kind.plot))
    if kind.record:
        assert callable(resolve(kind.record))
    if kind.export:
        assert kind.export.file and callable(resolve(kind.export.run))


def test_every_robot_has_the_same_face():
    """`Simulation` and `simulate`, `plan`, `track`: what its registry entries name."""
    for name in ("hamr", "gecko", "voxels", "quads"):
        face = importlib.import_module(f"drakebots.robots.{name}")
        assert {"Simulation", "simulate", "plan", "MODEL"} <= set(face.__all__), name
    for name in ("hamr", "quads"):
        face = importlib.import_module(f"drakebots.robots.{name}")
        assert {"Tracking", "track"} <= set(face.__all__), name


def test_a_problem_finds_its_task():
    problem = drakebots.hamr.Simulation(gait="trot")
    assert find_task(problem) is robots()["hamr"].simulate
    with pytest.raises(InvalidInput, match="no problem"):
        find_task(problem, ["plan"])
    with pytest.raises(InvalidInput, match="str is no problem"):
        drakebots.simulate("hamr")


def test_unknown_kinds_are_refused():
    with pytest.raises(UnknownName, match=r"did you mean 'hamr\.plan'"):
        find_kind("hamr.plann")


def test_names_are_taken_once(monkeypatch):
    """The same entry again changes nothing; another of its name is refused."""
    registry = importlib.import_module("drakebots.robots.registry")
    monkeypatch.setattr(registry, "_ROBOTS", robots())
    monkeypatch.setattr(registry, "_KINDS", kinds())
    task = Task("a:B", "a:c", "nothing")
    first = Robot("test_names", "one", simulate=task)
    register(first, Kind("test_names.simulation", "a:plot"))
    register(first)
    assert robots()["test_names"] == first
    with pytest.raises(InvalidInput, match="registered already"):
        register(Robot("test_names", "two"))
