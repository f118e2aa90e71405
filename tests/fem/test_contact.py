"""Contact: ground and friction, self-contact, skeleton, broad phase."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.fem import (
    ImplicitEuler,
    Penalty,
    SkinState,
    SurfaceContact,
    at_rest,
    self_contact,
)
from drakebots.fem.assembly import build_model
from drakebots.fem.contact import closest_on_triangle
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh, surface_triangles
from tests.helpers.scripts import load_script

hollow_capsule = load_script("capsule_mesh").hollow_capsule

SOFT = Material(youngs_modulus=1e5, poisson_ratio=0.4)


def two_boxes(gap):
    """Cubes of 4 cm, one `gap` above the other, vertices not aligned."""
    low, high = box_mesh((0.04,) * 3, (4, 4, 4)), box_mesh((0.04,) * 3, (3, 3, 3))
    top = high.vertices + np.array([0.003, 0.002, 0.04 + gap])
    return TetMesh(
        np.vstack([low.vertices, top]),
        np.vstack([low.tets, high.tets + len(low.vertices)]),
    )


def test_closest_point_against_brute_force():
    rng = np.random.default_rng(0)
    s = np.linspace(0, 1, 201)
    u, v = np.meshgrid(s, s)
    keep = u + v <= 1
    grid = np.stack([1 - u - v, u, v], axis=-1)[keep]
    for _ in range(200):
        p, a, b, c = rng.normal(size=(4, 3))
        found, *w = closest_on_triangle(p, a, b, c)
        brute = ((p - grid @ np.stack([a, b, c])) ** 2).sum(axis=1).min()
        assert found <= brute + 1e-12 and np.sqrt(brute) - np.sqrt(found) < 0.02
        assert np.isclose(sum(w), 1) and min(w) >= 0
        assert np.isclose(np.linalg.norm(p - w @ np.stack([a, b, c])) ** 2, found)


def ground_forces(x, v, penalty):
    """Forces of the plane z = 0 on nodes (N, 3) [N]."""
    up = np.tile([0.0, 0.0, 1.0], (len(x), 1))
    return penalty.forces(-x[:, 2], up, v)


def test_ground_pushes_up_and_friction_is_coulombs():
    x = np.array([[0, 0, -1e-3], [0, 0, 1e-3], [1, 0, -2e-3], [2, 0, -1e-3]])
    v = np.array([[1, 0, 0], [1, 0, 0], [0, 1e-3, 0], [0, 0, 10.0]])
    penalty = Penalty(1e3, damping=1.0, friction=0.5, slip_damping=100.0)
    f = ground_forces(x, v, penalty)
    assert np.allclose(f, [[-0.5, 0, 1], [0, 0, 0], [0, -0.1, 2], [0, 0, 0]])


def forces(contact, x, v, surface=None, surface_velocity=None):
    """Explicit forces of contacts on the skin's nodes and on those of a surface."""
    same, contacts = surface is None, contact.find(x, surface)
    corners = contact.triangles[contacts.triangles]
    moving, velocity = v if same else surface_velocity, v[contacts.points]
    velocity = velocity - np.einsum("ck,ckj->cj", contacts.weights, moving[corners])
    push = contact.penalty.forces(contacts.depth, contacts.normal, velocity)
    force = np.zeros_like(x)
    back = force if same else np.zeros_like(surface)
    np.add.at(force, contacts.points, push)
    np.add.at(back, corners, -contacts.weights[:, :, None] * push[:, None])
    return force, (np.zeros((0, 3)) if same else back)


def test_a_box_comes_to_rest_on_the_ground():
    model = build_model(box_mesh((0.04,) * 3, (2, 2, 2)), SOFT)
    dt = 1e-3
    foot = model.rest[:, 2] < 1e-9
    mass = model.node_mass[model.node_mass > 0].min()
    penalty = Penalty(mass / dt**2 / 4, mass / dt / 2, 0.8)
    stepper = ImplicitEuler(model, dt, method="newton")
    v = np.tile([0.2, 0, 0.0], (len(model.rest), 1))
    state = SkinState(0.0, model.rest + np.array([0, 0, 1e-3]), v)
    for _ in range(800):
        result = stepper.step(state, lambda t, x, v: ground_forces(x, v, penalty))
        assert result.converged
        state = result.state
    assert np.abs(state.velocities).max() < 2e-3
    force = ground_forces(state.positions, state.velocities, penalty)
    assert np.isclose(force[:, 2].sum(), 9.81 * model.node_mass.sum(), rtol=1e-2)
    slid = state.positions[:, 0].mean() - model.rest[:, 0].mean()
    # v^2/(2 mu g) of a rigid block, and what viscous friction adds at low speed.
    coulomb = 0.2**2 / (2 * 0.8 * 9.81)
    viscous = 0.2 * model.node_mass.sum() / (foot.sum() * penalty.slip_damping)
    flight = 0.2 * np.sqrt(2 * 1e-3 / 9.81)
    assert coulomb < slid < flight + coulomb + viscous


def test_two_boxes_touch_with_forces_that_cancel():
    model = build_model(two_boxes(2e-4), SOFT)
    contact = self_contact(model, Penalty(100.0), margin=5e-4, reach=2e-3)
    # All pairs are at least the clearance apart but those of the gap; move rest
    # apart to say the two boxes may touch.
    x, v = model.rest, np.zeros_like(model.rest)
    assert not forces(contact, x, v)[0].any()
    apart = model.rest.copy()
    apart[125:, 2] += 0.02
    contact = SurfaceContact(
        contact.points, contact.triangles, contact.penalty, 5e-4, 2e-3, apart, 4e-3
    )
    force, other = forces(contact, x, v)
    assert other.shape == (0, 3)
    assert force[125:, 2].sum() > 0 and force[:125, 2].sum() < 0
    assert np.abs(force.sum(axis=0)).max() < 1e-12
    assert np.abs(np.cross(x, force).sum(axis=0)).max() < 1e-9
    found = contact.find(x)
    assert np.allclose(found.depth, 3e-4) and np.all(found.points >= 0)
    # Of each face, the vertices that face the other box.
    assert (found.points >= 125).sum() == 9 and (found.points < 125).sum() == 16
    # Gone through by 1 mm: still pushed out, along the same way.
    deep = x.copy()
    deep[125:, 2] -= 1.2e-3
    force, _ = forces(contact, deep, v)
    assert force[125:, 2].sum() > 0
    assert np.abs(force.sum(axis=0)).max() < 1e-12


def test_a_skin_at_rest_does_not_touch_itself():
    model = build_model(hollow_capsule(1038), SOFT)
    contact = self_contact(model, Penalty(100.0), margin=5e-4, reach=2e-3)
    x = model.rest
    assert len(contact.find(x).points) == 0
    assert len(contact.find(x * [1.0, 1.0, 0.98]).points) == 0
    # Two opposite walls pressed together do.
    flat = x.copy()
    flat[:, 0] *= 0.045
    assert len(contact.find(flat).points) > 0


@pytest.mark.parametrize("cells", [3, 9])
def test_broad_phase_finds_what_brute_force_finds(cells):
    rng = np.random.default_rng(cells)
    box = box_mesh((1, 1, 1), (cells,) * 3)
    triangles = surface_triangles(box)
    points = rng.uniform(-0.15, 1.15, (300, 3))
    reach = 0.1
    contact = SurfaceContact(
        np.arange(300), triangles, Penalty(1.0), margin=reach, reach=reach
    )
    found = contact.find(points, box.vertices)
    inside = ((points > 0) & (points < 1)).all(axis=1)
    outside = np.linalg.norm(points - np.clip(points, 0, 1), axis=1)
    wall = np.minimum(points, 1 - points).min(axis=1)
    distance = np.where(inside, -wall, outside)
    expected = np.flatnonzero(np.abs(distance) < reach)
    assert np.array_equal(found.points, expected)
    assert np.allclose(found.depth, reach - distance[expected])
    way = np.where(inside, 1, 0)[expected]
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1)
    nearest = points - np.clip(points, 0, 1)
    outer = way == 0
    unit = nearest[expected][outer] / outside[expected][outer][:, None]
    assert np.allclose(found.normal[outer], unit, atol=1e-9)


def test_skin_on_a_skeleton_gives_both_their_force():
    model = build_model(box_mesh((0.04,) * 3, (3, 3, 3)), SOFT)
    bone = box_mesh((0.1, 0.1, 0.02), (1, 1, 1))
    shell = bone.vertices - [0.03, 0.03, 0.02 - 1e-3]
    penalty = Penalty(50.0, damping=0.1, friction=0.3)
    contact = SurfaceContact(
        np.arange(len(model.rest)), surface_triangles(bone), penalty, 5e-4, 2e-3
    )
    v = np.tile([0.1, 0, -0.05], (len(model.rest), 1))
    skin, back = forces(contact, model.rest, v, shell, np.zeros_like(shell))
    assert skin[:, 2].sum() > 0 and skin[:, 0].sum() < 0
    assert np.allclose(skin.sum(axis=0), -back.sum(axis=0))
    moment = np.cross(model.rest, skin).sum(axis=0) + np.cross(shell, back).sum(axis=0)
    # Friction acts at the vertex and at the nearest point: apart by the depth.
    assert np.abs(moment).max() < 2e-3 * np.abs(skin).sum()
    # Carried along there is nothing to damp or rub.
    same = forces(contact, model.rest, v, shell, np.tile(v[0], (len(shell), 1)))[0]
    assert np.allclose(same[:, :2], 0, atol=1e-12)


def test_bad_contacts():
    with pytest.raises(InvalidInput, match="stiffness"):
        Penalty(0.0)
    with pytest.raises(InvalidInput, match="friction"):
        Penalty(1.0, friction=-1)
    with pytest.raises(InvalidInput, match="slip_damping"):
        Penalty(1.0, friction=0.5)
    triangles = np.array([[0, 1, 2]])
    with pytest.raises(InvalidInput, match="margin"):
        SurfaceContact(np.arange(3), triangles, Penalty(1.0), margin=2.0, reach=1.0)
    with pytest.raises(InvalidInput, match="no points"):
        SurfaceContact(np.arange(0), triangles, Penalty(1.0))
    model = build_model(box_mesh((1, 1, 1), (1, 1, 1)), SOFT)
    contact = self_contact(model, Penalty(1.0), margin=0.01, reach=0.02)
    with pytest.raises(InvalidInput, match="not finite"):
        contact.find(at_rest(model).positions * np.nan)
