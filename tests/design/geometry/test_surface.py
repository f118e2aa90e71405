"""Surfaces: files, checks, signed distance, bodies by formula."""

import numpy as np
import pytest

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.design.geometry import (
    DistanceGrid,
    Ellipsoid,
    HalfSpaceCut,
    Implicit,
    RoundBox,
    RoundCone,
    Surface,
    check_surface,
    mirrored,
    read_surface,
    write_surface,
)
from drakebots.design.geometry.distance import values_and_gradients
from drakebots.design.geometry.remesh import _half_edges


def ball(radius=0.1, at=(0, 0, 0), spacing=5e-3):
    body = Implicit((Ellipsoid(at, [radius] * 3),))
    return DistanceGrid.from_implicit(body, spacing)


@pytest.fixture(scope="module")
def sphere():
    return ball().level_set()


def joined(*surfaces):
    shift = np.cumsum([0, *(len(s.vertices) for s in surfaces)])
    return Surface(
        np.concatenate([s.vertices for s in surfaces]),
        np.concatenate([s.triangles + k for s, k in zip(surfaces, shift)]),
    )


@pytest.mark.parametrize("suffix", [".stl", ".obj", ".ply"])
@pytest.mark.parametrize("unit", ["m", "mm"])
def test_files_give_the_surface_back(sphere, tmp_path, suffix, unit):
    path = tmp_path / f"s{suffix}"
    write_surface(path, sphere, unit)
    back = read_surface(path, unit)
    assert len(back.triangles) == len(sphere.triangles)
    assert back.volume == pytest.approx(sphere.volume, rel=1e-5)
    check_surface(back)


def test_a_file_in_millimetres_is_not_taken_for_metres(sphere, tmp_path):
    path = tmp_path / "s.stl"
    write_surface(path, sphere, "mm")
    with pytest.raises(FileProblem, match="give unit="):
        read_surface(path)
    assert read_surface(path, "mm").volume == pytest.approx(sphere.volume, rel=1e-5)


def test_bad_files_are_named(tmp_path, sphere):
    with pytest.raises(FileProblem, match="no such"):
        read_surface(tmp_path / "none.stl")
    with pytest.raises(FileProblem, match="needs the ending"):
        read_surface(tmp_path / "none.step")
    for suffix in (".stl", ".obj", ".ply"):
        path = tmp_path / f"bad{suffix}"
        path.write_bytes(b"\x00\x01 nonsense \xff" * 30)
        with pytest.raises(FileProblem):
            read_surface(path)
    with pytest.raises(UnknownName, match="unit"):
        read_surface(tmp_path / "none.stl", "inch")


def test_checks_name_what_is_wrong(sphere):
    x, f = sphere.vertices, sphere.triangles
    with pytest.raises(InvalidInput, match="3 edges are open"):
        check_surface(Surface(x, f[1:]))
    with pytest.raises(InvalidInput, match="three triangles"):
        check_surface(Surface(x, np.concatenate([f, f[:1]])))
    other = ball(at=(0.3, 0, 0), radius=0.03).level_set()
    kept, report = check_surface(joined(sphere, other))
    assert report.pieces == 2 and len(kept.triangles) == len(f)
    with pytest.raises(InvalidInput, match="finite"):
        Surface(np.where(np.arange(len(x))[:, None] == 5, np.nan, x), f)


def test_triangles_are_turned_outward(sphere):
    f = sphere.triangles.copy()
    f[::3] = f[::3][:, [0, 2, 1]]
    mended, report = check_surface(Surface(sphere.vertices, f))
    assert report.turned == len(f[::3])
    assert mended.volume == pytest.approx(sphere.volume)
    inside_out = Surface(sphere.vertices, sphere.triangles[:, ::-1])
    assert check_surface(inside_out)[1].turned == len(f)


def test_crossing_triangles_are_found(sphere):
    x = sphere.vertices.copy()
    top = int(np.argmax(x[:, 2]))
    x[top, 2] = -0.15  # One vertex pulled through the far side.
    with pytest.raises(InvalidInput, match="cross"):
        check_surface(Surface(x, sphere.triangles))


def test_distances_agree_with_closed_forms():
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.13, 0.13, (2000, 3))
    exact = np.linalg.norm(points, axis=1) - 0.1
    grid = ball()
    near = np.abs(exact) < 0.015
    np.testing.assert_allclose(grid(points)[near], exact[near], atol=2e-4)
    again = DistanceGrid.from_surface(grid.level_set(), 5e-3)
    np.testing.assert_allclose(again(points)[near], exact[near], atol=4e-4)
    _, gradient = values_and_gradients(grid, points[near])
    radial = points[near] / np.linalg.norm(points[near], axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", gradient, radial).min() > 0.97
    assert -grid.values.min() == pytest.approx(0.1, abs=5e-3)


def test_single_parts_are_exact_distances():
    cone = Implicit((RoundCone([0, 0, 0], [0, 0, 0.1], 0.03, 0.02),))
    np.testing.assert_allclose(
        cone([[0, 0, 0.13], [0, 0, -0.05], [0, 0, 0.05]])[:2], [0.01, 0.02]
    )
    pill = Implicit((RoundCone([0, 0, 0], [0.1, 0, 0], 0.02, 0.02),))
    np.testing.assert_allclose(pill([[0.05, 0.05, 0], [0.05, 0, 0]]), [0.03, -0.02])
    box = Implicit((RoundBox([0, 0, 0], [0.2, 0.1, 0.1], 0.01),))
    np.testing.assert_allclose(box([[0.15, 0, 0], [0, 0, 0.045]]), [0.05, -0.005])
    sole = Implicit(pill.parts, (HalfSpaceCut([0, 0, -0.01], [0, 0, -1]),))
    np.testing.assert_allclose(sole([[0.05, 0, -0.015]]), [0.005])


def test_mirror_images():
    leg = RoundCone([0.1, 0.05, 0], [0.1, 0.08, -0.1], 0.02, 0.01)
    R = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    egg = Ellipsoid([0, 0.03, 0], [0.05, 0.03, 0.02], R)
    body = Implicit(mirrored((leg, egg)), blend=0.0)
    points = np.random.default_rng(1).uniform(-0.15, 0.15, (200, 3))
    np.testing.assert_allclose(body(points), body(points * [1, -1, 1]), atol=1e-12)


def test_bad_bodies_are_named():
    for make, words in (
        (lambda: Implicit(()), "part"),
        (lambda: RoundCone([0, 0, 0], [0, 0, 1], -1, -1), "r_A"),
        (lambda: RoundBox([0, 0, 0], [0.1] * 3, 0.06), "radius"),
        (lambda: Ellipsoid([0, 0, np.nan], [1, 1, 1]), "finite"),
        (lambda: ball(spacing=1e-5), "spacing"),
        (lambda: ball(spacing=-1.0), "spacing"),
    ):
        with pytest.raises(InvalidInput, match=words):
            make()


def test_near_surface_is_exact_in_its_band_and_cut_off_outside():
    """A tetrahedron, far larger than the grid's cells, against planes."""
    x = np.array([[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
    f = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    grid = DistanceGrid.near_surface(Surface(x, f), 4e-3, 0.01)
    at = np.argwhere(grid.values < 0)
    p = grid.origin + 4e-3 * at
    slant = (0.1 - p.sum(axis=1)) / np.sqrt(3)
    depth = np.minimum(np.column_stack([p, slant]).min(axis=1), 0.01)
    np.testing.assert_allclose(grid.values[tuple(at.T)], -depth, atol=1e-12)
    assert grid.values.max() == 0.01
    whole = DistanceGrid.from_surface(Surface(x, f), 4e-3)
    np.testing.assert_array_equal(whole.values < 0, grid.values < 0)


def test_turned_axes_become_forward_and_up(sphere):
    """Of a body long in y and high in x; volume and orientation stay."""
    long = Surface(sphere.vertices * [2, 3, 1], sphere.triangles)
    turned = long.turned("-y", "x")
    size = np.ptp(long.vertices, axis=0)
    np.testing.assert_allclose(np.ptp(turned.vertices, axis=0), size[[1, 2, 0]])
    np.testing.assert_allclose(turned.vertices[:, 0], -long.vertices[:, 1])
    np.testing.assert_allclose(turned.vertices[:, 2], long.vertices[:, 0])
    assert turned.volume == pytest.approx(long.volume)
    with pytest.raises(UnknownName, match="axis"):
        long.turned("w", "z")
    with pytest.raises(InvalidInput, match="perpendicular"):
        long.turned("x", "-x")


def test_remeshing_refuses_triangles_that_turn_different_ways(sphere):
    f = sphere.triangles.copy()
    f[3] = f[3][::-1]
    with pytest.raises(InvalidInput, match="turn different ways"):
        _half_edges(Surface(sphere.vertices, f), 0.01)
