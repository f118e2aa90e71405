"""The example of motions as MathematicalPrograms runs."""

from __future__ import annotations

import runpy

import pytest

from tests.helpers.scripts import ROOT

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.long
def test_example(capsys):
    example = runpy.run_path(str(ROOT / "examples" / "mathematical_program.py"))
    costs = example["main"]()
    assert costs["snopt"] == pytest.approx(costs["exact"], rel=1e-3)
    assert costs["limited"] > costs["exact"]
    assert costs["steady"] > costs["walk"] > 0
    assert "Solve_Succeeded" in capsys.readouterr().out
