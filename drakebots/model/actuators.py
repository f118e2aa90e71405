"""Motors for joints that have none in the model file.

Files of ROS name limits of effort but no motors. Where a file has no motor at all,
:func:`choose_actuators` puts one on every joint that has such a limit; a user may name
the joints and the effort instead. A robot with feet whose file has neither motors nor
limits gets motors without a limit, by :func:`unlimited_actuators`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.core.checks import check, check_value, positive
from drakebots.core.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class Actuator:
    """A motor that the model file does not have, added to one of its joints.

    Attributes:
        joint: name of the joint, of one degree of freedom; the actuator has its name.
        effort: largest torque or force [N m, N]; inf for no limit.
    """

    joint: str
    effort: float = float("inf")

    def __post_init__(self):
        check(self, f"motor of joint {self.joint}", effort=_effort)


def _effort(value: float) -> float:
    """A rule: a positive effort, or inf."""
    infinite = isinstance(value, float) and value == float("inf")
    return float(value) if infinite else positive("N m")(value)


def add_actuators(
    plant: MultibodyPlant,
    actuators: Sequence[Actuator],
    instances: Sequence[ModelInstanceIndex],
) -> None:
    """Adds motors to joints of the instances, before Finalize."""
    for actuator in actuators:
        for instance in instances:
            if plant.HasJointNamed(actuator.joint, instance):
                joint = plant.GetJointByName(actuator.joint, instance)
                plant.AddJointActuator(actuator.joint, joint, actuator.effort)


def effort_limits(root: ET.Element) -> dict[str, float]:
    """The limits of effort of a URDF's joints by name, those above zero [N m, N].

    Args:
        root: the URDF's <robot>.
    """
    found = {}
    for joint in root.iter("joint"):
        limit = joint.find("limit")
        effort = 0.0 if limit is None else float(limit.get("effort", 0.0))
        kinds = ("revolute", "continuous", "prismatic")
        if joint.get("type") in kinds and effort > 0 and joint.find("mimic") is None:
            found[joint.get("name", "")] = effort
    return found


@dataclass(frozen=True)
class Choice:
    """Motors to add to a model, and what to say of them.

    Attributes:
        actuators: to add.
        notes: one line each.
    """

    actuators: tuple[Actuator, ...] = ()
    notes: tuple[str, ...] = ()


def choose_actuators(
    joints: Sequence[str],
    driven: Sequence[str],
    efforts: Mapping[str, float],
    *,
    actuate: str | Sequence[str] | None = None,
    effort: float | None = None,
    followers: Collection[str] = (),
) -> Choice:
    """Which joints get a motor.

    Args:
        joints: names of the joints of one degree of freedom.
        driven: those of them that the file has a motor for.
        efforts: limits of effort in the file, by joint [N m, N].
        actuate: None for every joint with a limit of effort, where the file has no
            motors; "all" for every joint with a limit, or with `effort` every joint;
            or names or patterns ("*_knee") of joints.
        effort: of every motor added, in place of the file's [N m, N].
        followers: those of the joints that follow others; they get a motor only where
            `actuate` names them, not by a pattern.

    Raises:
        UnknownName: for a name or a pattern of no joint.
        InvalidInput: for a joint that has a motor or no limit of effort, or an effort
            that is not above zero.
    """
    if effort is not None:
        check_value("effort", effort, positive("N m"))
    patterns = [actuate] if isinstance(actuate, str) else list(actuate or ())
    kept = [n for n in joints if n not in followers or n in patterns]
    free = [name for name in kept if name not in driven]
    if patterns and patterns != ["all"]:
        chosen = _matching(patterns, joints)
        twice = [name for name in chosen if name in driven and name in patterns]
        if twice:
            raise InvalidInput(f"joint {twice[0]!r} has a motor in the file already")
        chosen = [name for name in chosen if name in free]
        unlimited = [name for name in chosen if name not in efforts]
        if unlimited and effort is None:
            raise InvalidInput(
                f"joint {unlimited[0]!r} has no effort limit in the file; give the "
                "effort of its motor (--effort)"
            )
    elif patterns or not driven:
        chosen = free if effort is not None else [n for n in free if n in efforts]
    else:
        return Choice(notes=tuple(_without_motor(free, efforts)))
    actuators = tuple(
        Actuator(name, efforts[name] if effort is None else effort) for name in chosen
    )
    return Choice(
        actuators,
        tuple(_notes(free, driven, chosen, efforts, effort, asked=bool(patterns))),
    )


def unlimited_actuators(joints: Sequence[str]) -> Choice:
    """A motor without a limit of effort for every joint of one degree of freedom."""
    words = (
        "has neither motors nor effort limits: all joints get motors without a limit; "
        "--effort gives one"
    )
    return Choice(tuple(map(Actuator, joints)), (words,) if joints else ())


def _without_motor(free: Sequence[str], efforts: Mapping[str, float]):
    """Joints that look as if their motor was forgotten in a file with motors."""
    passive = [name for name in free if name in efforts]
    if passive:
        yield (
            f"{len(passive)} joints with an effort limit have no motor, though others "
            f"do: {_some(passive)}; --actuate all gives them one"
        )


def _matching(patterns: Sequence[str], joints: Sequence[str]) -> list[str]:
    """The joints that match a pattern, in the order of the joints."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in joints):
            raise UnknownName("joint", pattern, joints)
    return [n for n in joints if any(fnmatchcase(n, p) for p in patterns)]


def _notes(free, driven, chosen, efforts, effort, asked):
    """What was done, in one line, and what is left without a motor."""
    if not free:
        return
    if not chosen:
        yield (
            "has no motors, and no joint has an effort limit: name joints and an "
            "effort (--actuate all --effort 10)"
        )
        return
    which = "with an effort limit " if effort is None else ""
    passive = [name for name in free if name not in chosen]
    limits = {efforts[name] for name in chosen if effort is None}
    if limits == {1.0} and len(chosen) > 1:
        yield "every effort limit is 1: if its motors have another one, give --effort"
    start = "" if driven else "has no motors: "
    end = f"; {_some(passive)} without" if passive else ""
    if passive and not asked:
        end += (
            ", which have no effort limit above 0 (give one in the file, or --actuate "
            "all --effort 10)"
        )
    yield f"{start}{len(chosen)} joints {which}get one each{end}"


def _some(names: Sequence[str], most: int = 4) -> str:
    """A few names and how many more."""
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
