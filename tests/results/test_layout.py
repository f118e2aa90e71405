"""What a kind of result promises, looked at before anything draws or executes it."""

import numpy as np
import pytest
import xarray as xr

from drakebots import plot
from drakebots.core.errors import InvalidInput
from drakebots.results import check_layout
from tests.helpers.result_samples import make

N = 4
LABELS = {
    "axis": list("xyz"),
    "angle": ["roll", "pitch", "yaw"],
    "foot": ["l", "r"],
    "coordinate": ["hip", "knee"],
    "rate": ["hip_rate", "knee_rate"],
}


def motion() -> xr.Dataset:
    """A motion of two joints and two feet."""
    variables = {
        "base_position": ("axis", "m"),
        "base_rpy": ("angle", "rad"),
        "position": ("coordinate", "rad"),
        "velocity": ("rate", "rad/s"),
        "foot_position": ("foot axis", "m"),
        "foot_velocity": ("foot axis", "m/s"),
    }
    time = ("time", np.arange(N) / 10, {"units": "s"})
    made = {}
    for name, (dims, units) in variables.items():
        dims = ("time", *dims.split())
        shape = (N, *(len(LABELS[dim]) for dim in dims[1:]))
        made[name] = (dims, np.ones(shape), {"units": units})
    return xr.Dataset(made, {"time": time, **LABELS})


def result(data: xr.Dataset):
    return make(kind="legged.simulation", data=data)


def with_values(name: str, value: float) -> xr.Dataset:
    data = motion()
    data[name][1] = value
    return data


def in_millimetres() -> xr.Dataset:
    data = motion()
    data["base_position"].attrs["units"] = "1"
    return data


def test_a_sound_result_passes():
    check_layout(result(motion()))
    check_layout(make(kind="my.kind"))  # nobody has promised anything


def test_a_robot_without_feet_is_drawn(tmp_path):
    """As an arm is, or a mechanism."""
    arm = result(motion().drop_dims("foot"))
    check_layout(arm)
    assert plot(arm, tmp_path / "arm.png").exists()
    with pytest.raises(InvalidInput, match="it has no foot_velocity"):
        check_layout(result(motion().drop_vars("foot_velocity")))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (motion().drop_vars("velocity"), "it has no velocity"),
        (motion().transpose(..., "time"), "must be time x"),
        (motion().isel(axis=[0]), "axis has 1 items"),
        (motion().drop_vars("foot"), "each foot needs a name of its own"),
        (motion().assign_coords(foot=["l", "l"]), "each foot needs a name of its own"),
        (in_millimetres(), "base_position must be in m"),
        (with_values("foot_position", np.nan), "foot_position must be finite"),
        (with_values("position", 1e300), "position must be finite"),
    ],
)
def test_what_was_altered_is_refused_by_name(data, says, tmp_path):
    with pytest.raises(InvalidInput, match=says):
        check_layout(result(data))
    with pytest.raises(InvalidInput, match=says):
        plot(result(data), tmp_path / "p.png")
    assert not list(tmp_path.iterdir())
