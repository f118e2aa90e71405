"""Gradients of a skinned robot's motion by its parameters, and design with them.

motion = MotionGradient(setup_of(robot), targets, robot.servo, 5e-3,
MotionCost(1.0)) motion.gradient(motion.run(), {"modulus": (modulus(robot), 1e-3)})
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.gradients.adjoint import MotionCost, MotionGradient
    from drakebots.skin.gradients.sensitivity import (
        link_length,
        meet_target,
        modulus,
        setup_of,
        thickness,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
