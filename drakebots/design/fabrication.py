"""What is needed to build a design, as files (paper, section 6.2).

folder/parts     printed links, STL, and STEP where cadquery is installed
folder/skin      pieces of skin, one a limb and two of the torso, STL
folder/moulds    two-part moulds and cores, STL
folder/*.csv     bill of materials, servo map
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from drakebots.design.lists import write_lists
from drakebots.design.moulds import two_part_mould
from drakebots.design.parts import write_parts
from drakebots.design.parts_cad import write_step
from drakebots.design.pieces import skin_pieces
from drakebots.design.problem import Design
from drakebots.design.surface import write_surface


def write_fabrication(design: Design, folder: Path | str) -> list[Path]:
    """Writes the files; returns their paths.

    Raises:
        InvalidInput, NoSolution: for a skin that cannot be cut into pieces.
        FileProblem: for a place that cannot be written.
    """
    folder = Path(folder)
    for part in ("parts", "skin", "moulds"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    build = design.template.build
    written = list(write_parts(design.skeleton, build, folder / "parts"))
    if importlib.util.find_spec("cadquery") is not None:
        written += write_step(design.skeleton, build, folder / "parts")
    written += write_lists(design.skeleton, build, folder)
    for piece in skin_pieces(design.shell, design.skeleton).values():
        path = folder / "skin" / f"{piece.name}.stl"
        write_surface(path, piece.skin, unit="mm")
        written.append(path)
        for body, surface in two_part_mould(piece).bodies.items():
            path = folder / "moulds" / f"{piece.name}_{body}.stl"
            write_surface(path, surface, unit="mm")
            written.append(path)
    return written
