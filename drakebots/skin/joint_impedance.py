"""What a skin does to a change of the joints' velocities, put into the plant.

The plant does not know the skin's Schur complement S on the glue, so the exchange of
motion and forces alone is stable only where the plant carries it: about
dt^2 J'S J < A, A the plant's own matrix M + dt D + dt^2 K of joints, damping and
implicit servos. S holds the skin's mass, so light links without servos fail at any dt.
So the joints get the damping

    D_i = P_ii at rest,  P = dt J'S J,  and the force D v_n + (D - P) (v_n - v_n-1)

that cancels it but for P (v - v_n), what the skin does to a change of velocity: the
skin's stiffness and mass in the plant's implicit step, to the first order in dt as the
rest. It needs joints of one degree of freedom; a free base keeps the limit above.
"""

from __future__ import annotations

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.skin.glue import Glue
from drakebots.skin.skeleton import glue_points


class JointImpedance:
    """P of the joints of one degree of freedom, and the damping D in its place.

    Args:
        plant: finalized.
        glue: on its links.
        dt: of the skin [s].
    """

    def __init__(self, plant: MultibodyPlant, glue: Glue, dt: float):
        self.plant, self.glue, self.dt = plant, glue, dt
        self.damping = np.zeros(plant.num_velocities())
        self._single = np.zeros_like(self.damping)
        for joint in self._joints():
            self._single[joint.velocity_start()] = 1.0

    def _joints(self):
        joints = map(self.plant.get_joint, self.plant.GetJointIndices())
        return [joint for joint in joints if joint.num_velocities() == 1]

    def matrix(self, context: Context, schur: np.ndarray) -> np.ndarray:
        """P (nv, nv) where the plant stands [N m s/rad]; S (3 g, 3 g) [N/m]."""
        _, J = glue_points(self.plant, context, self.glue)
        J = J * self._single
        return self.dt * J.T @ schur @ J

    def set_damping(self, context: Context, schur: np.ndarray) -> None:
        """Takes D from the plant where it stands."""
        self.damping = self._single * np.diag(self.matrix(context, schur))

    def force(
        self, context: Context, schur: np.ndarray, v: np.ndarray, before: np.ndarray
    ) -> np.ndarray:
        """D v_n + (D - P) (v_n - v_n-1), (nv,) [N m]."""
        change = v - before
        return self.damping * (v + change) - self.matrix(context, schur) @ change

    def damp(self, context: Context) -> None:
        """Adds D to the joints' own damping in a context of the plant."""
        for joint in self._joints():
            extra = self.damping[joint.velocity_start()]
            joint.SetDampingVector(context, joint.default_damping_vector() + extra)
