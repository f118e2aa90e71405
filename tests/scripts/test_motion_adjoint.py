"""Gradients of motions against differences of whole runs."""

from dataclasses import replace

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.fem.assembly import build_model
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.skin.coupled import Servo
from drakebots.skin.file import load_skinned
from tests.helpers.scripts import load_script
from tests.helpers.skinned_leg import DT, SOFT, Leg, skin_mesh

hollow_capsule = load_script("capsule_mesh").hollow_capsule
MotionCost, MotionGradient, Setup = load_script(
    "motion_adjoint", "MotionCost", "MotionGradient", "Setup"
)
link_length, meet_target, modulus, setup_of, thickness, wall_directions = load_script(
    "skin_parameters",
    "link_length",
    "meet_target",
    "modulus",
    "setup_of",
    "thickness",
    "wall_directions",
)

FRAMES = 5
BOTH = MotionCost(torque=2.0, tracking=30.0)


class Rig:
    """The box leg with parameters: modulus, density, width of the skin."""

    def __init__(self, base="hip", material=SOFT):
        self.leg, self.material = Leg(base), material
        self.glue = self.leg.glue(skin_mesh().vertices)
        self.home = self.leg.plant.GetPositions(self.leg.context).copy()

    def setup(self, material=None, wide=0.0):
        root = self.leg.diagram.CreateDefaultContext()
        context = self.leg.plant.GetMyMutableContextFromRoot(root)
        mesh = skin_mesh()
        moved = mesh.vertices * [1 + wide, 1, 1]
        moved[self.glue.vertices] = mesh.vertices[self.glue.vertices]
        model = build_model(
            TetMesh(moved, mesh.tets), self.material if material is None else material
        )
        return Setup(self.leg.plant, context, model, self.glue, self.home, root)

    def changed(self, name):
        def change(p):
            value = getattr(self.material, name) * (1 + p)
            return self.setup(replace(self.material, **{name: value}))

        return change

    def motion(self, cost=BOTH):
        m = self.leg.plant.num_actuators()
        at = 0.4 * np.sin(30 * DT * np.arange(1, FRAMES + 1))[:, None]
        targets = at * np.array([1.0, -1.5])[:m]
        return MotionGradient(
            self.setup(), targets, lambda q: Servo(20.0, 0.3, q), DT, cost
        )


def by_difference(motion, change, h):
    high, low = (motion.run(change(s * h)).cost for s in (1, -1))
    return (high - low) / (2 * h)


@pytest.mark.parametrize("base", ["hip", "free"])
@pytest.mark.parametrize(
    "cost", [BOTH, MotionCost(torque=1.0), MotionCost(tracking=1.0)]
)
def test_modulus_and_density(base, cost):
    rig = Rig(base)
    motion = rig.motion(cost)
    names = ("youngs_modulus", "density")
    found = motion.gradient(
        motion.run(), {name: (rig.changed(name), 1e-3) for name in names}
    )
    for name in names:
        want = by_difference(motion, rig.changed(name), 1e-3)
        assert found[name] == pytest.approx(want, rel=2e-6), name


def test_rest_shape():
    rig = Rig()
    motion = rig.motion()

    def change(p):
        return rig.setup(wide=p)

    found = motion.gradient(motion.run(), {"wide": (change, 1e-5)})["wide"]
    assert found == pytest.approx(by_difference(motion, change, 1e-4), rel=1e-5)


def test_damping_is_part_of_it():
    rig = Rig(material=replace(SOFT, stiffness_damping=4e-3, mass_damping=0.5))
    motion = rig.motion()
    change = rig.changed("youngs_modulus")
    found = motion.gradient(motion.run(), {"E": (change, 1e-3)})["E"]
    assert found == pytest.approx(by_difference(motion, change, 1e-3), rel=2e-6)


@pytest.mark.long
def test_the_printed_leg():
    robot = load_skinned("skinned_leg")
    targets = np.array([[0.05, -0.1], [0.1, -0.2]])
    motion = MotionGradient(setup_of(robot), targets, robot.servo, DT, BOTH)
    changes = {
        "all": (modulus(robot), 1e-3),
        "fold": (modulus(robot, robot.mesh.regions[-1]), 1e-3),
        "thigh": (link_length(robot, "knee"), 1e-5),
    }
    run = motion.run()
    found = motion.gradient(run, changes)
    for name, (change, h) in changes.items():
        want = by_difference(motion, change, max(h, 1e-4))
        assert found[name] == pytest.approx(want, rel=1e-5), name


def test_a_longer_thigh_moves_knee_and_glue_along():
    robot = load_skinned("skinned_leg")
    setup, longer = setup_of(robot), link_length(robot, "knee")(0.1)
    x, y = setup.start().skin.positions, longer.start().skin.positions
    assert np.abs(y - longer.model.rest).max() < 1e-12  # no strain at the start
    moved = (y - x)[robot.glue.vertices]
    shin = robot.glue.by_body()["shin"]
    thigh = robot.glue.by_body()["thigh"]
    assert np.abs(moved[shin] - moved[shin[0]]).max() < 1e-12
    step = np.linalg.norm(moved[shin[0]])
    assert step > 1e-3
    assert np.linalg.norm(moved[thigh], axis=1).max() < 1.5 * step


def test_walls_point_inward():
    t = 0.004
    mesh = hollow_capsule(1000, thickness=t)
    way = wall_directions(mesh)
    length = np.linalg.norm(way, axis=1)
    inner = length > 0
    assert 0.4 < inner.mean() < 0.6
    assert np.abs(length[inner] - t).max() < 0.1 * t
    thicker = TetMesh(mesh.vertices + 0.1 * way, mesh.tets)
    ratio = thicker.volumes.sum() / mesh.volumes.sum()
    assert 1.08 < ratio < 1.1
    with pytest.raises(InvalidInput, match="no closed shell"):
        wall_directions(box_mesh((1, 1, 1), (2, 2, 2)))


def test_newton_meets_a_target():
    def evaluate(p):
        return (1 + p) ** 0.7, 0.7 * (1 + p) ** -0.3

    steps = meet_target(evaluate, 0.5)
    assert 1 + steps[-1].value == pytest.approx(0.5 ** (1 / 0.7), rel=2e-3)
    with pytest.raises(NoSolution, match="nearest"):
        meet_target(evaluate, 0.5, bounds=(-0.1, 1.0))
    with pytest.raises(NoSolution, match="nearest"):
        meet_target(lambda p: (1.0, 0.0), 0.5)


def test_bad_input_is_named():
    robot = load_skinned("skinned_leg")
    with pytest.raises(UnknownName, match="region"):
        modulus(robot, 7)
    with pytest.raises(UnknownName, match="region"):
        thickness(robot, 7)
    with pytest.raises(UnknownName, match="joint"):
        link_length(robot, "elbow")
    with pytest.raises(InvalidInput, match="targets of 3"):
        MotionGradient(setup_of(robot), np.zeros((2, 3)), robot.servo, DT, BOTH)
