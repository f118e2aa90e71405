"""Kinds of results: "robot.what", one kind for one layout of data.

Files written before kinds were unique say "simulation", "plan", ...; what they are
follows from their data, and :func:`unique_kind` is the only place that looks there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_OLD = {
    "plan": "",
    "simulation": "",
    "tracking": "hamr.track",
    "velocity space": "gecko.velocity_space",
    "gait search": "voxels.gait_search",
    "frame plan": "quads.frames",
    "passive.simulation": "legged.simulation",
}
"""Earlier kinds; "" where several robots shared one."""


def unique_kind(
    kind: str, model: str, metrics: Mapping[str, Any], variables: Collection[str]
) -> str:
    """The unique kind of a stored result.

    Args:
        kind: the stored kind.
        model: the model of the result.
        metrics: the metrics of the result.
        variables: names of the variables in its dataset.
    """
    if kind not in _OLD or not isinstance(metrics, Mapping):
        return kind
    if kind == "plan":
        if "node_position" in variables or "control" in variables:
            return "voxels.plan"
        if "stages" in metrics:
            return "quads.plan"
        if "peak_torque" in metrics:
            return "quads.space_time"
        return "hamr.plan" if model == "hamr" else "locomotion.plan"
    if kind == "simulation":
        if "frames_refined" in metrics:
            return "quads.track"
        if metrics.get("system") == "skinned":
            played = "tracking_error_rad" in metrics
            return "skin.simulation" if played else "quads.sap_track"
        if model == "gecko" and "alpha" in variables:
            return "gecko.simulation"
        if model == "voxel":
            return "voxels.simulation"
        return "hamr.simulation" if "gait" in metrics else "legged.simulation"
    return _OLD[kind]
