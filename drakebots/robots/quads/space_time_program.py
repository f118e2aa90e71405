"""The space-time program put together: variables, rows and costs of all knots."""

from __future__ import annotations

import numpy as np

from drakebots.robots.quads import space_time_blocks as blocks
from drakebots.robots.quads.space_time import SpaceTime
from drakebots.trajopt.program_builder import ProgramBuilder

AXES = ("x", "y", "z")

SLIP = 1e-5
"""Of a foot in contact from knot to knot [m], and of a cycle's ends [rad, m]. Not
zero: legs that move in planes make these rows depend on each other (four feet,
three ways for the base to move across), and equations that do stall a solver."""


class SpaceTimeBuilder(ProgramBuilder):
    """A program under construction; see :mod:`space_time`."""

    def __init__(self, problem: SpaceTime, posture: np.ndarray | None):
        super().__init__(f"space-time {problem.motion.name}")
        self.p, self.quad = problem, problem.quad
        self.K = len(problem.frames)
        self.posture = posture
        self._variables_of_knots()
        self._motion()
        self._knot_rows()
        self._contact_rows()
        self._periodicity()
        self._objective()

    # ------------------------------------------------------------ variables
    def _variables_of_knots(self) -> None:
        p, quad, K = self.p, self.quad, self.K
        names = quad.coordinates
        low, high = quad.position_limits
        speed = quad.speed_limits
        feet = [f"{f}.{x}" for f in quad.feet for x in AXES]
        self.add_variables("q", K, names, lower=low, upper=high, scale=0.1)
        self.add_variables("v", K, names, lower=-speed, upper=speed)
        self.add_variables("a", K, names, scale=10.0)
        # Contact, eq. (4): height zero; in the air, not below the ground.
        floor = np.full((K, len(quad.feet), 3), -np.inf)
        roof = np.full_like(floor, np.inf)
        floor[:, :, 2] = 0.0
        down = p.contact.copy()
        if p.motion.period == "cycle":
            # Follows from the first knot's: twice the same row is no help.
            down[-1] = False
            floor[-1] = -np.inf
        roof[:, :, 2] = np.where(down, 0.0, np.inf)
        self.add_variables(
            "p",
            K,
            feet,
            lower=floor.reshape(K, -1),
            upper=roof.reshape(K, -1),
            scale=0.1,
            units="m",
        )
        self.add_variables("c", K, AXES, scale=0.1, units="m")
        # No force on feet in the air.
        loaded = np.repeat(p.contact, 3, axis=1)
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
        feet = [f"{f}.{x}" for f in quad.feet for x in AXES]
        where = self.add_rows("feet", K, feet, scale=0.1, units="m", **equal)
        com = self.add_rows("com", K, AXES, scale=0.1, units="m", **equal)
        self.add_term(
            blocks.kinematics_block(quad),
            {name: self[name].indices for name in "qpc"},
            {"feet": where.indices, "com": com.indices},
            data=inertia,
        )

    def _contact_rows(self) -> None:
        p, quad, K = self.p, self.quad, self.K
        size = float(np.mean([s.radius for s in quad.soles]))
        # Eq. (5), sole by sole.
        labels = [
            f"{s.name}.edge{k}" for s in quad.soles for k in range(len(s.corners))
        ]
        per_foot = [len(s.corners) for s in quad.soles]
        upper = np.where(np.repeat(p.contact, per_foot, axis=1), 0.0, np.inf)
        sole = self.add_rows(
            "cop", K, labels, upper=upper, scale=p.weight * size / 4, units="N m"
        )
        loads = {name: self[name].indices for name in ("q", "F", "T")}
        self.add_term(
            blocks.sole_block(quad, p.cop_share), loads, {"sole": sole.indices}
        )
        # Eq. (8).
        lower = np.where(p.contact, 0.0, -np.inf)
        rows = {
            name: self.add_rows(
                name, K, quad.feet, lower=lower, scale=p.weight / 4, units="N"
            ).indices
            for name in ("cone", "grip")
        }
        block = blocks.friction_block(quad, p.friction, p.tip * p.weight, p.weight)
        self.add_term(block, {n: self[n].indices for n in "FT"}, rows)
        # Eq. (4): where it stands, it stays.
        stays = p.contact[1:] & p.contact[:-1]
        free = np.where(np.repeat(stays, 2, axis=1), SLIP, np.inf)
        labels = [f"{f}.{x}" for f in quad.feet for x in AXES[:2]]
        stay = self.add_rows(
            "stay", K - 1, labels, lower=-free, upper=free, scale=0.1, units="m"
        )
        along = self["p"].indices.reshape(K, -1, 3)[:, :, :2].reshape(K, -1)
        self.difference(along[1:], along[:-1], stay.indices)

    def _periodicity(self) -> None:
        """Eq. (6); in a cycle also the base's height and tilt, and its turn."""
        p, period = self.p, self.p.motion.period
        if period is None:
            return
        names = self.quad.coordinates
        start = 6 if period == "joints" else 2
        value = np.zeros(len(names) - start)
        if period == "cycle":
            value[1] = p.motion.turn
        rows = self.add_rows(
            "periodic",
            1,
            names[start:],
            lower=value - SLIP,
            upper=value + SLIP,
            scale=0.1,
        )
        q = self["q"].indices[:, start:]
        self.difference(q[-1:], q[:1], rows.indices)

    # ---------------------------------------------------------------- costs
    def _objective(self) -> None:
        p, w, quad, K = self.p, self.p.weights, self.quad, self.K
        # A knot stands for `stride` frames, the first and last for half as many.
        frames = np.full((K, 1), float(p.stride))
        frames[[0, -1]] *= 0.5
        self._squares("tau", "tau", w.torque / p.mass**2 * frames)
        self._squares("S", "a", w.smooth * w.smooth_step**4 * frames)
        where = p.motion.com[p.frames]
        self._squares("COM", "c", w.com / w.length**2 * frames, where)
        feet = p.desired_feet.reshape(K, -1)
        self._squares("EE", "p", w.feet / w.length**2 * frames, feet)
        near = p.motion.footfall.near_contact(p.flat_frames)[p.frames][:, p.order]
        self.add_cost(
            blocks.flat_block(quad),
            {"q": self["q"].indices},
            data=w.flat * frames * near,
        )
        self._follow(frames)
        light = w.force / p.weight**2 * frames
        self._squares("F_contact", "F", light)
        radius = np.repeat([s.radius for s in quad.soles], 3)
        self._squares("T_contact", "T", light / radius**2)

    def _follow(self, frames: np.ndarray) -> None:
        p, w, K = self.p, self.p.weights, self.K
        n = self.quad.nv
        weight, target = np.zeros((K, n)), np.zeros((K, n))
        if p.follow is not None:
            weight[:], target[:] = w.follow * frames, p.follow[p.frames]
        else:
            for name, values in p.motion.reference.items():
                k = self.quad.coordinates.index(name)
                weight[:, k] = (w.reference * frames)[:, 0]
                target[:, k] = values[p.frames]
        if weight.any():
            self._squares("F", "q", weight, target)
        posture = self.quad.rest if self.posture is None else self.posture
        light = w.posture * frames * np.ones(n)
        if self.posture is None:
            light[:, :6] = 0.0
        self._squares("posture", "q", light, posture)

    def _squares(self, name: str, group: str, weight, target=0.0) -> None:
        shape = self[group].shape
        weight = np.broadcast_to(weight, shape)
        target = np.broadcast_to(target, shape)
        self.add_cost(
            blocks.squares_block(name, shape[1]),
            {"x": self[group].indices},
            data=np.hstack([weight, target]),
        )
