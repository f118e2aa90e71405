"""The notebooks run from the first cell to the last, and show what they promise."""

from __future__ import annotations

import ast

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import pytest

from drakebots import Result
from drakebots.view import Stage
from tests.helpers.scripts import ROOT

FOLDER = ROOT / "examples" / "notebooks"

NOTEBOOKS = {
    "hamr_walks": pytest.mark.long,
    "plan_a_gait": pytest.mark.slow,
    "your_quadruped": pytest.mark.long,
    "skin_on_a_leg": pytest.mark.long,
    "design_an_animal": pytest.mark.slow,
    "gecko_course": pytest.mark.long,
    "voxel_robot": pytest.mark.long,
    "mathematical_program": pytest.mark.long,
    "hamr_own_cost": pytest.mark.long,
    "skin_and_motion": pytest.mark.slow,
    "monster_trot": pytest.mark.slow,
    "footfall": pytest.mark.long,
}
"""By name: the mark of its test."""


def run(path) -> list:
    """Executes a notebook as Jupyter does; returns what its cells show."""
    names: dict = {"__name__": "__main__"}
    shown = []
    for number, cell in enumerate(jupytext.read(path, fmt="py:percent").cells):
        if cell.cell_type != "code":
            continue
        tree = ast.parse(cell.source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        where = f"{path.name}[{number}]"
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            shown.append(
                eval(compile(ast.Expression(last.value), where, "eval"), names)
            )
    return [value for value in shown if value is not None]


@pytest.mark.filterwarnings("ignore:.*non-interactive")  # plt.show() without a screen
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=mark) for name, mark in NOTEBOOKS.items()]
)
def test_notebook_runs(name, monkeypatch):
    matplotlib.use("Agg")
    plt.close("all")
    monkeypatch.chdir(FOLDER)
    before = sorted(FOLDER.iterdir())
    shown = run(FOLDER / f"{name}.py")
    for value in shown:
        if isinstance(value, Result | Stage):
            assert len(value._repr_html_()) > 1000
    assert plt.get_fignums(), "no picture"
    assert all(any(a.has_data() for a in plt.figure(n).axes) for n in plt.get_fignums())
    assert any(isinstance(value, Stage) for value in shown), "no scene"
    assert sorted(FOLDER.iterdir()) == before, "a notebook leaves files behind"
    plt.close("all")


def test_every_notebook_is_tested_and_named_on_the_site():
    found = {path.stem for path in FOLDER.glob("*.py")}
    assert found == set(NOTEBOOKS)
    front = (ROOT / "docs" / "index.md").read_text()
    assert all(f"\nnotebooks/{name}\n" in front for name in found)
