"""Assembly: patch test, derivatives, scikit-fem, convergence, beam, mass."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from drakebots.core.errors import InvalidInput
from drakebots.fem import equilibrium
from drakebots.fem.assembly import (
    build_model,
    elastic_energy,
    elastic_force,
    force_and_tangent,
    gravity_force,
    node_rotations,
    von_mises,
    worst_tet,
)
from drakebots.fem.assembly.assembly import (
    damping_values,
    element_masses,
)
from drakebots.fem.material import KINDS, Material
from drakebots.fem.mesh import TetMesh, box_mesh, surface_triangles
from drakebots.fem.solver import Prescribed
from tests.helpers.elastic_solve import solve_definite
from tests.helpers.skin_energy import density_and_stress

ZERO = (0, 0, 0)


def shaken_box(cells=(3, 3, 3), amount=0.05, seed=0):
    """A unit cube whose inner vertices are moved, with two regions."""
    box = box_mesh((1, 1, 1), cells)
    v = box.vertices.copy()
    inner = ((v > 1e-9) & (v < 1 - 1e-9)).all(axis=1)
    v[inner] += amount * np.random.default_rng(seed).uniform(-1, 1, (inner.sum(), 3))
    middle = v[box.tets].mean(axis=1)
    return TetMesh(v, box.tets, (middle[:, 0] > 0.5).astype(int))


ORDERS = {"P1": (), "P2": (0, 1), "mixed": (1,)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_patch(kind, order):
    """Homogeneous stretch: inner forces vanish, and Newton finds it again."""
    mesh = shaken_box()
    model = build_model(
        mesh, Material(kind=kind, youngs_modulus=1.0), quadratic=ORDERS[order]
    )
    A = np.eye(3) + 0.1 * np.random.default_rng(1).normal(size=(3, 3))
    x = model.rest @ A.T
    outer = ((model.rest < 1e-9) | (model.rest > 1 - 1e-9)).any(axis=1)
    force = elastic_force(model, x)
    assert np.abs(force[~outer]).max() < 1e-12
    assert np.isclose(
        elastic_energy(model, x),
        density_and_stress(model.materials[0], A)[0],
        rtol=1e-12,
    )
    ids = np.flatnonzero(outer)
    found = equilibrium(model, Prescribed(ids, x[ids]), gravity=ZERO, tolerance=1e-13)
    assert found.converged and np.abs(found.positions - x).max() < 1e-12


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_force_and_tangent_are_derivatives(kind, order):
    materials = {
        0: Material(kind=kind, youngs_modulus=1.0),
        1: Material(kind=kind, youngs_modulus=5.0, poisson_ratio=0.3),
    }
    model = build_model(shaken_box((2, 2, 2)), materials, quadratic=ORDERS[order])
    rng = np.random.default_rng(2)
    x = model.rest + 0.03 * rng.normal(size=model.rest.shape)
    force, values = force_and_tangent(model, x)
    assert np.allclose(force, elastic_force(model, x), atol=1e-14)
    full = model.pattern.full(values)
    h = 1e-6
    for _ in range(3):
        d = rng.normal(size=x.shape)
        slope = (
            elastic_energy(model, x + h * d) - elastic_energy(model, x - h * d)
        ) / (2 * h)
        assert np.isclose(slope, -(force * d).sum(), rtol=1e-6)
        bend = (elastic_force(model, x - h * d) - elastic_force(model, x + h * d)) / (
            2 * h
        )
        exact = full @ d.ravel()
        assert np.abs(bend.ravel() - exact).max() < 1e-6 * np.abs(exact).max()
        product = model.pattern.multiply(values, d.ravel())
        assert np.allclose(product, exact, atol=1e-12 * np.abs(exact).max())
    # No net force, no net moment.
    assert np.abs(force.sum(axis=0)).max() < 1e-12
    assert np.abs(np.cross(x, force).sum(axis=0)).max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_projection_keeps_what_is_positive_and_only_that(kind):
    model = build_model(shaken_box((2, 2, 2)), Material(kind=kind, youngs_modulus=1.0))
    rest = force_and_tangent(model, model.rest)[1]
    kept = force_and_tangent(model, model.rest, project=True)[1]
    assert np.allclose(rest, kept, atol=1e-10)
    x = model.rest * [0.5, 0.55, 1.0]
    plain = model.pattern.full(force_and_tangent(model, x)[1]).toarray()
    lifted = model.pattern.full(force_and_tangent(model, x, project=True)[1]).toarray()
    low = np.linalg.eigvalsh(lifted)[0]
    assert low > -1e-9 * np.abs(lifted).max()
    assert np.linalg.eigvalsh(plain)[0] < low + 1e-9


def skfem_stiffness(mesh, order, mu, lam):
    import skfem
    from skfem.models.elasticity import linear_elasticity

    m = skfem.MeshTet(mesh.vertices.T.copy(), mesh.tets.T.astype(np.int32).copy())
    scalar = skfem.ElementTetP1() if order == 1 else skfem.ElementTetP2()
    basis = skfem.Basis(m, skfem.ElementVector(scalar), intorder=2)
    return basis, linear_elasticity(lam, mu).assemble(basis)


@pytest.mark.parametrize("order", [1, 2])
def test_agrees_with_scikit_fem(order):
    pytest.importorskip("skfem")
    mesh = shaken_box((3, 2, 2))
    material = Material(youngs_modulus=1.0, poisson_ratio=0.4)
    model = build_model(mesh, material, quadratic=() if order == 1 else mesh.regions)
    basis, theirs = skfem_stiffness(mesh, order, *material.lame)
    ours = model.pattern.full(force_and_tangent(model, model.rest)[1])
    # Their dofs by place and axis.
    place = basis.doflocs.T
    axis = np.zeros(len(place), int)
    for dofs in (basis.nodal_dofs, basis.edge_dofs):
        for k in range(dofs.shape[0]):
            axis[dofs[k]] = k % 3
    key = {(*np.round(p, 8), a): i for i, (p, a) in enumerate(zip(place, axis))}
    order_of = [key[(*np.round(p, 8), a)] for p in model.rest for a in range(3)]
    theirs = theirs.toarray()[np.ix_(order_of, order_of)]
    scale = np.abs(theirs).max()
    assert np.abs(ours.toarray() - theirs).max() < 1e-10 * scale


def manufactured(points, mu, lam):
    """u = a sin(pi x) sin(pi y) sin(pi z) (1, 2, -1), and its body force."""
    s, c = np.sin(np.pi * points), np.cos(np.pi * points)
    a = np.array([1.0, 2.0, -1.0])
    phi = s.prod(axis=1)
    u = phi[:, None] * a
    hessian = np.empty((len(points), 3, 3))
    for i in range(3):
        for j in range(3):
            k = 3 - i - j
            hessian[:, i, j] = (
                -phi if i == j else c[:, i] * c[:, j] * s[:, k]
            ) * np.pi**2
    # div sigma = mu lap u + (lam + mu) grad div u.
    laplace = -3 * np.pi**2 * u
    return u, -(mu * laplace + (lam + mu) * hessian @ a)


def solution_error(order, n):
    """L2 error of the linearised problem on a cube of n^3 cells."""
    mesh = box_mesh((1, 1, 1), (n, n, n))
    material = Material(youngs_modulus=1.0, poisson_ratio=0.3)
    model = build_model(mesh, material, quadratic=() if order == 1 else (0,))
    mu, lam = material.lame
    (group,) = model.space.groups
    ids, corners = group.nodes, mesh.vertices[mesh.tets]
    volume = mesh.volumes
    points, weights, shapes = quadrature5(order)
    load = np.zeros_like(model.rest)
    for point, w, N in zip(points, weights, shapes):
        f = manufactured(np.einsum("c,mci->mi", point, corners), mu, lam)[1]
        part = w * volume[:, None, None] * N[None, :, None] * f[:, None, :]
        np.add.at(load, ids, part)
    K = model.pattern.full(force_and_tangent(model, model.rest)[1])
    free = ((model.rest > 1e-9) & (model.rest < 1 - 1e-9)).all(axis=1)
    dofs = (3 * np.flatnonzero(free)[:, None] + np.arange(3)).ravel()
    u = np.zeros(model.rest.size)
    u[dofs] = solve_definite(K[dofs][:, dofs], load.ravel()[dofs])
    u, square = u.reshape(-1, 3), 0.0
    for point, w, N in zip(points, weights, shapes):
        exact = manufactured(np.einsum("c,mci->mi", point, corners), mu, lam)[0]
        gap = np.einsum("a,mai->mi", N, u[ids]) - exact
        square += w * (volume * (gap**2).sum(axis=1)).sum()
    return np.sqrt(square)


def quadrature5(order):
    """Products of Gauss points collapsed onto the tet: exact to degree 5 and more."""
    from numpy.polynomial.legendre import leggauss

    t, g = leggauss(5)
    t, g = (t + 1) / 2, g / 2
    a, b, c = (q.ravel() for q in np.meshgrid(t, t, t, indexing="ij"))
    w = np.einsum("i,j,k->ijk", g, g, g).ravel() * 6 * (1 - a) ** 2 * (1 - b)
    points = np.stack(
        [a, (1 - a) * b, (1 - a) * (1 - b) * c, (1 - a) * (1 - b) * (1 - c)], axis=1
    )
    edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    shapes = points
    if order == 2:
        corner = points * (2 * points - 1)
        edge = np.stack([4 * points[:, i] * points[:, j] for i, j in edges], axis=1)
        shapes = np.hstack([corner, edge])
    return points, w, shapes


@pytest.mark.parametrize("order, sizes, rate", [(1, (8, 12), 2), (2, (4, 6), 3)])
def test_converges_at_the_rate_of_its_order(order, sizes, rate):
    coarse, fine = (solution_error(order, n) for n in sizes)
    found = np.log(coarse / fine) / np.log(sizes[1] / sizes[0])
    assert rate - 0.25 < found < rate + 0.5


def test_a_cantilever_bends_as_a_beam():
    """Tip deflection F L^3/(3 E I) + F L/(k G A) of a slender P2 bar."""
    length, side, force = 1.0, 0.1, 1e-2
    mesh = box_mesh((length, side, side), (20, 2, 2))
    material = Material(youngs_modulus=1e6, poisson_ratio=0.3)
    model = build_model(mesh, material, quadratic=(0,))
    held = np.flatnonzero(model.rest[:, 0] < 1e-9)
    tip = np.flatnonzero(model.rest[:, 0] > length - 1e-9)
    load = np.zeros_like(model.rest)
    load[tip, 2] = -force / len(tip)
    end = equilibrium(
        model, Prescribed(held, model.rest[held]), forces=load, gravity=ZERO
    )
    assert end.converged
    found = -(end.positions - model.rest)[tip, 2].mean()
    bending = force * length**3 / (3 * 1e6 * side**4 / 12)
    shear = force * length / (5 / 6 * material.lame[0] * side**2)
    assert abs(found / (bending + shear) - 1) < 0.015


@pytest.mark.parametrize("order", ORDERS)
def test_rotations_of_nodes_are_those_of_a_turned_skin(order):
    model = build_model(shaken_box(), Material(), quadratic=ORDERS[order])
    R = Rotation.from_rotvec([0.3, -1.0, 2.0]).as_matrix()
    A = R @ np.diag([1.1, 0.9, 1.05])
    turn = node_rotations(model, model.rest @ A.T)
    np.testing.assert_allclose(turn, np.tile(R, (len(turn), 1, 1)), atol=1e-4)
    flat = node_rotations(model, model.rest * [1, 1, -1])  # inverted
    np.testing.assert_allclose(flat, np.tile(np.eye(3), (len(turn), 1, 1)))


@pytest.mark.parametrize("order", ORDERS)
def test_mass_and_weight(order):
    materials = {0: Material(density=1000.0), 1: Material(density=3000.0)}
    mesh = shaken_box((4, 2, 2), amount=0)
    model = build_model(mesh, materials, quadratic=ORDERS[order])
    assert np.isclose(model.node_mass.sum(), 2000.0)
    M = model.pattern.full(model.mass)
    assert np.isclose(M.sum(), 3 * 2000.0)
    assert np.linalg.eigvalsh(M.toarray())[0] > 0
    weight = gravity_force(model, (0, 0, -9.81))
    assert np.allclose(weight.sum(axis=0), [0, 0, -2000 * 9.81])
    # Moment of the weight about the origin: mass centre at x = 0.25 and 0.75.
    x_mean = (1000 * 0.25 + 3000 * 0.75) / 4000
    moment = np.cross(model.rest, weight).sum(axis=0)
    assert np.allclose(moment, [-0.5 * 2000 * 9.81, x_mean * 2000 * 9.81, 0])
    # Exact kinetic energy of a rigid turn about z by the consistent masses of the tets:
    # int rho (x^2 + y^2)/2.
    v, energy = np.cross([0, 0, 1], model.rest), 0.0
    for group, row in zip(model.space.groups, model.rows):
        rho = np.array([m.density for m in model.materials])[row]
        own = np.where(group.nodes[..., None] >= 0, v[group.nodes], 0.0)
        M = element_masses(group, rho)
        energy += np.einsum("mai,mab,mbi->", own, M, own) / 2
    assert np.isclose(energy, 500 * (1 / 24 + 1 / 6) + 1500 * (7 / 24 + 1 / 6))


def test_region_moduli_and_damping():
    mesh = shaken_box((2, 2, 2), amount=0)
    soft = Material(youngs_modulus=1.0, stiffness_damping=0.1)
    hard = Material(youngs_modulus=10.0, mass_damping=2.0)
    model = build_model(mesh, {0: soft, 1: hard})
    only = [build_model(mesh, {0: a, 1: b}) for a, b in ((soft, soft), (hard, hard))]
    x = model.rest * [1.1, 0.95, 1.0]
    assert elastic_energy(only[0], x) < elastic_energy(model, x)
    assert np.isclose(10 * elastic_energy(only[0], x), elastic_energy(only[1], x))
    D = damping_values(model, x)
    beta = force_and_tangent(model, x, scale=np.array([0.1, 0.0]))[1]
    rest = model.pattern.full(D - beta).toarray()
    assert np.allclose(rest, np.diag(np.diag(rest)), atol=1e-12)
    assert np.isclose(np.trace(rest), 3 * 2.0 * 1070 / 2)


def test_stress_and_volume_of_a_stretched_bar():
    material = Material(youngs_modulus=1e6, poisson_ratio=0.3, kind="linear-corotated")
    model = build_model(shaken_box(), material)
    x = model.rest * [1.01, 1 - 0.003, 1 - 0.003]
    (group,) = model.space.groups
    F = np.einsum("mai,mqaj->mqij", x[group.nodes], group.gradients)
    ratio = np.linalg.det(F).min(axis=1)
    assert np.allclose(ratio, 1.01 * 0.997**2)
    # P = E strain along x; Cauchy: P times the stretch over the volume ratio.
    assert np.allclose(von_mises(model, x), 1e4 * 1.01 / ratio, rtol=1e-9)
    x[0] += [2, 0, 0]
    tet, low = worst_tet(model, x)
    assert low < 0 and 0 in model.space.mesh.tets[tet]


def test_an_inverted_tet_is_infinite_not_wrong():
    model = build_model(shaken_box(), Material())
    x = model.rest.copy()
    x[0] = 0.9
    assert elastic_energy(model, x) == np.inf
    assert not np.isfinite(force_and_tangent(model, x)[0]).all()


def test_bad_models():
    mesh = shaken_box()
    turned = TetMesh(mesh.vertices, mesh.tets[:, [1, 0, 2, 3]], mesh.region)
    with pytest.raises(InvalidInput, match="check_mesh returns"):
        build_model(turned, Material())
    model = build_model(mesh, Material())
    with pytest.raises(InvalidInput, match="one row per node"):
        elastic_force(model, model.rest[1:])


def test_surface_of_the_shaken_box_is_the_cube():
    mesh = shaken_box()
    corners = mesh.vertices[surface_triangles(mesh)]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.isclose(np.linalg.norm(normal, axis=1).sum() / 2, 6)


def test_the_engine_knows_nothing_of_drake():
    import drakebots.fem

    folder = Path(drakebots.fem.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        assert not re.search(r"^\s*(import|from) pydrake", path.read_text(), re.M), path
