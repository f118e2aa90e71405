"""Soft limbs as SDF: in a plant, beside a robot's file, in a model made of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex, UnitInertia

from drakebots.core.errors import DrakebotsWarning, InvalidInput, ModelProblem
from drakebots.core.files import write_text
from drakebots.formats import (
    SdfGeometry,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfPose,
    load,
    model_sdf,
)
from drakebots.model import find_body
from drakebots.multibody import Limb, check_limbs

END_SHARE = 0.05
"""Share of a limb's mass in its end cap, and the same in its flange. Our choice."""


def limb_parts(model: SdfModel, limb: Limb, *, on: str | None) -> None:
    """Adds a limb's links and joints, with actuators and their gains, to an SDF model.

    Args:
        model: model to add to; if `on` is given, one that has this link.
        limb: the limb.
        on: the link that carries its first joint; None for a flange of its own, to
            be welded to the link that carries the limb.
    """
    n, step = limb.segments, limb.length / limb.segments
    flange = END_SHARE * limb.mass if on is None else 0.0
    cap = END_SHARE * limb.mass
    share = (limb.mass - flange - cap) / n
    if on is None:
        model.links[limb.root] = _ball_link(limb.root, flange, limb, "base")
        before, pose = limb.root, SdfPose()
    else:
        before, pose = on, SdfPose(limb.p, limb.rpy)
    middle = SdfPose(np.array([step / 2, 0, 0]))
    along = SdfPose(middle.p, np.array([0, np.pi / 2, 0]))
    capsule = {"radius": limb.radius, "length": step}
    solid = UnitInertia.SolidCapsule(limb.radius, step, np.array([1.0, 0, 0]))
    inertia = solid.CopyToFullMatrix3()
    for name, joint, weight in zip(limb.links, limb.joints, limb.weights):
        if name == limb.tip:
            link = _ball_link(name, cap + limb.tip_mass, limb, "end")
        else:
            shape = f"{name}_visual", along, "capsule", capsule, limb.rgba
            drawn = [SdfGeometry("visual", *shape)]
            link = SdfLink(name, share, middle, share * inertia, drawn)
        link.pose, link.relative_to = pose, before
        model.links[name] = link
        law = {"damping": limb.damping / weight, "gain": limb.stiffness / weight}
        hinge = joint, "revolute", before, name, limb.axis
        model.joints[joint] = SdfJoint(*hinge, actuated=True, **law)
        before, pose = name, SdfPose(np.array([step, 0, 0]))


def _ball_link(name: str, mass: float, limb: Limb, what: str) -> SdfLink:
    inertia = 0.4 * mass * limb.radius**2 * np.eye(3)
    ball = {"radius": limb.radius}
    shape = f"{name}_{what}", SdfPose(), "sphere", ball, limb.rgba
    return SdfLink(name, mass, SdfPose(), inertia, [SdfGeometry("visual", *shape)])


def limbs_sdf(limbs: Sequence[Limb], name: str = "limbs") -> str:
    """The SDF text of limbs alone, each on a flange that is not welded to a robot yet.

    Raises:
        InvalidInput: for two limbs of one name.
    """
    limbs, model = check_limbs(limbs), SdfModel(name)
    for limb in limbs:
        limb_parts(model, limb, on=None)
    return model_sdf(model)


def add_limbs(
    plant: MultibodyPlant, limbs: Sequence[Limb], *, name: str = "limbs"
) -> ModelInstanceIndex:
    """Adds limbs to a parsed plant that is not finalized yet.

    The limbs become one model instance; make a :class:`LimbMap` of it after
    `plant.Finalize()`, and connect its `desired` to the instance's
    desired-state port.

    Args:
        plant: a discrete plant, with its robots in it.
        limbs: limbs to add; a limb may grow from the tip of an earlier one.
        name: name of the model instance.

    Returns:
        The model instance.

    Raises:
        InvalidInput: for a plant that is finalized or continuous, two limbs of
            one name, the name of an existing model instance, or a parent's name
            that several robots have.
        UnknownName: for a parent that is no link, listing the links.
    """
    limbs = check_limbs(limbs)
    if plant.is_finalized():
        raise InvalidInput("the plant is finalized; add limbs before Finalize()")
    if plant.time_step() == 0:
        raise InvalidInput(
            "limbs need a discrete plant (implicit PD gains); give it a time step"
        )
    if plant.HasModelInstanceNamed(name):
        raise InvalidInput(f"there is a model named {name!r}; give another name")
    tips = {limb.tip for limb in limbs}
    # All parents first: nothing is added where one does not exist.
    parents = [None if x.parent in tips else find_body(plant, x.parent) for x in limbs]
    (instance,) = Parser(plant).AddModelsFromString(limbs_sdf(limbs, name), "sdf")
    for limb, parent in zip(limbs, parents):
        parent = parent or plant.GetBodyByName(limb.parent, instance)
        plant.WeldFrames(
            parent.body_frame(),
            plant.GetBodyByName(limb.root, instance).body_frame(),
            RigidTransform(RollPitchYaw(limb.rpy), limb.p),
        )
    return instance


def write_limbs(
    robot: str | Path, limbs: Sequence[Limb], output: str | Path, *, name: str = "limbs"
) -> Path:
    """Writes limbs and the directives that put them on a robot's file.

    `output` is a .dmd.yaml that adds the robot's file and, from an .sdf beside
    `output`, its limbs; Drake's stock parser reads it, with the package map
    that the robot's file needs.

    Args:
        robot: a URDF, SDF or MJCF of one robot.
        limbs: limbs to put on it.
        output: "*.dmd.yaml", in a folder that exists.
        name: name of the limbs' model instance.

    Returns:
        `output`.

    Raises:
        ModelProblem: for a robot's file that Drake refuses, or an output of another
            ending.
        UnknownName, InvalidInput: as :func:`add_limbs`.
        FileProblem: when a file cannot be written.
    """
    limbs, output = check_limbs(limbs), Path(output)
    if not output.name.endswith(".dmd.yaml"):
        raise ModelProblem(output, "must end in .dmd.yaml")
    model = load(robot)
    if model.path.name.endswith(".dmd.yaml") or model.text is not None:
        raise ModelProblem(
            model.path, "limbs need the robot's own URDF, SDF or MJCF of today"
        )
    if count := len(model.actuators):
        effort = "" if model.efforts else " --effort 10"
        warnings.warn(
            DrakebotsWarning(
                f"{model.path.name} has no motors for {count} joints, and with limbs "
                f"gets none by itself; --actuate all{effort} adds them"
            ),
            stacklevel=2,
        )
    plant = MultibodyPlant(1e-3)
    instances = model.add_to(plant, close_loops=False)
    add_limbs(plant, limbs, name=name)
    robot_name = plant.GetModelInstanceName(instances[0])
    sdf = output.with_name(output.name.removesuffix(".dmd.yaml") + f"_{name}.sdf")
    write_text(sdf, limbs_sdf(limbs, name))
    write_text(output, _directives(model.path, robot_name, sdf, limbs, name))
    return output


def _directives(robot: Path, robot_name: str, sdf: Path, limbs, name: str) -> str:
    """The text of the directives that weld limbs to a robot."""
    tips = {limb.tip for limb in limbs}
    lines = ["# Written by drakebots: a robot and its soft limbs. SI.", "directives:"]
    for model, path in ((robot_name, robot), (name, sdf)):
        uri = "file://" + os.path.abspath(path)
        lines += ["- add_model:", f"    name: {model}", f"    file: {uri}"]
    for limb in limbs:
        scope = name if limb.parent in tips else robot_name
        parent = limb.parent if "::" in limb.parent else f"{scope}::{limb.parent}"
        degrees = [float(x) for x in np.degrees(limb.rpy)]
        lines += [
            "- add_weld:",
            f"    parent: {parent}",
            f"    child: {name}::{limb.root}",
            "    X_PC:",
            f"      translation: {[float(x) for x in limb.p]}",
            f"      rotation: !Rpy {{deg: {degrees}}}",
        ]
    return "\n".join(lines) + "\n"
