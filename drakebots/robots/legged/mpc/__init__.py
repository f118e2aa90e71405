"""Any legged robot under a controller: pushed, on other ground than the controller's.

run = control(Control("mini_cheetah", gait="trot", goal=(1, 0), pushes=(Push(50, 1),)))
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.legged.mpc.control import control
    from drakebots.robots.legged.mpc.problem import Control
    from drakebots.robots.legged.mpc.view import plot_control, record_control
    from drakebots.trajopt.mpc import Push, Trot, Way, default_cost

__all__, __getattr__, __dir__ = lazy_face(__name__)
