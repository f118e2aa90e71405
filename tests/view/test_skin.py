"""A skinned run's scene: its stream, its colours, live drawing, bad requests."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.geometry import Meshcat, MeshcatParams
from pydrake.math import RotationMatrix

from drakebots import record
from drakebots.cli import main
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.fem.mesh import box_mesh, surface_triangles
from drakebots.view import serve
from drakebots.view.page import linear_rgb
from drakebots.view.skin import SkinView, colour_scale, record_skin
from drakebots.view.skin.live import (
    SKIN,
    draw_scale,
    drawn_surface,
    round_up,
    skin_values,
)
from drakebots.view.skin.record import SkinScene, encode
from tests.helpers.scripts import load_script
from tests.helpers.skin_runs import decode, skinned

hollow_capsule = load_script("capsule_mesh").hollow_capsule


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return skinned(tmp_path_factory.mktemp("skin"), 700, 21, 1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 7), st.floats(-6, 3), st.integers(0, 999))
def test_stream_returns_motion_to_half_a_step(frames, vertices, power, seed):
    """Positions to half a step of 1/65535 of the extent, colours to 1/510."""
    rng = np.random.default_rng(seed)
    x = 10.0**power * rng.normal(size=(frames, vertices, 3))
    share = rng.uniform(size=(frames, vertices))
    stream = encode(x, share)
    places, tones = decode(*stream)
    extent = np.ptp(x, axis=(0, 1)).max()
    assert np.abs(places - x).max() <= 0.5001 * extent / 65535 + 1e-15
    assert np.abs(tones - share).max() <= 0.5001 / 255


def test_surface_leaves_inner_wall_out():
    """Of a hollow capsule only the outer wall; a box whole."""
    mesh = hollow_capsule(700)
    used, triangles = drawn_surface(mesh.vertices, surface_triangles(mesh))
    outer = len(mesh.vertices) // 2  # prism_tets puts the outer wall first
    assert used.tolist() == list(range(outer))
    assert len(triangles) == 2 * outer - 4  # Euler, of a sphere
    box = box_mesh((1, 1, 1), (2, 2, 2))
    assert len(drawn_surface(box.vertices, surface_triangles(box))[1]) == 48


def test_bad_surface():
    """A corner that is no vertex."""
    with pytest.raises(InvalidInput, match="not all among the 3"):
        drawn_surface(np.zeros((3, 3)), np.array([[0, 1, 3]]))


def test_scale_has_round_top_and_right_numbers():
    """Ticks from 0 to a round top in the unit of its size; what is above is noted."""
    values = np.append(np.linspace(0, 43e3, 1000), 9e4)
    scale = colour_scale("stress", values)
    assert (scale.ticks[0], scale.top, scale.unit) == (0.0, 5e4, "kPa")
    assert scale.ticks == pytest.approx((0, 10, 20, 30, 40, 50))
    assert scale.label == "von Mises stress [kPa]"
    assert "largest 90 kPa" in scale.note
    text = scale.html()
    found = [float(n) for n in re.findall(r"<span>([\d.]+)</span>", text)]
    assert found == [0, 10, 20, 30, 40, 50]
    assert "von Mises stress [kPa]" in text and "largest 90 kPa" in text
    assert scale.fraction([0, 2.5e4, 9e4]).tolist() == [0, 0.5, 1]


def test_scale_units_and_zero():
    """Millimetres for a displacement; a skin at rest has a scale too."""
    scale = colour_scale("displacement", np.full(5, 0.0123))
    assert scale.label == "displacement from rest shape [mm]"
    assert scale.ticks[-1] == pytest.approx(15)
    assert scale.note == ""
    assert np.isfinite(colour_scale("stress", np.zeros(4)).rgb(np.zeros(4))).all()


@given(st.floats(1e-9, 1e12))
def test_round_up_is_just_above(value):
    """At least the value, and at most half as much again."""
    assert value * (1 - 1e-6) <= round_up(value) <= 1.501 * value


def test_linear_colours():
    """sRGB's curve at its ends, at its joint and in the middle (IEC 61966-2-1)."""
    got = linear_rgb([0.0, 0.04045, 0.5, 1.0])
    assert got == pytest.approx([0, 0.0031308, 0.2140411, 1], abs=1e-7)


def test_displacement_leaves_rigid_motion_out():
    """Zero for a skin that only moves; a stretch by a known field otherwise."""
    rest = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1.0)])
    turn = RotationMatrix.MakeZRotation(0.7).matrix()
    moved = (rest @ turn.T) + [3, 2, 1]
    longer = (rest * [1, 1, 1.1]) @ turn.T
    data = xr.Dataset(
        {
            "skin_rest": (("vertex", "axis"), rest),
            "skin_position": (("skin_time", "vertex", "axis"), [rest, moved, longer]),
        }
    )
    away = skin_values(data, "displacement")
    assert away[:2] == pytest.approx(np.zeros((2, 8)), abs=1e-12)
    assert away[2] == pytest.approx(np.full(8, 0.1))


def test_bad_colours(result):
    """An unknown one, one the result lacks, and values that are NaN."""
    with pytest.raises(UnknownName, match="stress"):
        record(result, colour="heat")
    bare = replace(result, data=result.data.drop_vars("skin_stress"))
    with pytest.raises(InvalidInput, match="skin_stress"):
        record(bare, colour="stress")
    with pytest.raises(InvalidInput, match="finite"):
        colour_scale("stress", np.array([1.0, np.nan]))


def test_live_skin_is_drawn_anew():
    """Each time with the vertices that it is given."""
    mesh = box_mesh((0.1, 0.1, 0.2), (2, 2, 4))
    meshcat = Meshcat(MeshcatParams(show_stats_plot=False))
    values = np.linspace(0, 2e3, len(mesh.vertices))
    view = SkinView(
        meshcat, mesh.vertices, surface_triangles(mesh), colour_scale("stress", values)
    )
    before = meshcat.StaticHtml()
    view.show(mesh.vertices + 1, values)
    assert meshcat.HasPath(SKIN)
    assert meshcat.StaticHtml() != before


def test_served_scene_plays(result):
    """The skin is drawn anew at each moment, the scale stands beside it."""
    scene = record(result, colour="displacement")
    drawn = []

    def show(x, values):
        drawn.append(float(x[0, 0]))
        if len(set(drawn)) > 2:
            raise KeyboardInterrupt

    scene.view.show = show
    serve(scene, seconds=60.0)
    assert scene.meshcat.HasPath("/skin_scale")
    assert len(set(drawn)) == 3
    draw_scale(scene, scene.view.scale, path="/other")
    assert scene.meshcat.HasPath("/other")


def test_bad_live_input():
    """Vertices of another mesh, NaN, an opacity that is none."""
    mesh = box_mesh((1, 1, 1), (1, 1, 1))
    triangles, scale = surface_triangles(mesh), colour_scale("stress", np.ones(2))
    meshcat = Meshcat(MeshcatParams(show_stats_plot=False))
    view = SkinView(meshcat, mesh.vertices, triangles, scale)
    with pytest.raises(InvalidInput, match="8x3 finite numbers"):
        view.show(mesh.vertices[:5], np.zeros(5))
    with pytest.raises(InvalidInput, match="finite"):
        view.show(mesh.vertices * np.nan, np.zeros(8))
    with pytest.raises(InvalidInput, match="opacity"):
        SkinView(meshcat, mesh.vertices, triangles, scale, opacity=2.0)


def test_bad_requests(result):
    """No skin, no motion, a speed or opacity that is none, another model."""
    for name in ("skin_rest", "skin_triangle", "position"):
        with pytest.raises(InvalidInput, match=name):
            record_skin(replace(result, data=result.data.drop_vars(name)))
    bare = replace(result, data=result.data.drop_vars("skin_position"))
    assert not isinstance(record_skin(bare), SkinScene)  # its skeleton alone
    with pytest.raises(InvalidInput, match="no motion"):
        record(replace(result, data=result.data.isel(skin_time=[0])))
    with pytest.raises(InvalidInput, match="slow"):
        record(result, slow=0.0)
    with pytest.raises(InvalidInput, match="opacity"):
        record_skin(result, opacity=float("nan"))
    other = result.data.assign_coords(position_name=["elbow"])
    with pytest.raises(InvalidInput, match="another model"):
        record(replace(result, data=other))


def test_colour_needs_a_skin(result, capsys, tmp_path):
    """From the command line: a page by colour; refused where there is no skin."""
    run, out = tmp_path / "run.nc", tmp_path / "run.html"
    result.save(run)
    assert main(["view", str(run), "--html", str(out), "--colour", "displacement"]) == 0
    assert "displacement from rest shape [mm]" in out.read_text()
    assert main(["view", "brick", "--html", str(out), "--colour", "stress"]) == 2
    assert "--colour" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="no skin to colour"):
        data = result.data.drop_vars("skin_position")
        record(replace(result, data=data), colour="stress")
