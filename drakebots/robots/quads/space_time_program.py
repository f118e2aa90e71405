"""The space-time program put together: variables, rows and costs of all knots."""

from __future__ import annotations

import numpy as np

from drakebots.robots.quads import space_time_blocks as blocks
from drakebots.robots.quads.knot_program import KnotBuilder
from drakebots.robots.quads.space_time import SpaceTime


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
