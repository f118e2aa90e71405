"""The summary's title says what the result knows of its gait."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from drakebots.plots.summary import summary_figure
from tests.helpers.result_samples import make, make_data


@pytest.mark.parametrize(
    "metrics, said",
    [
        ({"gait": "crawl"}, "crawl"),
        ({"gait": "trot", "frequency_hz": 10.0, "friction": 0.6}, "trot, 10 Hz"),
        ({}, "hamr"),
    ],
)
def test_title(metrics, said):
    data = make_data()
    axes = ("time", "axis")
    data["base_position"] = (axes, np.eye(5, 3), {"units": "m"})
    data["base_rpy"] = (axes, np.eye(5, 3), {"units": "rad"})
    figure = summary_figure(make(data=data, metrics=metrics))
    assert said in figure.get_suptitle()
    plt.close(figure)


def test_a_height_that_stays_is_a_straight_line():
    """Its last digits would fill the picture."""
    data, axes = make_data(), ("time", "axis")
    base = 0.24 + 1e-14 * np.eye(5, 3)[:, ::-1]
    data["base_position"] = (axes, base, {"units": "m"})
    data["base_rpy"] = (axes, np.zeros((5, 3)), {"units": "rad"})
    figure = summary_figure(make(data=data, metrics={}))
    (height,) = (
        line for ax in figure.axes for line in ax.lines if line.get_label() == "height"
    )
    assert np.ptp(height.get_ydata()) == 0 and np.ptp(height.axes.get_ylim()) > 1
    plt.close(figure)
