"""Models written for others and read back: MuJoCo on the MJCF, Drake on URDF and SDF.

    python scripts/bench/exchange.py [--quick]       # every model in the air
    python scripts/bench/exchange.py a.urdf b.xml    # robots of others, by their SDF

Each robot is thrown, with its joints moving and its motors pushing, and flies for 0.1 s
in steps of 0.1 ms (Drake's discrete plant, MuJoCo's `implicitfast`). Joints of robots
with loops start at rest, since loops allow few rates: HAMR's motors move them, and the
voxel robot is thrown with a spin that bends it. Compared are the centres of mass of
all bodies at ten times, relative to the size of the robot.

Of files, or of lists of files (.txt), each robot is compared with what its SDF reads
back as, in a random state: mass matrix, bias and forces of springs relative to their
largest entry; and what else `differs`: degrees of freedom, limits, motors, feet, loops,
couplings, collision shapes. A file that does not load is counted as that.

Of files the JSON has robots_same, robots_loaded and robots.

JSON: mujoco_worst_distance, urdf_worst_distance, sdf_worst_distance.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np
from measurement import Measurement, figure
from pydrake.math import RigidTransform
from pydrake.multibody.tree import BodyIndex, ModelInstanceIndex, MultibodyForces
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots import load
from drakebots.cli.output import one_line_errors, print_rows
from drakebots.core.errors import DrakebotsError, DrakebotsWarning
from drakebots.formats import write_mjcf, write_sdf, write_urdf
from drakebots.model import Model, available_models
from drakebots.multibody import build_robot

STEP, SAMPLES = 1e-4, 10
TARGET = 1e-4
SAME = 1e-9
"""Relative difference of what is the same."""
SPIN = {"voxel": 20.0}
"""Largest rates of the base about its axes [rad/s], where not 1."""
PUSH = {"hamr": 0.05}
"""Largest constant forces of motors without a limit [N]."""

_COORDINATES = {
    "planar": ("_x", "_y", "_qz"),
    "ball_rpy": ("_qx", "_qy", "_qz"),
    "universal": ("_qx", "_qy"),
}


@dataclass
class Throw:
    """Start of a robot, by name.

    Attributes:
        rates: of joints [rad/s, m/s].
        pose: of the base, which a URDF cannot say.
        spin, velocity: of the base in the world (3,) [rad/s, m/s].
        push: of motors [N m, N].
    """

    pose: RigidTransform = field(default_factory=RigidTransform)
    rates: dict[str, float] = field(default_factory=dict)
    spin: np.ndarray = field(default_factory=lambda: np.zeros(3))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    push: dict[str, float] = field(default_factory=dict)


def make_throw(model: Model, seed: int = 1) -> Throw:
    """A random throw that the model's loops allow."""
    rng = np.random.default_rng(seed)
    plant = build_robot(model, time_step=STEP).plant
    throw = Throw(spin=SPIN.get(model.name, 1.0) * rng.uniform(-1, 1, 3))
    throw.velocity = 0.1 * rng.uniform(-1, 1, 3)
    for joint in map(plant.get_joint, plant.GetJointIndices()):
        if joint.type_name() == "quaternion_floating":
            throw.pose = plant.GetDefaultFloatingBaseBodyPose(joint.child_body())
        elif not model.loops:
            ends = _COORDINATES.get(joint.type_name(), ("",))[: joint.num_velocities()]
            throw.rates |= {joint.name() + end: rng.uniform(-1, 1) for end in ends}
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        limit = actuator.effort_limit()
        most = 0.1 * limit if np.isfinite(limit) else PUSH.get(model.name, 0.0)
        throw.push[actuator.name()] = most * rng.uniform(-1, 1)
    return throw


def drake_flight(model: Model, throw: Throw, duration: float) -> dict[str, np.ndarray]:
    """Centres of mass of the bodies by name (SAMPLES + 1, 3) [m], by Drake."""
    builder = DiagramBuilder()
    plant = build_robot(model, builder, time_step=STEP).plant
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    push = np.zeros(plant.num_actuators())
    for index in plant.GetJointActuatorIndices():
        push[int(index)] = throw.push.get(plant.get_joint_actuator(index).name(), 0.0)
    plant.get_actuation_input_port().FixValue(context, push)
    for i in range(plant.num_model_instances()):
        port = plant.get_desired_state_input_port(ModelInstanceIndex(i))
        port.FixValue(context, np.zeros(port.size()))
    v = np.zeros(plant.num_velocities())
    for joint in map(plant.get_joint, plant.GetJointIndices()):
        start = joint.velocity_start()
        if joint.type_name() == "quaternion_floating":
            plant.SetFreeBodyPose(context, joint.child_body(), throw.pose)
            v[start : start + 6] = [*throw.spin, *throw.velocity]
            continue
        ends = _COORDINATES.get(joint.type_name(), ("",))
        for i in range(joint.num_velocities()):
            v[start + i] = throw.rates.get(joint.name() + ends[i], 0.0)
    plant.SetVelocities(context, v)
    bodies = [plant.get_body(BodyIndex(i)) for i in range(1, plant.num_bodies())]
    bodies = [body for body in bodies if body.default_mass()]
    simulator = Simulator(diagram, root)

    def places() -> list[np.ndarray]:
        return [body.EvalPoseInWorld(context) @ body.default_com() for body in bodies]

    found = [places()]
    for sample in range(1, SAMPLES + 1):
        # Half a step before, when all steps but that of the time itself are done.
        simulator.AdvanceTo(sample * duration / SAMPLES - STEP / 2)
        found.append(places())
    names = [body.name() for body in bodies]
    return dict(zip(names, np.array(found).transpose(1, 0, 2)))


def mujoco_flight(path: Path, throw: Throw, duration: float) -> dict[str, np.ndarray]:
    """The same, by MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    for j in range(model.njnt):
        start = model.jnt_dofadr[j]
        if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            R_WB = data.xmat[model.jnt_bodyid[j]].reshape(3, 3)
            turned = R_WB.T @ throw.spin
            data.qvel[start : start + 6] = [*throw.velocity, *turned]
        else:
            data.qvel[start] = throw.rates.get(model.joint(j).name, 0.0)
    for i in range(model.nu):
        data.ctrl[i] = throw.push[model.actuator(i).name]
    found = [data.xipos.copy()]
    for _ in range(SAMPLES):
        for _ in range(round(duration / SAMPLES / STEP)):
            mujoco.mj_step(model, data)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        found.append(data.xipos.copy())
    places = np.array(found).transpose(1, 0, 2)
    return {model.body(i).name: places[i] for i in range(1, model.nbody)}


def distance(ours: dict, theirs: dict) -> float:
    """Largest distance of a body's two centres of mass [m]."""
    both = set(ours) & set(theirs)
    return max(float(np.linalg.norm(ours[n] - theirs[n], axis=1).max()) for n in both)


def compare(name: str, folder: Path, duration: float = 0.1) -> dict[str, object]:
    """A model's row of the table; its files stay in the folder."""
    model = load(name)
    throw = make_throw(model)
    ours = drake_flight(model, throw, duration)
    mjcf = write_mjcf(model, folder / f"{name}.xml", time_step=STEP)
    by_mujoco = mujoco_flight(mjcf, throw, duration)
    urdf = write_urdf(model, folder / f"{name}.urdf")
    by_urdf = drake_flight(load(urdf), throw, duration)
    sdf = write_sdf(model, folder / f"{name}.sdf")
    by_sdf = drake_flight(load(sdf), throw, duration)
    start = np.array([places[0] for places in ours.values()])
    low, high = start.min(axis=0), start.max(axis=0)
    size = float(np.linalg.norm(high - low)) or 0.1  # one body
    moved = [places - places[0] for places in ours.values()]
    bend = np.linalg.norm(moved - np.mean(moved, axis=0), axis=2).max()
    return {
        "model": name,
        "bodies": len(ours),
        "loops": len(model.loops),
        "size_m": size,
        "moved": float(np.linalg.norm(moved, axis=2).max()) / size,
        "turned_or_bent": float(bend) / size,
        "mujoco": distance(ours, by_mujoco) / size,
        "urdf": distance(ours, by_urdf) / size,
        "sdf": distance(ours, by_sdf) / size,
        "missing_in_mujoco": sorted(set(ours) - set(by_mujoco)),
    }


def dynamics(model: Model) -> dict[str, np.ndarray]:
    """What a robot is in a random state, which its loops do not hold, in SI."""
    plant, rng = build_robot(model, time_step=0).plant, np.random.default_rng(0)
    context = plant.CreateDefaultContext()
    q = rng.uniform(-0.5, 0.5, plant.num_positions())
    for body in map(plant.get_body, plant.GetFloatingBaseBodies()):
        start = body.floating_positions_start()
        q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    plant.SetPositions(context, q)
    plant.SetVelocities(context, rng.normal(size=plant.num_velocities()))
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    motors = {}
    for actuator in map(plant.get_joint_actuator, plant.GetJointActuatorIndices()):
        rotor = actuator.default_rotor_inertia() * actuator.default_gear_ratio() ** 2
        motors[int(actuator.joint().velocity_start())] = actuator.effort_limit(), rotor
    return {
        "mass_matrix": plant.CalcMassMatrix(context),
        "bias": plant.CalcBiasTerm(context),
        "springs": forces.generalized_forces(),
        "lower": plant.GetPositionLowerLimits(),
        "upper": plant.GetPositionUpperLimits(),
        "speed": plant.GetVelocityUpperLimits(),
        "motors": np.array([(at, *motors[at]) for at in sorted(motors)]),
        "feet": np.array([foot.p_BF for foot in model.feet]),
        "loops": np.array(len(model.loops)),
        "couplers": np.array(len(model.couplers)),
        "shapes": np.array(plant.num_collision_geometries()),
    }


def read_back(path: Path, folder: Path) -> dict[str, object]:
    """The row of a file: what its SDF says otherwise than the file."""
    found: dict[str, object] = {"robot": path.stem, "loaded": True, "differs": []}
    try:
        model = load(path)
    except DrakebotsError:
        return found | {"loaded": False}
    ours = dynamics(model)
    theirs = dynamics(load(write_sdf(model, folder / "robot.sdf")))
    for name, value in ours.items():
        if value.shape != theirs[name].shape:
            found["differs"].append(name)
        elif name in ("mass_matrix", "bias", "springs"):
            error = np.abs(value - theirs[name]).max(initial=0.0)
            found[name] = float(error / max(np.abs(value).max(initial=0.0), 1e-12))
            found["differs"] += [name] * (not found[name] < SAME)
        elif not np.allclose(value, theirs[name], rtol=SAME, atol=SAME):
            found["differs"].append(name)
    return found


def listed(paths: Sequence[Path]) -> list[Path]:
    """The files, and those that lists among them (.txt) name, a line each."""
    found = []
    for path in paths:
        is_list = path.suffix == ".txt"
        found += map(Path, path.read_text().split("\n")) if is_list else [path]
    return [path for path in found if path.name]


def robots_of_others(parser: Measurement, files: Sequence[Path]) -> dict:
    """Prints and returns the rows of files."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DrakebotsWarning)
        rows = [read_back(path, Path(folder)) for path in files]
    print_rows("robots from their SDF: relative differences", rows)
    loaded = [row for row in rows if row["loaded"]]
    same = sum(not row["differs"] for row in loaded)
    result = {"robots_same": figure(same, target=len(loaded))}
    return parser.report(result | {"robots_loaded": len(loaded), "robots": rows})


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="two models, 10 ms")
    parser.add_argument("files", nargs="*", type=Path, help="robots, or lists of them")
    args = parser.parse_args(argv)
    if args.files:
        return robots_of_others(parser, listed(args.files))
    names = ["hamr", "skinned_leg"] if args.quick else available_models()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            compare(name, Path(folder), 0.01 if args.quick else 0.1) for name in names
        ]
    print_rows("in the air: largest distance over size", rows)
    worst = {key: max(row[key] for row in rows) for key in ("mujoco", "urdf", "sdf")}
    result = {
        f"{key}_worst_distance": figure(value, "size", TARGET)
        for key, value in worst.items()
    }
    return parser.report(result)


if __name__ == "__main__":
    with one_line_errors("exchange.py"):
        main()
