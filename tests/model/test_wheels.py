"""Wheels at the ends of legs: round, on level hinges without limits."""

import numpy as np
import pytest

from drakebots import load
from tests.helpers.robot_files import CORNERS, quadruped, write


def on_wheels(shape: str, *, kind: str = "continuous", turned: str = "0 0 0") -> str:
    """The quadruped with a shape at the end of each leg, on a motor about y."""
    text = quadruped(
        f'<collision><origin rpy="{turned}"/><geometry>{shape}</geometry></collision>'
    )
    for leg in CORNERS:
        text = text.replace(f'"{leg}_end" type="fixed"', f'"{leg}_end" type="{kind}"')
    limit = '<limit effort="5" velocity="30"/>'
    return text.replace(
        '<axis xyz="0 1 0"/></joint>', f'<axis xyz="0 1 0"/>{limit}</joint>'
    )


def notes_on_wheels(folder, text: str) -> list[str]:
    notes = load(write(folder, text)).notes
    return [note for note in notes if note.startswith("wheels:")]


TYRE = '<cylinder radius="0.05" length="0.03"/>'


@pytest.mark.parametrize(
    ("shape", "turned", "is_round"),
    [
        (TYRE, "1.5708 0 0", True),
        (TYRE, "0 0 0", False),  # it stands on its flat side
        ('<sphere radius="0.02"/>', "0 0 0", True),
        ('<box size="0.1 0.03 0.1"/>', "0 0 0", False),
    ],
)
def test_what_is_round_about_its_axis_is_a_wheel(tmp_path, shape, turned, is_round):
    found = notes_on_wheels(tmp_path, on_wheels(shape, turned=turned))
    assert found == ["wheels: 4; held still for walking"] * is_round


def test_no_foot_is_a_wheel(tmp_path):
    """A ball on a weld, nor a round foot whose ankle turns by a right angle only."""
    assert notes_on_wheels(tmp_path, quadruped()) == []
    text = on_wheels(TYRE, kind="revolute", turned=f"{np.pi / 2} 0 0")
    text = text.replace(
        '<limit effort="5"', '<limit lower="-0.8" upper="0.8" effort="5"'
    )
    assert notes_on_wheels(tmp_path, text) == []
