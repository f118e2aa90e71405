"""Energies and momentum of a skin, and its nodes on some vertices."""

import numpy as np

from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel
from drakebots.fem.material import KINDS, stress_tangent
from drakebots.fem.material.materials import coefficients


def kinetic_energy(model: FemModel, state: SkinState) -> float:
    """Kinetic energy v'M v/2 [J]."""
    v = state.velocities.ravel()
    return float(0.5 * v @ model.pattern.multiply(model.mass, v))


def momentum(model: FemModel, state: SkinState) -> tuple[np.ndarray, np.ndarray]:
    """Linear (3,) [kg m/s] and angular momentum about the origin (3,) [kg m^2/s]."""
    p = model.pattern.multiply(model.mass, state.velocities.ravel()).reshape(-1, 3)
    return p.sum(axis=0), np.cross(state.positions, p).sum(axis=0)


def density_and_stress(material, F):
    """Energy density, P (3, 3) and dP/dF (9, 9) of a material at F (3, 3)."""
    P, T = np.empty((3, 3)), np.empty((9, 9))
    kind, c = KINDS[material.kind], coefficients(material)
    energy = stress_tangent(kind, c, np.ascontiguousarray(F, float), P, T, True)
    return energy, P, T


def on_vertices(space, vertices):
    """Vertices, and the mid-edge nodes between two of them."""
    middle = np.flatnonzero(np.isin(space.midside, vertices).all(axis=1))
    return np.concatenate([np.sort(vertices), len(space.mesh.vertices) + middle])
