"""From a body to a skinned robot: the wall, the glue, the masses, bad input."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import (
    FileProblem,
    InvalidInput,
    NoSolution,
    SolverProblem,
    UnknownName,
)
from drakebots.design import (
    DesignProblem,
    design_robot,
    params_text,
    pipeline,
    table1_problem,
    table1_template,
    write_design,
)
from drakebots.design.file import parse_design
from drakebots.design.geometry import DistanceGrid, Implicit, RoundCone, Surface
from drakebots.design.pipeline import check_room, stood_up
from drakebots.design.problem import skin_description
from drakebots.design.skin import FoldSettings, SkinSettings, hollow, joint_folds
from drakebots.design.skin.hollow import _folds_at
from drakebots.fem.mesh import read_mesh, tet_quality
from drakebots.fem.mesh.mesh import surface_faces
from drakebots.skin.file import load_skinned, read_skin
from tests.helpers.robot_fields import coarse_beetle

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def design():
    return coarse_beetle()


def test_skin_is_watertight(design):
    """Every edge of the boundary has two triangles, once in each direction."""
    triangles, _ = surface_faces(design.shell.mesh)
    edges = np.concatenate([triangles[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))])
    n = len(design.shell.mesh.vertices)
    forward, backward = edges @ [n, 1], edges @ [1, n]
    assert len(np.unique(forward)) == len(edges)
    np.testing.assert_array_equal(np.sort(forward), np.sort(backward))


def test_wall_is_as_thick_as_asked(design):
    low, middle, high = design.shell.report.wall_m
    assert low > 2.5e-3
    assert abs(middle - 4e-3) < 2e-4
    assert abs(high - 8e-3) < 8e-4


def test_no_inverted_or_flat_tets(design):
    mesh = design.shell.mesh
    assert mesh.volumes.min() > 0
    assert tet_quality(mesh.vertices, mesh.tets).min() >= 0.1


def test_masses_are_volume_times_density(design):
    mesh = design.shell.mesh
    density = design.materials[0].density
    assert design.skin_mass == pytest.approx(mesh.volumes.sum() * density)
    assert density == 1070
    assert design.mass == pytest.approx(design.skeleton.mass + design.skin_mass)


def test_glue_is_on_one_link_each_inside_and_on_every_foot(design):
    ids = np.concatenate(list(design.glue.values()))
    assert len(np.unique(ids)) == len(ids) == 140
    inner = set(design.shell.inner_vertices.tolist())
    assert set(ids.tolist()) <= inner
    for sole in design.skeleton.soles:
        assert len(design.glue[sole.link]) >= 4


def test_folder_loads_and_says_the_same(design, tmp_path):
    path = write_design(design, tmp_path)
    robot = load_skinned(path)
    report = robot.report()
    assert report["joints"] == 12
    assert report["skin_vertices"] == len(design.shell.mesh.vertices)
    assert report["glue_vertices"] == 140
    assert report["mass_kg"] == pytest.approx(design.mass, rel=1e-5)
    # float32 in the file.
    mesh = read_mesh(tmp_path / "skin.vtu")
    away = np.abs(mesh.vertices - design.shell.mesh.vertices).max()
    assert away < 1e-7
    np.testing.assert_array_equal(mesh.tets, design.shell.mesh.tets)
    assert (
        read_skin(tmp_path / "beetle.skin.yaml").glue == skin_description(design).glue
    )
    assert sum(f.stat().st_size for f in tmp_path.rglob("*")) < 1.5e6


def test_writing_again_gives_the_same_bytes(design, tmp_path):
    for name in ("a", "b"):
        write_design(design, tmp_path / name)
    files = [f for f in (tmp_path / "a").rglob("*") if f.is_file()]
    assert len(files) > 6
    for file in files:
        other = tmp_path / "b" / file.relative_to(tmp_path / "a")
        assert file.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("rims", [True, False])
def test_a_wall_without_teeth_is_tried_without_rims(monkeypatch, rims):
    """Where rims of soles make the only flat tets, the second wall has none."""
    tried = []

    def refuse(*args, rings, **others):
        tried.append(len(rings))
        raise NoSolution("a flat tet")

    monkeypatch.setattr(hollow, "shell_mesh", refuse)
    skeleton = table1_template("beetle").skeleton()
    skin = SkinSettings(folds=FoldSettings(depth=0.0), rims=rims)
    with pytest.raises(NoSolution, match="a flat tet"):
        hollow.fold_and_hollow(None, skeleton, (), skin)
    assert tried == ([4, 0] if rims else [0])


def test_one_fold_at_every_joint():
    settings = FoldSettings()
    for name, count in (("beetle", 12), ("cow", 12), ("lizard", 13)):
        skeleton = table1_template(name).skeleton()
        folds = joint_folds(skeleton, settings)
        assert len(folds) == count
        joints = [joint for fold in folds for joint in fold.joints]
        assert sorted(joints) == sorted(hinge.name for hinge in skeleton.hinges)
        for fold in folds:
            np.testing.assert_allclose(np.linalg.norm(fold.axis_W), 1.0)
            assert abs(fold.side_W @ fold.axis_W) < 1e-12


def test_thin_body_says_by_how_much_and_the_scale():
    """One link in a ball: scaled by what is named, the ball holds the link."""
    skeleton = table1_template("beetle").skeleton()
    knee = replace(skeleton, links=(skeleton.link("FL_lower"),), hinges=(), soles=())
    points, _ = knee.corners()
    middle, radius = points.mean(axis=0), 0.05

    def ball(r):
        return DistanceGrid.from_implicit(
            Implicit((RoundCone(middle, middle + 1e-6, r, r),)), 2e-3
        )

    with pytest.raises(InvalidInput, match=r"mm too thin for link FL_lower") as error:
        check_room(knee, ball(radius))
    scale = float(re.search(r"scale it by ([\d.]+)", str(error.value))[1])
    farthest = np.linalg.norm(points - middle, axis=1).max()
    assert scale == pytest.approx(farthest / radius, abs=0.02)
    check_room(knee, ball(1.02 * scale * radius))


def test_teeth_go_where_the_wall_is_flat_and_on_the_twin():
    """A place near one hip chooses that hip and the other side's, none else."""
    folds = joint_folds(table1_template("cow").skeleton(), FoldSettings())
    hip = next(k for k, fold in enumerate(folds) if "FL_flexion" in fold.joints)
    bad = _folds_at(folds, folds[hip].p_W[None] + 0.003)
    chosen = {folds[k].joints[-1] for k in np.flatnonzero(bad)}
    assert chosen == {"FL_flexion", "FR_flexion"}
    assert _folds_at(folds, None).all()


def test_zero_thickness():
    with pytest.raises(InvalidInput, match=r"skin: wall must be > 0 m, got 0"):
        SkinSettings(wall=0.0)


def test_open_surface():
    box = np.array(np.meshgrid([0, 0.3], [0, 0.2], [0, 0.2])).reshape(3, -1).T
    triangles = np.array([[0, 1, 2], [1, 3, 2], [4, 6, 5]])
    with pytest.raises(InvalidInput, match="surface"):
        stood_up(Surface(box, triangles), 1.0)


def test_template_that_cannot_be_embedded_names_the_limb():
    stick = Implicit((RoundCone([-0.2, 0, 0.05], [0.2, 0, 0.05], 0.05, 0.05),))
    surface = DistanceGrid.from_implicit(stick, 8e-3).level_set()
    problem = DesignProblem("stick", table1_template("cow"), surface=surface)
    with pytest.raises(
        (NoSolution, InvalidInput), match=r"limb|link|F[LR]|R[LR]|front"
    ):
        design_robot(problem)


def test_bad_design_files(tmp_path):
    with pytest.raises(InvalidInput, match="template"):
        parse_design({}, tmp_path)
    with pytest.raises(UnknownName, match="robot"):
        parse_design({"template": "unicorn"}, tmp_path)
    with pytest.raises(UnknownName, match="unit"):
        raw = {"template": "cow", "surface": {"file": "a.stl", "unit": "furlong"}}
        parse_design(raw, tmp_path)
    with pytest.raises(FileProblem, match="no such surface"):
        parse_design({"template": "cow", "surface": {"file": "a.stl"}}, tmp_path)
    with pytest.raises(InvalidInput, match="must be > 0"):
        parse_design({"template": "beetle", "skin": {"wall": 0}}, tmp_path)
    changed = parse_design({"template": "beetle", "skin": {"glue": 150}}, tmp_path)
    assert changed.skin.glue == 150


def test_soft_parts_and_folds_have_their_own_modulus():
    problem = table1_problem("monster")
    soft = problem.skin.soft
    assert {part.name: part.modulus for part in soft} == {"tail": 0.15, "belly": 0.15}


def test_params_hold_every_number(design):
    text = params_text(design)
    assert "fold_modulus" in text and "youngs_modulus" in text
    assert "upper_pitch" in text


def test_settings_refuse_what_cannot_be():
    for change in ({"depth": -1e-3}, {"teeth": 0}, {"length": 0.0}):
        with pytest.raises(InvalidInput):
            replace(FoldSettings(), **change)
    for change in ({"layers": 0}, {"fold_refine": 9.0}):
        with pytest.raises(InvalidInput, match=next(iter(change))):
            SkinSettings(**change)


def test_a_solvers_words_come_with_the_stage_and_what_to_try(monkeypatch):
    def fails(*args, **options):
        raise SolverProblem("pardiso: the smallest pivot is 7.2e-06 beside 1.0e+03")

    monkeypatch.setattr(pipeline, "check_room", fails)
    with pytest.raises(NoSolution, match=r"^skeleton: .* pivot .*; try another"):
        design_robot(table1_problem("beetle"))
