"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.hard_contact.system import SteppedPlant
    from drakebots.multibody.hard_contact.timestepping import TimeStepper, solve_lcp

__all__, __getattr__, __dir__ = lazy_face(__name__)
