"""Cost of derivatives: the CasADi twin beside Drake's AutoDiffXd, on HAMR.

python scripts/bench/derivatives.py
python scripts/bench/derivatives.py --quick

Both compute the Jacobian of one discrete Euler-Lagrange row of a variational
integrator (HAMR, 38 coordinates, mm, g, ms; the row of one knot),

    r = h1/2 D1L(m1) + D2L(m1) + h2/2 D1L(m2) - D2L(m2)
    m1 = ((q0 + q1)/2, (q1 - q0)/h1),  m2 = ((q1 + q2)/2, (q2 - q1)/h2)

by q0, q1, q2, h1, h2: 38 x 116. The twin's is one CasADi function,
interpreted and compiled, four at once. AutoDiffXd has first derivatives only,
so that side is put together from the fewest calls of Drake that we know of. With
p = M(q) v and q' = v, Lagrange's equations without acceleration give

    D2L = p,      D1L = (dp/dq) v - b(q, v),      b = C(q, v) v - tau(q)

where tau are gravity and springs. At each midpoint

    dp/dq                    one inverse dynamics with vdot = v, v = 0 (38 partials)
    b, db/dq, db/dv          one inverse dynamics with vdot = 0 (76 partials), less
                             the joints' damping, which is linear
    d/dq and d/dv of         central differences along v, as the HAMR authors did:
    (dp/dq) v                dp/dq at q +- e v (two calls of 38 partials) and
                             M(q +- e v) in doubles

and the chain rule takes these to q0, q1, q2, h1, h2. Both Jacobians must agree
to 1e-6 before any time is taken.

Solvers call CasADi from C++, so the twin is timed without Python, many
evaluations in one call; of AutoDiffXd only the time inside Drake's own dynamics
calls counts. The times of one call from Python, all included, are printed too.

JSON: twin_vs_autodiff_ratio, interpreted_vs_autodiff_ratio, autodiff_ms,
interpreted_ms.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np
from measurement import Measurement, figure
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.multibody.tree import MultibodyForces_

from drakebots import build_robot, load
from drakebots.cli.output import print_table
from drakebots.core.units import MM_G_MS
from drakebots.multibody import Twin
from drakebots.trajopt.program import compiled, many

TARGET = 50.0
AGREEMENT = 1e-6
STEP = 1e-4
"""Of the central differences, in positions (mm, rad) for the largest entry of v."""


def twin_row_jacobian(twin: Twin) -> ca.Function:
    """(q0, q1, q2, h1, h2) -> dr/d(q0, q1, q2, h1, h2), sparse."""
    n = twin.nq
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    L = twin.lagrangian(q, v)
    slopes = ca.Function("slopes", [q, v], [ca.gradient(L, q), ca.gradient(L, v)])
    q0, q1, q2 = (ca.SX.sym(f"q{k}", n) for k in range(3))
    h1, h2 = ca.SX.sym("h1"), ca.SX.sym("h2")
    D1, D2 = slopes((q0 + q1) / 2, (q1 - q0) / h1)
    E1, E2 = slopes((q1 + q2) / 2, (q2 - q1) / h2)
    row = h1 / 2 * D1 + D2 + h2 / 2 * E1 - E2
    x = [q0, q1, q2, h1, h2]
    return ca.Function("row_jacobian", x, [ca.jacobian(row, ca.vertcat(*x))])


class AutoDiffRow:
    """The same Jacobian from Drake's plants; see the top of this file.

    Args:
        plant: finalized, in doubles.
        damping: of the joints (nv,).
        slowest: speed below which the differences' step stops to grow.
    """

    def __init__(self, plant, damping: np.ndarray, slowest: float = 0.0):
        self.plant, self.context = plant, plant.CreateDefaultContext()
        self.smooth = plant.ToAutoDiffXd()
        self.smooth_context = self.smooth.CreateDefaultContext()
        scalar = type(InitializeAutoDiff(np.zeros(1))[0, 0])
        self.applied = MultibodyForces_[scalar](self.smooth)
        self.none = MultibodyForces_[scalar](self.smooth)
        self.damping, self.slowest = damping, slowest
        self.rest = np.zeros(plant.num_velocities())
        self.inside = 0.0  # seconds in Drake's dynamics so far

    def _inverse_dynamics(self, vdot, forces=None):
        start = time.perf_counter()
        if forces is None:
            forces = self.none
        else:
            self.smooth.CalcForceElementsContribution(self.smooth_context, forces)
        tau = self.smooth.CalcInverseDynamics(self.smooth_context, vdot, forces)
        self.inside += time.perf_counter() - start
        return tau.reshape(-1, 1)

    def momentum_slope(self, q, v) -> np.ndarray:
        """dp/dq of p = M(q) v."""
        smooth, context = self.smooth, self.smooth_context
        smooth.SetPositions(context, InitializeAutoDiff(q).ravel())
        smooth.SetVelocities(context, self.rest)
        return ExtractGradient(self._inverse_dynamics(v))

    def bias(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """b (n,) and db/d(q, v) (n, 2n)."""
        smooth, context, n = self.smooth, self.smooth_context, len(q)
        smooth.SetPositionsAndVelocities(
            context, InitializeAutoDiff(np.r_[q, v]).ravel()
        )
        b = self._inverse_dynamics(self.rest, self.applied)
        slope = ExtractGradient(b)
        slope[np.arange(n), n + np.arange(n)] -= self.damping
        return ExtractValue(b).ravel() - self.damping * v, slope

    def mass(self, q) -> np.ndarray:
        self.plant.SetPositions(self.context, q)
        return self.plant.CalcMassMatrix(self.context)

    def midpoint(self, q, v):
        """D1L (n,), and d(D1L)/d(q, v), d(D2L)/d(q, v), both (n, 2n)."""
        e = STEP / max(np.abs(v).max(), self.slowest)
        P = self.momentum_slope(q, v)
        b, db = self.bias(q, v)
        ahead, behind = q + e * v, q - e * v
        dP = self.momentum_slope(ahead, v) - self.momentum_slope(behind, v)
        dM = self.mass(ahead) - self.mass(behind)
        slope = np.hstack([dP / (2 * e), P + dM / (2 * e)]) - db
        return P @ v - b, slope, np.hstack([P, self.mass(q)])

    def __call__(self, q0, q1, q2, h1, h2) -> np.ndarray:
        n = len(q0)
        J = np.zeros((n, 3 * n + 2))
        halves = [(q0, q1, h1, 0, 1.0), (q1, q2, h2, n, -1.0)]
        for half, (a, b, h, start, sign) in enumerate(halves):
            v = (b - a) / h
            D1, S1, S2 = self.midpoint((a + b) / 2, v)
            S = h / 2 * S1 + sign * S2
            by_q, by_v = S[:, :n] / 2, S[:, n:] / h
            J[:, start : start + n] += by_q - by_v
            J[:, start + n : start + 2 * n] += by_q + by_v
            J[:, 3 * n + half] = D1 / 2 - S[:, n:] @ v / h
        return J


def milliseconds(function: Callable, inputs, calls: int) -> float:
    """Wall time of one call, the mean of `calls`."""
    start = time.perf_counter()
    for _ in range(calls):
        function(*inputs)
    return (time.perf_counter() - start) / calls * 1e3


def disagreement(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference in units of its column's and its row's size."""
    size = np.minimum(
        np.abs(theirs).max(axis=0, keepdims=True),
        np.abs(theirs).max(axis=1, keepdims=True),
    )
    return float((np.abs(ours - theirs) / size).max())


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="one short round")
    args = parser.parse_args(argv)
    rounds, calls = (1, 5) if args.quick else (7, 20)
    plant = build_robot(load("hamr"), scaling=MM_G_MS, base="euler", time_step=0).plant
    start = time.perf_counter()
    twin = Twin(plant)
    interpreted = twin_row_jacobian(twin)
    build_s = time.perf_counter() - start
    drake = AutoDiffRow(plant, twin.joint_damping())
    rng = np.random.default_rng(0)
    q0 = rng.uniform(-0.2, 0.2, twin.nq)
    q1, q2 = q0 + rng.uniform(-0.1, 0.1, (2, twin.nq))
    inputs = (q0, q1, q2, 2.0, 1.7)

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        start = time.perf_counter()
        (machine,) = compiled([interpreted], ["bench"])
        compile_s = time.perf_counter() - start
        theirs = drake(*inputs)
        twins = {"interpreted": interpreted}
        twins |= {"compiled": machine} if machine is not interpreted else {}
        error = max(disagreement(np.array(f(*inputs)), theirs) for f in twins.values())
        if not error <= AGREEMENT:
            raise SystemExit(f"the Jacobians differ by {error:.2g}; no times taken")
        times = {name: [] for name in ("autodiff", *twins)}
        called = {name: [] for name in times}
        for _ in range(rounds):
            drake.inside = 0.0
            called["autodiff"].append(milliseconds(drake, inputs, calls))
            times["autodiff"].append(drake.inside / calls * 1e3)
            for name, function in twins.items():
                called[name].append(milliseconds(function, inputs, calls))
                times[name].append(_without_python(function, inputs, 20 * calls))

    ms, called = (
        {name: statistics.median(t) for name, t in table.items()}
        for table in (times, called)
    )
    rows, result = {}, {}
    for name in twins:
        ratio = ms["autodiff"] / ms[name]
        rows[f"AutoDiffXd over twin, {name}"] = ratio
        rows[f"  from Python, {name}"] = called["autodiff"] / called[name]
        # The last twin is the best one there is.
        result["twin_vs_autodiff_ratio"] = figure(ratio, "1", TARGET)
        result[f"{name}_vs_autodiff_ratio"] = figure(ratio)
    for name, value in ms.items():
        rows[f"{name} [ms]"] = value
        rows[f"  {name} from Python [ms]"] = called[name]
        result[f"{name}_ms"] = figure(value, "ms")
    rows["largest difference of the Jacobians"] = error
    rows["building the expressions [s]"] = build_s
    if "compiled" in twins:
        rows["compiling, once [s]"] = compile_s
        result["compile_s"] = figure(compile_s, "s")
    print_table(f"HAMR, one 38 x 116 Jacobian, median of {rounds}", rows)
    return parser.report(result)


def _without_python(function: ca.Function, inputs, calls: int) -> float:
    columns = [np.tile(np.reshape(x, (-1, 1)), calls) for x in inputs]
    return milliseconds(many(function, calls), columns, 1) / calls


if __name__ == "__main__":
    main()
