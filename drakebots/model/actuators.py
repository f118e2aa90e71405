"""Motors for joints that have none in the model file.

Files of ROS name limits of effort but no motors. Where a file has no motor at all,
:func:`choose_actuators` puts one on every joint that has such a limit; a user may name
the joints and the effort instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from drakebots.core.checks import check_value, positive
from drakebots.core.errors import InvalidInput, UnknownName, some
from drakebots.core.fields import checked


@checked("motor of joint {joint}")
class Actuator:
    """A motor that the model file does not have, added to one of its joints."""

    joint: str
    """Name of the joint, of one degree of freedom; the actuator has its name."""
    effort: Annotated[float, _effort] = float("inf")
    """Largest torque or force [N m, N]; inf for no limit."""


def _effort(value: float) -> float:
    """A rule: a positive effort, or inf."""
    infinite = isinstance(value, float) and value == float("inf")
    return float(value) if infinite else positive("N m")(value)


def choose_actuators(
    joints: Sequence[str],
    driven: Sequence[str],
    efforts: Mapping[str, float],
    *,
    actuate: str | Sequence[str] | None = None,
    effort: float | None = None,
    followers: Collection[str] = (),
) -> tuple[tuple[Actuator, ...], list[str]]:
    """The motors to add to a model, and what to say of them, one line each.

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
        # They look as if their motor was forgotten.
        passive = [name for name in free if name in efforts]
        note = (
            f"{len(passive)} joints with an effort limit have no motor, though others "
            f"do: {some(passive)}; --actuate all gives them one"
        )
        return (), [note] * bool(passive)
    actuators = tuple(
        Actuator(name, efforts[name] if effort is None else effort) for name in chosen
    )
    asked = bool(patterns)
    return actuators, list(_notes(free, driven, chosen, effort, asked))


def _matching(patterns: Sequence[str], joints: Sequence[str]) -> list[str]:
    """The joints that match a pattern, in the order of the joints."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in joints):
            raise UnknownName("joint", pattern, joints)
    return [n for n in joints if any(fnmatchcase(n, p) for p in patterns)]


def _notes(free, driven, chosen, effort, asked):
    """Notes on the choice, in one line, and on the joints left without a motor."""
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
    start = "" if driven else "has no motors: "
    end = f"; {some(passive)} without" if passive else ""
    if passive and not asked:
        end += (
            ", which have no effort limit above 0 (give one in the file, or --actuate "
            "all --effort 10)"
        )
    yield f"{start}{len(chosen)} joints {which}get one each{end}"
