"""Time stepping with hard contact, independent of Drake's contact solvers.

`TimeStepper` steps a robot's plant with loops, contact, friction and joint limits as
one linear complementarity problem; `SteppedPlant` is the same as a system of a diagram,
in place of Drake's plant. They judge plans by a second, independent contact model.
`stand` finds the pose at rest on the ground, `natural_modes` the modes about a pose.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.hard_contact.modes import natural_modes, stand
    from drakebots.multibody.hard_contact.system import SteppedPlant
    from drakebots.multibody.hard_contact.timestepping import TimeStepper, solve_lcp

__all__, __getattr__, __dir__ = lazy_face(__name__)
