"""The QP with complementarity constraints of a frame, eq. (12), by contact flips.

The flips of section 5.3, each a QP in the torques alone
(:mod:`~drakebots.robots.quads.frames.labelled_qp`):

1. all scheduled contacts held (18), their forces labelled by (19);
2. the QP of these labels; rows at their bound with a multiplier that asks to cross
   are flipped to the piece behind, all at once, as long as the energy falls;
3. then one at a time, largest multiplier first. When no flip lowers the energy, the
   best is a local optimum over neighbouring pieces.

Labels whose QP has no solution are replaced by those of a simulation: the contacts
under the torques of (18), which then are feasible. Where flips are left that do not
pay, the search starts once more from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.robots.quads.frames.contact_state import (
    FREE,
    NAMES,
    STICK,
    label,
    residual,
)
from drakebots.robots.quads.frames.labelled_qp import FrameQpcc, LabelledQp, QpPoint

COP = ("drop", "require", "ignore")
"""When the COP cannot lie inside: go on without its rows, fail, or never ask."""
MAX_ITERATIONS = 10


@dataclass(frozen=True)
class QpccIterate:
    """One QP.

    Attributes:
        what: "held" (18), "labels", "flips", "one flip" or "simulated labels".
        energy: E; infinite without a solution.
        labels: pieces (P,).
        consistent: whether it satisfies the complementarity.
    """

    what: str
    energy: float
    labels: np.ndarray
    consistent: bool


@dataclass(frozen=True)
class QpccSolution:
    """The best consistent point of a frame.

    Attributes:
        torques: (m,) [N m].
        forces: on the feet (P, 3) [N].
        y: displacement of the patches' anchors (P, 3) [m].
        labels: pieces (P,), numbers of contact_state.NAMES.
        energy, terms: E and its terms.
        iterates: every QP, in order.
        residual: worst violation of the complementarity [N].
        dropped: rows given up: "cop".
        ok: whether it may be used.
        message: one line.
    """

    torques: np.ndarray
    forces: np.ndarray
    y: np.ndarray
    labels: np.ndarray
    energy: float
    terms: dict[str, float]
    iterates: tuple[QpccIterate, ...]
    residual: float
    dropped: tuple[str, ...]
    ok: bool
    message: str

    @property
    def w(self) -> np.ndarray:
        """[torques, forces]."""
        return np.concatenate([self.torques, self.forces.ravel()])

    @property
    def labelled(self) -> tuple[str, ...]:
        """Names of the pieces."""
        return tuple(NAMES[k] for k in self.labels)


def solve_qpcc(
    frame: FrameQpcc,
    *,
    max_iterations: int = MAX_ITERATIONS,
    cop: str = "drop",
    start: np.ndarray | None = None,
    engine: LabelledQp | None = None,
) -> QpccSolution:
    """Solves eq. (12) by flips.

    Args:
        frame: to solve.
        max_iterations: QPs at most; the paper stops after 10.
        cop: one of COP.
        start: torques to start the first QP from (m,) [N m].
        engine: solves the QPs of labels; the condensed one by default.

    Returns:
        The best consistent point; `ok` is false and the message names the worst
        rows when there is none.

    Raises:
        UnknownName: for a cop that does not exist.
        InvalidInput: for max_iterations < 2.
    """
    if cop not in COP:
        raise UnknownName("treatment of the COP", cop, COP)
    if max_iterations < 2:
        raise InvalidInput(f"QPCC iterations = {max_iterations}: needs 2 or more")
    engine = LabelledQp(frame) if engine is None else engine
    search = _Search(engine, max_iterations, cop != "ignore")
    search.run(start)
    if search.best is None and search.cop and cop == "drop":
        kept = search.iterates
        search = _Search(engine, max(2, max_iterations - len(kept)), False)
        search.run(start)
        search.iterates = kept + search.iterates
        search.dropped = ("cop",)
    return search.report(cop)


class _Search:
    def __init__(self, qp: LabelledQp, budget: int, cop: bool):
        self.qp, self.budget, self.cop = qp, budget, cop and len(qp.frame.cop) > 0
        self.iterates: list[QpccIterate] = []
        self.best: tuple[QpPoint, np.ndarray] | None = None
        self.last: QpPoint | None = None
        self.seen: set[bytes] = set()
        self.end, self.dropped = "iterations used up", ()

    def _try(self, what, labels, start=None, rows=True) -> QpPoint | None:
        if rows:
            self.seen.add(labels.tobytes())
        point = self.qp.solve(labels, rows=rows, cop=self.cop, start=start)
        energy = np.inf if point is None else point.energy
        consistent = rows and point is not None
        self.iterates.append(QpccIterate(what, energy, labels.copy(), consistent))
        if point is not None:
            self.last = point
        return point

    def run(self, start):
        frame = self.qp.frame
        labels = np.where(frame.near & frame.scheduled, STICK, FREE)
        held = self._try("held", labels, start, rows=False)
        if held is None:
            self.end = "no torques within the limits hold the COP inside"
            return
        marked = label(held.forces, frame.friction)
        labels = np.where(labels == STICK, marked, FREE)
        point = self._better("labels", labels, held.torques)
        if point is None:
            labels = self._simulated(held.torques, start)
            if labels is None:
                return
            point = self._better("simulated labels", labels, held.torques)
        self._all_at_once(point)
        self._one_at_a_time()
        # Once more, from where the torques of the held contacts would lead.
        simulated = any(one.what == "simulated labels" for one in self.iterates)
        if self.best is not None and self.best[0].flips and not simulated:
            self._again(held)

    def _simulated(self, held, last) -> np.ndarray | None:
        """Labels of contacts under the held contacts' torques.

        Sweeps may cycle there; any torques whose contacts settle give labels whose
        QP has a solution, so others follow, nearer and nearer to none.
        """
        last = np.zeros_like(held) if last is None else last
        for torques in (held, (held + last) / 2, last, last / 2, 0 * last):
            try:
                return self.qp.simulated(torques)
            except NoSolution as error:
                self.end = str(error)
        return None

    def _again(self, held):
        if not self._left():
            return
        try:
            labels = self.qp.simulated(held.torques)
        except NoSolution:
            return
        if labels.tobytes() not in self.seen:
            point = self._better("simulated labels", labels, held.torques)
            if point is not None:
                self._all_at_once(point)
                self._one_at_a_time()

    def _all_at_once(self, point):
        while point is not None and point.flips and self._left():
            # All flips that the multipliers ask for; a patch once.
            labels = self.best[1].copy()
            done = set()
            for _, i, other in point.flips:
                if i not in done:
                    labels[i] = other
                    done.add(i)
            if labels.tobytes() in self.seen:
                break
            what = "flips" if len(done) > 1 else "one flip"
            point = self._better(what, labels, self.best[0].torques)

    def _one_at_a_time(self):
        while self.best is not None:
            point, labels = self.best
            for _, i, other in point.flips:
                flipped = labels.copy()
                flipped[i] = other
                if flipped.tobytes() in self.seen:
                    continue
                if not self._left():
                    return
                if self._better("one flip", flipped, point.torques) is not None:
                    break
            else:
                self.end = "no flip lowers the energy"
                return

    def _better(self, what, labels, start) -> QpPoint | None:
        """The point, kept, when it is better than the best."""
        point = self._try(what, labels, start)
        if point is None:
            return None
        if self.best is None or point.energy < self.best[0].energy * (1 - 1e-12):
            self.best = point, labels.copy()
            return point
        return None

    def _left(self) -> bool:
        return len(self.iterates) < self.budget

    def report(self, cop) -> QpccSolution:
        frame = self.qp.frame
        point, labels = self.best or (self.last, self.iterates[-1].labels)
        if point is None:
            m, P = self.qp.m, self.qp.P
            flat = np.zeros((P, 3))
            point = QpPoint(np.zeros(m), flat, frame.y0.reshape(-1, 3), np.inf, [])
        w = np.concatenate([point.torques, point.forces.ravel()])
        worst = np.zeros(self.qp.P)
        worst[frame.near] = residual(
            point.forces[frame.near],
            point.y[frame.near] / frame.compliance,
            frame.friction,
        )
        ok = self.best is not None
        message = self.end
        if self.dropped:
            message += "; the COP is not held inside its polygon"
        if not ok:
            outside = -(frame.cop @ w[self.qp.m :]).min(initial=0.0)
            message = (
                f"frame failed: {self.end}; worst: complementarity of patch "
                f"{int(np.argmax(worst))} = {worst.max(initial=0.0):.3g} N, COP "
                f"{outside:.3g} N m; try cop='drop', more torque or another pose"
            )
        return QpccSolution(
            point.torques,
            point.forces,
            point.y,
            labels,
            point.energy,
            frame.objective.by_term(w),
            tuple(self.iterates),
            float(worst.max(initial=0.0)),
            self.dropped,
            ok,
            message,
        )
