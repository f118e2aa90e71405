"""MuJoCo's own compiler as an independent reader of MJCF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydrake.geometry import SceneGraph
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import PrismaticSpring, RevoluteSpring

from drakebots.formats.read.mjcf import read_mjcf
from drakebots.model import Reading
from tests.helpers.old_urdf_samples import force_elements


def plant_of(mjcf: Reading) -> MultibodyPlant:
    """The SDF of an MJCF file as Drake reads it, strictly."""
    plant, scene_graph = MultibodyPlant(0.0), SceneGraph()
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.AddModelsFromString(mjcf.text, "sdf")
    plant.Finalize()
    return plant


def assert_as_mujoco(path: Path, *, seed: int = 0, tolerance: float = 1e-9) -> None:
    """Both readers see the same bodies, masses and motions of an MJCF file.

    Compared are velocities and total mass; of every body its mass, centre of mass and
    inertia in the world and its pose; limits and springs of joints; at the reference
    configuration, and at random positions of hinges and slides; at these also the
    mass matrix's energy of a random motion.
    """
    mujoco = pytest.importorskip("mujoco")
    # By default MuJoCo writes its warnings to a file in the folder of the tests.
    mujoco.set_mju_user_warning(lambda text: None)
    peer = mujoco.MjModel.from_xml_path(str(path))
    plant = plant_of(read_mjcf(path))
    context, data = plant.CreateDefaultContext(), mujoco.MjData(peer)
    assert plant.num_velocities() == peer.nv
    joints = _single_joints(mujoco, peer, plant)
    for joint, index in joints:
        _assert_same_limits(peer, joint, index)
        _assert_same_spring(peer, plant, joint, index)
    rng = np.random.default_rng(seed)
    for is_random in (False, True):
        for joint, index in joints:
            q = rng.uniform(-0.7, 0.7) if is_random else 0.0
            address = peer.jnt_qposadr[index]
            data.qpos[address] = peer.qpos0[address] + q
            plant.SetPositions(context, _whole(plant, context, joint, q))
        mujoco.mj_forward(peer, data)
        _assert_same_bodies(plant, context, peer, data, tolerance)
    _assert_same_energy(mujoco, plant, context, peer, data, joints, rng, tolerance)


def _whole(plant, context, joint, q):
    positions = plant.GetPositions(context)
    positions[joint.position_start()] = q
    return positions


def _single_joints(mujoco, peer, plant):
    """Drake's joints of one degree of freedom with MuJoCo's index of each."""
    single = (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
    return [
        (plant.GetJointByName(peer.joint(index).name), index)
        for index in range(peer.njnt)
        if peer.jnt_type[index] in single
    ]


def _assert_same_limits(peer, joint, index) -> None:
    limits = [joint.position_lower_limits()[0], joint.position_upper_limits()[0]]
    if peer.jnt_limited[index]:
        ref = peer.qpos0[peer.jnt_qposadr[index]]
        np.testing.assert_allclose(limits, peer.jnt_range[index] - ref, atol=1e-12)
    else:
        assert np.isinf(limits).all()


def _assert_same_spring(peer, plant, joint, index) -> None:
    damping = pytest.approx(peer.dof_damping[peer.jnt_dofadr[index]])
    assert joint.default_damping() == damping
    springs = [
        force
        for force in force_elements(plant)
        if isinstance(force, RevoluteSpring | PrismaticSpring)
        and force.joint().index() == joint.index()
    ]
    if not peer.jnt_stiffness[index]:
        assert springs == []
        return
    (spring,) = springs
    if isinstance(spring, RevoluteSpring):
        found = spring.default_stiffness(), spring.default_nominal_angle()
    else:
        found = spring.stiffness(), spring.nominal_position()
    address = peer.jnt_qposadr[index]
    rest = peer.qpos_spring[address] - peer.qpos0[address]
    np.testing.assert_allclose(found, [peer.jnt_stiffness[index], rest], rtol=1e-9)


def _assert_same_bodies(plant, context, peer, data, tolerance) -> None:
    for index in range(1, peer.nbody):
        body = plant.GetBodyByName(peer.body(index).name or f"body{index}")
        X_WB, size = body.EvalPoseInWorld(context), {"atol": tolerance, "rtol": 1e-7}
        R_WB = X_WB.rotation().matrix()
        np.testing.assert_allclose(X_WB.translation(), data.xpos[index], **size)
        np.testing.assert_allclose(R_WB.ravel(), data.xmat[index], **size)
        mass = pytest.approx(peer.body_mass[index], rel=tolerance)
        assert body.default_mass() == mass
        if not body.default_mass():
            continue
        inertia = body.default_spatial_inertia()
        p_WC = X_WB.multiply(inertia.get_com())
        np.testing.assert_allclose(p_WC, data.xipos[index], **size)
        about_C = inertia.Shift(inertia.get_com()).CalcRotationalInertia()
        R_WI = data.ximat[index].reshape(3, 3)
        wanted = R_WI @ np.diag(peer.body_inertia[index]) @ R_WI.T
        found = R_WB @ about_C.CopyToFullMatrix3() @ R_WB.T
        np.testing.assert_allclose(
            found, wanted, atol=100 * tolerance * np.abs(wanted).max()
        )


def _assert_same_energy(mujoco, plant, context, peer, data, joints, rng, tolerance):
    """Kinetic energy of a random motion, which sees axes, order and anchors."""
    v = np.zeros(plant.num_velocities())
    data.qvel[:] = 0.0
    for joint, index in joints:
        rate = rng.uniform(-1, 1)
        v[joint.velocity_start()] = rate
        data.qvel[peer.jnt_dofadr[index]] = rate
    plant.SetVelocities(context, v)
    mujoco.mj_forward(peer, data)
    M = np.zeros((peer.nv, peer.nv))
    mujoco.mj_fullM(peer, data, M)
    # Rotors (armature) are in MuJoCo's mass matrix.
    M -= np.diag(peer.dof_armature)
    wanted = data.qvel @ M @ data.qvel / 2
    assert plant.CalcKineticEnergy(context) == pytest.approx(
        wanted, rel=100 * tolerance
    )
