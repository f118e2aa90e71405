"""A skin on a robot of a plant of your own, in your diagram.

builder = DiagramBuilder()
scene_graph = builder.AddSystem(SceneGraph())
plant = MultibodyPlant(time_step=0.0)  # not added to the builder
plant.RegisterAsSourceForSceneGraph(scene_graph)
Parser(plant).AddModels("x.urdf")  # and whatever the robot may touch
plant.Finalize()
skinned = add_skin(builder, plant, "x.skin.yaml", meshcat=meshcat)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
from pydrake.common import MemoryFile
from pydrake.common.value import AbstractValue
from pydrake.geometry import (
    FramePoseVector,
    GeometryConfigurationVector,
    GeometryInstance,
    InMemoryMesh,
    MakePhongIllustrationProperties,
    Mesh,
    Meshcat,
    PerceptionProperties,
    RenderLabel,
    Rgba,
    Role,
    SceneGraph,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context, DiagramBuilder
from scipy.spatial import cKDTree

from drakebots.core.errors import InvalidInput
from drakebots.fem import cavity_of
from drakebots.fem.assembly import FemModel, build_model
from drakebots.fem.mesh import TetMesh
from drakebots.model import driven_joints, effort_limits, find_body
from drakebots.skin.coupled import CoupledStepper, Glue, glue_midside, scene_of
from drakebots.skin.coupled.shapes import robot_numbers
from drakebots.skin.file.description import (
    GlueRadius,
    ServoGains,
    SkinDescription,
    read_skin,
)
from drakebots.skin.file.robot import dress, rest_positions, skin_mesh
from drakebots.skin.leaf_systems import CoupledSkeleton, SkinDrawing

COLOUR = np.array([0.85, 0.65, 0.55, 1.0])
"""Colour of a skin before cameras."""


@dataclass(frozen=True)
class PlacedSkin:
    """One of the skins of a plant.

    Attributes:
        file: its `.skin.yaml`.
        model: model instance whose bodies and joints the file names; "" for the plant.
        X_WS: pose of the mesh's frame in the world, in the plant's default pose.
    """

    file: str | Path
    model: str = ""
    X_WS: RigidTransform = field(default_factory=RigidTransform)

    def read(self) -> tuple[Path, SkinDescription, TetMesh]:
        """The file, its contents with names of the plant, and its mesh in the world.

        Raises:
            ModelProblem, FileProblem: for any fault of the file.
        """
        path = Path(self.file)
        skin = read_skin(path)
        mesh, _ = skin_mesh(path, skin)
        mesh = replace(mesh, vertices=self.X_WS.multiply(mesh.vertices.T).T)
        scope = f"{self.model}::" * bool(self.model)
        glue = skin.glue
        if not isinstance(glue, GlueRadius):
            glue = {scope + link: ids for link, ids in glue.items()}
        joints = {scope + name: value for name, value in skin.joints.items()}
        patches = tuple(replace(p, body=scope + p.body) for p in skin.patches)
        return path, replace(skin, glue=glue, joints=joints, patches=patches), mesh


def add_skin(
    builder: DiagramBuilder,
    plant: MultibodyPlant,
    skin: str | Path | PlacedSkin | Sequence[PlacedSkin],
    *,
    meshcat: Meshcat | None = None,
    time_step: float = 5e-3,
    path: str = "/skin",
    **options,
) -> CoupledSkeleton:
    """Puts an elastic skin on a robot of a plant, and the plant into a diagram.

    The system that is added takes the plant's place: it moves all bodies of the plant
    and the skin, and poses them in the scene graph, where the skin is a deformable
    geometry that cameras and visualizers see. Skin and robot touch all other bodies of
    the plant that have collision geometry, free, jointed or fixed, and these touch each
    other (:mod:`drakebots.skin.coupled.scene`). Their shapes lose the proximity role in
    the scene graph: other plants are seen, not touched.

    Args:
        builder: builder of the diagram, with the scene graph.
        plant: finalized, in SI; registered with the scene graph, and not in the
            builder.
        skin: the robot's `.skin.yaml`, with bodies and joints of the plant by name; or
            all skins of the plant, on one robot or several. Vertices and stress of the
            system are then those of all meshes, one after the other, and a step that
            projects the tangent projects that of all.
        meshcat: scene for the skin, coloured by its stress.
        time_step: time step of all bodies and the skin [s].
        path: path of the skin in Meshcat's tree.
        options: options of :class:`~drakebots.skin.coupled.stepper.CoupledStepper`.

    Returns:
        The system; its servos have the gains of the skins' files.

    Raises:
        InvalidInput: for a plant in the builder, without its scene graph or with a
            skin, a skin that starts inside a body, or skins that share glue.
        UnknownName, ModelProblem, FileProblem: for any fault of the skin's file.
    """
    given = [skin] if isinstance(skin, (str, Path, PlacedSkin)) else skin
    read = [(p if isinstance(p, PlacedSkin) else PlacedSkin(p)).read() for p in given]
    scene_graph = _scene_graph(builder, plant)
    context, fem, glue, gains, cavities = _dressed(plant, scene_graph, read)
    inspector = scene_graph.model_inspector()
    patches = [patch for _, each, _ in read for patch in each.patches]
    scene = scene_of(plant, inspector, fem, glue, patches=patches)
    if scene is not None:
        scene.check_apart(plant, context, fem.rest)
    usual = {"context": context, "scene": scene, "cavities": cavities}
    usual["effort_limits"] = effort_limits(plant)
    stepper = CoupledStepper(plant, fem, glue, time_step, **usual | options)
    system = CoupledSkeleton(stepper, **gains)
    others = sum(isinstance(each, CoupledSkeleton) for each in builder.GetSystems())
    builder.AddNamedSystem(system.get_name() + f"_{others + 1}" * bool(others), system)
    _pose(builder, system, scene_graph, plant.get_source_id())
    _show(builder, system, scene_graph, fem.space.mesh, shown=meshcat is None)
    if meshcat is not None:
        _draw(builder, system, meshcat, path)
    return system


def _dressed(plant, scene_graph, read):
    """All skins as one on the plant: its context in the rest pose, elements, glue,
    gains of all servos by name, and cavities."""
    joints = {name: at for _, each, _ in read for name, at in each.joints.items()}
    context = _posed_context(plant, scene_graph, joints)
    skins = [replace(each, joints=joints) for _, each, _ in read]
    parts = [
        dress(plant, context, path, each, mesh)
        for each, (path, _, mesh) in zip(skins, read)
    ]
    gains = _gains(plant, [glue for _, glue in parts], skins)
    fem, glue = _joined(parts, skins) if len(parts) > 1 else parts[0]
    first = np.cumsum([0, *(len(mesh.vertices) for _, _, mesh in read)])
    cavities = [
        cavity_of(fem, name, np.array(where) + n)
        for n, skin in zip(first, skins)
        for name, where in skin.cavities.items()
    ]
    return context, fem, glue, gains, cavities


def _joined(
    parts: Sequence[tuple[FemModel, Glue]], skins: Sequence[SkinDescription]
) -> tuple[FemModel, Glue]:
    """Skins as the pieces of one: its elements, and its glue."""
    meshes = [fem.space.mesh for fem, _ in parts]
    materials = [one for fem, _ in parts for one in fem.materials]
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    named = np.cumsum([0, *(len(mesh.regions) for mesh in meshes)])
    region = [n + np.searchsorted(m.regions, m.region) for n, m in zip(named, meshes)]
    mesh = TetMesh(
        np.concatenate([each.vertices for each in meshes]),
        np.concatenate([n + each.tets for n, each in zip(first, meshes)]),
        np.concatenate(region),
    )
    second = [
        n + m.regions.index(each)
        for n, m, skin in zip(named, meshes, skins)
        for each in skin.second_order
    ]
    fem = build_model(mesh, dict(enumerate(materials)), quadratic=second)
    held = [glue.vertices < len(m.vertices) for m, (_, glue) in zip(meshes, parts)]
    glue = Glue(
        np.concatenate([n + g.vertices[h] for n, h, (_, g) in zip(first, held, parts)]),
        sum((g.bodies[: h.sum()] for h, (_, g) in zip(held, parts)), ()),
        np.concatenate([g.p_BG[h] for h, (_, g) in zip(held, parts)]),
    )
    owner = np.searchsorted(first, glue.vertices, side="right")
    tree = cKDTree(mesh.vertices[glue.vertices])
    near = tree.query_pairs(1e-6, output_type="ndarray")
    shared = near[owner[near[:, 0]] != owner[near[:, 1]]]
    if len(shared):
        raise InvalidInput(
            f"add_skin: two skins share glue at {len(shared)} points of body "
            f"{glue.bodies[shared[0, 0]]!r}; join their meshes, or move one"
        )
    return fem, glue_midside(glue, fem.space)


def _gains(
    plant: MultibodyPlant, glues: Sequence[Glue], skins: Sequence[SkinDescription]
) -> dict[str, np.ndarray]:
    """Gains of all servos (m,): those of the robot's skin, or else of the first."""
    held = [find_body(plant, glue.bodies[0]) for glue in glues]
    robot = robot_numbers(plant, [glue.bodies[0] for glue in glues])
    ours = robot[[int(body.index()) for body in held]]
    driven = [int(joint.child_body().index()) for joint in driven_joints(plant)]
    of = [skins[int(np.argmax(ours == each))].servos for each in robot[driven]]
    return {
        gain.name: np.array([getattr(one, gain.name) for one in of])
        for gain in fields(ServoGains)
    }


def _pose(builder, system: CoupledSkeleton, scene_graph: SceneGraph, source) -> None:
    """Connects the poses of the plant's shapes, which only the system may touch."""
    poses = scene_graph.get_source_pose_port(source)
    builder.Connect(system.GetOutputPort("geometry_pose"), poses)
    # Other plants of the diagram know none of these shapes, and end the simulation
    # where SceneGraph's contact has one.
    inspector = scene_graph.model_inspector()
    for id in inspector.GetAllGeometryIds(Role.kProximity):
        if inspector.BelongsToSource(id, source):
            scene_graph.RemoveRole(source, id, Role.kProximity)


def _show(builder, system: CoupledSkeleton, scene_graph, mesh, *, shown: bool) -> None:
    """Connects the skin as a geometry that cameras see, and visualizers if `shown`."""
    file = InMemoryMesh(mesh_file=MemoryFile(_vtk(mesh), ".vtk", "skin"))
    instance = GeometryInstance(RigidTransform(), Mesh(file), system.get_name())
    seen = PerceptionProperties()
    seen.AddProperty("phong", "diffuse", Rgba(*COLOUR))
    seen.AddProperty("label", "id", RenderLabel.kDontCare)
    instance.set_perception_properties(seen)
    if shown:
        instance.set_illustration_properties(MakePhongIllustrationProperties(COLOUR))
    source = scene_graph.RegisterSource()
    world = scene_graph.world_frame_id()
    id = scene_graph.RegisterDeformableGeometry(source, world, instance, 1.0)
    moved = scene_graph.get_source_configuration_port(source)
    builder.Connect(system.declare_configuration(id), moved)


def _vtk(mesh: TetMesh) -> str:
    """The mesh as a legacy .vtk file of text, which is what Drake reads."""
    n, m = len(mesh.vertices), len(mesh.tets)
    points = "\n".join(" ".join(map(repr, p)) for p in mesh.vertices.tolist())
    cells = "\n".join("4 " + " ".join(map(str, tet)) for tet in mesh.tets.tolist())
    return (
        "# vtk DataFile Version 3.0\nskin\nASCII\nDATASET UNSTRUCTURED_GRID\n"
        f"POINTS {n} double\n{points}\nCELLS {m} {5 * m}\n{cells}\n"
        f"CELL_TYPES {m}\n" + "10\n" * m
    )


def _draw(builder: DiagramBuilder, system: CoupledSkeleton, meshcat, path: str) -> None:
    """Connects a drawing of the skin, coloured up to a fifth of its least modulus."""
    fem = system.stepper.model
    softest = min(material.youngs_modulus for material in fem.materials)
    drawing = SkinDrawing(meshcat, fem, 0.2 * softest, path)
    builder.AddNamedSystem(f"{drawing.get_name()}_of_{system.get_name()}", drawing)
    for name in ("vertices", "stress"):
        builder.Connect(system.GetOutputPort(name), drawing.GetInputPort(name))


def _scene_graph(builder: DiagramBuilder, plant: MultibodyPlant) -> SceneGraph:
    """The scene graph of a plant that is not itself in the builder.

    Raises:
        InvalidInput: for a plant in the builder, without its scene graph, or with a
            skin.
    """
    systems = builder.GetSystems()
    if any(system is plant for system in systems):
        raise InvalidInput(
            "add_skin: the plant is in the builder, where it would move by itself; "
            "make it by MultibodyPlant(0.0) and RegisterAsSourceForSceneGraph"
        )
    source = plant.get_source_id() if plant.geometry_source_is_registered() else None
    graphs = [system for system in systems if isinstance(system, SceneGraph)]
    for graph in graphs if source is not None else ():
        if graph.model_inspector().SourceIsRegistered(source):
            if builder.IsConnectedOrExported(graph.get_source_pose_port(source)):
                raise InvalidInput("add_skin: the plant has a skin; it can have one")
            return graph
    raise InvalidInput(
        "add_skin: the plant is not registered with a scene graph in the builder; "
        "call plant.RegisterAsSourceForSceneGraph before you parse"
    )


def _posed_context(
    plant: MultibodyPlant, scene_graph: SceneGraph, joints: dict[str, float]
) -> Context:
    """A context of the plant alone in the skin's rest pose, which knows its shapes."""
    context, graph = plant.CreateDefaultContext(), scene_graph.CreateDefaultContext()
    plant.SetPositions(context, rest_positions(plant, joints))
    # Only the shapes are asked for, so any poses do, of other plants too.
    inspector = scene_graph.model_inspector()
    for source in inspector.GetAllSourceIds():
        poses, shapes = FramePoseVector(), GeometryConfigurationVector()
        for frame in inspector.FramesForSource(source) - {scene_graph.world_frame_id()}:
            poses.set_value(frame, RigidTransform())
        for id in inspector.GetAllDeformableGeometryIds():
            if inspector.BelongsToSource(id, source):
                mesh = inspector.GetReferenceMesh(id)
                shapes.set_value(id, np.zeros(3 * mesh.num_vertices()))
        if poses.size():
            scene_graph.get_source_pose_port(source).FixValue(graph, poses)
        if shapes.size():
            scene_graph.get_source_configuration_port(source).FixValue(graph, shapes)
    query = scene_graph.get_query_output_port().Eval(graph)
    plant.get_geometry_query_input_port().FixValue(context, AbstractValue.Make(query))
    return context
