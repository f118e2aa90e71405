"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.voxels.walk.gait import Gait, paper_gait, read_gait
    from drakebots.robots.voxels.walk.search import GaitSearch, search
    from drakebots.robots.voxels.walk.walk import VoxelWalk, run

__all__, __getattr__, __dir__ = lazy_face(__name__)
