"""References for the glued hinge: rest by Newton, scikit-fem, converged steps.

A module without a command: `skin.py` runs it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, newton
from skin_hinge import ARM, BASE, GluedHinge, turned

from drakebots.fem import ImplicitEuler, at_rest, equilibrium
from drakebots.fem.assembly import FemModel, build_model, elastic_force
from drakebots.fem.solver import Prescribed


def glued_nodes(problem: GluedHinge, model: FemModel) -> dict[str, np.ndarray]:
    """Nodes on each link: its vertices, and P2 nodes between two of them."""
    first = len(problem.mesh.vertices)
    out = {}
    for name, ids in problem.glued.items():
        between = np.isin(model.space.midside, ids).all(axis=1)
        out[name] = np.concatenate([ids, first + np.flatnonzero(between)])
    return out


def held(problem: GluedHinge, angle: float, model: FemModel) -> Prescribed:
    """The glue's places at an angle of the hinge."""
    glued, rest = glued_nodes(problem, model), model.rest
    nodes = np.concatenate([glued[BASE], glued[ARM]])
    places = np.concatenate([rest[glued[BASE]], turned(rest[glued[ARM]], angle)])
    return Prescribed(nodes, places)


def moment(
    problem: GluedHinge, model: FemModel, x: np.ndarray, forces: np.ndarray
) -> float:
    """About y, of forces (N, 3) on the arm's glue [N m]."""
    ids = glued_nodes(problem, model)[ARM]
    return float(np.cross(x[ids], forces[ids])[:, 1].sum())


def skin_moment(
    problem: GluedHinge, angle: float, model: FemModel
) -> tuple[float, np.ndarray]:
    """Moment of the arm on the skin at rest, M(angle) [N m], and positions."""
    found = equilibrium(model, held(problem, angle, model), gravity=(0, 0, 0))
    if not found.converged:
        raise RuntimeError(found.message)
    x = found.positions
    return moment(problem, model, x, -elastic_force(model, x)), x


def settled(problem: GluedHinge) -> tuple[float, float]:
    """Angle [rad] and servo torque [N m] at rest, by Newton and a root search."""
    model = build_model(problem.mesh, problem.material)

    def unbalanced(angle):
        torque = problem.stiffness * (problem.target - angle)
        return torque - skin_moment(problem, angle, model)[0]

    angle = brentq(unbalanced, 0.0, problem.target, xtol=1e-10, rtol=1e-9)
    return angle, problem.stiffness * (problem.target - angle)


class Converged:
    """Implicit Euler solved to the end: Newton for the skin, a root for the angle.

    What the engines' single or loosely converged solves approximate.
    """

    def __init__(self, problem: GluedHinge):
        self.problem = problem
        self.model = build_model(problem.mesh, problem.material)
        self.state = at_rest(self.model)
        self.angle, self._rate = 0.0, 0.0

    def step(self) -> None:
        """One step."""
        p, old = self.problem, self.state

        def after(angle):
            euler = ImplicitEuler(
                self.model,
                p.dt,
                method="newton",
                prescribed=held(p, angle, self.model),
                gravity=(0, 0, 0),
            )
            result = euler.step(old)
            if not result.converged:
                raise RuntimeError(result.message)
            return result.state

        def unbalanced(angle):
            new = after(angle)
            push = self.model.node_mass[:, None] * (
                new.velocities - old.velocities
            ) / p.dt - elastic_force(self.model, new.positions)
            skin = moment(p, self.model, new.positions, push)
            rate = (angle - self.angle) / p.dt
            inertia = p.mass * p.radius**2 * (rate - self._rate) / p.dt
            servo = p.stiffness * (p.target - angle) - p.damping * rate
            return servo - skin - inertia

        guess = self.angle + p.dt * self._rate
        angle = newton(unbalanced, guess, x1=guess + 1e-4, tol=1e-9)
        self.state, self._rate = after(angle), (angle - self.angle) / p.dt
        self.angle = float(angle)


def neo_hookean(F, D, mu, lam):
    """P (3, 3, ..) of the paper's neo-Hookean and its change along D."""
    inverse, log = _inverse(F), np.log(_det(F))
    turned_in = np.einsum("ji...->ij...", inverse)
    P = mu * F + (lam * log - mu) * turned_in
    # d F^-T = -F^-T D' F^-T
    back = np.einsum("ji...,kj...,lk...->il...", inverse, D, inverse)
    dP = mu * D - (lam * log - mu) * back
    return P, dP + lam * np.einsum("ij...,ji...->...", inverse, D) * turned_in


def drake_neo_hookean(F, D, mu, lam):
    """The same of Drake's: mu F + lambda (J - 1 - mu/lambda) cof F.

    (multibody/fem/neohookean_model.cc; its lambda is Lame's, so that at small
    strain it is softer in volume, lambda - mu.)
    """
    inverse, J = _inverse(F), _det(F)
    turned_in = np.einsum("ji...->ij...", inverse)
    along = np.einsum("ij...,ji...->...", inverse, D)
    back = np.einsum("ji...,kj...,lk...->il...", inverse, D, inverse)
    push = lam * (J - 1) - mu
    P = mu * F + push * J * turned_in
    dP = mu * D + (lam * J + push) * J * along * turned_in - push * J * back
    return P, dP


def _det(F):
    return np.einsum("i...,i...->...", F[0], np.cross(F[1], F[2], axis=0))


def _inverse(F):
    rows = [np.cross(F[(i + 1) % 3], F[(i + 2) % 3], axis=0) for i in range(3)]
    return np.stack(rows, axis=1) / _det(F)


def scikit_fem_moment(
    problem: GluedHinge, angle: float, order: int = 1, law=neo_hookean
) -> float:
    """M(angle) [N m] by scikit-fem: an assembly and a Newton loop of its own.

    Args:
        problem, angle: as for :func:`skin_moment`.
        order: of the elements; 2 puts nodes on the edges, glued where both ends are.
        law: (F, D, mu, lambda) -> (P, dP).
    """
    import skfem
    from skfem.helpers import ddot, grad

    mesh = skfem.MeshTet(problem.mesh.vertices.T.copy(), problem.mesh.tets.T.copy())
    scalar = skfem.ElementTetP1() if order == 1 else skfem.ElementTetP2()
    basis = skfem.Basis(mesh, skfem.ElementVector(scalar), intorder=2 * (order - 1))
    mu, lam = problem.material.lame

    @skfem.BilinearForm
    def tangent(u, v, w):
        return ddot(law(w["F"], grad(u), mu, lam)[1], grad(v))

    @skfem.LinearForm
    def inner(v, w):
        return ddot(law(w["F"], np.zeros_like(w["F"]), mu, lam)[0], grad(v))

    eye = np.eye(3)[:, :, None, None]
    rest = basis.doflocs.T
    on = {}
    for link, ids in problem.glued.items():
        edges = np.flatnonzero(np.isin(mesh.edges, ids).all(axis=0))
        parts = [basis.nodal_dofs[:, ids].T]
        if order == 2:
            parts.append(basis.edge_dofs[:, edges].T)
        on[link] = np.concatenate(parts)
    fixed = np.concatenate([dofs.ravel() for dofs in on.values()])
    u = np.zeros(basis.N)
    arm = on[ARM]
    places = rest[arm[:, 0]]
    moved = (turned(places, angle) - places).ravel()
    step = np.zeros(basis.N)
    step[arm.ravel()] = moved
    for _ in range(30):
        F = eye + basis.interpolate(u).grad
        K, r = tangent.assemble(basis, F=F), inner.assemble(basis, F=F)
        push = skfem.solve(*skfem.condense(K, -r, x=step, D=fixed))
        t = 1.0
        while _det(eye + basis.interpolate(u + t * push).grad).min() <= 0:
            t /= 2
        u, step = u + t * push, (1 - t) * step
        if np.abs(push).max() < 1e-9:
            break
    else:
        raise RuntimeError("scikit-fem: Newton did not converge")
    r = inner.assemble(basis, F=eye + basis.interpolate(u).grad)
    return float(np.cross(places + u[arm], r[arm])[:, 1].sum())
