"""The distribution of strides: its samples, its table, what decides."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import FileProblem
from tests.helpers.scripts import is_picture, load_script

TABLE, UNKNOWN, facts_of, main, predicted, read, samples = load_script(
    "voxel_spread",
    "TABLE",
    "UNKNOWN",
    "facts_of",
    "main",
    "predicted",
    "read",
    "samples",
)


def test_samples_fill_their_ranges_and_repeat():
    points = samples(50)
    assert points == samples(50)
    for name, (low, high, *_) in UNKNOWN.items():
        values = np.sort([point[name] for point in points])
        assert low <= values[0] < values[-1] <= high
        assert np.unique(values).size > 45  # four digits


def test_what_decides_is_found():
    """Strides that a product of two unknowns makes: both are named, no other is."""
    noise = np.random.default_rng(0).normal(size=80) * 0.05
    rows = [
        point | {"stride_mm": 100 * p * q + e, "tipped_over": 0}
        for point, e in zip(samples(80), noise)
        for p, q in [(point["friction_front"], point["heel_and_toe"])]
    ]
    facts = facts_of(rows)
    first, second, *others = facts["variance_lost_without"].items()
    assert {first[0], second[0]} == {"friction_front", "heel_and_toe"}
    assert second[1] > 0.2 and all(abs(share) < 0.05 for _, share in others)
    chance = [row | {"stride_mm": e} for row, e in zip(rows, noise)]
    assert predicted(chance) < 0.2


def test_the_table_is_of_the_samples(tmp_path, capsys):
    """Its rows are samples of the 200, and its facts are drawn."""
    rows, points = read(TABLE), samples(200)
    for row in rows:
        assert {name: row[name] for name in UNKNOWN} in points
    facts = main(["--plot", str(tmp_path / "new" / "spread.png")])
    assert is_picture(tmp_path / "new" / "spread.png")
    assert facts["walks"] == len(rows)
    (tmp_path / "bad.csv").write_text("front_mass\n1\n")
    with pytest.raises(FileProblem, match="no table"):
        read(tmp_path / "bad.csv")
