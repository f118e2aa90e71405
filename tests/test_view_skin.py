"""A skinned run's page shows the skin, moves it, and says what its colours mean."""

from __future__ import annotations

import base64
import io
import json
import re
import zlib
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from pydrake.geometry import Meshcat, MeshcatParams
from pydrake.math import RotationMatrix
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import ConstantVectorSource

from drakebots import view_skin
from drakebots.browser import find_browser, run_browser
from drakebots.cli import main
from drakebots.errors import InvalidInput, UnknownName
from drakebots.fem.mesh import surface_triangles
from drakebots.fem.mesh_shapes import box_mesh, hollow_capsule
from drakebots.results import Result, provenance
from drakebots.view import record, serve, write_html
from drakebots.view_skin import record_skin
from drakebots.view_skin_colour import (
    colour_scale,
    linear_rgb,
    round_up,
    skin_values,
)
from drakebots.view_skin_live import SKIN, SkinView, SkinVisualizer, draw_scale
from drakebots.view_skin_page import legend
from drakebots.view_skin_stream import SkinStream, decode, drawn_surface, encode

UP = np.array([0.0, 0.0, 0.3])
LINK = """
<link name="{name}"><pose>0 0 0.3 0 0 0</pose>
  <inertial><mass>0.3</mass><inertia>
    <ixx>1e-3</ixx><iyy>1e-3</iyy><izz>1e-3</izz></inertia></inertial>
  <visual name="rod"><pose>0 0 {z} 0 0 0</pose><geometry><cylinder>
    <radius>0.025</radius><length>0.18</length></cylinder></geometry>
    <material><diffuse>0.05 0.1 0.9 1</diffuse></material></visual></link>"""
LEG = f"""<sdf version="1.9"><model name="rods">
{LINK.format(name="thigh", z=0.1)}{LINK.format(name="shin", z=-0.1)}
<joint name="hip" type="fixed"><parent>world</parent><child>thigh</child></joint>
<joint name="knee" type="revolute"><parent>thigh</parent><child>shin</child>
<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


def bent(x, angle, width=0.12):
    """What is below z = 0 turned about y, smoothly over a width."""
    share = np.clip((width / 2 - x[:, 2]) / width, 0, 1)
    turn = angle * share**2 * (3 - 2 * share)
    c, s = np.cos(turn), np.sin(turn)
    return np.stack(
        [c * x[:, 0] + s * x[:, 2], x[:, 1], c * x[:, 2] - s * x[:, 0]], axis=1
    )


def knee(time):
    return 0.9 * np.sin(np.pi * time)


def skinned(folder, vertices, frames, seconds):
    """A run made by rule: a bending capsule on two rods, stress in the fold."""
    sdf = folder / "rods.sdf"
    sdf.write_text(LEG)
    mesh = hollow_capsule(vertices)
    rest = mesh.vertices
    skin_time = np.linspace(0, seconds, frames)
    time = np.linspace(0, seconds, 4 * frames + 1)
    noise = np.random.default_rng(1).normal(0, 2e-5, (frames, *rest.shape))
    places = np.stack([bent(rest, knee(t)) for t in skin_time]) + UP + noise
    fold = np.exp(-((rest[:, 2] / 0.05) ** 2)) * (1 + rest[:, 0] / 0.1)
    m, one, pa = {"units": "m"}, {"units": "1"}, {"units": "Pa"}
    s = {"units": "s"}
    data = xr.Dataset(
        {
            "position": (
                ("time", "position_name"),
                knee(time)[:, None],
                {"units": "rad"},
            ),
            "skin_position": (
                ("skin_time", "vertex", "axis"),
                places.astype(np.float32),
                m,
            ),
            "skin_stress": (
                ("skin_time", "vertex"),
                4e4 * np.abs(np.outer(knee(skin_time), fold)),
                pa,
            ),
            "skin_triangle": (("triangle", "corner"), surface_triangles(mesh), one),
            "skin_rest": (("vertex", "axis"), rest + UP, m),
        },
        {
            "time": ("time", time, s),
            "skin_time": ("skin_time", skin_time, s),
            "position_name": ["rods_knee"],
        },
    )
    return Result(
        kind="simulation",
        model="rods",
        verdict="success",
        message="",
        data=data,
        residuals={},
        timings={},
        metrics={},
        provenance=provenance(sdf, {}),
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return skinned(tmp_path_factory.mktemp("skin"), 700, 21, 1.0)


@pytest.fixture(scope="module")
def scene(result):
    return record(result)


@pytest.fixture(scope="module")
def page(scene):
    return scene.html()


# --- the stream -------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 7), st.floats(-6, 3), st.integers(0, 999))
def test_stream_returns_motion_to_half_a_step(frames, vertices, power, seed):
    """Positions to half a step of 1/65535 of the extent, colours to 1/510."""
    rng = np.random.default_rng(seed)
    x = 10.0**power * rng.normal(size=(frames, vertices, 3))
    share = rng.uniform(size=(frames, vertices))
    stream = encode(x, share)
    places, tones = decode(stream)
    extent = np.ptp(x, axis=(0, 1)).max()
    assert np.abs(places - x).max() <= 0.5001 * extent / 65535 + 1e-15
    assert np.abs(tones - share).max() <= 0.5001 / 255


def test_surface_leaves_inner_wall_out():
    """Of a hollow capsule only the outer wall; a box whole."""
    mesh = hollow_capsule(700)
    used, triangles = drawn_surface(mesh.vertices, surface_triangles(mesh))
    outer = len(mesh.vertices) // 2  # wall_mesh puts the outer wall first
    assert used.tolist() == list(range(outer))
    assert len(triangles) == 2 * outer - 4  # Euler, of a sphere
    box = box_mesh((1, 1, 1), (2, 2, 2))
    assert len(drawn_surface(box.vertices, surface_triangles(box))[1]) == 48


def test_bad_streams():
    """Shapes that differ, NaN, a corner that is no vertex."""
    x = np.zeros((2, 3, 3))
    with pytest.raises(InvalidInput, match="colours"):
        encode(x, np.zeros((2, 4)))
    with pytest.raises(InvalidInput, match="finite"):
        encode(x * np.nan, np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match=r"needs \(T, V, 3\)"):
        encode(x[..., :2], np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="not among the 3"):
        drawn_surface(x[0], np.array([[0, 1, 3]]))


# --- colours ----------------------------------------------------------------


def test_scale_has_round_top_and_right_numbers():
    """Ticks from 0 to a round top in the unit of its size; what is above is told."""
    values = np.append(np.linspace(0, 43e3, 1000), 9e4)
    scale = colour_scale("stress", values)
    assert (scale.top, scale.unit, scale.largest) == (5e4, "kPa", 9e4)
    assert scale.ticks == pytest.approx((0, 10, 20, 30, 40, 50))
    assert scale.label == "von Mises stress [kPa]"
    assert "largest 90 kPa" in scale.note
    text = legend(scale)
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


# --- the page ---------------------------------------------------------------


def test_page_is_self_contained(scene, tmp_path):
    """One file with the skin's stream and the scale in it, nothing from elsewhere."""
    text = write_html(scene, tmp_path / "run.html").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]
    assert not re.findall(r'<script[^>]+src="http', text)
    assert "von Mises stress [kPa]" in text
    assert 'id="skin-stream"' in text
    assert scene.meshcat.HasPath(SKIN)


def test_page_carries_the_drawn_vertices(scene, page, result):
    """The stream in the page is the outer wall's motion."""
    text = re.search(r'id="skin-stream" type="text/plain">([^<]+)<', page).group(1)
    about = json.loads(re.search(r"const about = (\{.*\});", page).group(1))
    stream = SkinStream(
        len(about["times"]), about["vertices"], about["origin"], about["step"], text
    )
    places, _ = decode(stream)
    wanted = result.data.skin_position.values[:, scene.view.vertices]
    assert np.abs(places - wanted).max() < about["step"]
    assert about["times"] == pytest.approx(result.data.skin_time.values.tolist())


needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium on this machine"
)

PROBE = """<script>
setTimeout(function () {
  const skin = window.drakebots_skin, animator = viewer.animator;
  skin.find();
  animator.pause();
  const scene = viewer.scene_tree.find(["drake"]).object;
  const shin = viewer.scene_tree.find(
    ["drake", "visualizer", "rods", "shin"]).object;
  const seen = AT.map((t) => {
    animator.seek(t);
    viewer.render();
    const picture = viewer.renderer.domElement.toDataURL("image/png");
    return {places: Array.from(skin.place.array),
            colours: Array.from(skin.colour.array.slice(0, 60)),
            knee: 2 * Math.atan2(shin.quaternion.y, shin.quaternion.w),
            note: document.getElementById("skin-time").textContent, picture};
  });
  const node = document.createElement("pre");
  node.textContent = "PROBE " + JSON.stringify(seen) + " END";
  document.body.appendChild(node);
}, 800);
</script></body>"""


def probe(page, times, folder):
    """What the browser has at some times of the animation."""
    script = PROBE.replace("AT", json.dumps(times), 1)
    head, _, tail = page.rpartition("</body>")
    path = folder / "probe.html"
    path.write_text(head + script + tail)
    dom = run_browser(
        path, "--window-size=320,240", "--virtual-time-budget=1500", "--dump-dom"
    )
    match = re.search(r"PROBE (\[.*?\]) END", dom, re.S)
    assert match, "the probe wrote nothing"
    seen = json.loads(match.group(1))
    for one in seen:
        one["places"] = np.reshape(one["places"], (-1, 3))
        image = base64.b64decode(one["picture"].split(",")[1])
        one["pixels"] = matplotlib.image.imread(io.BytesIO(image))[..., :3]
    return seen


@needs_browser
def test_browser_plays_skin_and_skeleton_together(scene, page, result, tmp_path):
    """In headless Chromium: vertices as in the result at a frame and between two.

    The skeleton has the knee's angle of the same time, the picture changes, the
    blue rods are seen through the skin, and the fold's colour comes in.
    """
    data = result.data
    seen = probe(page, [0.0, 0.5, 0.525], tmp_path)
    shown = data.skin_position.values[:, scene.view.vertices].astype(float)
    step = np.ptp(shown, axis=(0, 1)).max() / 65535
    for got, wanted in zip(seen, (shown[0], shown[10], (shown[10] + shown[11]) / 2)):
        assert np.abs(got["places"] - wanted).max() < step
    assert seen[1]["knee"] == pytest.approx(knee(0.5), abs=2e-3)
    assert [s["note"] for s in seen[:2]] == ["t = 0.00 s", "t = 0.50 s"]
    tone = np.rint(255 * scene.scale_shown.fraction(data.skin_stress.values[10])) / 255
    colours = linear_rgb(scene.scale_shown.rgb(tone * scene.scale_shown.top))
    wanted = colours[scene.view.vertices].ravel()[:60]
    assert seen[1]["colours"] == pytest.approx(wanted, abs=1e-3)
    before, after = seen[0]["pixels"], seen[1]["pixels"]
    assert (np.abs(before - after).max(axis=-1) > 0.1).mean() > 0.02
    for pixels in (before, after):
        blue = pixels[..., 2] - pixels[..., 0] > 0.05
        assert blue.sum() > 50
    red = after[..., 0] - after[..., 2]
    assert (red > 0.25).sum() > (before[..., 0] - before[..., 2] > 0.25).sum() + 50


@needs_browser
@pytest.mark.parametrize("level", [0, 1, 9])
def test_browser_inflates_every_kind_of_block(page, level, tmp_path, result, scene):
    """Stored blocks, fixed and dynamic codes: the page reads all that zlib writes."""
    text = re.search(r'id="skin-stream" type="text/plain">([^<]+)<', page).group(1)
    raw = zlib.decompress(base64.b64decode(text))
    # The fixed code by its strategy; level 0 stores.
    kind = zlib.Z_FIXED if level == 1 else zlib.Z_DEFAULT_STRATEGY
    packer = zlib.compressobj(level, strategy=kind)
    packed = packer.compress(raw) + packer.flush()
    other = page.replace(text, base64.b64encode(packed).decode())
    (seen,) = probe(other, [1.0], tmp_path)
    wanted = result.data.skin_position.values[-1, scene.view.vertices]
    assert np.abs(seen["places"] - wanted).max() < 2e-5


def test_page_of_14000_vertices_is_small_enough(tmp_path):
    """5 s at 30 frames a second of a skin of 14000 vertices: below 20 MB."""
    run = skinned(tmp_path, 14000, 150, 5.0)
    assert run.data.sizes["vertex"] > 13900
    page = record_skin(run).html()
    about = json.loads(re.search(r"const about = (\{.*\});", page).group(1))
    assert len(about["times"]) == 150  # none was left out for it
    assert len(page.encode()) < 20e6


def test_frames_are_thinned_until_the_page_fits(scene, page, monkeypatch):
    """Fewer frames of the skin, first and last kept; an error when two do not fit."""
    text = re.search(r'id="skin-stream" type="text/plain">([^<]+)<', page).group(1)
    monkeypatch.setattr(view_skin, "MAX_BYTES", len(page) - len(text) // 3)
    smaller = scene.html()
    about = json.loads(re.search(r"const about = (\{.*\});", smaller).group(1))
    assert len(smaller) <= view_skin.MAX_BYTES
    assert 2 <= len(about["times"]) < 21
    assert about["times"][0] == 0 and about["times"][-1] == pytest.approx(1.0)
    monkeypatch.setattr(view_skin, "MAX_BYTES", 1000)
    with pytest.raises(InvalidInput, match="coarser"):
        scene.html()


# --- live -------------------------------------------------------------------


def test_live_skin_is_drawn_by_a_diagram():
    """A system draws vertices it is given; the scale stands in the scene."""
    mesh = box_mesh((0.1, 0.1, 0.2), (2, 2, 4))
    meshcat = Meshcat(MeshcatParams(show_stats_plot=False))
    values = np.linspace(0, 2e3, len(mesh.vertices))
    view = SkinView(
        meshcat, mesh.vertices, surface_triangles(mesh), colour_scale("stress", values)
    )
    builder = DiagramBuilder()
    shown = builder.AddSystem(SkinVisualizer(view, period=0.1))
    moved = builder.AddSystem(ConstantVectorSource((mesh.vertices + 1).ravel()))
    stress = builder.AddSystem(ConstantVectorSource(values))
    builder.Connect(moved.get_output_port(), shown.GetInputPort("vertices"))
    builder.Connect(stress.get_output_port(), shown.GetInputPort("values"))
    simulator = Simulator(builder.Build())
    before = meshcat.StaticHtml()
    simulator.AdvanceTo(0.05)
    assert meshcat.HasPath(SKIN)
    assert meshcat.StaticHtml() != before


def test_served_scene_plays(result):
    """The skin is drawn anew at each moment, the scale stands beside it."""
    scene = record(result, colour="displacement")
    drawn = []
    scene.view.show = lambda x, values: drawn.append(x)
    serve(scene, seconds=0.4)
    assert scene.meshcat.HasPath("/skin_scale")
    assert len({float(x[0, 0]) for x in drawn}) > 1
    draw_scale(scene, scene.scale_shown, path="/other")
    assert scene.meshcat.HasPath("/other")


def test_bad_live_input():
    """Vertices of another mesh, NaN, an opacity or period that is none."""
    mesh = box_mesh((1, 1, 1), (1, 1, 1))
    triangles, scale = surface_triangles(mesh), colour_scale("stress", np.ones(2))
    meshcat = Meshcat(MeshcatParams(show_stats_plot=False))
    view = SkinView(meshcat, mesh.vertices, triangles, scale)
    with pytest.raises(InvalidInput, match="8 vertices"):
        view.show(mesh.vertices[:5], np.zeros(5))
    with pytest.raises(InvalidInput, match="finite"):
        view.show(mesh.vertices * np.nan, np.zeros(8))
    with pytest.raises(InvalidInput, match="opacity"):
        SkinView(meshcat, mesh.vertices, triangles, scale, opacity=2.0)
    with pytest.raises(InvalidInput, match="period"):
        SkinVisualizer(view, period=0.0)


# --- bad requests -----------------------------------------------------------


def test_bad_requests(result):
    """No skin, no motion, a speed or opacity that is none, another model."""
    for name in ("skin_rest", "skin_triangle", "position"):
        with pytest.raises(InvalidInput, match=name):
            record_skin(replace(result, data=result.data.drop_vars(name)))
    with pytest.raises(InvalidInput, match="no 'skin_position'"):
        record_skin(replace(result, data=result.data.drop_vars("skin_position")))
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
    assert main(["view", str(run), "-o", str(out), "--colour", "displacement"]) == 0
    assert "displacement from rest shape [mm]" in out.read_text()
    assert main(["view", "brick", "--html", str(out), "--colour", "stress"]) == 2
    assert "--colour" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="only a result with a skin"):
        data = result.data.drop_vars("skin_position")
        record(replace(result, data=data), colour="stress")
