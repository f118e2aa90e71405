"""Algorithm 1, and the course of Fig. 12 by the motion polynomial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.robots.gecko.generator import (
    GaitPatternGenerator,
    GeneratorOptions,
    LeastTime,
    MotionPolynomial,
    Published,
)
from drakebots.robots.gecko.simulate import paper_course
from tests.helpers.polynomial_gecko import half_cycle, run_polynomial

TABLE = MotionPolynomial.table_3()


class BlackBox:
    domain = TABLE.domain

    def predict(self, q1, q2, n):
        return TABLE.predict(q1, q2, n)


def test_defaults_are_the_papers():
    options = GeneratorOptions()
    assert (options.arrival, Published().horizon) == pytest.approx((0.05, 4))
    assert Published().sum == "corrected" and options.rule == LeastTime()


def test_horizon_grows_only_while_the_target_gets_further():
    options = GeneratorOptions(rule=Published())
    ahead = GaitPatternGenerator([[0.5, 0]], options).decide([0, 0], 0.0)
    assert ahead.n == 1 and ahead.distance < ahead.d0 == pytest.approx(0.5)
    assert np.degrees(ahead.q1) == pytest.approx(90)
    options = GeneratorOptions(rule=Published(sum="paper"))
    behind = GaitPatternGenerator([[-0.35, -0.2]], options).decide([0, 0], 0.0)
    assert behind.n == 4 and behind.distance > behind.d0
    assert (np.degrees(behind.q1), behind.q2) == pytest.approx((90, 0.5))
    short = replace(options, rule=Published(horizon=2, sum="paper"))
    assert GaitPatternGenerator([[-0.35, -0.2]], short).decide([0, 0], 0.0).n == 2


def test_target_is_seen_from_the_robot():
    here = GaitPatternGenerator([[0.4, 0.1]]).decide([0, 0], 0.0)
    c, s = np.cos(2.0), np.sin(2.0)
    target = np.array([1.0, 2.0]) + np.array([[c, -s], [s, c]]) @ [0.4, 0.1]
    there = GaitPatternGenerator([target]).decide([1.0, 2.0], 2.0)
    assert (there.q1, there.q2) == pytest.approx((here.q1, here.q2))


def test_targets_are_passed_several_at_once():
    targets = [[0.01, 0], [0.0, 0.02], [0.5, 0], [0.01, 0]]
    generator = GaitPatternGenerator(targets)
    decision = generator.decide([0, 0], 0.0)
    assert decision.target == generator.index == 2
    assert generator.decide([0.5, 0], 0.0).target == 3
    assert generator.decide([0.0, 0], 0.0) is None
    assert generator.index == 4 and generator.decide([5, 5], 0.0) is None


def test_bad_input():
    with pytest.raises(InvalidInput, match=r"targets must be .* also at \[1, 0\]"):
        GaitPatternGenerator([[0, 0], [np.inf, 0]])
    for targets in ([], [1, 2], [[1, 2, 3]], [[1, 2], [3]], "abc"):
        with pytest.raises(InvalidInput, match="targets must be"):
            GaitPatternGenerator(targets)
    generator = GaitPatternGenerator([[1, 0]])
    with pytest.raises(InvalidInput, match="position"):
        generator.decide([np.nan, 0], 0.0)
    with pytest.raises(InvalidInput, match="heading"):
        generator.decide([0, 0], np.nan)
    with pytest.raises(InvalidInput, match="arrival"):
        GeneratorOptions(arrival=0)
    with pytest.raises(InvalidInput, match="horizon"):
        Published(horizon=0)
    with pytest.raises(UnknownName, match="sum"):
        Published(sum="other")
    with pytest.raises(InvalidInput, match="Rule"):
        GeneratorOptions(rule="other")
    with pytest.raises(InvalidInput, match="polynomial"):
        GeneratorOptions(motion=BlackBox())


def test_two_half_cycles_make_a_cycle():
    q1, q2 = np.radians([50, 70, 90]), np.array([-0.5, 0.1, 0.4])
    step, turn = half_cycle(TABLE, q1, q2)
    z, motion = step[:, 0] + 1j * step[:, 1], TABLE.motion(q1, q2)
    whole = z + np.exp(1j * turn) * z
    np.testing.assert_allclose(whole, motion[:, 1] + 1j * motion[:, 2], atol=1e-15)
    np.testing.assert_allclose(2 * turn, motion[:, 0])


# Half cycles from the start of Fig. 12; the paper's experiment took 45..51 steps.
@pytest.mark.parametrize(
    "sum, arrival, half_cycles",
    [
        ("corrected", 0.05, 63),
        ("corrected", 0.1, 56),
        ("paper", 0.05, 139),
        ("paper", 0.1, 53),
    ],
)
def test_course_of_figure_12(sum, arrival, half_cycles):
    rule = Published(sum=sum, patience=0)
    options = GeneratorOptions(arrival=arrival, rule=rule)
    run = run_polynomial(
        GaitPatternGenerator(paper_course(), options), [0, 0], np.pi / 2
    )
    assert run.reached
    assert abs(run.half_cycles - half_cycles) <= 2
    assert len(run.position) == len(run.heading) == run.half_cycles + 1


@pytest.mark.parametrize("starts", [2, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("sum", ["corrected", "paper"])
@pytest.mark.parametrize("arrival", [0.05, 0.1])
def test_course_from_anywhere(arrival, sum, starts):
    rule = Published(sum=sum, patience=0)
    options = GeneratorOptions(arrival=arrival, rule=rule)
    rng = np.random.default_rng(12)
    for _ in range(starts):
        start, heading = rng.uniform(-0.3, 0.3, 2), rng.uniform(-np.pi, np.pi)
        generator = GaitPatternGenerator(paper_course(), options)
        run = run_polynomial(generator, start, heading)
        assert run.reached and run.half_cycles < 200
        for target in paper_course():
            gaps = np.linalg.norm(run.position - target, axis=1)
            assert gaps.min() < arrival


def test_robot_that_turns_less_than_its_model_still_gets_there():
    c = TABLE.coefficients.copy()
    c[0] *= 0.7
    robot = MotionPolynomial(c, TABLE.domain)
    options = GeneratorOptions(arrival=0.1)
    generator = GaitPatternGenerator(paper_course(), options)
    run = run_polynomial(generator, [0, 0], np.pi / 2, robot=robot)
    assert run.reached and run.half_cycles < 120


def test_run_gives_up():
    run = run_polynomial(GaitPatternGenerator([[50, 0]]), [0, 0], 0.0, most=7)
    assert not run.reached and run.half_cycles == 7
    assert run.length == pytest.approx(7 * 0.068, rel=0.05)


def test_any_model_in_the_loop():
    options = GeneratorOptions(rule=Published())
    ours = run_polynomial(GaitPatternGenerator([[0.5, 0.2]], options), [0, 0], 0.0)
    options = replace(options, motion=BlackBox())
    run = run_polynomial(GaitPatternGenerator([[0.5, 0.2]], options), [0, 0], 0.0)
    assert run.reached and abs(run.half_cycles - ours.half_cycles) <= 1


def test_far_target_is_approached_over_four_half_cycles():
    options = GeneratorOptions(rule=Published())
    generator = GaitPatternGenerator([[-0.35, -0.2]], options)
    assert generator.decide([0, 0], 0.0).n == 4
