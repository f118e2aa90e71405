"""Skinned robots loaded, attached, started away from rest, and refused."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import DrakebotsError, ModelProblem, NoSolution
from drakebots.fem import equilibrium
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, write_mesh
from drakebots.fem.solver import Prescribed
from drakebots.model import package_root
from drakebots.skin.coupled import Servo, glue_points, rigid_fit
from drakebots.skin.file import (
    GlueRadius,
    SkinDescription,
    attach,
    load_skinned,
    rest_positions,
    write_skin,
)
from drakebots.skin.file.description import Patches
from tests.helpers.skinned_leg import Leg, skin_model, stepper

FOLDER = package_root() / "skinned_leg"


@pytest.fixture(scope="module")
def robot():
    return load_skinned("skinned_leg")


@pytest.fixture
def leg(tmp_path):
    """The leg's files in a folder of their own."""
    for name in ("sdf", "skin.yaml", "vtu", "drakebots.yaml"):
        shutil.copy(FOLDER / f"skinned_leg.{name}", tmp_path / f"leg.{name}")
    skin = (tmp_path / "leg.skin.yaml").read_text()
    (tmp_path / "leg.skin.yaml").write_text(skin.replace("skinned_leg.vtu", "leg.vtu"))
    return tmp_path / "leg.sdf"


def test_the_leg(robot):
    report = robot.report()
    assert report["joints"] == 2 and robot.joints == ("hip", "knee")
    assert report["skin_vertices"] == len(robot.mesh.vertices) == 2210
    assert report["glue_vertices"] == len(robot.glue) == 192
    assert np.allclose(robot.effort_limits, 1.96)
    assert report["mass_kg"] == pytest.approx(0.315 + robot.fem.node_mass.sum())
    # Volume of a tube and a half sphere of 4 mm wall, polygons within 3 %.
    R, t, L = 0.033, 0.004, 0.167
    volume = np.pi * (R**2 - (R - t) ** 2) * L + 2 / 3 * np.pi * (R**3 - (R - t) ** 3)
    assert robot.mesh.volumes.sum() == pytest.approx(volume, rel=0.03)
    assert robot.mesh.volumes.min() > 0
    # The skin lies about the skeleton at rest, its sole on the ground.
    assert robot.mesh.vertices[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    gap = robot.stepper(5e-3).glue_gap(robot.stepper(5e-3).start())
    assert gap == 0.0
    assert set(robot.mesh.regions) == {0, 1}


def test_by_name_or_path(leg):
    assert load_skinned("skinned-leg").model.name == "skinned_leg"
    assert load_skinned(leg).model.name == "leg"
    with pytest.raises(ModelProblem, match="attach"):
        load_skinned("brick")


def test_rest_pose_of_some_joints(robot):
    q = rest_positions(robot.plant, {"knee": 0.3})
    assert np.allclose(q, [0, 0.3])
    with pytest.raises(DrakebotsError, match="did you mean 'knee'"):
        rest_positions(robot.plant, {"knne": 0.3})


def test_p2_regions_glue_their_midsides(robot):
    two = load_skinned(robot.model, replace(robot.skin, second_order=(0, 1)))
    assert len(two.fem.rest) > len(two.mesh.vertices)
    assert len(two.glue) > len(robot.glue)
    assert two.report()["glue_vertices"] == robot.report()["glue_vertices"]


# --- start ------------------------------------------------------------------


def test_a_start_far_from_rest_is_an_equilibrium():
    leg, model = Leg(), skin_model()
    run = stepper(leg, model)
    q = np.array([0.4, 0.7])
    state = run.start(q)
    assert np.array_equal(state.q, q)
    run.pose(q, np.zeros(2))
    held, _ = glue_points(leg.plant, run.context, run.glue)
    assert np.allclose(state.skin.positions[run.glue.vertices], held, atol=1e-14)
    exact = equilibrium(
        model, Prescribed(run.glue.vertices, held), start=state.skin.positions
    )
    assert exact.converged
    off = np.abs(exact.positions - state.skin.positions).max()
    assert off < 1e-4 * 0.2
    # And so nothing jumps: with joints held, the skin stays.
    held = run.step(state, servo=Servo(1e6, 1e3, state.q))
    assert np.abs(held.state.skin.velocities).max() < 0.02


def test_a_rigid_move_strains_nothing():
    model = skin_model()
    free = Leg("free")
    run = stepper(free, model)
    home = run.start()
    q = home.q.copy()
    turn = np.array([0.2, -0.5, 0.3, 0.8])
    q[:4] = turn / np.linalg.norm(turn)
    q[4:7] += [0.5, -1.0, 2.0]
    x = run.start(q).skin.positions
    R, p = rigid_fit(model.rest, x)
    assert np.allclose(model.rest @ R.T + p, x, atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)
    result = run.step(run.start(q))
    assert result.smallest_ratio == pytest.approx(1.0, abs=1e-9)


def test_a_start_that_cannot_be_fails_clearly():
    leg, model = Leg(), skin_model()
    run = stepper(leg, model)
    with pytest.raises(NoSolution, match="nearer to the rest pose") as caught:
        run.start(np.array([0.0, 3.1]))
    assert "\n" not in str(caught.value)


# --- attach -----------------------------------------------------------------


def test_attach_and_load_again(leg, tmp_path):
    found = attach(leg, tmp_path / "leg.vtu", GlueRadius(0.005))
    report = found.report()
    assert report["glue_by_link"] == {"thigh": 96, "shin": 96}
    assert 3 < report["plate_bending_factor"] < 15
    assert report["wall_m"] == pytest.approx(0.004, rel=0.05)
    below = tmp_path / "skins"
    below.mkdir()
    out = below / "other.skin.yaml"
    write_skin(out, found.description_for(out))
    assert "../leg.vtu" in out.read_text()
    again = load_skinned(leg, out)
    assert np.array_equal(again.glue.vertices, found.robot.glue.vertices)


def refused(call, *said):
    with pytest.raises(DrakebotsError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in said:
        assert word in message, message


@pytest.mark.long
def test_meshes_that_cannot_be(leg, tmp_path, robot):
    mesh, path = robot.mesh, tmp_path / "bad.vtu"
    glue = GlueRadius(0.005)

    def of(vertices=mesh.vertices, tets=mesh.tets, glue=glue):
        write_mesh(path, _unchecked(vertices, tets))
        return lambda: attach(leg, path, glue)

    flat = mesh.tets.copy()
    flat[7, 1] = flat[7, 0]
    refused(of(tets=flat), "bad.vtu", "tet 7")
    lost = mesh.vertices.copy()
    lost[5, 1] = np.nan
    refused(of(vertices=lost), "vertex 5", "finite")
    refused(of(vertices=mesh.vertices * 1e3), "seems to be in mm", "--units mm")
    refused(
        of(vertices=mesh.vertices + np.array([1.0, 0, 0])),
        "no vertex within",
        "rest pose",
    )
    refused(of(glue=GlueRadius(1e-4)), "larger radius")
    refused(of(glue=GlueRadius(0.03, "refuse")), "two links")
    refused(lambda: attach(leg, tmp_path / "none.vtu", glue), "none.vtu")
    refused(lambda: attach(tmp_path / "no.urdf", path, glue), "no.urdf")
    far = mesh.vertices * 0.5 + [0.0, 0.0, 2.0]
    two = np.concatenate([mesh.vertices, far])
    both = np.concatenate([mesh.tets, mesh.tets + len(mesh.vertices)])
    refused(of(vertices=two, tets=both), "piece", "touches no link")
    # Turned-over tets are mended, with a note.
    turned = mesh.tets.copy()
    turned[:10] = turned[:10][:, [0, 2, 1, 3]]
    found = of(tets=turned)()
    assert "10 inverted tets" in found.robot.report()["mesh"][0]


def _unchecked(vertices, tets):
    mesh = object.__new__(TetMesh)
    for name, value in (
        ("vertices", vertices),
        ("tets", tets),
        ("region", np.zeros(len(tets), int)),
    ):
        object.__setattr__(mesh, name, value)
    return mesh


@pytest.mark.long
def test_skins_that_cannot_be(robot):
    def of(**changes):
        return lambda: load_skinned(robot.model, replace(robot.skin, **changes))

    refused(of(glue={"toe": (1,)}), "toe")
    refused(of(glue={"thigh": (99999,)}), "99999")
    refused(of(glue={"thigh": (5,), "shin": (5,)}), "two links")
    refused(of(glue={"thigh": ()}), "no vertices")
    refused(of(regions={9: Material()}), "9")
    refused(of(second_order=(9,)), "9")
    refused(of(joints={"elbow": 0.1}), "elbow")
    refused(of(mesh="none.vtu"), "none.vtu")
    refused(of(mesh="skinned_leg.sdf"), "the ending .vtk")
    refused(of(patches=(Patches("toe", "claw", [[0, 0, 0]]),)), "claw")


def test_a_skeleton_without_collision_geometry(tmp_path, robot):
    text = (FOLDER / "skinned_leg.sdf").read_text()
    bare = re.sub("<collision.*?</collision>", "", text, flags=re.DOTALL)
    (tmp_path / "bare.sdf").write_text(bare)
    skin = SkinDescription(str(FOLDER / "skinned_leg.vtu"), GlueRadius(0.005))
    refused(lambda: load_skinned(tmp_path / "bare.sdf", skin), "collision geometry")


def test_a_dt_at_which_the_frame_fails(robot):
    """A failed result keeps the state; a smaller dt passes."""

    def kick(dt):
        run = robot.stepper(dt, effort_limits=np.full(2, np.inf))
        state = run.start()
        return state, run.step(state, [0.0, 20.0])

    state, result = kick(0.05)
    assert not result.converged and result.state is state
    assert "smaller dt" in result.message and "\n" not in result.message
    assert kick(1e-3)[1].converged
