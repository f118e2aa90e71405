"""Figs. 4, 10, 12, 14, 15, 16: lifted feet and slow walks.

The COP stays in the support polygon, the motors keep their limits, and the QPCC of a
step (the paper: frame) converges.

A module without a command: `quad_experiments.py` runs them.
"""

from __future__ import annotations

import numpy as np
from quad_setting import (
    Outcome,
    Setting,
    Trial,
    cop_rows,
    outcome_of,
    planned,
    row,
    trial_facts,
    trial_rows,
)

from drakebots.results import Result
from drakebots.robots import quads
from drakebots.robots.quads.steps import StepOptions

QPS = StepOptions().max_iterations
"""Largest number of QPs of a step."""

MANY = 60
"""Number of QPs that is no limit to the search of a step."""

LAST = 3
"""Number of QPs whose gain is reported where a search ends at :data:`QPS`."""


def foot_lift(setting: Setting) -> Outcome:
    """Fig. 10: one foot, then two are lifted; the COP stays in the polygon."""
    trials, rows = {}, []
    for name in ("lift_single", "lift_double"):
        found = planned(setting, name, motion=name, more={"duration": 2.5})
        trials[name] = found
        rows += cop_rows(found, "inside") + trial_rows(found)
        rows.append(_lifted_row(found))
    return outcome_of("Fig. 10: feet lifted", rows, trials)


def _lifted_row(found: Trial) -> dict[str, str]:
    data = found.plan.data
    up = data.patch_position.values[..., 2].max(axis=0)
    desired = data.desired_foot.values[..., 2].max()
    return row(
        f"{found.name.replace('_', ' ')}: highest patch",
        "lifted",
        f"{1e3 * up.max():.0f} mm, requested {1e3 * desired:.0f} mm",
    )


def torque_limits(setting: Setting) -> Outcome:
    """Fig. 16: the motors keep their limit at all steps; without it they exceed it."""
    bound = planned(setting, "walk", motion="walk")
    free = planned(
        setting,
        "walk_unlimited",
        motion="walk",
        limits=quads.Limits(torque=50.0),
        runs=False,
    )
    limit = float(bound.plan.data.torque_limit.values.max())
    peak, other = (trial_facts(found)["peak_torque_N_m"] for found in (bound, free))
    at = np.abs(bound.plan.data.torque.values[1:]) > limit * (1 - 1e-6)
    rows = [
        row("limit [N m]", "1.96", f"{limit:.3g}"),
        row("largest torque [N m]", "<= 1.96", f"{peak:.4g}"),
        row(
            "steps with a motor at its limit",
            "some (plot)",
            f"{int(at.any(axis=1).sum())} of {len(at)}",
        ),
        row("largest torque with a limit of 50 N m", "-", f"{other:.4g}"),
        *trial_rows(bound),
    ]
    trials = {"limited": bound, "unlimited": free}
    return outcome_of("Fig. 16: torque limits", rows, trials)


def qpcc_frames(setting: Setting) -> Outcome:
    """Fig. 4: energies of the QPCC as a front foot lifts off, swings and lands."""
    found = planned(setting, "walk", motion="walk", runs=False)
    data = found.plan.data
    foot = [str(f) for f in data.foot.values].index(_front_left(found.plan))
    down = data.contact.values[:, foot] > 0
    change = np.flatnonzero(down[1:] != down[:-1]) + 1
    off = next((k for k in change if not down[k]), None)
    on = next((k for k in change if down[k] and (off is None or k > off)), None)
    moments = {}
    if off is not None:
        moments["lifts off"] = int(off)
        if on is not None:
            moments["swings"], moments["lands"] = int((off + on) // 2), int(on)
    energies = {}
    for name, k in moments.items():
        values = data.qpcc_energy.values[k]
        energies[name] = (k, values[np.isfinite(values)].tolist())
    counts = data.qpcc_iterations.values[1:]
    rows = [
        row(f"step {k}, foot {name}", "converges within 10", _energies(values))
        for name, (k, values) in energies.items()
    ]
    rows.append(
        row(
            "QPs per step",
            "10",
            f"mean {counts.mean():.1f}, at most {int(counts.max())}",
        )
    )
    cut, gain = cut_short(data.qpcc_energy.values[1:], counts)
    rows.append(
        row(
            f"steps that use all of {QPS} QPs",
            "-",
            f"{cut} of {len(counts)}; the last {LAST} QPs lower the energy there by "
            f"{100 * gain:.0f} % in the median",
        )
    )
    facts = {"steps_with_all_qps": cut, "energy_share_of_last_qps": gain}
    if not setting.quick:
        longer = _longer_searches(setting)
        counts = longer.data.qpcc_iterations.values[1:]
        facts |= {
            "qps_mean_without_limit": float(counts.mean()),
            "qps_most_without_limit": int(counts.max()),
            "difference_without_limit": longer.metrics["difference"],
        }
        rows.append(
            row(
                f"QPs per step with up to {MANY}",
                "-",
                f"mean {counts.mean():.1f}, at most {int(counts.max())}; difference "
                f"{longer.metrics['difference']:.3g}, not "
                f"{found.plan.metrics['difference']:.3g}",
            )
        )
    rows.append(
        row(
            "complementarity [N]",
            "-",
            f"{np.nanmax(data.complementarity.values):.1e} at most",
        )
    )
    return outcome_of(
        "Fig. 4: QPCC",
        rows,
        {"walk": found},
        facts=facts,
        more={"energies": energies},
    )


def _longer_searches(setting: Setting) -> Result:
    """The same plan with up to :data:`MANY` QPs a step."""
    problem = quads.Problem(
        model=setting.model,
        motion="walk",
        time_limit=setting.time_limit,
        steps=StepOptions(max_iterations=MANY),
    )
    return setting.stored(
        f"walk_{MANY}_qps",
        lambda path: quads.plan(problem, path=path, progress=setting.progress),
    )


def _energies(values: list[float]) -> str:
    """In words; the first QP holds the contacts and keeps no complementarity."""
    if len(values) < 2:
        return "no QP had a solution that keeps the complementarity"
    return (
        f"{len(values)} QPs with a solution, energy {values[1]:.4g} to "
        f"{min(values[1:]):.4g}; with contacts held {values[0]:.4g}"
    )


def cut_short(energies: np.ndarray, counts: np.ndarray) -> tuple[int, float]:
    """Number of steps that use all QPs, and the gain in energy of the last ones.

    Args:
        energies: of the QPs of each step (n, QPs), not finite without a solution; the
            first that is finite is of the contacts held.
        counts: number of QPs of each step (n,).

    Returns:
        Number of steps; the median over them of the share by which the last
        :data:`LAST` QPs lower the least energy so far, 0 without such a step.
    """
    gains = []
    for values in energies[counts >= QPS, :QPS]:
        held = np.argmax(np.isfinite(values))
        later = np.where(np.isfinite(values), values, np.inf)
        later[: held + 1] = np.inf
        best = np.minimum.accumulate(later)
        before = best[-1 - LAST]
        gains.append(1 - best[-1] / before if np.isfinite(before) else 1.0)
    return len(gains), float(np.median(gains)) if gains else 0.0


def _front_left(plan: Result) -> str:
    """The front left foot, by the first requested positions."""
    p = plan.data.desired_foot.values[0]
    p = p - p.mean(axis=0)
    size = np.abs(p).max(axis=0)
    best = int(np.argmax(p[:, 0] / size[0] + p[:, 1] / size[1]))
    return str(plan.data.foot.values[best])


def walks(setting: Setting) -> Outcome:
    """Fig. 12: long low strides at 0.11 m/s, short high ones at 0.06 m/s."""
    trials, rows = {}, []
    for name, speed in (("walk_long", 0.11), ("walk_short", 0.06)):
        found = planned(setting, name, motion=name, speed=speed)
        trials[name] = found
        rows.append(speed_row(found, f"{speed:g}"))
        rows += cop_rows(found, "inside") + trial_rows(found)
    return outcome_of("Fig. 12: two walks", rows, trials)


def speed_row(found: Trial, paper: str) -> dict[str, str]:
    """Row with the speeds of the step-by-step plan and of its tracking run [m/s]."""
    facts = trial_facts(found)
    more = ""
    if "coupled" in facts:
        more = f", tracked {facts['coupled']['speed_m_s']:.3f}"
    return row(
        f"{found.name.replace('_', ' ')}: speed [m/s]",
        paper,
        f"planned {facts['speed_m_s']:.3f}{more}",
        "one period, started at the requested speed",
    )


def one_walk(setting: Setting, motion: str, title: str, **options) -> Outcome:
    """A walk of one robot (Figs. 14, 15)."""
    found = planned(setting, motion, motion=motion, **options)
    facts = trial_facts(found)
    limit = float(found.plan.data.torque_limit.values.max())
    rows = [
        speed_row(found, "not given"),
        row(
            "largest torque [N m]",
            "<= 3.13" if limit > 2.5 else "<= 1.96",
            f"{facts['peak_torque_N_m']:.3g} of {limit:.3g}",
        ),
        *cop_rows(found, "inside"),
        *trial_rows(found),
    ]
    return outcome_of(title, rows, {motion: found})


def lizard(setting: Setting) -> Outcome:
    """Fig. 14: the lizard walks and bends."""
    return one_walk(setting, "lizard", "Fig. 14: lizard")


def cow(setting: Setting) -> Outcome:
    """Fig. 15: the cow walks within 3.13 N m."""
    return one_walk(setting, "walk", "Fig. 15: cow")
