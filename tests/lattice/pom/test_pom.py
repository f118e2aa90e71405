"""Planes of motion: the matrices, signs, eq. (1) in both forms, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.lattice.pom import ACTUATION, Control, PlanesOfMotion, candidates
from drakebots.lattice.shape import Lattice, Plane, Planes, block
from tests.helpers.scripts import load_script

grown = load_script("random_lattices").grown


def connectivity(lattice, control, place) -> int:
    """C_ij of eq. (1) in the paper's form, from grid positions and node numbers.

        C = (-1)^(sum(e - s)/2) h(n_e) A^(p)[a, n_s mod 3]   if e_p = s_p, else 0

    with effector place e and number n_e, control place s and number n_s, push axis a
    and plane normal p; h(n) = -1 for n > 2, else 1. It couples the parts of a layer
    that :class:`drakebots.lattice.shape.Planes` keeps apart.
    """
    s, e = np.array(control.node), np.array(place)
    p = 3 - control.axis - int(np.argmin(s % 2))
    if e[p] != s[p]:
        return 0
    number_s = lattice.voxel_of(lattice.node(s))[1]
    number_e = lattice.voxel_of(lattice.node(e))[1]
    parity = 1 - 2 * (int((e - s).sum()) // 2 % 2)
    half = -1 if number_e > 2 else 1
    return parity * half * int(ACTUATION[p, control.axis, number_s % 3])


def test_actuation_matrices_are_the_papers():
    A_x = [[0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, -1], [0, -1, 0, 0, 1, 0]]
    A_y = [[0, 0, -1, 0, 0, 1], [0, 0, 0, 0, 0, 0], [1, 0, 0, -1, 0, 0]]
    A_z = [[0, 1, 0, 0, -1, 0], [-1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0]]
    assert np.array_equal(ACTUATION, [A_x, A_y, A_z])


def test_papers_form_is_the_closed_form():
    """300 random actuators on 4x4x4, all nodes, both numbers of each node."""
    lattice, rng = block(4, 4, 4), np.random.default_rng(0)
    controls = [
        Control(tuple(lattice.nodes[n]), axis)
        for n, axis in zip(rng.integers(240, size=900), rng.integers(3, size=900))
        if lattice.nodes[n][axis] % 2
    ][:300]
    owners = [np.argwhere(lattice.voxel_nodes == n)[:, 1] for n in range(240)]
    planes = Planes(lattice)
    for control in controls:
        model = PlanesOfMotion(lattice, [control], planes=planes)
        J = model.J.reshape(-1, 3)
        assert set(np.unique(J)) <= {-1.0, 0.0, 1.0}
        p = model.driven[0].axis
        for n in np.random.default_rng(1).integers(240, size=40):
            first = lattice.voxel_of(int(n))[1]
            C = connectivity(lattice, control, lattice.nodes[n])
            assert np.array_equal(ACTUATION[p][:, first] * C, J[n])
            for number in owners[n]:  # the other voxel's number, the other half
                other = C if number == first else -C
                assert np.array_equal(ACTUATION[p][:, number] * other, J[n])


def test_plane_by_elimination():
    planes = Planes(block(2, 2, 2))
    assert planes.all[planes.driven((2, 1, 1), "z")] == Plane(1, 1)
    assert planes.all[planes.driven((2, 1, 1), "y")] == Plane(2, 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.tuples(*[st.integers(0, 3)] * 3))
def test_parity_under_translation(seed, shift):
    """A shifted lattice moves alike: nothing depends on where the grid starts."""
    lattice = grown(seed, 9)
    control = candidates(lattice)[seed % 4]
    moved = Lattice(lattice.voxels + shift)
    there = tuple(np.array(control.node) + 2 * np.array(shift))
    a = PlanesOfMotion(lattice, [control]).displacements([1.0])
    b = PlanesOfMotion(moved, [Control(there, control.axis)]).displacements([1.0])
    assert np.array_equal(a, b)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_axes_are_alike(seed):
    """A lattice with its axes moved round (x to y to z to x) moves round with them."""
    lattice = grown(seed, 9)
    control = candidates(lattice)[seed % 4]
    turned = Lattice(np.roll(lattice.voxels, 1, axis=1))
    there = Control(np.roll(control.node, 1), (control.axis + 1) % 3)
    a = PlanesOfMotion(lattice, [control], lattice.nodes).displacements([1.0])
    places = np.roll(lattice.nodes, 1, axis=1)
    b = PlanesOfMotion(turned, [there], places).displacements([1.0])
    assert np.array_equal(np.roll(a, 1, axis=1), b)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 2))
def test_mirror_images_move_as_mirror_images(seed, axis):
    lattice = grown(seed, 9)
    control = candidates(lattice)[seed % 4]
    sign = np.where(np.arange(3) == axis, -1, 1)
    far = np.where(sign < 0, lattice.voxels.max(axis=0), 0)
    mirror = Lattice(far + sign * lattice.voxels)
    places = np.where(sign < 0, 2 * far + 2, 0) + sign * lattice.nodes
    there = places[lattice.node(control.node)]
    a = PlanesOfMotion(lattice, [control], lattice.nodes).displacements([1.0])
    model = PlanesOfMotion(mirror, [Control(there, control.axis)], places)
    assert np.array_equal(sign * a, model.displacements([sign[control.axis] * 1.0]))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_shared_nodes_move_alike_and_no_bar_stretches(seed):
    from drakebots.lattice.shape.mechanisms import rigidity_matrix

    lattice = grown(seed, 12)
    fields = Planes(lattice).fields
    assert abs(rigidity_matrix(lattice) @ fields).max() < 1e-14


def test_pieces_of_a_layer_are_planes_of_their_own():
    """Two towers on a base: above it they tilt apart; the paper would join them."""
    voxels = [(i, 0, 0) for i in range(3)] + [(0, 0, 1), (2, 0, 1)]
    lattice = Lattice(np.array(voxels))
    tops = [p for p in Planes(lattice).all if (p.axis, p.coordinate) == (2, 3)]
    assert tops == [Plane(2, 3), Plane(2, 3, 1)]
    model = PlanesOfMotion(lattice, [Control((1, 0, 3), "x")], [(5, 0, 3)])
    assert not model.J.any()
    assert connectivity(lattice, model.controls[0], (5, 0, 3)) != 0


def test_both_ends_of_an_actuator_move_against_each_other():
    lattice = block(3, 3, 3)
    for control in candidates(lattice):
        model = PlanesOfMotion(lattice, [control], [control.node, control.other])
        low, high = model.displacements([1.0])
        assert low[control.axis] == 1 and high[control.axis] == -1
        assert abs(low).sum() == abs(high).sum() == 1


def test_ideality_spares_the_actuators_nodes():
    control = Control((2, 1, 1), 2)
    model = PlanesOfMotion(block(2, 2, 2), [control], ideality=0.8)
    size = np.abs(model.displacements([1.0])).max(axis=1)
    held = [model.lattice.node(n) for n in (control.node, control.other)]
    assert (size[held] == 1).all()
    assert set(np.round(np.delete(size, held), 12)) == {0.0, 0.8}


def test_many_inputs_at_once():
    """(m, k) inputs give (m, nodes, 3), each as it would be alone."""
    controls = [Control((2, 1 + 2 * k, 1), 2) for k in range(8)]
    model = PlanesOfMotion(block(8, 8, 8), controls)
    u = np.random.default_rng(0).normal(size=(20, 8))
    moved = model.displacements(u)
    assert moved.shape == (20, 1728, 3)
    np.testing.assert_allclose(moved[7], model.displacements(u[7]), atol=1e-12)


def test_positions_add_to_rest():
    model = PlanesOfMotion(block(2, 2, 2), [Control((2, 1, 1), 2)], [(1, 3, 4)])
    at = model.positions(np.zeros((4, 1)))
    assert np.allclose(at, np.array([1, 3, 4]) * 0.0381)


@pytest.mark.parametrize(
    ("controls", "error", "words"),
    [
        ([], InvalidInput, "at least one control"),
        ([Control((2, 1, 1), 1), Control((2, 3, 1), 1)], InvalidInput, "z = 1"),
        ([Control((2, 1, 1), 0)], InvalidInput, "only along y and z"),
        ([Control((9, 9, 8), 0)], InvalidInput, r"no node at \(9, 9, 8\)"),
    ],
)
def test_refused(controls, error, words):
    with pytest.raises(error, match=words):
        PlanesOfMotion(block(2, 2, 2), controls)


def test_two_controls_on_one_plane_are_named():
    pair = [Control((2, 1, 1), 2, "one"), Control((1, 1, 2), 0, "two")]
    with pytest.raises(InvalidInput, match=r"'one' at node .2, 1, 1.*'two'.*y = 1"):
        PlanesOfMotion(block(2, 2, 2), pair)


def test_odd_inputs_are_refused():
    with pytest.raises(UnknownName, match="axis 'w'"):
        Control((2, 1, 1), "w")
    for node in ((1, 2), (1.5, 1, 1), "abc", None):
        with pytest.raises(InvalidInput, match=r"half pitches|of type tuple"):
            Control(node, 2)
    model = PlanesOfMotion(block(2, 2, 2), [Control((2, 1, 1), 2)])
    for u in ([1.0, 2.0], [[np.nan]], 3.0):
        with pytest.raises(InvalidInput):
            model.displacements(u)
    for ideality in (0, 1.1, np.nan):
        with pytest.raises(InvalidInput, match="ideality"):
            PlanesOfMotion(model.lattice, model.controls, ideality=ideality)
