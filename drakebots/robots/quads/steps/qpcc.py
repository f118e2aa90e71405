"""The quadratic program with complementarity constraints (QPCC) of a step, eq. (12).

It is solved by the contact flips of section 5.3. If every patch has a label, the piece
of its complementarity, a QP in the torques alone remains
(:mod:`~drakebots.robots.quads.steps.labelled_qp`). The labels are found as follows:

1. All scheduled contacts are held (18); their forces are labelled by (19).
2. The QP of these labels is solved. Where a multiplier shows that crossing an active
   inequality would lower the energy, the patch flips to the piece on the other side;
   all such patches flip at once, as long as the energy decreases.
3. Then patches flip one at a time, largest multiplier first. When no flip lowers the
   energy, the best point is a local optimum over neighbouring pieces.

If the QP of the first labels has no solution, they are replaced by those of a
simulation of the contacts under the torques of (18), for which the QP is feasible. If
flips remain that do not lower the energy, the search restarts once from those labels.

If the search finds no point with the COP inside, there may still be one: (18) holds all
scheduled contacts at once, also those that hover, which may take more torque than there
is. So the search is repeated without the rows of the COP, which then return for the
labels that it ends with. They are dropped only if there is no solution with them there
either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drakebots.core.errors import NoSolution
from drakebots.robots.quads.steps.contact_state import (
    FREE,
    STICK,
    label,
    residual,
)
from drakebots.robots.quads.steps.labelled_qp import LabelledQp, QpPoint, StepQpcc

COP = ("drop", "require", "ignore")
"""Rows of a COP that cannot lie inside: dropped, a failure, or never included."""

MAX_ITERATIONS = 10


@dataclass(frozen=True)
class QpccIterate:
    """One QP of the search.

    Attributes:
        what: "held" (18), "labels", "flips", "one flip" or "simulated labels".
        energy: value of the objective; infinite without a solution.
        labels: piece of each patch (P,).
    """

    what: str
    energy: float
    labels: np.ndarray


@dataclass(frozen=True)
class QpccSolution:
    """The best consistent point of a step.

    Attributes:
        torques: joint torques (m,) [N m].
        forces: forces on the patches (P, 3) [N].
        y: displacement of the patches from their anchors (P, 3) [m].
        labels: piece of each patch (P,), numbers of contact_state.NAMES.
        energy, terms: value of the objective and of its terms.
        iterates: all QPs in order.
        violation: largest violation of the complementarity of each patch (P,) [N].
        dropped: names of the rows that were dropped: "cop".
        ok: whether the solution can be used.
        message: one line on how the search ended.
    """

    torques: np.ndarray
    forces: np.ndarray
    y: np.ndarray
    labels: np.ndarray
    energy: float
    terms: dict[str, float]
    iterates: tuple[QpccIterate, ...]
    violation: np.ndarray
    dropped: tuple[str, ...]
    ok: bool
    message: str

    @classmethod
    def of(
        cls, qpcc: StepQpcc, point: QpPoint, labels: np.ndarray, iterates=(), **how
    ) -> QpccSolution:
        """The solution that a point of given labels is; `how` are `dropped`, `ok` and
        `message`."""
        near, worst = qpcc.near, np.zeros(len(qpcc.near))
        y = point.y[near] / qpcc.compliance
        worst[near] = residual(point.forces[near], y, qpcc.friction)
        w = np.concatenate([point.torques, point.forces.ravel()])
        return cls(
            *(point.torques, point.forces, point.y, labels, point.energy),
            *(qpcc.objective.by_term(w), tuple(iterates), worst),
            **how,
        )

    def require(self) -> QpccSolution:
        """The solution itself if it can be used.

        Raises:
            NoSolution: otherwise.
        """
        if not self.ok:
            raise NoSolution(self.message)
        return self

    @property
    def residual(self) -> float:
        """Largest violation of the complementarity [N]."""
        return float(self.violation.max(initial=0.0))

    @property
    def w(self) -> np.ndarray:
        """[torques, forces]."""
        return np.concatenate([self.torques, self.forces.ravel()])


def solve_qpcc(
    qpcc: StepQpcc,
    *,
    max_iterations: int = MAX_ITERATIONS,
    cop: str = "drop",
    start: np.ndarray | None = None,
    engine: LabelledQp | None = None,
) -> QpccSolution:
    """Solves eq. (12) by flips.

    Args:
        qpcc: the QPCC.
        max_iterations: largest number of QPs, >= 2; the paper stops after 10.
        cop: one of COP.
        start: torques to start the first QP from (m,) [N m].
        engine: solver of the labelled QPs; the condensed one by default.

    Returns:
        The best consistent point; if there is none, `ok` is false and the message
        names the worst rows.
    """
    engine = LabelledQp(qpcc) if engine is None else engine
    search = _Search(engine, max_iterations, cop != "ignore")
    search.run(start)
    if search.best is None and search.cop and cop == "drop":
        kept = search.iterates
        search = _Search(engine, max(2, max_iterations - len(kept)), False)
        search.run(start)
        search.iterates = kept + search.iterates
        search.return_cop()
    return search.report()


class _Search:
    """One search over the labels of a step.

    Args:
        qp: solver of the QP of given labels.
        budget: largest number of QPs.
        cop: whether the QPs have the rows of the COP.

    Attributes:
        iterates: all QPs so far.
        best: the consistent point of lowest energy, and its labels.
        tried: labels that were tried.
        end: why the search ended.
    """

    def __init__(self, qp: LabelledQp, budget: int, cop: bool):
        self.qp, self.budget, self.cop = qp, budget, cop and len(qp.qpcc.cop) > 0
        self.iterates: list[QpccIterate] = []
        self.best: tuple[QpPoint, np.ndarray] | None = None
        self.last: QpPoint | None = None
        self.tried: set[bytes] = set()
        self.end, self.dropped = "iteration limit reached", ()

    def _try(self, what, labels, start=None, rows=True) -> QpPoint | None:
        """Solves the QP of labels and notes it; None if it has no solution."""
        if rows:
            self.tried.add(labels.tobytes())
        point = self.qp.solve(labels, rows=rows, cop=self.cop, start=start)
        energy = np.inf if point is None else point.energy
        self.iterates.append(QpccIterate(what, energy, labels.copy()))
        if point is not None:
            self.last = point
        return point

    def run(self, start: np.ndarray | None) -> None:
        """Searches; `start` are torques to start the first QP from (m,) [N m]."""
        qpcc = self.qp.qpcc
        labels = np.where(qpcc.near & qpcc.scheduled, STICK, FREE)
        held = self._try("held", labels, start, rows=False)
        if held is None:
            self.end = "no torques within the limits hold the COP inside"
            return
        labels = np.where(labels == STICK, label(held.forces, qpcc.friction), FREE)
        point = self._better("labels", labels, held.torques)
        if point is None:
            labels = self._simulated(held.torques, start)
            if labels is None:
                return
            point = self._better("simulated labels", labels, held.torques)
        self._all_at_once(point)
        self._one_at_a_time()
        # Restart from the contacts that the torques of (18) lead to.
        simulated = any(one.what == "simulated labels" for one in self.iterates)
        if self.best is not None and self.best[0].flips and not simulated:
            self._again(held)

    def _simulated(self, held, last) -> np.ndarray | None:
        """Labels of the contacts under the torques of the held contacts.

        The contact sweeps may cycle there. Any torques whose contacts settle give
        labels with a feasible QP, so smaller torques are tried in turn.
        """
        last = np.zeros_like(held) if last is None else last
        for torques in (held, (held + last) / 2, last, last / 2, 0 * last):
            try:
                return self.qp.simulated(torques)
            except NoSolution as error:
                self.end = str(error)
        return None

    def _again(self, held: QpPoint) -> None:
        """Searches once more, from the labels of a simulation."""
        if not self._left():
            return
        try:
            labels = self.qp.simulated(held.torques)
        except NoSolution:
            return
        if labels.tobytes() not in self.tried:
            point = self._better("simulated labels", labels, held.torques)
            if point is not None:
                self._all_at_once(point)
                self._one_at_a_time()

    def _all_at_once(self, point: QpPoint | None) -> None:
        """Flips all patches that the multipliers name, while the energy falls."""
        while point is not None and point.flips and self._left():
            labels = self.best[1].copy()
            # The largest multiplier of a patch, the first of its flips, counts.
            chosen = {i: other for _, i, other in reversed(point.flips)}
            labels[list(chosen)] = list(chosen.values())
            if labels.tobytes() in self.tried:
                break
            what = "flips" if len(chosen) > 1 else "one flip"
            point = self._better(what, labels, self.best[0].torques)

    def _one_at_a_time(self) -> None:
        """Flips one patch at a time, until no flip lowers the energy."""
        while self.best is not None:
            point, labels = self.best
            for _, i, other in point.flips:
                flipped = labels.copy()
                flipped[i] = other
                if flipped.tobytes() in self.tried:
                    continue
                if not self._left():
                    return
                if self._better("one flip", flipped, point.torques) is not None:
                    break
            else:
                self.end = "no flip lowers the energy"
                return

    def _better(self, what, labels, start) -> QpPoint | None:
        """Solves the QP of labels; returns and keeps it if it is the best so far."""
        point = self._try(what, labels, start)
        if point is None:
            return None
        if self.best is None or point.energy < self.best[0].energy * (1 - 1e-12):
            self.best = point, labels.copy()
            return point
        return None

    def return_cop(self) -> None:
        """Solves the best labels, found without the rows of the COP, with them.

        If that has no solution, the rows are dropped.
        """
        self.dropped = ("cop",)
        if self.best is None:
            return
        (point, labels), self.cop = self.best, True
        self.best = None
        if self._better("labels", labels, point.torques) is None:
            self.best = point, labels
        else:
            self.dropped = ()

    def _left(self) -> bool:
        return len(self.iterates) < self.budget

    def report(self) -> QpccSolution:
        """The best point, or the last one of a failed search, with a message."""
        qpcc = self.qp.qpcc
        point, labels = self.best or (self.last, self.iterates[-1].labels)
        if point is None:
            m, P = self.qp.m, self.qp.P
            flat = np.zeros((P, 3))
            point = QpPoint(np.zeros(m), flat, qpcc.y0.reshape(-1, 3), np.inf)
        ok, message = self.best is not None, self.end
        if self.dropped:
            message += "; the COP rows were dropped"
        how = {"dropped": self.dropped, "ok": ok, "message": message}
        found = QpccSolution.of(qpcc, point, labels, self.iterates, **how)
        if ok:
            return found
        outside = -(qpcc.cop @ found.forces.ravel()).min(initial=0.0)
        message = (
            f"step failed: {self.end}; worst: complementarity of patch "
            f"{int(np.argmax(found.violation))} = {found.residual:.3g} N, COP "
            f"{outside:.3g} N m; try cop='drop', higher torque limits or another pose"
        )
        return replace(found, message=message)
