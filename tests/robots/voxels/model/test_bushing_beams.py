"""Beams as bushings at their midpoints: the Euler-Bernoulli beam, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces

from drakebots import InvalidInput
from drakebots.lattice.frame import Load, Supports, lattice_frame, solve_frame
from drakebots.lattice.shape import Lattice, Strut, block
from tests.helpers.bushing_beams import (
    add_bushing_beams,
    beam_constants,
    relative_motion,
)

FORCE = 0.5


def euler_bernoulli(strut: Strut, L: float) -> np.ndarray:
    """The textbook's 12 x 12."""
    K = np.zeros((12, 12))
    for dof, k in ((0, strut.E * strut.area / L), (3, strut.G * strut.J / L)):
        K[np.ix_([dof, dof + 6], [dof, dof + 6])] = k * np.array([[1, -1], [-1, 1]])
    for u, t, I2, s in ((1, 5, strut.I1, 1), (2, 4, strut.I2, -1)):
        k = strut.E * I2 / L**3
        rows = [u, t, u + 6, t + 6]
        a, b = 6 * L * s, L**2
        K[np.ix_(rows, rows)] = k * np.array(
            [
                [12, a, -12, a],
                [a, 4 * b, -a, 2 * b],
                [-12, -a, 12, -a],
                [a, 2 * b, -a, 4 * b],
            ]
        )
    return K


@pytest.mark.parametrize("strut", [Strut(), Strut(2e-3, 1e-3)])
def test_the_bushing_is_the_beam(strut):
    L = 0.0539
    torque, force = beam_constants(strut, L)
    B = relative_motion(L)
    K = B.T @ np.diag([*force, *torque]) @ B
    assert pytest.approx(euler_bernoulli(strut, L), abs=1e-15 * K.max()) == K


def built(lattice: Lattice):
    plant = MultibodyPlant(0.0)
    beams = add_bushing_beams(plant, lattice)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    beams.place_at_rest(context)
    return plant, beams, context


def extension(plant, beams, context, first: int, second: int) -> float:
    """Of two nodes under a pair of forces [m], by the plant's linear stiffness."""
    q0 = plant.GetPositions(context)
    nv, h = plant.num_velocities(), 1e-6
    N = plant.MakeVelocityToQDotMap(context).todense()

    def load(q):
        plant.SetPositions(context, q)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        return plant.CalcInverseDynamics(context, np.zeros(nv), forces)

    steps = h * np.asarray(N).T
    K = np.array([(load(q0 + s) - load(q0 - s)) / (2 * h) for s in steps]).T
    plant.SetPositions(context, q0)
    world = plant.world_frame()

    def height(n):
        frame = beams.bodies[n].body_frame()
        kind = JacobianWrtVariable.kV
        J = plant.CalcJacobianTranslationalVelocity(
            context, kind, frame, np.zeros(3), world, world
        )
        return J[2]

    apart = height(second) - height(first)
    return float(apart @ np.linalg.lstsq(K, FORCE * apart, rcond=1e-9)[0])


def test_stiffness_is_the_frame_fem():
    lattice = block(2, 2, 2)
    first, second = lattice.node((2, 1, 1)), lattice.node((2, 1, 3))
    frame = lattice_frame(lattice)
    forces, held = np.zeros((len(frame), 6)), np.zeros((len(frame), 6), bool)
    forces[[first, second], 2] = -FORCE, FORCE
    load = Load(force=forces)
    fem = solve_frame(frame, Supports(held, floating=True), load).apart(first, second)
    plant, beams, context = built(lattice)
    assert plant.num_velocities() == 216
    assert plant.num_force_elements() - 1 == 96
    found = extension(plant, beams, context, first, second)
    assert fem == pytest.approx(0.8110e-3, abs=1e-7)
    assert found / fem == pytest.approx(1.0, abs=1e-6)


def test_mass_and_rest():
    lattice = block(2, 1, 1)
    plant, beams, context = built(lattice)
    assert plant.CalcTotalMass(context) == pytest.approx(2 * 1.814e-3)
    assert beams.node_positions(context) == pytest.approx(lattice.positions)


def test_too_many_voxels():
    with pytest.raises(InvalidInput, match="use at most 8, or rigid octahedra"):
        add_bushing_beams(MultibodyPlant(0.0), block(3, 3, 1))


@pytest.mark.parametrize(
    "options", [{"voxel_mass": 0.0}, {"damping": -1.0}, {"axial": np.nan}]
)
def test_numbers_out_of_range(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        add_bushing_beams(MultibodyPlant(0.0), block(1, 1, 1), **options)
