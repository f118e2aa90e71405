"""A Drake plant as CasADi expressions, for exact sparse derivatives.

    twin = Twin(robot.plant)
    q, v = ca.SX.sym("q", twin.nq), ca.SX.sym("v", twin.nv)
    energy = twin.kinetic_energy(q, v)

Drake stays the only source of the model: the twin walks a finalized plant. Tests
compare it with Drake at 1e-10 on all stored models and on random trees.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.twin.joints import rotation, without_rounding
    from drakebots.multibody.twin.twin import Pose, Twin

__all__, __getattr__, __dir__ = lazy_face(__name__)
