"""Everything from which a robot is built: skin pieces, moulds, printed parts, lists."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import write_csv
from drakebots.core.run import Progress
from drakebots.design.fabrication.moulds import Mould, two_part_mould
from drakebots.design.fabrication.parts import write_parts, write_step
from drakebots.design.fabrication.pieces import SkinPiece, limbs_of, skin_pieces
from drakebots.design.geometry import write_surface
from drakebots.design.problem import Design
from drakebots.design.skeleton import Build, Hinge, Skeleton
from drakebots.design.skin import in_folds

_CHANNELS = 32
"""Number of channels of the paper's servo board (section 6.2)."""


@dataclass(frozen=True)
class Fabrication:
    """Pieces, moulds and files for the fabrication of a design.

    Attributes:
        pieces: pieces of skin, by name.
        moulds: their moulds, by the same names.
        paths: paths of all files.
    """

    pieces: Mapping[str, SkinPiece]
    moulds: Mapping[str, Mould]
    paths: tuple[Path, ...]


def fabricate(
    design: Design, folder: Path | str, *, progress: Progress | None = None
) -> Fabrication:
    """Writes everything from which a robot is built (paper, section 6.2).

    In millimetres: skin/PIECE.stl in the robot's frame, one for each limb and two for
    the torso; moulds/PIECE_upper.stl, _lower and, where the core is loose, _core, each
    lying on its parting plane; links/LINK.stl in the link's frame, and .step where
    cadquery is installed. Lists: skin_pieces.csv, bill_of_materials.csv, servo_map.csv.
    Except for the dates in .step files they depend on the design only. Each file is
    complete or missing.

    Args:
        design: the robot.
        folder: folder of the files; made if it is missing.
        progress: called before each step with its name, the number of steps done and
            the number of all steps.

    Raises:
        InvalidInput: for a skin that cannot be cut.
        NoSolution: when a piece cannot be separated from the rest.
        FileProblem: when a file cannot be written.
    """
    folder, skeleton, build = Path(folder), design.skeleton, design.template.build
    end = len(limbs_of(skeleton)) + 4

    def step(stage, done):
        if progress is not None:
            progress(stage, done, end)

    step("skin pieces", 0)
    shell, mesh = design.shell, design.shell.mesh
    folds = mesh.vertices[mesh.tets[in_folds(mesh)]]
    pieces = skin_pieces(shell.outer, shell.inner, skeleton, folds)
    moulds = {}
    for k, (name, piece) in enumerate(pieces.items(), 1):
        step(f"mould {name}", k)
        moulds[name] = two_part_mould(piece)
    step("files", end - 1)
    # Nothing is written before all of it is made.
    bodies = {folder / "skin" / f"{k}.stl": piece.skin for k, piece in pieces.items()}
    for name, mould in moulds.items():
        for part, surface in mould.bodies.items():
            bodies[folder / "moulds" / f"{name}_{part}.stl"] = surface
    for path, surface in bodies.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_surface(path, surface, "mm")
    paths = [*bodies, *write_parts(skeleton, build, folder / "links")]
    if importlib.util.find_spec("cadquery") is not None:
        paths += write_step(skeleton, build, folder / "links")
    density = design.materials[0].density
    for name, rows in (
        ("bill_of_materials", bill_of_materials(skeleton, build)),
        ("servo_map", servo_map(skeleton)),
        ("skin_pieces", piece_rows(pieces, moulds, density)),
    ):
        values = (row.values() for row in rows)
        paths.append(write_csv(folder / f"{name}.csv", rows[0], values))
    return Fabrication(pieces, moulds, tuple(paths))


# The lists: pieces to cast, things to buy and print, and how the servos are wired.


def piece_rows(
    pieces: Mapping[str, SkinPiece], moulds: Mapping[str, Mould], density: float
) -> list[dict[str, object]]:
    """Volume, mass, mould, undercut of each piece; masses add up to the skin's."""
    rows = []
    for name, piece in pieces.items():
        mould = moulds[name]
        rows.append(
            {
                "piece": name,
                "silicone_cm3": round(1e6 * piece.volume, 3),
                "silicone_g": round(1e3 * density * piece.volume, 3),
                "mould_parts": len(mould.bodies),
                "mould_mm": " x ".join(f"{1e3 * side:.0f}" for side in mould.size),
                "undercut_outside": round(mould.parting.undercut, 4),
                "undercut": round(mould.undercut, 4),
                "undercut_without_core": round(mould.undercut_without_core, 4),
                "vents": len(mould.vents),
            }
        )
    return rows


def bill_of_materials(skeleton: Skeleton, build: Build) -> list[dict[str, object]]:
    """Rows item, kind, count, mass_each_kg, note; the masses add up to the skeleton's.

    Screws are listed without mass.
    """
    rows = []

    def add(item, kind, count, mass, note):
        row = {"item": item, "kind": kind, "count": count}
        rows.append(row | {"mass_each_kg": round(float(mass), 6), "note": note})

    for link in skeleton.links:
        mass = link.mass_of("shell") + link.mass_of("rib")
        note = f"SLA resin, {mass / build.density * 1e6:.1f} cm^3"
        add(link.name, "printed part", 1, mass, note)
    servos = {hinge.servo for hinge in skeleton.hinges}
    for servo in sorted(servos, key=lambda s: s.name):
        count = sum(hinge.servo == servo for hinge in skeleton.hinges)
        add(servo.name, "servo", count, servo.mass, f"{servo.effort:g} N m")
    for link in skeleton.links:
        for solid in (s for s in link.solids if s.kind == "payload"):
            size = " x ".join(f"{1e3 * side:g}" for side in solid.size)
            add(solid.name, "payload", 1, solid.mass, f"{size} mm")
    note = f"pilot holes {1e3 * build.pilot_hole:g} mm"
    add("self-tapping screw", "screw", 4 * len(skeleton.hinges), 0.0, note)
    return rows


def servo_map(skeleton: Skeleton) -> list[dict[str, object]]:
    """Rows joint, channel, servo, direction, zero_deg, lower_deg, upper_deg.

    The angle of a servo's shaft about its outward direction, counted from the start of
    its travel, is zero_deg + direction x the joint's angle; see
    :func:`_shaft_direction`.

    Raises:
        InvalidInput: for more joints than the board has channels, or limits beyond a
            servo's travel.
    """
    if len(skeleton.hinges) > _CHANNELS:
        raise InvalidInput(
            f"servo map: {len(skeleton.hinges)} joints, but the board has {_CHANNELS} "
            "channels; add a second board"
        )
    rows = []
    for channel, hinge in enumerate(skeleton.hinges):
        zero = hinge.servo.travel / 2
        if max(-hinge.lower, hinge.upper) > zero:
            raise InvalidInput(
                f"joint {hinge.name}: limits exceed the travel of {hinge.servo.name}"
            )
        rows.append(
            {
                "joint": hinge.name,
                "channel": channel,
                "servo": hinge.servo.name,
                "direction": _shaft_direction(hinge),
                "zero_deg": round(float(np.degrees(zero)), 6),
                "lower_deg": round(float(np.degrees(hinge.lower)), 6),
                "upper_deg": round(float(np.degrees(hinge.upper)), 6),
            }
        )
    return rows


def _shaft_direction(hinge: Hinge) -> int:
    """1 where the servo's shaft points along the joint's axis, -1 where against it.

    Shafts point out of the robot: those of pitch joints to their side, those of
    abduction joints to their end, where the hip's horn is, and those of yaw joints up.
    """
    along = int(np.argmax(np.abs(hinge.axis)))
    if along == 2:
        return 1
    return 1 if hinge.p_WJ[along] * hinge.axis[along] > 0 else -1
