"""Figures of the reduced skin for `scripts/bench/quad_planning.py`."""

from __future__ import annotations

import numpy as np

from drakebots.skin.file import load_skinned
from drakebots.skin.reduced import (
    ReducedOptions,
    measure_reduced,
    random_targets,
    train_on_random_motion,
    walk_targets,
)

AMPLITUDE = np.tile([0.27, 0.4, 0.3], 4)
"""Of the beetle's training motions: shoulder, knee, ankle [rad]."""

SPEEDUP, ERROR, RATE = 10.0, 0.01, 60.0


def reduced_skin_figures(quick: bool = False) -> dict[str, tuple[float, str, float]]:
    """Trains on random motions and measures on a walk; {name: (value, unit, target)}.

    Args:
        quick: use the small leg and few steps; the beetle takes minutes.
    """
    robot = load_skinned("skinned_leg" if quick else "beetle")
    rest = robot.joint_positions(robot.rest_positions)
    skin = train_on_random_motion(
        robot,
        ReducedOptions(),
        amplitude=0.4 if quick else AMPLITUDE,
        seeds=(2,) if quick else (2, 3),
        steps=40 if quick else 200,
    )
    targets = random_targets(rest, 0.3, 7) if quick else walk_targets(rest)
    figures, _ = measure_reduced(robot, skin, targets, steps=30 if quick else 300)
    return {
        "reduced_model_speedup": (figures["speedup"], "1", SPEEDUP),
        "reduced_model_torque_error": (figures["torque_error"], "1", ERROR),
        "reduced_model_hz": (1e3 / figures["reduced_ms"], "Hz", RATE),
    }
