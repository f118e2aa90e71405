"""Changes a skinned quadruped's design until its walk needs less torque.

    improved = improve(table1_problem("beetle"), "out")

The search is :func:`drakebots.design.optimize`; here are its planner and the model by
which it judges designs between plans. :class:`WalkModel` estimates the torques tau of a
design with parameters p over the motion q(t) and the contact forces f(t) of the last
plan, which was made for p_0:

    tau(p) = tau_plan + tau_m(p) - tau_m(p_0)
    tau_m = RNEA(q, v, a; skeleton with the skin's mass on its links)
            - J_f' f + K (q - q_rest)

RNEA is the inverse dynamics, J_f the Jacobian of the contact points, and K the
stiffness of the skin against the joints. The forces f are scaled to the weight of the
new design and corrected so that they balance it as well as they did the old one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter1d

from drakebots.core.run import Progress
from drakebots.design import (
    REDUCTION,
    Design,
    DesignProblem,
    DesignVariable,
    Improved,
    SkinResponse,
    optimize,
    rms,
)
from drakebots.design.skeleton import write_sdf
from drakebots.model import context_at
from drakebots.results import Result
from drakebots.robots.quads.plan import plan
from drakebots.robots.quads.problem import Problem
from drakebots.robots.quads.robot import (
    PlannedRobot,
    Quad,
    SkinShare,
    load_planned,
    load_quad,
    skin_on_links,
)
from drakebots.robots.quads.track import Tracking, track
from drakebots.skin.coupled import Patches, patch_points

EVERY = 5
"""The model looks at every fifth step of the plan."""

STEP = 1e-3
"""Step of central differences, in shares of a parameter's range."""


def improve(
    problem: DesignProblem,
    folder: Path | str,
    *,
    motion: str = "walk",
    reduction: float = REDUCTION,
    progress: Progress | None = None,
) -> Improved:
    """Changes a design until the rms torque of its walk is lower by a share.

    See :func:`drakebots.design.optimize`.

    Args:
        problem: the design problem to start from.
        folder: folder for the designs.
        motion: name of a motion of the library (:mod:`drakebots.robots.quads.motion`).
        reduction: the share, from 0.001 to 0.99.
        progress: called with the stage, and what is done of it.
    """
    walks = _Walks(motion)
    return optimize(problem, folder, walks, reduction=reduction, progress=progress)


@dataclass(frozen=True)
class _Walks:
    """The planner of a motion of the library.

    Attributes:
        motion: name of the motion.
    """

    motion: str

    def plan(self, model: Path, stored: Path, progress: Progress | None) -> Result:
        problem = Problem(model=str(model), motion=self.motion)
        return plan(problem, path=stored, progress=progress)

    def replay(self, plan: Result, model: Path, progress: Progress | None) -> Result:
        return track(Tracking(plan, model=str(model)), progress=progress)

    def model(
        self, design: Design, model: Path, plan: Result, folder: Path
    ) -> WalkModel:
        return WalkModel(design, load_planned(model), plan, folder)


class _Body(NamedTuple):
    """The numbers of a design that determine the torques of its walk.

    Attributes:
        quad: the skeleton.
        stiffness: K of the skin against the m joints (m, m) [N m/rad].
        nodes: rest positions of the skin's nodes (N, 3) [m].
        share: their masses, and the links they move with.
    """

    quad: Quad
    stiffness: np.ndarray
    nodes: np.ndarray
    share: SkinShare

    @property
    def mass(self) -> float:
        """Mass of skeleton and skin [kg]."""
        return self.quad.mass + self.share.node_mass.sum()


class WalkModel:
    """The rms torque of designs over the motion and the forces of one plan.

    Args:
        design: the design that was planned.
        robot: the same, as planned.
        result: its plan.
        folder: folder for the skeletons of changed designs.
    """

    def __init__(
        self, design: Design, robot: PlannedRobot, result: Result, folder: Path
    ):
        self.robot, self.folder = robot, folder
        quad, data = robot.quad, result.data
        rows = np.arange(EVERY, len(data.time), EVERY)
        q = robot.coordinates.from_positions(data.position.values)
        v = robot.coordinates.from_velocities(q, data.velocity.values)
        a = np.gradient(v, float(data.time.values[1]), axis=0)
        a = uniform_filter1d(a, EVERY, axis=0)
        # Forces in row i act in the pose of row i - 1.
        self.q, self.v, self.a = (x[rows - 1] for x in (q, v, a))
        feet = sum(len(sole.points) for sole in quad.soles)
        self.force = data.contact_force.values[rows][:, :feet]
        self.recorded = data.torque.values[1:]
        self.sampled = data.torque.values[rows]
        self.skin = SkinResponse(design, quad.joints)
        K, mass = self.skin.moved()
        share = replace(robot.share, node_mass=mass)
        planned = _Body(quad, K, self.skin.fem.rest, share)
        self._planned_mass, self._planned_lack = planned.mass, None
        self.start, self._planned_lack = self._torques(planned)

    @property
    def base(self) -> float:
        """rms torque of the plan [N m]."""
        return rms(self.recorded)

    def _torques(self, body: _Body) -> tuple[np.ndarray, np.ndarray]:
        """tau_m at the n sampled steps (n, m) [N m], and the base's lack (n, 6).

        The lack is the generalized force on the base that the motion needs and the
        contact forces do not give. The forces are those of the plan times the ratio of
        the weights, plus the least change, weighted by the loads, that leaves the base
        with the lack that it had in the plan.
        """
        quad = body.quad
        own = skin_on_links(quad, body.nodes, body.share)
        n, actuated = len(self.q), quad.actuated
        need = quad.dynamics(self.q, self.v, self.a, quad.tree.inertia + own.inertia)
        ratio = body.mass / self._planned_mass
        lack, out = np.zeros((n, 6)), np.empty((n, len(actuated)))
        for k, force in enumerate(self.force):
            J = _patch_jacobian(quad, self.q[k])
            f = ratio * force.ravel()
            lack[k] = need[k, :6] - J[:, :6].T @ f
            if self._planned_lack is not None:
                load = np.repeat(np.maximum(force[:, 2], 0.0), 3)
                W = (J[:, :6] * load[:, None]).T
                excess = lack[k] - self._planned_lack[k]
                f = f + load * np.linalg.lstsq(W, excess, rcond=1e-9)[0]
            out[k] = (need[k] - J.T @ f)[actuated]
        turn = self.q[:, actuated] - quad.rest[actuated]
        return out + turn @ body.stiffness, lack

    def _rms(self, body: _Body) -> float:
        """rms torque of the plan, plus the change that the model predicts [N m]."""
        change = self._torques(body)[0] - self.start
        return self.base + rms(self.sampled + change) - rms(self.sampled)

    def of_design(self, design: Design, path: Path) -> float:
        """Modelled rms torque of another design, which was written to a path [N m]."""
        other = load_planned(path)
        K, mass = SkinResponse(design, other.quad.joints).moved()
        share = replace(other.share, node_mass=mass)
        return self._rms(_Body(other.quad, K, other.skinned.fem.rest, share))

    def slope(self, variable: DesignVariable) -> float:
        """Derivative of the rms torque with a parameter, times its range [N m]."""
        h = STEP * variable.range
        high, low = (self._rms(self._changed(variable, step)) for step in (h, -h))
        return (high - low) / (2 * STEP)

    def _changed(self, variable: DesignVariable, step: float) -> _Body:
        """The planned design with one parameter changed, on the same mesh."""
        skin, quad = self.skin.changed(variable, step), self.robot.quad
        if skin.skeleton is not None:
            path = write_sdf(skin.skeleton, self.folder)
            quad = load_quad(str(path), self.robot.skinned.skin.patches)
        share = replace(self.robot.share, node_mass=skin.node_mass)
        return _Body(quad, skin.stiffness, skin.nodes, share)


def _patch_jacobian(quad: Quad, q: np.ndarray) -> np.ndarray:
    """Jacobian of the contact points of all soles (3 p, nv), in the world."""
    plant = quad.robot.plant
    context = context_at(plant, q)
    points = [sole.p_BF + sole.points @ sole.R_BS.T for sole in quad.soles]
    patches = [Patches(s.name, s.body, p_BC) for s, p_BC in zip(quad.soles, points)]
    return patch_points(plant, context, patches)[1]
