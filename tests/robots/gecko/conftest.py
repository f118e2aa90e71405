"""Simulations that tests of the gecko share."""

import pytest

from drakebots.robots.gecko.drake import DrakeWalk, simulate_walk
from drakebots.robots.gecko.generator import plan
from drakebots.robots.gecko.simulate import GeckoSimulation, simulate

SQUARE = ((0.25, -0.15), (0.40, -0.15), (0.40, 0.20), (0.25, 0.20))


@pytest.fixture(scope="session")
def course():
    """A short path around an obstacle, by poses."""
    return simulate(
        GeckoSimulation(targets=((0.65, 0.0),), obstacles=(SQUARE,), heading=0.0)
    )


@pytest.fixture(scope="session")
def space():
    """The paper's velocity space."""
    return plan()


@pytest.fixture(scope="session")
def driven():
    """A cycle in Drake."""
    return simulate_walk(DrakeWalk(cycles=1, time_limit=20.0))
