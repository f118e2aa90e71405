"""Runs of a skinned robot: what they hold, how they end, what moves them."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import DrakebotsError, InvalidInput, UnknownName
from drakebots.fem.assembly import von_mises
from drakebots.fem.material import Material
from drakebots.fem.mesh import box_mesh, write_cells
from drakebots.model import skin_path
from drakebots.results import load_result
from drakebots.skin import (
    SkinSimulation,
    TableMotion,
    read_motion_file,
    simulate_skinned,
)
from drakebots.skin import simulate as module
from drakebots.skin.file import (
    GlueRadius,
    Patches,
    SkinDescription,
    check_above_ground,
    load_skinned,
    write_skin,
)
from drakebots.skin.record import vertex_stress
from drakebots.skin.simulate import build_stepper, named_motion

SHORT = SkinSimulation(duration=0.1, motion="sine", amplitude=0.3, period=0.4)


@pytest.fixture(scope="module")
def robot():
    return load_skinned("skinned_leg")


@pytest.fixture(scope="module")
def result():
    return simulate_skinned(SHORT)


def test_a_skin_below_the_ground_is_refused(robot):
    """What the ground would cut: the skin, or a foot's contact points."""
    low = robot.mesh.vertices[:, 2].min()
    mesh = replace(robot.mesh, vertices=robot.mesh.vertices - [0, 0, low + 0.03])
    with pytest.raises(InvalidInput, match=r"skin starts 30\.0 mm below"):
        module.on_ground(SHORT, replace(robot, mesh=mesh))
    foot = Patches("F", "shin", np.array([[0.0, 0.0, -1.0]]))
    with pytest.raises(InvalidInput, match=r"foot F \(link shin\) starts"):
        check_above_ground(robot.mesh, robot.plant, robot.context, [foot])


def test_what_a_run_holds(result, robot, tmp_path):
    assert result.ok and result.metrics["system"] == "skinned"
    data = result.data
    n = len(robot.mesh.vertices)
    assert data.attrs["system"] == "skinned"
    assert data.sizes["time"] == 21 and data.sizes["skin_time"] == 6
    assert np.allclose(data.time, 5e-3 * np.arange(21))
    assert np.allclose(data.skin_time, 0.02 * np.arange(6))
    for name, shape in (
        ("position", (21, 2)),
        ("velocity", (21, 2)),
        ("torque", (21, 2)),
        ("com", (21, 3)),
        ("worst_volume_ratio", (21,)),
        ("skin_position", (6, n, 3)),
        ("skin_stress", (6, n)),
        ("skin_rest", (n, 3)),
    ):
        assert data[name].shape == shape, name
        assert "units" in data[name].attrs, name
    assert data.position.dims == ("time", "position_name")
    assert data.velocity.dims == ("time", "velocity_name")
    assert data.skin_triangle.values.max() < n
    assert [str(j) for j in data.joint.values] == ["hip", "knee"]
    assert 0 < float(data.worst_volume_ratio.min()) < 1
    assert load_result(result.save(tmp_path / "run.nc")) == result


def test_what_it_did(result):
    data = result.data
    assert np.abs(data.position.values).max() > 0.05
    assert np.abs(data.torque.values).max() <= 1.96
    assert result.residuals["glue gap [m]"] < 1e-12
    # Velocities are the differences of positions.
    moved = np.diff(data.position.values, axis=0) / 5e-3
    assert np.allclose(moved, data.velocity.values[1:], atol=1e-9)
    assert np.allclose(data.skin_position.values[0], data.skin_rest.values, atol=1e-7)


def test_the_ground_pushes_what_stands_on_it(result, robot):
    """The skin around the shin, whose sole begins on the ground, upwards."""
    force = result.data.ground_force
    assert [str(each) for each in force.body.values] == list(robot.glue.by_body())
    assert not force.sel(body="thigh").values.any()
    shin = force.sel(body="shin").values
    point = result.data.ground_point.sel(body="shin").values[shin[:, 2] > 0]
    assert shin[:, 2].max() > 0.01 and shin[:, 2].min() >= 0
    assert np.abs(point[:, 2]).max() < 5e-3 and np.abs(point).max() < 0.1


def test_vertex_stress_is_a_mean_of_tets(robot):
    fem = robot.fem
    A = np.diag([1.1, 0.95, 0.98])
    x = fem.rest @ A.T
    uniform = von_mises(fem, x)
    assert np.allclose(vertex_stress(fem, x), uniform[0], rtol=1e-9)
    bent = fem.rest * (1 + fem.rest[:, [2]])
    mean = vertex_stress(fem, bent)
    of = von_mises(fem, bent)
    for vertex in (0, 700, 2209):
        near = (robot.mesh.tets == vertex).any(axis=1)
        v = robot.mesh.volumes[near]
        assert mean[vertex] == pytest.approx((v @ of[near]) / v.sum())


@pytest.mark.long
def test_the_papers_modulus_saturates_the_servos():
    """1.96 N m cannot bend a skin of 90 MPa by 0.3 rad; it bends one of 0.8 MPa."""
    hold = TableMotion((0.0, 0.05), ((0.0, 0.0), (0.0, 0.3)))
    soft = SkinSimulation(
        duration=0.2, motion=hold, skin_period=0.2, collisions="links"
    )
    stiff = replace(soft, material={"youngs_modulus": 9e7})
    a, b = (simulate_skinned(p) for p in (soft, stiff))
    assert a.data.position.values[-1, 1] > 0.2
    assert a.metrics["saturated_share"] < 0.5
    assert a.metrics["sparse_solver"] in ("pardiso", "mumps", "scipy")
    assert abs(b.data.position.values[-1, 1]) < 0.02
    assert b.data.torque.values[-1, 1] == 1.96
    free = simulate_skinned(replace(stiff, unlimited=True, duration=0.06))
    assert free.metrics["largest_torque_N_m"] > 3


def test_collisions_ground_and_threads_are_options(monkeypatch):
    off = replace(
        SHORT,
        duration=0.02,
        collisions="none",
        ground=False,
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    robot = load_skinned("skinned_leg")
    stepper = module.build_stepper(off, robot)
    assert not stepper.collisions.paired and stepper.collisions.ground is None
    on = module.build_stepper(SHORT, robot)
    assert on.collisions.links is not None and on.collisions.itself is not None
    assert simulate_skinned(off).ok


def test_a_failed_frame_ends_the_run_and_keeps_what_was_reached(monkeypatch):
    # A servo without limit, towards a fold no mesh can follow, in long steps.
    problem = replace(
        SHORT,
        duration=1.0,
        time_step=0.02,
        motion=TableMotion((0.0, 0.1, 0.2), ((0, 0), (0, 0), (0.0, 60.0))),
        unlimited=True,
    )
    found = simulate_skinned(problem)
    assert found.verdict == "failed"
    assert "smaller dt" in found.message and "\n" not in found.message
    assert 2 <= found.data.sizes["time"] < 51
    assert np.isfinite(found.data.skin_position.values).all()


def test_time_limit_and_ctrl_c_keep_what_was_reached():
    # No step is as quick as this limit.
    found = simulate_skinned(replace(SHORT, time_limit=1e-6))
    assert found.verdict == "time limit" and found.data.sizes["time"] == 2

    def stop(stage, done, end):
        raise KeyboardInterrupt

    found = simulate_skinned(SHORT, progress=stop)
    assert found.verdict == "interrupted" and found.data.sizes["time"] == 2


def test_progress_is_reported():
    calls = []
    simulate_skinned(replace(SHORT, duration=0.02), progress=lambda *a: calls.append(a))
    assert {stage for stage, _, _ in calls} == {"simulate"}
    assert np.allclose([c[1:] for c in calls], [(5e-3 * k, 0.02) for k in range(1, 5)])


# --- motions ----------------------------------------------------------------


def test_named_motions():
    rest = np.array([0.1, -0.2])
    assert np.array_equal(named_motion("hold", 0.4, 2.0)(3.0, rest), rest)
    sine = named_motion("sine", 0.5, 2.0)
    assert np.array_equal(sine(0.0, rest), rest)  # begins at rest
    assert np.allclose(sine(2.5, rest), rest + np.array([0.5, 0.0]), atol=1e-12)
    steps = named_motion("steps", 0.5, 2.0)
    for time, level in ((0.5, 0.0), (1.5, 0.5), (2.5, -0.5), (3.5, 0.0)):
        assert np.allclose(steps(time, rest), rest + level)
    times = np.linspace(0, 5, 2001)
    for motion in (sine, steps):
        jump = np.diff([motion(t, rest) for t in times], axis=0)
        assert np.abs(jump).max() < 0.03


def test_a_robot_without_motors(robot, tmp_path):
    """It falls into its skin, and the result has no torques."""
    path = tmp_path / robot.model.path.name
    for file in robot.files[1:]:
        shutil.copy(file, tmp_path)
    text = robot.model.path.read_text()
    path.write_text(re.sub("<effort>.*</effort>", "<effort>0</effort>", text))
    result = simulate_skinned(replace(SHORT, model=path, duration=0.02))
    assert result.ok and "torque" not in result.data
    assert result.metrics["largest_torque_N_m"] == 0
    result.save(tmp_path / "run.nc")


def test_tables(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("knee,time,hip,worst\n0.5,0,0,\n0.7,2,0.4,nan\n")
    motion = read_motion_file(path, ("hip", "knee"))
    assert np.allclose(motion.at(1.0, np.zeros(2)), [0.2, 0.6])
    assert np.allclose(motion.at(9.0, np.zeros(2)), [0.4, 0.7])
    path.write_text("")
    bad = ["0,1", "0,1,x", "0,nan,0", "1,0,0\n0,0,0"]
    for text in ("", "time,hip\n0,1\n", *(f"time,hip,knee\n{row}\n" for row in bad)):
        path.write_text(text)
        with pytest.raises(DrakebotsError, match=r"m\.csv") as caught:
            read_motion_file(path, ("hip", "knee"))
        assert "\n" not in str(caught.value)
    with pytest.raises(DrakebotsError, match=r"none\.csv"):
        read_motion_file(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="3 joints"):
        TableMotion((0.0,), ((1, 2, 3),)).at(0.0, np.zeros(2))


@pytest.mark.parametrize(
    "options, said",
    [
        ({"duration": 0.0}, "duration"),
        ({"duration": np.inf}, "duration"),
        ({"time_step": -1.0}, "time_step"),
        ({"time_step": 9.0}, "longer than the run"),
        ({"skin_period": 0.0}, "skin_period"),
        ({"time_limit": np.nan}, "time_limit"),
        ({"friction": -0.1}, "friction"),
        ({"amplitude": np.nan}, "amplitude"),
        ({"period": 0.0}, "period"),
        ({"material": {"youngs_modulus": -5.0}}, "youngs_modulus"),
        ({"material": {"poisson_ratio": 0.5}}, "poisson_ratio"),
    ],
)
def test_problems_that_cannot_be(options, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        SkinSimulation(**options)
    assert "\n" not in str(caught.value)


def test_unknown_names():
    with pytest.raises(UnknownName, match="hold"):
        SkinSimulation(motion="samba")
    with pytest.raises(UnknownName, match="neo-hookean"):
        SkinSimulation(material={"kind": "jelly"})
    with pytest.raises(UnknownName, match="skinned_leg"):
        simulate_skinned(SkinSimulation(model="skinned_lge"))
    with pytest.raises(InvalidInput, match="3 joints"):
        simulate_skinned(replace(SHORT, motion=TableMotion((0.0,), ((1, 2, 3),))))


def test_overrides_change_only_what_is_named(robot):
    problem = SkinSimulation(
        material={"youngs_modulus": 9e7, "kind": "stable-neo-hookean"}
    )
    own = Material(poisson_ratio=0.4, density=900.0)
    new = problem.changed(own)
    assert (new.youngs_modulus, new.kind) == (9e7, "stable-neo-hookean")
    assert (new.poisson_ratio, new.density) == (0.4, 900.0)
    assert module.skin_model(SkinSimulation(), robot) is robot.fem


@pytest.mark.long
def test_a_skin_that_lies_on_its_links_has_few_pairs():
    """A thousand vertices of the beetle rest within a millimetre of a link."""
    robot = load_skinned("beetle")
    stepper = build_stepper(SkinSimulation("beetle", ground=False), robot)
    state = stepper.start()
    rest = stepper.collisions.links.margin < 1e-3
    assert rest.sum() > 500
    moving = np.random.default_rng(0).normal(size=state.skin.positions.shape)
    skin = replace(state.skin, velocities=0.01 * moving)
    dt = stepper.dt
    pairs = stepper.collisions.pairs(stepper.plant, stepper.context, skin, dt)
    assert (0 if pairs is None else len(pairs)) < 50


HAT = """
<robot name="hat">
  <link name="torso"><inertial><mass value="1"/>
    <inertia ixx="2e-3" iyy="4e-3" izz="4e-3" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.05 0.05 -0.02"/>
      <geometry><box size="0.1 0.1 0.04"/></geometry></collision></link>
  <link name="leg"><inertial><mass value="0.1"/>
    <inertia ixx="3e-4" iyy="3e-4" izz="2e-5" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 -0.2"/>
      <geometry><sphere radius="0.02"/></geometry></collision></link>
  <joint name="hip" type="revolute"><parent link="torso"/><child link="leg"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="9"/></joint>
</robot>
"""


def test_a_bare_leg_in_the_ground_is_told(tmp_path):
    """It has no contact there; contact points of its own give it some."""
    mesh, path = box_mesh((0.1, 0.1, 0.02), (3, 3, 1)), tmp_path / "hat.urdf"
    write_cells(tmp_path / "hat.vtu", mesh.vertices, mesh.tets, {})
    path.write_text(HAT)
    skin = SkinDescription("hat.vtu", GlueRadius(1e-3))
    write_skin(skin_path(path), skin)
    problem = SkinSimulation(model=path, motion="hold", duration=0.02)
    run = simulate_skinned(problem)
    q = run.data.position.sel(position_name="hat_torso_z")
    deep = 0.22 - float(q[-1])
    assert run.metrics["judged"]["depth of a link [m]"]["is"] == pytest.approx(
        deep, rel=1e-3
    )
    assert re.search("link leg is 22. mm in the ground.*hat.skin.yaml", run.message)
    assert "ground" not in simulate_skinned(replace(problem, ground=False)).message
    foot = Patches("F", "leg", np.array([[0.0, 0.0, 0.0]]))
    write_skin(skin_path(path), replace(skin, patches=(foot,)))
    assert "ground" not in simulate_skinned(problem).message
