"""Skin carried by the links, coordinates, and the support of flat soles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import UnknownName
from drakebots.fem import equilibrium
from drakebots.fem.assembly import elastic_energy
from drakebots.fem.solver import Prescribed
from drakebots.model import find_body
from drakebots.robots.quads.motion import support_polygon
from drakebots.robots.quads.robot import (
    Coordinates,
    SkinInfluence,
    SkinShare,
    coupling_forces,
    inertia_at,
    skin_on_links,
)
from drakebots.robots.quads.robot.planned_robot import joint_stiffness
from drakebots.skin.coupled import glue_points
from tests.helpers.quad_skeletons import cloud_of_skin


def test_coordinates_go_to_drakes_quaternions_and_back(beetle):
    convert, rng = Coordinates(beetle), np.random.default_rng(4)
    q = beetle.rest + rng.normal(0, 0.4, (6, beetle.nv))
    v = rng.normal(0, 1, q.shape)
    positions, velocities = convert.positions(q), convert.velocities(q, v)
    assert convert.from_positions(positions) == pytest.approx(q, abs=1e-12)
    assert convert.from_velocities(q, velocities) == pytest.approx(v, abs=1e-12)
    f = rng.normal(0, 1, velocities.shape)
    power = np.sum(f * velocities, axis=1)
    ours = np.sum(convert.forces(q, f) * v, axis=1)
    assert ours == pytest.approx(power, abs=1e-12)
    free, euler = convert.free.plant, beetle.robot.plant
    a, b = free.CreateDefaultContext(), euler.CreateDefaultContext()
    free.SetPositions(a, positions[0])
    free.SetVelocities(a, velocities[0])
    euler.SetPositions(b, q[0])
    euler.SetVelocities(b, v[0])
    foot = beetle.soles[0].body
    seen = []
    for plant, context in ((free, a), (euler, b)):
        body = find_body(plant, foot)
        X = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix34()
        V = plant.EvalBodySpatialVelocityInWorld(context, body).get_coeffs()
        seen.append((X, V))
    for ours, theirs in zip(*seen):
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_skin_on_links_has_the_skins_mass_and_centre(beetle):
    rng = np.random.default_rng(5)
    p = rng.uniform(-0.1, 0.3, (200, 3))
    mass = rng.uniform(1e-3, 1e-2, 200)
    link_of = rng.integers(0, len(beetle.tree.bodies), 200)
    share = SkinShare(beetle.tree.bodies, link_of, mass)
    skin = skin_on_links(beetle, p, share)
    assert skin.mass.sum() == pytest.approx(mass.sum())
    both = beetle.tree.inertia + skin.inertia
    own = beetle.com(beetle.rest)[0]
    expected = (beetle.mass * own + mass @ p) / (beetle.mass + mass.sum())
    assert beetle.com(beetle.rest, both)[0] == pytest.approx(expected, abs=1e-12)
    with pytest.raises(UnknownName, match="wing"):
        skin_on_links(beetle, p, replace(share, links=("wing",)))


def test_a_rigid_skins_forces_leave_nothing_over(beetle):
    """lambda of a skin that moves with its links is minus its own inverse
    dynamics; then the coupling adds nothing to links with skin."""
    skin, N = cloud_of_skin(beetle), 11
    rng = np.random.default_rng(6)
    q, v, a = (
        beetle.rest + rng.normal(0, 0.3, (N, beetle.nv)),
        *rng.normal(0, 1, (2, N, beetle.nv)),
    )
    zero = np.zeros((N, len(beetle.tree.bodies), 3))
    both = beetle.tree.inertia + skin.inertia

    def needed(inertia):
        f = beetle.tree.dynamics_function.map(N)
        d = np.repeat(inertia.reshape(-1, 1), N, axis=1)
        return f(q.T, v.T, a.T, d).full().T

    force = -(needed(both) - needed(beetle.tree.inertia))
    influence = SkinInfluence(force, zero, q, v, a, base=True)
    steps = np.arange(N)
    delta = coupling_forces(beetle, skin, influence, steps)
    assert np.abs(delta).max() < 1e-10
    # What a joint's skin pulls besides goes into its torque row as it is.
    extra = np.zeros_like(force)
    extra[:, 8] = 0.3
    pulled = replace(influence, force=force + extra, base=False)
    assert coupling_forces(beetle, skin, pulled, steps) == pytest.approx(
        extra, abs=1e-10
    )


def test_the_stiffness_is_that_of_the_skins_energy(robot):
    """x'K x / 2 of small turns is the energy of the skin at rest in the turned pose."""
    skinned, joints = robot.skinned, robot.quad.coordinates[6:]
    plant, context, fem = skinned.plant, skinned.context, skinned.fem
    K = joint_stiffness(skinned, joints)
    assert (
        np.allclose(K, robot.link_skin.stiffness) and np.linalg.eigvalsh(K)[0] > -1e-9
    )
    at = [plant.GetJointByName(name).position_start() for name in joints]
    for seed in range(3):
        x = np.random.default_rng(seed).normal(0, 0.01, len(joints))
        q = skinned.rest_positions.copy()
        q[at] += x
        plant.SetPositions(context, q)
        held, _ = glue_points(plant, context, skinned.glue)
        glue = Prescribed(skinned.glue.vertices, lambda share, held=held: held)
        found = equilibrium(fem, glue, gravity=np.zeros(3))
        energy = elastic_energy(fem, found.positions)
        assert found.converged and energy == pytest.approx(x @ K @ x / 2, rel=0.03)


def test_the_stiffness_acts_about_the_pose_of_the_influence(beetle):
    """-K (q - rest) before the first step-by-step plan; as measured at its motion."""
    rng = np.random.default_rng(2)
    n = beetle.nv - 6
    K = np.diag(rng.uniform(1, 3, n))
    skin = replace(cloud_of_skin(beetle), stiffness=K)
    q = beetle.rest + rng.normal(0, 0.2, (2, beetle.nv))
    first = coupling_forces(beetle, skin, None, [0, 1])[:, 6:] + skin.elastic(q[:, 6:])
    assert first == pytest.approx(-(q - beetle.rest)[:, 6:] @ K, abs=1e-12)
    bare = replace(skin, stiffness=None)
    zero = np.zeros((2, len(beetle.tree.bodies), 3))
    measured = SkinInfluence(rng.normal(0, 1, q.shape), zero, q, 0 * q, 0 * q)
    later = coupling_forces(beetle, skin, measured, [0, 1])[:, 6:]
    there = coupling_forces(beetle, bare, measured, [0, 1])[:, 6:]
    assert later + skin.elastic(q[:, 6:]) == pytest.approx(there, abs=1e-12)


def test_a_shift_of_the_skin_moves_the_com(beetle):
    skin = cloud_of_skin(beetle)
    torso = beetle.tree.bodies.index("torso")
    shift = np.zeros((2, len(beetle.tree.bodies), 3))
    shift[1, torso] = [0.01, 0.0, 0.02]
    zero = np.zeros((2, beetle.nv))
    influence = SkinInfluence(zero, shift, zero, zero, zero)
    inertia = inertia_at(beetle, skin, influence, [0, 1])
    c = beetle.com(np.stack([beetle.rest] * 2), inertia)
    share = skin.mass[torso] / (beetle.mass + skin.mass.sum())
    assert c[1] - c[0] == pytest.approx(share * shift[1, torso], abs=1e-12)


def test_support_polygon_of_flat_soles(beetle):
    hull = support_polygon(beetle, beetle.rest_feet, [1, 1, 1, 1], 0.0)
    low = beetle.rest_feet[:, :2].min(axis=0) - [0.025, 0.02]
    assert hull.min(axis=0) == pytest.approx(low)
