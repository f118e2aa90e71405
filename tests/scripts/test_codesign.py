"""Voxels, struts, actuators and gait designed together, against peers and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from drakebots import InvalidInput, NoSolution
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import LatticeSpec, Strut, block, pieces
from tests.helpers.scripts import load_script

Codesign, DesignSpace, codesign, exchanged, largest, lengths = load_script(
    "codesign",
    *("Codesign", "DesignSpace", "codesign", "exchanged", "largest", "lengths"),
)

SPEC = LatticeSpec(block(2, 2, 2))


def problem(targets=("3,3,4:x",), motions=None, **options) -> Codesign:
    controls = [Control.from_word(word, "target") for word in targets]
    given = {"most_voxels": 6, "most_actuators": 2, "factorizations": 60} | options
    return Codesign(SPEC, controls, (0, 0, 0), motions, **given)


TWO = problem(("3,3,4:x", "3,3,4:y"), [[1, 0.5], [0, 1]])


@pytest.mark.parametrize("W, M", [(1, 3), (2, 2), (2, 5), (3, 4), (3, 2)])
def test_the_largest_motion_is_that_of_a_linear_program(W, M):
    random = np.random.default_rng(10 * W + M)
    for _ in range(20):
        S, w = random.normal(size=(W, M)), random.normal(size=W)
        peer = linprog(
            np.r_[np.zeros(M), -1.0],
            A_eq=np.c_[S, -w],
            b_eq=np.zeros(W),
            bounds=[(-0.3, 0.3)] * M + [(0, None)],
        )
        reach, n = largest(S, w, 0.3)
        assert reach == pytest.approx(-peer.fun, rel=1e-8, abs=1e-8)
        assert n @ w == pytest.approx(1)
        e = lengths(S, w, 0.3)
        assert np.abs(e).max() <= 0.3 * (1 + 1e-9)
        assert pytest.approx(reach * w, abs=1e-9) == S @ e


def test_actuators_that_are_alike_are_worth_one_motion():
    """Rows of actuators along w itself, where no kink is apart from it."""
    S = np.array([[1.0, -2.0], [1.0, -2.0]])
    assert largest(S, np.array([1.0, 1.0]), 0.5)[0] == pytest.approx(1.5)
    assert largest(S, np.array([1.0, 0.0]), 0.5)[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("asked", [problem(), TWO])
def test_the_gradient_is_that_of_finite_differences(asked):
    space, random = DesignSpace(asked), np.random.default_rng(1)
    V, places = len(space.held), [3, 11, 20]
    at = [random.uniform(0.2, 0.9, V), random.uniform(1e-3, 1.6e-3, V)]
    _, slopes = space.gradient(*at, places)
    for k, step in enumerate((1e-5, 1e-8)):
        way = step * random.normal(size=V)
        ends = [
            [x + sign * way if j == k else x for j, x in enumerate(at)]
            for sign in (1, -1)
        ]
        after, before = (space.gradient(*end, places)[0] for end in ends)
        assert (after - before) / 2 == pytest.approx(slopes[k] @ way, rel=1e-5)


def test_a_choice_is_worth_what_the_frame_of_its_voxels_says():
    """The frame of the kept voxels alone, with prescribed extensions."""
    bench, random = load_script("voxel_codesign"), np.random.default_rng(2)
    for asked in (problem(push=3.0), TWO):
        space = DesignSpace(asked)
        kept = space.grown(random.uniform(0.01, 1, len(space.held)))
        sides = random.uniform(1e-3, 1.6e-3, len(kept))
        found = space.placed(kept, sides)
        moved = bench.by_frame(asked, found)
        reach = (moved * asked.motions).sum(1) / (asked.motions**2).sum(1)
        assert reach.min() == pytest.approx(found.reach, rel=1e-4)
        assert moved == pytest.approx(
            reach[:, None] * asked.motions, rel=1e-3, abs=1e-7
        )


def test_the_gradient_of_a_whole_design_starts_at_its_reach():
    space = DesignSpace(TWO)
    design = space.placed(np.ones(8, bool), np.full(8, 1.3e-3))
    value, _ = space.gradient(np.ones(8), design.sides, design.places)
    assert np.exp(value) == pytest.approx(design.reach, rel=1e-9)


def test_actuators_of_a_shape_are_the_best_of_all_pairs():
    asked = problem()
    space, kept = DesignSpace(asked), np.ones(8, bool)
    sides = np.full(8, 1.27e-3)
    found = space.placed(kept, sides)
    T, flex = space.response(kept, sides, np.arange(len(space.places)))
    best = 0.0
    for a in range(len(flex)):
        for b in range(a):
            S = T[:, [a, b]] @ np.linalg.inv(flex[np.ix_([a, b], [a, b])])
            best = max(best, 2 * asked.stroke * np.abs(S).sum())
    # Exchanges of one at a time may end at a local optimum; here they do not.
    assert found.reach == pytest.approx(best)


@pytest.mark.parametrize("asked", [problem(), TWO])
def test_designs_keep_to_what_is_allowed(asked):
    found, space = codesign(asked), DesignSpace(asked)
    kept = SPEC.lattice.voxel_nodes[found.kept]
    assert found.kept.sum() <= 6 and found.kept[0]
    assert len(found.places) <= 2
    assert set(found.places) <= set(space.fits(found.kept))
    assert np.isin([SPEC.lattice.node(t.node) for t in asked.targets], kept).all()
    used, numbers = np.unique(kept, return_inverse=True)
    links = np.vstack([numbers[:, [0, k]] for k in range(1, 6)])
    assert pieces(len(used), links).max() == 0
    sides = found.sides * 1e4
    assert sides == pytest.approx(np.round(sides))
    assert sides.min() >= 10 and sides.max() <= 16
    assert np.abs(space.gait(found)).max() <= 2 * asked.stroke * (1 + 1e-9)


def test_exchanges_make_it_better_within_the_factorizations():
    asked = problem()
    space = DesignSpace(asked)
    start = space.placed(space.grown(np.arange(1.0, 9.0)), np.full(8, 1.3e-3))
    found = exchanged(space, start)
    assert found.reach > 1.2 * start.reach
    assert space.factorizations <= asked.factorizations + 1


def test_more_of_anything_does_not_reach_less():
    """Of a whole shape: another actuator, a longer stroke, a softer spring."""
    reach = {}
    for name, options in {
        "plain": {},
        "actuators": {"most_actuators": 3},
        "stroke": {"stroke": 6e-3, "push": 24.0},
        "load": {"load": 5.0},
    }.items():
        space = DesignSpace(problem(**options))
        reach[name] = space.placed(np.ones(8, bool), np.full(8, 1.3e-3)).reach
    assert reach["stroke"] == pytest.approx(1.2 * reach["plain"])
    assert reach["actuators"] > reach["plain"] and reach["load"] > reach["plain"]


def test_what_cannot_be_designed_is_refused():
    with pytest.raises(NoSolution, match="allow more voxels"):
        codesign(problem(most_voxels=2))
    with pytest.raises(InvalidInput, match="no voxel"):
        codesign(replace(problem(), base=(5, 0, 0)))
    with pytest.raises(InvalidInput, match="each pose moves a target"):
        problem(motions=[[0.0]])
    with pytest.raises(InvalidInput, match="struts are square"):
        replace(problem(), lattice=LatticeSpec(block(2, 2, 2), Strut(1e-3, 2e-3)))
    with pytest.raises(InvalidInput, match="motions"):
        problem(motions=[[1.0, 2.0]])


def test_the_bench_s_cma_es_finds_the_middle_of_an_ellipsoid():
    bench, seen = load_script("voxel_codesign"), []
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]

    def cost(x):
        value = float((10.0 ** np.arange(8) * (turn @ (x - 0.3)) ** 2).sum())
        return value, value

    for value in bench.cma_es(cost, np.full(8, 0.5), 0.3, 0):
        seen.append(value)
        if len(seen) == 8000:
            break
    assert min(seen) < 1e-12
