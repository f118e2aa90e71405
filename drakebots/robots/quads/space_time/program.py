"""The space-time program put together: variables, rows and costs of all knots."""

from __future__ import annotations

import numpy as np

from drakebots.robots.quads.space_time import blocks
from drakebots.robots.quads.space_time.problem import SpaceTime
from drakebots.trajopt.program import ProgramBuilder

# What programs over the knots of a motion share: poses, feet, COM, contact.
#
# Variables q (K, nv), p (K, 3 feet) and c (K, 3); rows that tie p and c to q, that
# keep feet in place (eq. 4) and repeat the motion (eq. 6); costs E_COM, E_EE, E_O.
# A knot stands for `stride` frames in the costs, the first and last for half as many.

AXES = ("x", "y", "z")

SLIP = 1e-5
"""Of a foot in contact from knot to knot [m], and of a cycle's ends [rad, m]. Not
zero: legs that move in planes make these rows depend on each other (four feet,
three ways for the base to move across), and equations that do stall a solver."""


class KnotBuilder(ProgramBuilder):
    """A program under construction; its subclasses choose and order the parts.

    Args:
        name: of the program.
        problem: motion, weights and knots.
    """

    def __init__(self, name: str, problem: SpaceTime):
        super().__init__(name)
        self.p, self.quad = problem, problem.quad
        self.K = len(problem.frames)
        self.foot_labels = [f"{f}.{x}" for f in self.quad.feet for x in AXES]
        self.corner_counts = [len(s.corners) for s in self.quad.soles]
        self.frame_weights = np.full((self.K, 1), float(problem.stride))
        self.frame_weights[[0, -1]] *= 0.5

    # ------------------------------------------------------------ variables
    def add_poses(self) -> None:
        """q, within the joints' limits."""
        low, high = self.quad.position_limits
        names = self.quad.coordinates
        self.add_variables("q", self.K, names, lower=low, upper=high, scale=0.1)

    def add_feet_and_com(self) -> None:
        """p and c. Eq. (4): height zero; in the air, not below the ground."""
        p, K = self.p, self.K
        floor = np.full((K, len(self.quad.feet), 3), -np.inf)
        roof = np.full_like(floor, np.inf)
        floor[:, :, 2] = 0.0
        down = p.contact.copy()
        if p.motion.period == "cycle":
            # Follows from the first knot's: twice the same row is no help.
            down[-1] = False
            floor[-1] = -np.inf
        roof[:, :, 2] = np.where(down, 0.0, np.inf)
        floor, roof = floor.reshape(K, -1), roof.reshape(K, -1)
        self.add_variables(
            "p", K, self.foot_labels, lower=floor, upper=roof, scale=0.1, units="m"
        )
        self.add_variables("c", K, AXES, scale=0.1, units="m")

    # ----------------------------------------------------------------- rows
    def add_kinematics(self, inertia: np.ndarray) -> None:
        """p and c are those of q.

        Args:
            inertia: of the links at the knots (K, 10 links).
        """
        rows = {"lower": 0.0, "upper": 0.0, "scale": 0.1, "units": "m"}
        feet = self.add_rows("feet", self.K, self.foot_labels, **rows)
        com = self.add_rows("com", self.K, AXES, **rows)
        self.add_term(
            blocks.kinematics_block(self.quad),
            {name: self[name].indices for name in "qpc"},
            {"feet": feet.indices, "com": com.indices},
            data=inertia,
        )

    def add_stays(self) -> None:
        """Eq. (4): where a foot stands, it stays."""
        p, K = self.p, self.K
        stays = np.repeat(p.contact[1:] & p.contact[:-1], 2, axis=1)
        free = np.where(stays, SLIP, np.inf)
        labels = [f"{f}.{x}" for f in self.quad.feet for x in AXES[:2]]
        stay = self.add_rows(
            "stay", K - 1, labels, lower=-free, upper=free, scale=0.1, units="m"
        )
        along = self["p"].indices.reshape(K, -1, 3)[:, :, :2].reshape(K, -1)
        self.difference(along[1:], along[:-1], stay.indices)

    def add_periodicity(self) -> None:
        """Eq. (6); in a cycle also the base's height and tilt, and its turn."""
        period = self.p.motion.period
        if period is None:
            return
        start = 6 if period == "joints" else 2
        names = self.quad.coordinates[start:]
        value = np.zeros(len(names))
        if period == "cycle":
            value[1] = self.p.motion.turn
        low, high = value - SLIP, value + SLIP
        rows = self.add_rows("periodic", 1, names, lower=low, upper=high, scale=0.1)
        q = self["q"].indices[:, start:]
        self.difference(q[-1:], q[:1], rows.indices)

    # ---------------------------------------------------------------- costs
    def add_tracking(self) -> None:
        """E_COM and E_EE: of the COM's and the feet's way from what is asked."""
        p, w = self.p, self.p.weights
        com = p.motion.com[p.frames]
        self.add_squares("COM", "c", w.com / w.length**2 * self.frame_weights, com)
        feet = p.desired_feet.reshape(self.K, -1)
        self.add_squares("EE", "p", w.feet / w.length**2 * self.frame_weights, feet)

    def add_flatness(self) -> None:
        """E_O: soles face the ground about their contact."""
        p = self.p
        near = p.motion.footfall.near_contact(p.flat_frames)[p.frames][:, p.order]
        self.add_cost(
            blocks.flat_block(self.quad),
            {"q": self["q"].indices},
            data=p.weights.flat * self.frame_weights * near,
        )

    def add_squares(self, name: str, group: str, weight, target=0.0) -> None:
        """sum weight (x - target)^2 of a group's variables, both as (K, n) or less."""
        shape = self[group].shape
        weight = np.broadcast_to(weight, shape)
        target = np.broadcast_to(target, shape)
        self.add_cost(
            blocks.squares_block(name, shape[1]),
            {"x": self[group].indices},
            data=np.hstack([weight, target]),
        )


class SpaceTimeBuilder(KnotBuilder):
    """A program under construction; see :mod:`space_time`."""

    def __init__(self, problem: SpaceTime, posture: np.ndarray | None):
        super().__init__(f"space-time {problem.motion.name}", problem)
        self.posture = posture
        self._variables_of_knots()
        self._motion()
        self._knot_rows()
        self._contact_rows()
        self.add_stays()
        self.add_periodicity()
        self._objective()

    # ------------------------------------------------------------ variables
    def _variables_of_knots(self) -> None:
        p, quad, K = self.p, self.quad, self.K
        names = quad.coordinates
        speed = quad.speed_limits
        self.add_poses()
        self.add_variables("v", K, names, lower=-speed, upper=speed)
        self.add_variables("a", K, names, scale=10.0)
        self.add_feet_and_com()
        feet = self.foot_labels
        loaded = np.repeat(p.loaded, 3, axis=1)
        most = np.where(loaded, np.inf, 0.0)
        F_low = -most
        F_low[:, 2::3] = 0.0
        size = float(np.mean([s.radius for s in quad.soles]))
        self.add_variables(
            "F", K, feet, lower=F_low, upper=most, scale=p.weight / 4, units="N"
        )
        self.add_variables(
            "T", K, feet, lower=-most, upper=most, scale=p.weight * size / 4
        )
        bound = p.limits
        scale = np.where(np.isfinite(bound), bound, 0.05 * p.weight)
        self.add_variables(
            "tau", K, quad.joints, lower=-bound, upper=bound, scale=scale, units="N m"
        )

    # --------------------------------------------------------------- motion
    def _motion(self) -> None:
        p, n, K, h = self.p, self.quad.nv, self.K, self.p.step
        equal = {"lower": 0.0, "upper": 0.0}
        names = self.quad.coordinates
        rate = self.add_rows("rate", K, names, scale=1.0, **equal).indices
        bend = self.add_rows("bend", K, names, scale=1.0, **equal).indices
        q, v, a = (self[name].indices for name in "qva")
        inner = {"before": q[:-2], "here": q[1:-1], "after": q[2:]}
        self.add_term(
            blocks.motion_block(n, h, "inner"),
            {**inner, "v": v[1:-1], "a": a[1:-1]},
            {"rate": rate[1:-1], "bend": bend[1:-1]},
        )
        if p.motion.period == "cycle":
            ends = {"first": q[:1], "second": q[1:2]}
            ends |= {"last_but_one": q[-2:-1], "last": q[-1:]}
            for end, k in ((False, slice(0, 1)), (True, slice(K - 1, K))):
                self.add_term(
                    blocks.wrap_block(n, h, p.motion.turn, end),
                    {**ends, "v": v[k], "a": a[k]},
                    {"rate": rate[k], "bend": bend[k]},
                )
            return
        for kind, k, after in (("start", 0, 1), ("end", K - 1, K - 2)):
            self.add_term(
                blocks.motion_block(n, h, kind),
                {
                    "here": q[k : k + 1],
                    "after": q[after : after + 1],
                    "v": v[k : k + 1],
                    "a": a[k : k + 1],
                },
                {"rate": rate[k : k + 1], "bend": bend[k : k + 1]},
            )

    # ----------------------------------------------------------------- rows
    def _knot_rows(self) -> None:
        p, quad, K = self.p, self.quad, self.K
        names = quad.coordinates
        equal = {"lower": 0.0, "upper": 0.0}
        arm = 0.5 * float(np.linalg.norm(np.ptp(quad.rest_feet[:, :2], axis=0)))
        scale = p.weight * np.array([1, 1, 1, arm, arm, arm])
        momentum = self.add_rows("momentum", K, names[:6], scale=scale, **equal)
        torque = self.add_rows(
            "torque", K, names[6:], scale=0.1 * p.weight * arm, **equal
        )
        inputs = {name: self[name].indices for name in ("q", "v", "a", "F", "T", "tau")}
        inertia = p.inertia.reshape(K, -1)
        self.add_term(
            blocks.dynamics_block(quad),
            inputs,
            {"momentum": momentum.indices, "torque": torque.indices},
            data=np.hstack([inertia, p.delta]),
        )
        self.add_kinematics(inertia)

    def _contact_rows(self) -> None:
        p, quad, K = self.p, self.quad, self.K
        size = float(np.mean([s.radius for s in quad.soles]))
        # Eq. (5), sole by sole.
        labels = [
            f"{s.name}.edge{k}" for s in quad.soles for k in range(len(s.corners))
        ]
        upper = np.where(np.repeat(p.loaded, self.corner_counts, axis=1), 0.0, np.inf)
        sole = self.add_rows(
            "cop", K, labels, upper=upper, scale=p.weight * size / 4, units="N m"
        )
        loads = {name: self[name].indices for name in ("q", "F", "T")}
        self.add_term(
            blocks.sole_block(quad, p.cop_share), loads, {"sole": sole.indices}
        )
        self._clearance(labels)
        # Eq. (8).
        lower = np.where(p.loaded, 0.0, -np.inf)
        rows = {
            name: self.add_rows(
                name, K, quad.feet, lower=lower, scale=p.weight / 4, units="N"
            ).indices
            for name in ("cone", "grip")
        }
        block = blocks.friction_block(quad, p.friction, p.tip * p.weight, p.weight)
        self.add_term(block, {n: self[n].indices for n in "FT"}, rows)

    def _clearance(self, labels) -> None:
        """Toes and heels stay above the ground too: eq. (4) knows a foot's centre,
        and a sole tilted in its swing would drag along the ground."""
        down = np.repeat(self.p.contact, self.corner_counts, axis=1)
        low = np.where(down, -np.inf, 0.0)
        rows = self.add_rows("clear", self.K, labels, lower=low, scale=0.1, units="m")
        block = blocks.clearance_block(self.quad)
        self.add_term(block, {"q": self["q"].indices}, {"height": rows.indices})

    # ---------------------------------------------------------------- costs
    def _objective(self) -> None:
        p, w, frames = self.p, self.p.weights, self.frame_weights
        self.add_squares("tau", "tau", w.torque / p.mass**2 * frames)
        self.add_squares("S", "a", w.smooth * w.smooth_step**4 * frames)
        self.add_tracking()
        self.add_flatness()
        self._follow()
        light = w.force / p.weight**2 * frames
        self.add_squares("F_contact", "F", light)
        radius = np.repeat([s.radius for s in self.quad.soles], 3)
        self.add_squares("T_contact", "T", light / radius**2)

    def _follow(self) -> None:
        p, w, frames = self.p, self.p.weights, self.frame_weights
        K, n = self.K, self.quad.nv
        weight, target = np.zeros((K, n)), np.zeros((K, n))
        if p.follow is not None:
            weight[:], target[:] = w.follow * frames, p.follow[p.frames]
        else:
            for name, values in p.motion.reference.items():
                k = self.quad.coordinates.index(name)
                weight[:, k] = (w.reference * frames)[:, 0]
                target[:, k] = values[p.frames]
        if weight.any():
            self.add_squares("F", "q", weight, target)
        posture = self.quad.rest if self.posture is None else self.posture
        light = w.posture * frames * np.ones(n)
        if self.posture is None:
            light[:, :6] = 0.0
        self.add_squares("posture", "q", light, posture)
