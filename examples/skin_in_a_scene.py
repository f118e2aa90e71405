"""A robot in its skin stands on a stair, a ball falls on its back, a camera looks on.

python examples/skin_in_a_scene.py scene.png

All bodies are in one plant, which `add_skin` takes over: the skin touches floor, stairs
and ball, and they touch each other.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from pydrake.geometry import (
    Box,
    ClippingRange,
    ColorRenderCamera,
    DepthRange,
    DepthRenderCamera,
    MakeRenderEngineVtk,
    RenderCameraCore,
    RenderEngineVtkParams,
    SceneGraph,
    Sphere,
)
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import CoulombFriction, MultibodyPlant
from pydrake.multibody.tree import SpatialInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.sensors import CameraInfo, RgbdSensor

from drakebots.model import package_root
from drakebots.skin import add_skin

robot = package_root() / "beetle"
builder = DiagramBuilder()
scene_graph = builder.AddSystem(SceneGraph())
scene_graph.AddRenderer("vtk", MakeRenderEngineVtk(RenderEngineVtkParams()))
plant = MultibodyPlant(time_step=0.0)  # stays outside: the skin's system moves it
plant.RegisterAsSourceForSceneGraph(scene_graph)
Parser(plant).AddModels(str(robot / "beetle.sdf"))


def add_shape(body, name, shape, X, colour):
    """A shape that is seen and touched."""
    plant.RegisterVisualGeometry(body, X, shape, name, np.array(colour))
    rough = CoulombFriction(0.8, 0.8)
    plant.RegisterCollisionGeometry(body, X, shape, name, rough)


world, grey = plant.world_body(), [0.75, 0.75, 0.72, 1.0]
add_shape(world, "floor", Box(2, 2, 0.1), RigidTransform([0, 0, -0.05]), grey)
for k in range(1, 4):
    stair = RigidTransform([0.3 + 0.08 * k, 0, 0.01 * k])
    add_shape(world, f"stair_{k}", Box(0.08, 0.5, 0.02 * k), stair, grey)
inertia = SpatialInertia.SolidSphereWithMass(0.2, 0.04)
ball = plant.AddRigidBody("ball", plant.AddModelInstance("ball"), inertia)
add_shape(ball, "ball", Sphere(0.04), RigidTransform(), [0.8, 0.2, 0.2, 1.0])
plant.Finalize()
plant.SetDefaultFloatingBaseBodyPose(ball, RigidTransform([-0.04, 0.0, 0.4]))

skinned = add_skin(builder, plant, robot / "beetle.skin.yaml")
builder.ExportInput(skinned.GetInputPort("desired_position"), "desired_position")
lens = CameraInfo(width=640, height=480, fov_y=np.pi / 5)
core = RenderCameraCore("vtk", lens, ClippingRange(0.01, 10.0), RigidTransform())
camera = RgbdSensor(
    scene_graph.world_frame_id(),
    RigidTransform(RollPitchYaw(-1.95, 0, 0.42), [0.72, -1.35, 0.72]),
    ColorRenderCamera(core),
    DepthRenderCamera(core, DepthRange(0.1, 5.0)),
)
camera = builder.AddSystem(camera)
query = scene_graph.get_query_output_port()
builder.Connect(query, camera.GetInputPort("geometry_query"))

diagram = builder.Build()
simulator = Simulator(diagram)
context = simulator.get_context()
stance = np.zeros(len(skinned.stepper.actuated))
diagram.GetInputPort("desired_position").FixValue(context, stance)
own = skinned.GetMyContextFromRoot(context)
for time in np.arange(0.05, 0.301, 0.05):
    simulator.AdvanceTo(time)
    forces = skinned.GetOutputPort("contact_results").Eval(own)
    state = skinned.GetOutputPort("ball_state").Eval(own)
    print(
        f"{time:.2f} s: ball at {1e3 * state[6]:.0f} mm, pushed by "
        f"{forces.on('ball')[2]:.1f} N; {len(forces.A)} contacts"
    )
picture = camera.color_image_output_port().Eval(camera.GetMyContextFromRoot(context))
plt.imsave(sys.argv[1] if len(sys.argv) > 1 else "scene.png", picture.data)
