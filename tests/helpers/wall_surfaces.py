"""The two surfaces of a skin's wall."""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.geometry import Surface
from drakebots.fem.mesh import TetMesh, connected_pieces, surface_triangles


def wall_surfaces(mesh: TetMesh) -> tuple[Surface, Surface]:
    """The inner and the outer surface of a wall, both with their normals outward.

    Args:
        mesh: tets of a wall around one cavity, such as the skin of a robot in a file.

    Raises:
        InvalidInput: unless its boundary is a closed surface within another one.
    """
    f, x = surface_triangles(mesh), mesh.vertices
    part = connected_pieces(f, len(x))[1][f[:, 0]]
    pieces = [Surface(x, f[part == k]) for k in np.unique(part)]
    pieces.sort(key=lambda piece: piece.volume)
    if len(pieces) != 2 or pieces[0].volume >= 0:
        raise InvalidInput(f"skin: its boundary has {len(pieces)} pieces, not two")
    inner, outer = pieces
    return _compact(Surface(x, inner.triangles[:, ::-1])), _compact(outer)


def _compact(surface: Surface) -> Surface:
    """A surface without the vertices that it does not use."""
    used, triangles = np.unique(surface.triangles, return_inverse=True)
    return Surface(surface.vertices[used], triangles.reshape(-1, 3))
