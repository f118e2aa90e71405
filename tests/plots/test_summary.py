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


def _walk(**more):
    """A straight walk of 5 samples with two feet, and what else it holds."""
    t, names = np.linspace(0, 1, 5), ["left", "right"]
    base = np.add(np.outer(t, [0.3, 0.0, 0.0]), [0.0, 0.0, 0.2])
    forces = np.ones((5, 2, 3))
    data = xr.Dataset(
        {
            "base_position": (("time", "axis"), base, {"units": "m"}),
            "base_rpy": (("time", "axis"), np.zeros((5, 3)), {"units": "rad"}),
            "foot_force": (("time", "foot", "axis"), forces, {"units": "N"}),
        },
        {"time": ("time", t, {"units": "s"}), "foot": names},
    )
    return data.assign(more)


def _panels(figure) -> dict:
    return {axes.get_title(): axes for axes in figure.axes if axes.get_visible()}


def test_an_executed_plan_is_drawn_beside_the_plan():
    """A run that lags by a tenth of a metre: both paths, strides, loads and inputs."""
    data = _walk()
    planned = np.add(data.base_position.values, [0.1, 0.0, 0.0])
    data = data.assign(
        base_position_planned=(("time", "axis"), planned, {"units": "m"}),
        foot_force_planned=data.foot_force,
        input=(("time", "input_name"), np.full((5, 2), 3.0), {"units": "N m"}),
        input_limit=(("input_name",), np.array([6.0, 0.0]), {"units": "N m"}),
    ).assign_coords(input_name=["bounded", "free"])
    facts = {"stride_m": (0.1, 0.2), "planned_stride_m": 0.15}
    facts |= {"feedback": "Servos", "ground": "Sap", "friction": 0.7}
    figure = summary_figure(make(data=data, metrics=facts, message="it walks"))
    panels = _panels(figure)
    grey, run, _ = panels["path of the base, plan grey"].lines
    k = run.get_xdata()[-1] / 0.3
    np.testing.assert_allclose(grey.get_xdata() - run.get_xdata(), 0.1 * k)
    bars = panels["stride, plan grey"]
    assert [patch.get_height() for patch in bars.patches] == [100.0, 200.0]
    assert bars.lines[-1].get_ydata()[0] == pytest.approx(150.0)
    assert "loads, plan grey, rows of 1.1 N" in panels
    (share, *_) = panels["inputs"].lines
    assert share.get_label() == "bounded" and set(share.get_ydata()) == {0.5}
    title = figure.get_suptitle()
    assert "Servos feedback on Sap ground" in title and title.endswith("it walks")
    plt.close(figure)


def test_a_controlled_run_shows_its_goal_pushes_and_solves():
    """A push to the left at half the way; the goal lies from where it began."""
    data = _walk().drop_vars("foot_force")
    data = data.assign(
        push=(("time", "axis"), np.eye(5, 3), {"units": "N"}),
        torque=(("time", "motor"), np.ones((5, 1)), {"units": "N m"}),
        solve_time=("solve", [0.0, 0.5], {"units": "s"}),
        solve_seconds=("solve", [0.01, 0.002], {"units": "s"}),
    ).assign_coords(motor=["hip"])
    push = {"force": 50.0, "time": 0.5, "duration": 0.1, "direction": np.pi / 2}
    facts = {"controller": "mpc", "goal_m": (1.0, 0.5), "pushes": (push,)}
    figure = summary_figure(make(data=data, metrics=facts))
    panels = _panels(figure)
    path = panels["path of the base"]
    (goal,) = (line for line in path.lines if line.get_label() == "goal")
    k = path.lines[0].get_xdata()[-1] / 0.3
    assert (*goal.get_xdata(), *goal.get_ydata()) == pytest.approx((k, 0.5 * k))
    (arrow,) = (text for text in path.texts if text.get_text() == "50 N")
    assert arrow.xy == pytest.approx((0.15 * k, 0.0))
    (solves,) = panels["solves"].lines
    np.testing.assert_allclose(solves.get_ydata(), [10.0, 2.0])
    assert "pushes" in panels and "under mpc" in figure.get_suptitle()
    plt.close(figure)
