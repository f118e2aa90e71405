"""The numbers behind the voxel figures, as measured before."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape import block
from tests.helpers.scripts import load_script

numbers = load_script("voxel_loss")
groups = load_script("voxel_planes").groups
robot_templates, targets_recovered = load_script(
    "voxel_robot", "robot_templates", "targets_recovered"
)


@pytest.fixture(scope="module")
def rows():
    return numbers.loss_rows()


def test_every_row_of_the_table_as_measured_before(rows):
    """To the digits given: losses to 0.06 %, shares to half a percent."""
    assert len(rows) == 11 and all(row["signs"] for row in rows)
    within = dict(zip(numbers.FACTS, (6e-4, 1e-3, 6e-4, 5e-3)))
    for row in rows:
        for name in numbers.FACTS:
            if row[f"{name}_facts"] is not None:
                close = pytest.approx(row[f"{name}_facts"], abs=within[name])
                assert row[name] == close, (row["block"], name)


def test_which_blocks_give_the_papers_loss():
    found = {(*r["actuator"], r["block"]): r for r in numbers.candidate_rows()}
    assert found[4, 1, 1, "4x4x3"]["max_loss"] == pytest.approx(0.0492, abs=1e-4)
    assert found[4, 1, 1, "4x3x3"]["max_loss"] == pytest.approx(0.0492, abs=1e-4)
    assert found[4, 1, 1, "4x2x3"]["max_loss"] == pytest.approx(0.0497, abs=2e-4)
    assert found[8, 3, 7, "8x4x8"]["max_loss"] == pytest.approx(0.0490, abs=1e-4)


def test_map_over_size_and_slenderness():
    losses = numbers.loss_map([2, 4, 8], [100, 20, 30, 42.43, 60])
    assert losses.ratios.tolist() == [20, 30, 42.43, 60, 100]
    facts = [[0.188, 0.090, 0.046, 0.023, 0.0085], [0.59, 0.36, 0.21, 0.117, 0.045]]
    assert np.allclose(losses.loss[1:], facts, atol=6e-3)
    at = losses.ratio_at(numbers.PAPER_LOSS)
    assert np.isnan(at[0]) and at[1] == pytest.approx(41.1, abs=0.5)
    for width, ratio in zip((4, 8), at[1:]):
        again = numbers.loss_map([width], [ratio])
        assert again.loss[0, 0] == pytest.approx(numbers.PAPER_LOSS, rel=0.01)
    assert losses.width_at(0.05).tolist() == [2, 2, 4, 4, 8]


def test_figure_1_and_3():
    pair = numbers.checked((2, 1, 2), (2, 1, 1))
    assert pair.max_loss == pytest.approx(0.0033, abs=5e-5) and pair.signs_right
    assert numbers.neighbours_max(pair) < 0.0019
    shares = [pair.shares[k] for k in ("bending", "torsion", "axial")]
    assert shares == pytest.approx([0.952, 0.046, 0.002], abs=1e-3)
    cube = numbers.checked((4, 4, 4), (4, 3, 3))
    found = groups(cube)
    assert sum(map(len, found.values())) == len(cube.lattice.nodes)
    apexes = np.abs(cube.actual[found["apexes of its layer"]]).max()
    assert apexes < 0.01  # "(<1 %)"


def test_dissipation_starts_at_the_actuator():
    check = numbers.checked((8, 1, 8), (8, 1, 7))
    distance, mean, least = numbers.dissipation(check)
    assert distance[0] == 0.5 and distance[-1] == 4.0
    assert 1 - least.min() == pytest.approx(check.max_loss)
    assert (least <= mean).all() and mean[0] > mean[-1]


@pytest.mark.parametrize(("ratio", "slope"), [(42.43, 0.998), (27, 0.994), (18, 0.987)])
def test_robot_templates(ratio, slope):
    length = block(1, 1, 1).beam_length
    found = robot_templates(numbers.strut_of(ratio, length)).agreement
    assert found.slope == pytest.approx(slope, abs=6e-4)
    if ratio == 42.43:
        assert found.max == pytest.approx(0.63e-3, abs=1e-5)
        assert found.rms == pytest.approx(0.11e-3, abs=5e-6)


def test_gait_is_its_own_inverse():
    assert targets_recovered() < 1e-12


@pytest.mark.parametrize(
    "bad",
    [
        lambda: numbers.strut_of(0.5, 0.05),
        lambda: numbers.strut_of(np.nan, 0.05),
        lambda: numbers.loss_map([1], [40]),
        lambda: numbers.loss_map([], [40]),
        lambda: numbers.loss_map([2], []),
        lambda: numbers.loss_rows([(5, 5, 5)]),
    ],
)
def test_numbers_refuse(bad):
    with pytest.raises(InvalidInput):
        bad()
