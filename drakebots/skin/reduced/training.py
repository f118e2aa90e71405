"""Trains a reduced skin on simulations of the full one, and compares the two.

skin = train_on_random_motion(robot)
figures, runs = measure_reduced(robot, skin, targets, steps=300)
"""

from __future__ import annotations

import hashlib
import time as clock
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from drakebots import __version__
from drakebots.core.errors import FileProblem, InvalidInput, NoSolution
from drakebots.core.files import cache_folder
from drakebots.core.run import Progress, Verdict, run_steps
from drakebots.core.stages import stage
from drakebots.core.threads import calm_threads
from drakebots.model import skin_path
from drakebots.results import file_hash
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import PatchContact, torque_map
from drakebots.skin.reduced.basis import Links, SkinRun, snapshots
from drakebots.skin.reduced.skin import (
    ReducedOptions,
    ReducedSkin,
    read_reduced,
    train_reduced,
    write_reduced,
)
from drakebots.skin.reduced.stepper import reduced_stepper

Targets = Callable[[float], np.ndarray]
"""Positions of the actuated joints (m,) [rad] at a time [s]."""

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


def walk_targets(
    rest: np.ndarray,
    *,
    period: float = 1.0,
    stride: float = 0.12,
    lift: float = 0.3,
    rise: float = 0.2,
) -> Targets:
    """Targets of a slow walk of four legs FL, FR, RL, RR with three pitch joints each.

    Each leg swings for a quarter of the period, one at a time: FL, RL, FR, RR.

    Args:
        rest: mean positions (12,) [rad].
        period: period of the gait [s].
        stride: amplitude of the shoulders [rad].
        lift: amplitude of the knees in the swing [rad].
        rise: time in which the amplitude rises at the start [s].

    Raises:
        InvalidInput: for another number of joints.
    """
    rest = np.asarray(rest, float)
    if rest.shape != (12,):
        raise InvalidInput(f"walk: {rest.size} joints, needs 12 (four legs of three)")

    def at(time):
        b = np.clip(time / rise, 0, 1)
        q, b = rest.copy(), b * b * (3 - 2 * b)
        for leg, (phase, sign) in enumerate(
            ((0.0, 1), (0.5, 1), (0.75, -1), (0.25, -1))
        ):
            s = (time / period + phase) % 1.0
            swing = s < 0.25
            u = s / 0.25 if swing else (s - 0.25) / 0.75
            ahead = stride * (-np.cos(np.pi * u) if swing else 1 - 2 * u)
            up = sign * lift * np.sin(np.pi * u) ** 2 if swing else 0.0
            q[3 * leg : 3 * leg + 3] += b * np.array(
                [ahead + 0.3 * up, -up, 0.6 * up - ahead]
            )
        return q

    return at


def training_run(
    robot: SkinnedRobot,
    targets: Targets,
    *,
    steps: int = 200,
    dt: float = 8e-3,
    every: int = 2,
    threads: int = 1,
    progress: Progress | None = None,
) -> SkinRun:
    """Simulates the full skin, on ground without friction where the robot has feet.

    Args:
        robot: the robot.
        targets: targets of the servos, without effort limits.
        steps: number of time steps.
        dt: time step [s].
        every: number of steps from one stored shape to the next.
        threads: number of threads of the sparse solver.
        progress: called after each step.

    Raises:
        NoSolution: when a step fails.
        KeyboardInterrupt: at Ctrl-C, between steps.
    """
    stepper = robot.stepper(
        dt,
        effort_limits=np.full(len(robot.joints), np.inf),
        patches=robot.skin.patches,
        patch_contact=PatchContact(0.0, stiffness=5e3),
        threads=threads,
    )
    state, states = stepper.start(), []

    def step(k):
        nonlocal state
        servo = robot.servo(targets(state.skin.time + dt))
        state = converged(stepper.step(state, servo=servo)).state
        if k % every == 0:
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


def trained_once(
    robot: SkinnedRobot, training: dict, folder: Path | None = None
) -> ReducedSkin:
    """The reduced skin of a robot, from a file if it was trained before.

    Args:
        robot: the robot.
        training: options of :func:`train_on_random_motion`.
        folder: folder of the files; by default in the user's cache.
    """
    folder = cache_folder("skins") if folder is None else folder
    path = robot.model.path
    files = [path, skin_path(path), path.parent / robot.skin.mesh]
    options = training.get("options", ReducedOptions())
    parts = [__version__, repr(training), repr(options), *map(file_hash, files)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    path = folder / f"{robot.model.name}_{key}.npz"
    try:
        return read_reduced(path)
    except FileProblem:
        pass  # not there, or of another version
    with stage("train", f"training the reduced skin of {robot.model.name}, once"):
        skin = train_on_random_motion(robot, **training)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_reduced(skin, path)
    except (FileProblem, OSError):
        pass  # a home that cannot be written; it is trained again next time
    return skin


def measure_reduced(
    robot: SkinnedRobot,
    skin: ReducedSkin,
    targets: Targets,
    *,
    steps: int = 300,
    dt: float = 5e-3,
    contact: PatchContact | None = None,
    skin_forces: Callable[[float], np.ndarray | None] | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> tuple[dict, dict]:
    """Simulates the full and the reduced skin on the same motion, to compare them.

    Both follow the same servo targets from the same start on the same ground. Their
    steps are taken and timed in turns, in processor time, so that other load of the
    machine affects both alike. The first five steps do not count in the times.

    Args:
        robot: robot with the full skin.
        skin: trained reduced skin.
        targets: targets of the servos, of a motion it was not trained on.
        steps: number of time steps.
        dt: time step [s].
        contact: ground under the feet; friction 0.8 by default.
        skin_forces: function of the time [s] that returns forces on all nodes (N, 3)
            [N], or None; for instance of contacts that the skin was not trained on.
        threads: number of threads of the full skin's solver.
        progress: called after each step.

    Returns:
        Figures, by name:

        * torque_error: |tau_r - tau|/|tau|, with norms over all joints and steps;
        * worst_joint_error: the same for the worst joint alone;
        * speedup, full_ms, reduced_ms, slowest_reduced_ms: times of a step;
        * position_error_m, joint_error_rad: largest errors of a node and a joint at
          the end;
        * modes, quadrature_points, mass_points: sizes of the reduced skin.

        And arrays: time (n,), torque and reduced_torque (n, m).

    Raises:
        NoSolution: when a step fails.
        KeyboardInterrupt: at Ctrl-C, between steps.
    """
    options = {
        "effort_limits": np.full(len(robot.joints), np.inf),
        "patches": robot.skin.patches,
        "patch_contact": PatchContact() if contact is None else contact,
    }
    full = robot.stepper(dt, threads=threads, **options)
    small = reduced_stepper(robot, skin, dt, **options)
    a, b = full.start(), small.start()
    spent, torques, reduced = np.empty((steps, 2)), [], []

    def step(k):
        nonlocal a, b
        servo = robot.servo(targets(k * dt))
        pressed = None if skin_forces is None else skin_forces(k * dt)
        t0 = clock.process_time()
        one = full.step(a, servo=servo, skin_forces=pressed)
        t1 = clock.process_time()
        two = small.step(b, servo=servo, skin_forces=pressed)
        spent[k - 1] = t1 - t0, clock.process_time() - t1
        a, b = converged(one).state, converged(two).state
        torques.append(one.torques)
        reduced.append(two.torques)

    run_all(step, steps, "full and reduced skin", progress)
    torques, reduced = np.array(torques), np.array(reduced)
    off, size = (reduced - torques) ** 2, torques**2
    ms = 1e3 * spent[min(5, steps - 1) :].mean(axis=0)
    shapes = small.lift(b).skin.positions - a.skin.positions
    figures = {
        "torque_error": float(np.sqrt(off.sum() / size.sum())),
        "worst_joint_error": float(np.sqrt((off.sum(0) / size.sum(0)).max())),
        "speedup": float(ms[0] / ms[1]),
        "full_ms": float(ms[0]),
        "reduced_ms": float(ms[1]),
        "slowest_reduced_ms": float(1e3 * spent[min(5, steps - 1) :, 1].max()),
        "position_error_m": float(np.linalg.norm(shapes, axis=1).max()),
        "joint_error_rad": float(
            np.abs(robot.joint_positions(a.q) - robot.joint_positions(b.q)).max()
        ),
        "modes": skin.size,
        "quadrature_points": len(skin.point_row),
        "mass_points": len(skin.masses),
    }
    time = dt * np.arange(1, steps + 1)
    return figures, {"time": time, "torque": torques, "reduced_torque": reduced}
