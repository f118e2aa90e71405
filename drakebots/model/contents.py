"""Everything a model consists of, in rows for a table: what `show` lists."""

from __future__ import annotations

import math
from typing import Any

from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, MultibodyPlant
from pydrake.multibody.tree import FrameIndex, Joint
from pydrake.systems.framework import DiagramBuilder

from drakebots.model.candidates import foot_candidates
from drakebots.model.description import standing
from drakebots.model.links import Links
from drakebots.model.model import Model
from drakebots.model.views import actuators_of, bodies_of, joints_of


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
    added = {motor.joint for motor in model.actuators}
    heads = ("loop", "A", "B", "kind", "rows")
    return {
        "bodies": [
            {
                "body": links.label(body),
                "mass_kg": body.get_mass(context),
                "collision shapes": len(plant.GetCollisionGeometriesForBody(body)),
            }
            for body in links.bodies[1:]
        ],
        "joints": [_joint(joint) for joint in joints_of(plant)],
        "motors": [
            {
                "motor": motor.name(),
                "joint": motor.joint().name(),
                "effort": _finite(motor.effort_limit()),
                "from": "added" if motor.joint().name() in added else "the file",
            }
            for motor in actuators_of(plant)
        ],
        "frames": _frames(plant),
        "loops": [
            dict(zip(heads, (x.name, x.body_A, x.body_B, x.rows, x.num_rows)))
            for x in model.loops
        ],
        "couplers": [
            {
                "joint": x.follower,
                "follows": x.leader,
                "gear": x.gear,
                "offset": x.offset,
            }
            for x in model.couplers
        ],
        "poses": [{"pose": name, "joints": len(q)} for name, q in model.poses.items()],
        "could be feet": _feet(model, links),
    }


def _joint(joint: Joint) -> dict[str, Any]:
    row = {
        "joint": joint.name(),
        "type": joint.type_name(),
        "parent": joint.parent_body().name(),
        "child": joint.child_body().name(),
    }
    single = joint.num_positions() == 1
    limits = joint.position_lower_limits, joint.position_upper_limits
    for name, values in zip(
        ("lower", "upper", "default"), (*limits, joint.default_positions)
    ):
        row[name] = _finite(values()[0]) if single else None
    return row


def _frames(plant: MultibodyPlant) -> list[dict[str, Any]]:
    """Frames that the file names, without those of bodies and joints."""
    frames = [plant.get_frame(FrameIndex(i)) for i in range(plant.num_frames())]
    others = {body.body_frame().index() for body in bodies_of(plant)}
    for joint in joints_of(plant):
        others |= {joint.frame_on_parent().index(), joint.frame_on_child().index()}
    return [
        {
            "frame": frame.name(),
            "body": frame.body().name(),
            "p_BF_m": frame.GetFixedPoseInBodyFrame().translation().tolist(),
        }
        for frame in frames
        if frame.name() and frame.index() not in others
    ]


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
