"""Tracks a plan with the skeleton alone in Drake's SAP simulation.

    result = track_sap(quads.Tracking(load_result("plan.nc")))

SAP's implicit servos follow the plan open loop, within the effort limits. The skin is
represented by the coupling forces that the step-by-step plan recorded: a wrench on each
link over time, in the world. Contact is Drake's, between the ground and small spheres
at the patches. The forces of the skin in other poses than the planned ones are unknown
here, so this checks the recorded forces with another engine; it does not simulate the
skinned robot.

A library of quad_setting.py, without a command.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from pydrake.common.value import AbstractValue
from pydrake.geometry import (
    AddContactMaterial,
    CollisionFilterDeclaration,
    GeometryId,
    GeometrySet,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    ExternallyAppliedSpatialForce,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import JointActuatorIndex, PdControllerGains
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress, RunEnd, Stop, failed, run_steps
from drakebots.core.stages import spent
from drakebots.model import find_body
from drakebots.multibody import Ground, attach_base, looked_at
from drakebots.results import Result
from drakebots.robots.quads import Tracking
from drakebots.robots.quads.robot import PlannedRobot
from drakebots.robots.quads.track.reference import (
    evaluate,
    fall_off_plan,
    findings,
    summary,
    verdict,
)

TIME_STEP = 1e-3
"""Time step of SAP [s]."""


def track_sap(
    problem: Tracking, *, skin: bool = True, progress: Progress | None = None
) -> Result:
    """Runs the skeleton as :func:`drakebots.robots.quads.track` does the whole robot.

    Args:
        problem: the plan, its ground and its servos. The rest of it says nothing here.
        skin: whether the recorded forces of the skin act.
        progress: called with the simulated time reached and its end [s].

    Raises:
        InvalidInput: for a plan without forces of the skin.
    """
    robot, plan = problem.robot, problem.plan.data
    for name in ("skin_force", "skin_moment", "skin_com", "skin_mass"):
        if name not in plan:
            raise InvalidInput(
                f"the plan has no {name}; make it with `drakebots plan`, which "
                "records the skin's forces"
            )
    reference = problem.reference
    skeleton = _Skeleton(problem)
    skeleton.start(reference.q[0], reference.v[0], reference.at(0.0))
    links = [str(name) for name in plan.link.values]
    wrench = np.concatenate([plan.skin_moment.values, plan.skin_force.values], axis=2)
    rows, times = [skeleton.row(reference.at(0.0))], reference.times

    def advance(k: int) -> Stop | None:
        target = reference.at(times[k])
        skeleton.set_targets(target)
        # Forces in row k act during the step that ends there.
        if skin:
            skeleton.set_wrenches(links, wrench[k])
        skeleton.advance(times[k])
        rows.append(skeleton.row(target))
        fall = fall_off_plan(robot, reference, rows[-1]["position"], times[k])
        return failed(f"{fall} at {times[k]:g} s") if fall else None

    def reached(end: RunEnd) -> Result:
        data = _dataset(plan, robot, skeleton, rows, skin=skin)
        data = evaluate(data, robot, reference)
        metrics = summary(data, robot, reference)
        found = findings(robot, data, metrics)
        made, message = verdict(end, problem.plan, metrics, found)
        options = problem.options | {"motion": reference.name, "engine": "sap"}
        return Result(
            kind="quads.track",
            model=robot.name,
            verdict=made,
            message=message,
            data=data,
            residuals={},
            timings=spent(),
            metrics={"system": "skinned", "motion": reference.name}
            | metrics
            | {"judged": looked_at(found)},
            provenance=robot.skinned.provenance(options),
        )

    end = run_steps(
        advance,
        len(times) - 1,
        stage="track",
        until=float(times[-1]),
        progress=progress,
        time_limit=problem.time_limit,
        success=f"reached {times[-1]:g} s on its feet",
        reached=reached,
    )
    return reached(end)


RADIUS = 1e-3
"""Radius of the sphere at a patch [m]."""


class _Skeleton:
    """The skeleton of a problem in SAP, with servos, patches and wrenches on links.

    Attributes:
        plant: the finalized plant, in SI units.
    """

    def __init__(self, problem: Tracking):
        skinned, builder = problem.robot.skinned, DiagramBuilder()
        # Two bodies of stiffness 2 k in series have the stiffness k.
        friction, stiffness = problem.ground.friction, 2 * problem.ground.stiffness
        config = MultibodyPlantConfig(
            time_step=TIME_STEP,
            discrete_contact_approximation="sap",
            contact_model="point",
        )
        plant, scene = AddMultibodyPlant(config, builder)
        skinned.model.add_to(plant)
        attach_base(plant, "quaternion")
        gains = skinned.skin.servos
        for k in range(plant.num_actuators()):
            plant.get_joint_actuator(JointActuatorIndex(k)).set_controller_gains(
                PdControllerGains(p=gains.stiffness, d=gains.damping)
            )
        Ground(friction, stiffness=stiffness, dissipation=1.0).add_to(plant)
        self._number = _add_patches(plant, problem.robot, friction, stiffness)
        plant.Finalize()
        # Links may overlap within the skin; they collide with the ground only.
        bodies = [plant.get_body(i) for i in plant.GetBodyIndices(_instance(plant))]
        own = GeometrySet()
        for body in bodies:
            own.Add(plant.GetCollisionGeometriesForBody(body))
        scene.collision_filter_manager().Apply(
            CollisionFilterDeclaration().ExcludeWithin(own)
        )
        self.plant, self.simulator = plant, Simulator(builder.Build())
        root = self.simulator.get_mutable_context()
        self.context = plant.GetMyMutableContextFromRoot(root)
        self._targets = plant.get_desired_state_input_port(_instance(plant))
        self._wrenches = plant.get_applied_spatial_force_input_port()
        self.set_wrenches([], np.zeros((0, 6)))

    def start(self, q: np.ndarray, v: np.ndarray, angles: np.ndarray) -> None:
        """Sets positions and velocities at time 0, and the targets of the servos."""
        self.plant.SetPositions(self.context, q)
        self.plant.SetVelocities(self.context, v)
        self.set_targets(angles)
        self.simulator.Initialize()

    def set_targets(self, angles: np.ndarray) -> None:
        """Sets the targets of the servos, at rest (m,) [rad]."""
        still = np.concatenate([angles, np.zeros(len(angles))])
        self._targets.FixValue(self.context, still)

    def set_wrenches(self, links: Sequence[str], wrenches: np.ndarray) -> None:
        """Sets wrenches [moment, force] on links about their origins, world (L, 6)."""
        applied = []
        for name, row in zip(links, wrenches):
            one = ExternallyAppliedSpatialForce()
            one.body_index = find_body(self.plant, name).index()
            one.p_BoBq_B = np.zeros(3)
            one.F_Bq_W = SpatialForce(tau=row[:3], f=row[3:])
            applied.append(one)
        self._wrenches.FixValue(
            self.context, AbstractValue.Make(applied) if applied else applied
        )

    def advance(self, time: float) -> None:
        """Simulates up to a time [s]."""
        self.simulator.AdvanceTo(time)

    def row(self, target: np.ndarray) -> dict[str, np.ndarray]:
        """Present state, torques and contact forces."""
        plant, context = self.plant, self.context
        force = np.zeros((len(self._number), 3))
        contacts = plant.get_contact_results_output_port().Eval(context)
        for k in range(contacts.num_point_pair_contacts()):
            info = contacts.point_pair_contact_info(k)
            pair = info.point_pair()
            # The contact force is that on body B.
            for key, sign in ((pair.id_B, 1.0), (pair.id_A, -1.0)):
                if key in self._number:
                    force[self._number[key]] += sign * info.contact_force()
        return {
            "position": plant.GetPositions(context).copy(),
            "velocity": plant.GetVelocities(context).copy(),
            "target": np.array(target, float),
            "torque": plant.get_net_actuation_output_port().Eval(context).copy(),
            "patch_force": force,
        }


def _add_patches(
    plant, robot: PlannedRobot, friction: float, stiffness: float
) -> dict[GeometryId, int]:
    """Adds spheres whose lowest points are the patches; their numbers."""
    properties, number = ProximityProperties(), {}
    AddContactMaterial(
        friction=CoulombFriction(friction, friction),
        dissipation=1.0,
        point_stiffness=stiffness,
        properties=properties,
    )
    for patches, sole in zip(robot.skinned.skin.patches, robot.quad.soles):
        body, up = find_body(plant, patches.body), RADIUS * sole.R_BS[:, 2]
        for p in patches.p_BC:
            name, pose = f"patch_{len(number)}", RigidTransform(p + up)
            sphere = Sphere(RADIUS)
            key = plant.RegisterCollisionGeometry(body, pose, sphere, name, properties)
            number[key] = len(number)
    return number


def _instance(plant):
    """Model instance of the first actuated joint."""
    return plant.get_joint_actuator(JointActuatorIndex(0)).model_instance()


def _dataset(plan, robot, skeleton, rows, *, skin: bool) -> xr.Dataset:
    """The rows of a run as a labelled dataset, with its COM."""
    plant = skeleton.plant
    values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    q = values["position"]
    n = len(rows)
    poses = _link_poses(plant, q, [str(name) for name in plan.link.values])
    dims = {
        "position": (("time", "position_name"), "m or rad"),
        "velocity": (("time", "velocity_name"), "m/s or rad/s"),
        "target": (("time", "joint"), "rad"),
        "torque": (("time", "joint"), "N m"),
        "patch_force": (("time", "patch", "axis"), "N"),
    }
    data = {name: (d, values[name], {"units": u}) for name, (d, u) in dims.items()}
    com = _whole_com(plant, q, poses, plan, n)
    data["com"] = (("time", "axis"), com, {"units": "m"})
    coords = {
        "time": ("time", plan.time.values[:n], {"units": "s"}),
        "axis": list("xyz"),
        "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
        "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
        "joint": list(robot.quad.joints),
        "patch": [str(p) for p in plan.patch.values[: values["patch_force"].shape[1]]],
    }
    out = xr.Dataset(data, coords, {"system": "skinned"})
    if "skin_position" in plan and skin:
        out = _carried_skin(out, robot, plan, plant, q)
    return out


def _link_poses(plant, q: np.ndarray, links: list[str]) -> list[list[RigidTransform]]:
    """Poses X_WB of links at every row of q."""
    context = plant.CreateDefaultContext()
    bodies = [find_body(plant, name) for name in links]
    out = []
    for row in q:
        plant.SetPositions(context, row)
        out.append([plant.EvalBodyPoseInWorld(context, body) for body in bodies])
    return out


def _whole_com(plant, q, poses, plan: xr.Dataset, n: int) -> np.ndarray:
    """COM of the skeleton with the plan's skin on its links (n, 3) [m]."""
    context = plant.CreateDefaultContext()
    own = plant.CalcTotalMass(context)
    mass, centre = plan.skin_mass.values, plan.skin_com.values
    out = np.empty((n, 3))
    for k, row in enumerate(q):
        plant.SetPositions(context, row)
        moment = own * plant.CalcCenterOfMassPositionInWorld(context)
        for X_WB, m, p in zip(poses[k], mass, centre[k]):
            moment = moment + m * X_WB.multiply(p)
        out[k] = moment / (own + mass.sum())
    return out


def _carried_skin(out, robot, plan, plant, q) -> xr.Dataset:
    """Adds the plan's shapes of the skin, moved with the links."""
    kept = plan.skin_time.values <= out.time.values[-1] + 1e-9
    times = plan.skin_time.values[kept]
    rows = np.searchsorted(plan.time.values, times - 1e-9)
    links = list(robot.share.links)
    before = _link_poses(plant, plan.position.values[rows], links)
    after = _link_poses(plant, q[rows], links)
    shapes = plan.skin_position.values[: len(times)].astype(float)
    owner = robot.share.link_of[: shapes.shape[1]]
    for k in range(len(times)):
        for i in range(len(links)):
            X = after[k][i].multiply(before[k][i].inverse())
            own = owner == i
            shapes[k, own] = X.multiply(shapes[k, own].T).T
    out = out.assign_coords(skin_time=("skin_time", times, {"units": "s"}))
    out["skin_position"] = (
        ("skin_time", "vertex", "axis"),
        shapes.astype(np.float32),
        {"units": "m"},
    )
    stress = plan.skin_stress.values[: len(times)]
    out["skin_stress"] = (("skin_time", "vertex"), stress, {"units": "Pa"})
    for name in ("skin_triangle", "skin_rest"):
        out[name] = plan[name].variable
    return out
