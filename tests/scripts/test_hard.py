"""Fuzzing (scripts/tools/fuzz) sees what breaks; what broke once does not again."""

from __future__ import annotations

import importlib
import json
import os
import time
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from random import Random

import numpy as np
import pytest

from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.results import load_result
from drakebots.robots import hamr, legged
from drakebots.trajopt.locomotion import LocomotionProblem
from tests.helpers.result_samples import make
from tests.helpers.scripts import load_script

hard = load_script("hard")  # which lets Python find fuzz
children, formats, problems = (
    importlib.import_module(f"fuzz.{name}")
    for name in ("children", "formats", "problems")
)

SEEDS = Path(__file__).parent / "seeds"


def judged(case, folder) -> children.Outcome:
    with children.Children({"x": lambda seed: case}, 1, folder) as running:
        running.give("x", [0])
        (outcome,) = running.finish()
    return outcome


def endless():
    while True:
        time.time()


def refused():
    raise InvalidInput("x must be > 0")


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: None, "fine"),
        (refused, "refused"),
        (lambda: [][0], "traceback"),
        (lambda: os.abort(), "crash"),
        (endless, "hang"),
        (lambda: np.ones(10**10), "memory"),
        (lambda: Path("p.html").write_text(Path("../secret").read_text()), "leak"),
    ],
)
def test_what_becomes_of_an_input_is_seen(tmp_path, call, word):
    outcome = judged(children.Case(call=call, seconds=1, label="it"), tmp_path)
    assert outcome.word == word and outcome.label == "it"


def test_the_rest_of_a_batch_goes_on_after_a_crash(tmp_path):
    def family(seed):
        return children.Case(call=os.abort if seed == 1 else lambda: None)

    with children.Children({"x": family}, 1, tmp_path) as running:
        running.give("x", range(4))
        words = {o.seed: o.word for o in running.finish()}
    assert words == {0: "fine", 1: "crash", 2: "fine", 3: "fine"}


@pytest.mark.parametrize(
    "kind", [hamr.Simulation, legged.Simulation, LocomotionProblem]
)
def test_wrong_types_are_refused_by_the_name_of_the_field(kind):
    for field in fields(kind):
        for value in problems.values():
            with suppress(DrakebotsError):  # any other exception fails
                problems.maker(kind, field.name, value)()


@pytest.mark.long
def test_a_damaged_result_is_refused_or_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = make().save(tmp_path / "r.nc")
    for seed in range(40):
        damaged = tmp_path / "damaged.nc"
        damaged.write_bytes(formats.edited_result(Random(seed), path))
        with suppress(DrakebotsError):
            load_result(damaged)


@pytest.mark.long
def test_damaged_models_and_meshes_are_refused_or_shown():
    """A short run of `make fuzz`."""
    names = ("urdf", "sdf", "mjcf", "dmd.yaml", "drakebots.yaml", "limbs", "csv")
    chosen = hard.families(Path("none"), names)
    outcomes = hard.fuzz(chosen, 300.0, first=1000, most=4, jobs=1)
    assert len(outcomes) == 4 * len(chosen)
    bad = [o for o in outcomes if o.word in children.BAD]
    assert not bad, bad[0].text


@pytest.mark.long
@pytest.mark.parametrize("folder", sorted(SEEDS.iterdir()), ids=lambda f: f.name)
def test_what_failed_once_does_not_again(folder, tmp_path):
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "COMMAND"}
    argv = json.loads((folder / "COMMAND").read_text())
    outcome = judged(children.Case(argv, files), tmp_path)
    assert outcome.word in ("fine", "refused"), outcome.text
