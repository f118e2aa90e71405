"""Robots that several files of tests stand on."""

from __future__ import annotations

import pytest

from drakebots.results import load_result
from tests.helpers.quad_skeletons import sprawled, upright
from tests.helpers.skinned_quad import skinned_quad
from tests.helpers.small_quad import planned_lift, small_robot


@pytest.fixture(scope="module")
def quads(tmp_path_factory):
    """Skeletons alone, by name."""
    folder = tmp_path_factory.mktemp("quads")
    return {"sprawled": sprawled(folder), "upright": upright(folder)}


@pytest.fixture(scope="module")
def beetle(quads):
    return quads["sprawled"]


@pytest.fixture(scope="module")
def cow(quads):
    return quads["upright"]


@pytest.fixture(scope="module")
def quad():
    """A coarse soft box on legs, for single steps."""
    return skinned_quad((4, 4, 2))


@pytest.fixture(scope="module")
def robot():
    """The small robot in both views."""
    return small_robot()


@pytest.fixture(scope="module")
def plan():
    """The small robot's plan to lift a foot."""
    return load_result(planned_lift()[1])
