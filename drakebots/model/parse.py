"""What Drake's parser makes of a model file, or says of it."""

from __future__ import annotations

import os
from pathlib import Path

from pydrake.multibody.parsing import PackageMap, Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.core.errors import ModelProblem
from drakebots.model.find import package_root
from drakebots.model.reading import (
    Findings,
    Reading,
    heard,
    note_messages,
    shortened,
)

DRAKE_REFUSALS = (RuntimeError, ValueError, LookupError, SystemExit)
"""Errors by which Drake refuses a model; its failed assertions are SystemExit."""


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
    if findings is not None:
        note_messages(warnings, findings)
    if not instances:
        raise ModelProblem(path, "has no model")
    return instances


def drake_message(error: BaseException) -> str:
    """What to say of an error that is one of :data:`DRAKE_REFUSALS`."""
    return f"Drake's parser refuses it: {shortened(error)}"
