"""Figs. 4, 10 and 16: feet lifted, motors within their limits, QPCCs that converge."""

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


def foot_lift(setting: Setting) -> Outcome:
    """Fig. 10: one foot, then two, lifted; the COP stays in the polygon."""
    duration = 1.0 if setting.quick else 2.5
    trials, rows = {}, []
    for name in ("lift_single", "lift_double"):
        found = planned(setting, name, motion=name, duration=duration)
        trials[name] = found
        rows += cop_rows(found, "inside") + trial_rows(found)
        rows.append(_lifted_row(found))
    return outcome_of("Fig. 10: feet lifted", rows, trials)


def _lifted_row(found: Trial) -> dict[str, str]:
    data = found.plan.data
    up = data.patch_position.values[..., 2].max(axis=0)
    asked = data.desired_foot.values[..., 2].max()
    return row(
        f"{found.name.replace('_', ' ')}: highest patch",
        "lifted",
        f"{1e3 * up.max():.0f} mm, asked {1e3 * asked:.0f} mm",
    )


def torque_limits(setting: Setting) -> Outcome:
    """Fig. 16: the motors' limit holds in every frame; without it, it would not."""
    bound = planned(setting, "walk", motion="walk")
    free = planned(
        setting, "walk_unlimited", motion="walk", torque_limit=50.0, replays=False
    )
    limit = float(bound.plan.data.torque_limit.values.max())
    peak, other = (trial_facts(found)["peak_torque_N_m"] for found in (bound, free))
    at = np.abs(bound.plan.data.torque.values[1:]) > limit * (1 - 1e-6)
    rows = [
        row("limit [N m]", "1.96", f"{limit:.3g}"),
        row("largest torque [N m]", "<= 1.96", f"{peak:.4g}"),
        row(
            "frames with a motor at its limit",
            "some (plot)",
            f"{int(at.any(axis=1).sum())} of {len(at)}",
        ),
        row("largest torque with a limit of 50 N m", "-", f"{other:.4g}"),
        *trial_rows(bound),
    ]
    trials = {"limited": bound, "unlimited": free}
    return outcome_of("Fig. 16: torque limits", rows, trials)


def qpcc_frames(setting: Setting) -> Outcome:
    """Fig. 4: energies of the QPCC as a front foot leaves, flies and lands."""
    found = planned(setting, "walk", motion="walk", replays=False)
    data = found.plan.data
    foot = [str(f) for f in data.foot.values].index(_front_left(found.plan))
    down = data.contact.values[:, foot] > 0
    change = np.flatnonzero(down[1:] != down[:-1]) + 1
    off = next((k for k in change if not down[k]), None)
    on = next((k for k in change if down[k] and (off is None or k > off)), None)
    moments = {}
    if off is not None:
        moments["leaves"] = int(off)
        if on is not None:
            moments["in the air"], moments["lands"] = int((off + on) // 2), int(on)
    energies = {}
    for name, k in moments.items():
        values = data.qpcc_energy.values[k]
        energies[name] = (k, values[np.isfinite(values)].tolist())
    counts = data.qpcc_iterations.values[1:]
    rows = [
        row(
            f"frame {k}, foot {name}",
            "converges within 10",
            f"{len(values)} QPs with a solution, energy {values[0]:.4g} to "
            f"{min(values):.4g}"
            if values
            else "no QP had a solution",
        )
        for name, (k, values) in energies.items()
    ]
    rows.append(
        row(
            "QPs a frame",
            "10",
            f"mean {counts.mean():.1f}, at most {int(counts.max())}",
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
        "Fig. 4: QPCC", rows, {"walk": found}, more={"energies": energies}
    )


def _front_left(plan: Result) -> str:
    """The foot furthest to the front and the left at the start."""
    p = plan.data.desired_foot.values[0]
    p = p - p.mean(axis=0)
    size = np.abs(p).max(axis=0)
    best = int(np.argmax(p[:, 0] / size[0] + p[:, 1] / size[1]))
    return str(plan.data.foot.values[best])
