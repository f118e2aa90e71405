"""The table of least time: Bellman's equation, its bounds, and the walks it gives."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko import Problem, Simulation, simulate
from drakebots.robots.gecko.engines import PoseStep
from drakebots.robots.gecko.generator import (
    ArrivalTimes,
    GaitPatternGenerator,
    GeneratorOptions,
    LeastTime,
    MotionPolynomial,
    Published,
)
from drakebots.robots.gecko.plan import simulated_motion
from tests.helpers.polynomial_gecko import run_polynomial

TABLE = MotionPolynomial.table_3()


def straight_only() -> MotionPolynomial:
    """A robot of 10 cm per cycle straight ahead, whatever the gait."""
    c = np.zeros((3, 1, 1))
    c[1] = 0.1
    return MotionPolynomial(c, TABLE.domain)


@pytest.mark.long
def test_a_robot_on_a_line_needs_the_distance_over_its_stride():
    rule = ArrivalTimes(straight_only(), 0.05)
    for distance in (0.4, 0.9, 2.0, 3.7):
        count = rule.gait((distance, 0.0)).half_cycles
        # The soft edge begins at 2.5 cm and ends at 7.5.
        assert (distance - 0.075) / 0.05 <= count <= (distance - 0.025) / 0.05 + 2
    # A half cycle ends at the target.
    assert rule.gait((0.05, 0.0)).half_cycles == pytest.approx(1)


def test_a_walk_on_the_model_takes_the_time_that_the_table_says():
    rule, random = ArrivalTimes(TABLE, 0.05), np.random.default_rng(3)
    options = GeneratorOptions()
    for _ in range(40):
        far, bearing = random.uniform(0.05, 3.0), random.uniform(-np.pi, np.pi)
        target = far * np.array([np.cos(bearing), np.sin(bearing)])
        run = run_polynomial(GaitPatternGenerator([target], options), [0, 0], 0.0)
        assert run.reached
        # A touch of the soft edge counts less than one of the core.
        expected = rule.gait(target).half_cycles
        assert abs(run.half_cycles - expected) <= 2 + 0.1 * expected
        assert all(decision.n > 0 for decision in run.decisions)  # no escape


@pytest.mark.long
def test_the_published_rule_is_never_much_faster():
    random = np.random.default_rng(5)
    for _ in range(25):
        target = random.uniform(-1, 1, 2)
        counts = []
        for rule in (LeastTime(), Published()):
            options = GeneratorOptions(rule=rule)
            generator = GaitPatternGenerator([target], options)
            counts.append(run_polynomial(generator, [0, 0], 0.0).half_cycles)
        assert counts[0] <= counts[1] + 2


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("pressure", [False, True])
def test_targets_where_the_published_rule_circles_are_reached(size, pressure):
    for target in ((0.0, 0.08), (0.0, 0.15), (-0.18, 0.25), (0.0, -0.18), (-0.1, 0.0)):
        engine = PoseStep(pressure=pressure)
        problem = Simulation(targets=(target,), heading=0.0, size=size, engine=engine)
        result = simulate(problem)
        assert result.ok and result.metrics["half_cycles"] <= 32, target


def test_a_robot_that_turns_otherwise_than_its_model_arrives():
    """Half and twice the rotation, where the table is not true any more."""
    random = np.random.default_rng(7)
    for factor in (0.5, 2.0):  # at most 142 and 15 half cycles
        c = TABLE.coefficients.copy()
        c[0] *= factor
        robot = MotionPolynomial(c, TABLE.domain)
        for _ in range(20):
            target = random.uniform(-0.6, 0.6, 2)
            generator = GaitPatternGenerator([target])
            assert run_polynomial(generator, [0, 0], 0.0, robot=robot).reached


def test_escapes_grow():
    """A robot that does not move is never nearer: straight for 5, then 10, 15, ..."""
    generator = GaitPatternGenerator(
        [[1.0, 0.0]], GeneratorOptions(rule=LeastTime(patience=3))
    )
    straight = [generator.decide([0.0, 0.0], 0.0).n == 0 for _ in range(50)]
    runs = np.diff(np.flatnonzero(np.diff([0, *straight, 0])))[::2]
    assert runs[:3].tolist() == [5, 10, 15]


def test_the_model_of_a_pressure_limit_turns_less():
    free, limited = (simulated_motion(Problem(pressure=p)) for p in (False, True))
    turns = [np.degrees(m.motion(np.radians(90), 0.5)[0]) for m in (free, limited)]
    assert abs(turns[1]) < 0.7 * abs(turns[0])


def test_bad_arrival():
    with pytest.raises(InvalidInput, match="arrival"):
        ArrivalTimes(TABLE, 0.0)
