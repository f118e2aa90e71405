"""Replays the plans of skinned quad-robots, as planned and disturbed.

python scripts/bench/quad_replays.py                         # all motions, all changes
python scripts/bench/quad_replays.py --quick
python scripts/bench/quad_replays.py --imu never              # all of them open loop
python scripts/bench/quad_replays.py --motions trot --only planned "three cycles"
python scripts/bench/quad_replays.py --plans out             # keep plans, take old ones

Each plan is tracked with its robot's own motors: as it is, with friction and the
skin's modulus 20 % lower and higher, from 5 mm higher, rolled by 2 degrees, and three
cycles in a row. The swinging feet of the motions in NEEDS_IMU know the body's attitude,
the others are played open loop. The share is the distance over the planned one, of all
cycles; a run falls when it tips by 45 degrees or sinks to half the height. Falls are
counted over motions and changes: each is one run, from one start. A row a run, and one
JSON object: replay_share_least is the least share, and 0 for what has no whole plan.

JSON: replay_share_least, falls.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from measurement import Measurement, figure

from drakebots import load_result
from drakebots.formats import load
from drakebots.model import skin_path
from drakebots.results import Result
from drakebots.robots import quads
from drakebots.skin.coupled import PatchContact
from drakebots.skin.file import read_skin, write_skin

sys.path.append(str(Path(__file__).parents[1] / "papers" / "quads"))
from quad_setting import around_lift_off

MOTIONS = {
    "beetle": {"model": "beetle", "motion": "walk"},
    "trot": {
        "model": "monster",
        "motion": "trot",
        "alternation": quads.Alternation(min_iterations=2, base=True),
        "limits": quads.Limits(cop_margin=3e-3),
    },
    "monster": {"model": "monster", "motion": "walk"},
    "short": {"model": "monster", "motion": "walk_short"},
    "long": {"model": "monster", "motion": "walk_long"},
    "cow": {"model": "cow", "motion": "walk"},
    "lizard": {"model": "lizard", "motion": "lizard"},
    "lizard_walk": {"model": "lizard", "motion": "walk"},
}
"""Options of the plans by a short name; what is not listed is the default."""

NEEDS_IMU = ("beetle", "long")
"""Motions that open loop fall, or go less than 0.95 of their way, after some change."""

CHANGES = {
    "planned": {},
    "friction x 0.8": {"ground": PatchContact(0.64)},
    "friction x 1.2": {"ground": PatchContact(0.96)},
    "modulus x 0.8": {"modulus": 0.8},
    "modulus x 1.2": {"modulus": 1.2},
    "5 mm higher": {"start": quads.Start(height=5e-3)},
    "2 degrees of roll": {"start": quads.Start(roll=np.radians(2.0))},
    "three cycles": {"cycles": 3},
}
"""Options of :class:`~drakebots.robots.quads.Tracking` by name; modulus is a factor."""

STEPS = 20
"""Time steps of a quick motion."""

TARGETS = {"replay_share_least": ("1", 0.95), "falls": ("1", 0.0)}


def other_modulus(model: str, factor: float, folder: Path) -> str:
    """A copy of a robot whose skin has other moduli; the path of its SDF."""
    path = load(model).path
    shutil.copytree(path.parent, folder, dirs_exist_ok=True)
    skin = read_skin(skin_path(path))

    def changed(material):
        return replace(material, youngs_modulus=factor * material.youngs_modulus)

    regions = {number: changed(one) for number, one in skin.regions.items()}
    skin = replace(skin, material=changed(skin.material), regions=regions)
    write_skin(skin_path(folder / path.name), skin)
    return str(folder / path.name)


def planned(name: str, folder: Path, steps: int | None = None) -> Result:
    """The plan of one of MOTIONS, taken from the folder if it is there.

    Args:
        name: of the motion.
        folder: of the plans.
        steps: how many steps around a lift-off are planned; all if None.
    """
    path = folder / f"{name}.nc"
    if not path.is_file():
        problem = quads.Problem(**MOTIONS[name])
        if steps is not None:
            problem = problem.following(around_lift_off(problem.requested, steps))
        quads.plan(problem).save(path)
    return load_result(path)


def replays(
    plan: Result, changes: Sequence[str], *, imu: bool = False
) -> Iterator[tuple[str, Result]]:
    """Runs of a plan, one a change."""
    for change in changes:
        options = dict(CHANGES[change])
        factor = options.pop("modulus", None)
        with tempfile.TemporaryDirectory() as folder:
            if factor is not None:
                options["model"] = other_modulus(plan.model, factor, Path(folder))
            yield change, quads.track(quads.Tracking(plan, imu=imu, **options))


def replay_figures(
    motions: Sequence[str] = tuple(MOTIONS),
    changes: Sequence[str] = tuple(CHANGES),
    folder: Path | None = None,
    *,
    imu: Sequence[str] = NEEDS_IMU,
    steps: int | None = None,
) -> dict[str, tuple[float, str, float]]:
    """Prints a row a run; {name: (value, unit, target)} over all of them."""
    shares, falls = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in motions:
            plan = planned(name, folder or Path(scratch), steps)
            if not plan.ok:
                shares.append(0.0)
                print(f"{name:12} no plan: {plan.message}", flush=True)
                continue
            for change, run in replays(plan, changes, imu=name in imu):
                m = run.metrics
                fell = run.message.startswith("fell")
                falls += fell
                share = m["distance_m"] / m["planned_distance_m"]
                shares.append(0.0 if fell else share)  # a fall may go far
                print(
                    f"{name:12} {change:18} share {share:.3f}, roll "
                    f"{m['roll_range_deg']:.2f} deg, drift "
                    f"{1e3 * m['com_drift_m']:.1f} mm, COP "
                    f"{1e3 * m['least_cop_margin_m']:.0f} mm"
                    + (f"; {run.message}" if fell else ""),
                    flush=True,
                )
    found = {"replay_share_least": min(shares), "falls": float(falls)}
    return {name: (found[name], *TARGETS[name]) for name in TARGETS}


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the replays; prints a row each and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="a few steps of the beetle's walk, as planned")
    parser.add_argument("--motions", nargs="+", choices=MOTIONS, default=list(MOTIONS))
    parser.add_argument("--only", nargs="+", choices=CHANGES, default=list(CHANGES))
    parser.add_argument(
        "--imu",
        choices=("needed", "always", "never"),
        default="needed",
        help="where swinging feet know the body's attitude",
    )
    parser.add_argument("--plans", type=Path, help="folder of the plans")
    args = parser.parse_args(argv)
    if args.quick:
        args.motions, args.only, args.plans = ["beetle"], ["planned"], None
    if args.plans is not None:
        args.plans.mkdir(parents=True, exist_ok=True)
    imu = {"needed": NEEDS_IMU, "always": tuple(MOTIONS), "never": ()}[args.imu]
    steps = STEPS if args.quick else None
    found = replay_figures(args.motions, args.only, args.plans, imu=imu, steps=steps)
    return parser.report({name: figure(*row) for name, row in found.items()})


if __name__ == "__main__":
    main()
