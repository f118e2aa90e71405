"""Trains a reduced skin on simulations of the full one.

skin = train_on_random_motion(robot)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from drakebots import __version__
from drakebots.core.errors import FileProblem, NoSolution
from drakebots.core.files import cache_folder
from drakebots.core.run import Progress, Verdict, run_steps
from drakebots.core.stages import stage
from drakebots.core.threads import calm_threads
from drakebots.results import file_hash
from drakebots.skin.coupled import PatchContact, torque_map
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced.basis import Links, SkinRun, snapshots
from drakebots.skin.reduced.skin import (
    ReducedOptions,
    ReducedSkin,
    read_reduced,
    train_reduced,
    write_reduced,
)

Targets = Callable[[float], np.ndarray]
"""Positions of the actuated joints (m,) [rad] at a time [s]."""

STEP = 8e-3
"""Time step of the simulations [s]."""

EVERY = 2
"""Number of steps from one stored shape to the next."""

SHARES = (0.5, 0.3, 0.2)
"""Shares of the amplitude in the three sines of a random motion."""


def random_targets(
    rest: np.ndarray, amplitude: np.ndarray | float, seed: int, rise: float = 0.15
) -> Targets:
    """Targets that are sums of sines with random phases, for each joint.

    The frequencies are random too, 0.5 to 2 Hz.

    Args:
        rest: mean positions (m,) [rad].
        amplitude: largest deflection of a joint, scalar or (m,) [rad].
        seed: seed of the motion.
        rise: time in which the amplitude rises at the start [s].
    """
    rng, m = np.random.default_rng(seed), len(rest)
    rate = 2 * np.pi * rng.uniform(0.5, 2.0, (3, m))
    phase = rng.uniform(0, 2 * np.pi, (3, m))
    size = np.broadcast_to(amplitude, (m,)) * np.array(SHARES)[:, None]

    def at(time):
        s = np.clip(time / rise, 0, 1)
        return rest + s * s * (3 - 2 * s) * (size * np.sin(rate * time + phase)).sum(0)

    return at


def training_run(
    robot: SkinnedRobot,
    targets: Targets,
    *,
    steps: int = 200,
    progress: Progress | None = None,
) -> SkinRun:
    """Simulates the full skin, on ground without friction where the robot has feet.

    Args:
        robot: the robot.
        targets: targets of the servos, without effort limits.
        steps: number of time steps.
        progress: called after each step.

    Raises:
        NoSolution: when a step fails.
        KeyboardInterrupt: at Ctrl-C, between steps.
    """
    stepper = robot.stepper(
        STEP,
        effort_limits=np.full(len(robot.joints), np.inf),
        patches=robot.skin.patches,
        patch_contact=PatchContact(0.0, stiffness=5e3),
        threads=1,
    )
    state, states = stepper.start(), []

    def step(k):
        nonlocal state
        servo = robot.servo(targets(state.skin.time + STEP))
        state = converged(stepper.step(state, servo=servo)).state
        if k % EVERY == 0:
            states.append(state)

    run_all(step, steps, "training run", progress)
    links = Links(robot.plant, robot.context, robot.glue.by_body())
    return snapshots(stepper, states, links, torque_map(robot.plant)[0])


def converged(result):
    """The result of a step that converged.

    Raises:
        NoSolution: if it did not.
    """
    if not result.converged:
        raise NoSolution(result.message)
    return result


def run_all(
    step: Callable[[int], None], count: int, stage: str, progress: Progress | None
) -> None:
    """Calls step(1) .. step(count) by :func:`drakebots.core.run.run_steps`.

    Raises:
        NoSolution: when a step raises it.
        KeyboardInterrupt: at Ctrl-C, between steps.
    """
    with calm_threads():
        end = run_steps(step, count, stage=stage, progress=progress)
    if end.verdict is Verdict.INTERRUPTED:
        raise KeyboardInterrupt
    if not end.ok:
        raise NoSolution(f"{stage}: {end.message}")


def train_on_random_motion(
    robot: SkinnedRobot,
    options: ReducedOptions = ReducedOptions(),
    *,
    amplitude: np.ndarray | float = 0.3,
    seeds: Sequence[int] = (2, 3),
    steps: int = 200,
    progress: Progress | None = None,
) -> ReducedSkin:
    """A reduced skin trained on simulations of random motions.

    Args:
        robot: the robot.
        options: options of the training.
        amplitude: amplitude of the motions, scalar or (m,) [rad].
        seeds: seeds of the motions, one simulation each.
        steps: number of time steps of each simulation.
        progress: called after each step.

    Raises:
        NoSolution, KeyboardInterrupt: as :func:`training_run`.
    """
    rest = robot.joint_positions(robot.rest_positions)
    runs = []
    for seed in seeds:
        targets = random_targets(rest, amplitude, seed)
        runs.append(training_run(robot, targets, steps=steps, progress=progress))
    return train_reduced(robot, runs, options)


def trained_once(robot: SkinnedRobot, training: dict) -> ReducedSkin:
    """The reduced skin of a robot, from the user's cache if it was trained before.

    Args:
        robot: the robot.
        training: options of :func:`train_on_random_motion`.
    """
    folder = cache_folder("skins")
    options = training.get("options", ReducedOptions())
    parts = [__version__, repr(training), repr(options), *map(file_hash, robot.files)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    path = folder / f"{robot.model.name}_{key}.npz"
    with suppress(FileProblem):  # not there, or of another version
        return read_reduced(path)
    with stage("train", f"training the reduced skin of {robot.model.name}, once"):
        skin = train_on_random_motion(robot, **training)
    # Where a home cannot be written, the skin is trained again next time.
    with suppress(FileProblem, OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_reduced(skin, path)
    return skin
