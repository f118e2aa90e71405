"""A model file as its author wrote it, made ready for Drake's parser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.model.actuators import effort_limits
from drakebots.model.find import model_stem
from drakebots.model.loops import Loop
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.limits import check_model_file
from drakebots.model.reading.mjcf import read_mjcf
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.sdf import make_sdf_absolute, repair_sdf
from drakebots.model.reading.tree import read_tree, write_tree
from drakebots.model.reading.urdf import make_urdf_absolute, repair_urdf


@dataclass(frozen=True)
class Reading:
    """What Drake is to parse.

    Attributes:
        text: in place of the file, with absolute paths; None for the file itself.
        ending: what the text is: "urdf", "sdf" or "xml" (MJCF).
        notes: what was changed, left out or is ignored, one line each.
        packages: folders of packages by name, for a file that Drake reads itself.
        efforts: the largest effort of joints by name [N m, N], which a URDF states
            without making motors of it.
        loops: closed by the file, not by the text.
        poses: joint positions that the file names, by joint [rad, m].
    """

    text: str | None = field(default=None, repr=False)
    ending: str = "sdf"
    notes: tuple[str, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)
    efforts: Mapping[str, float] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    poses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def read_model_file(
    path: Path,
    *,
    packages: Mapping[str, str | Path] | None = None,
    strict: bool = False,
) -> Reading:
    """Reads a URDF, SDF, MJCF or dmd.yaml and repairs what Drake would stop at.

    Args:
        path: the file.
        packages: folders of packages by name, searched before all others.
        strict: whether what is changed or ignored makes the file a bad one.

    Raises:
        ModelProblem: for a file that cannot be repaired, with all its problems.
        InvalidInput: for a package whose folder does not exist.
    """
    source = check_model_file(path)
    places, findings = Packages(path, packages), Findings()
    ending, text, efforts = path.suffix.lower().lstrip("."), None, {}
    if ending in ("xml", "mjcf"):
        mjcf = read_mjcf(path)
        for note in mjcf.notes:
            findings.note(note)
        findings.check(path, strict=strict)
        return Reading(
            mjcf.sdf, "sdf", findings.notes, loops=mjcf.loops, poses=mjcf.poses
        )
    if ending in ("urdf", "sdf"):
        text, efforts = _repaired(path, source, ending, places, findings)
    elif ending == "yaml":
        for name in re.findall(r"\b(?:package|model)://([^/\s]+)", source):
            if folder := next(places.folders(name), None):
                places.used[name] = folder
    findings.check(path, strict=strict)
    return Reading(text, ending, findings.notes, places.used, efforts)


def _repaired(
    path: Path, source: str, ending: str, places: Packages, findings: Findings
) -> tuple[str | None, dict[str, float]]:
    """The text of an XML file, if anything in it has to be changed, and efforts."""
    try:
        root = read_tree(source)
    except InvalidInput as error:
        raise ModelProblem(path, str(error)) from error
    before = write_tree(root)
    if ending == "urdf":
        repair_urdf(root, places, findings, name=model_stem(path))
    else:
        repair_sdf(root, places, findings)
    efforts = effort_limits(root) if ending == "urdf" else {}
    if write_tree(root) == before:
        return None, efforts
    if ending == "urdf":
        make_urdf_absolute(root, places)
    else:
        make_sdf_absolute(root, places)
    return write_tree(root), efforts
