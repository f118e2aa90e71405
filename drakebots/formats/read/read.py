"""A model file as its author wrote it, made ready for Drake's parser."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from drakebots.core.checks import check_value, non_negative
from drakebots.core.errors import InvalidInput, ModelProblem, check_names
from drakebots.core.units import SI
from drakebots.formats.inspect import with_fewest_rows, with_uniform_inertias
from drakebots.formats.read.files import (
    Packages,
    check_includes,
    expanded,
    is_xacro,
    with_mimics,
)
from drakebots.formats.read.findings import Findings, Options
from drakebots.formats.read.joined_frames import with_joined_frames
from drakebots.formats.read.limits import check_model_file
from drakebots.formats.read.mjcf import read_mjcf
from drakebots.formats.read.old_urdf import (
    is_old_urdf,
    old_urdf_reading,
    take_old_parts,
)
from drakebots.formats.read.sdf import repair_sdf
from drakebots.formats.read.tree import (
    SINGLE,
    balls_to_hinges,
    child_of,
    floats,
    free_bodies,
    link_at,
    read_tree,
    remove,
    remove_bodies,
    said,
    say,
    write_tree,
)
from drakebots.formats.read.urdf import (
    included_efforts,
    mimic_of,
    repair_urdf,
    stated_efforts,
)
from drakebots.model import (
    Coupler,
    Loop,
    Reading,
    is_ours,
    model_stem,
    read_sidecar,
    sidecar_path,
    skin_path,
)


def read_robot(path: Path, options: Options = Options()) -> Reading:
    """Reads a model file and the YAML beside it; our own models as they are.

    Raises:
        ModelProblem: for a file that cannot be repaired, with all its problems.
        InvalidInput: for a package whose folder does not exist, and for units and axes
            with files that have none.
    """
    beside = read_sidecar(sidecar_path(path))
    turns = options.up not in (None, "z")
    changes = turns or options.free_base or options.alone or options.packages
    changes = changes or options.repair
    if options.units == SI and not changes and is_ours(path):
        reading = Reading()
    elif options.units != SI and path.suffix.lower() != ".urdf":
        raise InvalidInput(
            f"{path}: units apply to URDFs in the old Drake format only; "
            "this file is read in SI"
        )
    else:
        reading = _read_plain(path, options)
    if reading.kind == "old Drake" and reading.loops and not beside.loops:
        reading = with_fewest_rows(path, reading)
    if options.repair:
        reading = with_uniform_inertias(path, reading)
    if parameters := {**beside.parameters, **(options.parameters or {})}:
        reading = with_parameters(path, reading, parameters)
    return replace(
        reading,
        loops=beside.loops or reading.loops,
        feet=beside.feet or reading.feet,
        points=beside.points,
    )


def _read_plain(path: Path, options: Options) -> Reading:
    """A URDF, SDF, MJCF or dmd.yaml, with what Drake would stop at repaired."""
    packages = options.packages
    places, findings = Packages(path, packages), Findings()
    ending, text = path.suffix.lower().lstrip("."), None
    if is_xacro(path):
        ending, text = "urdf", expanded(path, places)
    source = check_model_file(path, findings, text)
    included = check_includes(path, packages)
    if options.up not in (None, "z") and ending != "urdf":
        raise InvalidInput(f"{path}: only the base of a URDF is turned; leave out up")
    if ending in ("xml", "mjcf"):
        findings.check(path)
        reading = read_mjcf(path, free_base=options.free_base)
        root = read_tree(reading.parsed(path))
        balls_to_hinges(root, findings)
        reading = replace(reading, text=write_tree(root))
        for note in reading.notes:
            findings.note(note)
    else:
        if ending in ("urdf", "sdf"):
            reading = _repaired(path, source, places, findings, options)
        else:
            for name in re.findall(r"\b(?:package|model)://([^/\s]+)", source):
                if folder := next(places.folders(name), None):
                    places.used[name] = folder
            reading = Reading(efforts=included_efforts(included))
        reading = replace(reading, uncoupled=with_mimics(included))
    for name in reading.uncoupled:
        line = "a <mimic> of an included file acts in simulations, not in plans"
        findings.note(line, name)
    reading = with_joined_frames(path, reading, places, findings)
    findings.check(path, strict=options.strict)
    reading = replace(reading, notes=findings.notes, packages=places.used)
    if options.alone:
        reading = _without_free_bodies(path, reading)
    text = reading.parsed(path)
    if ending in ("urdf", "sdf") and "ball_constraint" in text:
        loops = file_loops(read_tree(text))
        reading = replace(reading, loops=(*reading.loops, *loops))
    return reading


def _repaired(
    path: Path, source: str, places: Packages, findings: Findings, options: Options
) -> Reading:
    """A URDF or SDF, with a text if anything in it has to be changed."""
    root = read_tree(source)
    before, up, is_urdf = write_tree(root), options.up or "z", root.tag == "robot"
    is_old = is_urdf and (options.units != SI or is_old_urdf(root))
    if is_old and up != "z":
        raise InvalidInput(f"{path}: an old-Drake URDF is not turned; leave out up")
    old_parts = take_old_parts(root, findings) if is_old else []
    if is_urdf:
        loops = repair_urdf(root, places, findings, name=model_stem(path), up=up)
    else:
        loops = repair_sdf(root, places, findings)
    findings.check(path)
    efforts = stated_efforts(root) if is_urdf else {}
    try:
        couplers = file_couplers(root)
    except InvalidInput as error:
        raise ModelProblem(path, str(error)) from error
    balls_to_hinges(root, findings)
    if options.free_base:
        fixed = [j for j in root.iter("joint") if j.get("type") == "fixed"]
        remove(root, [j for j in fixed if link_at(j, "parent") == "world"])
    if is_old:
        findings.note("read as an old-Drake URDF")
        places.name_all(root)
        return old_urdf_reading(root, old_parts, loops, options.units, findings)
    text = None
    # Drake reads any file as UTF-8, whatever it declares.
    changed = write_tree(root) != before or options.repair
    if changed or source.encode() not in path.read_bytes():
        places.name_all(root)
        text = write_tree(root)
    ending, kind = ("urdf", "ROS") if is_urdf else ("sdf", "")
    found = {"loops": () if text is None else loops, "couplers": couplers}
    return Reading(text, ending, efforts=efforts, kind=kind, **found)


def _without_free_bodies(path: Path, reading: Reading) -> Reading:
    """The text of an SDF without the bodies that no joint and no loop holds."""
    ending = path.suffix.lower()[1:] if reading.text is None else reading.ending
    if ending != "sdf":
        return reading
    root = read_tree(reading.parsed(path))
    in_loops = {body for loop in reading.loops for body in (loop.body_A, loop.body_B)}
    free = [name for name in free_bodies(root) if name not in in_loops]
    if not free:
        return reading
    remove_bodies(root, free)
    notes = (*reading.notes, f"free bodies that are left out: {', '.join(free)}")
    return replace(reading, text=write_tree(root), ending="sdf", notes=notes)


SERVO = ("servo.stiffness", "servo.damping", "servo.delay")
"""Parameters of servos, which a model keeps for who drives its motors."""

OF_SKIN = "youngs_modulus:", "stiffness_damping:", "density:"
"""Parameters of a skin's regions, by number; a model keeps them for its skin."""


def with_parameters(
    path: Path, reading: Reading, parameters: Mapping[str, float]
) -> Reading:
    """The reading with other numbers in its text, by name; see :func:`load`.

    A link's inertia goes with its mass. A joint's stiffness is that of its spring, or
    the proportional gain that its motor has in the file.

    Raises:
        InvalidInput: for a file that is neither URDF nor SDF, and for a value < 0.
        UnknownName: for a name of nothing in the file.
    """
    ending = path.suffix.lower()[1:] if reading.text is None else reading.ending
    if ending not in ("urdf", "sdf"):
        raise InvalidInput(f"{path}: parameters apply to a URDF, an SDF or an MJCF")
    root = read_tree(reading.parsed(path))
    places, known = Packages(path), _numbers(root)
    for name, value in parameters.items():
        check_value(f"parameter {name}", value, non_negative())
        if name == "friction" or name in SERVO:  # in no file
            continue
        if name.startswith(OF_SKIN) and os.path.isfile(skin_path(path)):
            continue
        check_names("parameter", [name], {"friction", *known})
        if not known[name]:
            raise InvalidInput(
                f"parameter {name}: several parts of the file are called so; rename "
                "them"
            )
        own, *others = known[name]
        share = value / float(said(*own)) if others else 1.0
        say(*own, repr(float(value)))
        for place in others:
            say(*place, repr(share * float(said(*place))))
    places.name_all(root)
    text = write_tree(root)
    return replace(reading, text=text, ending=ending, parameters=dict(parameters))


_Place = tuple[ET.Element, str]
"""A number of a file, as of :func:`drakebots.formats.read.tree.said`."""


def _numbers(root: ET.Element) -> dict[str, list[_Place]]:
    """The numbers of links and joints by parameter, the parameter's own first; what
    goes with it in proportion follows. Names of several parts have none."""
    found: dict[str, list[_Place]] = {}
    urdf = root.tag == "robot"
    for link in root.iter("link"):
        mass, inertia = (link.find(f"inertial/{tag}") for tag in ("mass", "inertia"))
        moments = () if inertia is None else inertia.attrib or [x.tag for x in inertia]
        own = (mass, "value") if urdf else (link.find("inertial"), "mass")
        if mass is not None and (not moments or float(said(*own)) > 0):
            parts = [(inertia, key) for key in moments]
            name = f"mass:{link.get('name')}"
            found[name] = [] if name in found else [own, *parts]
    for joint in root.iter("joint"):
        if joint.get("type") in SINGLE:
            dynamics = child_of(joint, "dynamics" if urdf else "axis/dynamics")
            if urdf:
                dynamics.attrib.setdefault("damping", "0")
            name = f"damping:{joint.get('name')}"
            found[name] = [] if name in found else [(dynamics, "damping")]
    for part in (*root.iter("joint"), *root.iter("transmission")):
        named = part if part.tag == "joint" else part.find("joint")
        place = part.find("axis/dynamics"), "spring_stiffness"
        if part.find("axis/dynamics/spring_stiffness") is None:
            place = next(part.iter("drake:controller_gains"), None), "p"
        if named is not None and place[0] is not None:
            name = f"stiffness:{named.get('name')}"
            found[name] = [] if name in found else [place]
    return found


# --- what a file closes and couples itself ---


_BALL = "drake:ball_constraint"


def file_loops(root: ET.Element) -> tuple[Loop, ...]:
    """The ball constraints of a file as loops.

    Drake's tag is

        <drake:ball_constraint>
          <drake:ball_constraint_body_A>rod</drake:ball_constraint_body_A>
          <drake:ball_constraint_p_AP>0 0 -0.1</drake:ball_constraint_p_AP>
          ... and body_B and p_BQ
        </drake:ball_constraint>

    in an SDF; in a URDF the values are attributes, `name` of bodies and `value` of
    points. Drake's parser makes SAP constraints of them; programs and time stepping
    need the table. What is not whole is left out: Drake's parser says what is wrong
    with it.

    Args:
        root: the <robot> or <sdf>.
    """
    loops: list[Loop] = []
    for element in root.iter(_BALL):
        parts = {part.tag.removeprefix(f"{_BALL}_"): _text(part) for part in element}
        bodies = [parts.get(key) for key in ("body_A", "body_B")]
        points = [np.array(floats(parts.get(key, ""))) for key in ("p_AP", "p_BQ")]
        if all(bodies) and all(
            p.shape == (3,) and np.isfinite(p).all() for p in points
        ):
            name = "-".join(bodies)
            same = sum(loop.name.split("#")[0] == name for loop in loops)
            name += f"#{same + 1}" if same else ""
            loops.append(Loop(name, *bodies, *points, rows="ball", in_file=True))
    return tuple(loops)


def file_couplers(root: ET.Element) -> tuple[Coupler, ...]:
    """The joints of a file that follow others: <mimic>, and <drake:mimic> in an SDF.

    Where models of an SDF share the name of a joint it is "model::joint".

    Args:
        root: the <robot> or <sdf>, from
            :func:`drakebots.formats.read.tree.read_tree`, repaired.
    """
    scopes = [("", root)] if root.tag == "robot" else list(_models(root, ""))
    counts = Counter(j.get("name") for _, x in scopes for j in x.findall("joint"))

    def name(joint: str, scope: str) -> str:
        return f"{scope}::{joint}" if scope and counts[joint] > 1 else joint

    return tuple(
        Coupler(
            name(joint.get("name", ""), scope),
            name(mimic.get("joint", ""), scope),
            float(mimic.get("multiplier", "1")),
            float(mimic.get("offset", "0")),
        )
        for scope, model in scopes
        for joint in model.findall("joint")
        if (mimic := mimic_of(joint)) is not None
    )


def _models(parent: ET.Element, scope: str) -> Iterator[tuple[str, ET.Element]]:
    """The models of an SDF by their name in Drake, "outer::inner"."""
    for element in parent:
        if element.tag == "world":
            yield from _models(element, scope)
        elif element.tag == "model":
            name = f"{scope}::{element.get('name')}".removeprefix("::")
            yield name, element
            yield from _models(element, name)


def _text(element: ET.Element) -> str:
    value = element.get("name") or element.get("value") or element.text or ""
    return value.strip()
