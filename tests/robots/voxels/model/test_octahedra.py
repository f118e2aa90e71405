"""A lattice as rigid octahedra in a plant, through the API and as SDF."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    DiscreteContactApproximation,
    ExternallyAppliedSpatialForce,
    MultibodyPlant,
)
from pydrake.multibody.tree import MultibodyForces
from pydrake.systems.analysis import Simulator

from drakebots import InvalidInput
from drakebots.lattice.frame import Load, Supports, lattice_frame, solve_frame
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import Lattice, Strut, block
from drakebots.robots.voxels.model import (
    FEET,
    MARKERS,
    Actuators,
    Feet,
    Foot,
    Octahedra,
    OctahedraPlant,
    node_positions,
    octahedra_sdf,
    place_at_rest,
    rest_pose,
    walker,
)
from tests.helpers.octahedra_in_code import add_octahedra, gaps
from tests.helpers.scripts import load_script

PAIR = ((2, 1, 1), (2, 1, 3))


def discrete(time_step: float = 1e-3) -> MultibodyPlant:
    plant = MultibodyPlant(time_step)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kLagged)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    return plant


def in_code(cut: Octahedra, **options):
    plant = discrete(**options)
    built = add_octahedra(plant, cut)
    plant.Finalize()
    return built


def from_sdf(cut: Octahedra, **options):
    plant = discrete(**options)
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.AddModelsFromString(octahedra_sdf(cut), "sdf")
    plant.Finalize()
    return OctahedraPlant(cut, plant)


BUILDERS = pytest.mark.parametrize("builder", [in_code, from_sdf])


@pytest.mark.parametrize(
    "size, velocities, loops, shared",
    [
        ((1, 1, 1), 6, 0, 0),
        ((2, 1, 1), 9, 0, 1),
        ((2, 2, 2), 27, 5, 12),
        ((3, 3, 3), 84, 28, 54),
    ],
)
@BUILDERS
def test_counts(builder, size, velocities, loops, shared):
    cut = Octahedra(block(*size))
    plant = builder(cut).plant
    assert plant.num_velocities() == velocities
    assert plant.num_constraints() == loops == len(cut.loops)
    assert plant.num_force_elements() - 1 == shared == len(cut.shared)
    assert plant.num_bodies() - 1 == np.prod(size)
    mass = plant.CalcTotalMass(plant.CreateDefaultContext())
    assert mass == pytest.approx(1.814e-3 * np.prod(size))


@BUILDERS
def test_nodes_stand_where_the_lattice_has_them(builder):
    cut = Octahedra(block(2, 3, 2))
    built = builder(cut)
    context = built.plant.CreateDefaultContext()
    place_at_rest(built, context)
    assert node_positions(cut, built.poses(context)) == pytest.approx(
        cut.lattice.positions
    )
    assert gaps(built, context).max() < 1e-15
    X = RigidTransform(RollPitchYaw(0.1, 0.2, 0.3), [1.0, 2.0, 3.0])
    place_at_rest(built, context, X)
    assert node_positions(cut, built.poses(context)) == pytest.approx(
        cut.lattice.positions @ X.rotation().matrix().T + X.translation()
    )


def test_both_builders_give_the_same_mass_matrix_and_springs():
    cut = Octahedra(block(2, 2, 2))
    found = []
    for builder in (in_code, from_sdf):
        built = builder(cut)
        plant, context = built.plant, built.plant.CreateDefaultContext()
        place_at_rest(built, context)
        rng = np.random.default_rng(3)
        for shared in cut.tree:
            joint = plant.GetJointByName(f"node_{shared.node}")
            joint.set_angles(context, rng.uniform(-0.1, 0.1, 3))
        poses = built.poses(context)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        still = np.zeros(plant.num_velocities())
        torques = plant.CalcInverseDynamics(context, still, forces)
        modes = np.linalg.eigvalsh(plant.CalcMassMatrix(context))
        found.append((poses, np.sort(torques), modes))
    for a, b in zip(*found):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12)
    assert abs(found[0][1]).max() > 1e-3


def test_inertia_is_that_of_twelve_rods():
    cut = Octahedra(block(1, 1, 1), masses=9.0)
    r = cut.lattice.pitch / 2
    assert cut.inertia(0) == pytest.approx(4 / 9 * 9.0 * r**2 * np.eye(3))


def relax(built, forces: float, seconds: float = 0.15) -> float:
    """Extension of a node pair under +-forces along it [m]."""
    cut, plant = built.octahedra, built.plant
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    place_at_rest(built, context)
    rows = [cut.lattice.node(place) for place in PAIR]
    applied = []
    for node, sign in zip(rows, (-1, 1)):
        voxel, _ = cut.lattice.voxel_of(node)
        force = ExternallyAppliedSpatialForce()
        force.body_index = built.bodies[voxel].index()
        force.p_BoBq_B = cut.in_body(voxel, node)
        force.F_Bq_W = SpatialForce(np.zeros(3), np.array([0, 0, sign * forces]))
        applied.append(force)
    plant.get_applied_spatial_force_input_port().FixValue(context, applied)
    simulator.AdvanceTo(seconds)
    assert gaps(built, context).max() < 1e-6
    p = node_positions(cut, built.poses(context))[rows]
    return float(p[1, 2] - p[0, 2] - cut.lattice.pitch)


def fem_extension(cut: Octahedra, force: float) -> float:
    frame = lattice_frame(cut.lattice, cut.strut)
    pair = [cut.lattice.node(place) for place in PAIR]
    forces, held = np.zeros((len(frame), 6)), np.zeros((len(frame), 6), bool)
    forces[pair, 2] = -force, force
    load = Load(force=forces)
    return solve_frame(frame, Supports(held, floating=True), load).apart(*pair)


@BUILDERS
def test_static_stiffness_is_the_fem_within_3_percent(builder):
    cut = Octahedra(block(2, 2, 2))
    fem = fem_extension(cut, 0.5)
    pull = relax(builder(cut), 0.5)
    assert fem == pytest.approx(0.8110e-3, abs=1e-7)
    assert pull == pytest.approx(0.7931e-3, abs=1e-6)
    assert pull / fem == pytest.approx(1.0, abs=0.03)


def test_most_of_the_difference_is_large_rotation():
    # Stiffness at rest, of which a linear FEM speaks: push and pull averaged.
    cut = Octahedra(block(2, 2, 2))
    mean = (relax(in_code(cut), 0.5) - relax(in_code(cut), -0.5)) / 2
    assert mean / fem_extension(cut, 0.5) == pytest.approx(0.9946, abs=2e-3)


def test_static_stiffness_of_3x3x3():
    # At small forces: further on, stiff octahedra lock (see octahedra.py).
    cut = Octahedra(block(3, 3, 3))
    found = relax(in_code(cut, time_step=5e-4), 0.05, 0.2)
    assert found / fem_extension(cut, 0.05) == pytest.approx(1.027, abs=3e-3)


def test_actuator_moves_the_plane_it_drives():
    cut = Octahedra(block(2, 2, 2))
    plant = discrete()
    built = add_octahedra(plant, cut)
    actuators = Actuators(built, [Control((2, 1, 1), "z", "blue")])
    plant.Finalize()
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    place_at_rest(built, context)
    assert actuators.lengths(context)[0] == pytest.approx(actuators.rest)
    for k in range(50):
        actuators.command(context, [actuators.rest - 2 * 2e-3 * (k + 1) / 50])
        simulator.AdvanceTo(0.004 * (k + 1))
    simulator.AdvanceTo(0.4)
    commanded = [actuators.rest - 4e-3]
    length, _ = actuators.lengths(context)
    # Elastic POM: 1.24 N per mm of a node.
    force = actuators.forces(commanded, *actuators.lengths(context))
    assert force[0] == pytest.approx(-2 * 1.236, rel=0.1)
    assert length == pytest.approx(commanded, abs=1e-4)
    assert gaps(built, context).max() < 1e-6


def test_masses_feet_and_lattices_that_cannot_be():
    with pytest.raises(InvalidInput, match="masses must be 8 finite"):
        Octahedra(block(2, 2, 2), masses=[1.0, 2.0])
    with pytest.raises(InvalidInput, match="> 0 kg"):
        Octahedra(block(2, 2, 2), masses=0.0)
    with pytest.raises(InvalidInput, match="2 pieces"):
        Octahedra(Lattice([(0, 0, 0), (2, 0, 0)]))
    with pytest.raises(InvalidInput, match="square struts"):
        Octahedra(block(2, 1, 1), Strut(1e-3, 2e-3)).stiffness  # noqa: B018
    with pytest.raises(InvalidInput, match="discrete"):
        add_octahedra(MultibodyPlant(0.0), Octahedra(block(2, 2, 1)))
    with pytest.raises(InvalidInput, match="radius must be > 0"):
        Foot("foot", (1, 1, 0), radius=0.0)
    with pytest.raises(InvalidInput, match="friction"):
        Foot("foot", (1, 1, 0), friction=2.0)
    cut = Octahedra(block(1, 1, 2))
    built = add_octahedra(discrete(), cut)
    with pytest.raises(InvalidInput, match="one rigid voxel"):
        Actuators(built, [Control((0, 1, 1), "x")])


def test_walker_is_the_robot():
    cut = walker()
    assert len(cut.names) == 10
    assert cut.masses.sum() == pytest.approx(61.828e-3)
    for place in (*MARKERS.values(), *FEET.values()):
        cut.lattice.node(place)
    rest = rest_pose()
    for foot in Feet().spheres():
        voxel, p = foot.place(cut)
        height = (rest + cut.centres[voxel] + p)[2]
        assert height == pytest.approx(foot.radius)


def test_model_is_what_its_parameters_make():
    script = load_script("make_voxel_model")
    assert script.main(["--check"]) == 0
