"""Contact of the skin with links and itself, implicit."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.fem import Penalty, SkinState, self_contact
from drakebots.fem.assembly import build_model
from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh
from drakebots.skin.coupled import (
    Collisions,
    CoupledState,
    CoupledStepper,
    glue_vertices,
    link_contact,
    touch,
)
from drakebots.skin.coupled.touch import TouchLaw
from tests.helpers.skin_energy import momentum
from tests.helpers.skinned_brick import MASS, brick
from tests.helpers.skinned_leg import DT

SIDE, GAP, MARGIN = 0.04, 5e-3, 1e-3
SOFT = Material(youngs_modulus=3e5, poisson_ratio=0.4, stiffness_damping=0.02)
PENALTY = Penalty(1e4, 30.0)


def law(pairs=6):
    """A law of random pairs."""
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(pairs, pairs))
    give = np.diag(rng.uniform(1e-4, 1e-3, pairs)) + 1e-4 * roots @ roots.T
    return TouchLaw(np.eye(pairs), 1e-3 * rng.normal(size=pairs), give)


def test_pairs_push_and_never_pull():
    """f >= 0, what they give suffices, and only those that push give all of it."""
    one = law()
    for y in 1e-3 * np.random.default_rng(0).normal(size=(20, 6)):
        f = one.force(y)
        left = one.give @ f - (one.aim - y)
        assert f.min() >= 0 and left.min() > -1e-15
        assert np.abs(left * f).max() < 1e-15


def test_the_force_is_the_slope_of_its_energy():
    one, h = law(), 1e-8
    for y in 1e-3 * np.random.default_rng(1).normal(size=(5, 6)):
        for k, e in enumerate(np.eye(6)):
            slope = (one.energy(y + h * e) - one.energy(y - h * e)) / 2 / h
            assert -slope == pytest.approx(one.force(y)[k], rel=1e-5, abs=1e-6)
            bend = (one.force(y + h * e) - one.force(y - h * e)) / 2 / h
            assert np.allclose(-bend, one.stiffness(y)[:, k], rtol=1e-5, atol=1e-5)


def test_the_other_solver_agrees(monkeypatch):
    ys = 1e-3 * np.random.default_rng(2).normal(size=(20, 6))
    usual = [law().force(y) for y in ys]
    monkeypatch.setattr(touch, "ROUNDS", 0)
    assert np.allclose([law().force(y) for y in ys], usual, rtol=1e-9, atol=1e-12)


def tower(dt=DT, **options):
    """A free brick, a block glued on it, one loose above, and one loose beside it."""
    plant, context = brick(gravity=(0, 0, 0))
    block = box_mesh((SIDE,) * 3, (2, 2, 2))
    half = SIDE / 2
    at = (
        [-half, -half, 0.1],
        [-half, -half, 0.1 + SIDE + GAP],
        [0.05 + GAP, -half, 0.03],
    )
    n = len(block.vertices)
    mesh = TetMesh(
        np.concatenate([block.vertices + p for p in at]),
        np.concatenate([block.tets + n * k for k in range(3)]),
    )
    model = build_model(mesh, SOFT)
    held = np.flatnonzero(block.vertices[:, 2] < 1e-9)
    glue = glue_vertices(mesh.vertices, plant, context, {"brick": held})
    collisions = Collisions(
        link_contact(model, glue, plant, context, PENALTY, margin=MARGIN),
        self_contact(model, PENALTY, margin=MARGIN, reach=1.9e-3),
    )
    # What is loose has no glue but only mass, which is enough for a step.
    options = {"context": context, "collisions": collisions} | options
    return CoupledStepper(plant, model, glue, dt, **options), n


def meeting(run, n, speed=0.3):
    """The loose blocks about to touch, moving to the others."""
    state = run.start()
    x, v = state.skin.positions.copy(), state.skin.velocities.copy()
    x[n : 2 * n, 2] -= GAP - 0.5 * MARGIN
    x[2 * n :, 0] -= GAP - 1.5 * MARGIN
    v[n : 2 * n, 2] = v[2 * n :, 0] = -speed
    return CoupledState(state.q, state.v, SkinState(0.0, x, v))


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_step_agrees_with_springs_in_the_whole_system(precision):
    """Dense: springs of the pairs that push in the matrix, and the glue as rows."""
    run, n = tower(precision=precision)
    state = meeting(run, n, speed=0.1)
    # Tilted, so that some pairs are near and do not push.
    x = state.skin.positions
    x[n:, 2] += 0.06 * x[n:, 0] + 0.01 * x[n:, 1]
    x[n:, 0] += 0.06 * x[n:, 1]
    result = run.step(state)
    assert result.converged
    run.pose(state.q, state.v)
    pairs = run.collisions.pairs(run.plant, run.context, state.skin, DT)
    G, L = pairs.rows()
    s = G @ result.solution.du.ravel() + L @ result.solution.dq
    kappa = pairs.stiffness + pairs.damping / DT
    f = pairs.stiffness * pairs.depth - kappa * s
    on = f > 0
    beside = np.abs(L).max(axis=1) > 0
    assert (on & beside).any() and (on & ~beside).any() and not on.all()

    project = "projected" in result.message
    equations = run._equations(state, None, None, project, pairs)
    size, nv = len(equations.b_d), len(equations.skeleton.b)
    rows = np.hstack([L, G.toarray()])[on]
    A = np.zeros((nv + size,) * 2)
    A[:nv, :nv] = equations.skeleton.A
    A[nv:, nv:] = equations.pattern.full(equations.A_d).toarray()
    b = np.concatenate([equations.skeleton.b, equations.b_d])
    A += rows.T @ (kappa[on, None] * rows)
    b += rows.T @ (pairs.stiffness * pairs.depth)[on]
    held = np.zeros((len(equations.glue_dofs), nv + size))
    held[:, :nv] = equations.skeleton.J
    held[np.arange(len(held)), nv + equations.glue_dofs] = -1.0
    K = np.block([[A, held.T], [held, np.zeros((len(held),) * 2)]])
    want = np.linalg.solve(K, np.concatenate([b, -equations.gap]))
    found = result.solution
    for got, part in (
        (found.dq, want[:nv]),
        (found.du.ravel(), want[nv : nv + size]),
        (found.glue_forces.ravel(), want[nv + size :]),
    ):
        assert np.abs(got - part).max() < 1e-8 * np.abs(part).max()


def test_touching_steps_keep_momentum():
    """Brick and all blocks, through two impacts."""
    run, n = tower()
    state = meeting(run, n)

    def total(state):
        return momentum(run.model, state.skin)[0] + MASS * state.v[3:]

    start, felt = total(state), 0
    for _ in range(12):
        run.pose(state.q, state.v)
        felt += run.collisions.pairs(run.plant, run.context, state.skin, DT) is not None
        result = run.step(state)
        assert result.converged, result.message
        state = result.state
    assert felt > 3
    # Both blocks were stopped.
    assert state.skin.velocities[n : 2 * n, 2].mean() > -0.1
    assert state.skin.velocities[2 * n :, 0].mean() > -0.1
    assert np.abs(total(state) - start).max() < 1e-12


@pytest.mark.parametrize("dt", [DT, 10 * DT])
def test_a_pressed_block_rests_at_force_over_stiffness(dt):
    """Pushed with F, block and brick accelerate alike; the contact moves the brick."""
    run, n = tower(dt)
    mass = run.model.node_mass
    # Stiffer by far than what an explicit force at this dt could be.
    assert PENALTY.stiffness > 4 * mass.max() / DT**2
    state, push, force = run.start(), np.zeros((3 * n, 3)), 2.0
    loose, carried = mass[n : 2 * n], MASS + mass[:n].sum()
    want = force * carried / (carried + loose.sum())
    x = state.skin.positions.copy()
    # Nine vertices against nine; what has not met does not push.
    x[n : 2 * n, 2] -= GAP - MARGIN + want / PENALTY.stiffness / 18
    state = CoupledState(state.q, state.v, SkinState(0.0, x, state.skin.velocities))
    push[n : 2 * n, 2] = -force * loose / loose.sum()
    for _ in range(round(0.3 / dt)):
        result = run.step(state, skin_forces=push)
        assert result.converged, result.message
        state = result.state
    contacts = run.collisions.itself.find(state.skin.positions)
    pressed = PENALTY.stiffness * contacts.depth.sum()
    assert pressed == pytest.approx(want, rel=5e-3)
    assert contacts.depth.max() < MARGIN


def test_a_step_without_its_contact_is_refused():
    run, _ = tower()
    with pytest.raises(InvalidInput, match=r"use step\(\) or system\(\)"):
        run.equations(run.start())
