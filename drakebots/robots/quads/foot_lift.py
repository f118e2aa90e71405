"""Feet lifted and put back from rest, and what a motion needs to know of a robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from drakebots.errors import InvalidInput, UnknownName
from drakebots.robots.quads.com_path import com_path, to_frames
from drakebots.robots.quads.footfall import bar_footfall
from drakebots.robots.quads.gait import STRIDE, smooth_swing
from drakebots.robots.quads.links_skin import LinkSkin
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.quad import Quad
from drakebots.robots.quads.support import support_polygon


def roles(quad: Quad) -> dict[str, str]:
    """Names of the feet by place: fl, fr, rl, rr.

    Raises:
        InvalidInput: unless there is one foot in each quarter.
    """
    middle = quad.rest_feet[:, :2].mean(axis=0)
    out = {}
    for name, p in zip(quad.feet, quad.rest_feet):
        key = ("f" if p[0] > middle[0] else "r") + ("l" if p[1] > middle[1] else "r")
        if key in out or len(quad.feet) != 4:
            raise InvalidInput(
                f"{quad.name}: a gait of the library needs four feet, one in each "
                f"quarter about their middle; got {', '.join(quad.feet)}"
            )
        out[key] = name
    return out


def leg_height(quad: Quad) -> float:
    """Of the highest joint of the legs above the ground, at rest [m]."""
    plant = quad.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, quad.rest)
    return max(
        plant.get_joint(i).frame_on_child().CalcPoseInWorld(context).translation()[2]
        for i in plant.GetJointIndices()
        if plant.get_joint(i).num_positions()
        and plant.get_joint(i).position_start() >= 6
    )


def lift(
    quad: Quad,
    feet: Sequence[str],
    *,
    height: float | None = None,
    duration: float = 2.5,
    dt: float = 5e-3,
    lower: float = 0.0,
    skin: LinkSkin | None = None,
) -> MotionInput:
    """Lifts feet together and puts them back.

    The COM moves over the others in the first third, which they leave the ground
    at, and comes back in the last.

    Args:
        quad: the robot.
        feet: names.
        height: [m]; a sixth of the legs by default.
        duration: [s], rounded to knots.
        dt: [s].
        lower: of the COM, under where it is at rest [m].
        skin: on the links, for the COM at rest.

    Raises:
        UnknownName: for a foot that is none.
        InvalidInput: when no foot would be left, or for a duration < 1 s.
    """
    for name in feet:
        if name not in quad.feet:
            raise UnknownName("foot", name, quad.feet)
    if set(feet) == set(quad.feet) or not feet:
        raise InvalidInput("lift: name some of the feet, not all")
    if not duration >= 1.0:
        raise InvalidInput(f"lift: duration = {duration} s is short; take >= 1 s")
    height = leg_height(quad) / 6 if height is None else height
    K = round(duration / (STRIDE * dt)) + 1
    N = (K - 1) * STRIDE + 1
    end = dt * (N - 1)
    up, down = round(N * 0.34) * dt, round(N * 0.66) * dt
    bars = {
        name: [(0, up), (down, end + dt)] if name in feet else [(0, end + dt)]
        for name in quad.feet
    }
    footfall = bar_footfall(quad.feet, bars, frames=N, dt=dt)
    t = footfall.times
    path = np.repeat(quad.rest_feet[None], N, axis=0)
    path[:, :, 2] = 0.0
    s = np.clip((t - up) / (down - up), 0, 1)
    # Up in a third of the flight, held, and down again.
    rise = (
        smooth_swing(np.clip(3 * s, 0, 1))[0]
        - smooth_swing(np.clip(3 * s - 2, 0, 1))[0]
    )
    for name in feet:
        path[:, quad.feet.index(name), 2] = height * rise
    centre = quad.rest_com(skin)
    contact = footfall.at(STRIDE * np.arange(K))
    polygons = [support_polygon(quad, path[0], c, 0.0) for c in contact]
    c = com_path(
        np.repeat(centre[None, :2], K, axis=0),
        polygons,
        centre[2] - lower,
        STRIDE * dt,
        clearance=0.02,
    )
    z = np.full(N, centre[2] - lower)
    com = np.column_stack([to_frames(c, STRIDE, N, rest=True), z])
    return MotionInput(footfall, com, path, name=f"lift {', '.join(feet)}")
