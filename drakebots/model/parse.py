"""Drake's parser, given a model's text or file, and what it says."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydrake.multibody.parsing import PackageMap, Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.core.errors import ModelProblem, one_line
from drakebots.model.couplers import Coupler
from drakebots.model.description import Point
from drakebots.model.find import package_root
from drakebots.model.loops import Loop

DRAKE_REFUSALS = (RuntimeError, ValueError, LookupError, SystemExit)
"""Errors by which Drake refuses a model; its failed assertions are SystemExit."""

_PLACE = re.compile(r"^.*?:(\d+:)? (?=(warning|error): )")
"""The path and the line number at the start of a message."""


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


@dataclass(frozen=True)
class Reading:
    """Input of Drake's parser, and what a file says besides.

    Attributes:
        text: in place of the file, with absolute paths; None for the file itself.
        ending: format of the text: "urdf" or "sdf".
        notes: changes, and parts left out, ignored or inferred, one line each.
        packages: folders of packages by name, for a file that Drake reads itself.
        efforts: the largest effort of joints by name [N m, N], which a URDF states
            without making motors of it.
        loops: of the file, or of the YAML beside it, in SI; the text closes those that
            say so.
        poses: joint positions by joint [rad, m], by the name that the file or one
            beside it gives them ("home", "standing").
        couplers: joints that follow others, which Drake couples in SAP by the text.
        uncoupled: included files whose joints follow others in SAP only.
        parameters: numbers in place of the file's by name, which the text has already;
            "friction" is the ground's. See :mod:`drakebots.model.description`.
        feet, points: that the file, or the YAML beside it, names, in SI.
        motors: joints with motors, of the YAML that joins frames.
        kind: "ROS" or "old Drake" for a URDF; else empty.
    """

    text: str | None = field(default=None, repr=False)
    ending: str = "sdf"
    notes: tuple[str, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)
    efforts: Mapping[str, float] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    poses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    couplers: tuple[Coupler, ...] = ()
    uncoupled: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    feet: tuple[Point, ...] = ()
    points: tuple[Point, ...] = ()
    motors: tuple[str, ...] = ()
    kind: str = ""

    def parsed(self, path: Path) -> str:
        """The text that Drake parses, of the file itself where none replaces it."""
        return self.text or path.read_text(encoding="utf-8", errors="replace")


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
