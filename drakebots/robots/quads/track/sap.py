"""The skeleton of a plan alone in Drake's SAP simulation, under the skin's forces.

    result = track_sap(SapTracking(load_result("plan.nc")))

Servos follow the plan open loop (SAP's own implicit ones, within the effort
limits). The skin is no more than the coupling forces that the frames recorded: a
wrench on each link over time, in the world. Contact is Drake's, of small spheres
where the patches are. What the skin would do in another pose than the planned one
is not known here, so this checks the recorded forces with another engine; it is no
simulation of the skinned robot.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from pydrake.common.value import AbstractValue
from pydrake.geometry import (
    AddContactMaterial,
    CollisionFilterDeclaration,
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
from drakebots.core.run import CtrlC, Verdict
from drakebots.model import find_body
from drakebots.multibody import Ground, Progress, attach_base
from drakebots.results import Result, provenance
from drakebots.robots.quads.robot import PlannedRobot, load_planned
from drakebots.robots.quads.track.reference import (
    Judge,
    Reference,
    plan_model,
    plan_reference,
    with_cop,
)

# A skeleton in Drake's SAP simulation: servos, patches as small spheres, and
# wrenches on links.

RADIUS = 1e-3
"""Of the sphere at a contact point [m]."""


class SapSkeleton:
    """One robot's skeleton, ready to run.

    Args:
        robot: whose skeleton it is.
        time_step: [s].
        friction: of the ground and the patches.
        stiffness: of a patch on the ground [N/m].

    Attributes:
        plant: finalized, SI.
    """

    def __init__(
        self,
        robot: PlannedRobot,
        *,
        time_step: float,
        friction: float,
        stiffness: float,
    ):
        skinned, builder = robot.skinned, DiagramBuilder()
        config = MultibodyPlantConfig(
            time_step=time_step,
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
        # Two bodies of stiffness 2 k in series make k.
        Ground(friction, stiffness=2 * stiffness, dissipation=1.0).add_to(plant)
        self._number = self._add_patches(plant, robot, friction, 2 * stiffness)
        plant.Finalize()
        # Links may overlap within the skin; only the ground is hit.
        bodies = [plant.get_body(i) for i in plant.GetBodyIndices(_instance(plant))]
        own = GeometrySet()
        for body in bodies:
            own.Add(plant.GetCollisionGeometriesForBody(body))
        scene.collision_filter_manager().Apply(
            CollisionFilterDeclaration().ExcludeWithin(own)
        )
        self.plant, self.diagram = plant, builder.Build()
        self.simulator = Simulator(self.diagram)
        self.root = self.simulator.get_mutable_context()
        self.context = plant.GetMyMutableContextFromRoot(self.root)
        self._patches = sum(len(p.p_BC) for p in skinned.skin.patches)
        self._aim = plant.get_desired_state_input_port(_instance(plant))
        self._push = plant.get_applied_spatial_force_input_port()
        self.push([], np.zeros((0, 6)))

    def _add_patches(self, plant, robot, friction, stiffness) -> dict:
        """Spheres whose lowest point is the patch's; numbers by geometry."""
        number = {}
        for patches, sole in zip(robot.skinned.skin.patches, robot.quad.soles):
            body = find_body(plant, patches.body)
            up = RADIUS * sole.R_BS[:, 2]
            for p in patches.p_BC:
                properties = ProximityProperties()
                AddContactMaterial(
                    friction=CoulombFriction(friction, friction),
                    dissipation=1.0,
                    point_stiffness=stiffness,
                    properties=properties,
                )
                key = plant.RegisterCollisionGeometry(
                    body,
                    RigidTransform(p + up),
                    Sphere(RADIUS),
                    f"patch_{len(number)}",
                    properties,
                )
                number[key] = len(number)
        return number

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Puts it there at time 0, servos at those angles."""
        self.plant.SetPositions(self.context, q)
        self.plant.SetVelocities(self.context, v)
        at = self.plant.GetPositionsFromArray(_instance(self.plant), q)
        goal = self._actuated(at)
        self.aim(goal, np.zeros(len(goal)))
        self.simulator.Initialize()

    def _actuated(self, q: np.ndarray) -> np.ndarray:
        joints = [
            self.plant.get_joint_actuator(JointActuatorIndex(k)).joint()
            for k in range(self.plant.num_actuators())
        ]
        return q[[joint.position_start() for joint in joints]]

    def aim(self, angles: np.ndarray, speeds: np.ndarray) -> None:
        """Targets of the servos (m,) [rad], [rad/s]."""
        self._aim.FixValue(self.context, np.concatenate([angles, speeds]))

    def push(self, links: Sequence[str], wrenches: np.ndarray) -> None:
        """Wrenches [moment, force] on links about their origins, world (L, 6)."""
        applied = []
        for name, row in zip(links, wrenches):
            one = ExternallyAppliedSpatialForce()
            one.body_index = find_body(self.plant, name).index()
            one.p_BoBq_B = np.zeros(3)
            one.F_Bq_W = SpatialForce(tau=row[:3], f=row[3:])
            applied.append(one)
        self._push.FixValue(
            self.context, AbstractValue.Make(applied) if applied else applied
        )

    def advance(self, time: float) -> None:
        """To a time [s]."""
        self.simulator.AdvanceTo(time)

    def row(self, target: np.ndarray) -> dict[str, np.ndarray]:
        """State, torques and contact forces now."""
        plant, context = self.plant, self.context
        force = np.zeros((self._patches, 3))
        contacts = plant.get_contact_results_output_port().Eval(context)
        for k in range(contacts.num_point_pair_contacts()):
            info = contacts.point_pair_contact_info(k)
            pair = info.point_pair()
            # The force is on body B.
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


def _instance(plant):
    """Of the first actuated joint."""
    return plant.get_joint_actuator(JointActuatorIndex(0)).model_instance()


@dataclass(frozen=True)
class SapTracking:
    """What to replay.

    Attributes:
        plan: a result of `drakebots plan`, with the skin's forces on the links.
        model: of the robot, when the plan's file has moved; its own by default.
        time_step: of SAP [s].
        friction: of the ground.
        stiffness: of the ground at a patch [N/m].
        feedforward: whether servos are told the planned speed.
        skin: whether its forces act; without them the skeleton walks alone.
        time_limit: of wall time [s].

    Raises:
        InvalidInput: for a value out of range, or a plan without forces.
    """

    plan: Result = field(repr=False)
    model: str | None = None
    time_step: float = 1e-3
    friction: float = 0.8
    stiffness: float = 2e4
    feedforward: bool = False
    skin: bool = True
    time_limit: float | None = None

    def __post_init__(self):
        for name in ("time_step", "friction", "stiffness", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} must be > 0, got {value}")
        for name in ("skin_force", "skin_moment", "skin_com", "skin_mass"):
            if name not in self.plan.data:
                raise InvalidInput(
                    f"the plan has no {name}; make it with drakebots plan, which "
                    "records the skin's forces"
                )

    @cached_property
    def robot(self) -> PlannedRobot:
        """The robot of the plan."""
        return load_planned(self.model or plan_model(self.plan))


def track_sap(problem: SapTracking, *, progress: Progress | None = None) -> Result:
    """Runs a plan; what was reached is returned even when it is cut short.

    Args:
        problem: what to run.
        progress: called with the time reached and the end [s].

    Returns:
        A result with the same names and metrics as that of
        :func:`~drakebots.robots.quads.track.tracking.replay`; the skin's shapes are the
        plan's, carried along by the links.

    Raises:
        InvalidInput: for a plan that cannot be, before the run.
    """
    began = clock.perf_counter()
    robot = problem.robot
    reference = plan_reference(problem.plan, robot)
    skeleton = SapSkeleton(
        robot,
        time_step=problem.time_step,
        friction=problem.friction,
        stiffness=problem.stiffness,
    )
    skeleton.start(reference.q[0], reference.v[0])
    judge = Judge(robot, reference)
    loaded = clock.perf_counter() - began
    rows, verdict, message = _run(problem, skeleton, reference, judge, progress)
    data = _dataset(problem, robot, skeleton, rows)
    data, metrics = with_cop(data, robot, reference, judge)
    options = {
        name: getattr(problem, name)
        for name in problem.__dataclass_fields__
        if name != "plan"
    }
    return Result(
        kind="quads.sap_track",
        model=robot.name,
        verdict=verdict,
        message=message,
        data=data,
        residuals={},
        timings={"load": loaded, "simulate": clock.perf_counter() - began - loaded},
        metrics={"system": "skinned", "motion": reference.name} | metrics,
        provenance=provenance(robot.files, options | {"motion": reference.name}),
    )


def _run(problem, skeleton: SapSkeleton, reference: Reference, judge, progress):
    data = problem.plan.data
    links = [str(name) for name in data.link.values]
    wrench = np.concatenate([data.skin_moment.values, data.skin_force.values], axis=2)
    rows = [skeleton.row(reference.at(0.0)[0])]
    times, start = reference.times, clock.perf_counter()
    verdict, message = Verdict.SUCCESS, f"reached {times[-1]:g} s on its feet"
    try:
        with CtrlC() as stop:
            for k in range(1, len(times)):
                goal, speed = reference.at(times[k])
                skeleton.aim(goal, speed if problem.feedforward else 0 * speed)
                # Forces of row k act in the frame that ends there.
                if problem.skin:
                    skeleton.push(links, wrench[k])
                skeleton.advance(times[k])
                rows.append(skeleton.row(goal))
                fell = judge.fell(rows[-1]["position"], times[k])
                if fell:
                    verdict, message = Verdict.FAILED, f"{fell} at {times[k]:g} s"
                    break
                stop.check()
                if progress is not None:
                    progress(times[k], times[-1])
                limit = problem.time_limit
                if limit is not None and clock.perf_counter() - start > limit:
                    verdict = Verdict.TIME_LIMIT
                    message = f"stopped at the time limit of {limit:g} s; raise it"
                    break
    except KeyboardInterrupt:
        verdict, message = Verdict.INTERRUPTED, "interrupted; what was reached is kept"
    return rows, verdict, message


def _dataset(problem, robot, skeleton, rows) -> xr.Dataset:
    plan, plant = problem.plan.data, skeleton.plant
    values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    q = values["position"]
    n = len(rows)
    poses = link_poses(plant, q, [str(name) for name in plan.link.values])
    dims = {
        "position": (("time", "position_name"), "m or rad"),
        "velocity": (("time", "velocity_name"), "m/s or rad/s"),
        "target": (("time", "joint"), "rad"),
        "torque": (("time", "joint"), "N m"),
        "patch_force": (("time", "patch", "axis"), "N"),
    }
    data = {name: (d, values[name], {"units": u}) for name, (d, u) in dims.items()}
    com = whole_com(robot, plant, q, poses, plan, n)
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
    if "skin_position" in plan and problem.skin:
        out = _carried_skin(out, robot, plan, plant, q)
    return out


def link_poses(plant, q: np.ndarray, links: list[str]) -> list[list[RigidTransform]]:
    """X_WB of links at every row."""
    context = plant.CreateDefaultContext()
    bodies = [find_body(plant, name) for name in links]
    out = []
    for row in q:
        plant.SetPositions(context, row)
        out.append([plant.EvalBodyPoseInWorld(context, body) for body in bodies])
    return out


def whole_com(robot, plant, q, poses, plan: xr.Dataset, n: int) -> np.ndarray:
    """COM of the skeleton and of the plan's skin on its links (n, 3) [m]."""
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
    """The plan's shapes of the skin, moved with the links."""
    kept = plan.skin_time.values <= out.time.values[-1] + 1e-9
    times = plan.skin_time.values[kept]
    rows = np.searchsorted(plan.time.values, times - 1e-9)
    links = list(robot.share.links)
    before = link_poses(plant, plan.position.values[rows], links)
    after = link_poses(plant, q[rows], links)
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
