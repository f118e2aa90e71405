"""Shared by all tests."""

from __future__ import annotations

import logging

from hypothesis import HealthCheck, settings

logging.getLogger("drake").setLevel(logging.ERROR)

# Time limits of single examples say more about the machine than about us.
settings.register_profile(
    "drakebots", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("drakebots")
