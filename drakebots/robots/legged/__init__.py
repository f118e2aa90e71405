"""Any legged robot from a file: it stands, held by servos, or is left to itself."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.legged.simulate import Simulation, simulate

__all__, __getattr__, __dir__ = lazy_face(__name__)
