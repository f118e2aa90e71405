"""The glued hinge in this engine, in Drake's deformables and in MuJoCo's flex.

A module without a command: `skin.py` runs them.
"""

from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path

import meshio
import numpy as np
from pydrake.geometry import Box, GeometryInstance, Mesh
from pydrake.math import RigidTransform
from pydrake.multibody.fem import DeformableBodyConfig, MaterialModel
from pydrake.multibody.tree import PdControllerGains
from pydrake.systems.analysis import Simulator
from skin_hinge import ARM, BASE, GluedHinge, build_plant

from drakebots.fem.assembly import build_model
from drakebots.skin.coupled import CoupledStepper, Servo, glue_vertices

_AXES = ("1 0 0", "0 1 0", "0 0 1")


class Ours:
    """drakebots: one linear solve a frame, glue eliminated; options of its stepper."""

    def __init__(self, problem: GluedHinge, **options):
        self.problem = problem
        plant, diagram = build_plant(problem)
        context = plant.GetMyMutableContextFromRoot(diagram.CreateDefaultContext())
        self.model = build_model(problem.mesh, problem.material)
        glue = glue_vertices(problem.mesh.vertices, plant, context, problem.glued)
        self.stepper = CoupledStepper(
            plant, self.model, glue, problem.dt, context=context, **options
        )
        self.servo = Servo(problem.stiffness, problem.damping, [problem.target])
        self.state = self.stepper.start()

    def step(self) -> None:
        """One frame."""
        result = self.stepper.step(self.state, servo=self.servo)
        if not result.converged:
            raise RuntimeError(result.message)
        self.state = result.state

    @property
    def angle(self) -> float:
        """Of the hinge [rad]."""
        return float(self.state.q[0])


class Drake:
    """Drake's DeformableModel in a Simulator.

    It steps the skin without its glue and puts the glue back by the tangent of where
    that ends. Where the tangent changes, so with all but the linear corotated
    material, the angle at rest depends on dt (tests/skin/coupled/test_peers.py).
    """

    def __init__(self, problem: GluedHinge, kind: MaterialModel):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "skin.vtk"
            skin = partial(_add_drake_skin, problem=problem, kind=kind, path=path)
            plant, diagram = build_plant(problem, skin)
        self.problem, self.plant = problem, plant
        self._simulator = Simulator(diagram)
        root = self._simulator.get_mutable_context()
        self.context = plant.GetMyMutableContextFromRoot(root)
        port = plant.get_desired_state_input_port(
            plant.GetModelInstanceByName("DefaultModelInstance")
        )
        port.FixValue(self.context, [problem.target, 0.0])
        self._simulator.Initialize()
        self._steps = 0

    @property
    def vertices(self) -> np.ndarray:
        """Of the skin (N, 3) [m]."""
        model = self.plant.deformable_model()
        return model.GetPositions(self.context, model.GetBodyByName("skin").body_id()).T

    def step(self) -> None:
        """One discrete update."""
        self._steps += 1
        self._simulator.AdvanceTo(self._steps * self.problem.dt)

    @property
    def angle(self) -> float:
        """Of the hinge [rad]."""
        return float(self.plant.GetPositions(self.context)[0])


def _add_drake_skin(plant, actuator, problem, kind, path):
    actuator.set_controller_gains(
        PdControllerGains(p=problem.stiffness, d=problem.damping)
    )
    # VTK 9.1 in Drake reads no newer format, and no regions.
    cells = [("tetra", problem.mesh.tets)]
    meshio.write(path, meshio.Mesh(problem.mesh.vertices, cells), "vtk42")
    material, config = problem.material, DeformableBodyConfig()
    config.set_youngs_modulus(material.youngs_modulus)
    config.set_poissons_ratio(material.poisson_ratio)
    config.set_mass_density(material.density)
    config.set_mass_damping_coefficient(material.mass_damping)
    config.set_stiffness_damping_coefficient(material.stiffness_damping)
    config.set_material_model(kind)
    model = plant.mutable_deformable_model()
    shape = GeometryInstance(RigidTransform(), Mesh(str(path)), "skin")
    skin = model.RegisterDeformableBody(shape, config, 1.0)
    # Drake glues the vertices inside a shape: a box beyond each cut.
    reach = 4 * np.abs(problem.mesh.vertices).max()
    for name, side in ((BASE, -1), (ARM, 1)):
        X_BG = RigidTransform([0, 0, side * (problem.cut + reach / 2)])
        model.AddFixedConstraint(
            skin,
            plant.GetBodyByName(name),
            RigidTransform(),
            Box(reach, reach, reach),
            X_BG,
        )


class Mujoco:
    """MuJoCo's flex: St. Venant-Kirchhoff, its `discrete` integrator, matrix-free CG.

    A glued vertex names its link's body, so glue is exact; a free vertex is a body
    on three slides.

    Args:
        problem: the hinge.
        iterations, tolerance: of CG; MuJoCo does not say how many it took.
        like: another of the same problem, whose compiled model is used.

    Attributes:
        residual: the largest relative residual MuJoCo warned of; None when every
            solve met the tolerance.
    """

    def __init__(
        self,
        problem: GluedHinge,
        iterations: int = 20000,
        tolerance: float = 1e-12,
        like: Mujoco | None = None,
    ):
        import mujoco

        self.problem, self._mujoco = problem, mujoco
        self.iterations, self.tolerance = iterations, tolerance
        self.residual = None
        if like is None:
            # It warns that the flex may hang loose; the elasticity holds it.
            xml = _mujoco_xml(problem)
            self.model, _ = self._listening(mujoco.MjModel.from_xml_string, xml)
        else:
            self.model = like.model
        self.data = mujoco.MjData(self.model)
        self.data.ctrl[0] = problem.target

    def _listening(self, call, *arguments):
        said = []
        self._mujoco.set_mju_user_warning(said.append)
        try:
            return call(*arguments), said
        finally:
            self._mujoco.set_mju_user_warning(None)

    def step(self) -> None:
        """One step."""
        option = self.model.opt
        option.iterations, option.tolerance = self.iterations, self.tolerance
        # Only the first warning of a kind is reported.
        for warning in self.data.warning:
            warning.number = 0
        _, said = self._listening(self._mujoco.mj_step, self.model, self.data)
        for text in said:
            found = re.search(r"relative residual of ([0-9.]+e[+-]\d+)", text)
            if found is not None:
                self.residual = max(float(found.group(1)), self.residual or 0.0)
            elif "effective-metric solve failed" not in text:  # reported with the first
                raise RuntimeError(f"MuJoCo: {text}")

    @property
    def angle(self) -> float:
        """Of the hinge [rad]."""
        return float(self.data.qpos[0])


def _mujoco_xml(problem):
    vertices = problem.mesh.vertices
    mass = build_model(problem.mesh, problem.material).node_mass
    owner = {int(v): name for name, ids in problem.glued.items() for v in ids}
    slides = "".join(f'<joint type="slide" axis="{a}"/>' for a in _AXES)
    bodies, names, places = [], [], []
    for k, v in enumerate(vertices.tolist()):
        place = "{:.17g} {:.17g} {:.17g}".format(*v)
        names.append(owner.get(k, f"v{k}"))
        places.append(place if k in owner else "0 0 0")
        if k not in owner:
            bodies.append(
                f'<body name="v{k}" pos="{place}"><inertial pos="0 0 0" '
                f'mass="{mass[k]:.17g}" diaginertia="1e-9 1e-9 1e-9"/>{slides}</body>'
            )
    # What is glued to the arm weighs in the arm, as in the other engines.
    glued = problem.glued[ARM]
    carried = mass[glued] @ (vertices[glued][:, [0, 2]] ** 2).sum(axis=1)
    inertia = " ".join([f"{problem.mass * problem.radius**2 + carried:.17g}"] * 3)
    material = problem.material
    tets = " ".join(map(str, problem.mesh.tets.ravel().tolist()))
    return f"""<mujoco><compiler angle="radian"/>
<option timestep="{problem.dt}" gravity="0 0 0" integrator="discrete"
 solver="CG"/><size memory="1G"/>
<worldbody><body name="{BASE}"/><body name="{ARM}">
<inertial pos="0 0 0" mass="{problem.mass}" diaginertia="{inertia}"/>
<joint name="hinge" axis="0 1 0"/></body>{"".join(bodies)}</worldbody>
<deformable><flex name="skin" dim="3" radius="1e-4" body="{" ".join(names)}"
 vertex="{" ".join(places)}" element="{tets}">
<contact contype="0" conaffinity="0" selfcollide="none"/>
<elasticity young="{material.youngs_modulus}" poisson="{material.poisson_ratio}"
 damping="0"/></flex></deformable>
<actuator><position joint="hinge" kp="{problem.stiffness}" kv="{problem.damping}"/>
</actuator></mujoco>"""
