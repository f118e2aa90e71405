"""Bilevel programs of the handbook, as programs with complementarity constraints.

Problems ex9.1.* and ex9.2.* of MacMPEC are from chapter 9 of Floudas et al., Handbook
of Test Problems in Local and Global Optimization, Kluwer, 1999. A follower minimises a
linear or convex quadratic cost in y under rows a'v <= b, so that the leader's program
has, with v = (x, y) and one multiplier k for each row,

    0 <= b - a'v _|_ k >= 0,    d cost/dy + sum k a_y = 0

Here the slacks b - a'v are no variables of their own. The files give no starts: all
variables start at one. Printed optima are those of the collection's table but where a
comment says so. Those that repeat another problem are left out (ex9.1.7, ex9.1.10,
ex9.2.7), and so is one with a binary variable (ex9.1.2).

A module without a command: `scripts/bench/mpcc.py` and tests solve them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca

from published import Published

INF = float("inf")


def _bilevel(
    name: str,
    f: Callable,
    optimum: float,
    num_v: int,
    slacks: Callable,
    zero: Callable,
    *,
    low: float | Sequence[float] = 0.0,
    high: float | Sequence[float] = INF,
    at_least_0: Callable | None = None,
    printed: float = 0.0,
    count: int,
) -> Published:
    """A problem whose functions take v and the multipliers k.

    Args:
        num_v: length of v.
        slacks: b - a'v of v, which complement k.
        zero: stationarity of the follower, of v and k.
        low, high: bounds of v.
        count: number of multipliers.
    """

    def of_v(bound):
        return tuple(bound) if isinstance(bound, Sequence) else (bound,) * num_v

    return Published(
        name,
        lambda z: f(z[:num_v]),
        optimum,
        (1,) * (num_v + count),
        low=(*of_v(low), *(0.0,) * count),
        high=(*of_v(high), *(INF,) * count),
        at_least_0=None if at_least_0 is None else (lambda z: at_least_0(z[:num_v])),
        zero=lambda z: zero(z[:num_v], z[num_v:]),
        pairs=lambda z: list(zip(slacks(z[:num_v]), ca.vertsplit(z[num_v:]))),
        printed=printed,
    )


PROBLEMS = (
    # v = (x, y1, y2). The file's second stationarity has 4 l2 for 4 l1, as it says.
    _bilevel(
        "ex9.1.1",
        lambda v: -v[0] - 3 * v[1] + 2 * v[2],
        -13.0,
        3,
        lambda v: [
            16 + 2 * v[0] - v[1] - 4 * v[2],
            48 - 8 * v[0] - 3 * v[1] + 2 * v[2],
            -12 + 2 * v[0] - v[1] + 3 * v[2],
            v[1],
            4 - v[1],
        ],
        lambda v, k: [
            -1 + k[0] + 3 * k[1] + k[2] - k[3] + k[4],
            4 * k[0] - 2 * k[1] - 3 * k[2],
        ],
        low=(0, -INF, -INF),
        count=5,
    ),
    _bilevel(
        "ex9.1.3",
        lambda v: 4 * v[2] - 40 * v[3] - 4 * v[4] - 8 * v[0] - 4 * v[1],
        -29.2,
        5,
        lambda v: [
            1 + v[2] - v[3] - v[4],
            1 - 2 * v[0] + v[2] - 2 * v[3] + 0.5 * v[4],
            1 - 2 * v[1] - 2 * v[2] + v[3] + 0.5 * v[4],
            v[2],
            v[3],
            v[4],
        ],
        lambda v, k: [
            1 - k[0] - k[1] + 2 * k[2] - k[3],
            1 + k[0] + 2 * k[1] - k[2] - k[4],
            2 + k[0] - 0.5 * k[1] - 0.5 * k[2] - k[5],
        ],
        count=6,
    ),
    _bilevel(
        "ex9.1.4",
        lambda v: v[0] - 4 * v[1],
        -37.0,
        2,
        lambda v: [
            2 * v[0] - v[1],
            108 - 2 * v[0] - 5 * v[1],
            -4 - 2 * v[0] + 3 * v[1],
            v[1],
        ],
        lambda v, k: [1 + k[0] + 5 * k[1] - 3 * k[2] - k[3]],
        count=4,
    ),
    _bilevel(
        "ex9.1.5",
        lambda v: -v[0] + 10 * v[1] - v[2],
        -1.0,
        3,
        lambda v: [1 - v[0] - v[1], 1 - v[0] - v[2], 1 - v[1] - v[2], v[1], v[2]],
        lambda v, k: [-1 + k[0] + k[2] - k[3], -1 + k[1] + k[2] - k[4]],
        count=5,
    ),
    _bilevel(
        "ex9.1.6",
        lambda v: -v[0] - 3 * v[1],
        -49.0,
        2,
        lambda v: [
            -10 + v[0] + 2 * v[1],
            6 - v[0] + 2 * v[1],
            21 - 2 * v[0] + v[1],
            38 - v[0] - 2 * v[1],
            18 + v[0] - 2 * v[1],
            v[1],
        ],
        lambda v, k: [3 - 2 * k[0] - 2 * k[1] - k[2] + 2 * k[3] + 2 * k[4] - k[5]],
        count=6,
    ),
    # v = (x1, x2, y1, y2); only four of the file's five pairs have rows.
    _bilevel(
        "ex9.1.8",
        lambda v: -2 * v[0] + v[1] + 0.5 * v[2],
        -3.25,
        4,
        lambda v: [
            -2.5 + 2 * v[0] - v[2] + v[3],
            2 - v[0] + 3 * v[1] - v[3],
            v[2],
            v[3],
        ],
        lambda v, k: [-4 + k[0] - k[2], 1 + k[0] + k[1] - k[3]],
        at_least_0=lambda v: [2 - v[0] - v[1]],
        count=4,
    ),
    _bilevel(
        "ex9.1.9",
        lambda v: v[0] + v[1],
        28 / 9,
        2,
        lambda v: [
            -2 + v[0] + 0.5 * v[1],
            2 + 0.25 * v[0] - v[1],
            8 - v[0] - 0.5 * v[1],
            2 - v[0] + 2 * v[1],
            v[1],
        ],
        lambda v, k: [-1 - 0.5 * k[0] + k[1] + 0.5 * k[2] - 2 * k[3] - k[4]],
        count=5,
    ),
    _bilevel(
        "ex9.2.1",
        lambda v: (v[0] - 5) ** 2 + (2 * v[1] + 1) ** 2,
        17.0,
        2,
        lambda v: [-3 + 3 * v[0] - v[1], 4 - v[0] + v[1] / 2, 7 - v[0] - v[1], v[1]],
        lambda v, k: [2 * (v[1] - 1) - 1.5 * v[0] + k[0] - k[1] / 2 + k[2] - k[3]],
        count=4,
    ),
    _bilevel(
        "ex9.2.2",
        lambda v: v[0] ** 2 + (v[1] - 10) ** 2,
        100.0,
        2,
        lambda v: [20 - v[0] - v[1], v[1], 20 - v[1]],
        lambda v, k: [2 * (v[0] + 2 * v[1] - 30) + k[0] - k[1] + k[2]],
        high=(15, INF),
        at_least_0=lambda v: [v[0] - v[1]],
        count=3,
    ),
    _bilevel(
        "ex9.2.3",
        lambda v: 2 * v[0] + 2 * v[1] - 3 * v[2] - 3 * v[3] - 60,
        -55.0,
        4,
        lambda v: [
            -10 + v[0] - 2 * v[2],
            -10 + v[1] - 2 * v[3],
            10 + v[2],
            20 - v[2],
            10 + v[3],
            20 - v[3],
        ],
        lambda v, k: [
            2 * (v[2] - v[0] + 20) + 2 * k[0] - k[2] + k[3],
            2 * (v[3] - v[1] + 20) + 2 * k[1] - k[4] + k[5],
        ],
        low=(1, 1, -8, -8),
        high=(50, 50, INF, INF),
        at_least_0=lambda v: [40 - v[0] - v[1] - v[2] + 2 * v[3]],
        count=6,
    ),
    # v = (x, y1, y2, multiplier of y1 + y2 = x).
    _bilevel(
        "ex9.2.4",
        lambda v: (v[1] - 2) ** 2 / 2 + (v[2] - 2) ** 2 / 2,
        0.5,
        4,
        lambda v: [v[1], v[2]],
        lambda v, k: [v[1] + v[2] - v[0], v[1] + v[3] - k[0], 1 + v[3] - k[1]],
        low=(0, 0, 0, -INF),
        count=2,
    ),
    # The handbook's optimum, at (1, 3); the collection's table has 6.
    _bilevel(
        "ex9.2.5",
        lambda v: (v[0] - 3) ** 2 + (v[1] - 2) ** 2,
        5.0,
        2,
        lambda v: [
            1 + 2 * v[0] - v[1],
            2 - v[0] + 2 * v[1],
            14 - v[0] - 2 * v[1],
        ],
        lambda v, k: [2 * (v[1] - 5) + k[0] - 2 * k[1] + 2 * k[2]],
        low=(0, -INF),
        high=(8, INF),
        count=3,
    ),
    _bilevel(
        "ex9.2.6",
        lambda v: v[0] ** 2 - 2 * v[0] + v[1] ** 2 - 2 * v[1] + v[2] ** 2 + v[3] ** 2,
        -1.0,
        4,
        lambda v: [v[2] - 0.5, v[3] - 0.5, 1.5 - v[2], 1.5 - v[3]],
        lambda v, k: [
            2 * (v[2] - v[0]) - k[0] + k[2],
            2 * (v[3] - v[1]) - k[1] + k[3],
        ],
        count=4,
    ),
    _bilevel(
        "ex9.2.8",
        lambda v: -4 * v[0] * v[1] + 3 * v[1] + 2 * v[0] + 1,
        1.5,
        2,
        lambda v: [v[1], 1 - v[1]],
        lambda v, k: [-(1 - 4 * v[0]) - k[0] + k[1]],
        high=(1, INF),
        count=2,
    ),
    _bilevel(
        "ex9.2.9",
        lambda v: v[0] + v[2],
        2.0,
        3,
        lambda v: [-4 - v[0] + v[1] + v[2], v[1], v[2]],
        lambda v, k: [2 - k[0] - k[1], v[0] - k[0] - k[2]],
        low=(2, 0, 0),
        high=(4, INF, INF),
        count=3,
    ),
)
