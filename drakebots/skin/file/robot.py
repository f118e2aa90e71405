"""Skeletons with their skins: loaded, or glued together, checked and described.

robot = load_skinned("skinned_leg")       # a name, or a path to SDF or URDF
stepper = robot.stepper(5e-3)
found = attach("robot.urdf", "skin.vtk", GlueRadius(0.005))
write_skin(path, found.description_for(path))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context, Diagram, DiagramBuilder

from drakebots.core.errors import InvalidInput, ModelProblem, check_names
from drakebots.core.files import reading
from drakebots.core.units import si_factor
from drakebots.fem import Cavity, RegionLocking, cavity_of, locking
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.material import SILICONE, Material
from drakebots.fem.mesh import (
    MeshReport,
    TetMesh,
    check_mesh,
    connected_pieces,
    read_mesh,
)
from drakebots.formats import OF_SKIN, load, loaded, model_provenance
from drakebots.model import (
    Model,
    bodies_of,
    effort_limits,
    find_body,
    joints_of,
    one_named,
    skin_path,
)
from drakebots.multibody import Flat, Robot, Terrain, build_robot
from drakebots.skin.coupled import (
    CoupledStepper,
    Glue,
    Patches,
    Servo,
    actuated_joints,
    glue_by_radius,
    glue_midside,
    glue_vertices,
    patch_points,
    torque_map,
)
from drakebots.skin.file.description import GlueRadius, SkinDescription, read_skin

BELOW = 2e-3
"""Depth below the ground at which a skin may start [m]; soles of scans are rough."""


@dataclass(frozen=True)
class SkinnedRobot:
    """A skeleton in its rest pose and a skin glued to it.

    Attributes:
        model: file of the skeleton and the files beside it.
        skin: description of the skin.
        mesh: mesh at rest, in the world frame [m].
        fem: elements and materials of the skin.
        glue: nodes fixed to links, with the mid-edge nodes of P2 tets.
        mesh_report: findings of the mesh check.
        robot: plant (discrete, SI) connected to a SceneGraph.
        diagram: diagram of the plant.
        root: context of the diagram, in the rest pose.
    """

    model: Model
    skin: SkinDescription
    mesh: TetMesh
    fem: FemModel
    glue: Glue
    mesh_report: MeshReport
    robot: Robot
    diagram: Diagram = field(repr=False)
    root: Context = field(repr=False)

    @property
    def plant(self) -> MultibodyPlant:
        """The skeleton."""
        return self.robot.plant

    @property
    def context(self) -> Context:
        """Context of the plant in `root`, initially in the rest pose."""
        return self.plant.GetMyMutableContextFromRoot(self.root)

    @cached_property
    def rest_positions(self) -> np.ndarray:
        """Positions q in which the skin is at rest (nq,)."""
        return rest_positions(self.plant, self.skin.joints)

    @cached_property
    def effort_limits(self) -> np.ndarray:
        """Largest torque of each actuator (m,) [N m]; inf without a limit."""
        return effort_limits(self.plant)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Names of the actuated joints, in the order of the torques."""
        return actuated_joints(self.plant)

    @cached_property
    def cavities(self) -> tuple[Cavity, ...]:
        """The cavities of the skin; InvalidInput for one that is none."""
        given = self.skin.cavities.items()
        return tuple(cavity_of(self.fem, name, where) for name, where in given)

    @property
    def skin_mass(self) -> float:
        """Mass of the skin [kg]."""
        return float(self.fem.node_mass.sum())

    @property
    def skeleton_mass(self) -> float:
        """Mass of the skeleton [kg]."""
        return float(self.plant.CalcTotalMass(self.plant.CreateDefaultContext()))

    @property
    def files(self) -> list[Path]:
        """Files that the robot is made of."""
        path = self.model.path
        return [path, skin_path(path), path.parent / self.skin.mesh]

    def provenance(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The provenance of a result of the robot."""
        return model_provenance(self.model, options, files=self.files)

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers of skin and servos that may be given or found, by name:
        "youngs_modulus:2" of a region of the mesh, "servo.stiffness"."""
        found = {f"servo.{k}": value for k, value in vars(self.skin.servos).items()}
        for region, material in zip(self.mesh.regions, self.fem.materials):
            found |= {f"{k}{region}": getattr(material, k[:-1]) for k in OF_SKIN}
        return found

    def with_parameters(self, parameters: Mapping[str, float]) -> SkinnedRobot:
        """The robot with some of :attr:`parameters` replaced; others are passed over.

        Raises:
            UnknownName: for a region that the mesh does not have.
        """
        own = self.parameters
        of_skin = [name for name in parameters if name.startswith(OF_SKIN)]
        check_names("parameter", of_skin, own)
        given = own | {k: v for k, v in parameters.items() if k in own}
        if given == own:
            return self
        materials = {
            r: replace(material, **{k[:-1]: given[f"{k}{r}"] for k in OF_SKIN})
            for r, material in zip(self.mesh.regions, self.fem.materials)
        }
        gains = self.skin.servos
        servos = replace(gains, **{k: given[f"servo.{k}"] for k in vars(gains)})
        skin = replace(self.skin, regions=materials, servos=servos)
        fem = build_model(self.mesh, materials, quadratic=skin.second_order)
        return replace(self, skin=skin, fem=fem)

    def servo(self, position: np.ndarray, velocity: np.ndarray | None = None) -> Servo:
        """Servos with the file's gains and target positions (m,) [rad]."""
        gains = self.skin.servos
        return Servo(gains.stiffness, gains.damping, position, velocity)

    def joint_positions(self, q: np.ndarray) -> np.ndarray:
        """Positions of the actuated joints (m,) in q (nq,)."""
        return np.asarray(q, float)[torque_map(self.plant)[1]]

    def stepper(self, dt: float, **options) -> CoupledStepper:
        """A stepper with a context of its own, in the rest pose.

        Options are those of :class:`CoupledStepper`, None for the default; effort
        limits are the file's by default.
        """
        options = {"cavities": self.cavities} | self.stepper_options(options)
        return CoupledStepper(self.plant, self.fem, self.glue, dt, **options)

    def stepper_options(self, options: dict) -> dict:
        """Options of a stepper without those that are None, with the defaults."""
        options = {k: v for k, v in options.items() if v is not None}
        context, _ = self.new_context()
        return {"effort_limits": self.effort_limits, "context": context} | options

    def new_context(self) -> tuple[Context, Context]:
        """A context of the plant in the rest pose, and its root."""
        root = self.diagram.CreateDefaultContext()
        context = self.plant.GetMyMutableContextFromRoot(root)
        self.plant.SetPositions(context, self.rest_positions)
        return context, root

    def report(self) -> dict:
        """Sizes and masses as JSON-able values in SI."""
        low, high = self.mesh.vertices.min(axis=0), self.mesh.vertices.max(axis=0)
        return {
            "joints": len(self.joints),
            "skin_vertices": len(self.mesh.vertices),
            "skin_tets": len(self.mesh.tets),
            "glue_vertices": int((self.glue.vertices < len(self.mesh.vertices)).sum()),
            "glue_by_link": {k: len(rows) for k, rows in self.glue.by_body().items()},
            "skin_mass_kg": self.skin_mass,
            "skeleton_mass_kg": self.skeleton_mass,
            "mass_kg": self.skin_mass + self.skeleton_mass,
            "size_m": (high - low).tolist(),
            "effort_limits_N_m": self.effort_limits.tolist(),
            "mesh": list(self.mesh_report.notes),
        }


def load_skinned(
    name_or_path: str | Path | Model,
    skin: SkinDescription | str | Path | None = None,
    *,
    path: Path | None = None,
) -> SkinnedRobot:
    """Loads a skeleton and its skin.

    Args:
        name_or_path: name or path of the skeleton, as for :func:`drakebots.load`.
        skin: a `.skin.yaml`, or its contents with paths relative to the model's file;
            by default the one beside the model.
        path: file of the contents, for errors and relative paths.

    Raises:
        UnknownName, ModelProblem, FileProblem, InvalidInput: for any fault of the
            files.
    """
    model = loaded(name_or_path)
    if isinstance(skin, (str, Path)):
        path = Path(skin)
    path = skin_path(model.path) if path is None else path
    given = skin if isinstance(skin, SkinDescription) else read_skin(path)
    mesh, report = skin_mesh(path, given)
    builder = DiagramBuilder()
    robot = build_robot(model, builder)
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = robot.plant.GetMyMutableContextFromRoot(root)
    fem, glue = dress(robot.plant, context, path, given, mesh)
    one = SkinnedRobot(model, given, mesh, fem, glue, report, robot, diagram, root)
    return one.with_parameters(model.parameters)


def dress(
    plant: MultibodyPlant,
    context: Context,
    path: Path,
    skin: SkinDescription,
    mesh: TetMesh,
) -> tuple[FemModel, Glue]:
    """Glues a skin to a plant's links, and puts the context into the skin's rest pose.

    Args:
        plant: finalized, in SI.
        context: context of the plant, whose geometry query is connected or fixed.
        path: file of the skin, for errors.
        skin: its contents.
        mesh: its mesh.

    Returns:
        The elements, and the glue with the mid-edge nodes of P2 tets.

    Raises:
        ModelProblem: naming the file and what is wrong in it.
    """
    with reading(path, ModelProblem):
        materials = {k: skin.regions.get(k, skin.material) for k in mesh.regions}
        check_names("mesh region", skin.regions, materials)
        fem = build_model(mesh, materials, quadratic=skin.second_order)
        plant.SetPositions(context, rest_positions(plant, skin.joints))
        if skin.unit is None:
            _check_size(mesh, plant, context)
        given, at_rest = skin.glue, (mesh.vertices, plant, context)
        if isinstance(given, GlueRadius):
            glue = glue_by_radius(*at_rest, given.radius, between=given.between)
        else:
            glue = glue_vertices(*at_rest, given)
        if skin.second_order:
            glue = glue_midside(glue, fem.space)
        for patches in skin.patches:
            find_body(plant, patches.body)
    return fem, glue


def _check_size(mesh, plant, context):
    """Refuses a mesh whose size shows that it is not in m."""
    links = _link_origins(plant, context)
    skin, skeleton = np.ptp(mesh.vertices, axis=0).max(), np.ptp(links, axis=0).max()
    if skin > 100 * skeleton > 0:
        raise InvalidInput(
            f"mesh: {skin:.3g} m long on a skeleton whose links are within "
            f"{skeleton:.3g} m, so it seems to be in mm; say `unit: mm` (--units mm), "
            "or `unit: m` if it is in m"
        )


def check_above_ground(
    mesh: TetMesh,
    plant: MultibodyPlant,
    context: Context,
    patches: Sequence[Patches],
    terrain: Terrain = Flat(),
) -> None:
    """Refuses a skin or contact points that start below the ground.

    Raises:
        InvalidInput: with how far, and what to do.
    """
    low = {"skin": terrain.evaluate(mesh.vertices)[0].min()}
    for one in patches:
        points, _ = patch_points(plant, context, [one])
        low[f"foot {one.foot} (link {one.body})"] = terrain.evaluate(points)[0].min()
    part = min(low, key=low.__getitem__)
    if low[part] < -BELOW:
        raise InvalidInput(
            f"{part} starts {-1e3 * low[part]:.1f} mm below the ground, which "
            "would cut it; raise skeleton and mesh by that, or simulate without ground "
            "(--no-ground)"
        )


def rest_positions(plant: MultibodyPlant, joints: dict[str, float]) -> np.ndarray:
    """Default positions with those of some joints replaced (nq,).

    Raises:
        UnknownName: for a joint that does not exist.
        InvalidInput: for a joint of more than one coordinate.
    """
    q = plant.GetPositions(plant.CreateDefaultContext())
    for name, value in joints.items():
        joint = one_named(plant, "joint", name, joints_of(plant))
        if joint.num_positions() != 1:
            raise InvalidInput(
                f"joint {name!r}: has {joint.num_positions()} coordinates; only "
                "joints of one can be set"
            )
        q[joint.position_start()] = value
    return q


def skin_mesh(path: Path, skin: SkinDescription) -> tuple[TetMesh, MeshReport]:
    """The checked mesh of a skin's file at `path`, and the findings of the check.

    Raises:
        ModelProblem, FileProblem: naming the mesh's file.
    """
    file = path.parent / skin.mesh
    read = read_mesh(file)
    if skin.unit is not None:
        read = TetMesh(read.vertices * si_factor(skin.unit), read.tets, read.region)
    with reading(file, ModelProblem):
        mesh, report = check_mesh(read)
    if report.dropped_vertices and not isinstance(skin.glue, GlueRadius):
        raise ModelProblem(
            file,
            f"{report.dropped_vertices} vertices belong to no tet, so the numbers in "
            "the glue are ambiguous; remove them and glue again",
        )
    return mesh, report


# --- a skin put on a skeleton -----------------------------------------------------


@dataclass(frozen=True)
class Attachment:
    """A skin on a skeleton, checked.

    Attributes:
        robot: both, ready to simulate.
        mesh: absolute path of the skin's mesh.
        locking: estimate of the locking of each region.
    """

    robot: SkinnedRobot
    mesh: Path
    locking: tuple[RegionLocking, ...]

    def description_for(self, path: Path) -> SkinDescription:
        """The description to write at a path, with the mesh's path relative to it."""
        mesh = os.path.relpath(self.mesh, Path(path).resolve().parent)
        return replace(self.robot.skin, mesh=mesh)

    def report(self) -> dict[str, Any]:
        """Masses, glue by link, mesh, locking and sizes as JSON-able values in SI."""
        robot = self.robot
        robot.plant.SetPositions(robot.context, robot.rest_positions)
        links = _link_origins(robot.plant, robot.context)
        return robot.report() | {
            "mesh_check": str(robot.mesh_report).splitlines()[0],
            "worst_quality": robot.mesh_report.worst_quality,
            "pieces": robot.mesh_report.pieces,
            "locking": [str(row) for row in self.locking],
            "plate_bending_factor": max(row.factor for row in self.locking),
            "wall_m": min(row.thickness for row in self.locking),
            "edge_m": list(robot.mesh_report.edge_m),
            "skeleton_size_m": np.ptp(links, axis=0).tolist(),
        }


def _link_origins(plant: MultibodyPlant, context: Context) -> np.ndarray:
    """Origins of the links in the context's pose (n, 3) [m]."""
    poses = (plant.EvalBodyPoseInWorld(context, b) for b in bodies_of(plant)[1:])
    return np.array([pose.translation() for pose in poses])


def attach(
    skeleton: str | Path,
    mesh: str | Path,
    glue: GlueRadius,
    *,
    material: Material | None = None,
    unit: str | None = None,
    path: Path | None = None,
) -> Attachment:
    """Glues a skin to a skeleton in its default pose.

    Args:
        skeleton: name or path, as for :func:`drakebots.load`.
        mesh: file of the tets, with the skeleton in its default pose.
        glue: radius, and the choice for vertices between links.
        material: material of all regions; silicone by default.
        unit: unit of the mesh; see :class:`SkinDescription`.
        path: file of the description, for errors.

    Raises:
        DrakebotsError: for any fault of the input: a file that cannot be read, a mesh
            that cannot be computed on, a skin far from the skeleton, a vertex near two
            links, ...
    """
    model = load(skeleton)
    mesh = Path(mesh).resolve()
    material = SILICONE if material is None else material
    description = SkinDescription(str(mesh), glue, material, unit=unit)
    robot = load_skinned(model, description, path=path)
    middle = _loose_piece(robot)
    if middle is not None:
        raise InvalidInput(
            f"{mesh}: the piece of the skin at {middle} touches no link, nothing "
            "holds it; remove it or use a larger glue radius"
        )
    return Attachment(robot, mesh, locking(robot.fem))


def _loose_piece(robot: SkinnedRobot) -> list[float] | None:
    """The centre of a piece of the skin without glue [m], or None."""
    n = len(robot.mesh.vertices)
    count, piece = connected_pieces(robot.mesh.tets, n)
    vertices = robot.glue.vertices
    held = np.unique(piece[vertices[vertices < n]])
    loose = np.setdiff1d(np.arange(count), held)
    if not len(loose):
        return None
    return robot.mesh.vertices[piece == loose[0]].mean(axis=0).round(4).tolist()
