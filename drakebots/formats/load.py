"""Loading a model: its file read, what Drake makes of it inspected, the rest decided.

model = drakebots.load("hamr")            # by name, from the models folder
model = drakebots.load("my_robot.urdf")   # or any URDF, SDF, MJCF, dmd.yaml
print(model.report())
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName, one_line, some
from drakebots.core.units import SI, Scaling
from drakebots.formats.closing import settle_loops
from drakebots.formats.inspect import (
    TOO_LARGE,
    doubt_on_lengths,
    inspect_model,
    legs_swing,
    soles_point_back,
    sprawling,
    upright_axis,
)
from drakebots.formats.read.findings import Findings, Options
from drakebots.formats.read.read import read_robot
from drakebots.formats.read.urdf import TURNS
from drakebots.model import (
    Actuator,
    Links,
    LoopClosure,
    Model,
    Point,
    choose_actuators,
    file_hashes,
    find_body,
    find_model,
    find_srdf,
    foot_candidates,
    gravity,
    model_names,
    model_stem,
    named_feet,
    named_parameters,
    part_name,
    read_srdf,
    split_names,
    standing,
)

LOG = logging.getLogger(__name__)


def load(
    name_or_path: str | Path,
    *,
    units: Scaling = SI,
    feet: str | Sequence[str] | None = None,
    actuate: str | Sequence[str] | None = None,
    effort: float | None = None,
    packages: Mapping[str, str | Path] | None = None,
    strict: bool = False,
    free_base: bool = False,
    up: str | None = None,
    alone: bool = False,
    repair: bool = False,
    parameters: Mapping[str, float] | None = None,
) -> Model:
    """Loads and checks a model.

    Args:
        name_or_path: a name from :func:`available_models`, or a path to a
            URDF, SDF, MJCF or dmd.yaml; URDFs in the format of old Drake
            (loop_joint, force_element) load too.
        units: the units of the numbers in an old-format URDF.
        feet: the feet to use: names of links, frames and geometries, patterns
            ("*_foot"), points of links ("link:x,y,z") [m]; as a list, or one text
            with commas between. None for those of the file or the YAML beside it,
            else those found by shape; see :func:`drakebots.model.foot_candidates`.
        actuate, effort: joints that get a motor, and its largest effort [N m, N];
            see :func:`drakebots.model.choose_actuators`.
        packages: folders of packages by name, searched before all others.
        strict: whether a file is refused where something in it had to be changed,
            or is ignored by Drake.
        free_base: whether a base that the file fixes to the world moves freely.
        up: the axis of a URDF that points up, "x", "y" or "z", and, for another than
            usual, ahead, "xy", "yz" or "zy"; its root link, and what is said of points
            in it, is turned. None to find out;
            see :func:`drakebots.formats.inspect.upright_axis`.
        alone: whether free bodies that no joint moves (a ball, a box of an MJCF's or
            SDF's scene) are left out, where joints move others.
        repair: whether links with an inertia that is too large for their size
            get that of their shape; see
            :func:`drakebots.formats.inspect.sprawling`.
        parameters: numbers in place of the file's, in SI, by name: "mass:LINK" (its
            inertia goes with it), "stiffness:JOINT", "damping:JOINT", "friction" of the
            ground. They count before those of a YAML file named in place of the model,
            and those before the ones beside it.

    Raises:
        UnknownName: for an unknown name of a model, a foot, a joint, an axis or a
            parameter.
        InvalidInput: for motors that cannot be added.
        ModelProblem: for a file that Drake or our checks refuse.
    """
    if up is not None and up not in TURNS:
        raise UnknownName("axis", up, TURNS)
    path = find_model(name_or_path)
    files = file_hashes(path)
    asked = (units, feet, actuate, effort, packages, strict, free_base, up, alone)
    found = named_parameters(name_or_path) | dict(parameters or {})
    options = Options(*asked, repair, found or None)
    return replace(_loaded(path, options), files=files)


def loaded(model: str | Path | Model) -> Model:
    """The model itself, or what :func:`load` makes of its name or path."""
    return model if isinstance(model, Model) else load(model)


def _loaded(path: Path, options: Options) -> Model:
    """The model of a file: read, inspected, and what it leaves open decided."""
    model, links, on_motors = _inspect(path, options)
    named = model.feet and options.feet is None
    candidates = () if named else foot_candidates(links)
    if options.up is None and model.ending == "urdf" and not model.feet:
        axis = upright_axis(links, candidates)
        if axis != "z":
            return _loaded(path, replace(options, up=axis))
    model = replace(model, candidates=candidates, options=options.given())
    return _decide(model, links, on_motors)


def _inspect(path: Path, options: Options) -> tuple[Model, Links, list[str]]:
    """Model as Drake reads it, its loops closed, standing; with notes on its motors."""
    findings = Findings()
    summary, links, reading = inspect_model(path, read_robot(path, options), findings)
    if doubt := doubt_on_lengths(links, reading.kind):
        findings.note(doubt)
    for body, gyration in sprawling(links):
        line = f"{TOO_LARGE}, by its radius of gyration (--repair takes its shape's)"
        findings.note(line, f"{body.name()} ({gyration:.2g} m)")
    findings.check(path, strict=options.strict)
    undriven = [name for name in reading.motors if name not in summary.driven]
    wanted = undriven or None if options.actuate is None else options.actuate
    followers = {coupler.follower for coupler in reading.couplers}
    how = {"actuate": wanted, "effort": options.effort, "followers": followers}
    own = {name: name.rpartition("::")[2] for name in summary.joints}
    efforts = {n: reading.efforts[o] for n, o in own.items() if o in reading.efforts}
    motors, on_motors = choose_actuators(summary.joints, summary.driven, efforts, **how)
    added = tuple(motor.joint for motor in motors)
    srdf = find_srdf(path, list(model_names(links.plant))[2:])
    poses, on_poses = ({}, []) if srdf is None else read_srdf(srdf, summary.joints)
    poses |= reading.poses
    closure = LoopClosure(links.plant, reading.loops, couplers=reading.couplers)
    settled, positions, on_loops = settle_loops(
        closure, links.context, (*summary.driven, *added), pose=standing(poses)
    )
    gaps = settled.gaps(links.context)
    links.pose(standing(poses))
    said = {
        "loops": settled.loops,
        "couplers": settled.couplers,
        "poses": poses,
        "notes": (*findings.notes, *reading.notes, *on_loops, *on_poses),
    }
    model = Model(
        **vars(reading) | said,
        name=one_line(model_stem(path)) or "model",
        path=path,
        summary=replace(
            summary,
            actuators=(*summary.actuators, *added),
            loop_rows=closure.num_rows,
            independent_rows=settled.num_rows,
            loop_gap=float(gaps.max(initial=0.0)),
        ),
        actuators=motors,
        closed=positions,
    )
    tell = wanted is not None or reading.kind == "ROS" or efforts
    return model, links, on_motors if tell else []


def _decide(model: Model, links: Links, on_motors: list[str]) -> Model:
    """The model with feet, with motors where it has feet but none, and all notes.

    Args:
        model, links, on_motors: as inspected.
    """
    feet, on_feet = _feet(model, links)
    summary, motors = model.summary, model.actuators
    asked = model.motors or "actuate" in model.options
    if model.kind == "ROS" and feet and not summary.actuators and not asked:
        followers = {coupler.follower for coupler in model.couplers}
        leading = tuple(name for name in summary.joints if name not in followers)
        motors = tuple(map(Actuator, leading))
        summary = replace(summary, actuators=leading)
        on_motors = [_UNLIMITED] if leading else []
    limits = {motor.effort for motor in motors}
    if (
        len(limits) == 1 < len(motors)
        and "effort" not in model.options
        and max(limits)
        < PLACEHOLDER * (need := _knee_torque(feet, links, summary.mass))
    ):
        motors = tuple(replace(motor, effort=np.inf) for motor in motors)
        on_motors = [
            *on_motors,
            f"every effort limit is {max(limits):g}, where standing takes some "
            f"{need:.2g} N m: taken for none given; --effort gives one",
        ]
    notes = list(model.notes)
    if model.couplers:
        pairs = [f"{x.follower} ({x.leader})" for x in model.couplers]
        notes.append(f"joints that follow others, and need no motor: {some(pairs, 8)}")
    notes += _on_axes(model, links)
    if wheels := {part_name(joint) for joint in links.wheels()}:
        driven = {*summary.driven, *(motor.joint for motor in motors)}
        held = "held still for walking" if wheels <= driven else "no motor holds them"
        notes.append(f"wheels: {len(wheels)}; {held}")
    notes += on_feet
    if not feet and summary.bases and summary.actuators:
        notes.append("no feet are found: --feet names links, or points LINK:x,y,z")
    notes += on_motors
    said = tuple(sorted(notes, key=lambda note: _ASIDE.match(note) is not None))
    for note in said:
        LOG.info("%s: %s", model.name, note)
    return replace(model, feet=feet, summary=summary, actuators=motors, notes=said)


def _on_axes(model: Model, links: Links) -> list[str]:
    """Notes on the axes that point up and ahead."""
    if (up := model.options.get("up", "z")) != "z":
        axes = " and ".join((f"{up[0]} axis points up", *up[1:]))
        return [f"the file's {axes}{up[1:] and ' ahead'}: its root link is turned"]
    if soles_point_back(links, model.candidates):
        return ["its soles point along -x: --forward moves it backward, if it faces so"]
    if legs_swing(links, model.candidates) == "x":
        return []
    turned = "; --up zy turns it to face x" if model.ending == "urdf" else ""
    return [f"its legs swing along y: --forward moves it sideways{turned}"]


_ASIDE = re.compile(
    r"Drake (ignores|renames)|.*is renamed|.*kept as a loop|drawn by"
    r"|a (colou?r|material|texture|number) |only the first|left out of the MJCF"
    r"|poses from|read as|line \d"
)
"""Notes on what is drawn, called otherwise or meant for other programs: the last."""

_UNLIMITED = (
    "has neither motors nor effort limits: all joints get motors without a limit; "
    "--effort gives one"
)


PLACEHOLDER = 0.1
"""One limit for all motors counts as none given if it is less than this share of what
standing takes."""


def _knee_torque(feet: Sequence[Point], links: Links, mass: float) -> float:
    """The torque of a knee that stands bent, 0.2 m g l / n, by the n feet [N m].

    A leg of two equal links, as long as 0.92 of its length l from hip to foot, has its
    knee 0.2 l beside the line between them. 0 without feet.
    """
    groups = {links.group[find_body(links.plant, p.body).index()] for p in feet}
    lengths = [links.leg(group).length for group in groups]
    weight = mass * gravity(links.plant)
    return 0.2 * weight * float(np.median(lengths)) / len(groups) if groups else 0.0


def _feet(model: Model, links: Links) -> tuple[tuple, list[str]]:
    """The feet (points), and what to say of those that were found by shape.

    Args:
        model: with the feet that its files name, and candidates.
        links: of the model, in the pose it stands in.
    """
    feet, words = model.feet, []
    if not feet:
        chosen = [foot for foot in model.candidates if foot.chosen]
        feet = tuple(point for foot in chosen for point in foot.points)
        if chosen:
            names = [foot.name for foot in chosen]
            words = [f"feet found by shape: {some(names, 8)}"]
        bare = [foot.name for foot in chosen if foot.shape == "frame"]
        if bare:
            words.append(
                f"feet without a shape touch at their link's origin: {', '.join(bare)} "
                "(--feet LINK:x,y,z puts them elsewhere)"
            )
    if (wanted := model.options.get("feet")) is not None:
        names = split_names(wanted) if isinstance(wanted, str) else list(wanted)
        known = (*feet, *(point for foot in model.candidates for point in foot.points))
        feet, words = named_feet(names, known, links), []
    return feet, words


# --- loading again ----------------------------------------------------------


def robot_alone(model: Model) -> Model:
    """The model without other free bodies of its file; itself where it has none.

    See `alone` of :func:`load`.

    Raises:
        InvalidInput: for two free bodies or more that carry joints.
        ModelProblem: for a file that has changed and cannot be loaded any more.
    """
    alone = model
    if model.summary.bases > 1 and "alone" not in model.options:
        alone = load(model.path, **load_arguments(model.options), alone=True)
    if alone.summary.bases > 1:
        raise InvalidInput(
            f"{model.name} has {alone.summary.bases} free bodies that joints move; "
            "plan for one robot: join or remove the others"
        )
    return alone


def load_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of :func:`load` that `Model.options` says."""
    chosen = dict(options)
    if "units" in chosen:
        chosen["units"] = Scaling(*chosen["units"])
    return chosen
