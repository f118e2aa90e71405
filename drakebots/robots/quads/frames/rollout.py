"""The frame-by-frame optimization of a whole motion (section 5.2).

    problem = FramePlan(q_ref, contact, dt=5e-3)
    result = rollout(planner, problem)

Row i of q_ref is where the robot shall be at time i dt; frame i leads from row i to
row i + 1. It ends early with the frames so far when a frame fails, the skeleton falls
or Ctrl-C comes.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import check_output
from drakebots.core.run import CtrlC, Verdict
from drakebots.core.threads import calm_threads
from drakebots.multibody import Progress
from drakebots.results import Result
from drakebots.robots.quads.frames.log import FrameLog
from drakebots.robots.quads.frames.planner import FramePlanner
from drakebots.robots.quads.frames.problem import FrameGoal, FrameOptions
from drakebots.robots.quads.robot import make_feet, settled_state
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import CoupledState

FLAT_FRAMES = 5
"""Frames before touch-down and after lift-off in which soles face the ground."""


@dataclass(frozen=True)
class FramePlan:
    """A motion to follow, frame by frame.

    Attributes:
        q_ref: positions of the plant (N, nq), N >= 2 [m, rad].
        contact: feet on the ground by the footfall pattern (N, F).
        fall: distance of the skeleton's coordinates from q_ref that counts as a
            fall [rad or m].
        skin_every: frames between two stored shapes of the skin; 0 for none.
        time_limit: of wall time [s].

    Raises:
        InvalidInput: for shapes that do not fit, values not finite, or a frame
            without any foot on the ground, naming it.
    """

    q_ref: np.ndarray
    contact: np.ndarray
    fall: float = 0.5
    skin_every: int = 10
    time_limit: float | None = None

    def __post_init__(self):
        q = np.array(self.q_ref, float)
        contact = np.array(self.contact, bool)
        if q.ndim != 2 or len(q) < 2 or not np.isfinite(q).all():
            raise InvalidInput(
                f"q_ref: shape {q.shape}, needs two rows or more of finite numbers"
            )
        if contact.ndim != 2 or len(contact) != len(q):
            raise InvalidInput(
                f"contact: shape {contact.shape}, needs ({len(q)}, feet)"
            )
        none = np.flatnonzero(~contact.any(axis=1))
        if none.size:
            raise InvalidInput(
                f"footfall pattern: no foot is on the ground in frame {none[0]}; a "
                "quad-robot's motion needs support"
            )
        if not (np.isfinite(self.fall) and self.fall > 0):
            raise InvalidInput(f"fall = {self.fall} must be > 0")
        if self.skin_every < 0:
            raise InvalidInput(f"skin_every = {self.skin_every} must be >= 0")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidInput(f"time_limit = {self.time_limit} s must be > 0")
        for name, value in (("q_ref", q), ("contact", contact)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def flat(self) -> np.ndarray:
        """Feet whose soles shall face the ground (N, F): in contact, or near it."""
        out = self.contact.copy()
        for k in range(1, min(FLAT_FRAMES, len(out) - 1) + 1):
            out[k:] |= self.contact[:-k]
            out[:-k] |= self.contact[k:]
        return out

    def goal(self, frame: int) -> FrameGoal:
        """Of the frame that ends in row frame + 1."""
        after = self.contact[frame + 1]
        return FrameGoal(
            self.q_ref[frame + 1],
            after,
            after & self.contact[frame],
            self.flat[frame + 1],
            self.q_ref[frame],
        )


def make_planner(
    robot: SkinnedRobot,
    dt: float,
    options: FrameOptions = FrameOptions(),
    **stepper,
) -> FramePlanner:
    """A planner of a robot whose skin's file lists patches.

    Args:
        robot: of :func:`~drakebots.skin.file.robot.load_skinned`.
        dt: [s].
        options: of the frames.
        stepper: options for :class:`~drakebots.skin.frame.stepper.CoupledStepper`.

    Raises:
        InvalidInput: without patches, or for a dt not > 0.
    """
    feet = make_feet(robot.plant, robot.context, robot.skin.patches)
    return FramePlanner(
        robot.stepper(dt, **stepper), feet, robot.effort_limits, options
    )


def rollout(
    planner: FramePlanner,
    plan: FramePlan,
    *,
    initial: CoupledState | None = None,
    model: str = "quad",
    path: str | Path | None = None,
    progress: Progress | None = None,
    provenance: dict | None = None,
) -> Result:
    """Optimizes all frames.

    Args:
        planner: of the robot.
        plan: to follow.
        initial: state in row 0; settled at q_ref[0] by default.
        model: name of the robot.
        path: to save the result to, atomically; also what is reached every 100
            frames.
        progress: called with the time reached and the end [s].
        provenance: for the result.

    Returns:
        A Result; see :class:`~drakebots.robots.quads.frames.log.FrameLog`.

    Raises:
        InvalidInput: for shapes that do not fit the robot, before any frame.
        FileProblem: when the path cannot be written, before any frame.
        NoSolution: when the skin does not settle at the first pose.
    """
    nq, count = planner.stepper.plant.num_positions(), len(planner.feet)
    if plan.q_ref.shape[1] != nq or plan.contact.shape[1] != count:
        raise InvalidInput(
            f"frame plan: q_ref {plan.q_ref.shape} and contact {plan.contact.shape} "
            f"for a robot of {nq} positions and {count} feet"
        )
    if path is not None:
        check_output(path)
    start = clock.perf_counter()
    state = (
        settled_state(planner.stepper, plan.q_ref[0]) if initial is None else initial
    )
    log = FrameLog(planner, plan, model, provenance or {})
    log.begin(state)
    memory, dt = planner.start(state), planner.stepper.dt
    frames = len(plan.q_ref) - 1
    verdict, message = Verdict.SUCCESS, f"{frames} frames"
    log.timings["settle"] = clock.perf_counter() - start
    try:
        with CtrlC() as stop, calm_threads():
            for k in range(frames):
                step = planner.step(state, memory, plan.goal(k))
                if not step.ok:
                    verdict, message = Verdict.FAILED, step.message
                    log.failed(step)
                    break
                state, memory = step.state, step.memory
                away = log.add(step, plan.q_ref[k + 1])
                if away > plan.fall:
                    verdict = Verdict.FAILED
                    message = (
                        f"fell: {away:.3g} from the reference at {(k + 1) * dt:g} s; "
                        "slow the motion down, or give more torque"
                    )
                    break
                if progress is not None:
                    progress((k + 1) * dt, frames * dt)
                stop.check()
                spent = clock.perf_counter() - start
                limit = plan.time_limit
                if limit is not None and spent > limit and k + 1 < frames:
                    verdict = Verdict.TIME_LIMIT
                    message = f"stopped at the time limit of {limit:g} s"
                    break
                if path is not None and (k + 1) % 100 == 0 and k + 1 < frames:
                    log.result(Verdict.INTERRUPTED, "still running").save(path)
    except KeyboardInterrupt:
        verdict, message = Verdict.INTERRUPTED, "interrupted; frames so far are kept"
    result = log.result(verdict, message)
    if path is not None:
        result.save(path)
    return result
