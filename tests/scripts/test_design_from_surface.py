"""The scripts of the design, in small."""

from __future__ import annotations

import pytest

from drakebots.design import STAGES
from tests.helpers.scripts import is_picture, last_json, load_script


@pytest.mark.slow
def test_bench_gives_every_stage(capsys):
    result = load_script("design").main(["--quick"])
    assert last_json(capsys.readouterr().out) == result
    (run,) = result["runs"]
    assert run["skin_vertices"] == pytest.approx(3000, rel=0.1)
    assert set(run["seconds"]) == set(STAGES)
    whole = result["surface_to_robot_s"]["value"]
    assert whole == pytest.approx(sum(run["seconds"].values()))


@pytest.mark.long
def test_table_of_the_models(capsys):
    """A row a robot, ours and the paper's number in each cell."""
    assert load_script("make_quads").main(["beetle", "--table"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:2] == ["beetle", "12 (12)"]
    assert cells[-1].endswith("(3.9)")
    assert load_script("make_quads").main(["cow", "--masses"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    mass = {c[1].strip(): c[2] for c in (line.split("|") for line in lines[2:])}
    skin = [float(mass[k]) for k in ("skin without folds and feet", "folds", "feet")]
    assert sum(skin) == pytest.approx(
        float(mass["**skin** (paper)"].split()[0]), abs=0.02
    )


@pytest.mark.slow
def test_an_animal_becomes_a_robot_that_stands(tmp_path, capsys):
    """From its surface, with no further words; a picture of each stage."""
    words = ["--animals", "tortoise", "-o", str(tmp_path)]
    result = load_script("design").main(words)
    assert last_json(capsys.readouterr().out) == result
    assert result["animals_of_12"]["value"] == 1
    (row,) = result["animals"]
    assert row["stands"] and row["sunk_m"] < 0.02
    for k, what in enumerate(("surface", "fit", "body"), 1):
        assert is_picture(tmp_path / "tortoise" / f"stage_{k}_{what}.png")


@pytest.mark.slow
def test_fold_experiment_in_small(tmp_path, capsys):
    """Two degrees in two frames: a plot, both skins follow."""
    module = load_script("fold_experiment")
    words = ["-o", str(tmp_path), "--angle", "2", "--duration", "0.1"]
    words += ["--time-step", "0.05", "--vertices", "10500"]
    reached = module.main(words)
    assert last_json(capsys.readouterr().out) == reached
    assert all(1.0 < reached[skin] < 2.2 for skin in ("smooth", "folded"))
    assert is_picture(tmp_path / "fold.png")
    assert (tmp_path / "folded.html").exists()
