"""A reference recorded from a simulated walk: what worked once, to be repeated."""

from __future__ import annotations

import numpy as np
import xarray as xr
from pydrake.math import RollPitchYaw

from drakebots.errors import InvalidInput
from drakebots.robots.hamr.reference import Reference, coordinate_names

_BASE = 6


def recorded_reference(
    data: xr.Dataset,
    start: float,
    end: float,
    *,
    periodic: bool,
    friction: float,
    stride: int = 1,
    name: str = "recorded",
) -> Reference:
    """The part of a run between two moments as a reference.

    Args:
        data: of a HAMR simulation with the base "quaternion".
        start, end: moments [s], rounded to samples.
        periodic: whether the part is a cycle.
        friction: of the ground it walked on.
        stride: every how many samples there is a knot.
        name: of the reference.

    Raises:
        InvalidInput: when the run does not cover the part.
    """
    times = data.time.values
    first, last = (int(np.abs(times - moment).argmin()) for moment in (start, end))
    step = np.diff(times).max()
    if abs(times[first] - start) > step or abs(times[last] - end) > step:
        raise InvalidInput(
            f"the run covers {times[0]:g}..{times[-1]:g} s, "
            f"not {start:g}..{end:g} s; simulate longer"
        )
    index = np.unique(np.r_[np.arange(first, last, stride), last])
    names = coordinate_names()
    part = data.isel(time=index)
    rpy = part.base_rpy.values
    q, v = np.zeros((2, len(index), len(names)))
    q[:, :3], q[:, 3:_BASE] = part.base_position.values, rpy[:, ::-1]
    q[:, _BASE:] = part.position.sel(coordinate=names[_BASE:]).values
    rates = part.velocity.values
    # Velocities of a free base in Drake: angular, then linear, in the world.
    v[:, :3] = rates[:, 3:6]
    for k, (angles, w_WB) in enumerate(zip(rpy, rates[:, :3])):
        turn = RollPitchYaw(angles)
        v[k, 3:_BASE] = turn.CalcRpyDtFromAngularVelocityInParent(w_WB)[::-1]
    v[:, _BASE:] = rates[:, 6:]
    return Reference(
        time=part.time.values - part.time.values[0],
        q=q,
        v=v,
        voltages=part.voltage.values[:-1],
        periodic=periodic,
        friction=friction,
        name=name,
    )
