"""Problems of Hock and Schittkowski, Test Examples for Nonlinear Programming Codes.

Lecture Notes in Economics and Mathematical Systems 187, Springer 1981. Numbers,
starts and printed optima are the book's; where it gives a closed form, that is used.
"""

from __future__ import annotations

from math import pi, sqrt

import casadi as ca

from tests.helpers.scripts import load_script

Published = load_script("published").Published
INF = float("inf")


def _valley(x: ca.SX) -> ca.SX:
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def _spheres(x: ca.SX) -> list[ca.SX]:
    """The three equations that problems 78 and 80 share."""
    return [
        ca.sumsqr(x) - 10,
        x[1] * x[2] - 5 * x[3] * x[4],
        x[0] ** 3 + x[1] ** 3 + 1,
    ]


def _wood(x: ca.SX) -> ca.SX:
    return (
        100 * (x[1] - x[0] ** 2) ** 2
        + (1 - x[0]) ** 2
        + 90 * (x[3] - x[2] ** 2) ** 2
        + (1 - x[2]) ** 2
        + 10.1 * ((x[1] - 1) ** 2 + (x[3] - 1) ** 2)
        + 19.8 * (x[1] - 1) * (x[3] - 1)
    )


def _transformer(x: ca.SX) -> ca.SX:
    first, second = x[0] * x[3] * (x[0] + x[1] + x[2]), x[1] * x[2]
    second *= x[0] + 1.57 * x[1] + x[3]
    return (
        0.0204 * first
        + 0.0187 * second
        + 0.0607 * first * x[4] ** 2
        + 0.0437 * second * x[5] ** 2
    )


def _transformer_rows(x: ca.SX) -> list[ca.SX]:
    first, second = x[0] * x[3] * (x[0] + x[1] + x[2]), x[1] * x[2]
    second *= x[0] + 1.57 * x[1] + x[3]
    return [
        0.001 * x[0] * x[1] * x[2] * x[3] * x[4] * x[5] - 2.07,
        1 - 0.00062 * first * x[4] ** 2 - 0.00058 * second * x[5] ** 2,
    ]


def _seven(x: ca.SX) -> ca.SX:
    return (
        (x[0] - 10) ** 2
        + 5 * (x[1] - 12) ** 2
        + x[2] ** 4
        + 3 * (x[3] - 11) ** 2
        + 10 * x[4] ** 6
        + 7 * x[5] ** 2
        + x[6] ** 4
        - 4 * x[5] * x[6]
        - 10 * x[5]
        - 8 * x[6]
    )


def _seven_rows(x: ca.SX) -> list[ca.SX]:
    return [
        127 - 2 * x[0] ** 2 - 3 * x[1] ** 4 - x[2] - 4 * x[3] ** 2 - 5 * x[4],
        282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4],
        196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6],
        -4 * x[0] ** 2
        - x[1] ** 2
        + 3 * x[0] * x[1]
        - 2 * x[2] ** 2
        - 5 * x[5]
        + 11 * x[6],
    ]


def _ten(x: ca.SX) -> ca.SX:
    return (
        x[0] ** 2
        + x[1] ** 2
        + x[0] * x[1]
        - 14 * x[0]
        - 16 * x[1]
        + (x[2] - 10) ** 2
        + 4 * (x[3] - 5) ** 2
        + (x[4] - 3) ** 2
        + 2 * (x[5] - 1) ** 2
        + 5 * x[6] ** 2
        + 7 * (x[7] - 11) ** 2
        + 2 * (x[8] - 10) ** 2
        + (x[9] - 7) ** 2
        + 45
    )


def _ten_rows(x: ca.SX) -> list[ca.SX]:
    return [
        105 - 4 * x[0] - 5 * x[1] + 3 * x[6] - 9 * x[7],
        -10 * x[0] + 8 * x[1] + 17 * x[6] - 2 * x[7],
        8 * x[0] - 2 * x[1] - 5 * x[8] + 2 * x[9] + 12,
        120 - 3 * (x[0] - 2) ** 2 - 4 * (x[1] - 3) ** 2 - 2 * x[2] ** 2 + 7 * x[3],
        40 - 5 * x[0] ** 2 - 8 * x[1] - (x[2] - 6) ** 2 + 2 * x[3],
        30 - (x[0] - 8) ** 2 / 2 - 2 * (x[1] - 4) ** 2 - 3 * x[4] ** 2 + x[5],
        2 * x[0] * x[1] - x[0] ** 2 - 2 * (x[1] - 2) ** 2 - 14 * x[4] + 6 * x[5],
        3 * x[0] - 6 * x[1] - 12 * (x[8] - 8) ** 2 + 7 * x[9],
    ]


def _exchanger_rows(x: ca.SX) -> list[ca.SX]:
    return [
        1 - 0.0025 * (x[3] + x[5]),
        1 - 0.0025 * (x[4] + x[6] - x[3]),
        1 - 0.01 * (x[7] - x[4]),
        x[0] * x[5] - 833.33252 * x[3] - 100 * x[0] + 83333.333,
        x[1] * x[6] - 1250 * x[4] - x[1] * x[3] + 1250 * x[3],
        x[2] * x[7] - 1250000 - x[2] * x[4] + 2500 * x[4],
    ]


PROBLEMS = (
    Published("hs1", _valley, 0.0, (-2, 1), low=(-INF, -1.5)),
    Published(
        "hs5",
        lambda x: (
            ca.sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1
        ),
        -sqrt(3) / 2 - pi / 3,
        (0, 0),
        low=(-1.5, -3),
        high=(4, 3),
    ),
    Published(
        "hs6",
        lambda x: (1 - x[0]) ** 2,
        0.0,
        (-1.2, 1),
        zero=lambda x: [10 * (x[1] - x[0] ** 2)],
    ),
    Published(
        "hs7",
        lambda x: ca.log(1 + x[0] ** 2) - x[1],
        -sqrt(3),
        (2, 2),
        zero=lambda x: [(1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4],
    ),
    # As many equations as variables.
    Published(
        "hs8",
        lambda x: ca.SX(-1),
        -1.0,
        (2, 1),
        zero=lambda x: [x[0] ** 2 + x[1] ** 2 - 25, x[0] * x[1] - 9],
    ),
    Published(
        "hs10",
        lambda x: x[0] - x[1],
        -1.0,
        (-10, 10),
        at_least_0=lambda x: [-3 * x[0] ** 2 + 2 * x[0] * x[1] - x[1] ** 2 + 1],
    ),
    Published(
        "hs14",
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        9 - 2.875 * sqrt(7),
        (2, 2),
        at_least_0=lambda x: [1 - x[0] ** 2 / 4 - x[1] ** 2],
        zero=lambda x: [x[0] - 2 * x[1] + 1],
    ),
    Published(
        "hs21",
        lambda x: 0.01 * x[0] ** 2 + x[1] ** 2 - 100,
        -99.96,
        (-1, -1),
        low=(2, -50),
        high=50,
        at_least_0=lambda x: [10 * x[0] - x[1] - 10],
    ),
    Published(
        "hs24",
        lambda x: ((x[0] - 3) ** 2 - 9) * x[1] ** 3 / (27 * sqrt(3)),
        -1.0,
        (1, 0.5),
        low=0,
        at_least_0=lambda x: [
            x[0] / sqrt(3) - x[1],
            x[0] + sqrt(3) * x[1],
            6 - x[0] - sqrt(3) * x[1],
        ],
    ),
    Published(
        "hs28",
        lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2,
        0.0,
        (-4, 1, 1),
        zero=lambda x: [x[0] + 2 * x[1] + 3 * x[2] - 1],
    ),
    Published(
        "hs29",
        lambda x: -x[0] * x[1] * x[2],
        -16 * sqrt(2),
        (1, 1, 1),
        at_least_0=lambda x: [48 - x[0] ** 2 - 2 * x[1] ** 2 - 4 * x[2] ** 2],
    ),
    Published(
        "hs35",
        lambda x: (
            9
            - 8 * x[0]
            - 6 * x[1]
            - 4 * x[2]
            + 2 * x[0] ** 2
            + 2 * x[1] ** 2
            + x[2] ** 2
            + 2 * x[0] * x[1]
            + 2 * x[0] * x[2]
        ),
        1 / 9,
        (0.5, 0.5, 0.5),
        low=0,
        at_least_0=lambda x: [3 - x[0] - x[1] - 2 * x[2]],
    ),
    Published("hs38", _wood, 0.0, (-3, -1, -3, -1), low=-10, high=10),
    Published(
        "hs39",
        lambda x: -x[0],
        -1.0,
        (2, 2, 2, 2),
        zero=lambda x: [x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2],
    ),
    Published(
        "hs43",
        lambda x: (
            x[0] ** 2
            + x[1] ** 2
            + 2 * x[2] ** 2
            + x[3] ** 2
            - 5 * x[0]
            - 5 * x[1]
            - 21 * x[2]
            + 7 * x[3]
        ),
        -44.0,
        (0, 0, 0, 0),
        at_least_0=lambda x: [
            8 - ca.sumsqr(x) - x[0] + x[1] - x[2] + x[3],
            10 - ca.sumsqr(x) - x[1] ** 2 - x[3] ** 2 + x[0] + x[3],
            5 - 2 * x[0] ** 2 - x[1] ** 2 - x[2] ** 2 - 2 * x[0] + x[1] + x[3],
        ],
    ),
    Published(
        "hs63",
        lambda x: (
            1000 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - x[0] * x[1] - x[0] * x[2]
        ),
        961.7151721,
        (2, 2, 2),
        low=0,
        zero=lambda x: [8 * x[0] + 14 * x[1] + 7 * x[2] - 56, ca.sumsqr(x) - 25],
    ),
    Published(
        "hs65",
        lambda x: (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2,
        0.9535288567,
        (-5, 5, 0),
        low=(-4.5, -4.5, -5),
        high=(4.5, 4.5, 5),
        at_least_0=lambda x: [48 - ca.sumsqr(x)],
    ),
    Published(
        "hs71",
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        17.0140173,
        (1, 5, 5, 1),
        low=1,
        high=5,
        at_least_0=lambda x: [x[0] * x[1] * x[2] * x[3] - 25],
        zero=lambda x: [ca.sumsqr(x) - 40],
    ),
    Published(
        "hs76",
        lambda x: (
            x[0] ** 2
            + x[1] ** 2 / 2
            + x[2] ** 2
            + x[3] ** 2 / 2
            - x[0] * x[2]
            + x[2] * x[3]
            - x[0]
            - 3 * x[1]
            + x[2]
            - x[3]
        ),
        -4.681818181,
        (0.5, 0.5, 0.5, 0.5),
        low=0,
        at_least_0=lambda x: [
            5 - x[0] - 2 * x[1] - x[2] - x[3],
            4 - 3 * x[0] - x[1] - 2 * x[2] + x[3],
            x[1] + 4 * x[2] - 1.5,
        ],
    ),
    Published(
        "hs77",
        lambda x: (
            (x[0] - 1) ** 2
            + (x[0] - x[1]) ** 2
            + (x[2] - 1) ** 2
            + (x[3] - 1) ** 4
            + (x[4] - 1) ** 6
        ),
        0.24150513,
        (2, 2, 2, 2, 2),
        zero=lambda x: [
            x[0] ** 2 * x[3] + ca.sin(x[3] - x[4]) - 2 * sqrt(2),
            x[1] + x[2] ** 4 * x[3] ** 2 - 8 - sqrt(2),
        ],
    ),
    Published(
        "hs78",
        lambda x: x[0] * x[1] * x[2] * x[3] * x[4],
        -2.91970041,
        (-2, 1.5, 2, -1, -1),
        zero=_spheres,
    ),
    Published(
        "hs80",
        lambda x: ca.exp(x[0] * x[1] * x[2] * x[3] * x[4]),
        0.0539498478,
        (-2, 2, 2, -1, -1),
        low=(-2.3, -2.3, -3.2, -3.2, -3.2),
        high=(2.3, 2.3, 3.2, 3.2, 3.2),
        zero=_spheres,
    ),
    Published(
        "hs93",
        _transformer,
        135.075961,
        (5.54, 4.4, 12.02, 11.82, 0.702, 0.852),
        low=0,
        at_least_0=_transformer_rows,
    ),
    Published(
        "hs100", _seven, 680.6300573, (1, 2, 0, 4, 0, 1, 1), at_least_0=_seven_rows
    ),
    Published(
        "hs106",
        lambda x: x[0] + x[1] + x[2],
        # The book prints 7049.330923, later collections the lower 7049.24802.
        7049.24802,
        (5000, 5000, 5000, 200, 350, 150, 225, 425),
        low=(100, 1000, 1000, 10, 10, 10, 10, 10),
        high=(10000, 10000, 10000, 1000, 1000, 1000, 1000, 1000),
        at_least_0=_exchanger_rows,
    ),
    Published(
        "hs113",
        _ten,
        24.3062091,
        (2, 3, 5, 5, 1, 2, 7, 3, 6, 10),
        at_least_0=_ten_rows,
    ),
)
