"""Pictures of a skinned run show its numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from drakebots import plot
from drakebots.core.errors import InvalidInput
from drakebots.multibody import joint_angles
from drakebots.plots import plot_skin
from drakebots.plots.summary import skin_figure
from tests.helpers.figures import check_legends, drawn_figures
from tests.helpers.scripts import is_picture
from tests.helpers.skin_runs import made_result

TIMES = np.linspace(0, 1, 11)
HIP, KNEE = 0.3 * np.sin(TIMES), -0.5 * np.sin(TIMES)
LEG = """<sdf version="1.9"><model name="leg">
<link name="thigh"/><link name="shin"/>
<joint name="hip" type="revolute"><parent>world</parent><child>thigh</child>
<axis><xyz>0 1 0</xyz><limit><effort>1.96</effort></limit></axis></joint>
<joint name="knee" type="revolute"><parent>thigh</parent><child>shin</child>
<axis><xyz>0 1 0</xyz><limit><effort>0.7</effort></limit></axis></joint>
</model></sdf>"""


@pytest.fixture
def result(tmp_path):
    sdf = tmp_path / "leg.sdf"
    sdf.write_text(LEG)
    q = np.stack([HIP, KNEE], axis=1)
    stress = 1e3 * np.outer(TIMES[::2], [0.0, 1.0, 8.0])
    rad = {"units": "rad"}
    data = xr.Dataset(
        {
            "position": (("time", "position_name"), q[:, ::-1], rad),
            "target": (("time", "joint"), q + 0.1, rad),
            "torque": (("time", "joint"), 2 * q, {"units": "N m"}),
            "worst_volume_ratio": (("time",), 1 - 0.2 * TIMES, {"units": "1"}),
            "skin_position": (
                ("skin_time", "vertex", "axis"),
                np.zeros((6, 3, 3)),
                {"units": "m"},
            ),
            "skin_stress": (("skin_time", "vertex"), stress, {"units": "Pa"}),
        },
        {
            "time": ("time", TIMES, {"units": "s"}),
            "skin_time": ("skin_time", TIMES[::2], {"units": "s"}),
            "position_name": ["leg_knee", "leg_hip"],
            "axis": list("xyz"),
            "joint": ["hip", "knee"],
        },
    )
    return made_result("leg", data, sdf)


def lines(figure, title):
    (axes,) = [a for a in figure.axes if a.get_title().startswith(title)]
    return [(np.array(line.get_xdata()), line.get_ydata()) for line in axes.lines]


def test_angles_are_those_of_their_joints(result):
    """By name, whatever the order; each beside its own target."""
    angles = joint_angles(result.data)
    assert list(angles) == ["hip", "knee"]
    assert angles["hip"] == pytest.approx(HIP)
    drawn = [y for _, y in lines(skin_figure(result), "joints")]
    for got, wanted in zip(drawn, (HIP + 0.1, HIP, KNEE + 0.1, KNEE)):
        assert got == pytest.approx(wanted)


def test_torques_have_their_limits(result):
    """Both signs; a joint, or a run, without limits has none."""
    drawn = [y for _, y in lines(skin_figure(result), "torques")]
    assert drawn[0] == pytest.approx(2 * HIP) and len(drawn) == 2
    limits = (("joint",), [1.96, np.inf], {"units": "N m"})
    limited = replace(result, data=result.data.assign(effort_limit=limits))
    drawn = [y for _, y in lines(skin_figure(limited), "torques")]
    assert [y[0] for y in drawn[2:]] == [-1.96, 1.96]


def test_stress_energy_and_volume(result):
    """Stress in kPa over its own times, det F, and energy where there is some."""
    figure = skin_figure(result)
    times, largest = lines(figure, "von Mises")[0]
    assert times == pytest.approx(TIMES[::2])
    assert largest == pytest.approx(8 * TIMES[::2])
    assert lines(figure, "smallest volume")[0][1] == pytest.approx(1 - 0.2 * TIMES)
    assert not [a for a in figure.axes if "energy" in a.get_title()]
    more = result.data.assign(skin_energy=(("time",), TIMES**2, {"units": "J"}))
    drawn = lines(skin_figure(replace(result, data=more)), "skin's elastic")
    assert drawn[0][1] == pytest.approx(TIMES**2)


@pytest.mark.long
def test_file_is_written_by_report_too(result, tmp_path):
    """The summary of a skinned run is this picture."""
    for draw, name in ((plot_skin, "a.png"), (plot, "b.svg")):
        with drawn_figures() as figures:
            path = draw(result, tmp_path / name)
        assert check_legends(figures[0])
        if path.suffix == ".png":
            assert is_picture(path)
        else:
            assert "torque [N m]" in path.read_text()


def test_sixteen_joints_can_be_told_apart(result):
    """No two share colour and dashes; a joint's target has those of the joint."""
    names = [f"joint_{k}" for k in range(16)]
    q = np.outer(TIMES, np.arange(16))
    data = result.data.drop_dims(["joint", "position_name"]).assign(
        position=(("time", "position_name"), q, {"units": "rad"}),
        target=(("time", "joint"), q + 0.1, {"units": "rad"}),
        torque=(("time", "joint"), q, {"units": "N m"}),
    )
    data = data.assign_coords(position_name=names, joint=names)
    figure = skin_figure(replace(result, data=data))
    assert check_legends(figure) == 3
    for title in ("joints", "torques"):
        (axes,) = [a for a in figure.axes if a.get_title().startswith(title)]
        named = [x for x in axes.lines if str(x.get_label()).startswith("joint_")]
        styles = [(x.get_color(), str(x._dash_pattern)) for x in named]
        assert len(named) == len(set(styles)) == 16
        if title == "joints":
            pale = [x for x in axes.lines if x not in named]
            assert [x.get_color() for x in pale] == [c for c, _ in styles]


def test_bad_plots(result, tmp_path):
    """No skin, one frame, an ending that is none."""
    with pytest.raises(InvalidInput, match="no skinned run"):
        skin_figure(replace(result, data=result.data.drop_vars("skin_position")))
    with pytest.raises(InvalidInput, match="no skinned run"):
        skin_figure(replace(result, data=result.data.isel(time=[0])))
    with pytest.raises(InvalidInput, match=r"\.png"):
        plot_skin(result, tmp_path / "a.txt")
    bare = result.data[["skin_position", "position"]]
    with pytest.raises(InvalidInput, match="nothing"):
        skin_figure(replace(result, data=bare))
