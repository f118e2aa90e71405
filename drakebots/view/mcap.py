"""A result as a log of robot data in MCAP.

:func:`write_mcap` is for Foxglove, Lichtblick and other viewers: messages are JSON.
:func:`write_ros` is a bag of ROS 2. The former's channels:

    /tf          foxglove.FrameTransforms: the pose of every body in `world`
    /robot       foxglove.SceneUpdate, once: what Drake draws of the bodies
    /skin        foxglove.SceneUpdate: the surface of an elastic skin
    /<variable>  each time series of the result, an object with labels as in its CSV:
                 /foot_force holds {"FL": {"x": ...}, ...}; the channel's metadata
                 names its units

MCAP and not Rerun's own format: its writer is three packages of 3 MB under MIT and BSD
licences, Rerun's is one of more than 100 MB.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xarray as xr
from pydrake.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Mesh, Sphere
from pydrake.math import RigidTransform

from drakebots.core.convert import plain
from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.files import check_output, replacing
from drakebots.core.installed import extra
from drakebots.formats import Part, model_of, obj_mesh, plain_robot, read_parts
from drakebots.model import (
    Model,
    actuators_of,
    bodies_of,
    contexts_along,
    part_name,
    single_joints,
)
from drakebots.multibody import Robot, base_body
from drakebots.results import Result, in_order
from drakebots.view.motion import position_names, positions_in_order

LATEST = 2.0**32
"""The first time that a stamp cannot hold [s]."""

_SKIN = {"r": 0.85, "g": 0.55, "b": 0.45, "a": 0.6}


def write_mcap(result: Result, path: str | Path, model: Model | None = None) -> Path:
    """Writes a result as an MCAP log.

    A result whose model is not found, or that holds no joint positions, is written
    without /tf and /robot.

    Args:
        result: result of any kind.
        path: file to write (.mcap).
        model: model that moved; found by the result's name if None.

    Raises:
        InvalidInput: without the package `mcap`, or for times that are no stamps: MCAP
            counts nanoseconds from 0 in 64 bits, seconds in 32.
        FileProblem: for a file that cannot be written.
    """
    Writer = extra("mcap.writer").Writer
    _check(result, path)
    data, motion = result.data, []
    with suppress(DrakebotsError):  # of a model that is gone, or without joints
        motion = list(_motion(data, model or model_of(result)))
    messages = sorted([*_series(data), *motion, *_skin(data)], key=lambda sent: sent[0])
    with replacing(path) as part, open(part, "wb") as file:
        writer, channels = Writer(file), {}
        writer.start(profile="", library="drakebots")
        header = {"kind": result.kind, "model": result.model}
        header |= {"verdict": str(result.verdict), "message": result.message}
        writer.add_metadata("drakebots", header)
        for count, (time, topic, schema, metadata, message) in enumerate(messages):
            if topic not in channels:
                text = json.dumps({"type": "object"}).encode()
                kind = writer.register_schema(schema, "jsonschema", text)
                channels[topic] = writer.register_channel(topic, "json", kind, metadata)
            stamp, data = round(1e9 * time), json.dumps(message).encode()
            writer.add_message(channels[topic], stamp, data, stamp, count)
        writer.finish()
    return Path(path)


def _check(result: Result, path: str | Path) -> None:
    """Refuses a file that cannot be written, and times that are no stamps."""
    check_output(path)
    for name in {"time", "skin_time"} & set(result.data.coords):
        times = np.asarray(result.data[name].values, float)
        if not ((times >= 0) & (times < LATEST)).all():
            raise InvalidInput(
                f"MCAP takes times from 0 to {LATEST:.3g} s, not {name} from "
                f"{times.min():g} to {times.max():g} s; write --csv"
            )


Message = tuple[float, str, str, dict[str, str], dict[str, Any]]
"""Time [s], topic, schema and metadata of its channel, and what it says."""


def _series(data: xr.Dataset) -> Iterator[Message]:
    """Every sample of every time series."""
    for name, variable in data.data_vars.items():
        if "time" not in variable.dims:
            continue
        others = [dim for dim in variable.dims if dim != "time"]
        labels = [_labels(data[dim].values) for dim in others]
        values = variable.transpose("time", *others).values
        channel = f"/{name}", f"drakebots.{name}"
        units = {"units": str(variable.attrs.get("units", ""))}
        for time, sample in zip(data.time.values, values.tolist()):
            message = _labelled(sample, labels) if others else {"value": sample}
            yield float(time), *channel, units, plain(message)


def _labels(items: np.ndarray) -> list[str]:
    """The labels of a dimension, or its indices where two are the same."""
    own = [str(x) for x in items]
    return own if len(set(own)) == len(own) else [str(i) for i in range(len(own))]


def _labelled(values: list, labels: list[list[str]]) -> dict[str, Any]:
    if len(labels) == 1:
        return dict(zip(labels[0], values))
    return {label: _labelled(v, labels[1:]) for label, v in zip(labels[0], values)}


# --- the robot --------------------------------------------------------------


def _motion(data: xr.Dataset, model: Model) -> Iterator[Message]:
    """The bodies, and what is drawn of them."""
    robot = _moved(data, model)
    plant = robot.plant
    positions, times = positions_in_order(robot, data), data.time.values
    bodies = bodies_of(plant)[1:]
    entities = [_entity(part) for part in read_parts(robot) if part.forms]
    scene = {"deletions": [], "entities": entities}
    yield float(times[0]), "/robot", "foxglove.SceneUpdate", {}, scene
    for time, context in zip(times, contexts_along(plant, positions)):
        transforms = [
            {
                "timestamp": _stamp(float(time)),
                "parent_frame_id": "world",
                "child_frame_id": body.name(),
                **_pose(body.EvalPoseInWorld(context), "translation", "rotation"),
            }
            for body in bodies
        ]
        message = {"transforms": transforms}
        yield float(time), "/tf", "foxglove.FrameTransforms", {}, message


def _moved(data: xr.Dataset, model: Model) -> Robot:
    """The robot that a result moves."""
    if not position_names(data):
        raise InvalidInput("the result holds no joint positions; write --mcap")
    return plain_robot(model)


def _entity(part: Part) -> dict[str, Any]:
    """Drawing of a body."""
    shapes: dict[str, list] = {}
    for form in part.forms:
        if form.rgba is not None:
            for kind, primitive in _primitives(form.shape, form.X_BG):
                primitive["color"] = dict(zip("rgba", map(float, form.rgba)))
                shapes.setdefault(kind, []).append(primitive)
    frame = part.name if part.parent is not None else "world"
    return _scene_entity(part.name, frame, 0.0, **shapes)


def _primitives(shape, X_BG: RigidTransform) -> Iterator[tuple[str, dict[str, Any]]]:
    """The kind and the primitive of a shape; a capsule is three."""
    pose = {"pose": _pose(X_BG, "position", "orientation")}
    if isinstance(shape, Box):
        yield "cubes", pose | {"size": _xyz(shape.size())}
    elif isinstance(shape, Sphere):
        yield "spheres", pose | {"size": _xyz(3 * [2 * shape.radius()])}
    elif isinstance(shape, Ellipsoid):
        size = 2 * np.array([shape.a(), shape.b(), shape.c()])
        yield "spheres", pose | {"size": _xyz(size)}
    elif isinstance(shape, Cylinder | Capsule):
        width = 2 * shape.radius()
        size = {"size": _xyz([width, width, shape.length()])}
        yield "cylinders", pose | size | {"bottom_scale": 1.0, "top_scale": 1.0}
        for end in (-1, 1) if isinstance(shape, Capsule) else ():
            X_GE = RigidTransform([0, 0, end * shape.length() / 2])
            at = _pose(X_BG @ X_GE, "position", "orientation")
            yield "spheres", {"pose": at, "size": _xyz(3 * [width])}
    elif isinstance(shape, Mesh | Convex) and shape.source().is_path():
        content = obj_mesh(Path(shape.source().path())).read_bytes()
        mesh = {"scale": _xyz(shape.scale3()), "override_color": True, "url": ""}
        mesh |= {"media_type": "model/obj", "data": base64.b64encode(content).decode()}
        yield "models", pose | mesh


def _skin(data: xr.Dataset) -> Iterator[Message]:
    """The surface of a skin at its times; nothing for a result without one."""
    if "skin_position" not in data or "skin_triangle" not in data:
        return
    used, indices = np.unique(data.skin_triangle.values, return_inverse=True)
    indices = indices.ravel().tolist()
    for time, places in zip(data.skin_time.values, data.skin_position.values):
        points = [_xyz(np.round(p.astype(float), 6)) for p in places[used]]
        surface = {"pose": _pose(RigidTransform(), "position", "orientation")}
        surface |= {"points": points, "color": _SKIN, "colors": [], "indices": indices}
        entity = _scene_entity("skin", "world", float(time), triangles=[surface])
        message = {"deletions": [], "entities": [entity]}
        yield float(time), "/skin", "foxglove.SceneUpdate", {}, message


def _scene_entity(name: str, frame: str, time: float, **shapes: list) -> dict[str, Any]:
    kinds = ("arrows", "cubes", "spheres", "cylinders", "lines", "triangles")
    return {
        "timestamp": _stamp(time),
        "frame_id": frame,
        "id": name,
        "lifetime": {"sec": 0, "nsec": 0},
        "frame_locked": True,
        "metadata": [],
        **{kind: [] for kind in (*kinds, "texts", "models")},
        **shapes,
    }


def _stamp(time: float) -> dict[str, int]:
    seconds, rest = divmod(round(1e9 * time), 10**9)
    return {"sec": seconds, "nsec": rest}


def _xyz(values) -> dict[str, float]:
    return dict(zip("xyz", map(float, values)))


def _pose(X: RigidTransform, where: str, turn: str) -> Mapping[str, Any]:
    w, x, y, z = X.rotation().ToQuaternion().wxyz()
    return {where: _xyz(X.translation()), turn: _xyz([x, y, z]) | {"w": float(w)}}


# --- a bag of ROS 2 ---------------------------------------------------------


def write_ros(result: Result, path: str | Path, model: Model | None = None) -> Path:
    """Writes the motion of a robot as a bag of ROS 2, one file that `ros2 bag` plays.

    Its topics are::

        /joint_states      sensor_msgs/JointState: joints of one degree of freedom, and
                           the efforts of their motors
        /tf                tf2_msgs/TFMessage: the base in `world`, other links in it
        /foot_force/FOOT   geometry_msgs/WrenchStamped in `world`

    Args:
        result, path, model: as for :func:`write_mcap`.

    Raises:
        InvalidInput: without the package `rosbags`, for times that are no stamps, and
            for a result without joint positions.
        DrakebotsError: for a result whose model is gone.
        FileProblem: for a file that cannot be written.
    """
    bags, types = extra("rosbags.rosbag2"), extra("rosbags.typesys")
    _check(result, path)
    store = types.get_typestore(types.Stores.ROS2_HUMBLE)
    motion = _ros_motion(result.data, model or model_of(result), store.types)
    with replacing(path) as part, TemporaryDirectory() as spare:
        folder, channels = Path(spare) / "bag", {}
        storage = bags.StoragePlugin.MCAP
        with bags.Writer(folder, version=9, storage_plugin=storage) as writer:
            for time, topic, message in motion:
                kind = message.__msgtype__
                if topic not in channels:
                    own = writer.add_connection(topic, kind, typestore=store)
                    channels[topic] = own
                raw = store.serialize_cdr(message, kind)
                writer.write(channels[topic], round(1e9 * time), raw)
        (written,) = folder.glob("*.mcap")
        shutil.copyfile(written, part)
    return Path(path)


def _ros_motion(
    data: xr.Dataset, model: Model, types: Mapping[str, type]
) -> Iterator[tuple[float, str, Any]]:
    """Time [s], topic and message."""

    def header(time: float, frame: str) -> Any:
        stamp = types["builtin_interfaces/msg/Time"](*_stamp(time).values())
        return types["std_msgs/msg/Header"](stamp, frame)

    def vector(values) -> Any:
        return types["geometry_msgs/msg/Vector3"](*map(float, values))

    def transform(time: float, frame: str, body: str, X: RigidTransform) -> Any:
        w, *xyz = X.rotation().ToQuaternion().wxyz()
        turn = types["geometry_msgs/msg/Quaternion"](*xyz, w)
        pose = types["geometry_msgs/msg/Transform"](vector(X.translation()), turn)
        kind = types["geometry_msgs/msg/TransformStamped"]
        return kind(header(time, frame), body, pose)

    names, states = _joint_states(data, robot := _moved(data, model))
    plant, positions = robot.plant, positions_in_order(robot, data)
    base, along = base_body(plant), contexts_along(plant, positions)
    others = [body for body in bodies_of(plant)[1:] if body.index() != base.index()]
    world = plant.world_frame().name()
    for k, (time, context) in enumerate(zip(map(float, data.time.values), along)):
        state = [np.array(x[k] if len(x) else (), float) for x in states]
        kind = types["sensor_msgs/msg/JointState"]
        yield time, "/joint_states", kind(header(time, ""), names, *state)
        X_WB = base.EvalPoseInWorld(context)
        tree = [transform(time, world, base.name(), X_WB)]
        for body in others:
            X_BL = X_WB.InvertAndCompose(body.EvalPoseInWorld(context))
            tree.append(transform(time, base.name(), body.name(), X_BL))
        yield time, "/tf", types["tf2_msgs/msg/TFMessage"](tree)
        if "foot_force" in data:
            for foot, force in zip(data.foot.values, data.foot_force.values[k]):
                both = vector(force), vector([0] * 3)
                wrench = types["geometry_msgs/msg/Wrench"](*both)
                kind = types["geometry_msgs/msg/WrenchStamped"]
                yield time, f"/foot_force/{foot}", kind(header(time, world), wrench)


def _joint_states(data: xr.Dataset, robot: Robot) -> tuple[list[str], list]:
    """Names of the joints of one degree of freedom, and their positions, velocities and
    efforts (T, n), each () where the result has none."""
    plant = robot.plant
    joints = single_joints(plant)
    starts = [joint.position_start() for joint in joints]
    found = [positions_in_order(robot, data)[:, starts], (), ()]
    rates = plant.GetVelocityNames(always_add_suffix=False)
    if "rate" in data.coords:
        own = [rates[joint.velocity_start()] for joint in joints]
        found[1] = in_order(data.velocity.values, list(data.rate.values), own)
    efforts = data.get("torque", data.get("input"))
    motors = [] if efforts is None else list(data[efforts.dims[1]].values)
    if motors and {part_name(motor) for motor in actuators_of(plant)} <= set(motors):
        found[2] = np.zeros((len(efforts), len(joints)))
        for motor in actuators_of(plant):
            column = efforts.values[:, motors.index(part_name(motor))]
            found[2][:, joints.index(motor.joint())] = column
    return [part_name(joint) for joint in joints], found
