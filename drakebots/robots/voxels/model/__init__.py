"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.voxels.model.octahedra import (
        OctahedraPlant,
        found_octahedra,
        node_positions,
        place_at_rest,
    )
    from drakebots.robots.voxels.model.robot import (
        ACTUATORS,
        FEET,
        FRONT,
        MARKERS,
        WISHES,
        VoxelRobot,
        scalar,
    )
    from drakebots.robots.voxels.model.sdf import NODE_RADIUS, STRUT_RADIUS, FootSphere
    from drakebots.robots.voxels.model.walker import (
        walker_lattice,
        walker_scene,
        walker_sdf,
        walker_sidecar,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
