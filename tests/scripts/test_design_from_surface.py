"""The scripts of the design, in small."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import DrakebotsError
from drakebots.design.geometry.surface import Surface, write_surface
from drakebots.design.pipeline import STAGES
from tests.helpers.scripts import is_picture, last_json, load_script


@pytest.mark.slow
def test_bench_gives_every_stage(capsys):
    result = load_script("design.py").main(["--quick"])
    assert last_json(capsys.readouterr().out) == result
    (run,) = result["runs"]
    assert run["skin_vertices"] == pytest.approx(3000, rel=0.1)
    assert set(run["seconds"]) == set(STAGES)
    whole = result["surface_to_robot_s"]["value"]
    assert whole == pytest.approx(sum(run["seconds"].values()))


def test_table_of_the_models(capsys):
    """A row a robot, ours and the paper's number in each cell."""
    assert load_script("make_quads.py").main(["beetle", "--table"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:2] == ["beetle", "12 (12)"]
    assert cells[-1].endswith("(3.9)")
    assert load_script("make_quads.py").main(["cow", "--masses"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    mass = {c[1].strip(): c[2] for c in (line.split("|") for line in lines[2:])}
    skin = [float(mass[k]) for k in ("skin without folds and feet", "folds", "feet")]
    assert sum(skin) == pytest.approx(
        float(mass["**skin** (paper)"].split()[0]), abs=0.02
    )


def test_surface_script_reads_axes_and_refuses(tmp_path, capsys):
    """A sheet is no body: the error names the surface, nothing is designed."""
    module = load_script("design_from_surface.py")
    x = np.array([[0.0, 0, 0], [0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3]])
    write_surface(tmp_path / "a.stl", Surface(x, np.array([[0, 2, 1], [0, 1, 3]])))
    words = [str(tmp_path / "a.stl"), "--units", "m", "-o", str(tmp_path / "o")]
    with pytest.raises(DrakebotsError, match="surface"):
        module.main(words)
    with pytest.raises(DrakebotsError, match="axis"):
        module.main([*words, "--up", "w"])
    with pytest.raises(DrakebotsError, match="perpendicular"):
        module.main([*words, "--up=-x"])
    with pytest.raises(SystemExit):
        module.main([])
    capsys.readouterr()


@pytest.mark.slow
def test_unseen_animal_stands(tmp_path, capsys):
    """Drawn in millimetres, y up: skeleton, skin and glue found, and it stands."""
    words = ["--self-test", "-o", str(tmp_path), "--vertices", "4000", "--json"]
    words += ["--fold-depth", "0", "--stand", "0.2"]
    assert load_script("design_from_surface.py").main(words) == 0
    report = last_json(capsys.readouterr().out)
    assert report["stands"] and report["joints"] == 16
    assert report["size_m"] == pytest.approx([0.84, 0.32, 0.55], abs=0.03)
    for k, what in enumerate(("surface", "skeleton", "wall", "skin"), 1):
        assert is_picture(tmp_path / f"{k}_{what}.png")


@pytest.mark.slow
def test_fold_experiment_in_small(tmp_path, capsys):
    """Two degrees in two frames: a plot, both skins follow."""
    module = load_script("fold_experiment.py")
    words = ["-o", str(tmp_path), "--angle", "2", "--duration", "0.1", "--json"]
    assert module.main([*words, "--time-step", "0.05", "--vertices", "10500"]) == 0
    reached = last_json(capsys.readouterr().out)
    assert set(reached) == {"smooth", "folded"}
    assert all(1.0 < angle < 2.2 for angle in reached.values())
    assert is_picture(tmp_path / "fold.png")
    assert (tmp_path / "folded.html").exists()
