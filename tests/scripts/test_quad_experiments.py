"""The scripts of the paper's quad experiments, on a small robot, and their rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from quad_setting import Outcome, Trial, row, trial_facts
from quad_table import show_table

from drakebots.results import load_result
from drakebots.robots.quads.plots import draw_cop, plot_contacts
from tests.helpers.scripts import find_script, load_script
from tests.helpers.small_quad import planned_lift

NAMES = (
    *("foot_lift", "cop", "walks", "trot", "lizard", "cow", "torque_limits"),
    *("kinematic", "qpcc", "failure"),
)
SCRIPTS = [find_script(f"quad_{name}.py") for name in NAMES]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_every_script_has_its_options(path, capsys):
    with pytest.raises(SystemExit) as stop:
        load_script(path.name).main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--quick" in text and "--model" in text and "--reuse" in text


def test_a_model_that_is_none(tmp_path, capsys):
    path = next(p for p in SCRIPTS if p.stem == "quad_qpcc")
    with pytest.raises(SystemExit) as stop:
        load_script(path.name).main(["--model", "unicorn", "-o", str(tmp_path)])
    assert stop.value.code == 2
    assert "unicorn" in capsys.readouterr().err


def test_qpcc_from_a_stored_plan(tmp_path, capsys):
    """--reuse takes the plan that is there; energies and complementarity are its."""
    model, plan = planned_lift()
    (tmp_path / "walk.nc").write_bytes(plan.read_bytes())
    path = next(p for p in SCRIPTS if p.stem == "quad_qpcc")
    argv = ["--model", str(model), "-o", str(tmp_path), "--reuse", "--quick"]
    facts = load_script(path.name).main(argv)
    out = capsys.readouterr().out
    assert json.loads(out.strip().splitlines()[-1]) == facts
    assert (tmp_path / "quad_qpcc_frames.png").stat().st_size > 5000
    assert "complementarity" in out and "lands" in out
    assert facts["walk"]["frames"] == 200


@pytest.mark.slow
def test_foot_lift(tmp_path):
    """Both lifts come through, stay in the polygon, and stand when replayed."""
    model, _ = planned_lift()
    path = next(p for p in SCRIPTS if p.stem == "quad_foot_lift")
    facts = load_script(path.name).main(
        ["--model", str(model), "-o", str(tmp_path), "--quick"]
    )
    for name in ("lift_single", "lift_double"):
        assert facts[name]["frames"] == 200
        assert facts[name]["cop_margin_mm"] > -1e-3
        assert facts[name]["peak_torque_share"] <= 1 + 1e-9
        assert facts[name]["coupled"]["verdict"] == "success"


def test_facts_are_the_plans():
    plan = load_result(planned_lift()[1])
    facts = trial_facts(Trial("lift", plan))
    assert facts["peak_torque_N_m"] == np.abs(plan.data.torque.values).max()
    assert facts["cop_margin_mm"] == 1e3 * np.nanmin(plan.data.cop_margin.values)
    assert facts["frames"] == plan.data.sizes["time"] - 1


def test_table_and_contacts(tmp_path, capsys):
    show_table(Outcome("t", [row("speed", "0.45", "0.44", "slip")], {}, {}))
    assert "0.45" in capsys.readouterr().out
    path = plot_contacts(load_result(planned_lift()[1]), tmp_path / "c.png")
    assert path.stat().st_size > 10_000


def test_a_cop_outside_is_red():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    for cop, red in (([0.5, 0.5], False), ([1.2, 0.5], True)):
        draw_cop(axes, square, np.ones(4, bool), np.array(cop))
        colour = axes.collections[-1].get_facecolor()[0]
        assert (colour[0] > colour[1]) == red
