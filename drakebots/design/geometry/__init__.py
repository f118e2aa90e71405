"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.geometry.distance import DistanceGrid, value_and_gradient
    from drakebots.design.geometry.implicit import (
        Ellipsoid,
        HalfSpaceCut,
        Implicit,
        Part,
        RoundBox,
        RoundCone,
        mirrored,
    )
    from drakebots.design.geometry.surface import (
        SUFFIXES,
        UNITS,
        Surface,
        contains,
        face_on_plane,
        heavy_parts,
        read_surface,
        to_manifold,
        to_surface,
        write_surface,
    )
    from drakebots.design.geometry.surface_check import check_surface

__all__, __getattr__, __dir__ = lazy_face(__name__)
