"""Logs of ROS are read as measurements; runs are compared signal by signal."""

from __future__ import annotations

import json
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
import xarray as xr

from drakebots.cli import main
from drakebots.core.errors import DrakebotsWarning, FileProblem, InvalidInput
from drakebots.core.files import write_csv
from drakebots.formats import load
from drakebots.identify import (
    Identification,
    compare,
    identify,
    plot_compared,
    read_measured,
    write_parameters,
)
from drakebots.robots.legged import Simulation, simulate
from drakebots.view import write_ros
from tests.helpers.result_samples import make
from tests.helpers.robot_files import write
from tests.helpers.ros_logs import imu, joints, made, moved, odometry, write_log
from tests.helpers.swings import PENDULUM, pendulum_in, swing

TIMES = 0.01 * np.arange(31)


def states(time):
    """Positions and efforts of two joints."""
    return {"position": [np.sin(time), time], "effort": [2 * time, 0.0]}


@pytest.mark.parametrize("mcap", [True, False], ids=["mcap", "sqlite"])
def test_a_log_has_the_samples_of_its_joint_states(tmp_path, mcap):
    said = [
        ("/joint_states", t, joints(t, ["hip", "knee"], **states(t))) for t in TIMES
    ]
    # Turned by half a turn and more: no jump.
    yaw = 3.0 + TIMES
    said += [
        ("/odom", t + 0.005, odometry(t + 0.005, (t, 0, 1), y))
        for t, y in zip(TIMES, yaw)
    ]
    said.sort(key=lambda row: row[1])
    path = write_log(tmp_path / "bag", said, mcap=mcap)
    for source in (path, path.parent):
        with pytest.warns(DrakebotsWarning, match="the base is that of /odom"):
            read = read_measured(source)
        np.testing.assert_allclose(read.time, TIMES, atol=1e-6)
        np.testing.assert_allclose(read.columns["position.hip"], np.sin(TIMES))
        np.testing.assert_allclose(read.columns["torque.hip"], 2 * TIMES)
        assert "velocity.hip" not in read.columns
        assert np.isnan(read.columns["base_position.x"][0])
        np.testing.assert_allclose(
            read.columns["base_position.x"][1:], TIMES[1:] - 0.005, atol=1e-6
        )
        np.testing.assert_allclose(
            read.columns["base_rpy.yaw"][1:], yaw[1:] - 0.005, atol=1e-6
        )


def test_a_results_series_of_several_units_are_in_si(tmp_path):
    run = tmp_path / "run.csv"
    write_csv(run, ["time [s]", "velocity.hip [rad/s, m/s]"], [[t, t] for t in TIMES])
    np.testing.assert_allclose(read_measured(run).columns["velocity.hip"], TIMES)


def test_a_target_holds_until_the_next_and_other_topics_are_named(tmp_path):
    said = [("/joint_states", t, joints(t, ["hip"], position=[t])) for t in TIMES]
    said += [
        ("/leg/joint_commands", t, joints(t, ["hip"], position=[10 * t]))
        for t in (0.045, 0.12)
    ]
    said.append(("/places", 0.1, made("geometry_msgs/msg/Point", x=0.0, y=0.0, z=0.0)))
    said.sort(key=lambda row: row[1])
    path = write_log(tmp_path / "bag", said)
    with pytest.warns(DrakebotsWarning, match="topics left out: /places"):
        read = read_measured(path)
    # It begins with the first target.
    np.testing.assert_allclose(read.columns["position.hip"], TIMES[5:])
    steps = np.where(TIMES[5:] < 0.12 - 1e-9, 0.45, 1.2)
    np.testing.assert_allclose(read.columns["target.hip"], steps)


def test_a_signal_on_two_topics_is_refused(tmp_path):
    """The pose of a goal, or of a ball, is not mixed into that of the base."""
    said = [("/joint_states", t, joints(t, ["hip"], position=[t])) for t in TIMES]
    said += [("/odom", 0.0, odometry(0.0, (0, 0, 0), 0))]
    said += [("/goal", 0.1, odometry(0.1, (9, 0, 0), 0))]
    with pytest.raises(FileProblem, match="is on /goal and /odom; keep one of them"):
        read_measured(write_log(tmp_path / "bag", said))


def test_the_base_comes_from_transforms_and_imus_where_nothing_else_says_it(tmp_path):
    """From the one frame that moves in the world, and not where odometry says it."""
    state = [("/joint_states", t, joints(t, ["hip"], position=[t])) for t in TIMES]

    def tree(t):
        links = [("world", "odom", 9.0), ("odom", "trunk", t), ("trunk", "leg", 7.0)]
        return made("tf2_msgs/msg/TFMessage", transforms=[moved(t, *x) for x in links])

    turned = [("/imu", t, imu(t, roll=0.1 * t)) for t in TIMES]
    unknown = [("/imu", t, imu(t)) for t in TIMES]
    transforms = [("/tf", t, tree(t)) for t in TIMES]
    odometer = [("/odom", t, odometry(t, (2 * t, 0, 0), 0)) for t in TIMES]

    def read(name, *said):
        said = sorted((row for rows in said for row in rows), key=lambda row: row[1])
        return read_measured(write_log(tmp_path / name, said)).columns

    with pytest.warns(DrakebotsWarning, match=r"the base is that of /tf \(trunk\)"):
        found = read("tf", state, transforms, turned)
    np.testing.assert_allclose(found["base_position.x"], TIMES, atol=1e-9)
    np.testing.assert_allclose(found["base_rpy.roll"], 0, atol=1e-9)
    with pytest.warns(DrakebotsWarning, match="the base is that of /odom"):
        found = read("odom", state, transforms, odometer, turned)
    np.testing.assert_allclose(found["base_position.x"], 2 * TIMES, atol=1e-9)
    with pytest.warns(DrakebotsWarning, match="the base is that of /imu"):
        found = read("imu", state, turned)
    np.testing.assert_allclose(found["base_rpy.roll"], 0.1 * TIMES, atol=1e-9)
    assert not {"base_rpy.yaw", "base_position.x"} & set(found)
    assert set(read("unknown", state, unknown)) == {"position.hip"}


def test_a_bag_of_a_run_is_the_run(tmp_path):
    """Every signal comes back, and one that is changed does not."""
    run = simulate(Simulation("mini_cheetah", duration=0.1))
    forces = np.random.default_rng(1).normal(size=run.data.foot_position.shape)
    forces = run.data.foot_position.copy(data=forces)
    run = replace(run, data=run.data.assign(foot_force=forces))
    named = [f"{foot}_foot" for foot in run.data.foot.values]  # as most robots do
    run = replace(run, data=run.data.assign_coords(foot=named))
    path = write_ros(run, tmp_path / "run.mcap")
    with pytest.warns(DrakebotsWarning, match=r"that of /tf \(body\)"):
        signals = compare(run, path)
    found = {signal.name: signal for signal in signals}
    joints = run.data.sizes["motor"]
    assert joints == 12 and len(found) == 3 * joints + 6 + 3 * 4
    assert {"base_position.z", "foot_force.FL_foot.z", "torque.FL_knee"} <= set(found)
    for name, signal in found.items():  # stamps are whole nanoseconds
        assert signal.rms < 1e-7 * max(1.0, np.ptp(signal.first)), name
    # A plan calls torques so, and some joints may slide.
    note = {"units": "N m (N where the joint slides)"}
    inputs = run.data.rename(torque="input").input.assign_attrs(note)
    plan = replace(run, data=run.data.drop_vars("torque").assign(input=inputs))
    with pytest.warns(DrakebotsWarning):
        assert {signal.name for signal in compare(plan, path)} == set(found)
    off = run.data.position + 0.1 * (run.data.coordinate == "mini_cheetah_RR_knee")
    run = replace(run, data=run.data.assign(position=off))
    with pytest.warns(DrakebotsWarning):
        (changed,) = (signal for signal in compare(run, path) if signal.rms > 1e-3)
    assert changed.rms == pytest.approx(0.1)


@pytest.mark.long
def test_a_fit_of_a_log_is_that_of_the_table(tmp_path):
    model = pendulum_in(tmp_path)
    table = swing(model, tmp_path / "run.csv", mass_thigh=1.2)
    rows = np.genfromtxt(table, delimiter=",", skip_header=1)
    said = [
        ("/joint_states", t, joints(t, ["hip"], position=[q], effort=[u]))
        for t, q, u in rows
    ]
    log = write_log(tmp_path / "bag", said)
    values = [
        float(identify(Identification(model, data, ("mass:thigh",))).data.value[0])
        for data in (table, log)
    ]
    assert values[0] == pytest.approx(1.2, rel=0.02)
    # Stamps are whole nanoseconds.
    assert values[1] == pytest.approx(values[0], rel=1e-5)


def test_what_is_no_log_is_said(tmp_path):
    (tmp_path / "bad.mcap").write_bytes(b"no log")
    with pytest.raises(FileProblem, match=r"bad\.mcap: is no log of ROS"):
        read_measured(tmp_path / "bad.mcap")
    said = [("/places", 0, made("geometry_msgs/msg/Point", x=0.0, y=0.0, z=0.0))]
    log = write_log(tmp_path / "bag", said)
    with (
        pytest.warns(DrakebotsWarning, match="left out: /places"),
        pytest.raises(FileProblem, match="has no joint states"),
    ):
        read_measured(log)
    with pytest.raises(FileProblem, match=r"is none of \.csv, \.nc, \.mcap"):
        read_measured(tmp_path / "run.txt")


# --- beside each other --------------------------------------------------------------


def table(path, shift=0.0, off=0.0, rate=0.01):
    """Two signals, the second of which is off, of which the clock began later."""
    t = np.arange(0, 1.0001, rate)
    heads = ["time [s]", "position.hip [deg]", "position.knee [rad]"]
    hip = np.degrees(np.sin(5 * (t + shift)))
    return write_csv(path, heads, np.column_stack([t, hip, t + shift + off]))


def test_differences_are_those_of_the_signals(tmp_path):
    first = table(tmp_path / "a.csv")
    second = table(tmp_path / "b.csv", shift=0.3, off=0.05, rate=0.004)
    found = {signal.name: signal for signal in compare(first, second, shift=0.3)}
    assert found.keys() == {"position.hip", "position.knee"}
    assert found["position.hip"].rms < 1e-3  # lines between samples
    knee = found["position.knee"]
    assert knee.rms == pytest.approx(0.05)
    assert knee.time[[0, -1]] == pytest.approx([0.3, 1.0])
    assert knee.share == pytest.approx(0.05 / knee.first.std())
    assert knee.row()["mean"] == pytest.approx(0.05)
    with pytest.raises(InvalidInput, match=r"nothing to compare.*0 to 1 s"):
        compare(first, second, shift=2.0)


def test_whole_turns_and_what_rests_are_no_difference(tmp_path):
    """A heading jumps from pi to -pi in one file, and begins a turn off in another."""
    yaw = 3.0 + 2 * TIMES
    heads = ["time [s]", "base_rpy.yaw [rad]", "position.hip [rad]"]
    wrapped = (yaw + np.pi) % (2 * np.pi) - np.pi
    rows = np.column_stack([TIMES, wrapped, 0 * TIMES])
    one = write_csv(tmp_path / "a.csv", heads, rows)
    rows = np.column_stack([TIMES, yaw - 2 * np.pi, 0 * TIMES])
    other = write_csv(tmp_path / "b.csv", heads, rows)
    found = {signal.name: signal for signal in compare(one, other)}
    assert found["base_rpy.yaw"].rms == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(found["position.hip"].share)
    plot_compared(list(found.values()), tmp_path / "both.png")
    assert main(["compare", str(one), str(other), "--json"]) == 0


def test_a_result_and_a_log_meet_at_their_joints(tmp_path):
    """The robot's name is not the file's, and its motor's is not the joint's."""
    motor = """<transmission name="t"><type>transmission_interface/SimpleTransmission
    </type><joint name="hip"/><actuator name="drive"/></transmission></robot>"""
    path = write(tmp_path, PENDULUM.replace("</robot>", motor), "bought_arm.urdf")
    run = simulate(Simulation(path, duration=0.1))
    assert list(run.data.coordinate) == ["pendulum_hip"]
    time, hip = run.data.time.values, run.data.position.values[:, 0]
    heads = ["time [s]", "position.hip [deg]", "torque.hip [N m]"]
    effort = run.data.torque.sel(motor="drive").values
    rows = np.column_stack([time, np.degrees(hip) + 90, effort])
    log = write_csv(tmp_path / "log.csv", heads, rows)
    for both in ((run, log), (log, run)):
        units = {signal.name: signal.unit for signal in compare(*both)}
        assert units == {"position.hip": "rad", "torque.hip": "N m"}
        found = {signal.name: signal.rms for signal in compare(*both)}
        expected = {"position.hip": np.pi / 2, "torque.hip": 0.0}
        assert found == pytest.approx(expected, abs=1e-9)


def test_joints_of_one_name_are_not_taken_for_one_another(tmp_path):
    """Without its model's name the first joint would be called as the second."""
    names, both = ["arm_hip", "hip"], np.column_stack([TIMES, 2 * TIMES])
    axes = {"time": ("time", TIMES, {"units": "s"}), "coordinate": names}
    position = ("time", "coordinate"), both, {"units": "rad"}
    run = replace(make(), model="arm", data=xr.Dataset({"position": position}, axes))
    heads = ["time [s]", "position.hip [rad]"]
    log = write_csv(tmp_path / "log.csv", heads, np.c_[TIMES, 2 * TIMES])
    (signal,) = compare(run, log)
    assert signal.name == "position.hip" and signal.rms == 0


@pytest.mark.long
def test_a_result_beside_a_log_of_it(tmp_path, capsys):
    """A result has the model's name before that of the joint, a log has not."""
    model = pendulum_in(tmp_path)
    data = swing(model, tmp_path / "run.csv", noise=0.0, mass_thigh=1.2)
    found = tmp_path / "found.yaml"
    write_parameters(identify(Identification(model, data, ("mass:thigh",))), found)
    again, picture = tmp_path / "again.nc", tmp_path / "both.png"
    words = ["simulate", str(found), "--duration", "0.6", "-o", str(again)]
    assert main([*words, "--actuate", "all", "--effort", "20"]) == 0
    capsys.readouterr()
    words = ["compare", str(again), str(data), "--plot", str(picture), "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {row["signal"] for row in said["signals"]} == {"position.hip", "torque.hip"}
    assert matplotlib.image.imread(picture).std() > 0.01
    assert load(found).parameters["mass:thigh"] == pytest.approx(1.2, rel=1e-3)
