"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.voxels.plan import plan_lattice, plan_robot
    from drakebots.robots.voxels.plots import plot_actuator_plan, plot_walks
    from drakebots.robots.voxels.view import record_voxel

__all__, __getattr__, __dir__ = lazy_face(__name__)
