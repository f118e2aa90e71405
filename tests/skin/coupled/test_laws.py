"""Contact points of skinned robots on the ground."""

import numpy as np
import pytest
from scipy.optimize import minimize

from drakebots.core.errors import InvalidInput
from drakebots.multibody import Flat
from drakebots.skin.coupled import PatchContact, ReducedSystem, Servo, SkinGround
from drakebots.skin.coupled.laws import ClippedLaw, find_friction, minimise, servo_law
from drakebots.skin.file.description import Patches
from tests.helpers.skinned_brick import (
    MASS,
    SIZE,
    box_points,
    brick,
    brick_stepper,
    run_brick,
)
from tests.helpers.skinned_leg import DT, Leg, skin_model, stepper

LIMIT = np.array([0.4, 0.1])


@pytest.fixture(scope="module")
def model():
    return skin_model()


@pytest.mark.parametrize("bound", [0.0, 3.0])
def test_laws_are_gradients_of_their_energies(bound):
    rng = np.random.default_rng(0)
    law = (
        PatchContact(stiffness=1e3)
        .law(*box_points(), DT)
        .with_friction(np.full(4, bound))
    )
    servo = ClippedLaw(
        np.eye(2), np.array([0.3, 5.0]), np.array([4.0, 0.0]), -LIMIT, LIMIT
    )
    for one, size in ((law, 1e-3), (servo, 0.1)):
        n = len(one.rows)
        for _ in range(5):
            y, h = size * rng.normal(size=n), 1e-9
            slope = np.array(
                [(one.energy(y + h * e) - one.energy(y - h * e)) / 2 / h
                 for e in np.eye(n)]
            )  # fmt: skip
            assert np.allclose(-slope, one.force(y), rtol=1e-5, atol=1e-4)
            moved = [
                (one.force(y + h * e) - one.force(y - h * e)) / 2 / h for e in np.eye(n)
            ]
            assert np.allclose(-np.array(moved), one.stiffness(y), rtol=1e-4, atol=1e-2)


@pytest.mark.long
@pytest.mark.parametrize("dt", [1e-3, DT])
def test_a_dropped_brick_rests_on_its_points(dt):
    plant, context = brick(SIZE / 2 + 0.02)
    contact = PatchContact(stiffness=2e4, damping=50.0)
    run = brick_stepper(plant, context, dt, patch_contact=contact)
    result = run_brick(run, run.start(), round(1.0 / dt))
    sink = MASS * 9.81 / (4 * 2e4)
    assert np.allclose(result.state.q[6], SIZE / 2 - sink, atol=1e-7)
    assert np.abs(result.state.v).max() < 1e-6
    assert np.allclose(result.patch_forces.sum(axis=0), [0, 0, MASS * 9.81], atol=1e-5)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_friction_holds_or_brakes_as_coulomb(share):
    """On an incline of tan = share mu: it sticks, or slides as it should."""
    mu, g = 0.5, 9.81
    slope = np.arctan(share * mu)
    gravity = g * np.array([np.sin(slope), 0, -np.cos(slope)])
    plant, context = brick(SIZE / 2 - MASS * g / 8e4, gravity)
    contact = PatchContact(friction=mu, slip_speed=1e-4)
    run = brick_stepper(plant, context, patch_contact=contact)
    state = run_brick(run, run.start(), 20).state
    v0 = state.v[3]
    result = run_brick(run, state, 40)
    gain = (result.state.v[3] - v0) / (40 * DT)
    f = result.patch_forces.sum(axis=0)
    if share < 1:
        # It creeps at its share of slip_speed.
        assert np.isclose(result.state.v[3], share * 1e-4, rtol=0.02)
        assert np.isclose(f[0], -MASS * gravity[0], rtol=1e-3)
    else:
        assert np.isclose(gain, gravity[0] + mu * gravity[2], rtol=1e-3)
        assert np.isclose(f[0], -mu * f[2], rtol=1e-3)


def test_a_point_never_pulls():
    plant, context = brick()
    run = brick_stepper(plant, context, patch_contact=PatchContact(damping=500.0))
    state = run.start(v=[0, 0, 0, 0, 0, 1.0])
    for _ in range(5):
        result = run.step(state)
        assert (result.patch_forces[:, 2] >= 0).all()
        state = result.state
    assert np.isclose(state.v[5], 1.0 - 9.81 * 5 * DT, rtol=1e-9)


def test_newton_finds_the_minimum(model):
    """Against SciPy's minimiser, servos and points together."""
    leg = Leg()
    contact = PatchContact(stiffness=1e3, terrain=Flat(0.005))
    patches = (Patches("toe", "shin", [[0, 0, -0.1], [0.01, 0, -0.1]]),)
    run = stepper(leg, model, patches=patches, patch_contact=contact)
    state = run.start(v=[2.0, -3.0])
    equations = run.equations(state)
    system = ReducedSystem(equations, run.solver)
    servo = servo_law(
        equations.skeleton.B, Servo(50.0, 0.5, [0.5, -0.1]), state.q, DT, LIMIT
    )
    patch = contact.law(leg.plant, run.context, patches, DT).with_friction(
        np.array([2.0, 1.0])
    )
    r = system.right_side()
    z = minimise(system, [servo, patch], r, system.back(r))

    def merit(z):
        own = servo.energy(servo.rows @ z) + patch.energy(patch.rows @ z)
        return 1e3 * (0.5 * z @ system.matrix @ z - r @ z + own)

    best = minimize(merit, z + 1e-3, method="Nelder-Mead", options={"xatol": 1e-10})
    assert merit(z) <= best.fun + 1e-9
    assert np.allclose(z, best.x, atol=1e-5)
    found, law = find_friction(system, [servo], patch, r)
    forces = law.on_links(found[: system.nv])
    y = (patch.rows @ found).reshape(-1, 3)
    slip = np.linalg.norm(y[:, :2], axis=1)
    assert (slip > 0).all()
    rubbed = np.linalg.norm(forces[:, :2], axis=1)
    assert np.allclose(
        rubbed,
        0.8 * forces[:, 2] * np.minimum(1.0, slip / (contact.slip_speed * DT)),
        rtol=5e-3,
        atol=1e-9,
    )


def test_contact_numbers_refused():
    for kind in (PatchContact, SkinGround):
        for name, value in (
            ("friction", -1.0),
            ("stiffness", 0.0),
            ("damping", np.nan),
            ("slip_speed", 0.0),
        ):
            with pytest.raises(InvalidInput, match=name) as caught:
                kind(**{name: value})
            assert "\n" not in str(caught.value)
