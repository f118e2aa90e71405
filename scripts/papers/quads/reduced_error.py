"""A reduced skin beside the full one, on the same motion.

figures, runs = measure_reduced(robot, skin, targets, steps=300)

A library of quad_reduced.py and of two benches, without a command.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.skin.coupled import PatchContact
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced import ReducedSkin, reduced_stepper
from drakebots.skin.reduced.training import Targets, converged, run_all


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
