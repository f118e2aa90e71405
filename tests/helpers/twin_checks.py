"""Holds a CasADi twin to its Drake plant: every quantity agrees to 1e-10.

Agreement is relative to the size of what is compared. With m_i = sqrt(M_ii),
entries of M are held to m_i m_j, and generalized forces, by Cauchy-Schwarz, to

    m_i (|a|_M + rate |v|_M + sqrt(mass) g) + |applied_i|

where |x|_M is the norm of m_j x_j and `rate` the fastest turning rate; so the
small torques of a small robot in SI count as much as its forces.
"""

import types

import casadi as ca
import numpy as np
from pydrake.multibody.tree import BodyIndex, MultibodyForces

TOLERANCE = 1e-10


class Numbers:
    """The twin's expressions as one function of (q, v, vdot)."""

    def __init__(self, twin, loops=(), length_unit=1.0):
        q, v, a = (ca.SX.sym(n, k) for n, k in zip("qva", (twin.nq, twin.nv, twin.nv)))
        T = twin.kinetic_energy(q, v)
        poses = twin.poses(q)
        expressions = {
            "T": T,
            "V": twin.potential_energy(q),
            "M": ca.hessian(T, v)[0],
            "tau": twin.inverse_dynamics(q, v, a),
            "applied": twin.conservative_force(q) + twin.damping_force(q, v),
            "rates": twin.rates(q, v),
            "poses": ca.horzcat(
                *[ca.horzcat(poses[i].R, poses[i].p) for i in sorted(poses)]
            ),
            "loops": twin.loops(q, loops, length_unit),
        }
        self.names = list(expressions)
        self.function = ca.Function("twin", [q, v, a], list(expressions.values()))

    def __call__(self, q, v, a) -> types.SimpleNamespace:
        values = [np.array(x) for x in self.function(q, v, a)]
        squeezed = [x[:, 0] if x.shape[1] == 1 else x for x in values]
        return types.SimpleNamespace(**dict(zip(self.names, squeezed)))


def turning_rates(plant, v):
    """The velocities that are angular, among all."""
    slides = np.zeros(plant.num_velocities(), bool)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        linear = {
            "prismatic": [0],
            "planar": [0, 1],
            "rpy_floating": [3, 4, 5],
            "quaternion_floating": [3, 4, 5],
        }.get(joint.type_name(), [])
        slides[[joint.velocity_start() + k for k in linear]] = True
    return v[~slides]


def assert_close(value, expected, size):
    excess = np.abs(np.asarray(value) - expected) - TOLERANCE * np.asarray(size)
    assert (excess <= 0).all(), f"off by {np.abs(value - expected).max()}, size {size}"


def assert_twin_is_drake(plant, numbers, q, v, a, closure=None):
    """Compares everything at (q, v, vdot)."""
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    ours = numbers(q, v, a)

    bodies = [plant.get_body(BodyIndex(i)) for i in range(plant.num_bodies())]
    poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
    theirs = np.hstack([X.GetAsMatrix34() for X in poses])
    reach = np.abs(theirs[:, 3::4]).max()
    assert_close(ours.poses, theirs, np.tile([1.0, 1.0, 1.0, reach], len(poses)))

    M = plant.CalcMassMatrix(context)
    m = np.sqrt(np.diag(M))
    assert_close(ours.M, M, np.outer(m, m))
    assert_close(ours.T, 0.5 * v @ M @ v, 0.5 * (m @ np.abs(v)) ** 2)
    assert_close(ours.T, plant.CalcKineticEnergy(context), 0.5 * (m @ np.abs(v)) ** 2)

    applied, none = MultibodyForces(plant), MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, applied)
    tau = plant.CalcInverseDynamics(context, a, applied)
    force = plant.CalcInverseDynamics(context, a, none) - tau
    mass = plant.CalcTotalMass(context)
    g = np.linalg.norm(plant.gravity_field().gravity_vector())
    rate = np.abs(turning_rates(plant, v)).sum()
    size = np.linalg.norm(m * a) + rate * np.linalg.norm(m * v) + np.sqrt(mass) * g
    size = m * size + np.abs(force)
    assert_close(ours.tau, tau, size)
    assert_close(ours.applied, force, size)
    V = plant.CalcPotentialEnergy(context)
    assert_close(ours.V, V, abs(V) + 2 * mass * g * reach)

    qdot = plant.MapVelocityToQDot(context, v)
    assert_close(ours.rates, qdot, np.abs(qdot).max(initial=0.0))
    if closure is not None:
        lengths = [n < 3 for loop in closure.loops for n in range(loop.num_rows)]
        residual = closure.residual(context)
        assert_close(ours.loops, residual, np.where(lengths, reach, 1.0))


def unit_quaternions(plant, q):
    """q with every quaternion near one, of unit length."""
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.type_name() == "quaternion_floating":
            part = slice(joint.position_start(), joint.position_start() + 4)
            q[part] += [1, 0, 0, 0]
            q[part] /= np.linalg.norm(q[part])
    return q
