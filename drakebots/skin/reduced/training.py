"""Training runs of a reduced skin, and how near it comes to the full one.

skin = train_on_random_motion(robot)
figures, runs = measure_reduced(robot, skin, targets, frames=300)
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.run import CtrlC
from drakebots.core.threads import calm_threads
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import PatchContact, torque_map
from drakebots.skin.reduced.basis import Links, SkinRun, record_states, snapshots
from drakebots.skin.reduced.skin import ReducedOptions, ReducedSkin, train_reduced
from drakebots.skin.reduced.stepper import reduced_stepper

Targets = Callable[[float], np.ndarray]
"""Positions of the actuated joints (m,) [rad] at a time [s]."""

SHARES = (0.5, 0.3, 0.2)
"""Of the amplitude, in each of the sines of a random motion."""


def random_targets(
    rest: np.ndarray, amplitude: np.ndarray | float, seed: int, rise: float = 0.15
) -> Targets:
    """Sines of random frequencies, 0.5 to 2 Hz, and phases, each joint its own.

    Args:
        rest: about which (m,) [rad].
        amplitude: the most a joint swings, scalar or (m,) [rad].
        seed: of the motion.
        rise: time in which it begins [s].
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
    """A slow walk in joint space of four legs FL, FR, RL, RR of three pitch joints.

    Each leg swings for a quarter of the period, one at a time: FL, RL, FR, RR.

    Args:
        rest: (12,) [rad].
        period: [s].
        stride, lift: amplitudes of shoulders, and of knees in the swing [rad].
        rise: time in which it begins [s].

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
    frames: int = 200,
    dt: float = 8e-3,
    every: int = 2,
    threads: int = 1,
) -> SkinRun:
    """A run of the full skin, on ground without friction where it has feet.

    Args:
        robot: whose skin.
        targets: of the servos, effort limits left out.
        frames, dt, every: how long, and frames from shape to shape.
        threads: of the sparse solver.

    Raises:
        NoSolution: when a frame fails.
        KeyboardInterrupt: at Ctrl-C, between frames.
    """
    stepper = robot.stepper(
        dt,
        effort_limits=np.full(len(robot.joints), np.inf),
        patches=robot.skin.patches,
        patch_contact=PatchContact(0.0, stiffness=5e3),
        threads=threads,
    )
    links = Links(robot.plant, robot.context, robot.glue.by_body())
    with CtrlC() as stop, calm_threads():
        states = record_states(
            stepper, lambda t: robot.servo(targets(t)), frames, every, stop.check
        )
    return snapshots(stepper, states, links, torque_map(robot.plant)[0])


def train_on_random_motion(
    robot: SkinnedRobot,
    options: ReducedOptions = ReducedOptions(),
    *,
    amplitude: np.ndarray | float = 0.3,
    seeds: Sequence[int] = (2, 3),
    frames: int = 200,
) -> ReducedSkin:
    """Runs of random motions, and the reduced skin they teach.

    Args:
        robot: whose skin.
        options: of the training.
        amplitude: of the motions, scalar or (m,) [rad].
        seeds: one a run.
        frames: of each run.
    """
    rest = robot.joint_positions(robot.rest_positions)
    runs = [
        training_run(robot, random_targets(rest, amplitude, seed), frames=frames)
        for seed in seeds
    ]
    return train_reduced(robot, runs, options)


def measure_reduced(
    robot: SkinnedRobot,
    skin: ReducedSkin,
    targets: Targets,
    *,
    frames: int = 300,
    dt: float = 5e-3,
    contact: PatchContact | None = None,
    threads: int = 1,
) -> tuple[dict, dict]:
    """Full and reduced skin side by side on a motion, frame by frame.

    Both follow the same servo targets from the same start on the same ground; each
    frame is timed, one after the other, so that a machine's load falls on both. The
    first five frames are not counted in times.

    Args:
        robot: of the full skin.
        skin: trained.
        targets: of the servos; a motion it was not trained on.
        frames, dt: how long.
        contact: of the feet; Coulomb's 0.8 by default.
        threads: of the full skin's solver.

    Returns:
        Figures: `torque_error`, |tau_r - tau|/|tau| in the norm over all joints and
        frames (rms); `worst_joint_error`, the same of the worst joint; `speedup`,
        `full_ms`, `reduced_ms` a frame; `position_error_m`, largest of any node at
        the end; `joint_error_rad`. And arrays: time (n,), torque, reduced_torque
        (n, m).

    Raises:
        NoSolution: when a frame fails.
    """
    options = {
        "effort_limits": np.full(len(robot.joints), np.inf),
        "patches": robot.skin.patches,
        "patch_contact": PatchContact() if contact is None else contact,
    }
    full = robot.stepper(dt, threads=threads, **options)
    small = reduced_stepper(robot, skin, dt, **options)
    a, b = full.start(), small.start()
    spent, torques, reduced = np.empty((frames, 2)), [], []
    with CtrlC() as stop, calm_threads():
        for k in range(frames):
            stop.check()
            servo = robot.servo(targets((k + 1) * dt))
            t0 = clock.perf_counter()
            one = full.step(a, servo=servo)
            t1 = clock.perf_counter()
            two = small.step(b, servo=servo)
            spent[k] = t1 - t0, clock.perf_counter() - t1
            for name, result in (("full", one), ("reduced", two)):
                if not result.converged:
                    raise NoSolution(f"{name} skin: {result.message}")
            a, b = one.state, two.state
            torques.append(one.torques)
            reduced.append(two.torques)
    torques, reduced = np.array(torques), np.array(reduced)
    off, size = (reduced - torques) ** 2, torques**2
    ms = 1e3 * spent[min(5, frames - 1) :].mean(axis=0)
    shapes = small.lift(b).skin.positions - a.skin.positions
    figures = {
        "torque_error": float(np.sqrt(off.sum() / size.sum())),
        "worst_joint_error": float(np.sqrt((off.sum(0) / size.sum(0)).max())),
        "speedup": float(ms[0] / ms[1]),
        "full_ms": float(ms[0]),
        "reduced_ms": float(ms[1]),
        "slowest_reduced_ms": float(1e3 * spent[min(5, frames - 1) :, 1].max()),
        "position_error_m": float(np.linalg.norm(shapes, axis=1).max()),
        "joint_error_rad": float(
            np.abs(robot.joint_positions(a.q) - robot.joint_positions(b.q)).max()
        ),
        "modes": skin.size,
        "quadrature_points": len(skin.point_row),
        "mass_points": len(skin.masses),
    }
    time = dt * np.arange(1, frames + 1)
    return figures, {"time": time, "torque": torques, "reduced_torque": reduced}
