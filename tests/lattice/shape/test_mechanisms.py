"""The null space of the bars: counts, planes of motion, and what they miss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape import (
    Lattice,
    Planes,
    block,
    find_mechanisms,
    mechanisms,
    rigid_motions,
)
from drakebots.lattice.shape.mechanisms import null_space, rigidity_matrix
from tests.helpers.scripts import load_script

grown = load_script("random_lattices").grown

ROBOT = Lattice(np.vstack([block(2, 2, 2).voxels, [(2, 1, 0), (1, 2, 0)]]))

TABLE = {  # bars, node dof, zero modes, self-stress, missed
    (1, 1, 1): (12, 18, 6, 0, 0),
    (2, 1, 1): (24, 33, 9, 0, 0),
    (2, 1, 2): (48, 60, 12, 0, 1),
    (2, 2, 2): (96, 108, 12, 0, 0),
    (3, 2, 2): (144, 156, 13, 1, 0),
    (3, 3, 3): (324, 324, 15, 15, 0),
    (4, 3, 2): (288, 294, 15, 9, 0),
    (4, 4, 4): (768, 720, 18, 66, 0),
    (4, 1, 4): (192, 216, 28, 4, 13),
    (8, 1, 8): (768, 816, 84, 36, 61),
}


@pytest.mark.parametrize("size", TABLE)
def test_counts_of_the_table(size):
    lattice = block(*size)
    m = find_mechanisms(lattice)
    bars, dof, modes, stress, missed = TABLE[size]
    assert len(lattice.beams) == bars and 3 * len(lattice.nodes) == dof
    assert (m.zero_modes, m.self_stress, len(m.missed)) == (modes, stress, missed)
    assert m.rigid == 6 and m.rigid + len(m.all) == m.zero_modes
    R = rigidity_matrix(lattice)
    assert np.abs(R @ m.basis).max(initial=0) < 1e-11
    both = np.hstack([rigid_motions(lattice), m.basis])
    assert np.linalg.matrix_rank(both) == m.zero_modes


@pytest.mark.parametrize("size", [s for s in TABLE if min(s) >= 2])
def test_planes_and_rigid_motions_span_the_null_space_of_thick_blocks(size):
    lattice = block(*size)
    space = null_space(lattice)
    both = np.hstack([rigid_motions(lattice), Planes(lattice).fields.toarray()])
    both /= np.linalg.norm(both, axis=0)
    assert np.abs(both - space @ (space.T @ both)).max() < 1e-12
    assert both.shape[1] == space.shape[1] == 6 + sum(size)
    assert np.linalg.matrix_rank(both) == space.shape[1]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 16))
def test_null_space_as_dense_svd(seed, size):
    lattice = grown(seed, size)
    R = rigidity_matrix(lattice).toarray()
    rank = np.linalg.matrix_rank(R, tol=1e-9)
    m = find_mechanisms(lattice)
    assert m.zero_modes == R.shape[1] - rank
    assert m.self_stress == R.shape[0] - rank
    assert len(m.all) == m.zero_modes - 6
    assert np.abs(R @ m.basis).max(initial=0) < 1e-11


def test_the_robots_front_voxels_hang():
    m = find_mechanisms(ROBOT)
    assert m.zero_modes == 18 and not m.complete
    assert {x.kind for x in m.missed} == {"hanging"}
    text = m.report()
    assert "voxel (2, 1, 0) is singly attached, at node (4, 3, 1)" in text
    assert "three rotations of its own" in text
    voxels = {tuple(ROBOT.voxels[x.voxels[0]]) for x in m.missed}
    assert voxels == {(2, 1, 0), (1, 2, 0)}


def test_a_slabs_modes_are_local():
    """13 beyond the planes in 4x1x4: none turns more than a square of voxels."""
    missed = find_mechanisms(block(4, 1, 4)).missed
    assert sorted(len(x.voxels) for x in missed)[:4] == [1, 1, 1, 1]
    assert max(len(x.voxels) for x in missed) == 4
    corners = {(0, 0, 0), (3, 0, 0), (0, 0, 3), (3, 0, 3)}
    lattice = block(4, 1, 4)
    alone = {tuple(lattice.voxels[x.voxels[0]]) for x in missed if len(x.voxels) == 1}
    assert alone == corners


def test_a_hanging_part_of_two_voxels():
    voxels = np.vstack([block(2, 2, 2).voxels, [(2, 0, 0), (3, 0, 0)]])
    text = find_mechanisms(Lattice(voxels)).report()
    assert "2 voxels with (2, 0, 0) hang on node (4, 1, 1)" in text
    assert "voxel (3, 0, 0) is singly attached, at node (6, 1, 1)" in text


def test_pieces_move_on_their_own():
    core = block(2, 2, 2).voxels
    two = Lattice(np.vstack([core, core + np.array([5, 0, 0])]))
    m = find_mechanisms(two)
    assert m.rigid == 12 and m.zero_modes == 24 and m.complete


def test_large_lattices_are_sparse_or_refused(monkeypatch):
    assert find_mechanisms(block(8, 8, 8)).zero_modes == 30
    assert null_space(block(60, 2, 2)).shape[1] == 70
    monkeypatch.setattr(mechanisms, "MAX_VOXELS", 7)
    with pytest.raises(InvalidInput, match="8 voxels: at most 7"):
        null_space(block(2, 2, 2))
