"""Voxel pictures: files are what they say; the lattice behind a result."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from drakebots import plot
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import Lattice, LatticeSpec, block
from drakebots.plots import plot_lattice
from drakebots.robots.voxels import Problem, Target, paper_gait
from drakebots.robots.voxels import plan as plan_reach
from drakebots.robots.voxels.gait import gait_motion
from drakebots.robots.voxels.model import ACTUATORS, MARKERS, VoxelRobot
from drakebots.view.lattice import actuators_of, lattice_of
from drakebots.view.lattice.record import lattice_of_nodes
from tests.helpers.scripts import is_picture, load_script

FIGURES = load_script("voxel_figures").FIGURES
plot_dissipation, plot_loss_table = load_script(
    "voxel_loss", "plot_dissipation", "plot_loss_table"
)
draw_nodes, plot_numbering = load_script("voxel_planes", "draw_nodes", "plot_numbering")
RECORDED, plot_recording, read_recording = load_script(
    "voxel_robot", "RECORDED", "plot_recording", "read_recording"
)

CENTRE = Control((4, 3, 3), 2)


@pytest.fixture(scope="module")
def plan():
    return plan_reach(Problem([Target("foot", "x", 5e-3), Target("FL", "z", 8e-3)]))


@pytest.mark.long
def test_quick_figures_by_the_script(tmp_path, capsys):
    script = load_script("voxel_figures")
    facts = script.main(["-o", str(tmp_path), "--quick"])
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        f"voxel_{name}.png" for name in FIGURES
    )
    assert all(is_picture(path) for path in tmp_path.iterdir())
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["fig6"]["slope"] == pytest.approx(0.998, abs=1e-3)
    assert printed["fig2"]["max_loss"][1][1] == pytest.approx(0.0461, abs=1e-4)
    assert facts["fig1"]["signs_right"] is True


def test_a_users_recording_is_drawn(tmp_path):
    """The gait at 2.3 mm, walked and turned: half ranges of 2.3 mm come back."""
    robot, turn = VoxelRobot(), np.radians(np.linspace(80, 130, 400))
    motion = gait_motion(paper_gait(2.3e-3).poses, 1.0, 1.0, 0.0)
    u = [motion(t) for t in np.linspace(1, 40, 400)]
    places = [MARKERS[name] for name in RECORDED]
    seen = robot.displacements(u, places)[..., :2]
    seen = seen + robot.pitch / 2 * np.array(places)[:, :2]
    c, s = np.cos(turn)[:, None], np.sin(turn)[:, None]
    x, y = seen[..., 0], seen[..., 1]
    seen = np.stack([c * x - s * y + 0.1 * turn[:, None], s * x + c * y], axis=-1)
    np.save(tmp_path / "marks.npy", 100 * seen)
    recording = read_recording(tmp_path / "marks.npy")
    assert np.allclose(recording.half_range, 2.3e-3, atol=2e-4)
    assert is_picture(plot_recording(recording, tmp_path / "fig7.png"))
    np.save(tmp_path / "mixed.npy", 100 * seen[:, [0, 2, 1, 3]])
    mixed = read_recording(tmp_path / "mixed.npy")
    assert recording.names == RECORDED and mixed.names == ("gb", "gr", "yb", "yr")
    np.save(tmp_path / "small.npy", seen)
    with pytest.raises(FileProblem, match="square"):
        read_recording(tmp_path / "small.npy")


def test_nodes_are_drawn_in_their_place():
    """In mm, with the values given and a scale that holds them."""
    lattice = block(2, 1, 2)
    axis = Figure().add_subplot(projection="3d")
    values = np.linspace(-3, 2, len(lattice.nodes))
    dots = draw_nodes(axis, lattice.positions, values)
    assert np.allclose(np.transpose(dots._offsets3d), 1e3 * lattice.positions)
    assert np.array_equal(dots.get_array(), values) and dots.get_clim() == (-3, 3)


def test_lattice_pictures(tmp_path):
    spec = LatticeSpec(block(4, 4, 4))
    assert is_picture(plot_lattice(spec, tmp_path / "a.png"))
    for bad in ("c.txt", "c"):
        with pytest.raises(InvalidInput, match="ends in"):
            plot_lattice(spec, tmp_path / bad)
        with pytest.raises(InvalidInput, match="ends in"):
            plot_numbering(tmp_path / bad)
    with pytest.raises(InvalidInput, match="ends in"):
        plot_loss_table([], tmp_path / "t.txt")
    with pytest.raises(InvalidInput, match="block"):
        plot_dissipation({}, None, tmp_path / "t.png")
    assert len(list(tmp_path.iterdir())) == 1


def test_plan_pictures(tmp_path, plan):
    assert is_picture(plot(plan, tmp_path / "plan.png"))
    spec = LatticeSpec(block(2, 2, 2))
    free = plan_reach(Problem([Target((1, 3, 4), "x", 5e-3)], spec))
    assert is_picture(plot(free, tmp_path / "lattice.png"))


def test_lattice_of_a_plan(plan):
    robot = VoxelRobot()
    lattice = lattice_of(plan)
    assert {tuple(v) for v in lattice.voxels} == {
        tuple(v) for v in robot.lattice.voxels
    }
    assert lattice.pitch == pytest.approx(robot.pitch)
    assert actuators_of(plan, lattice) == list(ACTUATORS)


def test_actuators_of_a_lattices_plan():
    actuators = [Control((2, 3, 1), 2), Control((1, 2, 1), 2)]
    target = Target((1, 3, 4), "x", 5e-3)
    spec = LatticeSpec(block(2, 2, 2))
    result = plan_reach(Problem([target], spec, actuators))
    assert actuators_of(result, lattice_of(result)) == actuators


def test_gaps_between_voxels_stay_gaps():
    """Nodes a strut's length apart that no voxel joins; a hole of two voxels."""
    corner = Lattice(np.array([(0, 0, 0), (1, 1, 0), (0, 1, 0)]), 0.05)
    holed = np.ones((4, 3, 3), int)
    holed[1:3, 1, 1] = 0
    for lattice in (corner, Lattice(np.argwhere(holed)), block(1, 1, 1)):
        found = lattice_of_nodes(lattice.positions)
        assert np.array_equal(
            np.unique(found.voxels, axis=0), np.unique(lattice.voxels, axis=0)
        )


@pytest.mark.parametrize(
    "nodes",
    [
        np.zeros((0, 3)),
        np.zeros((6, 3)),
        np.eye(6, 3) * np.nan,
        np.arange(30.0).reshape(10, 3) ** 1.5,
        block(2, 1, 1).positions[::-1],
        block(2, 1, 1).positions[1:],
        block(2, 1, 1).positions + 1e-2,
    ],
)
def test_other_points_are_no_lattice(nodes):
    with pytest.raises(InvalidInput, match="not a lattice"):
        lattice_of_nodes(nodes)
