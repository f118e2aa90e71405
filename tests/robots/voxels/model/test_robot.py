"""The paper's robot: golden numbers, its gait, the frame beside it, gait files."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.lattice.pom import (
    Control,
    PlanesOfMotion,
    agreement,
    frame_motion,
    inverse_kinematics,
    without_rigid_motion,
)
from drakebots.lattice.shape import Strut
from drakebots.robots.voxels import Gait, paper_gait, read_gait
from drakebots.robots.voxels.gait import NAMES, find_gait
from drakebots.robots.voxels.model import (
    ACTUATORS,
    FEET,
    FRONT,
    MARKERS,
    VoxelRobot,
)
from tests.helpers.scripts import load_script

TARGETS = load_script("voxel_robot").TARGETS
PAPER_TARGETS = {
    "FL": np.array([0, 1, 1, 1, 0, -1, -1, -1]),
    "FR": np.array([0, -1, -1, -1, 0, 1, 1, 1]),
    "BL y": np.array([1, 1, 0, -1, -1, -1, 0, 1]),
    "BR x": np.array([-1, -1, 0, 1, 1, 1, 0, -1]),
}
"""The motions of the nodes in `TARGETS` in these poses, in strokes."""

ROBOT = VoxelRobot()
GAIT = paper_gait()
D = 5e-3
TEMPLATE = {  # Fig. 5, in strokes
    "BL": [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)],
    "BR": [(-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1)],
}
GOLDEN = [  # blue, yellow, red, green -> yr, gr, yb, gb in mm (x, y)
    ((5, -5, 0, 0), ((0, 5), (0, 0), (5, -5), (-5, 0))),
    ((0, 0, 5, -5), ((5, 0), (-5, 5), (0, 0), (0, -5))),
    ((5, -5, 5, -5), ((5, 5), (-5, 5), (5, -5), (-5, -5))),
    ((-5, 5, 5, -5), ((5, -5), (-5, 5), (-5, 5), (5, -5))),
]


def motions(robot, u, named):
    """Displacements of named nodes (T, 3) [m]."""
    moved = robot.displacements(u, tuple(named.values()))
    return dict(zip(named, moved.transpose(1, 0, 2)))


@pytest.mark.parametrize(("u", "wanted"), GOLDEN)
@pytest.mark.parametrize("ideality", [1.0, 0.8])
def test_golden_markers(u, wanted, ideality):
    markers = motions(VoxelRobot(ideality=ideality), np.array(u) * 1e-3, MARKERS)
    for name, (x, y) in zip(("yr", "gr", "yb", "gb"), wanted):
        expected = ideality * 1e-3 * np.array([[x, y, 0]])
        assert np.allclose(markers[name], expected, atol=1e-15), name


def test_gait_template():
    feet = motions(ROBOT, GAIT.poses, FEET)
    for name, wanted in TEMPLATE.items():
        assert np.allclose(feet[name][:, :2], D * np.array(wanted), atol=1e-15)
        assert not feet[name][:, 2].any()
    blue, yellow, red, green = GAIT.poses.T
    assert np.array_equal(blue, -yellow) and np.array_equal(red, -green)
    lift = {
        name: ROBOT.displacements(GAIT.poses, [FRONT[name][1]])[:, 0, 2]
        for name in FRONT
    }
    assert np.allclose(lift["FL"], D * PAPER_TARGETS["FL"])
    assert np.allclose(lift["FR"], D * PAPER_TARGETS["FR"])
    assert (np.flatnonzero(lift["FL"] > 0) + 1).tolist() == [2, 3, 4]
    assert (np.flatnonzero(lift["FR"] > 0) + 1).tolist() == [6, 7, 8]


def test_back_feet_move_as_the_markers_above():
    feet, markers = (
        motions(ROBOT, GAIT.poses, FEET),
        motions(ROBOT, GAIT.poses, MARKERS),
    )
    assert np.array_equal(feet["BL"], markers["yr"])
    assert np.array_equal(feet["BR"], markers["gb"])


def test_inverse_kinematics_recovers_the_gait():
    values = D * np.transpose([PAPER_TARGETS[target.name] for target in TARGETS])
    found = inverse_kinematics(
        ROBOT.core, ACTUATORS, TARGETS, values, MARKERS.values(), stroke=ROBOT.stroke
    )
    assert np.abs(found.controls - GAIT.poses).max() < 1e-15
    assert not found.conflicts
    markers = np.stack(list(motions(ROBOT, GAIT.poses, MARKERS).values()), axis=1)
    assert np.allclose(found.effectors, markers, atol=1e-15)


def test_reaching_with_the_feet():
    targets = [Control(FEET[n], a, f"{n} {a}") for n, a in (("FL", "z"), ("BR", "x"))]
    asked = np.array([[0.01, 0.0], [0.0, -2e-3]])
    found = ROBOT.reach(targets, asked)
    assert np.abs(found.reached - asked).max() < 1e-15 and not found.conflicts
    again = ROBOT.displacements(found.controls, [w.node for w in targets])
    assert np.allclose(again[:, 0, 2], [0.01, 0]) and np.allclose(
        again[:, 1, 0], [0, -2e-3]
    )
    up = ROBOT.reach([Control(FEET["BR"], "z", "heel")], [1e-3])
    assert "z of 'heel' is missed by 0.001 m: no actuator" in up.conflicts[0].text
    far = ROBOT.reach(targets[:1], [[0.0], [0.02]])
    assert far.conflicts[0].kind == "stroke" and far.conflicts[0].pose == 1
    # The foot's height and its forward swing are one motion of one plane.
    both = [Control(FEET["FL"], "z", "up"), Control(FEET["FL"], "y", "swing")]
    assert (
        "it contradicts other targets"
        in ROBOT.reach(both, [0.01, -0.01]).conflicts[-1].text
    )


def test_front_feet_carry_their_lever():
    """Facts 2.7: node 5 mm, foot 10.3 mm, tip 15.6 mm by the frame."""
    u = np.array([0, 0, D, -D])
    nodes = [(3, 4, 1), (3, 5, 0), (3, 6, 1)]
    node, foot, tip = ROBOT.displacements(u, nodes)[0]
    assert np.allclose(node, [0, 0, D])
    assert np.allclose(foot, [-D, D, 2 * D]) and np.allclose(tip, [0, 0, 3 * D])
    true = frame_motion(ROBOT.lattice, ACTUATORS, u).displacement
    rows = [ROBOT.lattice.node(n) for n in nodes]
    assert true[rows[1], 2] == pytest.approx(10.3e-3, abs=5e-5)
    assert true[rows[2], 2] == pytest.approx(15.6e-3, abs=5e-5)
    assert np.degrees(true[rows[0], 3]) == pytest.approx(7.97, abs=0.02)


def test_front_voxels_stay_rigid():
    from drakebots.lattice.shape.mechanisms import rigidity_matrix

    assert np.abs(rigidity_matrix(ROBOT.lattice) @ ROBOT.J).max() < 1e-14


@pytest.mark.parametrize(("ratio", "slope"), [(42.43, 0.998), (27, 0.994), (18, 0.987)])
def test_templates_against_the_frame(ratio, slope):
    """Facts 2.9d: eight effectors in eight poses, by relative extension."""
    d = ROBOT.lattice.beam_length / ratio
    nodes = [(1, 3, 4), (1, 1, 4), (3, 1, 4), (3, 3, 4)]
    nodes += [(1, 3, 0), (3, 1, 0), (4, 3, 1), (3, 4, 1)]
    rows = [ROBOT.lattice.node(n) for n in nodes]
    core = [ROBOT.lattice.node(n) for n in ROBOT.core.nodes]
    wanted = ROBOT.displacements(GAIT.poses)
    actual = []
    for u, pose in zip(GAIT.poses, wanted):
        moved = frame_motion(ROBOT.lattice, ACTUATORS, u, Strut(d, d)).displacement
        moved = without_rigid_motion(ROBOT.lattice, moved[:, :3], pose, core)
        actual.append(moved[rows])
    found = agreement(wanted[:, rows], np.array(actual))
    assert found.slope == pytest.approx(slope, abs=6e-4)
    assert found.rms == pytest.approx(0.115e-3, abs=1e-5)
    assert found.max == pytest.approx(0.62e-3, abs=2e-5)


def test_the_board_s_c_code_is_the_kinematics(tmp_path):
    """Compiled by the system's compiler, both ways, to 1e-12."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    robot = VoxelRobot(ideality=0.83)
    targets = [Control(FEET[name], axis) for name, axis in (("BL", 0), ("BR", 1))]
    targets += [Control((4, 3, 1), 2), Control((3, 4, 1), 2)]
    source, library = tmp_path / "voxel.c", tmp_path / "voxel.so"
    source.write_text(robot.c_code(targets))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
    subprocess.run(
        [compiler, *flags, "-shared", "-fPIC", source, "-o", library], check=True
    )
    code, doubles = ctypes.CDLL(str(library)), ctypes.POINTER(ctypes.c_double)

    def run(name: str, given: np.ndarray, size: int) -> np.ndarray:
        out = np.full(size, np.nan)
        given = np.ascontiguousarray(given)
        getattr(code, name)(given.ctypes.data_as(doubles), out.ctypes.data_as(doubles))
        return out

    random = np.random.default_rng(4)
    for _ in range(20):
        u = random.uniform(-5e-3, 5e-3, 4)
        x = run("displacements", u, 3 * len(robot.lattice.nodes))
        assert np.abs(x - robot.displacements(u).ravel()).max() < 1e-12
        w = 1e-3 * random.uniform(-1, 1, len(targets))
        wanted = robot.reach(targets, w).controls[0]
        assert np.abs(run("controls", w, 4) - wanted).max() < 1e-12
    assert "controls" not in robot.c_code()


def test_lattice_and_bad_robots():
    assert len(ROBOT.lattice.voxels) == 10 and len(ROBOT.core.nodes) == 36
    assert ROBOT.pitch == pytest.approx(0.0762) and ROBOT.stroke == D
    for values in ({"pitch": 0.0}, {"stroke": -1.0}, {"ideality": 0.0}):
        with pytest.raises(InvalidInput):
            VoxelRobot(**values)
    with pytest.raises(InvalidInput, match="no node at"):
        ROBOT.displacements(GAIT.poses, [(0, 0, 0)])
    model = PlanesOfMotion(ROBOT.core, [Control((2, 1, 1), "z")])
    assert model.planes.all == ROBOT.core_model.planes.all


def test_gaits_by_name():
    assert np.array_equal(find_gait("backward").poses, find_gait("forward").poses[::-1])
    assert len(GAIT.poses) == 8 and paper_gait(2e-3).poses.max() == 2e-3
    with pytest.raises(UnknownName, match="forward"):
        find_gait("forwards")


def test_files_round_trip(tmp_path):
    GAIT.write(tmp_path / "walk.csv")
    again = read_gait(tmp_path / "walk.csv")
    assert again.name == "walk" and np.allclose(again.poses, GAIT.poses, atol=1e-15)
    order = "green [mm], red [m],blue[mm],yellow [um]\n\n-5,0.005,0,1000\n"
    (tmp_path / "mixed.csv").write_text(order)
    assert np.allclose(read_gait(tmp_path / "mixed.csv").poses, [[0, 1e-3, D, -D]])
    text = "unit: mm\nposes: [[5, -5, 0, 0], [0, 0, 5, -5]]\n"
    (tmp_path / "two.yaml").write_text(text)
    assert np.allclose(read_gait(tmp_path / "two.yaml").poses, GAIT.poses[[0, 2]])


BAD = {
    "over.csv": ("blue [mm],yellow,red,green\n1,0,0,0\n6,0,0,0\n", "pose 2 moves blue"),
    "name.csv": ("blue,yellow,red,gren\n0,0,0,0\n", "did you mean 'green'"),
    "twice.csv": ("blue,blue,red,green\n0,0,0,0\n", "two columns"),
    "missing.csv": ("blue,red,green\n0,0,0\n", "no column for yellow"),
    "short.csv": ("blue,yellow,red,green\n0,0,0\n", "line 2: 3 values for 4 columns"),
    "word.csv": ("blue,yellow,red,green\n0,0,x,0\n", "line 2, column red"),
    "nan.csv": ("blue,yellow,red,green\n0,0,nan,0\n", "finite number"),
    "unit.csv": ("blue [s],yellow,red,green\n0,0,0,0\n", "unit of length 's'"),
    "empty.csv": ("", "lines of numbers"),
    "head.csv": ("blue [mm,yellow,red,green\n0,0,0,0\n", "head"),
    "list.yaml": ("- 1\n", "needs `name: value`"),
    "row.yaml": ("poses: [[1, 2]]\n", "pose 1 must be"),
    "none.yaml": ("poses: []\n", "at least one pose"),
    "broken.yaml": ("poses: [[1,\n", "is not YAML"),
    "names.yaml": ("poses: [[1]]\nactuators: 3\n", "needs a list"),
    "kind.txt": ("", ".csv or .yaml or .yml or .nc"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, tmp_path):
    text, words = BAD[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(FileProblem, match=words) as caught:
        read_gait(tmp_path / name)
    assert "\n" not in str(caught.value) and name in str(caught.value)


def test_missing_file_and_stroke(tmp_path):
    with pytest.raises(FileProblem, match="cannot be read"):
        read_gait(tmp_path / "none.csv")
    GAIT.write(tmp_path / "walk.csv")
    with pytest.raises(FileProblem, match=r"pose 1 moves blue by 5 mm.*4 mm"):
        read_gait(tmp_path / "walk.csv", stroke=4e-3)
    with pytest.raises(InvalidInput, match="stroke must be"):
        Gait(GAIT.poses, stroke=0.0)


@settings(max_examples=40)
@given(st.text(max_size=80), st.sampled_from([".csv", ".yaml"]))
def test_any_text_gives_a_gait_or_one_line(tmp_path_factory, text, ending):
    path = tmp_path_factory.mktemp("gait") / f"any{ending}"
    path.write_text(text)
    try:
        assert read_gait(path).poses.shape[1] == len(NAMES)
    except FileProblem as problem:
        assert "\n" not in str(problem)
