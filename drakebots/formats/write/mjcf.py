"""Writes a model as MJCF, for MuJoCo.

What Drake and MuJoCo both know is written as it is: bodies, joints with damping, limits
and springs, rotors, motors, shapes, friction, which bodies do not collide. The rest:

* Loops become `connect` constraints between sites, with the points of Drake's own ball
  constraints. MuJoCo's constraints are springs as stiff as the time step allows
  (`solref` of two steps, `solimp` 0.9999). Joints that follow others become `joint`
  constraints, as stiff.
* A bushing at a joint becomes the springs and dampers of three hinges, whose law it has
  (see :mod:`drakebots.formats.write.parts`). A bushing that bridges a loop gets
  three hinges of its own: they carry a share of the second body's mass, and a `weld`
  makes it one with the rest of that body.
* MuJoCo refuses moving bodies without mass, unless one with mass is welded to them.
  Those that only carry another body are left out: their joint moves to that body, which
  may have several in MuJoCo.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix
from pydrake.multibody.tree import LinearBushingRollPitchYaw, LinearSpringDamper

from drakebots.core.checks import check_value, non_negative, optional, positive
from drakebots.core.errors import InvalidInput
from drakebots.formats import principal_inertia
from drakebots.formats.read.tree import add, remove, written
from drakebots.formats.write.parts import (
    Form,
    Part,
    Step,
    Writer,
    X,
    Y,
    Z,
    bushing_constants,
    filtered_pairs,
    opened,
    write_document,
    written_name,
)
from drakebots.model import (
    Model,
    actuators_of,
    coupled_joints,
    force_elements,
    shape_sizes,
)
from drakebots.multibody import Robot

LEAST_INERTIA = 1e-14
"""MuJoCo refuses smaller moments of inertia of moving bodies [kg m^2]."""

SAME = 1e-9
"""Frames this near are one [m, rad]."""

_SECTIONS = ("asset", "worldbody", "contact", "equality", "tendon", "actuator")
"""In the order of MuJoCo's own writer."""

_HALVES = {"box": 0.5, "capsule": [1.0, 0.5], "cylinder": [1.0, 0.5]}
"""Factors of the sizes of shapes of which MuJoCo takes half lengths."""


def write_mjcf(
    model: Model | str | Path,
    path: str | Path,
    *,
    time_step: float = 1e-4,
    ground: float | None = None,
) -> Path:
    """Writes a model as MJCF, its meshes as .obj into `meshes/` beside it.

    Joints, motors, bodies and feet (as sites) keep their names; joints of several
    coordinates become several joints (`_x`, `_y`, `_qx`, ...), or a ball joint. The key
    frame `home` has Drake's default positions.

    Args:
        model: as for :func:`drakebots.load`.
        path: file to write (.xml), in a folder that exists.
        time_step: time step of MuJoCo [s]; loops and contacts are as stiff as it
            allows.
        ground: friction coefficient of a plane at z = 0; None for no plane.

    Returns:
        The path.

    Raises:
        FileProblem: for another ending, or a file that cannot be written.
        InvalidInput: for what MJCF cannot say, and for a bad number.
    """
    path = Path(path)
    check_value("time step", time_step, positive("s"))
    check_value("ground", ground, optional(non_negative()))
    robot, parts = opened(model, path, (".xml", ".mjcf"))
    write_document(_Writer(robot, parts, time_step).document(ground), path)
    return path


@dataclass
class _Gimbal:
    """A bushing: the frames A and C on its two parts, and its constants (3,)."""

    a: Part
    c: Part
    X_A: RigidTransform
    X_C: RigidTransform
    stiffness: np.ndarray
    damping: np.ndarray
    name: str

    def steps(self, name: str) -> list[Step]:
        """Turns about z, y and x."""
        none = (-np.inf, np.inf)
        return [
            Step(name + end, False, axis, i, none, self.damping[i], self.stiffness[i])
            for end, axis, i in (("_qz", Z, 2), ("_qy", Y, 1), ("_qx", X, 0))
        ]


class _Writer(Writer):
    """Writes the parts of a robot as one MJCF document."""

    def __init__(self, robot: Robot, parts: list[Part], time_step: float):
        super().__init__(robot, parts)
        self.time_step = time_step
        self.share = {id(part): 1.0 for part in parts}
        self.joint_bushing: dict[int, _Gimbal] = {}
        self.mounts: list[_Gimbal] = []
        bushings = force_elements(robot.plant, LinearBushingRollPitchYaw)
        for number, bushing in enumerate(bushings):
            self._sort(bushing, f"bushing_{number}")
        for mount in self.mounts:
            # The body and what its bushings hold of it have equal shares.
            count = sum(other.c is mount.c for other in self.mounts)
            self.share[id(mount.c)] = 1 / (1 + count)
        self.elements: dict[int, ET.Element] = {}
        self.key: dict[str, list[float]] = {}
        self.merged = self._find_merged()

    def _sort(self, bushing, name: str) -> None:
        """A bushing holds the turns of a ball joint, or bridges a loop."""
        frames = bushing.frameA(), bushing.frameC()
        law = bushing_constants(bushing)
        parts = [self.part(frame.body()) for frame in frames]
        poses = [frame.GetFixedPoseInBodyFrame() for frame in frames]
        turns = law["torque_stiffness"], law["torque_damping"]
        gimbal = _Gimbal(*parts, *poses, *turns, name)
        if np.any([law["force_stiffness"], law["force_damping"]]):
            raise InvalidInput(
                f"{name} between {gimbal.a.name} and {gimbal.c.name}: its force "
                "stiffness cannot be written; use linear_spring_damper"
            )
        c = gimbal.c
        is_at_joint = (
            c.parent is gimbal.a
            and c.joint.type_name() == "ball_rpy"
            and c.X_PB.IsNearlyEqualTo(gimbal.X_A @ gimbal.X_C.inverse(), SAME)
            and np.allclose(gimbal.X_C.translation(), c.X_BM.translation(), atol=SAME)
        )
        if is_at_joint:
            self.joint_bushing[id(c)] = gimbal
        else:
            self.mounts.append(gimbal)

    def _find_merged(self) -> set[int]:
        """Parts without mass that only carry another: their joints move there."""
        model = self.robot.model
        names = [point.body for point in (*model.feet, *model.points)]
        names += [body for loop in model.loops for body in (loop.body_A, loop.body_B)]
        springs = force_elements(self.plant, LinearSpringDamper)
        bodies = [*names, *(end for x in springs for end in (x.bodyA(), x.bodyB()))]
        used = {self.part(body).body.index() for body in bodies}
        for mount in self.mounts:
            used |= {mount.a.body.index(), mount.c.body.index()}
        return {
            id(part)
            for part in self.parts[1:]
            if not part.body.default_mass()
            and part.steps
            and not part.forms
            and len(part.children) == 1
            and part.body.index() not in used
        }

    # --- the document -------------------------------------------------------

    def document(self, ground: float | None) -> ET.Element:
        """The whole document, with ground of this friction, or None for no ground."""
        robot, root = self.robot, ET.Element("mujoco", model=self.robot.model.name)
        add(root, "compiler", angle="radian", autolimits="true")
        gravity = robot.plant.gravity_field().gravity_vector()
        option = {"integrator": "implicitfast", "solver": "Newton"}
        option = add(root, "option", timestep=self.time_step, gravity=gravity, **option)
        # Drake keeps two links of a joint apart, MuJoCo all that is welded to them.
        add(option, "flag", filterparent="disable")
        default = add(root, "default")
        stiff = f"{written(2 * self.time_step)} 1"
        # At 10 steps and less the corners of boxes chatter; at 20 a beetle rests on
        # 16 of them, 6 um deep at steps of 0.1 ms.
        # MuJoCo takes the mass of a body that gives none from its shapes.
        add(default, "geom", solref=f"{written(20 * self.time_step)} 1", mass="0")
        solid = "0.9999 0.9999 0.001 0.5 2"
        add(default, "equality", solref=stiff, solimp=solid)
        add(default, "joint", solreflimit=stiff)
        drawn = add(default, "default", class_="visual")
        add(drawn, "geom", contype="0", conaffinity="0", group="2")
        touching = add(default, "default", class_="collision")
        add(touching, "geom", group="3", condim="3")
        self.asset, world, self.contact, self.equality, self.tendon, self.actuator = (
            add(root, tag) for tag in _SECTIONS
        )
        self.meshes: dict[tuple, str] = {}
        if ground is not None:
            plane = {"type": "plane", "size": "0 0 1", "condim": "3"}
            plane |= {"friction": f"{written(ground)} 0.005 0.0001", "priority": "1"}
            add(world, "geom", name="ground", **plane)
        self._forms(world, self.parts[0])
        self.elements[id(self.parts[0])] = world
        for part in self.parts[0].children:
            self._body(world, part, [], RigidTransform())
        self._points()
        self._loops()
        self._couplers()
        for mount in self.mounts:
            self._mount(mount)
        # Drake does not let these touch.
        for one, other in filtered_pairs(robot, self.parts):
            add(self.contact, "exclude", body1=one.name, body2=other.name)
        self._tendons()
        self._actuators()
        remove(root, [x for x in root if x.tag in _SECTIONS and not len(x)])
        key = add(root, "keyframe")
        # Positions are in the order of the joints in the file.
        names = [e.get("name") for e in world.iter() if e.tag.endswith("joint")]
        home = [x for name in names for x in self.key[str(name)]]
        add(key, "key", name="home", qpos=home)
        return root

    # --- bodies -------------------------------------------------------------

    def _body(
        self,
        parent: ET.Element,
        part: Part,
        before: list[tuple[list[Step], RigidTransform]],
        X_GP: RigidTransform,
    ) -> None:
        """Adds a body and what it carries.

        Args:
            parent: parent element in MuJoCo's tree.
            part: the part to add.
            before: joints of massless parts between the two: steps, and their frame
                in `part`'s parent.
            X_GP: pose of the part's own parent in MuJoCo's at q = 0.
        """
        X_GB = X_GP @ part.X_PB
        own = [(steps, part.X_PB.inverse() @ X_PM) for steps, X_PM in before]
        gimbal = self.joint_bushing.get(id(part))
        if gimbal is not None:
            turns = zip(gimbal.steps(written_name(part.joint)), part.steps)
            both = [
                replace(b, damping=b.damping + j.damping, start=j.start)
                for b, j in turns
            ]
            own.append((both, gimbal.X_C))
        elif part.steps:
            own.append((part.steps, part.X_BM))
        if id(part) in self.merged:
            return self._body(parent, part.children[0], own, X_GB)
        body = add(parent, "body", name=part.name, **_pose(X_GB))
        self.elements[id(part)] = body
        if part.is_free:
            add(body, "freejoint", name=written_name(part.joint))
            X_WB = part.X_PF
            wxyz = X_WB.rotation().ToQuaternion().wxyz()
            self.key[written_name(part.joint)] = [*X_WB.translation(), *wxyz]
        for steps, X_BM in own:
            self._joints(body, steps, X_BM)
        moves = part.is_free or own
        self._inertia(body, part, self.share[id(part)], RigidTransform(), moves)
        self._forms(body, part)
        for child in part.children:
            self._body(body, child, [], RigidTransform())

    def _joints(
        self, body: ET.Element, steps: Sequence[Step], X_BM: RigidTransform
    ) -> None:
        """Adds joints one after the other about axes through a point of the body."""
        p, R = X_BM.translation(), X_BM.rotation().matrix()
        is_ball = [s.name.rpartition("_")[2] for s in steps] == ["qz", "qy", "qx"]
        if is_ball and not any(s.stiffness or s.damping for s in steps):
            name = steps[0].name.rpartition("_")[0]
            add(body, "joint", type="ball", name=name, pos=p)
            rpy = [s.start for s in reversed(steps)]
            self.key[name] = [*RollPitchYaw(rpy).ToQuaternion().wxyz()]
            return
        for step in steps:
            # MuJoCo knows no limit on one side, and takes two equal ones for none.
            is_limited, (lower, upper) = np.isfinite(step.limits).any(), step.limits
            span = np.clip([lower, max(upper, lower + SAME)], -1e3, 1e3)
            add(
                body,
                "joint",
                name=step.name,
                type="slide" if step.slides else "hinge",
                pos=p,
                axis=R @ step.axis,
                range=span if is_limited else None,
                stiffness=step.stiffness or None,
                springref=step.rest if step.stiffness else None,
                damping=step.damping or None,
                armature=step.armature or None,
            )
            self.key[step.name] = [step.start]

    def _inertia(self, body, part: Part, share: float, X_BF, moves) -> None:
        """The share of the part's inertia in a frame F of it."""
        mass, p_BC, I_C = part.inertia()
        if not mass:
            if moves and not _welded_mass(part):
                raise InvalidInput(
                    f"body {part.name!r} moves and has no mass, which MuJoCo refuses; "
                    "give it some"
                )
            return
        R_FB = X_BF.rotation().matrix().T
        moments, axes = principal_inertia(R_FB @ I_C @ R_FB.T)
        quaternion = RotationMatrix(axes).ToQuaternion().wxyz()
        moments = np.maximum(share * moments, LEAST_INERTIA)
        says = {"mass": share * mass, "diaginertia": moments}
        add(body, "inertial", pos=X_BF.inverse() @ p_BC, quat=quaternion, **says)

    def _points(self) -> None:
        model, feet = self.robot.model, {foot.name for foot in self.robot.model.feet}
        named = [(foot, foot.name) for foot in model.feet]
        ends = ["_point" if point.name in feet else "" for point in model.points]
        named += [(point, point.name + end) for point, end in zip(model.points, ends)]
        for point, name in named:
            element = self.elements[id(self.part(point.body))]
            add(element, "site", name=written_name(name), pos=point.p_BF)

    # --- shapes -------------------------------------------------------------

    def _forms(self, body: ET.Element, part: Part) -> None:
        for form in part.forms:
            kind, size = form.kind, shape_sizes(form.shape)
            if kind == "halfspace":
                kind, size = "plane", np.array([0.0, 0.0, 1.0])
                if not part.is_still:
                    raise InvalidInput(
                        f"shape {form.name!r}: MuJoCo has half spaces only on bodies "
                        "that stand still; use a box"
                    )
            size = size * _HALVES.get(kind, 1.0)
            role = "collision" if form.rgba is None else "visual"
            friction = f"{written(form.friction)} 0.005 0.0001"
            add(
                body,
                "geom",
                class_=role,
                type=kind,
                name=f"{form.name}_{role}",
                friction=friction if form.rgba is None else None,
                rgba=form.rgba,
                mesh=self._mesh(form, size) if kind == "mesh" else None,
                size=None if kind == "mesh" else size,
                **_pose(form.X_BG),
            )

    def _mesh(self, form: Form, scale) -> str:
        key = (form.mesh, tuple(scale))
        if key not in self.meshes:
            name = Path(str(form.mesh)).stem
            number = sum(file == form.mesh for file, _ in self.meshes)
            self.meshes[key] = f"{name}_{number}" if number else name
            # A shell: a drawn mesh may be open, and bodies have their own inertia.
            mesh = {"file": form.mesh, "inertia": "shell", "scale": scale}
            add(self.asset, "mesh", name=self.meshes[key], **mesh)
        return self.meshes[key]

    # --- loops, bushings, springs, motors -----------------------------------

    def _site(self, part: Part, name: str, X_BS: RigidTransform) -> str:
        add(self.elements[id(part)], "site", name=name, group="4", **_pose(X_BS))
        return name

    def _loops(self) -> None:
        """Adds a `connect` for each loop, unless the weld of a bushing closes it."""
        balls = self.robot.model.balls(self.plant)
        for number, (loop, p_AP, p_BQ) in enumerate(balls):
            a, b = self.part(loop.body_A), self.part(loop.body_B)
            if any(
                {a, b} == {m.a, m.c}
                and np.allclose(
                    p_AP if a is m.a else p_BQ, m.X_A.translation(), atol=SAME
                )
                for m in self.mounts
            ):
                continue  # Its bushing's weld closes it.
            name = f"{loop.name}_{number}"
            first = self._site(a, f"{name}_A", RigidTransform(p_AP))
            second = self._site(b, f"{name}_B", RigidTransform(p_BQ))
            add(self.equality, "connect", name=name, site1=first, site2=second)

    def _couplers(self) -> None:
        for coupler in self.robot.model.couplers:
            follower, leader = coupled_joints(self.plant, coupler)
            ends = {"joint1": written_name(follower), "joint2": written_name(leader)}
            law = [coupler.offset, coupler.gear, 0, 0, 0]
            add(self.equality, "joint", **ends, polycoef=law)

    def _mount(self, mount: _Gimbal) -> None:
        name = f"{mount.name}_mount"
        body = add(self.elements[id(mount.a)], "body", name=name, **_pose(mount.X_A))
        self._joints(body, mount.steps(mount.name), RigidTransform())
        self._inertia(body, mount.c, self.share[id(mount.c)], mount.X_C, True)
        add(body, "site", name=name, group="4")
        other = self._site(mount.c, f"{name}_on_{mount.c.name}", mount.X_C)
        add(self.equality, "weld", name=mount.name, site1=name, site2=other)

    def _tendons(self) -> None:
        for number, spring in enumerate(force_elements(self.plant, LinearSpringDamper)):
            name = f"spring_{number}"
            ends = (spring.bodyA(), spring.p_AP()), (spring.bodyB(), spring.p_BQ())
            rest, k, d = spring.free_length(), spring.stiffness(), spring.damping()
            law = {"springlength": rest, "stiffness": k, "damping": d}
            tendon = add(self.tendon, "spatial", name=name, **law)
            for end, (body, p) in zip("AB", ends):
                site = self._site(self.part(body), f"{name}_{end}", RigidTransform(p))
                add(tendon, "site", site=site)

    def _actuators(self) -> None:
        """Motors; those that Drake itself controls as servos with its gains."""
        for actuator in actuators_of(self.plant):
            limit = actuator.effort_limit()
            joint = written_name(actuator.joint())
            says = {"name": written_name(actuator), "joint": joint}
            says |= {"forcerange": [-limit, limit]} if np.isfinite(limit) else {}
            if actuator.has_controller():
                gains = actuator.get_controller_gains()
                add(self.actuator, "position", **says, kp=gains.p, kv=gains.d)
            else:
                add(self.actuator, "motor", **says)


def _welded_mass(part: Part) -> float:
    """Mass of the bodies that are welded to a part, directly or by others [kg]."""
    welded = [child for child in part.children if not child.steps]
    return sum(child.inertia()[0] + _welded_mass(child) for child in welded)


def _pose(X: RigidTransform) -> dict[str, np.ndarray | None]:
    p, R = X.translation(), X.rotation()
    quat = None if R.IsExactlyIdentity() else R.ToQuaternion().wxyz()
    return {"pos": p if np.any(p) else None, "quat": quat}
