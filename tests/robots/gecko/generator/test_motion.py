"""Motion models: Table 3 in SI, fits, and the pose step."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.engines import pose_step, relative_motion, walk
from drakebots.robots.gecko.generator import (
    COMPONENTS,
    MotionPolynomial,
    PoseStepMotion,
)
from drakebots.robots.gecko.generator.motion import Domain, gait_domain
from drakebots.robots.gecko.model import fixation, gait_law, gecko

ROBOT = gecko()


@pytest.fixture(scope="module")
def table_3():
    return MotionPolynomial.table_3()


def grid(a=5, b=6):
    q1, q2 = np.meshgrid(
        np.radians(np.linspace(50, 90, a)), np.linspace(-0.5, 0.5, b), indexing="ij"
    )
    return q1.ravel(), q2.ravel()


def by_hand(q1, q2):
    """Table 3 as printed: q1 in deg; deg and cm."""
    return np.array(
        [
            5.4154
            - 0.0457 * q1
            - 44.1944 * q2
            - 0.0006 * q1**2
            + 0.778 * q2**2
            - 0.0832 * q1 * q2,
            0.1106
            + 0.2225 * q1
            + 11.4146 * q2
            - 0.0008 * q1**2
            - 17.5133 * q2**2
            - 0.1213 * q1 * q2,
            1.9498
            - 0.0682 * q1
            - 3.6997 * q2
            + 0.0004 * q1**2
            - 0.0333 * q2**2
            - 0.058 * q1 * q2,
        ]
    ).T


def test_table_3_is_the_printed_one(table_3):
    q1, q2 = grid()
    motion = table_3.motion(q1, q2) / [np.pi / 180, 0.01, 0.01]
    np.testing.assert_allclose(motion, by_hand(np.degrees(q1), q2), atol=1e-12)


def test_paper_table_gives_the_printed_digits(table_3):
    table = table_3.paper_table()
    assert tuple(table) == COMPONENTS
    assert table["rotation"]["q1 q2"] == pytest.approx(-0.0832)
    assert table["forward"]["q2^2"] == pytest.approx(-17.5133)
    assert table["left"]["1"] == pytest.approx(1.9498)


def test_shapes(table_3):
    assert table_3.motion(1.0, 0.1).shape == (3,)
    assert table_3.motion(np.ones((4, 1)), np.zeros(7)).shape == (4, 7, 3)
    assert table_3.coefficients.shape == (3, 3, 3)


def test_predict_composes_poses(table_3):
    q1, q2 = grid(3, 5)
    motion = table_3.motion(q1, q2)
    at, turned = np.zeros((q1.size, 2)), np.zeros(q1.size)
    for n in range(1, 7):
        c, s = np.cos(turned), np.sin(turned)
        x, y = motion[:, 1], motion[:, 2]
        at = at + np.stack([c * x - s * y, s * x + c * y], axis=1)
        turned = turned + motion[:, 0]
        reached, rotation = table_3.predict(q1, q2, n)
        np.testing.assert_allclose(reached, at, atol=1e-14)
        np.testing.assert_allclose(rotation, turned, atol=1e-14)


def test_predict_without_rotation():
    c = np.zeros((3, 1, 1))
    c[1] = 0.1
    straight = MotionPolynomial(c, gait_domain())
    reached, rotation = straight.predict(1.0, 0.0, 5)
    np.testing.assert_allclose(reached, [0.5, 0])
    assert rotation == 0


def test_domain_is_kept(table_3):
    table_3.motion(np.radians([50, 90]), [-0.5, 0.5])
    with pytest.raises(InvalidInput, match=r"q1 = 1\.7 rad is outside"):
        table_3.motion(1.7, 0.0)
    with pytest.raises(InvalidInput, match=r"q2 = 0\.6 is outside .* -0\.5\.\.0\.5"):
        table_3.motion([1.0, 1.1], [0.0, 0.6])
    with pytest.raises(InvalidInput, match="q1 = nan"):
        table_3.motion(np.nan, 0.0)
    with pytest.raises(InvalidInput, match="increasing"):
        Domain((1.0, 1.0), (0, 1))


def test_bad_coefficients():
    with pytest.raises(InvalidInput, match=r"\(3, m, m\)"):
        MotionPolynomial(np.zeros((3, 2, 3)), gait_domain())
    with pytest.raises(InvalidInput, match="finite"):
        MotionPolynomial(np.full((3, 1, 1), np.nan), gait_domain())


def test_fit_recovers_table_3(table_3):
    q1, q2 = grid()
    fit = MotionPolynomial.fit(q1, q2, table_3.motion(q1, q2))
    np.testing.assert_allclose(
        fit.polynomial.coefficients, table_3.coefficients, atol=1e-12
    )
    assert (fit.worst < 1e-13).all() and (fit.left_out_rms < 1e-12).all()
    np.testing.assert_allclose(fit.r_squared, 1)


@pytest.mark.parametrize("order", range(5))
def test_fit_of_any_order(order):
    rng = np.random.default_rng(order)
    q1, q2 = grid(7, 8)
    motion = np.zeros((q1.size, 3))
    for i in range(order + 1):
        for j in range(order + 1 - i):
            motion += np.outer(q1**i * q2**j, rng.normal(size=3))
    fit = MotionPolynomial.fit(q1, q2, motion, order)
    np.testing.assert_allclose(fit.polynomial.motion(q1, q2), motion, atol=1e-10)
    assert fit.polynomial.coefficients.shape == (3, order + 1, order + 1)


def test_left_out_residuals_are_those_of_refits(table_3):
    rng = np.random.default_rng(3)
    q1, q2 = grid()
    motion = table_3.motion(q1, q2) + 0.01 * rng.normal(size=(q1.size, 3))
    fit = MotionPolynomial.fit(q1, q2, motion, domain=gait_domain())
    for k in range(0, q1.size, 4):
        rest = np.arange(q1.size) != k
        other = MotionPolynomial.fit(
            q1[rest], q2[rest], motion[rest], domain=gait_domain()
        )
        left_out = motion[k] - other.polynomial.motion(q1[k], q2[k])
        np.testing.assert_allclose(fit.left_out[k], left_out, atol=1e-12)
    assert (fit.left_out_rms > fit.rms).all() and (fit.worst >= fit.rms).all()
    assert ((fit.r_squared > 0) & (fit.r_squared < 1)).all()


def test_fit_refuses_what_it_cannot_determine():
    q1, q2 = grid()
    motion = np.zeros((q1.size, 3))
    fit = MotionPolynomial.fit
    with pytest.raises(InvalidInput, match="6 monomials but there are 4 points"):
        fit(q1[:4], q2[:4], motion[:4])
    with pytest.raises(InvalidInput, match="determine 3 of the 6"):
        fit(np.full(30, 1.0), q2, motion)
    with pytest.raises(InvalidInput, match="motion must be 30x3"):
        fit(q1, q2, motion[:, :2])
    with pytest.raises(InvalidInput, match="finite"):
        fit(q1, q2, motion + np.nan)
    with pytest.raises(InvalidInput, match="whole number"):
        fit(q1, q2, motion, order=1.5)
    # Constant data are no error; they have no variance to explain.
    assert np.isnan(fit(q1, q2, motion).r_squared).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_motion_model_foretells_what_the_walk_does(sign):
    pose = walk(ROBOT, 1.1, 0.2, 2 if sign > 0 else 1)[-1]
    moved, turned = PoseStepMotion(ROBOT, pose, sign).predict(1.3, -0.3, 2)
    there = pose
    for k in range(4):
        q1 = sign * 1.3 * (-1) ** k
        there = pose_step(ROBOT, there, gait_law(q1, -0.3), fixation(q1)).pose
    rotation, displacement = relative_motion(pose, there)
    assert turned == pytest.approx(rotation, abs=1e-6)
    assert np.allclose(moved, displacement, atol=1e-7)
