"""A robot model as a value, and Drake's parser, which makes a plant of it."""

from __future__ import annotations

import base64
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.multibody.parsing import PackageMap, Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex, RevoluteSpring

from drakebots.core.errors import ModelProblem, one_line
from drakebots.model.actuators import Actuator
from drakebots.model.candidates import FootCandidate
from drakebots.model.couplers import Coupler
from drakebots.model.description import Point, Reading
from drakebots.model.find import ENDINGS, model_files, package_root
from drakebots.model.loops import Loop, ball_points, find_body
from drakebots.model.views import actuators_of, joints_of, one_named
from drakebots.results import provenance

DRAKE_REFUSALS = (RuntimeError, ValueError, LookupError, SystemExit)
"""Errors by which Drake refuses a model; its failed assertions are SystemExit."""

_PLACE = re.compile(r"^.*?:(\d+:)? (?=(warning|error): )")
"""The path and the line number at the start of a message."""


@dataclass(frozen=True)
class Summary:
    """Contents of a model; counts are those of the plant with a free base.

    Attributes:
        positions, velocities, actuators: names in Drake's order.
        bodies: number of bodies without the world.
        springs: number of force elements without gravity.
        constraints: number of constraints that the file declares for SAP.
        mass: total mass [kg].
        loop_rows: number of rows of c(q), of loops and couplers.
        independent_rows: number of independent ones among them.
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


@dataclass(frozen=True, kw_only=True)
class Model(Reading):
    """A model file that has passed the checks, and what the YAML beside it adds.

    What it has of its file is described in :class:`Reading`.

    Attributes:
        name: the file's stem, or the name it was loaded by.
        path: the model file.
        summary: its contents.
        actuators: motors added to those of the file.
        closed: default positions of joints that close the loops, where those of the
            file leave them open, by joint [rad, m].
        candidates: possible feet, best first; empty where feet are given by the
            file or the YAML beside it.
        options: arguments of :func:`load` besides the file, where it is not the
            default, as plain values; `units` as its length, mass and time [SI].
        files: hashes of the files that were read, by name; see
            :func:`drakebots.model.find.file_hashes`.
        sprung: whether soft limbs have springs in place of the motors whose gains are
            their stiffness, on a robot that has other motors to command.
    """

    name: str
    path: Path
    summary: Summary
    actuators: tuple[Actuator, ...] = ()
    closed: Mapping[str, Sequence[float]] = field(default_factory=dict)
    candidates: tuple[FootCandidate, ...] = field(default=(), repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    sprung: bool = False

    def to_yaml(self) -> str:
        """Form in a YAML file: its path."""
        return str(self.path)

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
        instances = parse_model(plant, self.path, self)
        own = [j for j in joints_of(plant) if j.model_instance() in instances]
        for motor in self.actuators:
            joint = one_named(plant, "joint", motor.joint, own)
            plant.AddJointActuator(joint.name(), joint, motor.effort)
        if self.sprung:
            _spring_limbs(plant)
        for name, positions in self.closed.items():
            joint = one_named(plant, "joint", name, own)
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
        for loop, p_AP, p_BQ in self.balls(plant, loops, length_unit=length_unit):
            A, B = (find_body(plant, name) for name in (loop.body_A, loop.body_B))
            plant.AddBallConstraint(A, p_AP / length_unit, B, p_BQ / length_unit)

    def balls(
        self,
        plant: MultibodyPlant,
        loops: Sequence[Loop] | None = None,
        *,
        length_unit: float = 1.0,
    ) -> list[tuple[Loop, np.ndarray, np.ndarray]]:
        """The balls that close loops: each with its loop, p_AP and p_BQ (3,) [m].

        Args:
            plant, loops, length_unit: as of :meth:`close_loops`.
        """
        points = [p for loop in self.loops for p in (loop.p_AP, loop.p_BQ)]
        reach = max((float(np.abs(p).max()) for p in points), default=0.0)
        if reach == 0 and points:
            frames = [joint.frame_on_parent() for joint in joints_of(plant)]
            places = [frame.GetFixedPoseInBodyFrame() for frame in frames]
            reach = max(float(np.abs(X.translation()).max()) for X in places)
            reach *= length_unit
        half, chosen = reach / 20 or 1e-3, self.loops if loops is None else loops
        return [(x, *points) for x in chosen for points in ball_points(x, half)]

    def report(self) -> dict[str, Any]:
        """The contents as JSON-able values, lengths in m, mass in kg."""
        s = self.summary
        feet = {
            f.name: {"body": f.body, "p_BF_m": f.p_BF.tolist(), "radius_m": f.radius}
            for f in self.feet
        }
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
            "couplers": [coupler.name for coupler in self.couplers],
            "loop_rows": s.loop_rows,
            "independent_loop_rows": s.independent_rows,
            "loop_gap_m": s.loop_gap,
            "feet": feet,
            "points": [point.name for point in self.points],
            "notes": list(self.notes),
        }


def _spring_limbs(plant: MultibodyPlant) -> None:
    """Puts springs in place of the motors of soft limbs, which are named as
    :class:`drakebots.multibody.Limb` names them, unless the robot has no others.

    Drake's steps take springs explicitly and damping implicitly: h k of it makes the
    limbs', on light links, implicit too. A continuous plant has no step h.
    """
    soft = []
    for motor in actuators_of(plant):
        limb, bends, _ = motor.name().rpartition("_bend_")
        whole = plant.HasBodyNamed(f"{limb}_tip", motor.model_instance())
        soft += [motor] * (bool(bends) and whole and motor.has_controller())
    for motor in soft if len(soft) < plant.num_actuators() else ():
        stiffness, joint = motor.get_controller_gains().p, motor.joint()
        damping = joint.default_damping_vector() + plant.time_step() * stiffness
        joint.set_default_damping_vector(damping)
        plant.AddForceElement(RevoluteSpring(joint, 0.0, stiffness))
        plant.RemoveJointActuator(motor)


# --- what a result keeps of it -------------------------------------------------

_SUMMARY = ("actuators", "loop_rows", "independent_rows", "loop_gap")
"""Entries of a summary on motors and loops, which the file alone may not give."""

KEPT_PARTS = {
    "loops": Loop,
    "couplers": Coupler,
    "feet": Point,
    "points": Point,
    "actuators": Actuator,
}
"""Parts of a model that a result keeps by their fields."""


def model_provenance(
    model: Model,
    options: Mapping[str, Any],
    seed: int | None = None,
    *,
    files: Iterable[str | Path] = (),
) -> dict[str, Any]:
    """The provenance of a result of a model.

    Args:
        model: the model.
        options, seed: as in :func:`drakebots.results.provenance`.
        files: further files that the model consists of.

    A file that went away during the run is left out: it must not cost a result.

    Raises:
        InvalidInput: when an option cannot be stored.
    """
    named = [*model_files(model.path), *map(Path, files)]
    paths = dict.fromkeys(os.path.abspath(x) for x in named if os.path.isfile(x))
    return provenance(paths, options, seed, model=_record(model))


def _record(model: Model) -> dict[str, Any]:
    """A model as plain values."""
    text, ending, options = "", model.ending, dict(model.options)
    with suppress(OSError):  # the file may have gone away during the run
        text = model.parsed(model.path)
    if model.text is None:
        name = model.path.name.lower()
        ending = next(end for end in ENDINGS if name.endswith(end)).removeprefix(".")
    if "packages" in options:
        options["packages"] = _absolute(options["packages"])
    return {
        "path": os.path.abspath(model.path),
        "files": dict(model.files),
        "options": options,
        "packages": _absolute(model.packages),
        "text": base64.b64encode(zlib.compress(text.encode(), 9)).decode(),
        "ending": ending,
        **{name: [asdict(x) for x in getattr(model, name)] for name in KEPT_PARTS},
        "summary": {name: getattr(model.summary, name) for name in _SUMMARY},
        "poses": {name: dict(pose) for name, pose in model.poses.items()},
        "closed": {name: list(q) for name, q in model.closed.items()},
        "notes": list(model.notes),
    }


def _absolute(packages: Mapping[str, str | Path]) -> dict[str, str]:
    """Packages that are found from any folder."""
    return {name: os.path.abspath(place) for name, place in packages.items()}


# --- Drake's parser -----------------------------------------------------------


def package_map() -> PackageMap:
    """Our models as the package "drakebots", for Parsers of your own.

        parser.package_map().AddMap(drakebots.package_map())
        parser.AddModels(url="package://drakebots/hamr/hamr.sdf")

    The packages in the folders of ROS_PACKAGE_PATH are in it too.
    """
    found = PackageMap.MakeEmpty()
    _add_ours(found)
    found.PopulateFromRosPackagePath()
    return found


def _add_ours(packages: PackageMap) -> None:
    own = package_root() / "package.xml"
    if os.path.isfile(own):
        packages.AddPackageXml(str(own))


def parse_model(
    plant: MultibodyPlant, path: Path, reading: Reading, said: list[str] | None = None
) -> list[ModelInstanceIndex]:
    """Adds a model to a plant before Finalize.

    Args:
        plant: to add to.
        path: the model file.
        reading: input of Drake's parser.
        said: list that takes Drake's warnings.

    Raises:
        ModelProblem: for what Drake refuses, one line.
    """
    parser = Parser(plant)
    _add_ours(parser.package_map())
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
    except DRAKE_REFUSALS as error:
        raise ModelProblem(path, drake_message(error)) from error
    if said is not None:
        said += warnings
    if not instances:
        raise ModelProblem(path, "has no model")
    return instances


# --- what Drake says ---


def drake_message(error: BaseException) -> str:
    """Message for an error that is one of :data:`DRAKE_REFUSALS`."""
    return f"Drake's parser refuses it: {shortened(error)}"


def shortened(error: BaseException) -> str:
    """Reason of Drake to refuse a file, without the path of the file."""
    return _PLACE.sub("", one_line(error)).removeprefix("error: ")[:300]


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collects what Drake logs in a block, without its place, in place of printing."""
    messages = _Messages()
    logger = logging.getLogger("drake")
    logger.addHandler(messages)
    propagate, logger.propagate = logger.propagate, False
    # Filters keep Drake's chatter off the command line; here it is wanted.
    filters, logger.filters = logger.filters, []
    try:
        yield messages.lines
    finally:
        logger.removeHandler(messages)
        logger.propagate, logger.filters = propagate, filters


class _Messages(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = _PLACE.sub("", one_line(record.getMessage()))
        self.lines.append(text.removeprefix("warning: "))
