"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.lattice.shape.check import check_lattice, require_connected
    from drakebots.lattice.shape.io import ENDINGS, LatticeSpec, load_lattice
    from drakebots.lattice.shape.lattice import (
        BEAMS,
        OFFSETS,
        PRESETS,
        Lattice,
        Strut,
        block,
    )
    from drakebots.lattice.shape.mechanisms import (
        Mechanism,
        Mechanisms,
        find_mechanisms,
    )
    from drakebots.lattice.shape.planes import AXES, Plane, Planes, axis_number
    from drakebots.lattice.shape.rigidity import rigid_motions, rotations

__all__, __getattr__, __dir__ = lazy_face(__name__)
