"""Figs. 12, 14 and 15: slow walks of three robots."""

from __future__ import annotations

from drakebots.robots.quads.experiments import (
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


def walks(setting: Setting) -> Outcome:
    """Fig. 12: long low steps at 0.11 m/s, short high ones at 0.06 m/s."""
    trials, rows = {}, []
    for name, speed in (("walk_long", 0.11), ("walk_short", 0.06)):
        speed = 2 * speed if setting.quick else speed
        found = planned(setting, name, motion=name, speed=speed)
        trials[name] = found
        rows.append(speed_row(found, f"{speed:g}"))
        rows += cop_rows(found, "inside") + trial_rows(found)
    return outcome_of("Fig. 12: two walks", rows, trials)


def speed_row(found: Trial, paper: str) -> dict[str, str]:
    """Speed of the frames and of the replay [m/s]."""
    facts = trial_facts(found)
    more = ""
    if "coupled" in facts:
        more = f", replayed {facts['coupled']['speed_m_s']:.3f}"
    return row(
        f"{found.name.replace('_', ' ')}: speed [m/s]",
        paper,
        f"frames {facts['speed_m_s']:.3f}{more}",
        "one period from the planned speed",
    )


def one_walk(setting: Setting, motion: str, title: str, **options) -> Outcome:
    """A walk of one robot (Figs. 14, 15)."""
    if setting.quick:
        options = {"speed": 0.2} | options
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
