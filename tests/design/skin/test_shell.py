"""Shells against closed forms: volume, wall, counts, folds, validity."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.design.geometry import (
    DistanceGrid,
    Ellipsoid,
    HalfSpaceCut,
    Implicit,
    Ring,
    RoundBox,
    RoundCone,
    check_surface,
)
from drakebots.design.skin.fold import Fold
from drakebots.design.skin.shell import FLOOR, shell_mesh
from drakebots.fem.mesh import TetMesh, check_mesh, surface_triangles, tet_quality
from tests.helpers.wall_surfaces import wall_surfaces

R, WALL = 0.05, 4e-3


def evenly(points):
    return np.full(len(points), WALL)


@pytest.fixture(scope="module")
def ball():
    body = Implicit((Ellipsoid([0, 0, 0], [R, R, R]),))
    return DistanceGrid.from_implicit(body)


@pytest.mark.long
def test_a_sphere_has_the_volume_and_the_wall_of_its_shell(ball):
    shell = shell_mesh(ball, evenly, target_vertices=2400)
    exact = 4 / 3 * np.pi * (R**3 - (R - WALL) ** 3)
    assert shell.report.volume == pytest.approx(exact, rel=0.02)
    depth = R - np.linalg.norm(shell.inner.vertices, axis=1)
    np.testing.assert_allclose(depth, WALL, atol=0.06 * WALL)
    assert len(shell.mesh.vertices) == pytest.approx(2400, rel=0.05)
    # From the mesh alone, as after a file.
    for found, own in zip(wall_surfaces(shell.mesh), (shell.inner, shell.outer)):
        assert found.volume == pytest.approx(own.volume, rel=1e-12)
        assert found.vertices.shape == own.vertices.shape
    solid = TetMesh(np.eye(4, 3), np.array([[3, 0, 1, 2]]), np.zeros(1, int))
    with pytest.raises(InvalidInput, match="1 pieces, not two"):
        wall_surfaces(solid)


def test_the_rim_of_a_sole_is_a_line_of_edges():
    """At one height all around a foot that the ground cuts; ragged without a ring."""
    pad = RoundBox([0, 0, 0.01], [0.07, 0.05, 0.05], 0.012)
    body = Implicit((pad,), (HalfSpaceCut([0, 0, 0.0], [0, 0, -1.0], 0.002),))
    grid = DistanceGrid.from_implicit(body, 2.5e-3)
    rim = Ring(np.array([0, 0, 3e-3]), np.array([0, 0, 1.0]), 0.06)
    for rings in ((rim,), ()):
        x = shell_mesh(grid, evenly, target_vertices=700, rings=rings).outer.vertices
        on = x[abs(x[:, 2] - 3e-3) < 1e-6]
        if not rings:
            assert len(on) < 3
            continue
        turn = np.sort(np.arctan2(on[:, 1], on[:, 0]))
        assert len(on) > 20
        assert np.diff(turn, append=turn[0] + 2 * np.pi).max() < np.radians(25)


@pytest.mark.long
def test_both_sides_converge_with_the_mesh(ball):
    errors = []
    for n in (400, 3200):
        shell = shell_mesh(ball, evenly, target_vertices=n)
        outer = 4 / 3 * np.pi * R**3
        inner = 4 / 3 * np.pi * (R - WALL) ** 3
        errors.append([shell.outer.volume / outer - 1, shell.inner.volume / inner - 1])
    # Chords: second order in the edge, which is 2.83 times shorter.
    assert (np.abs(errors[1]) < np.abs(errors[0]) / 4).all()


def test_both_sides_are_closed_and_every_tet_is_sound(ball):
    shell = shell_mesh(ball, evenly, target_vertices=1500, layers=2)
    for side in (shell.outer, shell.inner):
        report = check_surface(side)[1]
        assert report.notes == () and report.pieces == 1
    mesh, report = check_mesh(shell.mesh)
    assert report.pieces == 1
    assert report.flipped == report.dropped_vertices == report.slivers == 0
    assert len(surface_triangles(mesh)) == 2 * len(shell.outer.triangles)
    assert tet_quality(mesh.vertices, mesh.tets).min() >= FLOOR


def test_a_foot_is_thicker_where_asked():
    body = Implicit((RoundCone([0, 0, -0.1], [0, 0, 0.1], 0.04, 0.04),))
    grid = DistanceGrid.from_implicit(body)
    shell = shell_mesh(
        grid,
        lambda p: np.interp(p[:, 2], [-0.06, -0.02], [8e-3, 4e-3]),
        target_vertices=3000,
    )
    z = shell.outer.vertices[:, 2]
    assert np.median(shell.thickness[z < -0.08]) == pytest.approx(8e-3, rel=0.05)
    assert np.median(shell.thickness[z > 0.0]) == pytest.approx(4e-3, rel=0.05)


@pytest.mark.parametrize("axis", [[0, 0, 1], [0.1, 0, 1]])
def test_folds_have_their_teeth_and_depth(axis):
    body = Implicit((RoundCone([0, 0, -0.09], [0, 0, 0.09], 0.036, 0.036),))
    fold = Fold([0, 0, 0.004], axis, 0.06)
    shell = shell_mesh(
        DistanceGrid.from_implicit(body), evenly, target_vertices=3500, folds=(fold,)
    )
    s, offset = fold.coordinates(shell.outer.vertices)
    r = np.linalg.norm(offset, axis=1)
    pitch = fold.length / fold.teeth
    at = np.round((s + fold.length / 2) / (pitch / 2)).astype(int)
    on_ring = np.abs(s + fold.length / 2 - at * pitch / 2) < 1e-4
    grooves = [np.median(r[on_ring & (at == k)]) for k in (1, 3, 5, 7)]
    crests = [np.median(r[on_ring & (at == k)]) for k in (0, 2, 4, 6, 8)]
    np.testing.assert_allclose(grooves, 0.028, atol=6e-4)
    np.testing.assert_allclose(crests, 0.036, atol=6e-4)
    # The wall folds with it: the inner surface waves too.
    _, inner = fold.coordinates(shell.inner.vertices)
    inner = np.linalg.norm(inner, axis=1)
    wave = np.median(inner[on_ring & (at == 4)]) - np.median(inner[on_ring & (at == 3)])
    assert wave > 3e-3
    assert shell.mesh.regions == (0, 1)
    assert check_mesh(shell.mesh)[1].pieces == 1
    assert shell.report.wall_m[0] > 0.55 * WALL
    region = shell.mesh.vertices[shell.mesh.tets[shell.mesh.region == 1]].mean(axis=1)
    assert (np.abs(fold.coordinates(region)[0]) < 0.031).all()


@pytest.mark.long
def test_a_tip_thinner_than_two_walls_stays_valid():
    body = Implicit(
        (
            Ellipsoid([0, 0, 0], [0.05, 0.05, 0.05]),
            RoundCone([0, 0, 0.04], [0, 0, 0.11], 0.012, 0.003),
        ),
        blend=0.01,
    )
    shell = shell_mesh(
        DistanceGrid.from_implicit(body, 1.5e-3), evenly, target_vertices=3500
    )
    assert check_mesh(shell.mesh)[1].pieces == 1
    assert shell.report.inverted == 0
    assert shell.report.quality[0] >= FLOOR
    assert 0 < shell.report.held < 0.3
    assert (shell.thickness > 0).all()


def test_the_same_twice(ball):
    one, two = (shell_mesh(ball, evenly, target_vertices=800) for _ in range(2))
    np.testing.assert_array_equal(one.mesh.vertices, two.mesh.vertices)
    np.testing.assert_array_equal(one.mesh.tets, two.mesh.tets)


@pytest.mark.long
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)  # fmt: skip
@given(st.integers(0, 10**6))
def test_random_bodies_give_sound_shells(seed):
    rng = np.random.default_rng(seed)
    p = np.cumsum(rng.uniform(-0.04, 0.04, (5, 3)), axis=0)
    r = rng.uniform(0.018, 0.035, 5)
    body = Implicit(
        tuple(RoundCone(p[i], p[i + 1], r[i], r[i + 1]) for i in range(4)), blend=0.02
    )
    shell = shell_mesh(DistanceGrid.from_implicit(body), evenly, target_vertices=1500)
    mesh, report = check_mesh(shell.mesh)
    assert report.flipped == 0 and report.pieces == 1
    assert tet_quality(mesh.vertices, mesh.tets).min() >= FLOOR
    assert len(mesh.vertices) == pytest.approx(1500, rel=0.05)


def test_bad_asks_are_named(ball):
    for options, words in (
        ({"target_vertices": 10}, "vertices"),
        ({"folds": (Fold([1, 0, 0], [0, 0, 1], 0.02),)}, "outside"),
        ({"folds": (Fold([0, 0, 0], [0, 0, 1], 0.04, depth=0.049),)}, "too thin"),
    ):
        with pytest.raises(InvalidInput, match=words):
            shell_mesh(ball, evenly, **{"target_vertices": 800, **options})
    for bad in ({"axis_W": [0, 0, 0]}, {"length": -1}, {"teeth": 0}, {"depth": 0}):
        with pytest.raises(InvalidInput, match="fold"):
            Fold(**{"p_W": [0, 0, 0], "axis_W": [0, 0, 1], "length": 0.05, **bad})
