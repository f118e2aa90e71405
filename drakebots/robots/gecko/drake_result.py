"""What a run of the gecko in Drake left behind, as a labelled result."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drakebots.results import Result, provenance
from drakebots.robots.gecko.diagram import GeckoDiagram
from drakebots.robots.gecko.parameters import FEET, LIMBS, MARKERS
from drakebots.robots.gecko.suction_switch import SuctionSwitch
from drakebots.simulation import RunEnd


def make_result(
    built: GeckoDiagram,
    switch: SuctionSwitch,
    end: RunEnd,
    context,
    *,
    problem: dict,
    seed: int,
    cycle: float | None,
    **metrics,
) -> Result:
    """The result of a run.

    Args:
        built, switch, end, context: of the run.
        problem: what was simulated, for the provenance.
        seed: of the camera's noise.
        cycle: period of a constant gait [s]; None for gaits that change.
        metrics: more of them.
    """
    data = run_dataset(built, switch, context, end.time)
    drift = data.foot_drift.max("time")
    worst = {f"drift of {foot} [m]": float(drift.sel(foot=foot)) for foot in FEET}
    return Result(
        kind="simulation",
        model="gecko",
        verdict=end.verdict,
        message=end.message,
        data=data,
        residuals=worst,
        timings={"simulate": end.wall},
        metrics={
            "real_time_factor": end.time / max(end.wall, 1e-12),
            "half_cycles": int(data.half_cycle[-1]),
            **({} if cycle is None else last_cycle(data, cycle)),
            **metrics,
        },
        provenance=provenance(built.body.drake.model.path, problem, seed),
    )


def last_cycle(data: xr.Dataset, period: float) -> dict[str, float]:
    """Motion of the last full cycle in the body frame at its start, in SI."""
    done = int(np.floor(float(data.time[-1]) / period + 1e-6))
    if done < 1:
        return {}
    a, b = (data.sel(time=k * period, method="nearest") for k in (done - 1, done))
    dx, dy = (b.marker_position - a.marker_position).sel(marker="front").values
    c, s = np.cos(float(a.heading)), np.sin(float(a.heading))
    return {
        "rotation_per_cycle_rad": float(b.heading - a.heading),
        "forward_per_cycle_m": float(c * dx + s * dy),
        "left_per_cycle_m": float(-s * dx + c * dy),
        "distance_per_cycle_m": float(np.hypot(dx, dy)),
    }


def run_dataset(
    built: GeckoDiagram, switch: SuctionSwitch, context, until: float = np.inf
) -> xr.Dataset:
    """All that a run logged up to a time [s], in SI."""
    body = built.body
    times, states = built.logged(context, "state")
    good = np.isfinite(states).all(axis=1) & (times <= until + 1e-9)
    keep = np.flatnonzero(good)[np.diff(times[good], prepend=-1.0) > 0]
    times, states = times[keep], states[keep]
    logs = {name: built.logged(context, name)[1][keep] for name in built.loggers}
    nq = body.plant.num_positions()
    held = switch.held_at(times)
    markers, drift, twist = _geometry(body, states[:, :nq], held)
    gait = logs["gait"]
    variables = {
        "marker_position": (("time", "marker", "axis"), markers, "m"),
        "heading": (("time",), body.pose(states[:, :nq])[:, 2], "rad"),
        "alpha": (("time", "limb"), body.limbs.angles(states[:, :nq]), "rad"),
        "alpha_ref": (("time", "limb"), logs["alpha_ref"], "rad"),
        "fixation": (("time", "foot"), held.astype(float), "1"),
        "fixation_ref": (("time", "foot"), logs["fixation"], "1"),
        "foot_drift": (("time", "foot"), drift, "m"),
        "cup_twist": (("time", "foot"), twist, "rad"),
        "phase": (("time",), gait[:, 0], "1"),
        "q1": (("time",), gait[:, 1], "rad"),
        "q2": (("time",), gait[:, 2], "1"),
        "half_cycle": (("time",), gait[:, 3], "1"),
    }
    for name, units in (("pressure", "Pa"), ("valve", "1")):
        if name in logs:
            variables[name] = (("time", "limb"), logs[name], units)
    return xr.Dataset(
        {n: (dims, values, {"units": u}) for n, (dims, values, u) in variables.items()},
        {
            "time": ("time", times, {"units": "s"}),
            "marker": list(MARKERS),
            "axis": ["x", "y"],
            "limb": list(LIMBS),
            "foot": list(FEET),
        },
    )


def _geometry(body, positions: np.ndarray, held: np.ndarray):
    """Markers (T, 6, 2) [m], drift (T, 4) [m] and twist (T, 4) [rad]."""
    plant, suction = body.plant, body.suction
    context = plant.CreateDefaultContext()
    markers = np.zeros((len(positions), len(MARKERS), 2))
    drift, twist = np.zeros((2, len(positions), len(FEET)))
    for k, q in enumerate(positions):
        plant.SetPositions(context, q)
        markers[k] = body.markers(context)
        gap = suction.feet(context) - suction.anchors(context)
        drift[k] = np.where(held[k], np.linalg.norm(gap, axis=1), 0.0)
        twist[k] = np.where(held[k], suction.twist(context), 0.0)
    return markers, drift, twist
