"""Shape of HAMR-VI, from its joint table: `<visual>` elements and meshes.

The authors' CAD meshes were not available, so these shapes are ours: each part
spans its own joints. Left and right, front and rear parts are
mirror images; a rear part is the diagonal front part turned by pi about z, so
that two meshes serve four legs.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from drakebots.robots.hamr.model import LEGS

from .chassis import chassis_pieces
from .leg import leg_pieces
from .parameters import HamrParameters
from .pieces import Piece
from .sdf import link_name
from .shapes import obj_text

SUFFIX = "_right"
"""Of the mesh that serves the front-right and the rear-left leg."""


def hamr_visuals(parameters: HamrParameters) -> dict[str, list[ET.Element]]:
    """The `<visual>` elements of every link, by link name."""
    return {
        link: [piece.element() for piece in pieces]
        for link, pieces in _pieces(parameters).items()
    }


def mesh_texts(parameters: HamrParameters) -> dict[str, str]:
    """The mesh files by name, as OBJ in mm (the SDF scales them to m)."""
    meshes = {
        piece.file: piece.mesh
        for pieces in _pieces(parameters).values()
        for piece in pieces
        if piece.mesh is not None
    }
    return {f"{name}.obj": obj_text(meshes[name]) for name in sorted(meshes)}


def write_meshes(parameters: HamrParameters, folder: str | Path) -> list[Path]:
    """Writes the mesh files.

    Args:
        parameters: the table.
        folder: to write to; made if need be. Other files stay.

    Returns:
        The files written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in mesh_texts(parameters).items():
        paths.append(folder / name)
        paths[-1].write_text(text)
    return paths


def _pieces(parameters: HamrParameters) -> dict[str, list[Piece]]:
    drawn = leg_pieces(parameters)
    links = {"Chassis": chassis_pieces(parameters)}
    for leg in LEGS:
        for link in (key for key in drawn if " " not in key):
            rear = leg[0] == "R"
            pieces = drawn.get(f"{link} rear", drawn[link]) if rear else drawn[link]
            if leg in ("FR", "RL"):
                pieces = [piece.mirrored_y(SUFFIX) for piece in pieces]
            if rear:
                pieces = [piece.half_turn() for piece in pieces]
            links[link_name(leg, link)] = pieces
    return links
