"""Logs of ROS 2 with the messages that a robot records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

START = 1_700_000_000.0
"""When logs begin [s]."""

STORE = get_typestore(Stores.ROS2_HUMBLE)


def made(kind: str, **values: Any) -> Any:
    """A message of a kind, "sensor_msgs/msg/JointState"."""
    return STORE.types[kind](**values)


def header(time: float) -> Any:
    """The header of a message at a time [s]."""
    seconds, rest = divmod(round(1e9 * (START + time)), 10**9)
    stamp = made("builtin_interfaces/msg/Time", sec=seconds, nanosec=rest)
    return made("std_msgs/msg/Header", stamp=stamp, frame_id="")


def joints(time: float, names: Sequence[str], **values: Sequence[float]) -> Any:
    """sensor_msgs/JointState; values are position, velocity and effort."""
    own = {
        key: np.array(values.get(key, ()), float)
        for key in ("position", "velocity", "effort")
    }
    at = header(time)
    return made("sensor_msgs/msg/JointState", header=at, name=list(names), **own)


def odometry(time: float, place: Sequence[float], yaw: float) -> Any:
    """geometry_msgs/PoseStamped of a base."""
    kinds = "geometry_msgs/msg/Point", "geometry_msgs/msg/Quaternion"
    point = made(kinds[0], **dict(zip("xyz", map(float, place))))
    turn = made(kinds[1], x=0.0, y=0.0, z=np.sin(yaw / 2), w=np.cos(yaw / 2))
    pose = made("geometry_msgs/msg/Pose", position=point, orientation=turn)
    return made("geometry_msgs/msg/PoseStamped", header=header(time), pose=pose)


def moved(time: float, frame: str, child: str, x: float) -> Any:
    """geometry_msgs/TransformStamped along x."""
    place = made("geometry_msgs/msg/Vector3", x=x, y=0.0, z=0.0)
    turn = made("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    pose = made("geometry_msgs/msg/Transform", translation=place, rotation=turn)
    at, kind = header(time), "geometry_msgs/msg/TransformStamped"
    at.frame_id = frame
    return made(kind, header=at, child_frame_id=child, transform=pose)


def imu(time: float, roll: float | None = None) -> Any:
    """sensor_msgs/Imu, without an orientation if None."""
    none, zero = np.zeros(9), made("geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=0.0)
    x, w = (0.0, 0.0) if roll is None else (np.sin(roll / 2), np.cos(roll / 2))
    return made(
        "sensor_msgs/msg/Imu",
        header=header(time),
        orientation=made("geometry_msgs/msg/Quaternion", x=x, y=0.0, z=0.0, w=w),
        orientation_covariance=none,
        angular_velocity=zero,
        angular_velocity_covariance=none,
        linear_acceleration=zero,
        linear_acceleration_covariance=none,
    )


def write_log(
    folder: Path, messages: Sequence[tuple[str, float, Any]], *, mcap: bool = True
) -> Path:
    """Writes (topic, time [s], message) as a bag; returns its one file."""
    plugin = StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3
    with Writer(folder, version=9, storage_plugin=plugin) as writer:
        connections = {}
        for topic, time, message in messages:
            kind = message.__msgtype__
            if topic not in connections:
                more = {"typestore": STORE}
                connections[topic] = writer.add_connection(topic, kind, **more)
            data = STORE.serialize_cdr(message, kind)
            writer.write(connections[topic], round(1e9 * (START + time)), data)
    return next(path for path in folder.iterdir() if path.suffix in (".mcap", ".db3"))
