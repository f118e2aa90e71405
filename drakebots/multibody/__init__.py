"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.core.run import Progress
    from drakebots.multibody.base import EULER_JOINTS, attach_base, root_bodies
    from drakebots.multibody.kinematics import ClosedChain
    from drakebots.multibody.plant import Ground, Robot, build_robot
    from drakebots.multibody.simulate import advance, trajectory_dataset

__all__, __getattr__, __dir__ = lazy_face(__name__)
