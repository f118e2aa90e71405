"""`drakebots design` and `drakebots limbs`: parsing only."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any

from drakebots.cli import command
from drakebots.cli.options import (
    Written,
    check_folder,
    chosen,
    field_options,
    field_values,
    refuse,
)
from drakebots.cli.output import print_table, tell
from drakebots.cli.progress import progress_bar, warn
from drakebots.core.checks import in_unit, known, one_of
from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.core.fields import checked, declared
from drakebots.core.files import claimed, make_folder
from drakebots.core.run import ended_by, saving
from drakebots.design import (
    JOINTS,
    SURFACE_SKIN,
    Design,
    DesignProblem,
    FitSettings,
    SkinSettings,
    design_robot,
    draw_cut,
    draw_fabrication,
    draw_fit,
    draw_improved,
    draw_skeleton,
    draw_skin,
    draw_surface,
    fabricate,
    read_design,
    table1_problem,
    write_design,
)
from drakebots.design.geometry import SUFFIXES, read_surface
from drakebots.design.skeleton import write_sdf
from drakebots.fem.mesh import write_mesh
from drakebots.formats import write_limbs
from drakebots.multibody import read_limbs
from drakebots.robots import quads

# Soft limbs on any robot.


@checked()
class Putting:
    """Limbs that are put on a robot."""

    robot: str
    """Model of the robot (URDF, SDF or MJCF)."""
    limbs: Path
    """Description of the limbs and their links (.yaml)."""
    output: Annotated[Path, Written()] = field(kw_only=True)
    """File of the robot with limbs (.dmd.yaml)."""


@command("limbs", "drakebots limbs robot.urdf limbs.yaml -o soft.dmd.yaml", Putting)
def put_limbs(args: argparse.Namespace) -> int:
    """Put soft, actuated limbs on any robot."""
    limbs = read_limbs(args.limbs)
    path = write_limbs(args.robot, limbs, args.output)
    rows = {
        limb.name: f"on {limb.parent}, {limb.length:.4g} m, "
        f"{limb.stiffness:.3g} N m/rad, {limb.segments} segments"
        for limb in limbs
    }
    print_table("limbs", rows)
    facts = {"robot": str(path), "limbs": [limb.name for limb in limbs]}
    return tell(args, facts, path)


# Skinned quad-robots.


_OF_SURFACE = ("thicken", "forward", "up")
"""Fields of a design that only a surface without template has."""


@checked()
class Designing:
    """What is designed, and what is made of it."""

    what: Annotated[str, known((*JOINTS, *SUFFIXES))]
    """Robot of Table 1, design (.yaml) or surface."""
    output: Path = field(kw_only=True)
    """Folder of the robot's files."""
    units: Annotated[str | None, known(("m", "cm", "mm"))] = None
    """Unit of a surface: m, cm or mm; by default the first in which it is 2 cm to 5 m
    long."""
    time_limit: Annotated[float | None, in_unit("s")] = None
    """Limit of wall time; finished stages are kept."""
    fabrication: bool = False
    """Whether to write moulds, printed parts and lists too."""
    pictures: bool = True
    """Pictures of the robot."""
    improve: Annotated[str | None, one_of("figure", ("torque",))] = None
    """Torque: change wall, folds, silicone and links until the rms torque of the
    planned walk is lower by --reduction, and replay it."""
    reduction: float | None = None
    """Share by which --improve lowers the torque, 0.2 by default."""


def _design_options(parser: argparse.ArgumentParser) -> None:
    surface = parser.add_argument_group("of a surface; what is not given is found")
    field_options(surface, FitSettings)
    others = set(declared(DesignProblem)) - set(_OF_SURFACE)
    field_options(surface, DesignProblem, but=others)
    field_options(parser.add_argument_group("of the skin"), SkinSettings)


def problem_of(args: argparse.Namespace) -> DesignProblem:
    """The design problem that the arguments describe.

    Raises:
        DrakebotsError: for a file, a robot or a value that is wrong.
    """
    what, path = args.what, Path(args.what)
    suffix = path.suffix.lower()
    fit = field_values(args, FitSettings, declared(FitSettings))
    found = field_values(args, DesignProblem, _OF_SURFACE)
    if suffix not in SUFFIXES:
        names = (*declared(FitSettings), *_OF_SURFACE, "units")
        refuse(args, names, f"{what}; it is for a surface")
    if suffix in (".yaml", ".yml"):
        problem = read_design(path)
    elif suffix in SUFFIXES:
        problem = DesignProblem(
            re.sub(r"\W", "_", path.stem),
            surface=read_surface(path, unit=args.units, any_size=True),
            skin=SURFACE_SKIN,
            fit=FitSettings(**fit),
            **found,
        )
    elif suffix:
        raise FileProblem(
            path, f"is no design (.yaml) and no surface ({', '.join(SUFFIXES)})"
        )
    else:
        problem = table1_problem(what)
    skin = field_values(args, SkinSettings, declared(SkinSettings), problem.skin)
    return replace(problem, skin=replace(problem.skin, **skin))


def write_more(design: Design, folder: Path, how: Designing) -> list[Path]:
    """Writes a design's pictures and what it is built from; returns the paths."""
    name, written = design.problem.name, []
    if how.pictures:
        written += [
            draw_skin(folder / f"{name}.png", design),
            draw_skeleton(folder / "skeleton.png", design),
            draw_cut(folder / "wall.png", design),
        ]
    if how.fabrication:
        with progress_bar(f"{name}: moulds") as bar:
            made = fabricate(design, folder / "fabrication", progress=bar)
        written += made.paths
        if how.pictures:
            written.append(draw_fabrication(folder / "fabrication.png", made))
    return written


def _keep_stages(
    folder: Path, pictures: bool, kept: list[Path]
) -> Callable[[str, Any], None]:
    """Writes each stage as soon as it is done, so that what ends a design leaves them.

    They are the skeleton, first as it was fitted and then in the body that was made for
    it, and the skin's mesh; and pictures of these and of the surface.
    """

    def watch(stage: str, made: Any) -> None:
        place = folder / STAGES
        make_folder(folder if stage == "surface" else place)
        if stage in ("fit", "skeleton"):
            kept.append(write_sdf(made.skeleton, place))
        elif stage == "shell":
            write_mesh(place / "skin.vtu", made.mesh, small=True)
            kept.append(place / "skin.vtu")
        if pictures and stage in _PICTURES:
            number, title = _PICTURES[stage]
            draw = draw_surface if stage == "surface" else draw_fit
            kept.append(draw(folder / f"stage_{number}.png", made, title=title))

    return watch


STAGES = "stages"
"""Folder of what is kept of a design until it is done."""

_PICTURES = {
    "surface": ("1_surface", "the surface"),
    "fit": ("2_fit", "skeleton; what sticks out: red"),
    "skeleton": ("3_body", "the body around its skeleton"),
}
"""Name and title of the picture of a stage."""


@command("design", "drakebots design beetle -o out/", Designing, _design_options)
def design_skinned(args: argparse.Namespace) -> int:
    """Design a skinned robot from a name, a YAML file or a surface."""
    how = chosen(args, Designing)
    check_folder(how.output)
    problem = problem_of(args)
    folder = how.output.absolute()
    if how.improve is not None:
        return _improve(args, problem, folder)
    if how.reduction is not None:
        raise InvalidInput("--reduction is for --improve torque; leave it out")
    kept: list[Path] = []
    with claimed([folder] if os.path.isdir(folder.parent) else []):
        try:
            with progress_bar(problem.name) as bar:
                watch = _keep_stages(folder, how.pictures, kept)
                design = design_robot(problem, progress=bar, watch=watch)
        except KeyboardInterrupt as error:
            if not kept:
                raise
            why = ended_by(error)[1].partition(";")[0]
            paths = ", ".join(map(str, dict.fromkeys(kept)))  # one may be made again
            warn(f"{why}; kept of {problem.name}: {paths}")
            return 1
        with saving():
            model = write_design(design, folder)
            shutil.rmtree(folder / STAGES, ignore_errors=True)
        written = [model, *write_more(design, folder, how)]
    report = design.report()
    rows = {
        "joints": report["joints"],
        "skin": str(design.shell.report),
        "glued vertices": report["glue_vertices"],
        "mass [kg]": f"skeleton {report['skeleton_mass_kg']:.4g}, skin "
        f"{report['skin_mass_kg']:.4g} of {report['skin_density_kg_m3']:.0f} kg/m^3",
        "size [m]": " x ".join(f"{s:.3g}" for s in report["size_m"]),
        "seconds": ", ".join(f"{k} {v:.1f}" for k, v in report["seconds"].items()),
        "notes": "; ".join(design.notes) or None,
    }
    print_table(problem.name, rows)
    return tell(args, report | {"files": list(map(str, written))}, *written)


def _improve(args: argparse.Namespace, problem: DesignProblem, folder: Path) -> int:
    """Designs, and changes the design for the figure of --improve."""
    with claimed([folder] if os.path.isdir(folder.parent) else []):
        with progress_bar(problem.name) as bar:
            share = {} if args.reduction is None else {"reduction": args.reduction}
            found = quads.improve(problem, folder, **share, progress=bar)
        written = [found.path]
        if args.pictures is not False:
            written.append(draw_improved(folder / "improved.png", found))
    before, after = found.rms
    rows = found.changes
    rows["rms torque [N m]"] = (
        f"{before:.4g} to {after:.4g}, {100 * (1 - after / before):.1f} % less"
    )
    if found.run is not None:
        m = found.run.metrics
        rows["replay [m]"] = f"{m['distance_m']:.3f} of {m['planned_distance_m']:.3f}"
    rows["verdict"] = f"{found.verdict}: {found.message}"
    print_table(problem.name, rows)
    facts = {
        "verdict": str(found.verdict),
        "message": found.message,
        "rms_torque_N_m": list(found.rms),
        "values": dict(found.values),
        "slopes_per_range_N_m": dict(found.slopes),
        "steps": list(found.steps),
        "files": list(map(str, written)),
    }
    tell(args, facts, *written)
    return 0 if found.verdict == "success" else 1
