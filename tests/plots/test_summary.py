"""The summary's title says what the result knows of its gait."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

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


def test_an_arm_shows_its_joints_and_torques():
    """Its base rests, and nine of ten joints would be too many."""
    t, names = np.linspace(0, 1, 5), [f"j{k}" for k in range(10)]
    q = np.outer(t, np.arange(10.0))
    data = xr.Dataset(
        {
            "base_position": (("time", "axis"), np.zeros((5, 3)), {"units": "m"}),
            "position": (("time", "coordinate"), q, {"units": "rad"}),
            "torque": (("time", "motor"), q, {"units": "N m"}),
        },
        {"time": ("time", t, {"units": "s"}), "coordinate": names, "motor": names},
    )
    figure = summary_figure(make(data=data))
    joints, torques = figure.axes
    for axis in (joints, torques):
        assert [line.get_label() for line in axis.lines] == names[2:]
    assert joints.get_title() == "the 8 that change most"
    plt.close(figure)
