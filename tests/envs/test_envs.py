"""The Gymnasium environments: the checker, seeds, units, pictures, tasks."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import drakebots.envs
from drakebots import hamr
from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.core.units import si_factor
from drakebots.robots.gecko.generator import GaitPatternGenerator, GeneratorOptions
from drakebots.robots.hamr import make_waveform
from drakebots.robots.hamr.model import BIAS

NAMES = [
    pytest.param("Gecko"),
    pytest.param("Hamr", marks=pytest.mark.long),
    pytest.param("Voxel", marks=pytest.mark.long),
    pytest.param("SkinnedLeg", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def made():
    """Environments by name, each made once, with pictures."""
    found = {}

    def make(name: str):
        if name not in found:
            options = {"period": 0.03} if name == "Voxel" else {}
            found[name] = gymnasium.make(
                f"drakebots/{name}-v0", render_mode="rgb_array", **options
            )
        return found[name]

    return make


def test_all_are_registered():
    names = {f"drakebots/{name}-v0" for name in drakebots.envs.STEPS}
    assert names <= set(gymnasium.registry)
    assert gymnasium.spec("drakebots/Hamr-v0").max_episode_steps == 200


@pytest.mark.parametrize("name", NAMES)
def test_checker_seeds_and_pictures(made, name):
    env = made(name).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the checker advises against
        warnings.filterwarnings("ignore", message=".*not in the range of.*")
        check_env(env, skip_render_check=True)
    for quantity in (*env.observed, *env.acted):
        assert si_factor(quantity.unit) == 1
        assert quantity.low < quantity.high
    random = np.random.default_rng(5)
    actions = random.uniform(-1, 1, (3, *env.action_space.shape))

    def episode(seed):
        seen = [env.reset(seed=seed)[0]]
        rewards = []
        for action in actions:
            observation, reward, *_ = env.step(action)
            seen.append(observation)
            rewards.append(reward)
        return np.array(seen), rewards

    first, rewards = episode(3)
    again, same = episode(3)
    np.testing.assert_array_equal(first, again)
    assert rewards == same
    other, _ = episode(4)
    assert np.abs(first[0] - other[0]).max() > 1e-4
    parts = env.named(first[0])
    assert list(parts) == [quantity.name for quantity in env.observed]
    assert all(len(parts[q.name]) == q.size for q in env.observed)
    picture = env.render()
    assert picture.shape == (360, 480, 3)
    assert picture.dtype == np.uint8
    assert picture.std() > 5  # something is drawn


def test_bad_input(made):
    with pytest.raises(UnknownName, match="rgb_array"):
        drakebots.envs.GeckoEnv(render_mode="human")
    with pytest.raises(InvalidInput, match="epsilon must be > 0 m"):
        drakebots.envs.GeckoEnv(epsilon=-1)
    with pytest.raises(TypeError, match="abstract"):
        drakebots.envs.RobotEnv()
    env = drakebots.envs.GeckoEnv()
    with pytest.raises(InvalidInput, match="reset"):
        env.step(np.zeros(2))
    with pytest.raises(InvalidInput, match="no options"):
        env.reset(options={"x": 1})
    env.reset(seed=0)
    assert env.render() is None
    for action in (np.zeros(3), np.array([0.0, np.nan])):
        with pytest.raises(InvalidInput, match="needs 2 numbers"):
            env.step(action)


# A failed assertion of Drake is a SystemExit in Python.
@pytest.mark.parametrize("error", [NoSolution, RuntimeError, SystemExit])
def test_a_simulation_that_fails_ends_the_episode(error, monkeypatch):
    env = drakebots.envs.GeckoEnv()
    first, _ = env.reset(seed=0)

    def fails(values):
        raise error("no pose")

    monkeypatch.setattr(env, "act", fails)
    seen, reward, terminated, truncated, info = env.step(np.zeros(2))
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["failed"] == "no pose"
    np.testing.assert_array_equal(seen, first)


@pytest.mark.parametrize("seed", range(4))
def test_the_generator_walks_the_gecko_to_its_target(made, seed):
    """The gait pattern generator as the policy; the return is the distance walked."""
    env = made("Gecko").unwrapped
    _, info = env.reset(seed=seed)
    began, total, done = info["distance"], 0.0, False
    generator = GaitPatternGenerator(env.target[None], GeneratorOptions(env.epsilon))
    low, high = np.array([(q.low, q.high) for q in env.acted]).T
    for _ in range(60):
        decision = generator.decide(env.pose.position, env.pose.heading)
        values = np.array([decision.q1, decision.q2])
        action = 2 * (values - low) / (high - low) - 1
        _, reward, done, _, info = env.step(action)
        total += reward
        if done:
            break
    assert done
    assert info["is_success"]
    assert info["distance"] < env.epsilon
    assert total == pytest.approx(began - info["distance"])


@pytest.mark.long
def test_hamr_trots_as_in_its_simulation(made):
    """The same voltages, held for 5 ms, give the stride of the simulated gait.

    Single cycles of this gait differ by a fifth from one another in either.
    """
    env = made("Hamr").unwrapped
    wave = make_waveform("trot", 10.0)
    cycles = 5
    yaw = env.named(env.reset(seed=0)[0])["yaw"].item()
    ahead = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    steps = int(np.ceil(wave.ramp) + cycles) * 20
    positions = []
    for k in range(steps):
        volts = wave.voltages((k + 0.5) * env.period)
        *_, info = env.step(2 * volts / BIAS - 1)
        positions.append(info["position"] @ ahead)
    stride = (positions[-1] - positions[-1 - 20 * 3]) / 3
    result = hamr.simulate(hamr.Simulation(cycles=cycles, time_step=5e-4))
    expected = result.metrics["stride_mm_per_cycle"]
    assert 1e3 * stride == pytest.approx(expected, rel=0.25)


@pytest.mark.long
def test_the_leg_reaches_where_its_servos_are_told(made):
    """Actions that are the goal's joint angles bring the foot to the goal."""
    env = made("SkinnedLeg").unwrapped
    _, info = env.reset(seed=1)
    began = info["distance"]
    grid = np.linspace(-1, 1, 41)
    best = min(
        ((a, b) for a in grid for b in grid),
        key=lambda at: np.linalg.norm(
            env._foot_at(env._rest + 0.4 * np.array(at)) - env.goal
        ),
    )
    for _ in range(40):
        *_, info = env.step(np.array(best))
    # The skin and the servos' limits keep the leg from going all the way.
    assert info["distance"] < 0.35 * began
