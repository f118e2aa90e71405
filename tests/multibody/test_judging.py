"""What a verdict looks at: synthetic runs with one thing wrong each."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from pydrake.math import RollPitchYaw

from drakebots.core.run import RunEnd, Verdict
from drakebots.multibody import (
    FALLEN_TILT,
    LEANING,
    Finding,
    asked,
    drifted,
    fall,
    fell_at,
    has_fallen,
    judged,
    looked_at,
    moving,
    open_loops,
    saturated,
    strides_of,
    tilt,
    tilted,
    too_fast,
    went,
)

DONE = RunEnd(Verdict.SUCCESS, "reached 2 s", 2.0, 1.0)
LATE = RunEnd(Verdict.TIME_LIMIT, "stopped at the time limit", 1.0, 9.0)
BROKEN = RunEnd(Verdict.FAILED, "the state diverged", 1.0, 1.0)

angles = st.floats(-3.0, 3.0)
sizes = st.floats(1e-3, 1e2)


@given(angles, st.floats(-1.5, 1.5), angles, angles)
def test_tilt_is_the_angle_between_two_verticals(roll, pitch, yaw, other):
    """That of Drake's rotation matrices; turning about the vertical is no tilt."""
    rpy = np.array([roll, pitch, yaw])
    up = RollPitchYaw(rpy).ToRotationMatrix().matrix()[2]
    assert tilt(rpy) == pytest.approx(np.arccos(np.clip(up[2], -1, 1)), abs=1e-6)
    # arccos is exact to sqrt(eps) near zero.
    assert tilt(rpy, rpy + np.array([0.0, 0.0, other])) == pytest.approx(0.0, abs=1e-7)
    many = tilt(np.tile(rpy, (3, 1)), np.zeros(3))
    assert many == pytest.approx(float(tilt(rpy)))


@given(st.floats(0.0, np.pi), st.floats(-2.0, 2.0))
def test_a_fall_is_a_large_tilt_or_half_the_height(angle, height):
    fallen = bool(has_fallen(angle, height))
    assert fallen == (angle > FALLEN_TILT or height < 0.5)
    assert bool(fall(angle, height)) == fallen
    assert has_fallen(np.nan) and has_fallen(0.0, np.nan)


def test_how_it_fell_is_said():
    assert fall(np.radians(50.4)) == "fell: tilted by 50 degrees"
    assert fall(0.1, 0.314) == "fell: sank to 31% of its height"


def test_a_success_without_doubts_is_one():
    calm = [tilted(0.0), drifted(0.0, 1.0), fell_at(None), *strides_of([0.2], 0.2)]
    assert judged(DONE, calm) == (Verdict.SUCCESS, "reached 2 s")
    assert judged(LATE, calm) == (Verdict.TIME_LIMIT, LATE.message)


def test_doubts_are_a_but_and_keep_the_verdict():
    lean, drift = tilted(np.radians(19)), drifted(0.4, 1.0)
    said = "it walks, but it tilts by 19 degrees, it drifts by 0.4 m; "
    assert judged(DONE, [lean, drift], "it walks") == (
        Verdict.SUCCESS,
        f"{said}reached 2 s",
    )
    verdict, message = judged(LATE, [lean, drift], "it walks")
    assert verdict is Verdict.TIME_LIMIT and message.startswith(said)


def test_failures_come_before_doubts_and_a_fall_before_all():
    away, lean = drifted(3.7, 1.0), tilted(np.radians(80))
    verdict, message = judged(DONE, [tilted(0.3), lean, away])
    assert verdict is Verdict.FAILED
    assert message == "it tilts by 80 degrees, it drifts by 3.7 m"
    assert judged(DONE, [fell_at(1.234), lean, away])[1] == "it fell at 1.2 s"
    assert judged(LATE, [fell_at(1.234)])[0] is Verdict.FAILED
    assert judged(BROKEN, [away])[1] == "the state diverged"
    both = "it fell at 0.5 s; then the state diverged"
    assert judged(BROKEN, [fell_at(0.5), away])[1] == both


@given(st.floats(allow_nan=True), st.floats(0, 1e6), st.floats(0, 1e6))
def test_no_number_is_no_success(value, limit, more):
    """Each value is one of: a success, one with a but, none; NaN is none."""
    finding = Finding("x", value, "m", limit, limit + more, f"{value}")
    verdict, message = judged(DONE, [finding])
    assert (verdict is Verdict.SUCCESS) == (value <= limit + more)
    if verdict is Verdict.SUCCESS:
        assert ("but" in message) == (value > limit)


@given(sizes, st.floats(0.0, 3.0))
def test_drift_counts_in_sizes(size, share):
    finding = drifted(share * size, size)
    assert finding.doubtful == (finding.value > 0.25 * size)
    assert finding.failed == (finding.value > size)


def test_leaning_and_drifting_leave_the_same_stance():
    """A rod that leans by LEANING has its top a quarter of its length aside."""
    assert np.tan(LEANING) == pytest.approx(0.25)


@given(st.floats(0.01, 3.0), st.floats(1.0, 30.0))
def test_nothing_falls_faster_than_the_limit(size, gravity):
    """A point that fell by l, and a rod of l/10 that swung down, are just allowed."""
    fallen = np.sqrt(2 * gravity * size)
    rod = size / 10
    # (1/2) (m s^2/3) w^2 = m g s
    swung = np.sqrt(6 * gravity / rod)
    slides = np.array([True, False])

    def at(factor):
        speeds = factor * np.array([fallen, swung])
        return moving(speeds, ["z", "knee"], slides, size, gravity)

    assert at(0.99).doubtful and not at(0.99).failed
    assert at(1.01).failed and "faster than a fall" in at(1.01).words
    assert not at(0.01).doubtful


def test_a_spinning_link_is_named():
    """As the light crank of a linkage whose loops are open, at 237 rad/s."""
    speeds, names = np.array([0.02, -237.5, 3.0]), ["base_x", "crank", "hip"]
    slides = np.array([True, False, False])
    found = moving(speeds, names, slides, 0.5, 9.81)
    verdict, message = judged(DONE, [found])
    assert verdict is Verdict.FAILED and found.value == 237.5
    assert message.startswith("crank ends at 238 rad/s, faster than a fall")


def gaps(*rows, names=("hip", "knee")):
    rows = np.array(rows, float)
    return xr.Dataset(
        {"loop_gap": (("time", "loop"), rows)}, {"loop": list(names[: rows.shape[1]])}
    )


@pytest.mark.parametrize(
    "rows, verdict, said",
    [
        ([[0, 0], [0, 5e-4]], Verdict.SUCCESS, "reached 2 s"),
        ([[0, 0], [0, 5e-3]], Verdict.SUCCESS, "but its loops open by 0.005 m (knee)"),
        ([[0, 0], [0.05, 0]], Verdict.FAILED, "its loops open by 0.05 m (hip)"),
        ([[0, 0.05], [0, 0]], Verdict.FAILED, "are open by 0.05 m at the start (knee)"),
        ([[0, np.nan], [0, 0]], Verdict.FAILED, "loops"),
    ],
)
def test_loops(rows, verdict, said):
    """Of a robot of 1 m."""
    found, message = judged(DONE, open_loops(gaps(*rows), 1.0))
    assert found is verdict and said in message


def test_without_loops_nothing_is_said_of_them():
    assert open_loops(xr.Dataset(), 1.0) == []


UNEVEN = [-0.17, 0.68, 0.24, -0.02, 0.26]


@pytest.mark.parametrize(
    "strides, verdict, said",
    [
        ([0.19, 0.2, 0.21], Verdict.SUCCESS, "reached"),
        ([], Verdict.SUCCESS, "reached"),
        (
            [0.13, 0.26, 0.2],
            Verdict.SUCCESS,
            "it walks, but its strides are 0.13 to 0.26 m of 0.2 m; reached 2 s",
        ),
        (UNEVEN, Verdict.FAILED, "its strides are -0.17 to 0.68 m of 0.2 m"),
        ([0.006] * 5, Verdict.FAILED, "did not walk: made 3% of the planned stride"),
        ([-0.2] * 3, Verdict.FAILED, "did not walk: made -100%"),
        ([0.15] * 3, Verdict.SUCCESS, "it walks, but it makes 75% of its stride"),
        ([0.28] * 3, Verdict.SUCCESS, "it walks, but it makes 140% of its stride"),
        ([0.34] * 3, Verdict.FAILED, "did not walk: made 170% of the planned stride"),
    ],
)
def test_strides(strides, verdict, said):
    found, message = judged(DONE, strides_of(strides, 0.2), "it walks")
    assert found is verdict and message.startswith(said)


def test_a_robot_that_is_pushed_may_make_other_strides():
    found, message = judged(DONE, strides_of(UNEVEN, 0.2, pushed=True), "it walks")
    assert found is Verdict.SUCCESS
    assert message.startswith("it walks, but its strides are -0.17 to 0.68 m")


@given(st.lists(st.floats(-1.0, 1.0), min_size=1), st.floats(0.01, 1.0), sizes)
def test_strides_count_as_shares_of_the_planned_one(strides, planned, unit):
    """In any unit, and of a walk backward, the same is said of them."""
    one = strides_of(strides, planned)
    for factor in (unit, -unit):
        other = strides_of(factor * np.array(strides), factor * planned)
        for a, b in zip(one, other):
            assert a.value == pytest.approx(b.value, rel=1e-6, abs=1e-9)


def test_strides_that_nobody_planned_should_be_equal():
    assert strides_of([1.0, 1.1], unit="mm")[0].doubtful is False
    (spread,) = strides_of([1.0, 3.0], unit="mm")
    assert spread.doubtful and spread.words == "its strides are 1 to 3 mm"
    assert not spread.failed


def test_a_motor_at_its_limit_is_named():
    efforts = np.array([[1.0, -5.0], [0.2, -5.0], [0.1, 1.0], [0.0, 0.0]])
    (found,) = saturated(efforts, np.array([np.inf, 5.0]), ["hip", "knee"])
    assert found.value == 0.5 and found.doubtful and not found.failed
    assert found.words == "knee is at its limit of effort for 50% of the time"
    assert saturated(efforts, np.array([0.0, np.inf]), ["hip", "knee"]) == []


def test_a_joint_that_is_faster_than_its_file_allows_is_said():
    rates = np.array([[9.0, 1.0], [9.0, -4.0], [9.0, 4.0], [9.0, 0.0]])
    data = xr.Dataset(
        {"velocity": (("time", "rate"), rates)}, {"rate": ["hip", "knee"]}
    )
    (found,) = too_fast(data, np.array([np.inf, 3.0]))
    assert found.doubtful and not found.failed
    assert (
        found.words == "knee is faster than its limit of velocity for 50% of the time"
    )
    assert too_fast(data, np.full(2, np.inf)) == []


def test_half_of_what_was_asked_is_the_least():
    assert asked("turn", 1.7, "").failed and asked("turn", 0.49, "").failed
    assert asked("turn", 0.51, "").doubtful and not asked("turn", 0.51, "").failed
    assert went(3.0, 2.0).value == 0.0 and went(0.9, 2.0).failed


def test_what_was_looked_at_is_kept():
    kept = looked_at([tilted(np.radians(19)), Finding("x", 1.0, "m", 2.0, np.inf, "")])
    assert kept["tilt [deg]"]["is"] == pytest.approx(19)
    assert kept["tilt [deg]"]["fails"] == pytest.approx(45)
    assert kept["x [m]"] == {"is": 1.0, "limit": 2.0}
