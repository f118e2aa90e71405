"""Tetrahedral meshes: read, written, checked and generated.

mesh, report = check_mesh(read_mesh("skin.vtu"))
print(report)
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.mesh.check import MeshReport, check_mesh, tet_quality
    from drakebots.fem.mesh.io import read_mesh, write_cells, write_mesh
    from drakebots.fem.mesh.mesh import (
        EDGES,
        FACES,
        TetMesh,
        checked_arrays,
        connected_pieces,
        mesh_edges,
        surface_faces,
        surface_triangles,
    )
    from drakebots.fem.mesh.shapes import (
        box_mesh,
        prism_tets,
        wall_mesh,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
