"""The walking robot's kinematics, and any voxel lattice as rigid octahedra in Drake.

:class:`VoxelRobot` is the paper's robot by planes of motion, with its named actuators,
feet and markers; :func:`walker` is the same robot as octahedra. :class:`Octahedra` cuts
any lattice into a tree and loops, :func:`octahedra_sdf` writes it as SDF, and
:class:`OctahedraPlant` finds it again in the plant that has read the SDF.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.voxels.model.octahedra import (
        Actuators,
        Octahedra,
        OctahedraPlant,
        node_positions,
        place_at_rest,
    )
    from drakebots.robots.voxels.model.robot import (
        ACTUATORS,
        FEET,
        FRONT,
        MARKERS,
        MODEL,
        VoxelRobot,
    )
    from drakebots.robots.voxels.model.sdf import (
        CORE,
        HEADING,
        NODE_RADIUS,
        STRUT_RADIUS,
        Feet,
        Foot,
        core_tilt,
        octahedra_sdf,
        rest_pose,
        walker,
        walker_sdf,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
