"""Speed of the Gymnasium environments, random actions.

python scripts/bench/environments.py            # about a minute
python scripts/bench/environments.py --quick

Steps a second of processor time of one process, with Gymnasium's wrappers and resets;
the real-time factor is the simulated time over the processor time. The skinned leg is
the one with the reduced skin, trained once (it is kept in the cache).

JSON: gecko_steps_per_s, hamr_real_time_factor, voxel_real_time_factor.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import gymnasium
from measurement import Measurement, figure

import drakebots.envs  # noqa: F401 - registers them
from drakebots.cli.output import print_table


def speed(name: str, steps: int, **options) -> tuple[float, float]:
    """Steps a second, and the real-time factor: the best of three runs."""
    env = gymnasium.make(f"drakebots/{name}-v0", **options)
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.action_space.sample())
    spent = []
    for _ in range(3):
        actions = [env.action_space.sample() for _ in range(steps)]
        began = time.process_time()
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        spent.append(time.process_time() - began)
    rate = steps / min(spent)
    return rate, rate * env.unwrapped.period


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="few steps, no skin")
    args = parser.parse_args(argv)
    share = 10 if args.quick else 1
    rows = {}
    rows["gecko_steps_per_s"], _ = speed("Gecko", 1000 // share)
    for name, word, steps in (("Hamr", "hamr", 200), ("Voxel", "voxel", 10)):
        rate, factor = speed(name, steps // share)
        rows |= {f"{word}_steps_per_s": rate, f"{word}_real_time_factor": factor}
    _, rows["hamr_real_time_factor_at_1e-4_s"] = speed(
        "Hamr", 60 // share, time_step=1e-4
    )
    if not args.quick:
        rows["skinned_leg_steps_per_s"], _ = speed("SkinnedLeg", 300)
    print_table("environments", rows)
    targets = {
        "gecko_steps_per_s": ("1/s", 800.0),
        "skinned_leg_steps_per_s": ("1/s", 60.0),
        "hamr_real_time_factor": ("1", None),
        "voxel_real_time_factor": ("1", None),
    }
    result = {
        name: figure(rows[name], unit, target)
        for name, (unit, target) in targets.items()
        if name in rows
    }
    return parser.report(result)


if __name__ == "__main__":
    main()
