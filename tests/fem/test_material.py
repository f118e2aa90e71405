"""Materials: derivatives, objectivity, isotropy, small strain, bad input."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.fem.material import KINDS, PAPER_LITERAL, SILICONE, Material
from drakebots.fem.material.energies import signed_svd
from drakebots.fem.material.materials import by_region
from tests.helpers.skin_energy import density_and_stress

FINITE_WHEN_INVERTED = {"stable-neo-hookean", "st-venant-kirchhoff", "linear-corotated"}
STEP = 1e-6


def material(kind):
    return Material(kind=kind, youngs_modulus=2.0, poisson_ratio=0.4)


def rotation(rng):
    return Rotation.random(random_state=rng.integers(1 << 30)).as_matrix()


def gradients(kind):
    """Random F; coinciding and nearly coinciding stretches; inverted."""
    rng = np.random.default_rng(7)
    stretches = [rng.uniform(0.6, 1.6, 3) for _ in range(6)]
    for gap in (0.0, 1e-9, 1e-7, 1e-5, 2e-5, 1e-4, 1e-2):
        stretches += [np.array([1.2, 1.2 + gap, 0.8]), 1.1 + gap * np.arange(3)]
    if kind in FINITE_WHEN_INVERTED:
        stretches += [np.array([1.1, 0.9, -0.3]), np.array([0.7, 0.8, -1.2])]
    return [rotation(rng) @ np.diag(s) @ rotation(rng).T for s in stretches]


@pytest.mark.parametrize("kind", KINDS)
def test_stress_and_tangent_are_derivatives(kind):
    m = material(kind)
    for F in gradients(kind):
        _, P, T = density_and_stress(m, F)
        slope, tangent = np.zeros(9), np.zeros((9, 9))
        for k, e in enumerate(STEP * np.eye(9).reshape(9, 3, 3)):
            more, less = (density_and_stress(m, F + s * e)[0] for s in (1, -1))
            slope[k] = (more - less) / (2 * STEP)
            above, below = (density_and_stress(m, F + s * e)[1] for s in (1, -1))
            tangent[:, k] = (above - below).ravel() / (2 * STEP)
        assert np.abs(slope - P.ravel()).max() < 1e-6 * max(1, np.abs(P).max())
        assert np.abs(tangent - T).max() < 1e-6 * np.abs(T).max()
        assert np.allclose(T, T.T, atol=1e-9 * np.abs(T).max())


@pytest.mark.parametrize("kind", KINDS)
def test_objective_and_isotropic(kind):
    m, rng = material(kind), np.random.default_rng(3)
    for F in gradients(kind):
        Q, R = rotation(rng), rotation(rng)
        energy, P, _ = density_and_stress(m, F)
        turned, turned_P, _ = density_and_stress(m, Q @ F @ R)
        assert np.isclose(turned, energy, rtol=1e-12, atol=1e-13)
        assert np.allclose(turned_P, Q @ P @ R, atol=1e-11)
        # The Cauchy stress is symmetric: no internal moment.
        assert np.allclose(P @ F.T, F @ P.T, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_at_rest_every_material_is_hookes(kind):
    m = material(kind)
    mu, lam = m.lame
    energy, P, T = density_and_stress(m, np.eye(3))
    one = np.eye(3)
    hooke = (
        lam * np.einsum("ij,kl->ijkl", one, one)
        + mu * np.einsum("ik,jl->ijkl", one, one)
        + mu * np.einsum("il,jk->ijkl", one, one)
    ).reshape(9, 9)
    assert abs(energy) < 1e-15 and np.abs(P).max() < 1e-14
    assert np.allclose(T, hooke, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_turned_over_is_infinite_or_finite_as_stated(kind):
    F = np.diag([1.0, 1.0, -0.5])
    energy, P, _ = density_and_stress(material(kind), F)
    assert np.isfinite(energy) == (kind in FINITE_WHEN_INVERTED)
    assert np.isfinite(P).all() == (kind in FINITE_WHEN_INVERTED)


def test_svd_of_difficult_matrices():
    rng = np.random.default_rng(1)
    cases = [np.zeros((3, 3)), np.eye(3), np.diag([1, 1e-9, 1e-12])]
    cases += [np.outer(rng.normal(size=3), rng.normal(size=3))]
    cases += [rng.normal(size=(3, 3)) for _ in range(50)]
    cases += [np.array([[1, 0, 1e-200], [2, 1, 1e-170], [0, 1, 0]])]
    for F in cases:
        U, s, V = np.empty((3, 3)), np.empty(3), np.empty((3, 3))
        signed_svd(np.ascontiguousarray(F, float), U, s, V)
        assert np.allclose(U @ np.diag(s) @ V.T, F, atol=1e-14)
        assert np.allclose(U.T @ U, np.eye(3), atol=1e-13)
        assert np.isclose(np.linalg.det(U), 1) and np.isclose(np.linalg.det(V), 1)
        assert (s < 0).sum() <= 1


@pytest.mark.parametrize("size", [1e-100, 1e-8, 1e100])
def test_svd_has_the_relative_accuracy_of_lapack(size):
    """At any size of F, whose squares may be far outside those of other numbers."""
    for F in size * np.random.default_rng(4).normal(size=(20, 3, 3)):
        U, s, V = np.empty((3, 3)), np.empty(3), np.empty((3, 3))
        signed_svd(F, U, s, V)
        expected = np.linalg.svd(F, compute_uv=False)
        assert np.allclose(np.sort(np.abs(s))[::-1], expected, rtol=1e-13, atol=0)
        assert np.allclose(U @ np.diag(s) @ V.T, F, rtol=0, atol=1e-14 * expected[0])


@pytest.mark.parametrize("kind", ["linear-corotated", "ogden"])
def test_what_is_not_finite_has_no_finite_stress(kind):
    for value in (np.nan, np.inf):
        F = np.eye(3)
        F[1, 2] = value
        energy, P, T = density_and_stress(material(kind), F)
        assert not np.isfinite(energy)
        assert not np.isfinite(P).any() and not np.isfinite(T).all()


def test_lame_and_defaults():
    mu, lam = Material(youngs_modulus=1e6, poisson_ratio=0.25).lame
    assert np.isclose(mu, 0.4e6) and np.isclose(lam, 0.4e6)
    assert 0.7e6 <= SILICONE.youngs_modulus <= 1e6
    assert PAPER_LITERAL.youngs_modulus == 9e7
    assert SILICONE.poisson_ratio == PAPER_LITERAL.poisson_ratio == 0.46
    assert SILICONE.with_modulus(9e7) == PAPER_LITERAL


@pytest.mark.parametrize(
    "change, words",
    [
        ({"youngs_modulus": 0.0}, "youngs_modulus must be > 0 Pa"),
        ({"youngs_modulus": np.nan}, "youngs_modulus"),
        ({"poisson_ratio": 0.5}, "poisson_ratio must be within"),
        ({"poisson_ratio": -1.0}, "poisson_ratio"),
        ({"density": -1.0}, "density"),
        ({"stiffness_damping": -1.0}, "stiffness_damping"),
        ({"second_share": 2.0}, "second_share"),
        ({"kind": "ogden", "ogden_terms": ((2.0, 0.5),)}, "sum of shares"),
        ({"kind": "ogden", "ogden_terms": ((0.0, 1.0),)}, "alpha"),
        ({"kind": "ogden", "ogden_terms": ()}, "1 to 3 pairs"),
    ],
)
def test_bad_materials_are_named(change, words):
    with pytest.raises(InvalidInput, match=words):
        Material(**change)


def test_unknown_materials_and_regions():
    with pytest.raises(UnknownName, match="did you mean 'neo-hookean'"):
        Material(kind="neohookean")
    with pytest.raises(UnknownName, match="region"):
        by_region({0: SILICONE, 3: SILICONE}, (0, 1))
    with pytest.raises(InvalidInput, match="region 1 has no material"):
        by_region({0: SILICONE}, (0, 1))
