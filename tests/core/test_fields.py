"""Fields: declared once, for construction, help, documentation and schema."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pytest

from drakebots.core.checks import array, in_unit, one_of, positive, whole
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import check, checked, declared

if TYPE_CHECKING:
    from pathlib import Path


@checked("walk")
class Walk:
    """A walk on a plane.

    Raises:
        InvalidInput: for a value out of range.
    """

    stride: Annotated[float, positive("m")] = 0.01
    """Length of a step; see :class:`Walk`."""
    cycles: Annotated[int, whole(1)] = 4
    """Number of steps."""
    way: Annotated[Any, array((None, 3), "m")] = ((0, 0, 1), (0, 0, 2))
    time_limit: Annotated[float | None, positive("s")] = None
    """Limit of the wall time, which
    includes rests. What was reached is kept."""
    gait: Annotated[str, one_of("gait", ("trot", "pace"))] = "trot"


def test_a_problem_checks_and_stores():
    walk = Walk(cycles=np.float64(3.0))
    assert walk.cycles == 3 and type(walk.cycles) is int
    assert walk.way.shape == (2, 3) and walk.way.dtype == float
    with pytest.raises(ValueError, match="read-only"):
        walk.way[0] = 1.0
    assert replace(walk, time_limit=2).time_limit == 2
    with pytest.raises(InvalidInput) as caught:
        Walk(stride=-1)
    assert str(caught.value) == "walk: stride must be > 0 m, got -1"


def test_the_array_is_a_copy():
    given = np.zeros((1, 3))
    walk = Walk(way=given)
    given[:] = 1.0
    assert not walk.way.any()


@checked("held")
class Held:
    walk: Walk
    places: np.ndarray
    names: tuple[str, ...] = ()
    more: dict | None = None
    share: float | None = None


class Double:
    """Stands for a walk, as objects in tests do."""

    stride = 0.02


def test_annotations_are_held_by_what_is_no_object():
    sound = Held(Walk(), [[1, 2]], ("a",), {}, np.float64(0.5))
    replace(sound, walk=Double(), names=["a"], share=1, more=None, places=np.ones(3))
    for name in ("walk", "places", "names"):
        with pytest.raises(InvalidInput, match=name):
            replace(sound, **{name: type("Other", (), {})()})
    for name, values in {
        "walk": (None, 1.0, "x", [Walk()], np.ones(3), Walk),
        "places": (None, "x", 1j, b"1", {}, [[1], [1, 2]], ["a"]),
        "names": (None, "a", 1, [1], [None], np.array(1.0)),
        "more": (1, [], "x"),
        "share": ("1", 1j, [1], b"1"),
    }.items():
        for value in values:
            with pytest.raises(InvalidInput, match=f"held: {name} must be of type"):
                replace(sound, **{name: value})


@checked("limb {name}", kw_only=True)
class Limb:
    name: str
    rows: ClassVar[int] = 3
    size: Annotated[float, positive("m")] = 1.0
    length: float = field(init=False)
    at: Path | None = None
    pose: Annotated[dict[str, float] | None, in_unit("rad or m")] = None

    def __post_init__(self):
        check(self, "limb", size=positive("m"))
        object.__setattr__(self, "length", 2.0 * self.size)


@checked("leg {name}")
class Leg(Limb):
    foot: Annotated[float, positive("m")] = 0.1
    """Radius of the foot."""


@dataclass(frozen=True)
class Hoofed(Leg):
    pass


def test_messages_name_the_object():
    with pytest.raises(InvalidInput, match=r"^limb FL: size must be > 0 m, got -1$"):
        Limb(name="FL", size=-1)
    with pytest.raises(InvalidInput, match=r"^leg FL: foot must be > 0 m, got 0$"):
        Leg(0, name="FL")
    # What a base declares is the base's to check, in every class that inherits.
    for kind in (Leg, Hoofed):
        with pytest.raises(InvalidInput, match=r"^limb FL: size must be"):
            kind(name="FL", size=0)
        assert kind(name="FL", size=2).length == 4.0
    with pytest.raises(InvalidInput, match="pose must be of type"):
        Limb(name="FL", pose=1.0)
    # The type of a name that only type checkers import is not checked.
    assert Limb(name="FL", at=3).at == 3
    with pytest.raises(FrozenInstanceError):
        Leg(name="FL").foot = 2.0


def test_what_is_declared_is_found():
    fields = declared(Walk)
    assert list(fields) == ["stride", "cycles", "way", "time_limit", "gait"]
    limit = fields["time_limit"]
    assert limit.kind is float and limit.optional and limit.unit == "s"
    assert limit.text == "Limit of the wall time, which includes rests. What was " + (
        "reached is kept."
    )
    assert limit.help == (
        "limit of the wall time, which includes rests [s]. What was reached is kept"
    )
    assert fields["gait"].choices == ("trot", "pace")
    assert not fields["way"].text and fields["stride"].default == 0.01
    leg = declared(Leg)
    assert list(leg) == ["name", "size", "at", "pose", "foot"]
    assert leg["name"].required and leg["name"].keyword_only
    assert not leg["foot"].keyword_only and leg["foot"].text == "Radius of the foot."


def test_docstrings_have_the_fields():
    doc = inspect.getdoc(Walk)
    assert doc.startswith("A walk on a plane.\n\nAttributes:\n    stride: length of a")
    assert "    cycles: number of steps.\n" in doc
    assert doc.endswith("Raises:\n    InvalidInput: for a value out of range.")
