"""Regions of a skin's mesh, and the material of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.design.problem import SkinSettings
from drakebots.design.shell import Shell
from drakebots.fem.materials import Material
from drakebots.fem.mesh import TetMesh

FOLDS, SOFT = 1, 2
"""Regions of the mesh: of the folds, of the first soft part; 0 is the rest."""


def with_regions(shell: Shell, skin: SkinSettings) -> Shell:
    """The shell with regions 0 plain, 1 folds, 2... soft parts."""
    mesh = shell.mesh
    region = np.where(mesh.region > 0, FOLDS, 0)
    middle = mesh.vertices[mesh.tets].mean(axis=1)
    for k, soft in enumerate(skin.soft):
        inside = np.linalg.norm(middle - soft.p_W, axis=1) < soft.radius
        region[inside & (region == 0)] = SOFT + k
    return replace(shell, mesh=TetMesh(mesh.vertices, mesh.tets, region))


def region_materials(mesh: TetMesh, skin: SkinSettings) -> dict[int, Material]:
    """The material of each region; the density from the mass, where it is given."""
    plain = skin.material
    if skin.mass is not None:
        plain = replace(plain, density=skin.mass / float(mesh.volumes.sum()))
    factors = {0: 1.0, FOLDS: skin.fold_modulus}
    factors |= {SOFT + k: soft.modulus for k, soft in enumerate(skin.soft)}
    return {
        k: plain.with_modulus(factors[k] * plain.youngs_modulus) for k in mesh.regions
    }
