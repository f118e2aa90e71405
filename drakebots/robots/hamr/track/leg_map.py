"""The map from actuator velocities to leg velocities, as a function of leg position.

With q_i the actuators, q_d the flexures, c the loops and f the position of the
leg's marker in the chassis frame (RSS 2018, eq. (19)):

    H(x, z) = df/dq_i - df/dq_d (dc/dq_d)^-1 dc/dq_i

tabulated over the marker's x and z from its neutral position (actuators at 0).
Range and size of the table are the authors'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots.core.units import MM_G_MS
from drakebots.formats import load
from drakebots.model import Model, driven_joints
from drakebots.multibody import ClosedChain, build_robot
from drakebots.robots.hamr.model import MODEL
from drakebots.robots.hamr.reference import CHASSIS

GRID_X = np.linspace(-3e-3, 3e-3, 21)
GRID_Z = np.linspace(-1.5e-3, 3e-3, 21)
"""Grid of the table: marker from its neutral position [m]."""

_REACHED = 1e-9
"""Largest distance [m] of a marker from its grid point that counts as reached."""

_ITERATIONS = 30
_CLOSED = 1e-9
"""Largest residual of loops and markers, in the unit of length inside."""


@dataclass(frozen=True, eq=False)
class LegMap:
    """H(x, z) of the four legs as tables, bilinear between their entries.

    Attributes:
        x, z: grid (nx,), (nz,) [m], from the neutral position.
        neutral: markers in the chassis frame with the actuators at 0 (4, 3) [m].
        H: d(marker)/d(swing, lift) at the entries (4, nx, nz, 3, 2) [m/m].
        actuators: tip positions (swing, lift) at the entries (4, nx, nz, 2) [m].
        reachable: (4, nx, nz); an entry out of reach of the actuators' travel has
            the values of the nearest position that was found.
    """

    x: np.ndarray
    z: np.ndarray
    neutral: np.ndarray
    H: np.ndarray
    actuators: np.ndarray
    reachable: np.ndarray

    def __call__(self, legs: np.ndarray) -> np.ndarray:
        """H (4, 3, 2) with the markers at `legs` (4, 3) [m], chassis frame.

        Outside the table the nearest point of its edge counts.
        """
        away = legs - self.neutral
        i, a = _cell(self.x, away[:, 0])
        j, b = _cell(self.z, away[:, 2])
        leg, a, b = np.arange(4), a[:, None, None], b[:, None, None]
        low = (1 - b) * self.H[leg, i, j] + b * self.H[leg, i, j + 1]
        high = (1 - b) * self.H[leg, i + 1, j] + b * self.H[leg, i + 1, j + 1]
        return (1 - a) * low + a * high

    def velocities(self, legs: np.ndarray, tips: np.ndarray) -> np.ndarray:
        """Velocities of the markers (4, 3) in the chassis frame from those of the
        tips (8,)."""
        return np.einsum("lij,lj->li", self(legs), np.reshape(tips, (4, 2)))


def _cell(grid: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the cell, and the position in it, 0..1."""
    place = (value - grid[0]) / (grid[1] - grid[0])
    place = np.minimum(np.maximum(place, 0.0), len(grid) - 1.0)
    index = np.minimum(place.astype(int), len(grid) - 2)
    return index, place - index


@cache
def hamr_leg_map() -> LegMap:
    """The map of the standard HAMR-VI, computed once."""
    return build_leg_map(load(MODEL))


def build_leg_map(
    model: Model, x: np.ndarray = GRID_X, z: np.ndarray = GRID_Z
) -> LegMap:
    """Computes the map by inverse kinematics at every entry.

    The four legs do not touch each other, so one Newton iteration moves all.

    Args:
        model: HAMR-VI, or a model with its joints.
        x, z: grid [m], increasing, evenly spaced, with 0 within.
    """
    solver, shape = _InverseKinematics(model), (4, len(x), len(z))
    H, actuators = np.zeros((*shape, 3, 2)), np.zeros((*shape, 2))
    neutral, reachable = solver.neutral * MM_G_MS.length, np.zeros(shape, bool)
    for i in np.argsort(np.abs(x), kind="stable"):
        solver.reset()
        # From the middle outwards, each entry from the one before.
        middle = int(np.abs(z).argmin())
        for j in [*range(middle, len(z)), *range(middle - 1, -1, -1)]:
            if j == middle - 1:
                solver.reset()
            miss = solver.move(x[i] / MM_G_MS.length, z[j] / MM_G_MS.length)
            reachable[:, i, j] = miss * MM_G_MS.length < _REACHED
            H[:, i, j] = solver.columns()
            actuators[:, i, j] = solver.tips() * MM_G_MS.length
    return LegMap(x, z, neutral, H, actuators, reachable)


class _InverseKinematics:
    """Positions of all coordinates for given x and z of the markers; in mm."""

    def __init__(self, model: Model):
        self._robot = build_robot(model, base="fixed", time_step=0, scaling=MM_G_MS)
        plant = self._robot.plant
        joints = driven_joints(plant)
        self._chain = ClosedChain(self._robot, tuple(j.name() for j in joints))
        self._tips = np.array([j.position_start() for j in joints])
        self._travel = np.array([j.position_upper_limits()[0] for j in joints])
        self._markers = self._robot.frames(model.points)
        self._chassis = plant.GetFrameByName(CHASSIS)
        self._context = plant.CreateDefaultContext()
        self.neutral = self._positions()

    def reset(self) -> None:
        """All coordinates to zero."""
        plant = self._robot.plant
        plant.SetPositions(self._context, np.zeros(plant.num_positions()))

    def move(self, x: float, z: float) -> np.ndarray:
        """Brings every marker to x, z from its neutral position; |miss| (4,).

        Newton's method on loops and markers together; where that exceeds the tips'
        travel, on the tips alone, stopped at the ends of their travel.
        """
        plant, closure = self._robot.plant, self._robot.closure
        q = plant.GetPositions(self._context).copy()
        goal = self.neutral[:, [0, 2]] + [x, z]
        for _ in range(_ITERATIONS):
            plant.SetPositions(self._context, q)
            c, C = closure.evaluate(self._context)
            miss = self._positions()[:, [0, 2]] - goal
            rest = np.concatenate([c, miss.ravel()])
            if np.abs(rest).max() < _CLOSED:
                return np.linalg.norm(miss, axis=1)
            rows = np.vstack([C, *(J[[0, 2]] for J in self._jacobians())])
            q = q - np.linalg.solve(rows, rest)
            if np.any(np.abs(q[self._tips]) > self._travel):
                break
        return self._move_within_travel(goal)

    def _move_within_travel(self, goal: np.ndarray) -> np.ndarray:
        self.reset()
        tips, joints = np.zeros((4, 2)), self._chain.joints
        travel = self._travel.reshape(4, 2)
        for _ in range(_ITERATIONS):
            self._chain.solve(self._context, dict(zip(joints, tips.ravel())))
            away = goal - self._positions()[:, [0, 2]]
            step = np.linalg.solve(self.columns()[:, [0, 2]], away[:, :, None])
            further = np.clip(tips + step[:, :, 0], -travel, travel)
            if np.abs(further - tips).max() < _CLOSED:
                break
            tips = further
        return np.linalg.norm(away, axis=1)

    def columns(self) -> np.ndarray:
        """H here (4, 3, 2)."""
        T, slopes = self._chain.tangent(self._context), enumerate(self._jacobians())
        return np.array([J @ T[:, 2 * leg : 2 * leg + 2] for leg, J in slopes])

    def tips(self) -> np.ndarray:
        """Positions of the tips (4, 2)."""
        return self._robot.plant.GetPositions(self._context)[self._tips].reshape(4, 2)

    def _positions(self) -> np.ndarray:
        points = partial(self._robot.plant.CalcPointsPositions, self._context)
        found = [points(frame, p, self._chassis) for frame, p in self._markers]
        return np.array(found)[..., 0]

    def _jacobians(self) -> list[np.ndarray]:
        slope = self._robot.plant.CalcJacobianTranslationalVelocity
        slope = partial(slope, self._context, JacobianWrtVariable.kV)
        chassis = self._chassis, self._chassis
        return [slope(frame, p, *chassis) for frame, p in self._markers]
