"""Simulations that tests of the gecko share."""

import pytest

from drakebots.robots.gecko import Simulation, plan, simulate
from drakebots.robots.gecko.engines import Walk, simulate_walk

SQUARE = ((0.25, -0.15), (0.40, -0.15), (0.40, 0.20), (0.25, 0.20))


@pytest.fixture(scope="session")
def course():
    """A short path around an obstacle, by poses."""
    return simulate(
        Simulation(targets=((0.65, 0.0),), obstacles=(SQUARE,), heading=0.0)
    )


@pytest.fixture(scope="session")
def space():
    """The paper's velocity space."""
    return plan()


@pytest.fixture(scope="session")
def driven():
    """A cycle in Drake."""
    return simulate_walk(Walk(cycles=1, time_limit=20.0))
