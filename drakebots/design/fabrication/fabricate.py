"""All files that a robot is built from: skin pieces, moulds, printed parts, lists."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.design.fabrication.limb_cut import limbs_of
from drakebots.design.fabrication.moulds import Mould, two_part_mould
from drakebots.design.fabrication.parts import write_parts, write_step
from drakebots.design.fabrication.pieces import SkinPiece, skin_pieces
from drakebots.design.geometry import Surface, write_surface
from drakebots.design.problem import Design
from drakebots.design.skeleton import Build, Hinge, Skeleton
from drakebots.design.skin import Shell
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh

# What to buy and print, and how the servos are wired, as CSV files.

CHANNELS = 32
"""Of the paper's servo board (section 6.2)."""


def bill_of_materials(skeleton: Skeleton, build: Build) -> list[dict[str, object]]:
    """Rows item, kind, count, mass_each_kg, note; the masses add up to the skeleton's.

    Screws are listed without mass.
    """
    rows = []
    for link in skeleton.links:
        mass = link.mass_of("shell") + link.mass_of("rib")
        note = f"SLA resin, {mass / build.density * 1e6:.1f} cm^3"
        rows.append(_row(link.name, "printed part", 1, mass, note))
    servos = {hinge.servo for hinge in skeleton.hinges}
    for servo in sorted(servos, key=lambda s: s.name):
        count = sum(hinge.servo == servo for hinge in skeleton.hinges)
        note = f"{servo.effort:g} N m"
        rows.append(_row(servo.name, "servo", count, servo.mass, note))
    for link in skeleton.links:
        for solid in (s for s in link.solids if s.kind == "payload"):
            size = " x ".join(f"{1e3 * side:g}" for side in solid.size)
            rows.append(_row(solid.name, "payload", 1, solid.mass, f"{size} mm"))
    screws = 4 * len(skeleton.hinges)
    note = f"pilot holes {1e3 * build.pilot_hole:g} mm"
    rows.append(_row("self-tapping screw", "screw", screws, 0.0, note))
    return rows


def servo_map(skeleton: Skeleton) -> list[dict[str, object]]:
    """Rows joint, channel, servo, direction, zero_deg, lower_deg, upper_deg.

    The servo's shaft angle is zero_deg + direction x the joint's angle, its travel
    counted from 0, about the shaft's outward direction; see :func:`shaft_direction`.

    Raises:
        InvalidInput: for more joints than the board has channels, or limits that
            exceed a servo's travel.
    """
    if len(skeleton.hinges) > CHANNELS:
        raise InvalidInput(
            f"servo map: {len(skeleton.hinges)} joints, the board has {CHANNELS} "
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
                "direction": shaft_direction(hinge),
                "zero_deg": round(float(np.degrees(zero)), 6),
                "lower_deg": round(float(np.degrees(hinge.lower)), 6),
                "upper_deg": round(float(np.degrees(hinge.upper)), 6),
            }
        )
    return rows


def shaft_direction(hinge: Hinge) -> int:
    """1 where the shaft points along the joint's axis, -1 against it.

    Shafts point out of the robot: of pitch joints to their side, of abduction joints
    to their end, where the hip's horn is; of yaw joints up.
    """
    along = int(np.argmax(np.abs(hinge.axis)))
    if along == 2:
        return 1
    return 1 if hinge.p_WJ[along] * hinge.axis[along] > 0 else -1


def write_lists(skeleton: Skeleton, build: Build, folder: Path | str) -> list[Path]:
    """Writes bill_of_materials.csv and servo_map.csv."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, rows in (
        ("bill_of_materials.csv", bill_of_materials(skeleton, build)),
        ("servo_map.csv", servo_map(skeleton)),
    ):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with replacing(folder / name) as temporary:
            temporary.write_text(text.getvalue())
        paths.append(folder / name)
    return paths


def _row(item, kind, count, mass, note):
    return {
        "item": item,
        "kind": kind,
        "count": count,
        "mass_each_kg": round(float(mass), 6),
        "note": note,
    }


Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Fabrication:
    """What was written.

    Attributes:
        pieces, moulds: by piece.
        paths: of all files.
    """

    pieces: Mapping[str, SkinPiece]
    moulds: Mapping[str, Mould]
    paths: tuple[Path, ...]


def write_fabrication(
    folder: Path | str,
    shell: Shell | TetMesh | tuple[Surface, Surface],
    skeleton: Skeleton,
    build: Build,
    *,
    density: float | None = None,
    progress: Progress | None = None,
) -> Fabrication:
    """Writes everything (paper, section 6.2); each file is complete or not there.

    skin/PIECE.stl in the robot's frame, one a limb and two of the torso;
    moulds/PIECE_upper.stl, _lower and, where the core is loose, _core, each lying on
    its parting plane; links/LINK.stl, and .step where cadquery is installed, in the
    link's frame; all in millimetres. skin_pieces.csv, bill_of_materials.csv,
    servo_map.csv. But for the dates in .step files they depend on the arguments only.

    Args:
        folder: made where it is missing.
        shell: the skin; see :func:`drakebots.design.fabrication.pieces.skin_pieces`.
        skeleton: at rest.
        build: the template's, of the printed parts.
        density: of the silicone [kg/m^3]; the default material's.
        progress: called before each step with its name, its number and how many
            there are.

    Raises:
        InvalidInput: for a density that is not > 0, a skin that cannot be cut.
        NoSolution: when a piece cannot be parted from the rest.
        FileProblem: when a file cannot be written.
    """
    density = Material().density if density is None else density
    if not (np.isfinite(density) and density > 0):
        raise InvalidInput(f"silicone density {density} kg/m^3: must be > 0")
    folder = Path(folder)
    say = progress or (lambda name, number, count: None)
    count = len(limbs_of(skeleton)) + 4
    say("skin pieces", 0, count)
    pieces = skin_pieces(shell, skeleton)
    moulds = {}
    for k, (name, piece) in enumerate(pieces.items(), 1):
        say(f"mould {name}", k, count)
        moulds[name] = two_part_mould(piece)
    say("files", count - 1, count)
    # Nothing is written before all of it is made.
    for sub in ("skin", "moulds"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    paths = []
    for name, piece in pieces.items():
        bodies = {folder / "skin" / f"{name}.stl": piece.skin}
        for part, surface in moulds[name].bodies.items():
            bodies[folder / "moulds" / f"{name}_{part}.stl"] = surface
        for path, surface in bodies.items():
            write_surface(path, surface, "mm")
            paths.append(path)
    paths += write_parts(skeleton, build, folder / "links")
    if importlib.util.find_spec("cadquery") is not None:
        paths += write_step(skeleton, build, folder / "links")
    paths += write_lists(skeleton, build, folder)
    paths.append(
        _write_rows(folder / "skin_pieces.csv", piece_rows(pieces, moulds, density))
    )
    return Fabrication(pieces, moulds, tuple(paths))


def fabricate(
    design: Design, folder: Path | str, *, progress: Progress | None = None
) -> Fabrication:
    """:func:`write_fabrication` of a design, with the density of its skin."""
    return write_fabrication(
        folder,
        design.shell,
        design.skeleton,
        design.template.build,
        density=design.materials[0].density,
        progress=progress,
    )


def piece_rows(
    pieces: Mapping[str, SkinPiece], moulds: Mapping[str, Mould], density: float
) -> list[dict[str, object]]:
    """A row a piece: volume, mass, mould, undercut; the masses add up to the skin's."""
    rows = []
    for name, piece in pieces.items():
        mould = moulds[name]
        size = " x ".join(f"{1e3 * side:.0f}" for side in mould.size)
        rows.append(
            {
                "piece": name,
                "silicone_cm3": round(1e6 * piece.volume, 3),
                "silicone_g": round(1e3 * density * piece.volume, 3),
                "mould_parts": len(mould.bodies),
                "mould_mm": size,
                "undercut_outside": round(mould.parting.undercut, 4),
                "undercut": round(mould.undercut, 4),
                "undercut_without_core": round(mould.undercut_without_core, 4),
                "vents": len(mould.vents),
            }
        )
    return rows


def _write_rows(path, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with replacing(path) as temporary:
        temporary.write_text(text.getvalue())
    return path
