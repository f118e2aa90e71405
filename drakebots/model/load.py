"""Check and load a model file.

model = drakebots.load("hamr")            # by name, from the models folder
model = drakebots.load("my_robot.urdf")   # or any URDF, SDF, MJCF, dmd.yaml
print(model.report())
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drakebots.core.errors import InvalidInput, ModelProblem, UnknownName, one_line
from drakebots.core.units import SI, Scaling
from drakebots.model.actuators import choose_actuators, unlimited_actuators
from drakebots.model.closing import settle_loops
from drakebots.model.couplers import Coupler
from drakebots.model.description import Point, read_sidecar
from drakebots.model.feet import (
    FootCandidate,
    Links,
    foot_candidates,
    named_feet,
    split_names,
    upright_axis,
)
from drakebots.model.find import file_hashes, find_model, model_stem, sidecar_path
from drakebots.model.loops import Loop, LoopClosure
from drakebots.model.model import Model
from drakebots.model.old_urdf import is_old_urdf, read_old_urdf
from drakebots.model.poses import Poses, find_srdf, read_srdf, standing
from drakebots.model.reading import (
    TURNS,
    Findings,
    Reading,
    check_model_file,
    file_loops,
    loose_bodies,
    read_model_file,
    read_tree,
    remove_bodies,
    write_tree,
)
from drakebots.model.reading.urdf.joined_frames import (
    Joined,
    joined_loops,
    read_joined_frames,
    with_joint_types,
    with_small_masses,
)
from drakebots.model.summarize import REMEDY, doubt_on_lengths, inspect_model

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
            else those found by shape; see :mod:`drakebots.model.feet`.
        actuate, effort: joints that get a motor, and its largest effort [N m, N];
            see :func:`drakebots.model.actuators.choose_actuators`.
        packages: folders of packages by name, searched before all others.
        strict: whether a file is refused where something in it had to be changed,
            or is ignored by Drake.
        free_base: whether a base that the file fixes to the world moves freely.
        up: the axis that points up in a URDF: "x", "y" or "z"; its root link, and
            what is said of points in it, is turned to make it z. None to find out;
            see :mod:`drakebots.model.feet.upright`.
        alone: whether free bodies that no joint moves (a ball, a box of an MJCF's or
            SDF's scene) are left out, where joints move others.

    Raises:
        UnknownName: for an unknown name of a model, a foot, a joint or an axis.
        InvalidInput: for motors that cannot be added.
        ModelProblem: for a file that Drake or our checks refuse.
    """
    if up is not None and up not in TURNS:
        raise UnknownName("axis", up, TURNS)
    path = find_model(name_or_path)
    options = {
        "units": units,
        "feet": feet,
        "actuate": actuate,
        "effort": effort,
        "packages": packages,
        "strict": strict or None,
        "free_base": free_base or None,
        "up": up,
        "alone": alone or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    hashes = file_hashes(path)
    source = _read(path, units, packages, strict, free_base, up, alone)
    reading, findings = source.reading, Findings()
    try:
        summary, links = inspect_model(
            path, reading, source.loops, source.points + source.feet, findings
        )
    except UnknownName as error:
        raise ModelProblem(sidecar_path(path), str(error)) from error
    if doubt := doubt_on_lengths(links, source.remedy):
        findings.note(doubt)
    findings.check(path, strict=strict)
    if actuate is None:
        actuate = source.motors or None
    followers = {coupler.follower for coupler in reading.couplers}
    motors = choose_actuators(
        summary.joints,
        summary.driven,
        reading.efforts,
        actuate=actuate,
        effort=effort,
        followers=followers,
    )
    driven = (*summary.driven, *(motor.joint for motor in motors.actuators))
    closure = LoopClosure(links.plant, source.loops, couplers=reading.couplers)
    settled = settle_loops(closure, links.context, driven)
    named = _home_poses(path, reading, links, summary.joints)
    links.pose(standing(named.poses))
    candidates = () if source.feet and feet is None else foot_candidates(links)
    if up is None and reading.ending == "urdf" and not source.feet:
        axis = upright_axis(links, candidates)
        if axis != "z":
            return load(name_or_path, **given | {"up": axis})
    found, words_on_feet = _feet(source.feet, feet, candidates, links)
    if source.is_ros and found and not (summary.actuators or driven or actuate):
        leading = [name for name in summary.joints if name not in followers]
        motors = unlimited_actuators(leading)
    notes = [*reading.notes, *findings.notes, *settled.notes, *named.notes]
    notes += _on_couplers(reading.couplers)
    if up in ("x", "y"):
        notes.append(f"the file's {up} axis points up: its root link is turned upright")
    notes += words_on_feet
    if not found and summary.bases and (driven or summary.actuators):
        notes.append("no feet are found: --feet names links, or points LINK:x,y,z")
    if source.is_ros or actuate is not None:
        notes += motors.notes
    added = tuple(motor.joint for motor in motors.actuators)
    name = one_line(model_stem(path)) or "model"
    for note in notes:
        LOG.info("%s: %s", name, note)
    return Model(
        name=name,
        path=path,
        loops=settled.loops,
        feet=found,
        points=source.points,
        summary=replace(
            summary,
            actuators=summary.actuators + added,
            loop_rows=closure.num_rows,
            independent_rows=sum(loop.num_rows for loop in settled.loops)
            + sum(coupler.kept for coupler in settled.couplers),
            loop_gap=settled.gap,
        ),
        notes=tuple(notes),
        text=reading.text,
        ending=reading.ending,
        packages=reading.packages,
        actuators=motors.actuators,
        poses=named.poses,
        closed=settled.positions,
        couplers=settled.couplers,
        uncoupled=reading.uncoupled,
        candidates=candidates,
        files=hashes,
        options=_recorded(given),
    )


def _on_couplers(couplers: Sequence[Coupler]) -> list[str]:
    """What to say of joints that follow others."""
    if not couplers:
        return []
    shown = ", ".join(f"{x.follower} ({x.leader})" for x in couplers[:8])
    more = " ..." if len(couplers) > 8 else ""
    return [f"joints that follow others, and need no motor: {shown}{more}"]


# --- what the files say -----------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """A model file and those beside it, read.

    Attributes:
        reading: what Drake is to parse.
        loops: loops of the files.
        feet, points: of the YAML beside the model.
        motors: joints with motors, of the YAML that joins frames.
        is_ros: whether it is a URDF as ROS has them, not one of old Drake.
        remedy: what to do about lengths that cannot be in metres.
    """

    reading: Reading
    loops: tuple[Loop, ...]
    feet: tuple[Point, ...]
    points: tuple[Point, ...]
    motors: tuple[str, ...] = field(default=())
    is_ros: bool = False
    remedy: str = REMEDY


def _read(
    path: Path,
    units: Scaling,
    packages: Mapping[str, str | Path] | None,
    strict: bool,
    free_base: bool,
    up: str | None,
    alone: bool,
) -> _Source:
    """Reads a model file and those beside it; see :func:`load`."""
    beside = read_sidecar(sidecar_path(path))
    is_urdf = path.suffix.lower() == ".urdf"
    if is_urdf and (units != SI or is_old_urdf(path)):
        if up not in (None, "z"):
            raise InvalidInput(f"{path}: an old-Drake URDF is not turned; leave out up")
        check_model_file(path)
        old = read_old_urdf(path, units=units)
        notes = ("read as an old-Drake URDF", *old.notes)
        reading = Reading(old.sdf, "sdf", notes)
        loops = beside.loops or _fewest_rows(path, reading, old.loops)
        feet = tuple(Point(k, b, p) for k, (b, p) in old.feet.items())
        remedy = "if it is in mm, g and ms, give --units mm-g-ms"
        return _Source(
            reading, loops, beside.feet or feet, beside.points, remedy=remedy
        )
    if units != SI:
        raise InvalidInput(
            f"{path}: units apply to URDFs in the old Drake format only; "
            "this file is read in SI"
        )
    reading = read_model_file(
        path, packages=packages, strict=strict, free_base=free_base, up=up or "z"
    )
    reading, joined = _with_joined_frames(path, reading)
    if alone:
        reading = _without_loose_bodies(path, reading)
    own = (*joined.loops, *reading.loops, *_closed_by_file(path, reading))
    return _Source(
        reading,
        beside.loops or own,
        beside.feet,
        beside.points,
        tuple(joined.motors),
        is_urdf,
    )


def _closed_by_file(path: Path, reading: Reading) -> tuple[Loop, ...]:
    """The loops that a URDF or an SDF closes itself."""
    if path.suffix.lower() not in (".urdf", ".sdf"):
        return ()
    text = _text(path, reading)
    return file_loops(read_tree(text)) if "ball_constraint" in text else ()


def _text(path: Path, reading: Reading) -> str:
    """What Drake parses."""
    return reading.text or path.read_text(encoding="utf-8", errors="replace")


def _with_joined_frames(path: Path, reading: Reading) -> tuple[Reading, Joined]:
    """The text with the joints of the YAML beside a URDF, and its loops and motors."""
    try:
        joined = read_joined_frames(path)
        if joined is None:
            return reading, Joined()
        root = read_tree(_text(path, reading))
        loops = joined_loops(joined, root)
        root = with_joint_types(root, joined.joints)
        if light := with_small_masses(root):
            words = f"{light} links between hinges have no inertia and get a little"
            reading = replace(reading, notes=(*reading.notes, words))
        reading = replace(reading, text=write_tree(root), ending="urdf")
    except UnknownName as error:
        raise ModelProblem(path.with_suffix(".yaml"), str(error)) from error
    return reading, Joined(loops, joined.motors)


def _without_loose_bodies(path: Path, reading: Reading) -> Reading:
    """The text of an SDF without the bodies that no joint and no loop holds."""
    ending = path.suffix.lower()[1:] if reading.text is None else reading.ending
    if ending != "sdf":
        return reading
    root = read_tree(_text(path, reading))
    in_loops = {body for loop in reading.loops for body in (loop.body_A, loop.body_B)}
    loose = [name for name in loose_bodies(root) if name not in in_loops]
    if not loose:
        return reading
    remove_bodies(root, loose)
    notes = (*reading.notes, f"free bodies that are left out: {', '.join(loose)}")
    return replace(reading, text=write_tree(root), ending="sdf", notes=notes)


def _fewest_rows(
    path: Path, reading: Reading, loops: tuple[Loop, ...]
) -> tuple[Loop, ...]:
    """Hinges as planar loops where the rows left out are satisfied by themselves.

    In a mechanism with few degrees of freedom most rows of its hinges depend on
    the others; programs and time stepping need independent ones.
    """
    planar = tuple(replace(loop, rows="planar") for loop in loops)
    before, after = (
        inspect_model(path, reading, rows, (), Findings())[0].independent_rows
        for rows in (loops, planar)
    )
    return planar if before == after else loops


# --- poses and feet ---------------------------------------------------------


def _home_poses(
    path: Path, reading: Reading, links: Links, joints: Sequence[str]
) -> Poses:
    """The poses that the file, or an SRDF beside it, gives names."""
    srdf = find_srdf(path, links.model_names())
    named = Poses() if srdf is None else read_srdf(srdf, joints)
    return replace(named, poses={**named.poses, **reading.poses})


def _feet(
    beside: tuple[Point, ...],
    wanted: str | Sequence[str] | None,
    candidates: Sequence[FootCandidate],
    links: Links,
) -> tuple[tuple[Point, ...], list[str]]:
    """The feet, and what to say of those that were found by shape.

    Args:
        beside: feet of the YAML beside the model.
        wanted: feet that :func:`load` was asked for.
        candidates: what could be feet.
        links: of the model, in the pose it stands in.
    """
    feet, words = beside, []
    if not feet:
        chosen = [foot for foot in candidates if foot.chosen]
        feet = tuple(point for foot in chosen for point in foot.points)
        if chosen:
            shown = ", ".join(foot.name for foot in chosen[:8])
            more = " ..." if len(chosen) > 8 else ""
            words = [f"feet found by shape: {shown}{more}"]
        bare = [foot.name for foot in chosen if foot.shape == "frame"]
        if bare:
            words.append(
                f"feet without a shape touch at their link's origin: {', '.join(bare)} "
                "(--feet LINK:x,y,z puts them elsewhere)"
            )
    if wanted is not None:
        names = split_names(wanted) if isinstance(wanted, str) else list(wanted)
        known = (*feet, *(point for foot in candidates for point in foot.points))
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


def _recorded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of :func:`load` as plain values, for a result to keep."""
    units = given["units"]
    plain = {} if units == SI else {"units": [units.length, units.mass, units.time]}
    others = {name: value for name, value in given.items() if name != "units"}
    return plain | {name: _plain(value) for name, value in others.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: str(Path(folder).absolute()) for key, folder in value.items()}
    return value if isinstance(value, str | float | int) else list(value)
