"""Every script runs in its quick form and gives the figures it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from drakebots.cli.output import one_line_errors
from drakebots.core.errors import InvalidInput
from drakebots.trajopt.solvers import kkt
from tests.helpers.scripts import (
    ROOT,
    find_script,
    is_picture,
    last_json,
    load_script,
)
from tests.helpers.skin_runs import skinned

find_browser = load_script("robot_zoo.browser").find_browser


@pytest.mark.slow
def test_bench_derivatives(monkeypatch):
    """Both Jacobians agree, or it ends; without gcc it interprets."""
    bench = load_script("derivatives")
    monkeypatch.setenv("XDG_CACHE_HOME", "set back after the benchmark sets it")
    monkeypatch.setattr("shutil.which", lambda name: None)
    result = bench.main(["--quick"])
    assert result["twin_vs_autodiff_ratio"]["value"] > 1
    assert "compile_s" not in result


@pytest.mark.slow
def test_bench_skin_contact(capsys):
    """The leg's skin folds onto its links and itself within a millimetre."""
    result = load_script("skin_contact").main(["--quick"])
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1]) == result
    assert all(
        result[key]["value"] <= 1.0 for key in ("link_overlap_mm", "self_overlap_mm")
    )


@pytest.mark.slow
def test_bench_contact(capsys):
    """Hard contact and SAP both walk forward."""
    result = load_script("contact").main(["--quick"])
    json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    strides = [row["stride_mm"] for row in result["trot"]["value"].values()]
    assert len(strides) == 2
    assert min(strides) > 5


@pytest.mark.long
def test_hamr_walk(capsys):
    """One row, walking forward."""
    found = load_script("hamr_walk").main(["--quick"])
    assert last_json(capsys.readouterr().out) == found
    (row,) = found["gaits"]
    assert row["stride_mm_per_cycle"]["worst"] > 1
    assert row["stride_mm_per_cycle"]["starts"] == 2


@pytest.mark.long
def test_hamr_motions(capsys):
    """HAMR walks backwards from rest, within what its drive can give."""
    found = load_script("hamr_motions").main(["--quick"])
    assert last_json(capsys.readouterr().out) == found
    (row,) = found["motions"]
    assert row["planned"] and row["executed"]
    assert 0.7 < row["stride_share"] < 1.2
    assert 0 < row["lowest_V"] < 112 < row["highest_V"] < 225


@pytest.mark.long
def test_littledog_stepup(capsys, tmp_path):
    """One start is valid; figures, pictures and the stored optimum are there."""
    stepup = load_script("littledog_stepup")
    try:
        stepup.data_folder(None)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    result = stepup.main(["--quick", "--output", str(tmp_path)])
    last = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert last["littledog_valid_of_12"] == 1
    assert last["littledog_best_objective"] < 40
    assert last["terrain"] == "authors"
    assert last["stored"]["valid"] and last["stored"]["tolerance"] == 1.2e-6
    assert last["littledog_median_s"] == result["littledog_median_s"]
    assert last["stored"]["objective"] == pytest.approx(52.070460532893584)
    assert {p.name for p in tmp_path.iterdir()} == {
        "littledog.json",
        "littledog_starts.png",
        "littledog_motion.png",
    }


@pytest.mark.long
def test_falling_brick(capsys, tmp_path):
    """Second and first order in flight; midpoint is nearer through impacts."""
    out = tmp_path / "brick.png"
    argv = ["--quick", "--samples", "1", "--json", "-o", str(out)]
    result = load_script("falling_brick").main(argv)
    last = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert last["samples"] == 1
    flight, drop = result["flight"], result["drop"]
    assert abs(flight["midpoint_slope"] - 2) < 0.1
    assert abs(flight["euler_slope"] - 1) < 0.1
    assert all(m < e for m, e in zip(drop["midpoint"], drop["euler"]))
    assert is_picture(out)


def test_render_model_names_bad_input(capsys, tmp_path):
    """An unknown model is one line and exit 2."""
    code = load_script("render_model").main(["hamrr", "-o", str(tmp_path / "x.png")])
    assert code == 2
    assert "did you mean" in capsys.readouterr().err


def test_render_model_draws_the_skin_of_a_result(capsys, tmp_path):
    """Without a browser, at the sample nearest to a time; of other results a line."""
    result = skinned(tmp_path, 300, 3, 1.0)
    argv = [str(result.save(tmp_path / "run.nc")), "-o", str(tmp_path / "x.png")]
    main = load_script("render_model").main
    assert main([*argv, "--time", "0.9", "--size", "300", "200"]) == 0
    assert is_picture(tmp_path / "x.png", least=150)
    bare = replace(result, data=result.data.drop_vars("skin_position"))
    argv[0] = str(bare.save(tmp_path / "bare.nc"))
    capsys.readouterr()
    assert main(argv) == 2 and "no skin" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_render_model(tmp_path):
    """A picture of HAMR is made."""
    out = tmp_path / "hamr.png"
    argv = ["hamr", "-o", str(out), "--size", "450", "300"]
    assert load_script("render_model").main(argv) == 0
    assert is_picture(out, least=250)


@pytest.mark.long
def test_readme_program(tmp_path, monkeypatch, capsys):
    """README's first program runs as printed, with one cycle for fifteen."""
    import re

    text = (ROOT / "README.md").read_text()
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


@pytest.mark.long
@pytest.mark.skipif(not kkt.available(), reason="kkt.c was not compiled")
def test_bench_structured(capsys):
    """The walk is solved by either linear solver; its figures are in the last line."""
    for solver in ("mumps", "structured"):
        result = load_script("structured").main(
            ["--quick", "--only", "quadruped", "--linear-solver", solver]
        )
        assert result["quadruped_solved"] == 3
        assert json.loads(capsys.readouterr().out.splitlines()[-1]) == result


@pytest.mark.slow
def test_bench_contact_implicit(capsys):
    """The recipe's rows agree with ours; exact Hessians are fast and succeed."""
    bench = load_script("contact_implicit")
    result = bench.main(["--quick"])
    last = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert result["recipe_disagreement"]["value"] < 1e-8
    methods = result["quadruped"]["value"]
    assert set(methods) == set(bench.METHODS)
    assert methods["exact"]["success"] == 1
    assert np.isfinite(last["exact_vs_recipe_ratio"]["value"])


@pytest.mark.slow
def test_hamr_gaits_and_perturbed(tmp_path, capsys):
    """One coarse gait planned, executed, and executed by a robot that slips."""
    argv = (
        "--frequency 10 --surface card --contact sap --knots 17 --cycles 2 --starts 2"
    )
    found = load_script("hamr_gaits").main([*argv.split(), "-o", str(tmp_path)])
    assert last_json(capsys.readouterr().out) == found
    rows = found["gaits"]
    names = "gait frequency_hz surface seconds stride_mm slip complementarity_max"
    names += " del_residual_max executed_stride_mm"
    assert set(names.split()) <= set(rows[0])
    assert rows[0]["verdict"] == "success"
    assert rows[0]["executed_stride_mm"]["worst"] > 5
    assert is_picture(tmp_path / "gaits.png")
    assert is_picture(tmp_path / "10hz_card_sap.png")
    found = load_script("hamr_perturbed").main([str(tmp_path), "--quick"])
    assert found["perturbed"][0]["friction -20 %"]["worst"] > 3
    assert 0 < found["perturbed"][0]["least_share"] <= 1


@pytest.mark.long
def test_hamr_gaits_that_came_with_drakebots(capsys):
    """A refined gait is executed as it is, not planned; in one cycle it gets going."""
    found = load_script("hamr_gaits").main(["--quick"])
    assert last_json(capsys.readouterr().out) == found
    (row,) = found["gaits"]
    names = "executed_clearance_min_mm executed_loaded_slip executed_yaw_deg_per_cycle"
    assert set(names.split()) < set(row)
    assert row["iterations"] == 0
    assert row["executed_stride_mm"]["starts"] == 2
    assert row["executed_stride_mm"]["worst"] > 3
    found = load_script("hamr_perturbed").main(["--quick"])
    assert last_json(capsys.readouterr().out) == found
    (row,) = found["perturbed"]
    assert row["plan"] == "30hz_card" and row["least_share"] > 0.5


@pytest.mark.slow
def test_hamr_jump(tmp_path, capsys):
    """A coarse jump, and the stored one, leave the ground in plan and execution."""
    script = load_script("hamr_jump")
    argv = f"--knots 31 --contact sap --starts 2 -o {tmp_path}"
    facts = script.main(argv.split())
    assert last_json(capsys.readouterr().out) == facts
    assert facts["verdict"] == "success"
    assert facts["apex_rise_mm"] > 11
    assert facts["executed_apex_rise_mm"]["worst"] > 6
    assert facts["spring_energy_most_mJ"] > 10 * facts["spring_energy_at_start_mJ"]
    assert is_picture(tmp_path / "jump.png")
    assert script.main(["--quick"])["executed_apex_rise_mm"]["worst"] > 9


def test_make_skinned_leg(capsys):
    """Skeleton, skin and mesh are those that the parameters give."""
    assert not load_script("make_skinned_leg").main(["--check"])


@pytest.mark.slow
def test_voxel_gait_search(capsys, tmp_path):
    """A few walks, and a table that can be walked."""
    path = tmp_path / "best.csv"
    facts = load_script("voxel_gait_search").main(["--quick", "-o", str(path)])
    json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert facts["walks"] == 2
    assert len(path.read_text().splitlines()) == 9


@pytest.mark.long
def test_scripts_end_with_one_line(capsys):
    """An error of ours: one line that names the script, and the error's exit code."""
    with pytest.raises(SystemExit) as ended, one_line_errors("walk"):
        raise InvalidInput("speed: 0 m/s; take one above 0")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "walk: speed: 0 m/s; take one above 0\n"
    path = str(find_script("quad_reduced.py"))
    run = subprocess.run(
        [sys.executable, path, "-o", "picture.txt"], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert run.stderr.strip().splitlines()[-1].startswith("quad_reduced: picture.txt")
    assert "Traceback" not in run.stderr
