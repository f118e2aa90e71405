"""The pose step itself as the generator's motion model.

Beyond the paper, whose simulation took too long for the loop: instead of what a
gait does once settled (the polynomial), what it does from the robot's present
pose, so that a change of gait is foretold, too.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.errors import NoSolution
from drakebots.robots.gecko.generator.polynomial import Domain, gait_domain
from drakebots.robots.gecko.model import Gecko, Pose
from drakebots.robots.gecko.pose_step import relative_motion, walk


class PoseStepMotion:
    """Foretells where n cycles of a gait take the robot from where it is.

    Args:
        robot: lengths and weights.
        pose: the present pose; :meth:`observe` renews it.
        sign: of the coming half cycle's q1.
        domain: the gaits it may be asked for.
    """

    def __init__(
        self, robot: Gecko, pose: Pose, sign: int = 1, domain: Domain | None = None
    ):
        self.robot, self.domain = robot, domain or gait_domain()
        self.observe(pose, sign)

    def observe(self, pose: Pose, sign: int) -> None:
        """Takes note of the present pose and the coming half cycle's sign."""
        self._pose, self._sign = pose, sign

    def predict(self, q1, q2, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (..., 2) [m] and rotation (...) [rad] after n cycles.

        In the body frame now; arguments as the protocol `MotionModel` says. A
        gait that the robot cannot go over to from here is infinitely far off.
        """
        q1, q2 = self.domain.check(q1, q2)
        moved, turned = np.empty((*q1.shape, 2)), np.empty(q1.shape)
        for at in np.ndindex(q1.shape):
            try:
                end = self._walk(q1[at], q2[at], 2 * n)
                turned[at], moved[at] = relative_motion(self._pose, end)
            except NoSolution:
                turned[at], moved[at] = 0.0, np.inf
        return moved, turned

    def _walk(self, q1, q2, half_cycles: int) -> Pose:
        if self._sign > 0:
            return walk(self.robot, q1, q2, half_cycles, start=self._pose)[-1]
        mirrored = walk(self.robot, q1, -q2, half_cycles, start=mirror_pose(self._pose))
        return mirror_pose(mirrored[-1])


def mirror_pose(pose: Pose) -> Pose:
    """The pose seen in a mirror along x: left and right legs change places."""
    other = [1, 0, 2, 4, 3]
    alpha = pose.alpha[other] * [1, 1, -1, 1, 1]
    return Pose(alpha, pose.ell[other], -pose.heading, pose.position * [1, -1])
