"""The bodies of a USD stage hung on one another by its joints, for MuJoCo.

Joints that would close a loop, those with `excludeFromArticulation` before others,
become the equalities `connect` and `weld`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from pydrake.math import RigidTransform

from usd_robot.stage import Stage, rotation_of

_SAID = {
    "armature": ("physxJoint:armature", "newton:armature", "mjc:armature"),
    "frictionloss": ("physxJoint:jointFriction", "newton:friction"),
    "damping": ("mjc:damping", "newton:damping", "urdf:dynamics:damping"),
    "stiffness": ("mjc:stiffness",),
    "effort": ("mjc:actuatorfrcrange:max", "urdf:limit:effort", "newton:effortLimit"),
}
"""Attributes of joints that PhysX, Newton, and converters of MJCF and URDF add to the
schema's, in the stage's units; the first that is there counts."""

_OF_DEGREES = "newton:damping"
"""Is given per degree, all else per radian."""

_EFFORTS = "frictionloss", "effort"
"""Of a slide these are forces; its other attributes have no length in their units."""

_APART = 0.01
"""Distance of the two points by which a hinge closes a loop [m]."""


@dataclass(frozen=True, eq=False)
class _Freedom:
    """What a joint lets move: a hinge, a slide or a ball.

    Attributes:
        kind: "hinge", "slide" or "ball".
        axis: in the joint's frames (3,), a unit vector.
        limits: lower and upper [rad, m].
        drive: the name of its drive: "angular", "linear", "rotX".
    """

    kind: str
    axis: np.ndarray
    limits: tuple[float, float] = (-np.inf, np.inf)
    drive: str = "angular"


_BALL = _Freedom("ball", np.eye(3)[2])


@dataclass(frozen=True, eq=False)
class _Joint:
    """A joint of the stage.

    Attributes:
        prim: its prim.
        name: in the model.
        bodies: paths of body 0 and body 1; None for the world.
        frames: X_BF and X_BM in them [m].
        freedoms: in their order from body 0 on; none for a weld.
    """

    prim: Any
    name: str
    bodies: tuple[str | None, str | None]
    frames: tuple[RigidTransform, RigidTransform]
    freedoms: tuple[_Freedom, ...]


class Bodies:
    """Adds the bodies of a stage, its joints, motors and loops to its `spec`.

    Attributes:
        pose: of the joints on the stage, by name [rad, m].
    """

    def __init__(self, stage: Stage):
        self.stage, self.pose = stage, {}
        rigid, placed = stage.rigid, stage.placed
        waiting = sorted(self._joints(), key=_is_excluded)
        children = {joint.bodies[1] for joint in waiting}
        roots = sorted(rigid, key=lambda x: (not stage.is_root(x), x in children))
        for body in [x for x in roots if stage.said(rigid[x], "kinematicEnabled")]:
            stage.place(body, None, stage.X_WB(body))
        while waiting or roots:
            ends = ((j, [body in placed for body in j.bodies]) for j in waiting)
            joint = next((j for j, are_placed in ends if sum(are_placed) == 1), None)
            if joint is not None:
                waiting.remove(joint)
                self._hang(joint)
            elif not roots:
                break
            elif (body := roots.pop(0)) not in placed:
                stage.place(body, None, stage.X_WB(body)).add_freejoint()
        for joint in waiting:
            self._close(joint)

    def _close(self, joint: _Joint) -> None:
        """Closes a loop by a joint: a weld, one point, or two on a hinge's axis."""
        kinds = [freedom.kind for freedom in joint.freedoms]
        if kinds not in ([], ["ball"], ["hinge"]):
            self.stage.left_out["joints that slide and would close a loop"] += 1
            return
        self.stage.exclude(*joint.bodies)
        points = [np.zeros(3)]
        if kinds == ["hinge"]:
            points.append(_APART * joint.freedoms[0].axis)
        for number, point in enumerate(points):
            sites = []
            for end, body, X_BF in zip("AB", joint.bodies, joint.frames):
                sites.append(f"{joint.name}_{number}{end}")
                X, owner = X_BF @ RigidTransform(point), self.stage.placed[body]
                quat = X.rotation().ToQuaternion().wxyz()
                owner.add_site(name=sites[-1], pos=X.translation(), quat=quat)
            kind = mujoco.mjtEq.mjEQ_CONNECT if kinds else mujoco.mjtEq.mjEQ_WELD
            tie = self.stage.spec.add_equality(name=f"{joint.name}_{number}", type=kind)
            tie.objtype, (tie.name1, tie.name2) = mujoco.mjtObj.mjOBJ_SITE, sites

    def _joints(self) -> Iterator[_Joint]:
        """The joints that hold anything."""
        stage = self.stage
        for prim in stage.joints():
            freedoms = self._freedoms(prim)
            if freedoms is None:
                stage.left_out[f"joints of type {prim.GetTypeName()}"] += 1
                continue
            if any("mimic" in name.lower() for name in prim.GetPropertyNames()):
                stage.left_out["couplings of joints, which move by themselves"] += 1
            bodies, frames = [], []
            for end in (0, 1):
                at = next(iter(stage.targets(prim, f"physics:body{end}")), None)
                A, p = stage.map(at)
                at_F = stage.vector(prim, f"localPos{end}")
                p = p if at_F is None else p + A @ at_F
                turn = rotation_of(stage.said(prim, f"localRot{end}"))
                R = stage.rotation(at or prim, A) @ turn
                bodies.append(stage.body_of(at))
                X_WB = stage.X_WB(bodies[-1])
                frames.append(X_WB.inverse() @ RigidTransform(R, p))
            if bodies[0] != bodies[1]:
                name = stage.name("joint", prim)
                yield _Joint(prim, name, tuple(bodies), tuple(frames), freedoms)

    def _freedoms(self, prim) -> tuple[_Freedom, ...] | None:
        """What a joint lets move; None for one that has no counterpart."""
        kind = prim.GetTypeName().removeprefix("Physics").removesuffix("Joint")
        if kind in ("Fixed", "Spherical"):
            return () if kind == "Fixed" else (_BALL,)
        if kind in ("Revolute", "Prismatic"):
            axis = self.stage.axis(prim, "physics:axis")
            keys = ("physics:lowerLimit", "physics:upperLimit")
            drive = "angular" if kind == "Revolute" else "linear"
            found = [self._freedom(prim, keys, axis, drive)]
        elif not kind:
            found = []
            for name in ("transX", "transY", "transZ", "rotX", "rotY", "rotZ"):
                keys = [f"limit:{name}:physics:{end}" for end in ("low", "high")]
                found.append(self._freedom(prim, keys, "XYZ".index(name[-1]), name))
        else:
            return None
        freedoms = [freedom for freedom in found if freedom]
        slides = [freedom for freedom in freedoms if freedom.kind == "slide"]
        if len(freedoms) - len(slides) == 3:
            freedoms = [*slides, _BALL]
        return None if len(slides) == 3 and freedoms[-1] is _BALL else tuple(freedoms)

    def _freedom(self, prim, keys, axis: int, drive: str) -> _Freedom | None:
        """A hinge or a slide; None where its limits lock it."""
        turns = drive.startswith(("rot", "angular"))
        unit = np.deg2rad(1) if turns else self.stage.unit
        ends = [self.stage.number(prim, k, x) for k, x in zip(keys, (-np.inf, np.inf))]
        if ends[0] > ends[1]:
            return None
        limits = unit * ends[0], unit * ends[1]
        return _Freedom("hinge" if turns else "slide", np.eye(3)[axis], limits, drive)

    def _hang(self, joint: _Joint) -> None:
        """Adds the body that a joint hangs on one that is placed.

        Where body 0 hangs on body 1, the freedoms come in the other order, with axes
        the other way round, so that positions keep their signs.
        """
        stage, sign = self.stage, 1
        ends = list(zip(joint.bodies, joint.frames))
        X_W = [stage.X_WB(body) @ X for body, X in ends]
        if joint.bodies[0] not in stage.placed:
            ends, sign = ends[::-1], -1
        (parent, X_PF), (body, X_BM) = ends
        made = stage.place(body, parent, X_PF @ X_BM.inverse())
        several = len(joint.freedoms) > 1
        for freedom in joint.freedoms[::sign]:
            name = f"{joint.name}_{freedom.drive}" if several else joint.name
            part = made.add_joint(name=name, pos=X_BM.translation())
            part.type = getattr(mujoco.mjtJoint, f"mjJNT_{freedom.kind.upper()}")
            part.axis = X_BM.rotation() @ freedom.axis * sign
            if np.isfinite(freedom.limits).any():
                part.limited = mujoco.mjtLimited.mjLIMITED_TRUE
                # MuJoCo knows no limit on one side.
                part.range = np.clip(freedom.limits, -1e3, 1e3)
            part.armature = self._said(joint, freedom, "armature")
            part.frictionloss = self._said(joint, freedom, "frictionloss")
            part.damping[0] = self._said(joint, freedom, "damping")
            part.stiffness[0] = self._said(joint, freedom, "stiffness")
            if freedom.kind != "ball" and not several:
                self.pose[name] = _position(X_W[0].inverse() @ X_W[1], freedom)
            self._add_motor(joint, freedom, name)

    def _unit(self, freedom: _Freedom, what: str) -> float:
        """The stage's unit of an attribute of :data:`_SAID`, in SI."""
        of_slide = 1 if what in _EFFORTS else 0
        power = of_slide if freedom.kind == "slide" else 2
        return self.stage.mass_unit * self.stage.unit**power

    def _said(self, joint: _Joint, freedom: _Freedom, what: str) -> float:
        """An attribute of :data:`_SAID` in SI; 0 where it is not there."""
        for key in _SAID[what]:
            if value := self.stage.number(joint.prim, key):
                per_degree = key == _OF_DEGREES and freedom.kind != "slide"
                angle = np.deg2rad(1) if per_degree else 1.0
                return value * self._unit(freedom, what) / angle
        return 0.0

    def _add_motor(self, joint: _Joint, freedom: _Freedom, name: str) -> None:
        """Adds a motor where a drive, or a largest effort, says that there is one.

        A drive whose largest force is 0 drives nothing; without any it has no limit.
        """
        stage, effort = self.stage, self._said(joint, freedom, "effort")
        key = f"drive:{freedom.drive}:physics:maxForce"
        most = stage.number(joint.prim, key, np.inf)
        driven = stage.is_driven(joint.prim, freedom.drive) and most > 0
        if driven and most < 1e30:
            effort = most * self._unit(freedom, "effort")
        if effort or driven:
            kind = mujoco.mjtTrn.mjTRN_JOINT
            motor = stage.spec.add_actuator(name=name, target=name, trntype=kind)
            if effort:
                motor.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
                motor.forcerange = (-effort, effort)


def _is_excluded(joint: _Joint) -> bool:
    """Whether a joint is none of the articulation's tree."""
    return bool(joint.prim.GetAttribute("physics:excludeFromArticulation").Get())


def _position(X_FM: RigidTransform, freedom: _Freedom) -> float:
    """The position of a hinge or slide whose frames lie so [rad, m]."""
    if freedom.kind == "slide":
        return float(freedom.axis @ X_FM.translation())
    w, *xyz = X_FM.rotation().ToQuaternion().wxyz()
    angle = 2 * np.arctan2(freedom.axis @ xyz, w)
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
