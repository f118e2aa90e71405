"""Voxel pages and recordings: what is drawn is the data."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import numpy as np
import pytest

from drakebots import record
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.lattice.shape import LatticeSpec, block
from drakebots.robots.voxels import Problem, Target, paper_gait
from drakebots.robots.voxels import plan as plan_reach
from drakebots.robots.voxels.model import ACTUATORS, VoxelRobot
from drakebots.view.lattice import record_nodes, show_lattice
from drakebots.view.lattice.page import (
    LATTICE,
    balls,
    lattice_stage,
    tubes,
)
from drakebots.view.lattice.record import LatticeBody
from drakebots.view.page import ColourScale


@pytest.fixture(scope="module")
def plan():
    return plan_reach(Problem([Target("foot", "x", 5e-3), Target("FL", "z", 8e-3)]))


def test_meshes_are_where_they_should_be():
    starts, ends = np.zeros((2, 3)), np.array([[0, 0, 2.0], [1, 1, 0]])
    corners, faces = tubes(starts, ends, 0.1, 6)
    assert np.allclose(corners.mean(axis=2), np.stack([starts, ends], axis=1))
    assert np.allclose(np.linalg.norm(corners[:, 0], axis=-1), 0.1)
    assert faces.shape == (24, 3) and faces.max() == corners[..., 0].size - 1
    for fine, triangles in ((True, 80), (False, 8)):
        corners, faces = balls(ends, 0.3, fine)
        assert faces.shape == (2 * triangles, 3)
        assert np.allclose(np.linalg.norm(corners - ends[:, None], axis=-1), 0.3)
        flat = corners.reshape(-1, 3)[faces[:triangles]] - ends[0]
        normals = np.cross(flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0])
        assert (np.einsum("fk,fk->f", normals, flat.mean(axis=1)) > 0).all()


def test_page_of_a_large_block_is_small(tmp_path):
    path = show_lattice(LatticeSpec(block(8, 8, 8)), tmp_path / "rest.html")
    assert 1e6 < path.stat().st_size < 6e6
    assert 'id="scale"' not in path.read_text()


def test_scale_and_colours():
    values = np.array([0.0, 2e-3])
    scale = ColourScale("displacement", 2e-3, "mm", 1e-3, "viridis")
    assert (scale.ticks[0], scale.ticks[-1]) == (0.0, 2.0)
    assert "<span>2</span>" in scale.html()
    assert scale.rgb(values).shape == (2, 3) and not np.allclose(*scale.rgb(values))
    assert "drawn x 5" in replace(scale, note="drawn x 5").html()
    assert "<script>" not in replace(scale, quantity="<script>").html()


def test_pages_refuse(tmp_path):
    spec = LatticeSpec(block(2, 1, 1))
    with pytest.raises(FileProblem):
        show_lattice(spec, tmp_path / "none" / "a.html")


def test_stage_holds_all(tmp_path):
    spec = LatticeSpec(block(2, 1, 1))
    stage = lattice_stage(spec)
    assert (stage.low < 0).all() and (stage.high > spec.lattice.positions.max(0)).all()
    for name in ("struts", "nodes"):
        assert stage.meshcat.HasPath(f"{LATTICE}/{name}")


def animations(page: str) -> int:
    """Pages hold the commands as base64; an animation's starts with its type."""
    found = re.findall(r"base64,([A-Za-z0-9+/=]+)", page)
    return sum(b"set_animation" in base64.b64decode(part) for part in found)


def test_recording_of_a_plan(tmp_path, plan):
    stage = record(plan)
    path = stage.save(tmp_path / "plan.html")
    assert animations(path.read_text()) == 1
    count = len(VoxelRobot().lattice.beams)
    assert stage.meshcat.HasPath(f"{LATTICE}/strut/{count - 1}")
    assert not stage.meshcat.HasPath(f"{LATTICE}/strut/{count}")
    assert stage.meshcat.HasPath(f"{LATTICE}/sleeve/3")


class Seen:
    """Stands in for Meshcat and keeps the last pose of everything."""

    def __init__(self):
        self.pose = {}

    def SetObject(self, path, shape, rgba):
        pass

    def SetTransform(self, path, pose, time):
        self.pose[path] = pose


def test_everything_moves_with_the_nodes():
    """Struts lie between their nodes; rods and sleeves overlap on one line."""
    robot, seen = VoxelRobot(), Seen()
    lattice = robot.lattice
    body = LatticeBody(seen, lattice, ACTUATORS, 1e-3)
    for u in paper_gait().poses:
        places = lattice.positions + robot.displacements(u)[0]
        body.show(places, 0.0)
        for i, (first, second) in enumerate(lattice.beams):
            pose = seen.pose[f"{LATTICE}/strut/{i}"]
            along = places[second] - places[first]
            along /= np.linalg.norm(along)
            assert np.allclose(pose.translation(), (places[first] + places[second]) / 2)
            assert np.allclose(pose.rotation().matrix()[:, 2], along, atol=1e-9)
        for i, actuator in enumerate(ACTUATORS):
            low, high = (
                places[lattice.node(n)] for n in (actuator.node, actuator.other)
            )
            sleeve, rod = (seen.pose[f"{LATTICE}/{n}/{i}"] for n in ("sleeve", "rod"))
            half = 0.325 * lattice.pitch
            gap = np.linalg.norm(sleeve.translation() - rod.translation())
            assert gap < 2 * half
            for pose, end in ((sleeve, low), (rod, high)):
                assert np.linalg.norm(pose.translation() - end) == pytest.approx(half)


def moving(plan, places, times):
    """The plan's result with other places of its nodes at other times."""
    nodes = ("time", "node", "axis"), places, {"units": "m"}
    data = plan.data[["node_position"]].drop_dims("time").assign(node_position=nodes)
    return replace(plan, data=data.assign_coords(time=("time", times, {"units": "s"})))


def test_recording_of_a_gait(plan):
    robot, times = VoxelRobot(), np.linspace(0, 4, 9)
    moved = robot.displacements(np.vstack([np.zeros(4), paper_gait().poses]))
    stage = record_nodes(moving(plan, robot.lattice.positions + moved, times))
    assert animations(stage.html()) == 1
    assert stage.meshcat.HasPath(f"{LATTICE}/strut/0")
    assert not stage.meshcat.HasPath(f"{LATTICE}/sleeve")


def test_recordings_refuse(plan):
    places = plan.data.node_position.values
    for bad in (
        moving(plan, places[:, 1:], [0.0, 1.0]),
        moving(plan, places * np.nan, [0.0, 1.0]),
        moving(plan, places[:1], [0.0]),
    ):
        with pytest.raises(InvalidInput):
            record(bad)
        with pytest.raises(InvalidInput):
            record_nodes(bad)
    for option in ("slow", "frames_per_second"):
        for bad in (-1.0, 0.0, np.nan):
            with pytest.raises(InvalidInput, match=option):
                record(plan, **{option: bad})
