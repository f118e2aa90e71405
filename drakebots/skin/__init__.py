"""A skin glued to a skeleton: both solved at once, in one linear system a frame.

:class:`~drakebots.skin.frame.glue.Glue` says which vertices are fixed to which link,
:mod:`~drakebots.skin.frame.skeleton` takes the links' equations out of a Drake plant,
:mod:`~drakebots.skin.frame.coupled` solves a frame of both, and
:mod:`~drakebots.skin.frame.references` makes the frame an affine map of joint torques
and contact forces. :mod:`~drakebots.skin.frame.references` holds the paper's own
systems.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.motion import MOTIONS, TableMotion, read_motion_file
    from drakebots.skin.record import SkinRecord
    from drakebots.skin.simulate import SkinSimulation, simulate_skinned

__all__, __getattr__, __dir__ = lazy_face(__name__)
