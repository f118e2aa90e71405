"""Everything a model consists of, in rows for a table: what `show` lists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.multibody.tree import FrameIndex, Joint
from pydrake.systems.framework import DiagramBuilder

from drakebots.model.candidates import foot_candidates
from drakebots.model.description import standing
from drakebots.model.links import Links
from drakebots.model.model import Model
from drakebots.model.views import actuators_of, bodies_of, joints_of, part_name


def model_contents(model: Model) -> dict[str, list[dict[str, Any]]]:
    """Bodies, joints, motors, frames, loops, couplers, poses and feet, in SI.

    Args:
        model: from :func:`drakebots.load`.

    Returns:
        Rows by name of the table; every row maps names of columns to plain values.
        A limit or an effort that does not exist is None.
    """
    plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 1e-3)
    model.add_to(plant, close_loops=False)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    links = Links(plant, scene_graph.model_inspector(), context, model.loops)
    shapes, found = plant.GetCollisionGeometriesForBody, links.bodies[1:]
    bodies = [(links.label(x), x.get_mass(context), len(shapes(x))) for x in found]
    loops = [(x.name, x.body_A, x.body_B, x.rows, x.num_rows) for x in model.loops]
    couplers = [(x.follower, x.leader, x.gear, x.offset) for x in model.couplers]
    poses = [(name, len(pose)) for name, pose in model.poses.items()]
    return {
        "bodies": _rows("body, mass_kg, collision shapes", bodies),
        "joints": _rows(_OF_JOINTS, map(_joint, joints_of(plant))),
        "motors": _rows("motor, joint, effort, from", _motors(model, plant)),
        "frames": _rows("frame, body, p_BF_m", _frames(plant)),
        "loops": _rows("loop, A, B, kind, rows", loops),
        "couplers": _rows("joint, follows, gear, offset", couplers),
        "poses": _rows("pose, joints", poses),
        "could be feet": _feet(model, links),
    }


def _rows(heads: str, rows: Iterable[tuple]) -> list[dict[str, Any]]:
    """Rows by the names of their columns."""
    return [dict(zip(heads.split(", "), row)) for row in rows]


_OF_JOINTS = "joint, type, parent, child, lower, upper, default"


def _joint(joint: Joint) -> tuple:
    own = part_name(joint), joint.type_name()
    ends = joint.parent_body().name(), joint.child_body().name()
    if joint.num_positions() != 1:
        return *own, *ends, None, None, None
    limits = joint.position_lower_limits(), joint.position_upper_limits()
    numbers = [_finite(x[0]) for x in (*limits, joint.default_positions())]
    return *own, *ends, *numbers


def _motors(model: Model, plant: MultibodyPlant) -> Iterator[tuple]:
    added = {motor.joint for motor in model.actuators}
    for motor in actuators_of(plant):
        joint, effort = part_name(motor.joint()), _finite(motor.effort_limit())
        yield part_name(motor), joint, effort, "added" if joint in added else "the file"


def _frames(plant: MultibodyPlant) -> Iterator[tuple]:
    """Frames that the file names, without those of bodies and joints."""
    frames = [plant.get_frame(FrameIndex(i)) for i in range(plant.num_frames())]
    others = {body.body_frame().index() for body in bodies_of(plant)}
    for joint in joints_of(plant):
        others |= {joint.frame_on_parent().index(), joint.frame_on_child().index()}
    for frame in frames:
        if frame.name() and frame.index() not in others:
            p_BF = frame.GetFixedPoseInBodyFrame().translation()
            yield frame.name(), frame.body().name(), p_BF.tolist()


def _feet(model: Model, links: Links) -> list[dict[str, Any]]:
    """The candidates, best first; also of a model whose feet are given."""
    candidates = model.candidates
    if not candidates:
        links.pose(standing(model.poses))
        candidates = foot_candidates(links)
    feet = {foot.body for foot in model.feet}
    return [
        {
            "link": foot.name,
            "foot": foot.name in feet,
            "height_m": foot.height,
            "joints": foot.joints,
            "shape": foot.shape,
            "points": len(foot.points),
            "named a foot": foot.named,
            "mirrored": foot.mirrored,
        }
        for foot in candidates
    ]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
