"""Starts from an answer with fewer knots, and weights that grow."""

import numpy as np

from drakebots.trajopt.contact_implicit import on_knots


def test_a_motion_at_other_knots():
    """Straight lines stay, intervals are halved and joined, v0 and time are kept."""
    parts = {
        "h": np.array([[0.1], [0.1], [0.1]]),
        "v0": np.array([[1.0, 2.0]]),
        "q": np.linspace([0.0, 1.0], [3.0, -5.0], 4),
        "u": np.array([[1.0], [2.0], [3.0]]),
    }
    finer = on_knots(parts, 7)
    line = np.linspace([0.0, 1.0], [3.0, -5.0], 7)
    np.testing.assert_allclose(finer["q"], line, atol=1e-12)
    np.testing.assert_allclose(finer["h"], 0.05)
    np.testing.assert_array_equal(finer["u"].ravel(), [1, 1, 2, 2, 3, 3])
    again = on_knots(finer, 4)
    for name, part in parts.items():
        np.testing.assert_allclose(again[name], part, atol=1e-12, err_msg=name)


def test_unequal_steps_become_equal():
    parts = {"h": np.array([0.3, 0.1]), "q": np.array([[0.0], [3.0], [4.0]])}
    out = on_knots(parts, 5)
    np.testing.assert_allclose(out["h"], 0.1)
    np.testing.assert_allclose(out["q"].ravel(), [0, 1, 2, 3, 4])
