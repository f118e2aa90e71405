"""Which precision the frames of a stepper are solved in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.errors import NoSolution, UnknownName
from drakebots.fem.assembly import FemModel
from drakebots.fem.linear_solver import PRECISIONS
from drakebots.skin.coupled import (
    CoupledFrame,
    FrameSolution,
    ReducedSystem,
    skin_solver,
)
from drakebots.skin.driven import Drive, feet
from drakebots.skin.glue import Glue
from drakebots.skin.laws import whole_frame
from drakebots.skin.refine import refined

SINGLE_FROM = 2000
"""Nodes of a skin from which single precision is the faster."""

SLOW_FRAMES = 20
"""Frames in double precision after one that could not be refined."""

EXACT, REFINED = "one linear solve", "one linear solve, refined"


@dataclass(frozen=True)
class SolvedFrame:
    """A frame's solution, the ground's forces on patches (k, 3) [N], and how."""

    solution: FrameSolution
    feet: np.ndarray
    note: str


class FrameSolver:
    """Solves the frames of one skin.

    Args:
        model, glue, contacts: as :func:`~drakebots.skin.coupled.skin_solver`.
        precision: "double"; "single": factors in float32 and answers refined to 1e-10
            (:mod:`drakebots.skin.refine`), in double where that fails and for
            SLOW_FRAMES frames from there; "auto": single from SINGLE_FROM nodes on.
            Without PARDISO all is double.
        options: for :func:`~drakebots.fem.linear_solver.make_solver`.

    Attributes:
        exact: solver in double precision; frames in single leave it alone.

    Raises:
        UnknownName: for another precision or solver.
    """

    def __init__(
        self,
        model: FemModel,
        glue: Glue,
        contacts: np.ndarray = (),
        precision: str = "auto",
        **options,
    ):
        if precision not in ("auto", *PRECISIONS):
            raise UnknownName("precision", precision, ("auto", *PRECISIONS))
        if precision == "auto":
            precision = "single" if len(model.rest) >= SINGLE_FROM else "double"
        self.exact = skin_solver(model, glue, contacts, **options)
        quick = skin_solver(model, glue, contacts, precision=precision, **options)
        self._quick, self._slow = None if quick.exact else quick, 0

    def solve(
        self, frame: CoupledFrame, drive: Drive, forces: np.ndarray | None = None
    ) -> SolvedFrame:
        """One frame, driven, with forces at the contacts (p, 3) [N].

        Raises:
            NoSolution: when it has none in double precision either.
        """
        if self._quick is not None and not self._slow:
            try:
                done = refined(ReducedSystem(frame, self._quick), drive, forces)
                found = done.solution
                return SolvedFrame(found, feet(done.ground, found.dq), REFINED)
            except NoSolution:
                # The next frames are likely to be as hard.
                self._slow = SLOW_FRAMES
        self._slow = max(self._slow - 1, 0)
        system = ReducedSystem(frame, self.exact)
        z, ground = drive.solve(system, drive.right_side(system, forces))
        found = whole_frame(system, z)
        return SolvedFrame(found, feet(ground, found.dq), EXACT)
