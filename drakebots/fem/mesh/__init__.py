"""Tetrahedral meshes: read, written, checked and generated.

mesh, report = check_mesh(read_mesh("skin.vtu"))
print(report)
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.fem.mesh.io import (
        MeshReport,
        check_mesh,
        read_mesh,
        tet_quality,
        write_cells,
        write_mesh,
    )
    from drakebots.fem.mesh.mesh import (
        EDGES,
        FACES,
        TetMesh,
        area_normals,
        box_mesh,
        cells_of_vertices,
        checked_arrays,
        connected_pieces,
        enclosed_volume,
        mesh_edges,
        prism_tets,
        surface_faces,
        surface_triangles,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
