"""Check and load a model file; what it contains, found by having Drake parse it.

model = drakebots.load("hamr")            # by name, from the models folder
model = drakebots.load("my_robot.urdf")   # or any URDF, SDF, MJCF, dmd.yaml
print(model.report())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.geometry import SceneGraph
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import (
    DrakebotsError,
    InvalidInput,
    ModelProblem,
    UnknownName,
    one_line,
)
from drakebots.core.units import SI, Scaling
from drakebots.model.actuators import (
    Actuator,
    add_actuators,
    choose_actuators,
    unlimited_actuators,
)
from drakebots.model.closing import settle_loops
from drakebots.model.description import Point, read_sidecar
from drakebots.model.feet import (
    FootCandidate,
    Links,
    foot_candidates,
    named_feet,
    split_names,
)
from drakebots.model.find import (
    file_hashes,
    find_model,
    model_stem,
    package_root,
    sidecar_path,
)
from drakebots.model.loops import Loop, LoopClosure, add_ball_constraints, find_body
from drakebots.model.old_urdf import is_old_urdf, read_old_urdf
from drakebots.model.poses import Poses, find_srdf, read_srdf, standing
from drakebots.model.reading import (
    TURNS,
    Findings,
    Reading,
    check_model_file,
    file_loops,
    heard,
    loose_bodies,
    note_messages,
    read_model_file,
    read_tree,
    remove_bodies,
    shortened,
    write_tree,
)
from drakebots.model.reading.urdf.joined_frames import (
    Joined,
    joined_loops,
    read_joined_frames,
    with_joint_types,
    with_small_masses,
)
from drakebots.model.singular import moving_without_inertia
from drakebots.model.upright import upright_axis

# Drake's failed assertions reach Python as SystemExit.
_DRAKE_REFUSALS = (RuntimeError, ValueError, LookupError, SystemExit)


@dataclass(frozen=True)
class Summary:
    """What a model contains; counts are those of the plant with a free base.

    Attributes:
        positions, velocities, actuators: names in Drake's order.
        bodies: number of bodies without the world.
        springs: number of force elements without gravity.
        constraints: number of constraints that the file declares for SAP.
        mass: total mass [kg].
        loop_rows: number of rows of c(q).
        independent_rows: how many of them are independent.
        loop_gap: largest gap of a loop at the default positions [m].
        joints: names of the joints of one degree of freedom.
        driven: those of them with a motor in the file.
        bases: number of free bodies, each with what its joints carry.
    """

    positions: tuple[str, ...]
    velocities: tuple[str, ...]
    actuators: tuple[str, ...]
    bodies: int
    springs: int
    constraints: int
    mass: float
    loop_rows: int
    independent_rows: int
    loop_gap: float
    joints: tuple[str, ...] = ()
    driven: tuple[str, ...] = ()
    bases: int = 1


@dataclass(frozen=True)
class Model:
    """A model file that has passed the checks, and what the YAML beside it adds.

    Attributes:
        name: the file's stem, or the name it was loaded by.
        path: the model file.
        loops, feet, points: from the file or the YAML beside it, in SI.
        summary: what it contains.
        notes: what was ignored or inferred, one line each.
        text: what Drake parses in place of the file; None for the file itself.
        ending: what `text` is: "sdf", "urdf" or "xml" (MJCF).
        actuators: motors added to those of the file.
        packages: folders of packages by name, for a file that Drake reads itself.
        poses: joint positions by joint [rad, m], by the name that the file or one
            beside it gives them ("home", "standing").
        closed: default positions of joints that close the loops, where those of the
            file leave them open, by joint [rad, m].
        candidates: what could be feet, best first; empty where feet are given by the
            file or the YAML beside it.
        options: what :func:`load` was given besides the file, where it is not the
            default, as plain values; `units` as its length, mass and time [SI].
        files: hashes of the files that were read, by name; see
            :func:`drakebots.model.find.file_hashes`.
    """

    name: str
    path: Path
    loops: tuple[Loop, ...]
    feet: tuple[Point, ...]
    points: tuple[Point, ...]
    summary: Summary
    notes: tuple[str, ...] = ()
    text: str | None = field(default=None, repr=False)
    ending: str = "sdf"
    actuators: tuple[Actuator, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)
    poses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    closed: Mapping[str, Sequence[float]] = field(default_factory=dict)
    candidates: tuple[FootCandidate, ...] = field(default=(), repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    def add_to(
        self, plant: MultibodyPlant, *, close_loops: bool = True
    ) -> list[ModelInstanceIndex]:
        """Parses the model into a plant (SI), before Finalize.

        Args:
            plant: to add to.
            close_loops: whether to add SAP ball constraints for the loops that
                the file does not close itself.

        Returns:
            The model instances that were added.
        """
        reading = Reading(self.text, self.ending, packages=self.packages)
        instances = parse_model(plant, self.path, reading)
        add_actuators(plant, self.actuators, instances)
        for instance in instances:
            for name, positions in self.closed.items():
                if plant.HasJointNamed(name, instance):
                    joint = plant.GetJointByName(name, instance)
                    joint.set_default_positions(np.asarray(positions, float))
        if close_loops:
            self.close_loops(plant, [x for x in self.loops if not x.in_file])
        return instances

    def close_loops(
        self,
        plant: MultibodyPlant,
        loops: Sequence[Loop] | None = None,
        *,
        length_unit: float = 1.0,
    ) -> None:
        """Adds SAP ball constraints for loops to a plant, before Finalize.

        The two balls of a hinge are a tenth of the largest coordinate of the loops'
        points apart, or of the joints' where those are all zero: of the order of a
        link, so that they hold its direction well.

        Args:
            plant: with the model's bodies.
            loops: to close; all by default.
            length_unit: the plant's unit of length [m].
        """
        points = [p for loop in self.loops for p in (loop.p_AP, loop.p_BQ)]
        reach = max((float(np.abs(p).max()) for p in points), default=0.0)
        if reach == 0 and points:
            joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
            places = [j.frame_on_parent().GetFixedPoseInBodyFrame() for j in joints]
            reach = max(float(np.abs(X.translation()).max()) for X in places)
            reach *= length_unit
        add_ball_constraints(
            plant,
            self.loops if loops is None else loops,
            half_length=reach / 20 or 1e-3,
            length_unit=length_unit,
        )

    def report(self) -> dict[str, Any]:
        """The contents as JSON-able values, lengths in m, mass in kg."""
        s = self.summary
        return {
            "name": self.name,
            "path": str(self.path),
            "mass_kg": s.mass,
            "bodies": s.bodies,
            "free_bases": s.bases,
            "num_positions": len(s.positions),
            "num_velocities": len(s.velocities),
            "positions": list(s.positions),
            "velocities": list(s.velocities),
            "actuators": list(s.actuators),
            "springs_and_dampers": s.springs,
            "sap_constraints_in_file": s.constraints,
            "loops": [loop.name for loop in self.loops],
            "loop_rows": s.loop_rows,
            "independent_loop_rows": s.independent_rows,
            "loop_gap_m": s.loop_gap,
            "feet": {
                foot.name: {
                    "body": foot.body,
                    "p_BF_m": foot.p_BF.tolist(),
                    "radius_m": foot.radius,
                }
                for foot in self.feet
            },
            "points": [point.name for point in self.points],
            "notes": list(self.notes),
        }


# --- loading ---


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
            see :mod:`drakebots.model.upright`.
        alone: whether free bodies that no joint moves (a ball, a box of an MJCF's or
            SDF's scene) are left out, where joints move others.

    Raises:
        UnknownName: for an unknown name of a model, a foot, a joint or an axis.
        InvalidInput: for motors that cannot be added.
        ModelProblem: for a file that Drake or our checks refuse.
    """
    if up is not None and up not in TURNS:
        raise UnknownName("axis", up, TURNS)
    path, joined = find_model(name_or_path), Joined()
    hashes = file_hashes(path)
    sidecar = read_sidecar(sidecar_path(path))
    loops, found = sidecar.loops, sidecar.feet
    is_old = path.suffix.lower() == ".urdf" and (units != SI or is_old_urdf(path))
    if is_old:
        if up not in (None, "z"):
            raise InvalidInput(f"{path}: an old-Drake URDF is not turned; leave out up")
        check_model_file(path)
        old = read_old_urdf(path, units=units)
        notes = ("read as an old-Drake URDF", *old.notes)
        reading = Reading(old.sdf, "sdf", notes)
        loops = loops or _fewest_rows(path, reading, old.loops)
        found = found or tuple(Point(k, b, p) for k, (b, p) in old.feet.items())
    elif units == SI:
        reading = read_model_file(
            path,
            packages=packages,
            strict=strict,
            free_base=free_base,
            up=up or "z",
        )
        reading, joined = _with_joined_frames(path, reading)
        if alone:
            reading = _without_loose_bodies(path, reading)
        loops = loops or (
            *joined.loops,
            *reading.loops,
            *_closed_by_file(path, reading),
        )
    else:
        raise InvalidInput(
            f"{path}: units apply to URDFs in the old Drake format only; "
            "this file is read in SI"
        )
    points, findings = sidecar.points + found, Findings()
    try:
        summary, links = inspect_model(path, reading, loops, points, findings)
    except UnknownName as error:
        raise ModelProblem(sidecar_path(path), str(error)) from error
    findings.check(path, strict=strict)
    notes = [*reading.notes, *findings.notes]
    if actuate is None and joined.motors:
        actuate = joined.motors
    choice = choose_actuators(
        summary.joints,
        summary.driven,
        reading.efforts,
        actuate=actuate,
        effort=effort,
    )
    added = tuple(motor.joint for motor in choice.actuators)
    summary = replace(summary, actuators=summary.actuators + added)
    settled = settle_loops(
        LoopClosure(links.plant, loops), links.context, (*summary.driven, *added)
    )
    notes += settled.notes
    summary = replace(
        summary,
        loop_rows=sum(len(loop.row_numbers) for loop in loops),
        independent_rows=sum(loop.num_rows for loop in settled.loops),
        loop_gap=settled.gap,
    )
    srdf = find_srdf(path, links.model_names())
    named = Poses() if srdf is None else read_srdf(srdf, summary.joints)
    poses, notes = {**named.poses, **reading.poses}, [*notes, *named.notes]
    links.pose(standing(poses))
    candidates = () if found and feet is None else foot_candidates(links)
    if up is None and reading.ending == "urdf" and not found:
        axis = upright_axis(links, candidates)
        if axis != "z":
            return load(
                name_or_path,
                feet=feet,
                actuate=actuate,
                effort=effort,
                packages=packages,
                strict=strict,
                free_base=free_base,
                up=axis,
                alone=alone,
            )
    if up in ("x", "y"):
        notes.append(f"the file's {up} axis points up: its root link is turned upright")
    if not found:
        found = tuple(p for foot in candidates if foot.chosen for p in foot.points)
        notes += _words_on_feet(candidates)
    if feet is not None:
        names = split_names(feet) if isinstance(feet, str) else list(feet)
        known = (*found, *(point for foot in candidates for point in foot.points))
        found = named_feet(names, known, links)
    is_ros = path.suffix.lower() == ".urdf" and not is_old
    if is_ros and found and not summary.actuators and actuate is None:
        choice = unlimited_actuators(summary.joints)
        added = tuple(motor.joint for motor in choice.actuators)
        summary = replace(summary, actuators=added)
    if is_ros or actuate is not None:
        notes += choice.notes
    return Model(
        name=one_line(model_stem(path)) or "model",
        path=path,
        loops=settled.loops,
        feet=found,
        points=sidecar.points,
        summary=summary,
        notes=tuple(notes),
        text=reading.text,
        ending=reading.ending,
        packages=reading.packages,
        actuators=choice.actuators,
        poses=poses,
        closed=settled.positions,
        candidates=candidates,
        files=hashes,
        options=_options(
            units=units,
            feet=feet,
            actuate=actuate,
            effort=effort,
            packages=packages,
            strict=strict or None,
            free_base=free_base or None,
            up=up,
            alone=alone or None,
        ),
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


def _options(*, units: Scaling, **others: Any) -> dict[str, Any]:
    """The arguments of :func:`load` that are not the default, as plain values."""
    if units != SI:
        others["units"] = [units.length, units.mass, units.time]
    return {name: _plain(value) for name, value in others.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: str(Path(folder).absolute()) for key, folder in value.items()}
    return value if isinstance(value, str | float | int) else list(value)


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


def _words_on_feet(candidates: Sequence[FootCandidate]) -> list[str]:
    """Which feet were found, in one line."""
    chosen = [foot.name for foot in candidates if foot.chosen]
    if not chosen:
        return []
    shown = ", ".join(chosen[:8]) + (" ..." if len(chosen) > 8 else "")
    return [f"feet found by shape: {shown}"]


# --- what Drake says ---


def parse_model(
    plant: MultibodyPlant,
    path: Path,
    reading: Reading,
    findings: Findings | None = None,
) -> list[ModelInstanceIndex]:
    """Adds a model to a plant before Finalize.

    Args:
        plant: to add to.
        path: the model file.
        reading: what Drake is to parse.
        findings: what Drake warns of is added here.

    Raises:
        ModelProblem: for what Drake refuses, one line.
    """
    parser = Parser(plant)
    own = package_root() / "package.xml"
    if own.is_file():
        parser.package_map().AddPackageXml(str(own))
    for name, folder in reading.packages.items():
        if parser.package_map().Contains(name):
            parser.package_map().Remove(name)
        parser.package_map().Add(name, str(folder))
    try:
        with heard() as warnings:
            if reading.text is not None:
                instances = parser.AddModelsFromString(reading.text, reading.ending)
            else:
                instances = parser.AddModels(str(path))
    except _DRAKE_REFUSALS as error:
        raise ModelProblem(path, _drake_message(error)) from error
    if findings is not None:
        note_messages(warnings, findings)
    if not instances:
        raise ModelProblem(path, "has no model")
    return instances


def _drake_message(error: BaseException) -> str:
    return f"Drake's parser refuses it: {shortened(error)}"


def inspect_model(
    path: Path,
    reading: Reading,
    loops: Sequence[Loop],
    points: Sequence[Point],
    findings: Findings,
) -> tuple[Summary, Links]:
    """What a model contains, and its links in the pose to look for feet in.

    Args:
        path, reading, findings: as in :func:`parse_model`.
        loops: its loops.
        points: points whose bodies must exist.

    Raises:
        ModelProblem: for what Drake refuses, or masses that are not finite.
        UnknownName: for a loop or a point of a body that does not exist.
    """
    builder = DiagramBuilder()
    plant = builder.AddSystem(MultibodyPlant(1e-3))
    scene_graph = builder.AddSystem(SceneGraph())
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    parse_model(plant, path, reading, findings)
    try:
        plant.Finalize()
        context = plant.CreateDefaultContext()
        mass = plant.CalcTotalMass(context)
        closure = LoopClosure(plant, loops)
        gaps, C = closure.gaps(context), closure.jacobian(context)
        M = plant.CalcMassMatrix(context)
    except DrakebotsError:
        raise
    except _DRAKE_REFUSALS as error:
        raise ModelProblem(path, _drake_message(error)) from error
    if not np.isfinite(M).all() or not np.isfinite(mass):
        raise ModelProblem(path, "its mass matrix is not finite; check the inertias")
    if light := moving_without_inertia(plant, M):
        message = f"nothing has inertia that moves with {', '.join(light)}"
        raise ModelProblem(path, f"{message}; give it mass and inertia, or fix it")
    for point in points:
        find_body(plant, point.body)
    rank = int(np.linalg.matrix_rank(_normalised(C))) if C.size else 0
    joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
    single = [j for j in joints if j.num_velocities() == 1]
    motors = [plant.get_joint_actuator(i) for i in plant.GetJointActuatorIndices()]
    driven = {motor.joint().index() for motor in motors}
    summary = Summary(
        positions=tuple(plant.GetPositionNames(always_add_suffix=False)),
        velocities=tuple(plant.GetVelocityNames(always_add_suffix=False)),
        actuators=tuple(motor.name() for motor in motors),
        bodies=plant.num_bodies() - 1,
        springs=plant.num_force_elements() - 1,
        constraints=plant.num_constraints(),
        mass=float(mass),
        loop_rows=closure.num_rows,
        independent_rows=rank,
        loop_gap=float(gaps.max()) if gaps.size else 0.0,
        joints=tuple(joint.name() for joint in single),
        driven=tuple(j.name() for j in single if j.index() in driven),
        bases=sum(j.is_ephemeral() and "floating" in j.type_name() for j in joints),
    )
    return summary, Links(plant, scene_graph.model_inspector(), context, loops)


def _normalised(C: np.ndarray) -> np.ndarray:
    """Columns scaled, so that the rank does not depend on metres or radians."""
    norms = np.linalg.norm(C, axis=0)
    return C / np.where(norms > 0, norms, 1.0)
