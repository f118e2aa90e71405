"""A frame of the skin whose glue moves as told: one factorization, two answers.

    A_d du = b_d + S' lambda,   du_c given:   lambda = S du_c - g

S is the Schur complement of the frame's matrix on the glue, g the reduced right-hand
side. lambda are the forces that move the glue so.
"""

from __future__ import annotations

import numpy as np

from drakebots.errors import NoSolution
from drakebots.fem.assembly import FemModel, elastic_energy, gravity_force, worst_tet
from drakebots.fem.dynamics import SkinState, frame_system
from drakebots.fem.linear_solver import make_solver
from drakebots.skin.glue import Glue


class PrescribedGlue:
    """Frames of a skin.

    Args:
        model: the skin.
        glue: its nodes that are held.
        dt: of a frame [s].
        gravity: (3,) [m/s^2].
        solver, threads: for :func:`~drakebots.fem.linear_solver.make_solver`.
    """

    def __init__(
        self,
        model: FemModel,
        glue: Glue,
        dt: float,
        gravity: np.ndarray,
        *,
        solver: str = "auto",
        threads: int | None = None,
    ):
        self.model, self.dt = model, dt
        self.weight = gravity_force(model, gravity)
        self.solver = make_solver(
            model.pattern, glue.dofs, name=solver, threads=threads
        )
        self._known = self._right = None

    def step(
        self, skin: SkinState, move: np.ndarray, now: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Displacement of the nodes (N, 3) [m] and forces on the glue (g, 3) [N].

        Args:
            skin: at the frame's start.
            move: du_c of the glue (g, 3) [m].
            now: named where the frame fails [s].

        Raises:
            RuntimeError: for a solution that is not finite, or as from `factor`.
        """
        b = self.factor(skin, now)
        state, g = self.solver.reduce(b)
        du = self.solver.expand(state, move.ravel())
        pull = self.solver.schur @ move.ravel() - g
        if not (np.isfinite(du).all() and np.isfinite(pull).all()):
            raise _failed(now, "the solution is not finite")
        return du.reshape(-1, 3), pull.reshape(-1, 3)

    def factor(self, skin: SkinState, now: float) -> np.ndarray:
        """The frame's right-hand side; its matrix factored, unless it is still.

        Raises:
            RuntimeError: when even the projected matrix cannot be factored.
        """
        # The factors are those of the state they were made from, whichever Context
        # it lies in.
        known = self._known
        if known is not None and all(
            np.array_equal(a, b)
            for a, b in zip(known, (skin.positions, skin.velocities))
        ):
            return self._right
        self._known = None
        for project in (False, True):
            A, b = frame_system(self.model, skin, self.dt, self.weight, project=project)
            try:
                self.solver.factor(A)
            except NoSolution:
                continue
            self._known, self._right = (skin.positions, skin.velocities), b
            return b
        raise _failed(now, "the tangent cannot be factored")

    def check(self, skin: SkinState) -> None:
        """Raises RuntimeError for a skin with a tet turned over."""
        tet, ratio = worst_tet(self.model, skin.positions)
        if not (ratio > 0 or np.isfinite(elastic_energy(self.model, skin.positions))):
            raise _failed(skin.time, f"tet {tet} turned over (det F {ratio:.3g})")


def _failed(time, reason):
    return RuntimeError(
        f"skin's step to {time:g} s failed: {reason}; the exchange with the plant "
        "may be unstable: take a smaller dt, implicit=True or CoupledSkeleton"
    )
