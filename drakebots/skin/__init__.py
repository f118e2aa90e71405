"""Elastic skins glued to Drake skeletons.

    result = simulate_skinned(SkinSimulation(model="skinned_leg", motion="sine"))

Skeleton and skin advance in one linear system per time step
(:mod:`drakebots.skin.frame`); :class:`CoupledSkeleton` is the same as a system for
Drake's diagrams. :mod:`drakebots.skin.file` reads and writes skinned robots,
:mod:`~drakebots.skin.reduced` makes a skin small enough for control, and
:mod:`~drakebots.skin.gradients` differentiates motions by parameters of the robot.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.drake import CoupledSkeleton, SkinDrawing, add_skin
    from drakebots.skin.motion import MOTIONS, TableMotion, read_motion_file
    from drakebots.skin.record import SkinRecord
    from drakebots.skin.simulate import SkinSimulation, simulate_skinned
    from drakebots.skin.vtu import write_vtu

__all__, __getattr__, __dir__ = lazy_face(__name__)
