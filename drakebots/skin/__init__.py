"""Elastic skins glued to Drake skeletons.

    result = simulate_skinned(SkinSimulation(model="skinned_leg", motion="sine"))

Skeleton and skin advance in one linear system per time step
(:mod:`drakebots.skin.coupled`); :class:`CoupledSkeleton` is the same as a system for
Drake's diagrams. :mod:`drakebots.skin.file` reads and writes skinned robots,
and :mod:`~drakebots.skin.reduced` makes a skin small enough for control.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.diagram import PlacedSkin, add_skin
    from drakebots.skin.leaf_systems import CoupledSkeleton, SkinDrawing
    from drakebots.skin.record import (
        SkinRecord,
        SkinShapes,
        skeleton_coordinates,
        vertex_stress,
        write_vtu,
    )
    from drakebots.skin.simulate import (
        COLLISIONS,
        MOTIONS,
        SkinSimulation,
        TableMotion,
        build_stepper,
        on_ground,
        read_motion_file,
        simulate_skinned,
        skin_collisions,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
