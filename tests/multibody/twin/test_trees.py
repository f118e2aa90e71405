"""The CasADi twin is the Drake plant, on random trees, and agrees with MuJoCo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drakebots
from drakebots import build_robot
from drakebots.model import LoopClosure
from drakebots.multibody import Twin
from tests.helpers.random_plants import (
    KINDS,
    LINK,
    REVERSIBLE,
    random_loops,
    random_plant,
    random_tree_state,
)
from tests.helpers.twin_checks import Numbers, assert_twin_is_drake


@pytest.mark.long
@settings(max_examples=60)
@given(
    links=st.lists(LINK, min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
    length_unit=st.sampled_from([1.0, 1e-3]),
)
def test_random_trees(links, seed, length_unit):
    """Any tree of Drake's joints, force elements, rotors, offsets, gravity."""
    rng = np.random.default_rng(seed)
    plant = random_plant(links, rng)
    loops = random_loops(plant, rng)
    numbers = Numbers(Twin(plant), loops, length_unit)
    closure = LoopClosure(plant, loops, length_unit=length_unit)
    for _ in range(2):
        state = random_tree_state(plant, rng)
        assert_twin_is_drake(plant, numbers, *state, closure)


@pytest.mark.parametrize("kind", KINDS)
def test_joint_kinds(kind):
    """Each joint below a moving link and carrying another, by itself."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        plant = random_plant([(0, "revolute", 0), (1, kind, 0), (2, "screw", 0)], rng)
        numbers = Numbers(Twin(plant))
        assert_twin_is_drake(plant, numbers, *random_tree_state(plant, rng))


@pytest.mark.parametrize("kind", REVERSIBLE)
def test_child_nearer_to_the_world(kind):
    """Drake allows these joints with their child on the world's side."""
    rng = np.random.default_rng(6)
    for _ in range(3):
        links = [(0, "revolute", 0), (1, kind, True), (2, "prismatic", True)]
        plant = random_plant(links, rng)
        numbers = Numbers(Twin(plant))
        assert_twin_is_drake(plant, numbers, *random_tree_state(plant, rng))


def test_quaternions_of_any_length():
    """R depends on a quaternion's direction only, its rates on its length too."""
    rng = np.random.default_rng(7)
    plant = random_plant([(0, "quaternion_floating", 0), (1, "revolute", 0)], rng)
    numbers = Numbers(Twin(plant))
    q, v, a = random_tree_state(plant, rng)
    longer = q.copy()
    longer[:4] *= 1.7
    one, other = numbers(q, v, a), numbers(longer, v, a)
    for name in ("T", "V", "M", "poses"):
        np.testing.assert_allclose(
            getattr(other, name), getattr(one, name), atol=1e-12, err_msg=name
        )
    rates = one.rates.copy()
    rates[:4] *= 1.7
    np.testing.assert_allclose(other.rates, rates, atol=1e-12)


LINKS = ("trunk", "arm", "slide", "tip")
PEER = "".join(
    f"""<link name="{name}"><inertial><origin xyz="0.1 {0.02 * k} -0.05"/>
    <mass value="{1 + 0.3 * k}"/><inertia ixx="0.02" iyy="0.03" izz="0.025"
    ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>"""
    for k, name in enumerate(LINKS)
)
PEER = f"""<robot name="peer"><link name="base"/>{PEER}
<joint name="j0" type="revolute"><parent link="base"/><child link="trunk"/>
  <origin xyz="0 0 0.3" rpy="0.2 0 0.1"/><axis xyz="0 0.6 0.8"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="j1" type="revolute"><parent link="trunk"/><child link="arm"/>
  <origin xyz="0.3 0 0" rpy="0 0.4 0"/><axis xyz="1 0 0"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="j2" type="prismatic"><parent link="trunk"/><child link="slide"/>
  <origin xyz="0 -0.2 0.1" rpy="0 0 -0.7"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="j3" type="revolute"><parent link="slide"/><child link="tip"/>
  <origin xyz="0 0.1 0.1" rpy="1 0 0"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>"""


def test_mujoco_agrees(tmp_path):
    """M and the bias (with gravity) of a branched arm, by another simulator."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "peer.urdf"
    path.write_text(PEER)
    other = mujoco.MjModel.from_xml_path(str(path))
    other.opt.gravity[:] = [0, 0, -9.81]
    robot = build_robot(drakebots.load(path), base="fixed", time_step=0)
    numbers = Numbers(Twin(robot.plant))
    rng = np.random.default_rng(8)
    names = [f"j{k}" for k in range(4)]
    ours = [robot.plant.GetJointByName(name).velocity_start() for name in names]
    theirs = [other.joint(name).dofadr[0] for name in names]
    for _ in range(5):
        q, v = rng.uniform(-1, 1, (2, 4))
        data = mujoco.MjData(other)
        data.qpos[theirs], data.qvel[theirs] = q, v
        mujoco.mj_forward(other, data)
        columns = []
        for column in np.eye(4):
            product = np.zeros(4)
            mujoco.mj_mulM(other, data, product, column)
            columns.append(product)
        M = np.array(columns)[np.ix_(theirs, theirs)]
        at = np.zeros((2, 4))
        at[:, ours] = q, v
        twin = numbers(*at, np.zeros(4))
        np.testing.assert_allclose(twin.M[np.ix_(ours, ours)], M, atol=1e-10)
        np.testing.assert_allclose(
            twin.tau[ours], data.qfrc_bias[theirs], atol=1e-10 * np.abs(twin.tau).max()
        )
