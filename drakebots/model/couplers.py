"""Joints that follow others, as a <mimic> says: one row of c(q) each.

    q_follower - gear q_leader - offset = 0

A :class:`Coupler` is such a row in SI; :class:`Coupled` is the same row in the
coordinates and units of one plant, where a sliding joint is a length. Drake's SAP holds
the couplers of a model's file by constraints of its own; everything else takes them
from the rows of :class:`~drakebots.model.loops.LoopClosure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import Joint

from drakebots.core.checks import finite
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.model.views import joints_of, one_named, slides


@checked("coupler of joint {follower}")
class Coupler:
    """A joint that follows another: q_follower = gear q_leader + offset."""

    follower: str
    """Name of the joint that follows, of one degree of freedom."""
    leader: str
    """Name of the joint that it follows, of one degree of freedom."""
    gear: Annotated[float, finite()] = 1.0
    """Gear [rad/rad]; [m/rad], [rad/m] or [m/m] where joints slide."""
    offset: Annotated[float, finite()] = 0.0
    """Position of the follower where the leader is at zero [rad, m]."""
    kept: bool = True
    """Whether its row counts, or depends on those of other couplers and loops."""

    def __post_init__(self):
        if self.follower == self.leader:
            raise InvalidInput(f"joint {self.follower!r} cannot follow itself")

    @property
    def name(self) -> str:
        """The name of its row, "<follower>.<leader>"."""
        return f"{self.follower}.{self.leader}"


class Coupled(NamedTuple):
    """A coupler in one plant: q[follower] = gear q[leader] + offset, in plant units.

    Attributes:
        follower, leader: indices of the two positions.
        follower_rate, leader_rate: indices of their velocities.
        gear, offset: in plant units.
        slides: whether the follower slides, so that its row is a length.
    """

    follower: int
    leader: int
    follower_rate: int
    leader_rate: int
    gear: float
    offset: float
    slides: bool


def coupled_positions(
    plant: MultibodyPlant, couplers: Sequence[Coupler], length_unit: float = 1.0
) -> tuple[Coupled, ...]:
    """Couplers in the coordinates of a plant.

    Args:
        plant: finalized.
        couplers: of joints that the plant has.
        length_unit: the plant's unit of length [m].

    Raises:
        UnknownName: for a joint that the plant does not have.
        InvalidInput: for a joint that is not of one degree of freedom.
    """
    found = []
    for coupler in couplers:
        joints = coupled_joints(plant, coupler)
        places = [joint.position_start() for joint in joints]
        rates = [joint.velocity_start() for joint in joints]
        law = gear_and_offset(coupler, *joints, length_unit)
        found.append(Coupled(*places, *rates, *law, slides(joints[0])))
    return tuple(found)


def add_couplers(
    plant: MultibodyPlant, couplers: Sequence[Coupler], *, length_unit: float = 1.0
) -> None:
    """Adds SAP constraints for couplers to a discrete plant, before Finalize.

    For a plant that Drake's parser did not fill: what it parses holds its own.

    Args:
        plant, couplers, length_unit: as in :func:`coupled_positions`.
    """
    for coupler in couplers:
        follower, leader = coupled_joints(plant, coupler)
        gear, offset = gear_and_offset(coupler, follower, leader, length_unit)
        plant.AddCouplerConstraint(follower, leader, gear, offset)


def gear_and_offset(
    coupler: Coupler, follower, leader, length_unit: float
) -> tuple[float, float]:
    """The gear and the offset in plant units.

    Args:
        coupler: in SI.
        follower, leader: Drake's joints.
        length_unit: the plant's unit of length [m].
    """
    follows, leads = (
        length_unit if slides(joint) else 1.0 for joint in (follower, leader)
    )
    return coupler.gear * leads / follows, coupler.offset / follows


def coupled_joints(plant: MultibodyPlant, coupler: Coupler) -> tuple[Joint, Joint]:
    """Drake's joints of a coupler: the follower and the leader."""
    names, known = (coupler.follower, coupler.leader), joints_of(plant)
    follower, leader = (one_named(plant, "joint", name, known) for name in names)
    for joint in (follower, leader):
        if joint.num_positions() != 1:
            raise InvalidInput(
                f"joint {joint.name()!r} of type {joint.type_name()!r} can neither "
                "follow nor lead; only a joint of one coordinate can"
            )
    return follower, leader
