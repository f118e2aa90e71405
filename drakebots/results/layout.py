"""Layout of the data of each kind of result, checked before any use of them.

A file may hold anything that netCDF can, and is summarized as it is. Plots, pages,
tracks and exports take variables for what their names promise, so :func:`check_layout`
looks at dimensions, units, labels and numbers first, and says in a line what is wrong.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.results.container import AGAIN
from drakebots.results.result import Result

_LAYOUT = {
    "time axis [m]": "base_position base_position_planned com",
    "time axis [N]": "push",
    "time angle [rad]": "base_rpy base_rpy_planned",
    "cycle_time axis [m]": "cycle_position",
    "cycle_time angle [rad]": "cycle_rpy",
    "time foot axis [m]": "foot_position",
    "time foot axis [m/s]": "foot_velocity sole_velocity",
    "time foot axis [N]": "foot_force foot_force_planned",
    "time loop [m]": "loop_gap",
    "time coupler": "coupler_slip",
    "time coordinate, time position_name": "position",
    "time rate, time velocity_name": "velocity",
    "time actuator [V]": "voltage voltage_planned",
    "sample actuator [V]": "feedforward",
    "time actuator [N]": "actuator_force",
    "time actuator [m]": "actuator_position control actuator_command actuator_length",
    "time actuator [m/s]": "actuator_velocity encoder_velocity",
    "time leg axis [m]": "leg_position leg_planned leg_estimated leg_seen",
    "time leg axis [m/s]": "leg_velocity_planned leg_velocity_estimated",
    "time node axis [m]": "node_position",
    "time marker axis [m]": "marker_displacement",
    "time marker axis, q1 q2 time marker axis [m]": "marker_position",
    "time voxel axis [m]": "voxel_position",
    "time voxel wxyz [1]": "voxel_quaternion",
    "time input_name": "input",
    "input_name": "input_limit",
    "time motor, time joint": "torque",
    "time link axis [N]": "link_force",
    "time patch axis [N]": "patch_force contact_force",
    "time patch axis [m]": "patch_position",
    "time [1]": "half_cycle worst_volume_ratio",
    "time, q1 q2 time [rad]": "heading",
    "time limb, q1 q2 time limb [rad]": "alpha alpha_ref",
    "time limb, q1 q2 time limb [m]": "ell",
    "time, q1 [rad]": "q1",
    "time, q2 [1]": "q2",
    "q1 q2 component": "motion",
    "time foot [1]": "fixation",
    "variable": "decision",
    "skin_time vertex axis [m]": "skin_position",
    "skin_time vertex [Pa]": "skin_stress",
    "vertex axis [m]": "skin_rest",
    "triangle corner [1]": "skin_triangle",
    "glued [1]": "skin_glued",
    "solve [s]": "solve_time solve_seconds",
    "plan [s]": "horizon_time",
    "plan knot point axis, time": "horizon",
}
"""Dimensions [unit] of variables by their names; two, where kinds differ."""

_SIZES = {"angle": 3, "wxyz": 4, "corner": 3}
_LABELLED = (
    *("axis", "angle", "foot", "coordinate", "rate", "position_name", "velocity_name"),
    *("actuator", "leg", "marker", "limb", "input_name", "motor", "joint", "link"),
    *("patch", "coupler"),
)
"""Dimensions whose items have names."""

_MOVES = "base_position base_rpy position velocity foot_position foot_velocity"
_HAMR = f"{_MOVES} foot_force loop_gap voltage"
_NEEDED = {
    "hamr.simulation": f"{_HAMR} actuator_force actuator_position actuator_velocity",
    "hamr.plan": f"{_HAMR} slack",
    "hamr.track": f"{_HAMR} base_position_planned leg_position leg_planned"
    " leg_estimated voltage_planned actuator_position actuator_velocity",
    "legged.simulation": _MOVES,
    "locomotion.plan": f"{_MOVES} foot_force input",
    "legged.track": f"{_MOVES} foot_force foot_force_planned input input_limit power"
    " base_position_planned",
    "legged.mpc": f"{_MOVES} torque push solve_time solve_seconds",
    "voxels.simulation": f"{_MOVES} node_position marker_position voxel_position"
    " voxel_quaternion actuator_command foot_force node_place"
    " marker_displacement_pom",
    "voxels.plan": "control node_position actuator_node actuator_axis",
    "voxels.gait_search": "control",
    "gecko.simulation": "marker_position heading alpha fixation half_cycle q1 q2",
    "gecko.velocity_space": "motion q1 q2 marker_position heading alpha ell",
    "skin.simulation": "",  # what it lacks is left out of its pictures
    "quads.plan": "com",
    "quads.space_time": "com",
    "quads.frames": "com",
    "quads.control": "patch_force base_position base_rpy",
    "quads.track": "com planned_roll_pitch",
}
"""Variables without which a kind cannot be drawn or executed."""

_TOGETHER = {"legged.mpc": ("horizon", "horizon_time")}
"""Variables that are not always there, by kind, with those that they cannot be drawn
without."""

LARGEST = 1e15
"""Largest number that is drawn or executed: graphics square it, in single precision."""

_PROMISES = {
    name: [tuple(words.partition("[")[0].split()) for words in where.split(",")]
    for where, names in _LAYOUT.items()
    for name in names.split()
}
_UNITS = {
    name: where.partition("[")[2].rstrip("]")
    for where, names in _LAYOUT.items()
    for name in names.split()
}


def check_layout(result: Result) -> None:
    """Refuses a result whose data is not what its kind promises.

    Kinds of your own are not looked at.

    Raises:
        InvalidInput: naming the variable, and what it must be.
    """
    if result.kind not in _NEEDED:
        return
    data = result.data
    where = f"this {result.kind} cannot be drawn or executed: "
    needed = _NEEDED[result.kind].split()
    one, other = _TOGETHER.get(result.kind, ("", ""))
    needed += [other] if one in data.variables else []
    for name in needed:
        if name not in data.variables:
            raise InvalidInput(f"{where}it has no {name}; {AGAIN}")
    sizes = _SIZES | {"axis": 2 if result.kind.startswith("gecko.") else 3}
    for dim, size in sizes.items():
        if data.sizes.get(dim, size) != size:
            raise InvalidInput(f"{where}{dim} has {data.sizes[dim]} items; {AGAIN}")
    for dim in set(_LABELLED) & set(data.dims):
        labels = data[dim].values
        if labels.dtype.kind != "U" or len(set(labels.tolist())) < labels.size:
            raise InvalidInput(f"{where}each {dim} needs a name of its own; {AGAIN}")
    for name in map(str, data.variables):
        if name not in _PROMISES:
            continue
        found = data[name]
        if found.dims not in _PROMISES[name]:
            wanted = " or ".join(" x ".join(dims) for dims in _PROMISES[name])
            raise InvalidInput(f"{where}{name} must be {wanted}; {AGAIN}")
        if _UNITS[name] and found.attrs.get("units") != _UNITS[name]:
            raise InvalidInput(f"{where}{name} must be in {_UNITS[name]}; {AGAIN}")
        if found.dtype.kind not in "fiub":
            raise InvalidInput(f"{where}{name} must be numbers; {AGAIN}")
        largest = abs(found.values).max(initial=0.0)
        if not (np.isfinite(found.values).all() and largest < LARGEST):
            raise InvalidInput(f"{where}{name} must be finite, and < {LARGEST:g}")
