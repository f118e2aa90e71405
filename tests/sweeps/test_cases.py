"""Cases of a sweep: combinations, keys, labels, units."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from drakebots import hamr
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.sweeps import case_key, make_cases
from drakebots.sweeps.cases import unit_of
from drakebots.trajopt.locomotion import LocomotionProblem, Walk
from tests.helpers.waiting import Inner, Waiting, wait


def test_all_combinations_the_last_field_fastest():
    cases = make_cases(Waiting(), {"root": (1, 2), "mode": ("square", "raise", "die")})
    assert [case.label for case in cases[:4]] == [
        "root=1, mode=square",
        "root=1, mode=raise",
        "root=1, mode=die",
        "root=2, mode=square",
    ]
    assert cases[4].problem == Waiting(root=2, mode="raise")
    assert len({case.key for case in cases}) == len(cases) == 6


def test_fields_of_fields():
    (case,) = make_cases(Waiting(), {"inner.share": np.array([0.25])})
    assert case.problem == Waiting(inner=Inner(0.25))


def test_motions_of_one_kind_are_told_apart():
    """The name of a kind, "walk", is that of all its values."""
    problem = LocomotionProblem("mini_cheetah", Walk(0.1))
    cases = make_cases(problem, {"motion": (Walk(0.1), Walk(0.2))})
    assert [case.problem.motion.forward for case in cases] == [0.1, 0.2]
    assert "forward=0.1" in cases[0].label and "forward=0.2" in cases[1].label


def test_keys_are_of_values_and_not_of_how_they_are_written():
    key = case_key(Waiting(root=2))
    assert key == case_key(Waiting(root=2.0)) == case_key(Waiting(root=np.float64(2)))
    assert key == case_key(replace(Waiting(), root=2))
    others = [
        Waiting(root=2 + 1e-15 * 4),
        Waiting(other=2),
        Waiting(root=2, mode="raise"),
        Waiting(root=2, inner=Inner(0.25)),
        Waiting(mode="2"),
        Inner(2),
    ]
    assert len({key, *map(case_key, others)}) == 1 + len(others)


def test_keys_are_the_same_in_another_process():
    code = """
from drakebots.sweeps import case_key
print(case_key({"FL": 0.5, "RR": (0.1, None, "x")}))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == case_key({"RR": [0.1, None, "x"], "FL": 0.5})


def test_keys_of_arrays_results_and_files(tmp_path):
    table = np.arange(6.0)
    assert case_key(table) != case_key(table.reshape(2, 3))
    assert case_key(table) != case_key(table + 1e-12)
    result = wait(Waiting())
    assert case_key(result) == case_key(result)
    assert case_key(result) != case_key(wait(Waiting(root=3)))
    paths = [tmp_path / "a" / "m.urdf", tmp_path / "b" / "m.urdf"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("<robot/>")
    assert case_key(paths[0]) == case_key(str(paths[1]))
    paths[1].write_text("<robot />")
    assert case_key(paths[0]) != case_key(paths[1])


def test_units_come_from_the_docstring():
    assert unit_of(Waiting(), "other") == unit_of(Waiting(), "root") == "m"
    assert unit_of(Waiting(), "seconds") == "s"
    assert unit_of(Waiting(), "mode") == unit_of(Waiting(), "inner.share") == "1"
    problem = hamr.Simulation()
    assert unit_of(problem, "frequency") == "Hz"
    assert unit_of(problem, "time_step") == "s"  # of a class that it inherits
    assert unit_of(problem, "lift_voltage") == "V"


@pytest.mark.parametrize(
    ("over", "error", "words"),
    [
        ({}, InvalidInput, "over="),
        ({"roof": (1,)}, UnknownName, "did you mean 'root'"),
        ({"inner.shard": (1,)}, UnknownName, "did you mean 'share'"),
        ({"root.x": (1,)}, InvalidInput, "no frozen dataclass"),
        ({"root": ()}, InvalidInput, "one or more"),
        ({"root": (1, 1.0)}, InvalidInput, "different"),
        ({"mode": "die"}, InvalidInput, "no list"),
        ({"seconds": (1, -1)}, InvalidInput, "seconds=-1.*must be >= 0 s"),
        ({"inner": (object(),)}, InvalidInput, "no lasting key"),
    ],
)
def test_bad_input(over, error, words):
    with pytest.raises(error, match=words):
        make_cases(Waiting(), over)
