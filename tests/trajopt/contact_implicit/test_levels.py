"""Ground that is raised under each foot of a contact-implicit program."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.multibody import Flat
from tests.helpers.lowered_programs import hopper


def test_raised_ground_is_higher_ground(tmp_path):
    """The rows and their slopes are those of a flat ground of that height."""
    high, guess = hopper(tmp_path, terrain=Flat(0.03))
    raised, _ = hopper(tmp_path, levels=np.full((5, 1), 0.03))
    x = guess + 0.1 * np.random.default_rng(0).standard_normal(len(guess))
    np.testing.assert_allclose(raised.values(x), high.values(x), atol=1e-14)
    slopes = (raised.jacobian(x) - high.jacobian(x)).toarray()
    np.testing.assert_allclose(slopes, 0, atol=1e-14)


def test_each_interval_has_its_level(tmp_path):
    """phi falls by the level, and the product by level times force."""
    levels = np.array([0, 0, 0.1, 0.1, 0.2])[:, None]
    plain, x = hopper(tmp_path)
    raised, _ = hopper(tmp_path, levels=levels)
    change = raised.values(x) - plain.values(x)
    for name, expected in (
        ("distance", -levels),
        ("complementarity", -levels * plain.view(x)["gam"] * [1, 0, 0]),
    ):
        row = raised.rows[name]
        found = change[row.start : row.stop].reshape(row.shape)
        np.testing.assert_allclose(found, expected, atol=1e-14)
        change[row.start : row.stop] = 0
    np.testing.assert_array_equal(change, 0)


@pytest.mark.parametrize("levels", [np.zeros((6, 1)), np.full((5, 1), np.nan), [[1]]])
def test_bad_levels(tmp_path, levels):
    with pytest.raises(InvalidInput, match="levels must be 5x1 finite numbers"):
        hopper(tmp_path, levels=levels)
