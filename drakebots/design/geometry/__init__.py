"""Shapes: closed surfaces, signed distance on grids, bodies defined by formulas.

A body starts as formulas (:class:`Implicit`) or as a surface file
(:func:`read_surface`, :func:`check_surface`), becomes a signed distance
(:class:`DistanceGrid`), and that becomes a surface of even triangles
(:func:`remesh`).

    grid = DistanceGrid.from_implicit(Implicit((Ellipsoid([0, 0, 0], [0.1] * 3),)))
    surface = grid.level_set()
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.geometry.distance import (
        DistanceGrid,
        distances,
        value_and_gradient,
    )
    from drakebots.design.geometry.implicit import (
        Ellipsoid,
        HalfSpaceCut,
        Implicit,
        Part,
        RoundBox,
        RoundCone,
        mirrored,
    )
    from drakebots.design.geometry.remesh import Ring, newton_step, remesh
    from drakebots.design.geometry.surface import (
        SUFFIXES,
        Surface,
        check_surface,
        contains,
        frame_of,
        heavy_parts,
        read_surface,
        to_manifold,
        to_surface,
        turn_of,
        write_surface,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
