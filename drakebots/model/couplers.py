"""Joints that follow others, as a <mimic> says: one row of c(q) each.

    q_follower - gear q_leader - offset = 0

A :class:`Coupler` is such a row in SI; :class:`Coupled` is the same row in the
coordinates and units of one plant, where a sliding joint is a length. Drake's SAP holds
the couplers of a model's file by constraints of its own; everything else takes them
from the rows of :class:`~drakebots.model.loops.LoopClosure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.core.checks import check, check_types, finite
from drakebots.core.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class Coupler:
    """A joint that follows another: q_follower = gear q_leader + offset.

    Attributes:
        follower, leader: names of the two joints, of one degree of freedom.
        gear: [rad/rad]; [m/rad], [rad/m] or [m/m] where joints slide.
        offset: position of the follower where the leader is at zero [rad, m].
        kept: whether its row counts, or depends on those of other couplers and loops.
    """

    follower: str
    leader: str
    gear: float = 1.0
    offset: float = 0.0
    kept: bool = True

    def __post_init__(self):
        check_types(self, "coupler")
        check(self, f"coupler of joint {self.follower}", gear=finite(), offset=finite())
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
    plant: MultibodyPlant,
    couplers: Sequence[Coupler],
    *,
    length_unit: float = 1.0,
    instance: ModelInstanceIndex | None = None,
) -> tuple[Coupled, ...]:
    """Couplers in the coordinates of a plant.

    Args:
        plant: finalized.
        couplers: of joints that the plant has.
        length_unit: the plant's unit of length [m].
        instance: the model instance of the joints.

    Raises:
        UnknownName: for a joint that the plant does not have.
        InvalidInput: for a joint that is not of one degree of freedom.
    """
    found = []
    for coupler in couplers:
        follower, leader = coupled_joints(plant, coupler, instance)
        gear, offset = gear_and_offset(coupler, follower, leader, length_unit)
        found.append(
            Coupled(
                follower.position_start(),
                leader.position_start(),
                follower.velocity_start(),
                leader.velocity_start(),
                gear,
                offset,
                follower.type_name() == "prismatic",
            )
        )
    return tuple(found)


def add_couplers(
    plant: MultibodyPlant,
    couplers: Sequence[Coupler],
    *,
    length_unit: float = 1.0,
    instance: ModelInstanceIndex | None = None,
) -> None:
    """Adds SAP constraints for couplers to a discrete plant, before Finalize.

    For a plant that Drake's parser did not fill: what it parses holds its own.

    Args:
        plant, couplers, length_unit, instance: as in :func:`coupled_positions`.
    """
    for coupler in couplers:
        follower, leader = coupled_joints(plant, coupler, instance)
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
        length_unit if joint.type_name() == "prismatic" else 1.0
        for joint in (follower, leader)
    )
    return coupler.gear * leads / follows, coupler.offset / follows


def coupled_joints(
    plant: MultibodyPlant,
    coupler: Coupler,
    instance: ModelInstanceIndex | None = None,
) -> tuple:
    """Drake's joints of a coupler: the follower and the leader."""
    joints = tuple(
        _find_joint(plant, name, instance)
        for name in (coupler.follower, coupler.leader)
    )
    for joint in joints:
        if joint.num_positions() != 1:
            raise InvalidInput(
                f"joint {joint.name()!r} of type {joint.type_name()!r} can neither "
                "follow nor lead; only a joint of one coordinate can"
            )
    return joints


def _find_joint(plant: MultibodyPlant, name: str, instance: ModelInstanceIndex | None):
    """The joint called `name`, in an instance, or the only one of that name.

    Where models share names it is "model::joint".
    """
    if "::" in name:
        model, _, name = name.rpartition("::")
        if not plant.HasModelInstanceNamed(model):
            indices = map(ModelInstanceIndex, range(plant.num_model_instances()))
            raise UnknownName("model", model, map(plant.GetModelInstanceName, indices))
        instance = plant.GetModelInstanceByName(model)
    if instance is not None and plant.HasJointNamed(name, instance):
        return plant.GetJointByName(name, instance)
    joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
    found = [joint for joint in joints if joint.name() == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"joint {name!r} is in several models; write MODEL::{name}")
    raise UnknownName("joint", name, (joint.name() for joint in joints))
