"""Sweeps: one problem over many values, on the cores of this machine or of a cluster.

    over = {"frequency": (2, 10, 30), "surface": ("card", "teflon")}
    table = sweep(hamr.Simulation(), over, out="out")
    table.data.stride_mm_per_cycle.sel(surface="card")

`cases` makes the problems of a sweep and their keys, `workers` solves them elsewhere,
`sweep` keeps what they came to in a folder and gathers it into one result.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.sweeps.cases import Case, case_key, make_cases
    from drakebots.sweeps.sweep import case_rows, sweep

__all__, __getattr__, __dir__ = lazy_face(__name__)
