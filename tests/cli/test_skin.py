"""Skins on the command line, in process: simulate, show, attach, bad input."""

from __future__ import annotations

import json
import shutil

import pytest

from drakebots.cli import main
from drakebots.cli import skin as skin_commands
from drakebots.fem.mesh import TetMesh, read_mesh, write_mesh
from drakebots.formats import load
from drakebots.model import package_root
from drakebots.results import load_result
from drakebots.skin import simulate
from drakebots.skin.file import load_skinned

FOLDER = package_root() / "skinned_leg"


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


@pytest.fixture
def leg(tmp_path):
    """Skeleton and mesh, without a .skin.yaml."""
    for name in ("sdf", "vtu"):
        shutil.copy(FOLDER / f"skinned_leg.{name}", tmp_path / f"leg.{name}")
    return tmp_path


@pytest.mark.parametrize("name", ["skinned-leg", "skinned_leg"])
def test_simulate(name, tmp_path, capsys):
    out = tmp_path / "run.nc"
    argv = ["simulate", name, "--duration", "0.05", "-o", str(out), "--json"]
    assert main(argv) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["frames"] == 10 and facts["system"] == "skinned"
    assert load_result(out).data.skin_position.shape == (4, 2210, 3)
    assert main(["report", str(out)]) == 0


def test_simulate_with_options(tmp_path, capsys):
    table = tmp_path / "motion.csv"
    table.write_text("time,hip,knee\n0,0,0\n0.05,0.1,-0.1\n")
    argv = ["simulate", "skinned-leg", "--duration", "0.05", "--motion", str(table)]
    argv += ["--collisions", "none", "--no-ground", "--json"]
    argv += ["--material", "youngs_modulus=9e7,kind=neo-hookean"]
    assert main(argv) == 0
    options = last_json(capsys.readouterr().out)["provenance"]["options"]
    assert options["material"] == {"youngs_modulus": 9e7, "kind": "neo-hookean"}
    assert options["collisions"] == "none" and options["ground"] is False
    assert options["motion"]["positions"] == [[0, 0], [0.1, -0.1]]


def test_show(capsys):
    assert main(["show", "skinned_leg", "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["joints"] == 2 and facts["skin_vertices"] == 2210
    assert facts["glue_vertices"] == 192
    assert facts["mass_kg"] == pytest.approx(0.4788, abs=1e-3)
    assert facts["size_m"] == pytest.approx([0.066, 0.066, 0.2])
    # Models without a skin are shown as ever.
    assert main(["show", "brick", "--json"]) == 0
    assert "skin_vertices" not in last_json(capsys.readouterr().out)


def test_attach_then_simulate(leg, capsys):
    argv = ["attach", str(leg / "leg.sdf"), str(leg / "leg.vtu"), "--glue"]
    assert (
        main([*argv, "radius=5mm", "--material", "youngs_modulus=5e5", "--json"]) == 0
    )
    text = capsys.readouterr().out
    facts = last_json(text)
    assert facts["glue_by_link"] == {"thigh": 96, "shin": 96}
    assert "stiff" in text and "worst quality" in text and "h/t" in text
    made = leg / "leg.skin.yaml"
    assert "leg.vtu" in made.read_text() and "500000" in made.read_text()
    # Not written over without being asked to.
    assert main([*argv, "radius=5mm"]) == 2
    assert "-o" in capsys.readouterr().err
    assert main([*argv, "radius=5mm", "-o", str(made), "--between", "leave"]) == 0
    assert main(["simulate", str(leg / "leg.sdf"), "--duration", "0.02", "--json"]) == 0
    assert last_json(capsys.readouterr().out)["system"] == "skinned"


def test_a_mesh_in_millimetres_is_recognised(leg, capsys):
    mesh = read_mesh(leg / "leg.vtu")
    write_mesh(leg / "mm.vtu", TetMesh(1e3 * mesh.vertices, mesh.tets, mesh.region))
    argv = ["attach", str(leg / "leg.sdf"), str(leg / "mm.vtu"), "--glue", "radius=5mm"]
    assert main(argv) == 2
    assert "--units mm" in capsys.readouterr().err
    assert main([*argv, "--units", "mm", "--json"]) == 0
    facts = last_json(capsys.readouterr().out)
    assert facts["size_m"] == pytest.approx([0.066, 0.066, 0.2])
    assert load_skinned(leg / "leg.sdf").skin.unit == "mm"


BAD = [
    ("simulate skinned-leg --motion samba", "samba"),
    ("simulate skinned-leg --motion none.csv", "none.csv"),
    ("simulate skinned-leg --material poisson_ratio=0.5", "poisson_ratio"),
    ("simulate skinned-leg --material youngs_modulus=-1", "youngs_modulus"),
    ("simulate skinned-leg --material youngs_modulus=0.8", "7e5"),
    ("simulate skinned-leg --time-step 0", "time_step"),
    ("simulate skinned-leg --gait trot", "--gait"),
    ("simulate skinned-leg -o /nowhere/run.nc", "/nowhere"),
    ("simulate hamr --motion sine", "--motion"),
    ("attach skinned_leg none.vtu --glue radius=5mm -o x.skin.yaml", "none.vtu"),
    ("attach skinned_lge leg.vtu --glue radius=5mm -o x.skin.yaml", "skinned_leg"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue 5mm", "write radius=5mm"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue between=leave", "write radius=5mm"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=wide", "wide"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=-5mm", "radius"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=0.01mm", "no vertex within"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=30mm", "--between"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=30mm -o {leg}/my.skin.yaml",
     "my.skin.yaml"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=5mm "
     "--material youngs_modulus=0.8", "no solid"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=5mm --units ft", "'ft'"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=5mm --between cut", "cut"),
    ("attach {leg}/leg.sdf {leg}/leg.sdf --glue radius=5mm", "the ending .vtk"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=5mm -o x.yaml", ".skin.yaml"),
    ("attach {leg}/leg.sdf {leg}/leg.vtu --glue radius=5mm "
     "--material poisson_ratio=0.5", "poisson_ratio"),
]  # fmt: skip


@pytest.mark.parametrize("line, said", BAD)
def test_bad_input_is_one_line(line, said, leg, capsys, monkeypatch):
    monkeypatch.chdir(leg)
    assert main(line.format(leg=leg).split()) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and said in error
    assert not list(leg.glob("*.skin.yaml"))


@pytest.mark.parametrize(
    "table, said, loads",
    [
        (None, "cannot be read", False),
        ("", "column heads", False),
        ("hip,knee\n0,0\n", "'time'", False),
        ("time,hip,knee\n1,0,0\n0,0,0\n", "times must increase", False),
        ("time,hip,knee\nsoon,0,0\n", "soon", False),
        ("time,hip\n0,0\n", "'knee'", True),
        ("time,hip,knee\nnan,0,0\n", "finite", False),
        ("time,hip,knee\n0,0,nan\n", "finite", True),
    ],
)
def test_a_bad_table_is_told_before_the_robot_loads(
    table, said, loads, tmp_path, capsys, monkeypatch
):
    path, loaded = tmp_path / "bad.csv", []
    if table is not None:
        path.write_text(table)

    def load_model(name):
        loaded.append(name)
        return load(name)

    def load_skin(name):
        raise AssertionError(f"the skin of {name} was loaded")

    monkeypatch.setattr(simulate, "load", load_model)
    monkeypatch.setattr(simulate, "load_skinned", load_skin)
    monkeypatch.setattr(skin_commands, "load_skinned", load_skin)
    assert main(["simulate", "skinned_leg", "--motion", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and said in error and "bad.csv" in error
    assert bool(loaded) == loads
