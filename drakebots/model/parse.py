"""Drake's parser, given a model's text or file, and what it says."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydrake.multibody.parsing import PackageMap, Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.core.errors import ModelProblem, one_line
from drakebots.model.description import Reading
from drakebots.model.find import package_root

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
