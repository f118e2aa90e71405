"""Random lattices, for scripts/bench/voxel.py and tests.

A module without a command.
"""

import numpy as np

from drakebots.lattice.shape import Lattice


def grown(seed: int, size: int, within: int = 5) -> Lattice:
    """Voxels added one by one, each at a face of one before."""
    rng = np.random.default_rng(seed)
    voxels = [(within // 2,) * 3]
    while len(voxels) < size:
        step = rng.choice([-1, 1]) * np.eye(3, dtype=int)[rng.integers(3)]
        new = tuple((voxels[rng.integers(len(voxels))] + step).tolist())
        if new not in voxels and min(new) >= 0 and max(new) < within:
            voxels.append(new)
    return Lattice(np.array(voxels))


def joined_blocks(seed: int, count: int) -> Lattice:
    """A union of 2x2x2 blocks, each a step or a diagonal from one before."""
    rng = np.random.default_rng(seed)
    corners = [np.zeros(3, int)]
    for _ in range(count - 1):
        corners.append(corners[rng.integers(len(corners))] + rng.integers(-1, 2, 3))
    voxels = np.array([c + o for c in corners for o in np.ndindex(2, 2, 2)])
    voxels = np.unique(voxels, axis=0)
    return Lattice(voxels - voxels.min(axis=0))
