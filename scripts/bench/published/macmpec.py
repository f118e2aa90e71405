"""Mathematical programs with complementarity constraints from MacMPEC.

The collection of S. Leyffer (https://wiki.mcs.anl.gov/leyffer/index.php/MacMPEC), with
the sources that it names. Values are exact where a problem is solved by hand, else its
printed ones with `printed` half a unit of their last digit. The start is the
collection's, or ones where it gives none, unless a comment says so.

NOT_STATIONARY has the answers that no multipliers support: there no penalty is exact,
and the program's optimum lies a known distance below the problem's.

A module without a command: `scripts/bench/mpcc.py` and tests solve them.
"""

from __future__ import annotations

import casadi as ca

from published import Published

INF = float("inf")


def _bard1(x: ca.SX) -> list[ca.SX]:
    """Stationarity of min_y (y - 1)^2 - 1.5 x y under three linear rows."""
    return [2 * (x[1] - 1) - 1.5 * x[0] + x[2] - 0.5 * x[3] + x[4]]


def _bilevel1(z: ca.SX) -> list[ca.SX]:
    x, y, k = z[:2], z[2:4], z[4:]
    return [
        2 * y[0] - 2 * x[0] + 40 - (k[0] - k[1] - 2 * k[4]),
        2 * y[1] - 2 * x[1] + 40 - (k[2] - k[3] - 2 * k[5]),
    ]


def _bilevel1_pairs(z: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    x, y, k = z[:2], z[2:4], z[4:]
    return [
        (y[0] + 10, k[0]),
        (20 - y[0], k[1]),
        (y[1] + 10, k[2]),
        (20 - y[1], k[3]),
        (x[0] - 2 * y[0] - 10, k[4]),
        (x[1] - 2 * y[1] - 10, k[5]),
    ]


def _bard3_pairs(z: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    x1, x2, y1, y2, l1, l2 = ca.vertsplit(z)
    return [
        (x1**2 - 2 * x1 + x2**2 - 2 * y1 + y2 + 3, l1),
        (x2 + 3 * y1 - 4 * y2 - 4, l2),
    ]


def _outrata_pairs(z: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    """Outrata, SIAM J. Optim. 4(2), 340 ff., 1994; z = (x1 .. x4, y)."""
    x1, x2, x3, x4, y = ca.vertsplit(z)
    return [
        ((1 + 0.2 * y) * x1 - (3 + 1.333 * y) - 0.333 * x3 + 2 * x1 * x4, x1),
        ((1 + 0.1 * y) * x2 - y + x3 + 2 * x2 * x4, x2),
        (0.333 * x1 - x2 + 1 - 0.1 * y, x3),
        (9 + 0.1 * y - x1**2 - x2**2, x4),
    ]


def _outrata(number: int, optimum: float, printed: float, more) -> Published:
    """outrata31 to outrata34: (|(x1, x2) - (3, 4)|^2 + more)/2."""
    return Published(
        f"outrata{number}",
        lambda z: ((z[0] - 3) ** 2 + (z[1] - 4) ** 2 + more(z)) / 2,
        optimum,
        (1, 1, 1, 1, 1),
        low=0,
        high=(INF, INF, INF, INF, 10),
        pairs=_outrata_pairs,
        printed=printed,
    )


_COST = (10, 8, 6, 4, 2)
_ELASTICITY = (1.2, 1.1, 1.0, 0.9, 0.8)


def _gnash(name: str, optimum: float, printed: float, most: float, gamma: float):
    """A leader and four followers meet a demand (Facchinei, Jiang, Qi, problem 8).

    z = (x, y1 .. y4, upper multipliers 4, lower multipliers 4). As in the collection's
    file, which the printed value belongs to, a follower's marginal cost is linear.
    """

    def price(z):
        return (5000 / ca.sum1(z[:5])) ** (1 / gamma)

    def profit(z):
        b, x = _ELASTICITY[0], z[0]
        made = _COST[0] * x + b / (b + 1) * 5 ** (-1 / b) * x ** ((1 + b) / b)
        return made - x * price(z)

    def followers(z):
        total = ca.sum1(z[:5])
        return [
            _COST[i]
            + 5 ** (-1 / _ELASTICITY[i]) * z[i]
            - price(z) * (1 - z[i] / (gamma * total))
            + z[4 + i]
            - z[8 + i]
            for i in range(1, 5)
        ]

    def pairs(z):
        lower = [(z[i], z[8 + i]) for i in range(1, 5)]
        return [(most - z[i], z[4 + i]) for i in range(1, 5)] + lower

    return Published(
        name,
        profit,
        optimum,
        (most / 2,) * 5 + (1.0,) * 8,
        low=(0,) + (-INF,) * 12,
        high=(most,) + (INF,) * 12,
        zero=followers,
        pairs=pairs,
        printed=printed,
    )


def _scale(number: int, optimum: float, a: float, b: float, c: float, d: float):
    """scale1 to scale5: a (b x - 1)^2 + c (d y - 1)^2 with x and y complementary."""
    return Published(
        f"scale{number}",
        lambda z: a * (b * z[0] - 1) ** 2 + c * (d * z[1] - 1) ** 2,
        optimum,
        (1, 1),
        pairs=lambda z: [(z[0], z[1])],
        weight=1000.0,  # df/dx1 of scale1 is -200 where x2 = 1
    )


PROBLEMS = (
    Published(
        "bard1",
        lambda x: (x[0] - 5) ** 2 + (2 * x[1] + 1) ** 2,
        17.0,
        (1, 1, 1, 1, 1),
        low=(0, 0, -INF, -INF, -INF),
        zero=_bard1,
        pairs=lambda x: [
            (3 * x[0] - x[1] - 3, x[2]),
            (-x[0] + 0.5 * x[1] + 4, x[3]),
            (-x[0] - x[1] + 7, x[4]),
        ],
    ),
    Published(
        "bard3",
        lambda x: -(x[0] ** 2) - 3 * x[1] - 4 * x[2] + x[3] ** 2,
        -12.6787,
        (1, 1, 1, 1, 1, 1),
        low=0,
        at_least_0=lambda x: [4 - x[0] ** 2 - 2 * x[1]],
        zero=lambda x: [2 * x[2] + 2 * x[4] - 3 * x[5], -5 - x[4] + 4 * x[5]],
        pairs=_bard3_pairs,
        printed=5e-5,
    ),
    Published(
        "bilevel1",
        lambda z: 2 * z[0] + 2 * z[1] - 3 * z[2] - 3 * z[3] - 60,
        0.0,
        # From ones one gets to another local optimum, (25, 30, 5, 10) with f = 5.
        (1, 1, -9, -9) + (1,) * 6,
        low=(0, 0, -INF, -INF) + (0,) * 6,
        high=(50, 50) + (INF,) * 8,
        at_least_0=lambda z: [40 - z[0] - z[1] - z[2] + 2 * z[3]],
        zero=_bilevel1,
        pairs=_bilevel1_pairs,
    ),
    Published(
        "desilva",
        lambda z: ca.sumsqr(z[:4]) - 2 * z[0] - 2 * z[1],
        -1.0,
        (1,) * 6,
        low=(0, 0) + (-INF,) * 4,
        high=(2, 2) + (INF,) * 4,
        zero=lambda z: [
            2 * z[2] - 2 * z[0] + 2 * (z[2] - 1) * z[4],
            2 * z[3] - 2 * z[1] + 2 * (z[3] - 1) * z[5],
        ],
        pairs=lambda z: [
            (0.25 - (z[2] - 1) ** 2, z[4]),
            (0.25 - (z[3] - 1) ** 2, z[5]),
        ],
    ),
    Published(
        "df1",
        lambda z: (z[0] - 1 - z[1]) ** 2,
        0.0,
        (1, 1),
        low=(-1, -INF),
        high=(2, INF),
        at_least_0=lambda z: [
            2 - z[0] ** 2,
            3 - (z[0] - 1) ** 2 - (z[1] - 1) ** 2,
        ],
        pairs=lambda z: [(z[1] - z[0] ** 2 + 1, z[1])],
    ),
    Published(
        "flp2",
        lambda z: (
            (z[0] + z[1] + z[2] - 15) ** 2 / 2 + (z[0] + z[1] + z[3] - 15) ** 2 / 2
        ),
        0.0,
        (1, 1, 1, 1),
        low=0,
        high=(10, 10, INF, INF),
        pairs=lambda z: [
            (8 / 3 * z[0] + 2 * z[1] + 2 * z[2] + 8 / 3 * z[3] - 36, z[2]),
            (2 * z[0] + 5 / 4 * z[1] + 5 / 4 * z[2] + 2 * z[3] - 25, z[3]),
        ],
    ),
    Published(
        "gauvin",
        lambda z: z[0] ** 2 + (z[1] - 10) ** 2,
        20.0,
        (7.5, 1, 1),
        low=(0, -INF, -INF),
        high=(15, INF, INF),
        pairs=lambda z: [
            (4 * (z[0] + 2 * z[1] - 30) + z[2], z[1]),
            (20 - z[0] - z[1], z[2]),
        ],
    ),
    _gnash("gnash19m", -6.11671, 5e-6, 20, 1.7),
    Published(
        "jr1",
        lambda z: (z[0] - 1) ** 2 + z[1] ** 2,
        0.5,
        (1, 1),
        pairs=lambda z: [(z[1] - z[0], z[1])],
    ),
    Published(
        "jr2",
        lambda z: (z[1] - 1) ** 2 + z[0] ** 2,
        0.5,
        (1, 1),
        pairs=lambda z: [(z[1] - z[0], z[1])],
    ),
    Published(
        "kth1", lambda z: z[0] + z[1], 0.0, (0, 1), pairs=lambda z: [(z[0], z[1])]
    ),
    Published(
        "kth2",
        lambda z: z[0] + (z[1] - 1) ** 2,
        0.0,
        (1, 1),
        pairs=lambda z: [(z[0], z[1])],
    ),
    Published(
        "kth3",
        lambda z: (z[0] - 1) ** 2 / 2 + (z[1] - 1) ** 2,
        0.5,
        (1, 1),
        pairs=lambda z: [(z[0], z[1])],
    ),
    _outrata(31, 3.2077, 5e-5, lambda z: 0),
    _outrata(32, 3.4494, 5e-5, lambda z: (z[2] - 1) ** 2),
    _outrata(33, 4.60425, 5e-6, lambda z: 10 * z[3] ** 2),
    _outrata(34, 6.59268, 5e-6, lambda z: ca.sumsqr(z[2:4] - 1) + z[4] ** 2),
    Published(
        "qpec2",
        lambda z: ca.sumsqr(z[:10] - 1) + ca.sumsqr(z[10:] - 2),
        45.0,
        (1,) * 30,
        # The collection writes these rows as 0 <= y _|_ y >= 0.
        zero=lambda z: ca.vertsplit(z[20:]),
        pairs=lambda z: [(z[10 + i] - z[i], z[10 + i]) for i in range(10)],
    ),
    Published(
        "ralph2",
        lambda z: z[0] ** 2 + z[1] ** 2 - 4 * z[0] * z[1],
        0.0,
        (1, 1),
        pairs=lambda z: [(z[0], z[1])],
    ),
    _scale(1, 1.0, 1, 100, 1, 1),
    Published(
        "scholtes2",
        lambda z: (z[0] + 1) ** 2 + z[1] ** 2 + 10 * (z[2] + 1) ** 2,
        15.0,
        (1, 1, 1),
        low=(-INF, -INF, 0),
        pairs=lambda z: [(z[1] - ca.exp(z[0]) - ca.exp(z[2]), z[0])],
    ),
    Published(
        "scholtes3",
        lambda z: ((z[0] - 1) ** 2 + (z[1] - 1) ** 2) / 2,
        0.5,
        # Not ones: the two sides are alike, and so is the way to its saddle point.
        (2, 1),
        pairs=lambda z: [(z[0], z[1])],
    ),
    Published(
        "scholtes5",
        lambda z: (z[0] - 1) ** 2 + (z[1] - 2) ** 2 + (z[2] + 1) ** 2,
        1.0,
        (1, 1, 1),
        pairs=lambda z: [(z[0], z[2]), (z[1], z[2])],
    ),
    Published(
        "stackelberg1",
        lambda z: 0.5 * z[0] ** 2 + 0.5 * z[0] * z[1] - 95 * z[0],
        -9800 / 3,
        (1, 1, 1),
        low=(0, -INF, -INF),
        high=(200, INF, INF),
        zero=lambda z: [2 * z[1] + 0.5 * z[0] - 100 - z[2]],
        pairs=lambda z: [(z[1], z[2])],
    ),
)

NOT_STATIONARY = (
    # min 2x - y + w y (y - x) is at x = 0, y = 1/(2w).
    Published(
        "ralph1",
        lambda z: 2 * z[0] - z[1],
        0.0,
        (1, 1),
        low=(0, -INF),
        pairs=lambda z: [(z[1], z[1] - z[0])],
    ),
    # min x + y - 4 min(x, y) + w x y is at x = y = 1/w.
    Published(
        "scholtes4",
        lambda z: z[0] + z[1] - z[2],
        0.0,
        (0, 1, 0),
        at_least_0=lambda z: [4 * z[0] - z[2], 4 * z[1] - z[2]],
        pairs=lambda z: [(z[0], z[1])],
    ),
)

HS044_I = {
    "b": (8, 12, 12, 8, 8, 5),
    "g": (1, -1, -1, 0),
    "u": (0.2, 1.2, 2, 0.1),
    "v": (1.2, 0.2, 0.1, 2, 10, -0.2),
    "low": (0.01, -10, 0.1, -1, -1, 0.001),
    "high": (10, -0.01, 1, -0.1, 1, 10),
}
_A = ca.DM(
    [
        [-1, -2, 0, 0],
        [-4, -1, 0, 0],
        [-3, -4, 0, 0],
        [0, 0, -2, -1],
        [0, 0, -1, -2],
        [0, 0, -1, -1],
    ]
)


def _hs044_i_zero(y: ca.SX) -> list[ca.SX]:
    """The perturbed KKT conditions of HS44; y = (x, l, m, z).

    As in the collection's file, row i has l_i, where HS44 itself has l_j.
    """
    x, k, m, z = y[:4], y[4:10], y[10:14], y[14:]
    d = HS044_I
    Hx = [x[3] - x[2], x[2] - x[3], x[1] - x[0], x[0] - x[1]]
    return [
        Hx[i] + d["g"][i] + d["u"][i] * z[i] - ca.sum1(_A[:, i]) * k[i] - m[i]
        for i in range(4)
    ]


def _hs044_i_pairs(y: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    x, k, m, z = y[:4], y[4:10], y[10:14], y[14:]
    d, Ax = HS044_I, _A @ x
    rows = [(k[j], d["b"][j] - d["v"][j] * z[j] + Ax[j]) for j in range(6)]
    return rows + [(x[i], m[i]) for i in range(4)]


def _bilevel2_zero(z: ca.SX) -> list[ca.SX]:
    y, k = z[4:8], z[8:]
    return [
        y[0] - 4 + 0.4 * k[0] + 0.6 * k[1] - k[2] + k[3],
        y[1] - 13 + 0.7 * k[0] + 0.3 * k[1] - k[4] + k[5],
        y[2] - 35 + 0.4 * k[6] + 0.6 * k[7] - k[8] + k[9],
        y[3] - 2 + 0.7 * k[6] + 0.3 * k[7] - k[10] + k[11],
    ]


def _bilevel2_pairs(z: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    x, y, k = z[:4], z[4:8], z[8:]
    first = [
        x[0] - 0.4 * y[0] - 0.7 * y[1],
        x[1] - 0.6 * y[0] - 0.3 * y[1],
        *(y[0], 20 - y[0], y[1], 20 - y[1]),
        x[2] - 0.4 * y[2] - 0.7 * y[3],
        x[3] - 0.6 * y[2] - 0.3 * y[3],
        *(y[2], 40 - y[2], y[3], 40 - y[3]),
    ]
    return list(zip(first, ca.vertsplit(k)))


MORE = (
    Published(
        "bard1m",
        lambda x: (x[0] - 5) ** 2 + (2 * x[1] + 1) ** 2,
        17.0,
        (1,) * 6,
        low=0,
        zero=lambda x: [_bard1(x)[0] - x[5]],
        pairs=lambda x: [
            (3 * x[0] - x[1] - 3, x[2]),
            (-x[0] + 0.5 * x[1] + 4, x[3]),
            (-x[0] - x[1] + 7, x[4]),
        ],
    ),
    Published(
        "bilevel2",
        lambda z: (
            -(200 - z[4] - z[6]) * (z[4] + z[6]) - (160 - z[5] - z[7]) * (z[5] + z[7])
        ),
        -6600.0,
        (5, 5, 15, 15) + (1,) * 16,
        low=(0,) * 4 + (-INF,) * 4 + (0,) * 12,
        high=(10, 5, 15, 20) + (INF,) * 16,
        at_least_0=lambda z: [40 - z[0] - z[1] - z[2] - z[3]],
        zero=_bilevel2_zero,
        pairs=_bilevel2_pairs,
    ),
    # Its file writes l - y as an equality too: here the multipliers' partners.
    Published(
        "bilevel3",
        lambda z: -(z[0] ** 2) - 3 * z[1] - 4 * z[2] + z[3] ** 2,
        -12.6787,
        (0, 2) + (1,) * 6,
        low=(0, 0) + (-INF,) * 6,
        at_least_0=lambda z: [4 - z[0] ** 2 - 2 * z[1]],
        zero=lambda z: [
            2 * z[2] + 2 * z[4] - 3 * z[5] - z[6],
            -5 - z[4] + 4 * z[5] - z[7],
        ],
        pairs=lambda z: [
            (z[0] ** 2 - 2 * z[0] + z[1] ** 2 - 2 * z[2] + z[3] + 3, z[4]),
            (z[1] + 3 * z[2] - 4 * z[3] - 4, z[5]),
            (z[2], z[6]),
            (z[3], z[7]),
        ],
        printed=5e-5,
    ),
    # The file maximises.
    Published(
        "bilin",
        lambda z: -8 * z[0] - 4 * z[1] + 4 * z[2] - 40 * z[3] - 4 * z[4],
        -18.4,
        (1,) * 8,
        low=0,
        at_least_0=lambda z: [1.3 - z[0] - 2 * z[1] + z[4]],
        pairs=lambda z: [
            (2 - z[5] - 2 * z[6] + 4 * z[7], z[2]),
            (1 + z[5] + 4 * z[6] - 2 * z[7], z[3]),
            (2 + z[5] - z[6] - z[7], z[4]),
            (1 + z[2] - z[3] - z[4], z[5]),
            (2 - 4 * z[0] + 2 * z[2] - 4 * z[3] + z[4], z[6]),
            (2 - 4 * z[1] - 4 * z[2] + 2 * z[3] + z[4], z[7]),
        ],
    ),
    Published(
        "dempe",
        lambda z: (z[0] - 3.5) ** 2 + (z[1] + 4) ** 2,
        28.25,
        (1, 1, 1),
        low=(-INF, -INF, 0),
        zero=lambda z: [z[1] - 3 + 2 * z[1] * z[2]],
        pairs=lambda z: [(z[0] - z[1] ** 2, z[2])],
    ),
    _gnash("gnash10m", -230.823, 5e-4, 150, 1.0),
    _gnash("gnash12m", -36.9331, 5e-5, 150, 1.3),
    _gnash("gnash14m", -0.179046, 5e-7, 150, 1.7),
    _gnash("gnash15m", -354.699, 5e-4, 50, 1.0),
    _gnash("gnash17m", -90.7491, 5e-5, 30, 1.3),
    Published(
        "hs044-i",
        lambda y: ca.sumsqr(y[:4] - ca.DM([0, 3, 0, 4])),
        15.6178,
        (1,) * 20,
        low=(0,) * 14 + HS044_I["low"],
        high=(INF,) * 14 + HS044_I["high"],
        zero=_hs044_i_zero,
        pairs=_hs044_i_pairs,
        printed=5e-5,
    ),
    Published(
        "nash1a",
        lambda z: ((z[0] - z[2]) ** 2 + (z[1] - z[3]) ** 2) / 2,
        0.0,
        (0, 0, 1, 1, 1, 1),
        low=(0, 0, -INF, -INF, 0, 0),
        high=(10, 10, INF, INF, INF, INF),
        zero=lambda z: [
            -34 + 2 * z[2] + 8 / 3 * z[3] + z[4],
            -24.25 + 1.25 * z[2] + 2 * z[3] + z[5],
        ],
        pairs=lambda z: [(15 - z[1] - z[2], z[4]), (15 - z[0] - z[3], z[5])],
    ),
    Published(
        "qpec1",
        lambda z: ca.sumsqr(z[:10] + 1) + ca.sumsqr(z[10:] + 2),
        80.0,
        (1,) * 30,
        low=(-INF,) * 10 + (0,) * 20,
        # The collection writes the last ten rows as 0 <= y _|_ y >= 0.
        zero=lambda z: ca.vertsplit(z[20:]),
        pairs=lambda z: [(z[10 + i] - z[i], z[10 + i]) for i in range(10)],
    ),
    _scale(2, 1.0, 100, 1, 1, 1),
    _scale(3, 1.0, 1, 100, 100, 1),
    _scale(4, 1.0, 1, 100, 1, 100),
    _scale(5, 100.0, 100, 1, 100, 1),
    Published(
        "scholtes1",
        lambda z: (z[0] + 1) ** 2 + (z[1] - 2.5) ** 2 + (z[2] + 1) ** 2,
        2.0,
        (1, 1, 1),
        low=(0, -INF, 0),
        pairs=lambda z: [(z[1] - ca.exp(z[0]) - ca.exp(z[2]), z[0])],
    ),
    # A perturbed HS21; z = (x, perturbations, multipliers).
    Published(
        "sl1",
        lambda z: (z[0] - 2) ** 2 + z[1] ** 2,
        1e-4,
        (1, 1, 10, 1, 1, 1, 1, 1),
        low=(-INF, -INF, 10, 0.01, 0, 0, 0, 0),
        high=(INF, INF, 1e10, 10, 1, INF, INF, INF),
        zero=lambda z: [
            0.02 * z[0] - 10 * z[5] - z[6],
            2 * z[1] - z[5] - z[7],
        ],
        pairs=lambda z: [
            (10 * z[0] + z[1] - 10 - z[2], z[5]),
            (z[0] - 2 - z[3], z[6]),
            (z[1] - 50 * z[4], z[7]),
        ],
    ),
)
"""Problems that are only tested by the solver of Drake's programs."""
