"""Pressure in a closed cavity of a skin."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from pydrake.systems.analysis import Simulator

from drakebots.core.errors import InvalidInput
from drakebots.fem import cavity_of
from drakebots.fem.assembly import build_model, elastic_force, force_and_tangent
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, prism_tets
from drakebots.skin import CoupledSkeleton
from drakebots.skin.coupled import CoupledStepper, glue_vertices
from tests.helpers.elastic_solve import solve_definite
from tests.helpers.skinned_brick import MASS, brick

INNER, OUTER, E, NU = 0.02, 0.04, 1e6, 0.3
SOFT = Material(youngs_modulus=E, poisson_ratio=NU, density=1000.0)


def shell(fineness, layers, material=SOFT, inner=INNER, **options):
    """A thick sphere, and a vertex of its inner surface."""
    ball = trimesh.creation.icosphere(fineness, OUTER)
    radii = np.linspace(OUTER, inner, layers + 1)
    wall = np.concatenate([ball.vertices * (r / OUTER) for r in radii])
    mesh = TetMesh(wall, prism_tets(ball.faces, len(ball.vertices), layers))
    return build_model(mesh, material, **options), len(mesh.vertices) - 1


def lame(r):
    """Radial displacement of a thick sphere by a unit pressure inside [m/Pa]."""
    a, b = INNER**3, OUTER**3
    return a / (E * (b - a)) * ((1 - 2 * NU) * r + (1 + NU) * b / (2 * r**2))


@pytest.mark.long
def test_a_thick_sphere_is_lames_the_finer_the_nearer():
    errors = []
    for fineness, layers in ((1, 3), (2, 6), (3, 12)):
        model, inside = shell(fineness, layers)
        load = cavity_of(model, "air", inside).slope(model.rest)
        K = model.pattern.full(force_and_tangent(model, model.rest)[1])
        # Weak springs to the world in place of supports, which nothing pulls at.
        K.setdiag(K.diagonal() * (1 + 1e-9))
        u = solve_definite(K, load.ravel()).reshape(-1, 3)
        radius = np.linalg.norm(model.rest, axis=1)
        out = np.einsum("ij,ij->i", u, model.rest) / radius
        walls = [np.isclose(radius, r) for r in (INNER, OUTER)]
        miss = [out[on].mean() / lame(radius[on][0]) - 1 for on in walls]
        errors.append(np.abs(miss).max())
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[2] < 0.02


def test_forces_are_the_slope_of_the_volume_and_sum_to_nothing():
    model, inside = shell(1, 1)
    cavity = cavity_of(model, "air", inside)
    rng = np.random.default_rng(3)
    x = model.rest + 2e-3 * rng.standard_normal(model.rest.shape) + [0.3, -0.1, 0.2]
    f, size = cavity.slope(x), np.abs(cavity.slope(x)).sum()
    assert np.abs(f.sum(axis=0)).max() < 1e-13 * size
    assert np.abs(np.cross(x, f).sum(axis=0)).max() < 1e-13 * size
    # The volume is a polynomial of third order, for which these are exact.
    way = 1e-2 * rng.standard_normal(x.shape)
    V = [cavity.volume(x + k * way) for k in (-2, -1, 1, 2)]
    slope = (8 * (V[2] - V[1]) - (V[3] - V[0])) / 12
    assert slope == pytest.approx((f * way).sum(), rel=1e-9)
    bend = (cavity.slope(x + way) - cavity.slope(x - way)) / 2
    values = cavity.curvature(x, model.pattern.nnz)
    exact = model.pattern.full(values) @ way.ravel()
    np.testing.assert_allclose(exact, bend.ravel(), atol=1e-12 * np.abs(exact).max())


def test_the_surface_may_be_given_by_triangles():
    model, inside = shell(1, 1)
    cavity = cavity_of(model, "air", inside)
    same = cavity_of(model, "air", cavity.triangles[:, ::-1])
    assert same.volume(model.rest) == cavity.volume(model.rest) > 0
    whole = 4 / 3 * np.pi * INNER**3
    assert 0.8 * whole < cavity.volume(model.rest) < whole


def test_surfaces_that_hold_no_pressure():
    model, inside = shell(1, 1)
    with pytest.raises(InvalidInput, match="is the outer one"):
        cavity_of(model, "air", 0)
    with pytest.raises(InvalidInput, match="on no surface"):
        cavity_of(shell(1, 2)[0], "air", 50)
    with pytest.raises(InvalidInput, match="do not close"):
        cavity_of(model, "air", cavity_of(model, "air", inside).triangles[1:])
    with pytest.raises(InvalidInput, match="needs triangles of vertices below 84"):
        cavity_of(model, "air", [[0, 1, 84]])
    with pytest.raises(InvalidInput, match="second order"):
        cavity_of(shell(1, 1, quadratic=[0])[0], "air", inside)
    far = np.array([[0, 1, 2], [0, 2, 60], [0, 60, 1], [1, 60, 2]])
    with pytest.raises(InvalidInput, match="an edge that no tet has"):
        cavity_of(model, "air", far)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_pumped_ball_swells_to_its_equilibrium(precision):
    """Glued to a free link in no gravity: it moves nothing but itself."""
    damped = Material(youngs_modulus=E, poisson_ratio=NU, stiffness_damping=0.02)
    model, inside = shell(1, 1, damped, inner=0.03)
    plant, context = brick(gravity=(0, 0, 0))
    cavity = cavity_of(model, "air", inside)
    held = np.flatnonzero(model.rest[:, 2] > 0.9 * OUTER)
    glue = glue_vertices(model.rest, plant, context, {"brick": held})
    given = {"context": context, "cavities": [cavity], "precision": precision}
    run = CoupledStepper(plant, model, glue, 5e-3, **given)
    state, p = run.start(), 5e4
    for _ in range(60):
        result = run.step(state, pressures=[p])
        assert result.converged, result.message
        state = result.state
    x = state.skin.positions
    assert cavity.volume(x) > 1.05 * cavity.volume(model.rest)
    left = elastic_force(model, x) + p * cavity.slope(x)
    left[glue.vertices] = 0.0
    assert np.abs(left).max() < 1e-3 * np.abs(p * cavity.slope(x)).max()
    momentum = MASS * state.v[3:] + model.node_mass @ state.skin.velocities
    assert np.abs(momentum).max() < 1e-12
    system = CoupledSkeleton(run)
    simulator = Simulator(system)
    now = simulator.get_mutable_context()
    system.set_coupled_state(now, state)
    system.GetInputPort("pressure").FixValue(now, [2 * p])
    simulator.AdvanceTo(2e-3)  # one step, at 0 s
    after = run.step(state, pressures=[2 * p]).state.skin.positions
    out = system.GetOutputPort("cavity_volume").Eval(now)
    np.testing.assert_allclose(out, cavity.volume(after), rtol=1e-9)
    assert out > 1.001 * cavity.volume(x)
    with pytest.raises(InvalidInput, match="pressures: 2 numbers, needs 1"):
        run.step(state, pressures=[p, p])
