"""Figs. 11, 13 and 20: the trot at 0.45 m/s, its COP before and after the skin."""

from __future__ import annotations

import numpy as np
from quad_planned_cop import needed_cop, needed_margin
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

from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.results import Result
from drakebots.robots.quads import skin_influence
from drakebots.robots.quads.robot import PlannedRobot, load_planned

# Figs. 12, 14 and 15: slow walks of three robots.


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


TROT = {
    "motion": "trot",
    "speed": 0.45,
    "min_iterations": 2,
    "max_iterations": 3,
    # Without the skin's forces on the base the program cannot see the COP they move.
    "base": True,
    # As much as the program keeps from its soles' edges.
    "cop_margin": 3e-3,
}


def trot(setting: Setting) -> Outcome:
    """Fig. 13: trot in two iterations; and what becomes of it without the skin."""
    ours = planned(setting, "trot", **TROT)
    bare, refused = _bare(setting)
    stages = ours.plan.metrics["stages"]
    rows = [speed_row(ours, "0.45")]
    for k, stage in enumerate(stages, 1):
        rows.append(
            row(
                f"iteration {k}",
                "unstable" if k == 1 else "stable",
                f"space-time {stage['space_time']}, {stage['frames_reached']} frames "
                f"({stage['frames_message']}), COP rows dropped in "
                f"{stage['frames_cop_dropped']}, difference {stage['difference']:.3g}",
                "the first knows the skin as weight on the links" if k == 1 else "",
            )
        )
    if bare is not None:
        stage = bare.plan.metrics["stages"][0]
        refused = (
            f"{stage['frames_reached']} frames ({stage['frames_message']}), COP rows "
            f"dropped in {stage['frames_cop_dropped']}"
        )
    rows.append(
        row(
            "space-time without the skin's mass",
            "-",
            refused,
            "the paper's failure has its weight, not its deformation",
        )
    )
    rows += trial_rows(ours)
    trials = {"trot": ours}
    if bare is not None:
        trials["without skin"] = bare
    return outcome_of("Fig. 13: trot", rows, trials)


def _bare(setting: Setting):
    """The trot planned for the skeleton alone, or why that was refused."""
    options = TROT | {"min_iterations": 1, "max_iterations": 1}
    try:
        return planned(setting, "trot_without_skin", **options, ignore_skin=True), ""
    except DrakebotsError as error:
        return None, f"refused: {error}"


def stage_motion(robot: PlannedRobot, plan: Result, stage: str):
    """q, v, a (n, nv) of a stage of a stored plan, on Euler coordinates.

    Raises:
        InvalidInput: when the plan has no such stage.
    """
    names = [str(s) for s in plan.data.stage.values]
    if stage not in names:
        raise InvalidInput(f"the plan has no stage {stage!r}: {', '.join(names)}")
    positions = plan.data.stage_position.values[names.index(stage)]
    whole = np.isfinite(positions).all(axis=1)
    q = robot.coordinates.from_positions(positions[whole])
    dt = float(plan.data.plan_time.values[1])
    v = np.gradient(q, dt, axis=0, edge_order=2)
    return q, v, np.gradient(v, dt, axis=0, edge_order=2)


def cop(setting: Setting) -> Outcome:
    """Figs. 11, 20: the COP that the first and the last motion need, skin deformed."""
    found = planned(setting, "trot", **TROT, replays=False)
    plan, robot = found.plan, load_planned(setting.model)
    data = plan.data
    contact = data.stage_contact.values > 0
    last = f"space-time {plan.metrics['iterations']}"
    first = "space-time 1"
    motions, cops, margins = {}, {}, {}
    for label, stage in (("before", first), ("after", last)):
        motion = stage_motion(robot, plan, stage)
        influence = skin_influence(robot, plan, motion)
        motions[label] = motion
        cops[label] = needed_cop(robot, motion, influence)
        margins[label] = needed_margin(robot, motion[0], contact, cops[label])
    motion = motions["before"]
    cops["rigid"] = needed_cop(robot, motion)
    margins["rigid"] = needed_margin(robot, motion[0], contact, cops["rigid"])
    rows, facts = [], {}
    for label, paper, text in (
        ("rigid", "inside (its constraint)", "first motion, rigid skin"),
        ("before", "outside in two frames shown", "first motion, deformed skin"),
        ("after", "inside", f"{last}, deformed skin"),
    ):
        m = margins[label]
        outside = int((m < 0).sum())
        # Between knots, every fifth frame, the program has no say.
        knots = m[::5]
        facts[label] = {
            "least_margin_at_knots_mm": 1e3 * float(np.nanmin(knots)),
            "knots_outside": int((knots < 0).sum()),
            "knots": len(knots),
            "least_margin_mm": 1e3 * float(np.nanmin(m)),
            "frames_outside": outside,
            "frames": len(m),
        }
        rows.append(
            row(
                f"COP, {text}",
                paper,
                f"{1e3 * np.nanmin(m):.1f} mm inside at the least; outside in "
                f"{outside} of {len(m)} frames; at knots "
                f"{1e3 * np.nanmin(knots):.1f} mm, "
                f"{int((knots < 0).sum())} of {len(knots)} outside",
            )
        )
    reached = data.sizes["time"] - 1
    rows.append(
        row(
            "frames of the pass whose skin this is",
            "all",
            f"{reached} of {len(contact) - 1}; beyond them the skin counts as rigid",
        )
    )
    facts["frames_with_deformed_skin"] = reached
    if last == first:
        rows.append(
            row("both motions are the same one", "two iterations", "see quad_trot", "")
        )
    joints = robot.quad.coordinates[6:]
    n = min(len(motions["before"][0]), len(motions["after"][0]))
    gap = np.abs(motions["after"][0][:n, 6:] - motions["before"][0][:n, 6:])
    worst = int(gap.max(axis=0).argmax())
    com = {
        label: robot.quad.com(motions[label][0], robot.quad.tree.inertia)[:n, 1]
        for label in ("before", "after")
    }
    rows.append(
        row(
            "largest change of a joint (Fig. 20)",
            "visible",
            f"{np.degrees(gap.max()):.1f} deg at {joints[worst]}",
        )
    )
    rows.append(
        row(
            "change of the skeleton's COM to the side (Fig. 20)",
            "visible",
            f"{1e3 * np.abs(com['after'] - com['before']).max():.1f} mm",
            "the paper's z is our y",
        )
    )
    more = {
        "motions": motions,
        "cops": cops,
        "margins": margins,
        "com": com,
        "joint": (joints[worst], worst),
        "robot": robot,
        "contact": contact,
        "times": data.plan_time.values,
    }
    return outcome_of(
        "Figs. 11, 20: COP", rows, {"trot": found}, facts=facts, more=more
    )
