"""The paper's quad experiments, on a small robot, and their rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drakebots.results import load_result
from tests.helpers.scripts import is_picture, load_script
from tests.helpers.small_quad import planned_lift

EXPERIMENTS, main, show_table = load_script(
    "quad_experiments", "EXPERIMENTS", "main", "show_table"
)
draw_cop = load_script("quad_figures").draw_cop
STEPS, Outcome, Trial, row, trial_facts = load_script(
    "quad_setting", "STEPS", "Outcome", "Trial", "row", "trial_facts"
)
QPS, cut_short = load_script("quad_walks", "QPS", "cut_short")


def test_help_lists_all_experiments(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--quick" in text and "--model" in text and "--reuse" in text
    for name, one in EXPERIMENTS.items():
        assert name in text and one.question in text


def test_a_model_that_is_none(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["qpcc", "--model", "unicorn", "-o", str(tmp_path)])
    assert stop.value.code == 2
    assert "unicorn" in capsys.readouterr().err


@pytest.mark.long
def test_qpcc_from_a_stored_plan(tmp_path, capsys):
    """--reuse takes the plan that is there; energies and complementarity are its."""
    model, plan = planned_lift()
    (tmp_path / "walk.nc").write_bytes(plan.read_bytes())
    argv = ["qpcc", "--model", str(model), "-o", str(tmp_path), "--reuse", "--quick"]
    facts = main(argv)
    out = capsys.readouterr().out
    assert json.loads(out.strip().splitlines()[-1]) == facts
    assert is_picture(tmp_path / "quad_qpcc.png")
    assert "complementarity" in out and "lands" in out
    assert facts["walk"]["frames"] == 200


def test_searches_that_end_at_the_limit():
    """The QP with the contacts held is no point that the others must beat."""
    held, none = 0.1, np.inf
    early = np.r_[held, 4.0, np.full(QPS - 2, none)]
    late = np.r_[none, held, np.full(QPS - 4, 8.0), 6.0, 2.0]
    level = np.r_[held, np.full(QPS - 1, 3.0)]
    energies, counts = np.array([early, late, level]), np.array([2, QPS, QPS])
    assert cut_short(energies[:2], counts[:2]) == (1, 0.75)
    assert cut_short(energies, counts) == (2, 0.375)
    assert cut_short(energies[:1], counts[:1]) == (0, 0.0)


@pytest.mark.slow
def test_foot_lift(tmp_path):
    """Both lifts come through, stay in the polygon, and stand when tracked."""
    model, _ = planned_lift()
    facts = main(["foot_lift", "--model", str(model), "-o", str(tmp_path), "--quick"])
    for name in ("lift_single", "lift_double"):
        assert facts[name]["frames"] == STEPS
        assert facts[name]["cop_margin_mm"] > -1e-3
        assert facts[name]["peak_torque_share"] <= 1 + 1e-9
        assert facts[name]["coupled"]["verdict"] == "success"


@pytest.mark.long
def test_facts_are_the_plans():
    plan = load_result(planned_lift()[1])
    facts = trial_facts(Trial("lift", plan))
    assert facts["peak_torque_N_m"] == np.abs(plan.data.torque.values).max()
    assert facts["cop_margin_mm"] == 1e3 * np.nanmin(plan.data.cop_margin.values)
    assert facts["frames"] == plan.data.sizes["time"] - 1


def test_table(capsys):
    show_table(Outcome("t", [row("speed", "0.45", "0.44", "slip")], {}, {}))
    assert "0.45" in capsys.readouterr().out


def test_a_cop_outside_is_red():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    for cop, red in (([0.5, 0.5], False), ([1.2, 0.5], True)):
        draw_cop(axes, square, np.ones(4, bool), np.array(cop))
        colour = axes.collections[-1].get_facecolor()[0]
        assert (colour[0] > colour[1]) == red
