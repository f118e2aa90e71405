"""Voxel lattices: their shape, their files, and every motion that stretches no beam.

    lattice = block(2, 2, 2)                       # or load_lattice("lattice.json")
    print(*check_lattice(lattice).lines(), sep=", ")
    print(find_mechanisms(lattice).report())

Nodes are written on the half-pitch grid: voxel (i, j, k) has its centre at
(2i+1, 2j+1, 2k+1), its nodes one further along each axis. :class:`Planes` are the
layers of voxels that tilt together, :class:`Mechanisms` all motions that stretch no
beam, planes included.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.lattice.shape.lattice import (
        BEAMS,
        ENDINGS,
        OFFSETS,
        PRESETS,
        Lattice,
        LatticeSpec,
        Strut,
        block,
        load_lattice,
        names_lattice,
        save_lattice,
    )
    from drakebots.lattice.shape.mechanisms import (
        Mechanisms,
        find_mechanisms,
        rigid_fields,
        rigid_motions,
        rotations,
    )
    from drakebots.lattice.shape.planes import (
        AXES,
        Plane,
        Planes,
        axis_number,
        check_lattice,
        neighbours,
        pieces,
        require_connected,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
