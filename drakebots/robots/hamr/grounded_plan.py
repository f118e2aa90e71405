"""The ground and the knots of HAMR's plans."""

from __future__ import annotations

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.robots.hamr.diagram import friction_of


class GroundedPlan:
    """What gaits and jumps to be planned have in common.

    Attributes:
        surface: a name from `params.yaml`, or use `friction`.
        friction: coefficient instead of the surface's.
        knots: N.
    """

    surface: str
    friction: float | None
    knots: int

    def check_ground_and_knots(self) -> None:
        """Refuses what no plan can have.

        Raises:
            UnknownName: for an unknown surface.
            InvalidInput: for a friction or a number of knots that cannot be.
        """
        if self.friction is None:
            friction_of(self.surface)
        elif not 0 <= self.friction < np.inf:
            raise InvalidInput(f"friction must be >= 0, got {self.friction}")
        if int(self.knots) != self.knots or self.knots < 5:
            raise InvalidInput(f"knots must be a whole number >= 5, got {self.knots}")

    @property
    def mu(self) -> float:
        """The friction coefficient."""
        return friction_of(self.surface) if self.friction is None else self.friction

    @property
    def ground(self) -> dict[str, str | float]:
        """For metrics: the surface's name and its coefficient."""
        custom = self.friction is not None
        return {"surface": "custom" if custom else self.surface, "friction": self.mu}
