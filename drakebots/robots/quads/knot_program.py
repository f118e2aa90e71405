"""What programs over the knots of a motion share: poses, feet, COM, contact.

Variables q (K, nv), p (K, 3 feet) and c (K, 3); rows that tie p and c to q, that
keep feet in place (eq. 4) and repeat the motion (eq. 6); costs E_COM, E_EE, E_O.
A knot stands for `stride` frames in the costs, the first and last for half as many.
"""

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
