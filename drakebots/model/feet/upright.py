"""Which axis of a model's file points up.

Drake's ground is z = 0, and nearly all files have z up. Some are drawn with y up, by
the habit of computer graphics or of biomechanics (ISB), and their users turn the base.
Such a robot lies on its back with z up and stands well with y up: on feet that are
mirror images of one another, level, and under its centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.math import RigidTransform

from drakebots.model.feet.candidates import FootCandidate, foot_candidates
from drakebots.model.feet.links import Links
from drakebots.model.reading import TURNS

_LEVEL = 0.1
"""Feet of a robot that stands are level to this share of its size,"""
_HIGH = 0.5
"""its centre of mass is at least this share of it above them,"""
_OVER = 0.35
"""and at most this share of it beside their middle."""
_BESIDE = 0.5
"""A robot lies if its centre of mass is farther than this beside its feet."""


@dataclass(frozen=True)
class _Footing:
    """How the feet lie under a robot; lengths as shares of its size.

    Attributes:
        feet: their number.
        mirrored: whether each has a mirror image.
        level: the difference of their heights.
        high: height of the centre of mass above their middle.
        beside: its distance from their middle across the ground.
    """

    feet: int
    mirrored: bool
    level: float
    high: float
    beside: float

    @property
    def stands(self) -> bool:
        """Whether a robot can stand like this."""
        return (
            self.feet >= 2
            and self.mirrored
            and self.level < _LEVEL
            and self.high > _HIGH
            and self.beside < _OVER
        )


def upright_axis(links: Links, candidates: Sequence[FootCandidate]) -> str:
    """The axis of a file that points up: "z" but where only another one can.

    Args:
        links: of the robot, with z up; its base is moved and put back.
        candidates: its feet with z up.
    """
    plant, context = links.plant, links.context
    bases = [plant.get_body(index) for index in plant.GetFloatingBaseBodies()]
    first = _footing(links, candidates)
    if len(bases) != 1 or first.feet < 1 or first.beside < _BESIDE:
        return "z"
    q = plant.GetPositions(context).copy()
    found = "z"
    for axis in ("y", "x"):
        X_WB = RigidTransform(TURNS[axis], np.zeros(3))
        plant.SetFloatingBaseBodyPoseInWorldFrame(context, bases[0], X_WB)
        turned = _footing(links, foot_candidates(links))
        if turned.stands and turned.feet >= first.feet:
            found = axis
            break
    plant.SetPositions(context, q)
    return found


def _footing(links: Links, candidates: Sequence[FootCandidate]) -> _Footing:
    feet = [foot for foot in candidates if foot.chosen]
    if not feet:
        return _Footing(0, False, 0.0, 0.0, 0.0)
    p_WF = np.array([foot.p_WF for foot in feet])
    p_WC = links.plant.CalcCenterOfMassPositionInWorld(links.context)
    size = np.linalg.norm(p_WF - p_WC, axis=1).max()
    offset = (p_WC - p_WF.mean(axis=0)) / (size or 1.0)
    return _Footing(
        feet=len(feet),
        mirrored=all(foot.mirrored for foot in feet),
        level=float(np.ptp(p_WF[:, 2]) / (size or 1.0)),
        high=float(offset[2]),
        beside=float(np.linalg.norm(offset[:2])),
    )
