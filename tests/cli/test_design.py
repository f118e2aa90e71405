"""`drakebots design`, `show` of a designed robot."""

from __future__ import annotations

import pytest

from drakebots.cli import main
from tests.helpers.scripts import is_picture, last_json


@pytest.mark.long
def test_design_writes_a_robot_that_show_reads(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["design", "beetle", "-o", str(out), "--vertices", "4000"]
    assert main([*words, "--folds", "depth=0", "--json"]) == 0
    report = last_json(capsys.readouterr().out)
    assert report["joints"] == 12
    assert report["surface_to_robot_s"] > 0
    assert is_picture(out / "beetle.png")
    assert main(["show", str(out / "beetle.sdf"), "--json"]) == 0
    shown = last_json(capsys.readouterr().out)
    assert shown["skin_vertices"] == report["skin_vertices"]
    assert shown["glue_vertices"] == 140
    assert shown["mass_kg"] == pytest.approx(report["mass_kg"], rel=1e-4)
    assert len(shown["size_m"]) == 3


@pytest.mark.slow
def test_fabrication_of_a_coarse_skin(tmp_path, capsys):
    """Six pieces, each with its mould, the links and the lists; masses add up."""
    out = tmp_path / "out"
    words = ["design", "beetle", "-o", str(out), "--vertices", "2500"]
    words += ["--folds", "depth=0", "--fabrication", "--json"]
    assert main(words) == 0
    assert is_picture(out / "fabrication.png")
    report = last_json(capsys.readouterr().out)
    pieces = sorted(path.stem for path in (out / "fabrication/skin").iterdir())
    assert pieces == ["FL", "FR", "RL", "RR", "torso_left", "torso_right"]
    for piece in pieces:
        for half in ("upper", "lower"):
            assert (out / f"fabrication/moulds/{piece}_{half}.stl").exists()
    links = list((out / "fabrication/links").glob("*.stl"))
    assert len(links) == report["joints"] + 1
    rows = (out / "fabrication/skin_pieces.csv").read_text().splitlines()
    column = rows[0].split(",").index("silicone_g")
    grams = sum(float(row.split(",")[column]) for row in rows[1:])
    assert 1e-3 * grams == pytest.approx(report["skin_mass_kg"], rel=0.02)
    listed = {str(out / "fabrication/skin_pieces.csv"), str(out / "beetle.sdf")}
    assert listed <= set(report["files"])


def test_show_of_the_model(capsys):
    assert main(["show", "cow", "--json"]) == 0
    shown = last_json(capsys.readouterr().out)
    assert shown["joints"] == 16
    whole = shown["skeleton_mass_kg"] + shown["skin_mass_kg"]
    assert shown["mass_kg"] == pytest.approx(whole)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["design", "unicorn", "-o", "OUT"], "unknown robot 'unicorn'"),
        (["design", "beetle", "-o", "OUT", "--wall", "0"], "must be > 0"),
        (["design", "beetle", "-o", "OUT", "--units", "mm"], "it is for a surface"),
        (["design", "no.yaml", "-o", "OUT"], "no such design file"),
        (["design", "no.stl", "-o", "OUT"], "no such surface"),
        (["design", "a.doc", "-o", "OUT"], "no design"),
    ],
)
def test_bad_words(words, said, tmp_path, capsys):
    words = [str(tmp_path / "out") if w == "OUT" else w for w in words]
    assert main(words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_open_surface_is_refused(tmp_path, capsys):
    path = tmp_path / "open.obj"
    path.write_text("v 0 0 0\nv 0.3 0 0\nv 0 0.3 0\nf 1 2 3\n")
    assert main(["design", str(path), "-o", str(tmp_path / "out")]) == 2
    assert "surface" in capsys.readouterr().err
