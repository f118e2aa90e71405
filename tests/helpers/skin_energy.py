"""Kinetic energy and momentum of a skin."""

import numpy as np

from drakebots.fem import SkinState
from drakebots.fem.assembly import FemModel


def kinetic_energy(model: FemModel, state: SkinState) -> float:
    """Kinetic energy v'M v/2 [J]."""
    v = state.velocities.ravel()
    return float(0.5 * v @ model.pattern.multiply(model.mass, v))


def momentum(model: FemModel, state: SkinState) -> tuple[np.ndarray, np.ndarray]:
    """Linear (3,) [kg m/s] and angular momentum about the origin (3,) [kg m^2/s]."""
    p = model.pattern.multiply(model.mass, state.velocities.ravel()).reshape(-1, 3)
    return p.sum(axis=0), np.cross(state.positions, p).sum(axis=0)
