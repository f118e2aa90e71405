"""All files that a robot is built from: skin pieces, moulds, printed parts, lists."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.design.limb_cut import limbs_of
from drakebots.design.lists import write_lists
from drakebots.design.moulds import Mould, two_part_mould
from drakebots.design.parts import write_parts
from drakebots.design.parts_cad import write_step
from drakebots.design.pieces import SkinPiece, skin_pieces
from drakebots.design.problem import Design
from drakebots.design.shell import Shell
from drakebots.design.skeleton import Skeleton
from drakebots.design.surface import Surface, write_surface
from drakebots.design.template_parameters import Build
from drakebots.errors import InvalidInput
from drakebots.fem.materials import Material
from drakebots.fem.mesh import TetMesh
from drakebots.results.container import replacing

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
        shell: the skin; see :func:`drakebots.design.pieces.skin_pieces`.
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
