"""Shared by all tests."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, settings

logging.getLogger("drake").setLevel(logging.ERROR)

# Time limits of single examples say more about the machine than about us.
settings.register_profile(
    "drakebots", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("drakebots")


@pytest.fixture(scope="module")
def interpreted():
    """Programs small enough that compiling them takes longer than solving."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAKEBOTS_COMPILE", "0")
        yield
