"""The notebooks run from the first cell to the last, and show what they promise."""

from __future__ import annotations

import ast

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from drakebots import Result
from drakebots.view import Stage
from tests.helpers.scripts import ROOT

FOLDER = ROOT / "examples" / "notebooks"

NOTEBOOKS = {
    "mathematical_program": [pytest.mark.long],
}
"""By name: marks of its test."""


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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks) for name, marks in NOTEBOOKS.items()]
)
def test_notebook_runs(name, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(FOLDER)
    before = sorted(FOLDER.iterdir())
    shown = run(FOLDER / f"{name}.py")
    for value in shown:
        if isinstance(value, Result | Stage):
            assert len(value._repr_html_()) > 1000
    assert any(isinstance(value, Figure | Stage) for value in shown), "no picture"
    assert sorted(FOLDER.iterdir()) == before, "a notebook leaves files behind"
    plt.close("all")


def test_every_notebook_is_tested_and_named_on_the_site():
    found = {path.stem for path in FOLDER.glob("*.py")}
    assert found == set(NOTEBOOKS)
