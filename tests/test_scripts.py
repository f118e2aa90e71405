"""Every script runs in its quick form and gives the figures it promises."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from drakebots.browser import find_browser

SCRIPTS = Path(__file__).parent.parent / "scripts"


def script(name: str):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, SCRIPTS / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bench_simulate(capsys):
    """The last line is one JSON object of {value, unit, target}."""
    result = script("bench/simulate.py").main(["--quick"])
    last = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert set(last) == {"system_overhead_ratio", "wall_s_per_simulated_s"}
    assert all(set(row) == {"value", "unit", "target"} for row in last.values())
    assert result["system_overhead_ratio"]["value"] > 0.5


@pytest.mark.parametrize("gcc", [False, True], ids=["interpreted", "compiled"])
def test_bench_derivatives(capsys, monkeypatch, gcc):
    """Both Jacobians agree, or it ends; without gcc it interprets."""
    bench = script("bench/derivatives.py")
    if gcc and bench.shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    if not gcc:
        monkeypatch.setattr(bench.shutil, "which", lambda name: None)
    result = bench.main(["--quick"])
    last = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert last == result
    assert all(set(row) == {"value", "unit", "target"} for row in last.values())
    best = result["twin_vs_autodiff_ratio"]
    assert best["value"] > (50 if gcc else 5)
    assert ("compile_s" in result) == gcc


def test_bench_contact(capsys):
    """Hard contact and SAP both walk forward."""
    result = script("bench/contact.py").main(["--quick"])
    json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    strides = [row["stride_mm"] for row in result["trot"]["value"].values()]
    assert len(strides) == 2
    assert min(strides) > 5


def test_hamr_walk(capsys):
    """One row, walking forward."""
    (row,) = script("hamr_walk.py").main(["--quick"])
    json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert 5 < row["stride_mm_per_cycle"] < 12


def test_render_model_names_bad_input(capsys, tmp_path):
    """An unknown model is one line and exit 2."""
    code = script("render_model.py").main(["hamrr", "-o", str(tmp_path / "x.png")])
    assert code == 2
    assert "did you mean" in capsys.readouterr().err


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_render_model(tmp_path):
    """A picture of HAMR is made."""
    out = tmp_path / "hamr.png"
    argv = ["hamr", "-o", str(out), "--size", "450", "300"]
    assert script("render_model.py").main(argv) == 0
    assert out.stat().st_size > 5000


def test_readme_program(tmp_path, monkeypatch, capsys):
    """README's first program runs as printed, with one cycle for fifteen."""
    import re

    text = (SCRIPTS.parent / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    assert len([line for line in program.splitlines() if line.strip()]) <= 15
    monkeypatch.chdir(tmp_path)
    exec(compile(program.replace("cycles=15", "cycles=1"), "README", "exec"), {})
    assert "mm per cycle" in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {
        "trot.nc",
        "trot.png",
        "trot.html",
    }
