"""Walls of prisms cut in tets: volume, orientation, neighbours that agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.fem.mesh import TetMesh, prism_tets
from drakebots.fem.mesh.mesh import surface_faces

OCTAHEDRON = np.array(
    [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]]
)
FACES = np.array(
    [
        [0, 2, 4],
        [2, 1, 4],
        [1, 3, 4],
        [3, 0, 4],
        [2, 0, 5],
        [1, 2, 5],
        [3, 1, 5],
        [0, 3, 5],
    ]
)


@settings(max_examples=30)
@given(st.permutations(range(6)), st.integers(0, 2), st.integers(1, 3))
def test_a_shell_is_filled_once_however_it_is_numbered(order, turn, layers):
    """Of an octahedron: all volumes > 0, their sum 4/3 (1 - s^3), two closed sides."""
    order = np.array(order)
    x = np.empty_like(OCTAHEDRON)
    x[order] = OCTAHEDRON
    faces = np.roll(order[FACES], turn, axis=1)
    shrink = 0.7
    points = np.concatenate(
        [x * (1 - (1 - shrink) * k / layers) for k in range(layers + 1)]
    )
    mesh = TetMesh(points, prism_tets(faces, 6, layers))
    assert len(mesh.tets) == 3 * layers * len(faces)
    assert mesh.volumes.min() > 0
    assert mesh.volumes.sum() == pytest.approx(4 / 3 * (1 - shrink**3))
    # Diagonals that disagree would leave faces inside that belong to one tet only.
    outside, _ = surface_faces(mesh)
    assert len(outside) == 2 * len(faces)
