"""A model file as its author wrote it, made ready for Drake's parser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.model.actuators import effort_limits
from drakebots.model.couplers import Coupler
from drakebots.model.find import model_stem
from drakebots.model.loops import Loop
from drakebots.model.reading import mjcf
from drakebots.model.reading.file_loops import file_couplers
from drakebots.model.reading.findings import Findings
from drakebots.model.reading.includes import check_includes, included_mimics
from drakebots.model.reading.limits import check_model_file
from drakebots.model.reading.packages import Packages
from drakebots.model.reading.sdf import make_sdf_absolute, repair_sdf
from drakebots.model.reading.tree import fixed_to_world, read_tree, remove, write_tree
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
        couplers: joints that follow others, which Drake couples in SAP by the text.
        uncoupled: included files of whose joints that is not known.
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


def read_model_file(
    path: Path,
    *,
    packages: Mapping[str, str | Path] | None = None,
    strict: bool = False,
    free_base: bool = False,
    up: str = "z",
) -> Reading:
    """Reads a URDF, SDF, MJCF or dmd.yaml and repairs what Drake would stop at.

    Args:
        path: the file.
        packages: folders of packages by name, searched before all others.
        strict: whether what is changed or ignored makes the file a bad one.
        free_base: whether links that are fixed to the world are to move freely.
        up: the axis that points up in the file; the root link of a URDF is turned
            to make it z.

    Raises:
        ModelProblem: for a file that cannot be repaired, with all its problems.
        InvalidInput: for a package whose folder does not exist, and for `up` other
            than "z" with a file that is no URDF.
    """
    places, findings = Packages(path, packages), Findings()
    source = check_model_file(path, findings)
    check_includes(path, packages)
    ending = path.suffix.lower().lstrip(".")
    if up != "z" and ending != "urdf":
        raise InvalidInput(f"{path}: only the base of a URDF is turned; leave out up")
    if ending in ("xml", "mjcf"):
        findings.check(path)
        read = mjcf.read_mjcf(path, free_base=free_base)
        for note in read.notes:
            findings.note(note)
        reading = Reading(
            read.sdf,
            "sdf",
            loops=read.loops,
            poses=read.poses,
            couplers=read.couplers,
        )
    elif ending in ("urdf", "sdf"):
        reading = _repaired(path, source, ending, places, findings, free_base, up)
    else:
        for name in re.findall(r"\b(?:package|model)://([^/\s]+)", source):
            if folder := next(places.folders(name), None):
                places.used[name] = folder
        reading = Reading()
    if ending not in ("xml", "mjcf"):
        reading = replace(reading, uncoupled=included_mimics(path, packages))
    for name in reading.uncoupled:
        line = "a <mimic> of an included file acts in simulations, not in plans"
        findings.note(line, name)
    findings.check(path, strict=strict)
    return replace(reading, notes=findings.notes, packages=places.used)


def _repaired(
    path: Path,
    source: str,
    ending: str,
    places: Packages,
    findings: Findings,
    free_base: bool,
    up: str,
) -> Reading:
    """A URDF or SDF, with a text if anything in it has to be changed."""
    root = read_tree(source)
    before = write_tree(root)
    if ending == "urdf":
        name = model_stem(path)
        loops = repair_urdf(root, places, findings, name=name, up=up)
    else:
        loops = repair_sdf(root, places, findings)
    findings.check(path)
    efforts = effort_limits(root) if ending == "urdf" else {}
    try:
        couplers = file_couplers(root)
    except InvalidInput as error:
        raise ModelProblem(path, str(error)) from error
    if free_base:
        remove(root, fixed_to_world(root))
    # Drake reads any file as UTF-8, whatever it declares.
    is_utf8 = source.encode() in path.read_bytes()
    if write_tree(root) == before and is_utf8:
        return Reading(ending=ending, efforts=efforts, couplers=couplers)
    make_absolute = make_urdf_absolute if ending == "urdf" else make_sdf_absolute
    make_absolute(root, places)
    return Reading(
        write_tree(root), ending, efforts=efforts, loops=loops, couplers=couplers
    )
