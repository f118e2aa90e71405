"""Loops closed from open positions, and their rows counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.formats.closing import (
    CLOSED,
    close_loops,
    drop_dependent_rows,
    settle_loops,
)
from drakebots.model import ROWS, Coupler, LoopClosure, independent_rows
from tests.model.test_loops import closing, four_bar_plant


@pytest.fixture(scope="module")
def four_bar():
    return four_bar_plant()


@settings(max_examples=25)
@given(q=st.lists(st.floats(-1.2, 1.2), min_size=3, max_size=3))
def test_a_four_bar_closes_from_anywhere(four_bar, q):
    plant, context = four_bar
    closure = LoopClosure(plant, [closing("hinge")])
    plant.SetPositions(context, q)
    assert close_loops(closure, context) < CLOSED
    np.testing.assert_allclose(closure.residual(context), 0, atol=1e-11)
    # Crank 1 m, rocker 1 m and a rod as long as the base: a parallelogram, or crossed.
    crank, _, rocker = plant.GetPositions(context)
    tips = [[np.sin(crank), np.cos(crank)], [2 + np.sin(rocker), np.cos(rocker)]]
    assert np.linalg.norm(np.subtract(*tips)) == pytest.approx(2, abs=1e-9)


def test_held_joints_move_least(four_bar):
    plant, context = four_bar
    closure = LoopClosure(plant, [closing("hinge")])
    for held, moved in ((0, 2), (2, 0)):
        plant.SetPositions(context, [0.2, 0, 0])
        close_loops(closure, context, held=[held])
        change = np.abs(plant.GetPositions(context) - [0.2, 0, 0])
        assert change[held] < 0.1 * change[moved]


def test_closed_loops_stay_where_they_are(four_bar):
    plant, context = four_bar
    plant.SetPositions(context, [0.4, -0.4, 0.4])
    _, moved, notes = settle_loops(LoopClosure(plant, [closing("planar")]), context)
    assert moved == {} and notes == []
    np.testing.assert_array_equal(plant.GetPositions(context), [0.4, -0.4, 0.4])


@pytest.mark.parametrize("rows, kept", [("ball", 2), ("planar", 2), ("hinge", 2)])
def test_a_planar_mechanism_has_two_rows(four_bar, rows, kept):
    """3 hinges in a plane less 1 freedom: other rows say nothing new."""
    plant, context = four_bar
    plant.SetPositions(context, [0, 0, 0])  # all of it at right angles
    closure = LoopClosure(plant, [closing(rows)])
    reduced = drop_dependent_rows(closure, context)
    assert reduced.loops[0].num_rows == kept
    for angle in (0.3, -0.8):
        plant.SetPositions(context, [angle, -angle, angle])
        for one in (closure, reduced):
            assert np.linalg.matrix_rank(one.jacobian(context), tol=1e-9) == 2
        np.testing.assert_allclose(closure.residual(context), 0, atol=1e-12)


def test_a_mechanism_stretched_out_counts_where_it_is_not(four_bar):
    """All in one line the four-bar has fewer independent rows than beside it."""
    plant, context = four_bar
    closure = LoopClosure(plant, [closing("hinge")])
    plant.SetPositions(context, [np.pi / 2, -np.pi / 2, np.pi / 2])
    assert len(independent_rows(closure.jacobian(context))) == 1
    assert drop_dependent_rows(closure, context).num_rows == 2
    np.testing.assert_allclose(plant.GetPositions(context)[0], np.pi / 2)


def test_rows_are_counted_in_the_standing_pose(four_bar):
    """The default positions, which they leave as they are, are stretched out."""
    plant, context = four_bar
    closure = LoopClosure(plant, [closing("ball")])
    stretched = np.array([np.pi / 2, -np.pi / 2, np.pi / 2])
    plant.SetPositions(context, stretched)
    names = [plant.get_joint(k).name() for k in plant.GetJointIndices()]
    pose = dict.fromkeys(names, 0.0)
    settled, moved, _ = settle_loops(closure, context, pose=pose)
    assert settled.num_rows == 2 and moved == {}
    np.testing.assert_array_equal(plant.GetPositions(context), stretched)
    plant.SetPositions(context, [0, 0, 0])
    assert np.linalg.cond(settled.jacobian(context)) < 10


def test_a_loop_whose_dimensions_disagree_closes_as_a_ball(four_bar):
    """An axis 0.1 rad out of the plane cannot be met; the positions can."""
    plant, context = four_bar
    loop = closing("hinge", axis_A=[0.0, np.cos(0.1), np.sin(0.1)])
    plant.SetPositions(context, [0.1, 0, 0])
    settled, _, notes = settle_loops(LoopClosure(plant, [loop]), context)
    assert settled.loops[0].rows == "ball" and settled.gaps(context).max() < 1e-9
    assert any("cut close as ball joints only" in note for note in notes)


def test_loops_out_of_reach_say_what_is_left(four_bar):
    plant, context = four_bar
    far = closing("ball", p_AP=[9, 0, 0])
    plant.SetPositions(context, [0, 0, 0])
    settled, _, notes = settle_loops(LoopClosure(plant, [far]), context)
    gap = settled.gaps(context).max()
    assert 5 <= gap < 5.5  # the rod has 9 m, the others reach 4 m
    assert "most open is cut, by" in notes[0] and "joints j1, j2, j3" in notes[0]


@given(seed=st.integers(0, 1000), rank=st.integers(1, 4), extra=st.integers(0, 4))
def test_independent_rows_span_all_rows(seed, rank, extra):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(rank, 6))
    C = np.vstack([C, rng.normal(size=(extra, rank)) @ C])
    C *= 10.0 ** rng.uniform(-3, 3, len(C))[:, None]
    rows = independent_rows(C)
    assert len(rows) == rank and list(rows) == sorted(rows)
    scaled = C / np.linalg.norm(C, axis=1)[:, None]
    assert np.linalg.matrix_rank(scaled[rows], tol=1e-9) == rank


def test_no_rows():
    assert len(independent_rows(np.zeros((0, 5)))) == 0
    assert len(independent_rows(np.zeros((3, 5)))) == 0


@pytest.mark.parametrize("rows", ROWS)
def test_errors_vanish_with_c_and_have_its_gradient(four_bar, rows):
    """Also half a turn away, where c has a false zero and the error is pi."""
    plant, context = four_bar
    closure = LoopClosure(plant, [closing(rows)])
    plant.SetPositions(context, [0, 0, 0])
    np.testing.assert_allclose(closure.errors(context, 1.0)[0], 0, atol=1e-12)
    flipped = LoopClosure(plant, [closing(rows, axis_A=[0, -1, 0])])
    e = flipped.errors(context, 1.0)[0]
    if rows in ("hinge", "weld"):
        assert np.linalg.norm(e[3:]) == pytest.approx(np.pi)
    q = np.array([0.2, -0.3, 0.4])
    plant.SetPositions(context, q)
    _, J = closure.errors(context, 0.5)
    for k, direction in enumerate(np.eye(3)):
        ends = []
        for sign in (-1e-6, 1e-6):
            plant.SetPositions(context, q + sign * direction)
            ends.append(closure.errors(context, 0.5)[0])
        numeric = (ends[1] - ends[0]) / 2e-6
        if rows == "hinge":
            numeric[3:], J[3:, k] = 0, 0  # of the axes' angle only close to zero
        np.testing.assert_allclose(J[:, k], numeric, atol=1e-7)


def test_kept_rows_survive_a_copy():
    loop = replace(closing("hinge"), kept=(0, 2))
    assert replace(loop, in_file=True).num_rows == 2


def test_a_coupler_that_a_loop_implies_is_left_out(four_bar):
    """The rocker of a parallelogram turns as its crank does: three rows, two of them
    independent. With another gear the crank cannot turn, and all count."""
    plant, context = four_bar
    for gear, rows in ((1.0, 2), (0.5, 3)):
        plant.SetPositions(context, [0, 0, 0])
        same = Coupler("j3", "j1", gear)
        closure = LoopClosure(plant, [closing("planar")], couplers=[same])
        settled, _, _ = settle_loops(closure, context)
        kept = sum(loop.num_rows for loop in settled.loops)
        assert kept + sum(x.kept for x in settled.couplers) == rows
        assert settled.num_rows == len(settled.row_names) == rows
        C = settled.jacobian(context)
        assert np.linalg.matrix_rank(C, tol=1e-9) == rows


def test_loops_close_with_followers_in_place(four_bar):
    """From a default pose in which neither is."""
    plant, context = four_bar
    plant.SetPositions(context, [0.2, 0, 0])
    closure = LoopClosure(
        plant, [closing("ball")], couplers=[Coupler("j3", "j1", 1.0, 0.0)]
    )
    _, moved, notes = settle_loops(closure, context)
    np.testing.assert_allclose(closure.slips(context), 0, atol=1e-11)
    np.testing.assert_allclose(closure.gaps(context), 0, atol=1e-11)
    assert "j3" in notes[0] and "j3" in moved


def test_errors_of_couplers(four_bar):
    """The derivative of e is J, as for loops."""
    plant, context = four_bar
    closure = LoopClosure(
        plant, [closing("weld")], couplers=[Coupler("j2", "j3", -1.5, 0.2)]
    )
    q = np.array([0.1, -0.2, 0.3])
    plant.SetPositions(context, q)
    e, J = closure.errors(context, 0.5)
    assert e[-1] == pytest.approx(-0.2 + 1.5 * 0.3 - 0.2)
    np.testing.assert_array_equal(J[-1], [0, 1, 1.5])
