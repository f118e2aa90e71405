"""Measurements of a robot as columns over time, in SI, and what drove its motors."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.spatial.transform import Rotation

from drakebots.core.errors import DrakebotsWarning, FileProblem, InvalidInput
from drakebots.core.files import csv_table, reading
from drakebots.core.installed import extra
from drakebots.core.units import dimensions, si_factor
from drakebots.identify.stepper import springs
from drakebots.model import actuators_of, model_names, part_name, slides
from drakebots.multibody import Robot
from drakebots.results import LARGEST, Result, columns, load_result

LOGS = (".mcap", ".db3", ".bag")
"""Endings of logs of ROS 2 and 1."""

ORDERS = ("command", "commands", "target", "targets", "desired", "reference")
"""Last words of topics of joint states that are targets."""


@dataclass(frozen=True)
class Measured:
    """Samples of a run.

    Attributes:
        time: strictly increasing (T,) [s].
        columns: values (T,) in SI by the name of the signal; NaN where one is missing.
        units: that were given, by the name of the signal.
    """

    time: np.ndarray
    columns: Mapping[str, np.ndarray]
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if len(self.time) < 3:
            raise InvalidInput(f"{len(self.time)} samples; at least 3 are needed")
        late = np.flatnonzero(~(np.diff(self.time) > 0))
        if len(late):
            k = late[0] + 1
            raise InvalidInput(
                f"sample {k + 1}: its time {self.time[k]:g} s is not after that of the "
                "sample before it; sort the rows by time"
            )

        for name, values in {"time": self.time, **self.columns}.items():
            if (most := np.abs(values[~np.isnan(values)]).max(initial=0)) >= LARGEST:
                raise InvalidInput(f"{name}: {most:g} is no measurement")

    def column(
        self, robot: Robot, like: str, kind: str, *names: str
    ) -> np.ndarray | None:
        """The column "kind.name", or Drake's "kind.model_name", of the first name,
        which may be "model::name".

        Raises:
            InvalidInput: for one in a unit of another dimension than `like`.
        """
        models = ("", *(f"{model}_" for model in model_names(robot.plant)))
        names = (*names, *("_".join(name.rsplit("::", 1)) for name in names))
        heads = (f"{kind}.{model}{name}" for name in names for model in models)
        head = next((h for h in heads if h in self.columns), "")
        unit = self.units.get(head, like)
        if dimensions(unit) != dimensions(like):
            raise InvalidInput(
                f"{head} cannot be in {unit!r}; use a unit like {like!r}"
            )
        return self.columns.get(head)


def read_measured(source: str | Path | Result) -> Measured:
    """Samples from a table (.csv), a result (.nc) or a ROS log, or of a result.

    Heads are "time [s]" and names of a result's own series with their units,
    "position.FL_knee [deg]"; those without a unit are in SI. Empty cells and NaN are
    samples that are missing. Logs are .mcap, .db3, .bag and folders of ROS 2 bags; see
    :func:`_of_log`.

    Raises:
        FileProblem: naming the line and the column that is wrong.
        InvalidInput: for a log without the package `rosbags`.
    """
    if isinstance(source, Result):
        return _of_pairs(columns(source.data))
    path, ending = Path(source), Path(source).suffix.lower()
    if ending == ".nc":
        return read_measured(load_result(path))
    if ending in LOGS or os.path.isdir(path):
        return _of_log(path)
    if ending != ".csv":
        raise FileProblem(path, f"is none of .csv, .nc, {', '.join(LOGS)}")
    with reading(path):
        heads, table = csv_table(path.read_text(encoding="utf-8-sig"), gaps=True)
        return _of_pairs(zip(heads, table.T))


def _of_pairs(pairs: Iterable[tuple]) -> Measured:
    found, units = {}, {}
    for head, values in pairs:
        name, _, unit = head.strip().removesuffix("]").partition("[")
        if isinstance(values[0], str) or not head.strip():
            continue
        # A result's own series of angles and lengths are in SI; plans call torques so.
        (first, *others), name = re.split(r" or |, | \(", unit), name.strip()
        factor, name = si_factor(first or "1"), re.sub(r"^input\.", "torque.", name)
        if name in found or name.endswith(")") or (others and factor != 1):
            raise InvalidInput(
                f"column {head!r}: write each name once, as `name [deg]`"
            )
        values = factor * np.asarray(values, float)
        # What a solver did not reach is infinite in its result.
        found[name] = _unwrapped(name, np.where(np.isinf(values), np.nan, values))
        if not others and unit not in ("", "1"):
            units[name] = unit
    if "time" not in found or dimensions(units.get("time", "s")) != dimensions("s"):
        raise InvalidInput("has no column `time [s]`; name it so")
    return Measured(found.pop("time"), found, units)


def _unwrapped(name: str, values: np.ndarray) -> np.ndarray:
    """A signal (T,) without the jumps by whole turns that a base's angles have."""
    if name.startswith("base_rpy."):
        there = np.isfinite(values)
        values[there] = np.unwrap(values[there])
    return values


# --- logs of ROS ----------------------------------------------------------------

WORLDS = ("world", "map", "odom")
"""Frames that stand still."""

RANKS = {"TransformStamped": 1, "Imu": 2}
"""Messages that say where the base is where none of a lower rank (0) do."""


def _of_log(path: Path) -> Measured:
    """Samples of a log of ROS.

    Joint states give position, velocity and torque (or, on a topic of orders such as
    /joint_commands, target), controllers' states target, odometry and stamped poses
    the base's position and roll, pitch and yaw; where there are none, transforms of one
    frame in the world do, or an IMU roll and pitch. Wrenches in the world are forces of
    the feet that their topics name. The samples are those of the joint states; a target
    holds until the next, what else is measured is a line between its own samples.

    Raises:
        FileProblem: for a log that cannot be read, has no joint states, or has a signal
            on two topics.
    """
    Log, series = extra("rosbags.highlevel").AnyReader, {}
    try:
        with Log([path]) as log:
            kept = [c for c in log.connections if _kind(c.msgtype) in _MESSAGES]
            unused = {c.topic for c in log.connections} - {c.topic for c in kept}
            for connection, logged, raw in log.messages(kept) if kept else ():
                topic = connection.topic
                whole = log.deserialize(raw, connection.msgtype)
                for message in getattr(whole, "transforms", [whole]):
                    kind, source = _kind(message.__msgtype__), topic
                    if kind == "TransformStamped":
                        source += f" ({message.child_frame_id})"
                    foot = topic.partition("/foot_force/")[2]
                    last = foot or re.split("[/_]", topic)[-1]
                    stamp = message.header.stamp
                    time = stamp.sec + 1e-9 * stamp.nanosec or 1e-9 * logged
                    for name, value in _MESSAGES[kind](message, last).items():
                        of = series.setdefault(name, {}).setdefault(source, [])
                        of.append((RANKS.get(kind, 0), time, value))
    except Exception as error:  # of rosbags and its codecs, of many kinds
        raise FileProblem(path, f"is no log of ROS: {error}") from error
    for name, of in series.items():
        least = min(rows[0][0] for rows in of.values())
        of = {source: rows for source, rows in of.items() if rows[0][0] == least}
        if len(of) > 1:
            raise FileProblem(
                path, f"{name} is on {' and '.join(sorted(of))}; keep one of them"
            )
        series[name] = of
    base = series.get("base_rpy.roll", ())
    said = [f"the base is that of {topic}" for topic in base]
    said += [f"topics left out: {', '.join(sorted(unused))}"] if unused else []
    if said:
        warnings.warn(DrakebotsWarning(f"{path}: {'; '.join(said)}"), stacklevel=4)
    signals = {n: np.array(sorted(*of.values())).T[1:] for n, of in series.items()}
    if not any(name.startswith("position.") for name in signals):
        raise FileProblem(path, "has no joint states (sensor_msgs/JointState)")
    return _on_one_clock(signals)


def _kind(name: str) -> str:
    """The type of messages, without its package."""
    return name.rpartition("/")[2]


def _on_one_clock(series: Mapping[str, np.ndarray]) -> Measured:
    """Series (2, T) of times and values at the times of the positions."""
    states = [own for name, (own, _) in series.items() if name.startswith("position.")]
    targets = [name for name in series if name.startswith("target.")]
    begin = max((series[name][0, 0] for name in targets), default=-np.inf)
    time = np.unique(np.concatenate(states))
    time, columns = time[time >= begin], {}
    for name, (own, values) in series.items():
        if name in targets:
            columns[name] = values[np.searchsorted(own, time, side="right") - 1]
        else:
            values = _unwrapped(name, values)
            columns[name] = np.interp(time, own, values, left=np.nan, right=np.nan)
    return Measured(time - time[:1], columns)


def _joints(message: Any, topic: str) -> dict[str, float]:
    """Of sensor_msgs/JointState."""
    kinds = {"position": "position", "velocity": "velocity", "effort": "torque"}
    if topic in ORDERS:
        kinds = {"position": "target", "effort": "torque"}
    return {
        f"{kind}.{name}": float(value)
        for key, kind in kinds.items()
        for name, value in zip(message.name, getattr(message, key))
    }


def _controller(message: Any, topic: str) -> dict[str, float]:
    """Of control_msgs/JointTrajectoryControllerState; its part has had two names."""
    point = getattr(message, "reference", None) or message.desired
    targets = zip(message.joint_names, point.positions)
    return {f"target.{name}": float(value) for name, value in targets}


def _base(message: Any, topic: str) -> dict[str, float]:
    """Of nav_msgs/Odometry and geometry_msgs/PoseStamped."""
    pose = getattr(message.pose, "pose", message.pose)
    return _pose(pose.position, pose.orientation)


def _transform(message: Any, topic: str) -> dict[str, float]:
    """Of geometry_msgs/TransformStamped, of a frame that moves in the world."""
    if message.header.frame_id not in WORLDS or message.child_frame_id in WORLDS:
        return {}
    return _pose(message.transform.translation, message.transform.rotation)


def _imu(message: Any, topic: str) -> dict[str, float]:
    """Of sensor_msgs/Imu: no heading, which drifts; it may have no orientation."""
    q = message.orientation
    if message.orientation_covariance[0] == -1 or not any((q.x, q.y, q.z, q.w)):
        return {}
    angles = _angles(q)
    del angles["base_rpy.yaw"]
    return angles


def _wrench(message: Any, topic: str) -> dict[str, float]:
    """Of geometry_msgs/WrenchStamped."""
    if message.header.frame_id not in WORLDS:
        return {}
    force = message.wrench.force
    return {f"foot_force.{topic}.{x}": float(getattr(force, x)) for x in "xyz"}


def _pose(p: Any, q: Any) -> dict[str, float]:
    return _angles(q) | {f"base_position.{x}": float(getattr(p, x)) for x in "xyz"}


def _angles(q: Any) -> dict[str, float]:
    angles = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_euler("xyz")
    names = "base_rpy.roll", "base_rpy.pitch", "base_rpy.yaw"
    return dict(zip(names, map(float, angles)))


_MESSAGES = {
    "JointState": _joints,
    "JointTrajectoryControllerState": _controller,
    "Odometry": _base,
    "PoseStamped": _base,
    "TransformStamped": _transform,
    "TFMessage": None,
    "Imu": _imu,
    "WrenchStamped": _wrench,
}


# --- what drove the motors --------------------------------------------------------


class Drives:
    """What drove the motors: the effort of each, or the target of its servo.

    Args:
        robot: the robot.
        data: with a column for each motor.
        values: expressions by parameter, where they are found.
        servo: stiffness and damping of servos where they are not.

    Attributes:
        servos: stiffness and damping of the motors with targets, by index.

    Raises:
        InvalidInput: for a motor without a column or a servo, and for missing samples.
    """

    def __init__(
        self,
        robot: Robot,
        data: Measured,
        values: Mapping[str, ca.SX],
        servo: Mapping[str, float],
    ):
        self._time, self._curves, self.servos = data.time, [], {}
        for i, motor in enumerate(actuators_of(robot.plant)):
            name, joint = part_name(motor), part_name(motor.joint())
            likes = ("m", "N") if slides(motor.joint()) else ("rad", "N m")
            target, drive = (
                data.column(robot, like, kind, name, joint)
                for like, kind in zip(likes, ("target", "torque"))
            )
            drive, kind = (drive, "torque") if target is None else (target, "target")
            if drive is None:
                raise InvalidInput(
                    f"the data has neither torque.{name} nor target.{name}; add a "
                    "column with either (0 if it rests)"
                )
            if not np.isfinite(drive).all():
                raise InvalidInput(f"{kind}.{name}: every sample needs a number")
            powers = 1, min(3, len(drive) - 1)
            lines, cubics = (make_interp_spline(data.time, drive, k) for k in powers)
            self._curves.append((lines, cubics))
            if target is None:
                continue
            own = motor.get_controller_gains() if motor.has_controller() else None
            p = values.get("servo.stiffness", servo.get("stiffness", own and own.p))
            d = values.get("servo.damping", servo.get("damping", own.d if own else 0.0))
            if own and joint not in springs(robot):
                p = values.get(f"stiffness:{joint}", p)
            if p is None:
                raise InvalidInput(
                    f"target.{name} needs the servo's stiffness; give --servo "
                    "stiffness=..., or the motor gains in the model"
                )
            self.servos[i] = p, d

    def at(
        self, times: np.ndarray, delay: float, smooth: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Efforts and targets (K, 2 nu) at some times, and their derivatives in the
        targets' delay; between samples they are lines, or cubic splines."""
        nu = len(self._curves)
        w, rate = np.zeros((2, len(times), 2 * nu))
        late = np.maximum(times - delay, self._time[0])
        for i, curves in enumerate(self._curves):
            curve = curves[smooth]
            if i in self.servos:
                w[:, nu + i] = curve(late)
                rate[:, nu + i] = -curve(late, 1) * (late > self._time[0])
            else:
                w[:, i] = curve(times)
        return w, rate
