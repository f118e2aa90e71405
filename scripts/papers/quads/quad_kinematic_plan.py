"""Fig. 18: a plan from kinematics alone against ours, both replayed with skin."""

from __future__ import annotations

import numpy as np
import xarray as xr
from quad_setting import Outcome, Setting, Trial, planned, row, trial_facts, trial_rows
from scipy.interpolate import CubicSpline

from drakebots.results import Result, provenance
from drakebots.robots.quads import QuadProblem
from drakebots.robots.quads.robot import PlannedRobot, load_planned
from drakebots.robots.quads.space_time import KinematicPlan, plan_kinematic
from drakebots.robots.quads.track import Replay, replay


def kinematic_result(robot: PlannedRobot, plan: KinematicPlan) -> Result:
    """The motion of a kinematic plan at every frame, ready to replay."""
    problem, motion = plan.problem, plan.problem.motion
    _, v, _ = plan.motion()
    ends = ((1, v[0]), (1, v[-1]))
    spline = CubicSpline(problem.frames * motion.dt, plan.q, axis=0, bc_type=ends)
    q, v = spline(motion.times), spline(motion.times, 1)
    plant, convert = robot.skinned.plant, robot.coordinates
    contact = motion.footfall.contact[:, problem.order]
    data = {
        "position": (("time", "position_name"), convert.positions(q), "rad or m"),
        "velocity": (
            ("time", "velocity_name"),
            convert.velocities(q, v),
            "rad/s, m/s",
        ),
        "com": (("time", "axis"), robot.quad.com(q), "m"),
        "contact": (("time", "foot"), contact.astype(np.int8), "1"),
    }
    dataset = xr.Dataset(
        {k: (dims, x, {"units": unit}) for k, (dims, x, unit) in data.items()},
        {
            "time": ("time", motion.times.astype(float), {"units": "s"}),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "axis": list("xyz"),
            "foot": list(robot.quad.feet),
            "joint": list(robot.quad.joints),
        },
    )
    return Result(
        kind="quads.space_time",
        model=robot.name,
        verdict=plan.solution.verdict,
        message=plan.solution.message,
        data=dataset,
        residuals=dict(plan.solution.residuals),
        timings=dict(plan.seconds),
        metrics={
            "system": "kinematic",
            "motion": motion.name,
            "period": motion.period or "none",
        },
        provenance=provenance(robot.files, {"motion": motion.name}),
    )


def kinematic(setting: Setting) -> Outcome:
    """Fig. 18: the kinematic plan and ours, under the same servos and the same skin.

    The paper drives the kinematic joints by constraint torques; here servos do.
    """
    ours = planned(setting, "walk", motion="walk")
    problem = QuadProblem(model=setting.model, motion="walk")
    robot = load_planned(setting.model)
    alternation = problem.alternation(robot)
    solved = plan_kinematic(alternation.program())
    path = setting.folder / "walk_kinematic.nc"
    baseline = kinematic_result(robot, solved)
    baseline.save(path)
    torques = solved.torques()
    run = setting.stored(
        "walk_kinematic_coupled",
        lambda _: replay(
            Replay(baseline, model=setting.model, time_limit=setting.time_limit),
            progress=setting.report("kinematic plan, replayed"),
        ),
    )
    share = np.abs(torques["torque"]) / robot.quad.torque_limits
    rows = [
        row(
            "kinematic plan: frames that contact forces can carry, by inverse dynamics",
            "not all",
            f"{int(torques['feasible'].sum())} of {len(torques['feasible'])} knots; "
            f"torque up to {100 * share.max():.0f} % of the limit",
            "inverse dynamics with the skin's weight on the links",
        ),
        _replay_row("kinematic plan, replayed", run, "shaky, steps back"),
    ]
    if ours.coupled is not None:
        rows.append(_replay_row("ours, replayed", ours.coupled, "smooth"))
        rows.append(
            row(
                "range of roll, kinematic over ours",
                "> 1 (plot)",
                f"{_roll(run) / max(_roll(ours.coupled), 1e-9):.2f}",
                "servos hold both motions; see docs/quads.md",
            )
        )
    rows += trial_rows(ours)
    facts = {
        "kinematic": {
            "verdict": str(run.verdict),
            "message": run.message,
            **{
                k: run.metrics[k]
                for k in ("distance_m", "planned_distance_m", "roll_range_deg")
            },
        },
        "ours": trial_facts(ours),
    }
    if ours.coupled is not None:
        facts["ours"]["roll_range_deg"] = _roll(ours.coupled)
    trials = {"ours": ours, "kinematic": Trial("kinematic", baseline, run)}
    return Outcome("Fig. 18: kinematic only, and ours", rows, trials, facts)


def _roll(run: Result) -> float:
    return float(run.metrics["roll_range_deg"])


def _replay_row(what: str, run: Result, paper: str) -> dict[str, str]:
    m = run.metrics
    return row(
        what,
        paper,
        f"{m['distance_m']:.3f} of {m['planned_distance_m']:.3f} m, roll over "
        f"{m['roll_range_deg']:.2f} deg, joints within "
        f"{np.degrees(m['tracking_error_rad']):.1f} deg, largest step back "
        f"{1e3 * step_back(run):.1f} mm; {run.message}",
    )


def step_back(run: Result) -> float:
    """How far the COM moves back from where it had got to, at most [m]."""
    data = run.data
    way = data.planned_com.values[-1, :2] - data.planned_com.values[0, :2]
    length = float(np.linalg.norm(way))
    if length < 0.01:
        return 0.0
    along = data.com.values[:, :2] @ (way / length)
    return float((np.maximum.accumulate(along) - along).max())
