"""Feedback control with the reduced skin: servo targets corrected at 50 Hz.

In each control step the controller measures the skeleton's q and v (not the skin),
predicts the end of the step with the reduced skin in one time step, and moves all feet
in the base's frame against the predicted errors of roll, pitch and height,

    dz_f = h + roll y_f - pitch x_f,  dq_leg = J_leg^+ (k_p dz_f + k_i int dz_f dt)

by damped least squares that keep the foot's other directions and its orientation. The
modes' y are never measured; they continue from the last prediction.

A library of quad_reduced.py, without a command.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, replace

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.core.errors import InvalidInput
from drakebots.core.run import Progress
from drakebots.model import find_body
from drakebots.skin.coupled import PatchContact, torque_map
from drakebots.skin.coupled.skeleton import spatial_jacobian
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.reduced import ReducedSkin, reduced_stepper
from drakebots.skin.reduced.basis import limb_of
from drakebots.skin.reduced.training import Targets, converged, run_all


@dataclass(frozen=True)
class Feedback:
    """Gains of the controller.

    Attributes:
        period: control period [s].
        proportional: proportional gain k_p.
        integral: integral gain k_i [1/s].
        most: largest correction of a joint [rad].
        prediction: whether the predicted errors are used, instead of the measured.
    """

    period: float = 0.02
    proportional: float = 0.4
    integral: float = 4.0
    most: float = 0.25
    prediction: bool = True


class BaseController:
    """Corrects servo targets to keep the base level and at its height.

    Args:
        robot: robot with a free base and contact points of feet.
        skin: trained reduced skin.
        feedback: gains of the controller.

    Raises:
        InvalidInput: for a robot without feet or without a free base.
    """

    def __init__(
        self, robot: SkinnedRobot, skin: ReducedSkin, feedback: Feedback = Feedback()
    ):
        if not robot.skin.patches:
            raise InvalidInput("closed loop: the robot has no patches of feet")
        self.robot, self.feedback = robot, feedback
        self.model = reduced_stepper(
            robot,
            skin,
            feedback.period,
            patches=robot.skin.patches,
            patch_contact=PatchContact(),
        )
        plant = robot.plant
        feet = [patch.body for patch in robot.skin.patches]
        limb = limb_of(plant, [*skin.links, *feet])
        base = [n for n, k in zip(skin.links, limb) if k == 0]
        if not base or not find_body(plant, base[0]).is_floating_base_body():
            raise InvalidInput("closed loop: the base is not free")
        self._base = find_body(plant, base[0])
        self._feet = [
            (find_body(plant, p.body), p.p_BC.mean(0)) for p in robot.skin.patches
        ]
        self._B = torque_map(plant)[0]
        self._home = self._tilt(self.model.start().q)
        self._state, self._sum = None, np.zeros(3)
        self._correction = np.zeros(len(robot.joints))

    def _tilt(self, q):
        """Roll, pitch and height of the base."""
        model = self.model
        model.pose(q, np.zeros(model.plant.num_velocities()))
        X = model.plant.EvalBodyPoseInWorld(model.context, self._base)
        roll, pitch, _ = RollPitchYaw(X.rotation()).vector()
        return np.array([roll, pitch, X.translation()[2]])

    def update(
        self, time: float, q, v, targets: Targets
    ) -> tuple[np.ndarray, tuple[float, float]]:
        """Targets for the next control step (m,) [rad], and its wall and CPU time [s].

        Args:
            time: present time [s].
            q, v: measured positions and velocities of the plant.
            targets: targets without feedback.
        """
        began = clock.perf_counter(), clock.process_time()
        gains, model = self.feedback, self.model
        if self._state is None:
            self._state = model.state(time, q, v, np.zeros(model.skin.size))
        state = model.state(time, q, v, self._state.y, self._state.dy)
        state = replace(state, normal=self._state.normal)
        goal = targets(time + gains.period)
        result = model.step(state, servo=self.robot.servo(goal + self._correction))
        # Where the prediction fails, use the measured state.
        ahead = result.state if result.converged else state
        self._state = ahead
        error = self._tilt(ahead.q if gains.prediction else q) - self._home
        self._sum += gains.period * error
        move = gains.proportional * error + gains.integral * self._sum
        change = self._legs(ahead.q, move)
        self._correction = np.clip(change, -gains.most, gains.most)
        spent = clock.perf_counter() - began[0], clock.process_time() - began[1]
        return goal + self._correction, spent

    def _legs(self, q, move):
        """Joint changes (m,) that move the feet against roll, pitch and height."""
        model, plant = self.model, self.robot.plant
        model.pose(q, np.zeros(plant.num_velocities()))
        base, out = self._base.body_frame(), np.zeros(self._B.shape[1])
        X_WB = plant.EvalBodyPoseInWorld(model.context, self._base)
        for body, p in self._feet:
            J = spatial_jacobian(plant, model.context, body.body_frame(), p, base)
            J = J @ self._B
            X_BF = X_WB.inverse().multiply(
                RigidTransform(plant.EvalBodyPoseInWorld(model.context, body))
            )
            x, y, _ = X_BF.multiply(p)
            # A rotation by 1 rad counts as a displacement by 0.1 m.
            weight = np.array([0.1, 0.1, 0.1, 1, 1, 1])[:, None]
            goal = np.array([0, 0, 0, 0, 0, move[2] + move[0] * y - move[1] * x])
            A = weight * J
            out += A.T @ np.linalg.solve(
                A @ A.T + 1e-6 * np.eye(6), weight[:, 0] * goal
            )
        return out


def run_loop(
    stepper,
    robot: SkinnedRobot,
    targets: Targets,
    controller: BaseController | None,
    *,
    duration: float,
    progress: Progress | None = None,
) -> dict[str, np.ndarray]:
    """Simulates a robot with or without feedback.

    Args:
        stepper: stepper of the robot, with full or reduced skin.
        robot: the robot.
        targets: targets of the servos without feedback.
        controller: controller that corrects them, or None.
        duration: duration [s].
        progress: called after each step.

    Returns:
        time (n,) [s], tilt (n, 3): roll, pitch [rad] and height [m] of the base,
        torque (n, m) [N m], place (n, 3) of the base [m], and control (c, 2), the
        wall and CPU seconds each control step took.

    Raises:
        NoSolution: when a step fails.
        KeyboardInterrupt: at Ctrl-C, between steps.
    """
    state = stepper.start()
    period = stepper.dt if controller is None else controller.feedback.period
    every = max(1, round(period / stepper.dt))
    goal, rows, control = None, [], []
    plant = stepper.plant
    body = next(b for b in map(plant.get_body, plant.GetFloatingBaseBodies()))

    def step(k):
        nonlocal state, goal
        now = (k - 1) * stepper.dt
        if controller is None:
            goal = targets(now + stepper.dt)
        elif (k - 1) % every == 0:
            goal, spent = controller.update(now, state.q, state.v, targets)
            control.append(spent)
        result = converged(stepper.step(state, servo=robot.servo(goal)))
        state = result.state
        stepper.pose(state.q, state.v)
        X = plant.EvalBodyPoseInWorld(stepper.context, body)
        p, tilt = X.translation(), RollPitchYaw(X.rotation()).vector()[:2]
        rows.append((now + stepper.dt, [*tilt, p[2]], p, result.torques))

    run_all(step, round(duration / stepper.dt), "closed loop", progress)
    time, tilt, place, torque = (np.array(c) for c in zip(*rows))
    return {
        "time": time,
        "tilt": tilt,
        "place": place,
        "torque": torque,
        "control": np.array(control).reshape(-1, 2),
    }
