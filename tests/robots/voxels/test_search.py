"""The search for a gait: its waves, its bookkeeping, how it ends."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Verdict
from drakebots.robots.voxels import Feet, SearchProblem, Simulation, search_gait
from drakebots.robots.voxels import search as gait_search
from drakebots.robots.voxels.search import BOUNDS, PAPER, wave


class Walked:
    """What a walk would return, for a travel that the gait decides."""

    def __init__(self, problem):
        table = problem.poses / problem.stroke
        # Best where red lags blue by a quarter of a cycle.
        lag = np.abs(np.roll(table[:, 0], 2) - table[:, 2]).mean()
        self.metrics = {
            "travel_mm_per_cycle": 5 - lag,
            "turn_deg_per_cycle": 0.0,
            "tipped_over": False,
        }


@pytest.fixture
def walked(monkeypatch):
    monkeypatch.setattr(gait_search, "simulate", Walked)


def test_waves_stay_within_the_stroke():
    random = np.random.default_rng(0)
    low, high = np.array(BOUNDS).T
    for _ in range(50):
        table = wave(random.uniform(low, high), 8)
        assert table.shape == (8, 4)
        assert np.abs(table).max() <= 1
    assert np.allclose(wave(PAPER)[:, 1], -wave(PAPER)[:, 0])


def test_the_search_finds_what_travels(walked):
    few = search_gait(SearchProblem(walks=12))
    many = search_gait(SearchProblem(walks=400))
    assert many.verdict is Verdict.SUCCESS
    assert many.metrics["walks"] == 400
    assert many.metrics["travel_mm_per_cycle"] > few.metrics["travel_mm_per_cycle"]
    assert many.metrics["travel_mm_per_cycle"] > 4.7
    best = max(many.metrics["travel_mm_of_each_walk"])
    assert many.metrics["travel_mm_per_cycle"] == best


def test_a_turn_to_the_right_costs_and_is_reported_as_such(monkeypatch):
    class Turned(Walked):
        def __init__(self, problem):
            super().__init__(problem)
            self.metrics["turn_deg_per_cycle"] = -3.0

    monkeypatch.setattr(gait_search, "simulate", Turned)
    found = search_gait(SearchProblem(walks=1, turn_weight=0.02)).metrics
    assert found["turn_deg_per_cycle"] == pytest.approx(-3.0)
    cost = 0.02 * np.radians(3.0)
    assert found["score"] == pytest.approx(1e-3 * found["travel_mm_per_cycle"] - cost)


def test_a_gait_counts_by_all_its_grounds(monkeypatch):
    """Two grounds on which the lag helps and hurts: the gait goes alike on both."""

    class OnTwoGrounds(Walked):
        def __init__(self, problem):
            super().__init__(problem)
            if problem.feet.back < 0.5:
                travel = 8.5 - self.metrics["travel_mm_per_cycle"]
                self.metrics["travel_mm_per_cycle"] = travel

    monkeypatch.setattr(gait_search, "simulate", OnTwoGrounds)
    slick, rough = (Simulation(feet=Feet(back=mu)) for mu in (0.1, 0.8))
    result = search_gait(SearchProblem(slick, (rough,), walks=800))
    found = result.metrics
    assert found["walks"] == 800
    # What is more of one is less of the other, so the best shares are equal ones.
    share = np.array(found["travel_mm_of_the_best"]) / [
        OnTwoGrounds(walk).metrics["travel_mm_per_cycle"] for walk in (slick, rough)
    ]
    assert share.min() == pytest.approx(found["score"], rel=1e-9)
    assert share[0] == pytest.approx(share[1], rel=0.05)


def test_a_race_gives_up_what_is_behind(monkeypatch):
    """Losers take one walk of three, and the best has walked everywhere."""
    monkeypatch.setattr(gait_search, "simulate", Walked)
    walks = [Simulation(feet=Feet(back=mu)) for mu in (0.1, 0.5, 0.8)]
    found = search_gait(SearchProblem(walks[0], tuple(walks[1:]), walks=300)).metrics
    assert len(found["travel_mm_of_each_walk"]) > 200
    assert np.isfinite(found["travel_mm_of_the_best"]).all()
    assert found["score"] > 0.99  # the paper's own gait is the best here


def test_a_seed_repeats(walked):
    a, b = (search_gait(SearchProblem(walks=40, seed=3)) for _ in range(2))
    assert np.array_equal(a.data.control, b.data.control)


def test_a_time_limit_keeps_the_best(walked):
    result = search_gait(SearchProblem(walks=10**6, time_limit=0.2))
    assert result.verdict is Verdict.TIME_LIMIT
    assert result.metrics["walks"] > 10


def test_an_interruption_keeps_the_best(monkeypatch):
    def interrupted(problem):
        raise KeyboardInterrupt

    monkeypatch.setattr(gait_search, "simulate", interrupted)
    assert search_gait(SearchProblem()).verdict is Verdict.INTERRUPTED


@pytest.mark.long
def test_a_real_walk():
    result = search_gait(SearchProblem(walks=1))
    assert result.metrics["walks"] == 1
    assert abs(result.metrics["travel_mm_per_cycle"]) < 30


@pytest.mark.parametrize(
    "options",
    [{"walks": 0}, {"poses": 2}, {"population": 3}, {"turn_weight": -1.0}],
)
def test_bad_searches_are_named(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        SearchProblem(**options)
