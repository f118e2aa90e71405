"""Voxels, nodes, beams and what they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.lattice.shape import PRESETS, Lattice, Strut, block
from drakebots.lattice.shape.lattice import from_array

voxel_sets = st.sets(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=25)


@given(voxel_sets)
def test_numbers_and_places(voxels):
    """Nodes have one even coordinate, beams one length, shared nodes two voxels."""
    lattice = Lattice(np.array(sorted(voxels)))
    assert ((lattice.nodes % 2 == 0).sum(axis=1) == 1).all()
    span = (
        lattice.positions[lattice.beams[:, 1]] - lattice.positions[lattice.beams[:, 0]]
    )
    assert np.allclose(np.linalg.norm(span, axis=1), lattice.beam_length)
    pairs = {tuple(sorted(b)) for b in lattice.beams.tolist()}
    assert len(pairs) == len(lattice.beams) == 12 * len(voxels)
    faces = sum(
        tuple(np.add(v, e).tolist()) in voxels
        for v in voxels
        for e in np.eye(3, dtype=int)
    )
    assert len(lattice.nodes) == 6 * len(voxels) - faces
    axis = lattice.even_axis
    assert (lattice.nodes[np.arange(len(axis)), axis] % 2 == 0).all()
    for node in (0, len(axis) - 1):
        assert lattice.node(lattice.nodes[node]) == node
        voxel, number = lattice.voxel_of(node)
        assert lattice.voxel_nodes[voxel, number] == node


@pytest.mark.parametrize(
    "size, beams, nodes",
    [
        ((1, 1, 1), 12, 6),
        ((2, 1, 1), 24, 11),
        ((2, 2, 2), 96, 36),
        ((4, 4, 4), 768, 240),
        ((8, 8, 8), 6144, 1728),
    ],
)
def test_counts_of_the_facts(size, beams, nodes):
    """Bars and node motions of the table in the facts."""
    lattice = block(*size)
    assert (len(lattice.beams), len(lattice.nodes)) == (beams, nodes)


def test_from_array():
    """Where it is one."""
    filled = np.zeros((2, 1, 3), bool)
    filled[1, 0, 2] = filled[0, 0, 0] = True
    assert from_array(filled, 0.05).voxels.tolist() == [[0, 0, 0], [1, 0, 2]]


def test_bad_lattices_are_named():
    """Each with the voxel or the value."""
    for make, words in (
        (lambda: Lattice(np.zeros((0, 3), int)), "one or more"),
        (lambda: Lattice([[0, 0]]), "nx3 whole numbers"),
        (lambda: Lattice([[0, 0, 0.5]]), r"nx3 whole numbers, got \[\[0, 0, 0.5"),
        (lambda: Lattice([[0, 0, -1]]), r"within 0..999999, got \[\[0, 0, -1"),
        (lambda: Lattice([[0, 0, 1], [0, 0, 1]]), r"\(0, 0, 1\) is given twice"),
        (lambda: Lattice([[0, 0, 0]], 0.0), "pitch must be > 0"),
        (lambda: Lattice([[0, 0, 0]], np.nan), "pitch must be > 0"),
        (lambda: block(0, 1, 1), "sizes >= 1"),
        (lambda: from_array([[[2]]]), "zeros or ones"),
        (lambda: block(1, 1, 1).node((1, 1, 1)), r"no node at \(1, 1, 1\)"),
    ):
        with pytest.raises(InvalidInput, match=words):
            make()


def test_strut_is_the_authors():
    """EA, EI and GJ of the facts."""
    s = PRESETS["ultem20gf_1p27"]
    assert s.E * s.area == pytest.approx(11120.6, rel=1e-5)
    bending, torsion = s.E * s.I1, s.G * s.J
    assert bending == pytest.approx(1.4947e-3, rel=1e-4)
    assert torsion == pytest.approx(9.30e-4, rel=2e-3)
    assert s.J / s.d1**4 == pytest.approx(0.14, rel=2e-3)
    flat = Strut(1e-3, 3e-3)
    ratios = np.array([flat.I2 / flat.I1, flat.J / 3e-12])
    assert ratios == pytest.approx([9, 0.263], rel=0.02)
    assert set(PRESETS) >= {"ultem20gf_1p27"}


@pytest.mark.parametrize("name", ["d1", "d2", "E", "rho"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_bad_struts_are_named(name, value):
    """Zero or negative sections and materials."""
    with pytest.raises(InvalidInput, match=f"{name} must be > 0"):
        Strut(**{name: value})


def test_bad_poisson_ratio():
    """Outside -1..0.5."""
    with pytest.raises(InvalidInput, match="nu must be"):
        Strut(nu=0.5)
