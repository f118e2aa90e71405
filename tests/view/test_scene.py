"""Scenes of models as they come: without geometry, flat, with meshes that are none."""

from __future__ import annotations

import itertools
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from pydrake.geometry import Role, SceneGraph

from drakebots.formats import load
from drakebots.view import Stage, look_at_motion, make_scene
from drakebots.view import scene as module
from drakebots.view.motion import SIDE
from tests.helpers.hostile import hostile_robot
from tests.helpers.model_files import write
from tests.helpers.scripts import load_script

find_browser, run_browser = load_script(
    "robot_zoo.browser", "find_browser", "run_browser"
)

_INERTIAL = """<inertial><mass value="1"/><origin xyz="0 0 -0.1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
_LEG = f"""<robot name="leg"><link name="hip">{_INERTIAL}</link>
<link name="thigh">{_INERTIAL}</link><link name="shank">{_INERTIAL}</link>
<joint name="hip" type="revolute"><parent link="hip"/><child link="thigh"/>
  <origin xyz="0.1 0 0"/><axis xyz="0 1 0"/><limit effort="1" velocity="1"/></joint>
<joint name="knee" type="revolute"><parent link="thigh"/><child link="shank"/>
  <origin xyz="0 0 -0.3"/><axis xyz="0 1 0"/><limit effort="1" velocity="1"/></joint>
</robot>"""
_FEET = "feet:\n  toe: {body: shank, p: [0, 0, -0.25]}\n"


_SPHERE, _PLATE = '<sphere radius="0.1"/>', '<box size="1 1 1e-9"/>'


def _one_link(shape: str) -> str:
    geometry = f"<visual><geometry>{shape}</geometry></visual>" if shape else ""
    return f'<robot name="r"><link name="a">{_INERTIAL}{geometry}</link></robot>'


def test_a_model_without_geometry_is_drawn_as_sticks(tmp_path):
    write(tmp_path, _FEET, "leg.drakebots.yaml")
    scene = make_scene(load(write(tmp_path, _LEG, "leg.urdf")))
    # Three links from the hip at z = 0 to the foot at z = -0.55, and a little more.
    assert scene.low[2] == pytest.approx(-0.55, abs=0.03)
    assert scene.high[2] == pytest.approx(0.0, abs=0.03)
    assert scene.meshcat.HasPath("/drake/visualizer/leg/shank")
    inspector = scene.diagram.GetSubsystemByName("scene_graph").model_inspector()
    sticks = [
        inspector.GetShape(g)
        for g in inspector.GetAllGeometryIds(Role.kIllustration)
        if "stick" in inspector.GetName(g)
    ]
    lengths = sorted(stick.length() for stick in sticks)
    assert lengths == pytest.approx([0.1, 0.25, 0.3])


@pytest.mark.parametrize("shape", ["", _PLATE, _SPHERE])
def test_anything_has_an_extent(shape, tmp_path):
    scene = make_scene(load(write(tmp_path, _one_link(shape), "a.urdf")))
    assert np.all(scene.low < scene.high) and np.isfinite([scene.low, scene.high]).all()


def test_geometry_without_bounds_counts_by_its_origin(tmp_path, monkeypatch):
    """As Drake's ComputeObbInWorld raises for a mesh that it cannot read."""
    scene = make_scene(load(write(tmp_path, _one_link(_SPHERE), "a.urdf")))
    graph = scene.diagram.GetSubsystemByName("scene_graph")
    assert isinstance(graph, SceneGraph)
    output = graph.get_query_output_port().Eval(
        graph.GetMyContextFromRoot(scene.context)
    )

    class Query:
        def __getattr__(self, name):
            return getattr(output, name)

        def ComputeObbInWorld(self, geometry):
            raise RuntimeError("no such mesh")

    class Port:
        def Eval(self, context):
            return Query()

    class Graph:
        def get_query_output_port(self):
            return Port()

    low, high = module._bounds(Graph(), None, Role.kIllustration)
    assert np.allclose((low + high) / 2, 0) and np.all(low < high)


@pytest.mark.long
@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_names_are_text_in_the_browser(tmp_path):
    """The controls list the links by name; none becomes an element of the page."""
    scene = make_scene(load(hostile_robot(tmp_path)))
    page = scene.save(tmp_path / "page.html")
    dom = run_browser(page, "--virtual-time-budget=6000", "--dump-dom")
    assert "&lt;b id=evil&gt;" in dom
    assert 'id="evil"' not in dom and "<title>evil" not in dom


class _Camera:
    """Takes the place of Meshcat; keeps where its camera is."""

    def SetTransform(self, *placed):
        del placed

    SetProperty = SetTransform

    def SetCameraPose(self, camera, target):
        self.camera, self.target = np.array(camera), np.array(target)


@pytest.mark.parametrize("size", [[0.2, 0.3, 2.0], [2.0, 0.1, 0.1], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("direction", [(0.7, -0.9, 0.6), (0.0, -0.4, 0.9)])
def test_the_camera_sees_all_of_a_box_and_little_more(size, direction):
    """Its corners, projected with a field of view of 40 deg, fill a page of 3 : 2."""
    low, high = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]) + size
    camera = _Camera()
    Stage(camera, low, high, 1.0, np.zeros(3)).look_at_box(low, high, direction)
    corners = np.array(list(itertools.product(*zip(low, high))))
    _check_picture(camera, corners, direction)


_TOWER = """<robot name="tower"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><visual>
<geometry><box size="0.2 0.3 SIZE"/></geometry></visual></link></robot>"""


@pytest.mark.parametrize("height", [0.1, 3.0])
@pytest.mark.parametrize("way", [0.0, 5.0])
def test_the_camera_sees_all_of_a_motion_and_little_more(height, way, tmp_path):
    """A box that stands upright and leans over as it goes, as a falling biped does."""
    path = write(tmp_path, _TOWER.replace("SIZE", str(height)), "tower.urdf")
    scene = make_scene(load(path))
    lean, x = np.linspace(0, 1.2, 40), np.linspace(0, way, 40)
    up = np.zeros(40)
    q = np.stack([np.cos(lean / 2), up, np.sin(lean / 2), up, x, up, up], axis=1)
    camera = _Camera()
    look_at_motion(replace(scene, meshcat=camera, scale=1.0, ground=np.zeros(3)), q)
    corners = np.vstack([scene.corners(row) for row in (q[0], q[-1])])
    assert len(corners) == 16 and np.ptp(corners[:8, 2]) == pytest.approx(height)
    _check_picture(camera, corners, SIDE)


def _check_picture(camera, corners, direction):
    """Points fill a page of 3 : 2 at a field of view of 40 deg, in its middle."""
    back = camera.camera - camera.target
    back /= np.linalg.norm(back)
    assert np.allclose(back, direction / np.linalg.norm(direction))
    right = np.cross([0, 0, 1], back) / np.linalg.norm(np.cross([0, 0, 1], back))
    up = np.cross(back, right)
    corners = corners - camera.camera
    depth = -corners @ back
    y = corners @ up / depth / np.tan(np.radians(20.0))
    x = corners @ right / depth / np.tan(np.radians(20.0)) / 1.5
    assert 0.85 < max(abs(x).max(), abs(y).max()) < 1.0
    assert abs(x.max() + x.min()) < 0.1 and abs(y.max() + y.min()) < 0.1


def test_a_notebook_shows_the_page_in_a_frame(tmp_path):
    scene = make_scene(load(write(tmp_path, _one_link(_SPHERE), "a.urdf")))
    shown = scene._repr_html_()
    assert shown.startswith('<iframe srcdoc="') and shown.endswith("</iframe>")
    inside = shown.removeprefix('<iframe srcdoc="').partition('" style=')[0]
    assert '"' not in inside and "&lt;script" in inside
    assert unescape(inside) == scene.html()
