"""Figs. 11, 13, 20: the trot at 0.45 m/s, and its COP before and after the skin.

The COP that a motion needs once the skin deforms follows from the equations of the base
of the whole robot, RNEA(q, v, a; links with skin) - delta = wrench of the ground. With
delta of a step-by-step plan this wrench is what the feet must provide if the skeleton
moves so and the skin as it did then; it acts at

    COP = p_xy + [-M_y, M_x]/F_z,  M about the point of the ground below the base

With a COP outside the support polygon the robot tips.

A module without a command: `quad_experiments.py` runs them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from quad_setting import (
    Outcome,
    Setting,
    outcome_of,
    planned,
    row,
    trial_rows,
)
from quad_walks import speed_row

from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.results import Result
from drakebots.robots import quads
from drakebots.robots.quads.motion import margin, support_polygon
from drakebots.robots.quads.plan import skin_influence
from drakebots.robots.quads.robot import (
    PlannedRobot,
    SkinInfluence,
    coupling_forces,
    euler_rates,
    inertia_at,
    load_planned,
)

TROT = {
    "motion": "trot",
    "speed": 0.45,
    # The COP depends on the skin's forces on the base.
    "alternation": quads.Alternation(min_iterations=2, max_iterations=3, base=True),
    # As much as the space-time program keeps from the edges of the soles.
    "limits": quads.Limits(cop_margin=3e-3),
}


def trot(setting: Setting) -> Outcome:
    """Fig. 13: trot in two iterations, and a plan that ignores the skin."""
    ours = planned(setting, "trot", **TROT)
    bare, refused = _bare(setting)
    stages = ours.plan.metrics["stages"]
    rows = [speed_row(ours, "0.45")]
    for k, stage in enumerate(stages, 1):
        rows.append(
            row(
                f"iteration {k}",
                "unstable" if k == 1 else "stable",
                f"space-time {stage['space_time']}, {stage['frames_reached']} steps "
                f"({stage['frames_message']}), COP rows dropped in "
                f"{stage['frames_cop_dropped']}, difference {stage['difference']:.3g}",
                "the first has the skin as mass and stiffness at rest"
                if k == 1
                else "",
            )
        )
    if bare is not None:
        stage = bare.plan.metrics["stages"][0]
        refused = (
            f"{stage['frames_reached']} steps ({stage['frames_message']}), COP rows "
            f"dropped in {stage['frames_cop_dropped']}"
        )
    rows.append(
        row(
            "space-time without the skin's mass",
            "-",
            refused,
            "the paper's failing plan has the skin's mass, not its deformation",
        )
    )
    rows += trial_rows(ours)
    trials = {"trot": ours}
    if bare is not None:
        trials["without skin"] = bare
    near = TROT["alternation"].tolerance
    enough = [k for k, stage in enumerate(stages, 1) if stage["difference"] <= near]
    rows.append(
        row(
            f"iterations to a difference of {near:g}",
            "2",
            f"{enough[0]}" if enough else f"not in {len(stages)}",
            "two are asked for here",
        )
    )
    facts = {"two_iterations_unforced": enough[:1] == [2]}
    return outcome_of("Fig. 13: trot", rows, trials, facts=facts)


def _bare(setting: Setting):
    """The trot planned for the skeleton alone, or why it was refused."""
    once = quads.Alternation(max_iterations=1, base=True, ignore_skin=True)
    try:
        return planned(setting, "trot_without_skin", **TROT | {"alternation": once}), ""
    except DrakebotsError as error:
        return None, f"refused: {error}"


def stage_motion(robot: PlannedRobot, plan: Result, stage: str):
    """q, v, a (n, nv) of a stage of a stored plan, in Euler coordinates.

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
    """Figs. 11, 20: the COP that the first and the last motion need with the skin."""
    found = planned(setting, "trot", **TROT, runs=False)
    plan, robot = found.plan, load_planned(setting.model)
    data = plan.data
    contact = data.stage_contact.values > 0
    last, first = f"space-time {plan.metrics['iterations']}", "space-time 1"
    motions, cops, margins = needed_cops(robot, plan)
    rows, facts = [], {}
    for label, paper, text in (
        ("rigid", "inside (its constraint)", "first motion, rigid skin"),
        ("before", "outside in two frames shown", "first motion, deformed skin"),
        ("after", "inside", f"{last}, deformed skin"),
    ):
        m = margins[label]
        facts[label] = margin_facts(m)
        outside, knots = facts[label]["frames_outside"], m[::KNOT]
        rows.append(
            row(
                f"COP, {text}",
                paper,
                f"{1e3 * np.nanmin(m):.1f} mm inside at the least; outside in "
                f"{outside} of {len(m)} steps; at knots "
                f"{1e3 * np.nanmin(knots):.1f} mm, "
                f"{int((knots < 0).sum())} of {len(knots)} outside",
            )
        )
    reached = data.sizes["time"] - 1
    rows.append(
        row(
            "steps whose deformed skin is known",
            "all",
            f"{reached} of {len(contact) - 1}; after them the skin counts as rigid",
        )
    )
    facts["frames_with_deformed_skin"] = reached
    if last == first:
        rows.append(
            row("both motions are the same one", "two iterations", "see trot", "")
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


# --- the COP that a motion needs ---------------------------------------------

KNOT = 5
"""Number of steps between the knots of the space-time program."""


def needed_cops(robot: PlannedRobot, plan: Result) -> tuple[dict, dict, dict]:
    """Motions, COP and margins of the first and the last space-time motion of a plan.

    By label: "rigid" and "before" are the first motion, with a rigid and with the
    deformed skin; "after" is the last one with the deformed skin.
    """
    contact = plan.data.stage_contact.values > 0
    motions, cops, margins = {}, {}, {}
    last = f"space-time {plan.metrics['iterations']}"
    for label, stage in (("before", "space-time 1"), ("after", last)):
        motions[label] = stage_motion(robot, plan, stage)
        influence = skin_influence(robot, plan, motions[label])
        cops[label] = needed_cop(robot, motions[label], influence)
    cops["rigid"] = needed_cop(robot, motions["before"])
    for label, cop in cops.items():
        q = motions["after" if label == "after" else "before"][0]
        margins[label] = needed_margin(robot, q, contact, cop)
    return motions, cops, margins


def margin_facts(margins: np.ndarray) -> dict[str, float]:
    """Least margins [mm] and numbers of steps outside, at all steps and at knots."""
    knots = margins[::KNOT]
    return {
        "least_margin_at_knots_mm": 1e3 * float(np.nanmin(knots)),
        "knots_outside": int((knots < 0).sum()),
        "knots": len(knots),
        "least_margin_mm": 1e3 * float(np.nanmin(margins)),
        "frames_outside": int((margins < 0).sum()),
        "frames": len(margins),
    }


def needed_wrench(
    robot: PlannedRobot,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    influence: SkinInfluence | None = None,
) -> np.ndarray:
    """Wrench [M, F] of the ground on the robot about the base's origin, world (N, 6).

    Args:
        robot: the robot with its skin as mass on the links.
        motion: q, v, a (N, nv) in Euler coordinates.
        influence: effect of the deformed skin; None for a rigid skin.
    """
    q, v, a = motion
    quad, steps = robot.quad, np.arange(len(q))
    if influence is not None:
        influence = replace(influence, base=True)
    d = inertia_at(quad, robot.link_skin, influence, steps).reshape(len(q), -1)
    rows = np.asarray(quad.tree.dynamics_function.map(len(q))(q.T, v.T, a.T, d.T)).T
    rows = rows - coupling_forces(quad, robot.link_skin, influence, steps)
    # f_Euler = E' M for the moment about the base's origin.
    E = euler_rates(q)
    M = np.linalg.solve(np.swapaxes(E, 1, 2), rows[:, 3:6, None])[..., 0]
    return np.hstack([M, rows[:, :3]])


def needed_cop(
    robot: PlannedRobot,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    influence: SkinInfluence | None = None,
) -> np.ndarray:
    """COP that a motion needs (N, 2) [m]; NaN without load on the ground."""
    wrench = needed_wrench(robot, motion, influence)
    M, F, p = wrench[:, :3], wrench[:, 3:], motion[0][:, :3]
    down = p * [0.0, 0.0, 1.0]
    M = M + np.cross(down, F)
    load = F[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        at = p[:, :2] + np.stack([-M[:, 1], M[:, 0]], axis=1) / load
    return np.where(load > 1e-6, at, np.nan)


def needed_margin(
    robot: PlannedRobot, q: np.ndarray, contact: np.ndarray, cop: np.ndarray
) -> np.ndarray:
    """Margin of a COP in the support polygon (N,) [m]; NaN in flight."""
    feet = robot.quad.foot_positions(q)
    out = np.full(len(q), np.nan)
    for k in range(len(q)):
        if contact[k].any() and np.isfinite(cop[k]).all():
            polygon = support_polygon(robot.quad, feet[k], contact[k], q[k, 3])
            out[k] = margin(polygon, cop[k])
    return out
