"""Findings about shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape import Lattice, block, check_lattice, require_connected


def test_a_sound_block():
    """Nothing to find."""
    report = check_lattice(block(2, 3, 2))
    assert report.lines() == [
        "12 voxels, 52 nodes, 144 beams",
        "in one piece, nowhere thin",
    ]
    require_connected(block(2, 2, 2))


def test_the_robot():
    """Its two front voxels hang on one node each."""
    core = block(2, 2, 2).voxels
    robot = Lattice(np.vstack([core, [[2, 1, 0], [1, 2, 0]]]))
    report = check_lattice(robot)
    assert report.single == ((2, 1, 0), (1, 2, 0))
    assert len(report.pieces) == 1
    assert report.thin[2] == ((2, 1, 0), (1, 2, 0))
    hanging = report.lines()[1]
    assert "hanging on one node" in hanging
    assert "voxels (2,1,0) (1,2,0)" in hanging


def test_a_slab():
    """One thick along y."""
    report = check_lattice(block(4, 1, 4))
    assert [len(v) for v in report.thin] == [0, 16, 0]
    assert report.lines()[1].startswith("one voxel thick along y: voxels (0,0,0)")
    assert "and 10 more" in report.lines()[1]


def test_pieces():
    """Voxels that meet in an edge or a corner share no node."""
    lattice = Lattice([[5, 5, 5], [0, 0, 0], [0, 1, 1], [0, 0, 1], [1, 2, 2]])
    report = check_lattice(lattice)
    assert [len(p) for p in report.pieces] == [3, 1, 1]
    assert (
        "3 pieces: voxels (0,0,0) (0,1,1) (0,0,1); voxel (5,5,5)" in report.lines()[1]
    )
    with pytest.raises(
        InvalidInput, match=r"consists of 3 pieces.*join them"
    ) as caught:
        require_connected(lattice)
    assert "\n" not in str(caught.value)


@given(st.sets(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20))
def test_pieces_cover_the_lattice_and_share_nothing(voxels):
    """Any set."""
    lattice = Lattice(np.array(sorted(voxels)))
    report = check_lattice(lattice)
    named = [v for piece in report.pieces for v in piece]
    assert sorted(named) == sorted(voxels)
    parts = [Lattice(np.array(piece)) for piece in report.pieces]
    nodes = [tuple(n) for part in parts for n in part.nodes.tolist()]
    assert len(nodes) == len(set(nodes)) == len(lattice.nodes)
    assert all(len(check_lattice(part).pieces) == 1 for part in parts)
    for voxel in report.single:
        near = [v for v in voxels if np.abs(np.subtract(v, voxel)).sum() == 1]
        assert len(near) == 1
