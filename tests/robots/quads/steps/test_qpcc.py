"""Contact flips: optima against other solvers and enumeration, complementarity."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from pydrake.solvers import ClarabelSolver, MathematicalProgram

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.robots.quads.robot import feet_kinematics
from drakebots.robots.quads.steps import (
    FREE,
    STICK,
    LabelledQp,
    StepOptions,
    StepPlanner,
    StepTargets,
    position_error,
)
from drakebots.robots.quads.steps.contact_state import (
    DIRECTIONS,
    EDGE,
    NAMES,
    SLIDE,
    behind,
    label,
    pieces,
    residual,
)
from drakebots.robots.quads.steps.planner import StepGoal
from drakebots.robots.quads.steps.qpcc import solve_qpcc
from tests.helpers.scripts import load_script

UncondensedQp = load_script("qpcc_uncondensed").UncondensedQp

ON = np.ones(4, bool)


def posed(quad, seed, friction=0.5, reach=0.003, on=ON, **options):
    """A random step: planner, state, memory, goal and what is prepared."""
    rng = np.random.default_rng(seed)
    planner = StepPlanner(
        quad.stepper(),
        quad.feet,
        quad.limits,
        StepOptions(**options),
        friction=friction,
    )
    state = planner.stepper.start(quad.q0, 0.05 * rng.normal(size=18))
    memory, q = planner.start(state), quad.q0.copy()
    q[4:7] += reach * rng.normal(size=3)
    q[7:] += 10 * reach * rng.normal(size=12)
    goal = StepGoal(q, on, on, ON, state.q)
    return planner, state, memory, goal, planner.prepare(state, memory, goal)


def few(ready, seed, count=3):
    """The step with a few patches that can meet the ground."""
    rng = np.random.default_rng(seed)
    near = np.zeros(20, bool)
    near[rng.choice(20, count, replace=False)] = True
    return replace(ready.qpcc, near=near, scheduled=rng.random(20) < 0.7)


def point_of(piece, rng):
    """Random f and y that satisfy a piece's equations, and the span of its y."""
    null = np.eye(3)
    if len(piece.R):
        null = np.linalg.svd(piece.R)[2][len(piece.R) :].T
    f = piece.T @ rng.normal(size=piece.T.shape[1])
    return f, null @ rng.normal(size=null.shape[1]), null


@pytest.mark.long
@pytest.mark.parametrize("friction", [0.1, 0.7])
def test_pieces_are_complementary(friction):
    """The residual is zero exactly at points that satisfy a piece's rows."""
    table, rng = pieces(friction), np.random.default_rng(0)
    for k, piece in enumerate(table):
        hits = 0
        for _ in range(2000):
            f, y, _ = point_of(piece, rng)
            if k == STICK:
                f[:2] *= friction
            inside = np.concatenate([piece.on_f @ f, piece.on_y @ y]) >= 0
            worst = residual(f[None], y[None], friction)[0]
            if inside.all():
                hits += 1
                assert worst < 1e-12, NAMES[k]
            else:
                assert worst > 1e-9, NAMES[k]
        assert hits > 10, NAMES[k]
        assert len(piece.on_f) + len(piece.on_y) == len(piece.beyond)
        assert k not in piece.beyond


def test_flips_go_to_neighbours():
    """On the bound between two pieces the point belongs to both."""
    friction, rng = 0.4, np.random.default_rng(1)
    table = pieces(friction)
    for k, piece in enumerate(table):
        split = len(piece.on_f)
        for row, other in enumerate(piece.beyond):
            for _ in range(200):
                f, y, null = point_of(piece, rng)
                # On the bound: the part along the row taken out.
                if row < split:
                    a = piece.T.T @ piece.on_f[row]
                    s = np.linalg.lstsq(piece.T, f, rcond=None)[0]
                    f = piece.T @ (s - a * (a @ s) / (a @ a))
                else:
                    a = null.T @ piece.on_y[row - split]
                    s = null.T @ y
                    y = null @ (s - a * (a @ s) / (a @ a))
                rows = np.concatenate([piece.on_f @ f, piece.on_y @ y])
                if np.delete(rows, row).min(initial=1.0) < 1e-6:
                    continue
                there = table[behind(k, other, y)]
                span = np.linalg.lstsq(there.T, f, rcond=None)[0] if f.any() else []
                left = f - there.T @ span if len(span) else f
                if not np.allclose(left, 0, atol=1e-9):
                    # f_n = 0 of a stick's face needs all of f to vanish.
                    assert other == FREE
                    continue
                assert np.allclose(there.R @ y, 0, atol=1e-9), NAMES[k]


def test_labels_of_equation_19():
    force = np.array([[0, 0, -1], [0.1, 0, 1], [0, -3, 1], [-3, 0.1, 1], [0, 0, 0.0]])
    found = label(force, 0.5)
    assert found.tolist() == [FREE, STICK, SLIDE + 3, SLIDE + 2, FREE]
    assert len(NAMES) == EDGE + 4
    assert np.allclose(DIRECTIONS[2], [-1, 0, 0])


def test_qp_of_labels_agrees_with_drake(quad):
    """All of w as unknowns and eqs. (15)-(17) as they stand, by Clarabel."""
    _, _, _, _, ready = posed(quad, 4, friction=0.3)
    qpcc = few(ready, 4)
    idx = np.flatnonzero(qpcc.near)
    labels = np.full(20, FREE)
    qp, table, solved = LabelledQp(qpcc), pieces(qpcc.friction), 0
    for combo in itertools.product((FREE, STICK, SLIDE + 1, EDGE), repeat=3):
        labels[idx] = combo
        found = qp.solve(labels, cop=False)
        keep = np.concatenate(
            [np.arange(12), *(12 + 3 * i + np.arange(3) for i in idx)]
        )
        E, c = qpcc.objective, qpcc.compliance
        rows_eq, rows_in = [], []
        for i, k in zip(idx, combo):
            piece, at = table[k], slice(12 + 3 * i, 15 + 3 * i)
            out = np.zeros((3, 72))
            out[:, at] = np.eye(3) - piece.T @ np.linalg.pinv(piece.T)
            rows_eq.append((out, np.zeros(3)))
            Y, y0 = qpcc.Y[3 * i : 3 * i + 3] / c, qpcc.y0[3 * i : 3 * i + 3] / c
            rows_eq.append((piece.R @ Y, piece.R @ y0))
            inside = np.zeros((len(piece.on_f), 72))
            inside[:, at] = piece.on_f
            rows_in += [
                (inside, np.zeros(len(inside))),
                (piece.on_y @ Y, piece.on_y @ y0),
            ]
        Ae, be = (np.concatenate(x) for x in zip(*rows_eq))
        Ai, bi = (np.concatenate(x) for x in zip(*rows_in))
        # Forces in tens of N, as torques are about 1 N m.
        size = np.concatenate([np.ones(12), np.full(9, 10.0)])
        prog = MathematicalProgram()
        z = prog.NewContinuousVariables(21)
        H = E.H[np.ix_(keep, keep)] * np.outer(size, size)
        prog.AddQuadraticCost(H, size * E.g[keep], E.c, z, is_convex=True)
        prog.AddBoundingBoxConstraint(-2, 2, z[:12])
        prog.AddLinearEqualityConstraint(Ae[:, keep] * size, -be, z)
        prog.AddLinearConstraint(Ai[:, keep] * size, -bi, np.full(len(bi), np.inf), z)
        other = ClarabelSolver().Solve(prog)
        assert other.is_success() == (found is not None)
        if found is not None:
            solved += 1
            assert found.energy == pytest.approx(other.get_optimal_cost(), rel=1e-6)
    assert solved >= 2


@pytest.mark.parametrize("seed", range(6))
def test_flips_find_the_best_of_all_labels(quad, seed):
    """Enumeration of 10^2 labels is never better."""
    _, _, _, _, ready = posed(quad, seed, friction=[0.05, 0.3, 0.8][seed % 3])
    qpcc = few(ready, seed, count=2)
    found = solve_qpcc(qpcc, cop="ignore")
    qp, idx, best = LabelledQp(qpcc), np.flatnonzero(qpcc.near), np.inf
    for combo in itertools.product(range(len(NAMES)), repeat=2):
        labels = np.full(20, FREE)
        labels[idx] = combo
        point = qp.solve(labels, cop=False)
        if point is not None:
            best = min(best, point.energy)
    assert found.ok and found.residual < 1e-8
    assert best * (1 - 1e-8) <= found.energy <= best * 1.1


@pytest.mark.parametrize("seed", range(8))
def test_flips_end_complementary(quad, seed):
    """All twenty patches, any friction: residual, limits, cone, COP."""
    friction = [0.03, 0.2, 0.6, 1.0][seed % 4]
    on = np.array([seed % 2, 1, 1, 1], bool)
    _, _, _, _, ready = posed(quad, seed, friction=friction, reach=0.006, on=on)
    found = solve_qpcc(ready.qpcc)
    assert found.ok and found.residual < 1e-8
    assert np.abs(found.torques).max() <= 2.0 * (1 + 1e-9)
    f = found.forces
    assert f[:, 2].min() > -1e-8
    assert (np.abs(f[:, :2]).sum(axis=1) <= friction * f[:, 2] + 1e-7).all()
    if not found.dropped:
        assert (ready.qpcc.cop @ f.ravel()).min() > -1e-8
    else:
        # With these contacts no torques hold the COP inside.
        assert LabelledQp(ready.qpcc).solve(found.labels) is None
    energies = [i.energy for i in found.iterates if i.what != "held"]
    assert found.energy == pytest.approx(min(energies), rel=1e-12)


@pytest.mark.parametrize("seed", [0, 3])
def test_uncondensed_agrees(quad, seed):
    """All unknowns of eq. (2) in each QP: the same torques and flips."""
    planner, state, memory, goal, ready = posed(quad, seed, friction=0.3)
    found = solve_qpcc(ready.qpcc)
    stepper = planner.stepper
    coupled = stepper.equations(state)
    feet = feet_kinematics(quad.plant, stepper.context, quad.feet)
    error = position_error(quad.plant, stepper.context, goal.q)
    engine = UncondensedQp(
        ready.qpcc,
        coupled,
        quad.feet,
        feet,
        memory.anchors,
        StepTargets(error, memory.dq, memory.torques, goal.flat, goal.standing),
        planner.options.weights,
        planner.units,
    )
    other = solve_qpcc(ready.qpcc, engine=engine)
    assert other.energy == pytest.approx(found.energy, rel=1e-6)
    assert np.allclose(other.torques, found.torques, atol=1e-5)
    assert np.allclose(other.forces, found.forces, atol=1e-3)
    assert engine.solved == len(other.iterates)


def test_cop_out_of_reach(quad):
    """Rows no torques satisfy: dropped and said, or a failed result that names them."""
    _, _, _, _, ready = posed(quad, 1)
    outside = np.zeros((1, 60))
    outside[0, 2::3] = -1.0  # sum f_n <= 0, while the feet are pressed down
    y0 = ready.qpcc.y0.copy()
    y0[2::3] -= 2e-2  # more than the motors can lift in a step
    qpcc = replace(ready.qpcc, cop=outside, y0=y0)
    found = solve_qpcc(qpcc, cop="drop")
    assert found.ok and found.dropped == ("cop",) and "COP" in found.message
    failed = solve_qpcc(qpcc, cop="require")
    assert not failed.ok and "COP" in failed.message and "N m" in failed.message
    assert solve_qpcc(qpcc, cop="ignore").dropped == ()


def test_what_a_qpcc_refuses(quad):
    _, _, _, _, ready = posed(quad, 0)
    with pytest.raises(InvalidInput, match="friction"):
        replace(ready.qpcc, friction=0.0)
    with pytest.raises(InvalidInput, match="Y must be nxn finite"):
        replace(ready.qpcc, Y=np.full_like(ready.qpcc.Y, np.nan))
    for bad in ({"reach": 0}, {"cop": "x"}, {"max_iterations": 1}):
        with pytest.raises((InvalidInput, UnknownName)):
            StepOptions(**bad)


class Cycling(LabelledQp):
    """Its first labels have no QP, and its sweeps cycle under some torques."""

    def __init__(self, qpcc, failures):
        super().__init__(qpcc)
        self.failures, self.labelled, self.tried = failures, 0, []

    def solve(self, labels, *, rows=True, **options):
        self.labelled += rows
        if rows and self.labelled == 1:
            return None
        return super().solve(labels, rows=rows, **options)

    def simulated(self, torques):
        self.tried.append(np.array(torques))
        if len(self.tried) <= self.failures:
            raise NoSolution("contacts: sweeps did not settle")
        return super().simulated(torques)


@pytest.mark.parametrize("failures", [0, 1, 2, 4])
def test_sweeps_that_cycle_are_tried_under_other_torques(quad, failures):
    qpcc = posed(quad, 3)[4].qpcc
    last = np.linspace(-0.5, 0.5, 12)
    engine = Cycling(qpcc, failures)
    found = solve_qpcc(qpcc, start=last, engine=engine, cop="ignore")
    assert found.ok and found.residual < 1e-8
    held = engine.tried[0]
    tried = [held, (held + last) / 2, last, last / 2, 0 * last]
    assert len(engine.tried) >= failures + 1
    for found, expected in zip(engine.tried, tried[: failures + 1]):
        assert np.allclose(found, expected)
    # With none left, the step fails and says so.
    stuck = solve_qpcc(qpcc, start=last, engine=Cycling(qpcc, 99), cop="ignore")
    assert not stuck.ok and "did not settle" in stuck.message
