"""Shape of one front-left leg and its transmission, link by link.

Every laminate plate ends a hinge gap away from the axes of its own joints, so
that the parts connect at any angle. Where a plate lies and how far it reaches
follow from its link's joints and moments of inertia; outlines, cut-outs and
chamfers are ours. Lengths in mm, in the frame of the link.
"""

from __future__ import annotations

import numpy as np

from .actuator import mm, tip_pieces
from .parameters import HamrParameters
from .pieces import Piece, ball, block, rod, solid
from .shapes import merge, plate, rounded, symmetric

# Ours: nothing published was found.
HINGE_GAP = 0.13  # from a hinge's axis to the plate's edge
HINGE_RADIUS = 0.13  # of the bead drawn for a flexure
TAPE = (0.35, 0.02)  # polyimide left visible beside a hinge: width, height
TIP_BLOCK = (0.75, 0.62, 1.75)  # the clamp at an actuator's tip
FOOT_RADIUS = 0.34
LEG_THICKNESS = 0.2  # the leg is a double laminate
CORNER = 0.35


def plate_thickness(parameters: HamrParameters) -> float:
    """Of the laminate: the hinges of S3 lie on either face of it [mm]."""
    return float(mm(_loop(parameters, "qs3").p_B)[1])


def leg_pieces(parameters: HamrParameters) -> dict[str, list[Piece]]:
    """The pieces of the front-left links by link, and "L1 rear" beside "L1"."""
    t = plate_thickness(parameters)
    joint = {row.name: mm(row.p_PJ) for row in parameters.joints}
    loop = {row.name: mm(row.p_B) for row in parameters.loops}
    loop_A = {row.name: mm(row.p_A) for row in parameters.loops}
    foot = mm(parameters.foot[1])
    return {
        "S1": tip_pieces(parameters, "s") + _s1(joint["qs1"], t),
        "S2": _s2(joint["qs2"], t),
        "S3": _s3(loop["qs3"], joint["qfb1"], t),
        "S4": _s4(loop_A["qfb2"], t),
        "L1": tip_pieces(parameters, "l") + _l1(joint["ql1"], t, "L1"),
        "L1 rear": tip_pieces(parameters, "l")
        + _l1(mm(parameters.rear_origins["ql1"]), t, "L1_rear"),
        "L2": _l2(joint["ql2"], t),
        "L3": _l3(loop["ql3"], joint["qfb3"], t),
        "L4": _l4(loop["qfb2"], foot, t),
    }


def _loop(parameters: HamrParameters, name: str):
    return next(row for row in parameters.loops if row.name == name)


def _hinge(name: str, p, axis: str, length: float) -> Piece:
    return rod(f"hinge_{name}", "kapton", HINGE_RADIUS, length, p, axis)


def _tape(name: str, size, p) -> Piece:
    return block(f"tape_{name}", "kapton", size, p)


def _s1(qs1, t) -> list[Piece]:
    y, z = qs1[1] - HINGE_GAP, qs1[2]
    return [
        block("clamp", "link", TIP_BLOCK, (-TIP_BLOCK[0] / 2 + 0.15, 0, 0)),
        block("tab", "link", (t, y + 0.2, 1.55), (0, y / 2 - 0.1, z)),
    ]


def _s2(qs2, t) -> list[Piece]:
    """A plate across the body, from a vertical hinge to a vertical hinge."""
    y, z = qs2[1], qs2[2]
    a, b = HINGE_GAP, y - HINGE_GAP
    outline = [
        *((a, -0.75), (1.1, -0.75), (b - 1.3, z - 1.0), (b, z - 1.0)),
        *((b, z + 0.95), (b - 2.0, z + 0.95), (1.1, 0.95), (a, 0.95)),
    ]
    holes = [
        [(1.3, -0.25), (3.2, 0.28), (3.2, 1.3), (1.3, 0.5)],
        [(3.75, 0.43), (b - 1.2, z - 0.5), (b - 1.2, z + 0.45), (3.75, 1.55)],
    ]
    mesh = plate(
        rounded(outline, CORNER, 1),
        [rounded(hole, 0.2, 1) for hole in holes],
        thickness=t,
        plane="yz",
    )
    w, h = TAPE
    return [
        solid("plate", "link", mesh, "S2", symmetric_x=True),
        _hinge("qs1", (0, 0, 0.1), "z", 1.6),
        _hinge("qs2", (0, y, z), "z", 1.9),
        _tape("qs1", (t + h, w, 1.5), (0, a + w / 2, 0.1)),
        _tape("qs2", (t + h, w, 1.8), (0, b - w / 2, z)),
    ]


def _s3(qs3, qfb1, t) -> list[Piece]:
    """The corner piece at the hip that turns with the swing."""
    left, bottom = qs3[0] + HINGE_GAP, qfb1[2] + HINGE_GAP
    top, right = -bottom, 2 * qfb1[0] - 0.55
    outline = [
        *((left, bottom), (right, bottom), (right, bottom + 0.8)),
        *((0.9, top), (left, top)),
    ]
    hole = rounded([(0.75, -0.6), (1.7, -0.6), (0.75, 0.45)], 0.15, 1)
    mesh = plate(
        rounded(outline, [0, 0, CORNER, CORNER, 0], 1),
        [hole],
        thickness=t,
        plane="xz",
        origin=(0, t / 2, 0),
    )
    w, h = TAPE
    width = right - left - 0.3
    middle = (right + left) / 2
    return [
        solid("plate", "link", mesh, "S3"),
        _hinge("qs3", qs3, "z", 2.1),
        _hinge("qfb1", (middle, qfb1[1], qfb1[2]), "x", width),
        _tape("qs3", (w, t + h, 2.0), (left + w / 2, t / 2, 0)),
        _tape("qfb1", (width, t + h, w), (middle, t / 2, bottom + w / 2)),
    ]


def _s4(qfb2, t) -> list[Piece]:
    """The upper arm: from the hinge along x at the body to the one along y."""
    inner, y = qfb2[0] + HINGE_GAP, qfb2[1]
    outline = [
        *((-1.7, HINGE_GAP), (0.85, HINGE_GAP), (1.25, 1.1), (-0.45, y + 1.2)),
        *((inner, y + 1.2), (inner, 1.2)),
    ]
    hole = [(-1.3, 1.3), (0.5, 1.3), (-0.75, y - 0.9), (-1.3, y - 0.9)]
    floor = plate(
        rounded(outline, [0, 0, 0.5, 0.4, 0, 0.3], 1),
        [rounded(hole, 0.3, 1)],
        thickness=t,
    )
    start, end = np.array([1.05, 1.3]), np.array([-0.35, y + 0.9])
    along = (end - start) / np.linalg.norm(end - start)
    axes = np.array([[*along, 0], [0, 0, 1], [along[1], -along[0], 0]])
    length = float(np.linalg.norm(end - start))
    fin = [(0, 0), (length, 0), (length, 0.5), (1.9, 2.6), (0.6, 2.6), (0, 1.6)]
    window = [(0.6, 0.55), (length - 1.9, 0.55), (1.7, 1.95), (0.6, 1.95)]
    wall = plate(
        rounded(fin, [0, 0, 0.2, 0.6, 0.4, 0.3], 1),
        [rounded(window, 0.25, 1)],
        thickness=t,
        plane=axes,
        origin=(*start, 0),
    )
    w, h = TAPE
    return [
        solid("plates", "leg", merge([floor, wall]), "S4"),
        _tape("qfb1", (2.3, w, t + h), (-0.4, HINGE_GAP + w / 2, 0)),
        _tape("qfb2", (w, 2.2, t + h), (inner + w / 2, y, 0)),
    ]


def _l1(ql1, t, file: str) -> list[Piece]:
    """From the lift actuator's tip to a hinge along x: a plate with a keel."""
    y, z = ql1[1], ql1[2]
    end = y - HINGE_GAP
    top = plate(
        symmetric([(0.6, 0.2), (1.55, end - 0.8), (1.55, end)], 0),
        [rounded([(0.8, end - 0.9), (-0.8, end - 0.9), (0, 1.2)], 0.25, 1)],
        thickness=t,
        origin=(0, 0, z),
    )
    keel = plate(
        [(0.2, -0.85), (1.0, -0.85), (end - 0.7, z - 0.35), (end - 0.7, z), (0.2, z)],
        thickness=t,
        plane="yz",
    )
    w, h = TAPE
    return [
        block("clamp", "link", TIP_BLOCK, (-TIP_BLOCK[0] / 2 + 0.15, 0, 0)),
        solid("plates", "link", merge([top, keel]), file, symmetric_x=True),
        _tape("ql1", (2.9, w, t + h), (0, end - w / 2, z)),
    ]


def _l2(ql2, t) -> list[Piece]:
    """The short coupler between two hinges along x."""
    y = ql2[1]
    a, b = HINGE_GAP, y - HINGE_GAP
    outline = [(-2.1, a), (2.1, a), (1.75, y / 2), (2.1, b), (-2.1, b), (-1.75, y / 2)]
    holes = [
        rounded([(s * 0.35, 0.6), (s * 1.3, 0.6), (s * 1.3, 1.35), (s * 0.35, 1.35)], 0)
        for s in (1, -1)
    ]
    w, h = TAPE[0] * 0.7, TAPE[1]
    return [
        solid("plate", "link", plate(outline, holes, thickness=t), "L2", True),
        _hinge("ql1", (0, 0, 0), "x", 3.0),
        _hinge("ql2", (0, y, 0), "x", 3.8),
        _tape("ql1", (2.9, w, t + h), (0, a + w / 2, 0)),
        _tape("ql2", (3.7, w, t + h), (0, b - w / 2, 0)),
    ]


def _l3(ql3, qfb3, t) -> list[Piece]:
    """The plate below the body's side that turns with the lift."""
    right, top = qfb3[0] - HINGE_GAP, ql3[2] - HINGE_GAP
    low = qfb3[2] - 0.72
    outline = [
        *((-1.0, low), (right, low), (right, qfb3[2] + 0.72), (1.75, top)),
        *((-1.9, top), (-1.9, -0.5)),
    ]
    hole = [(-0.8, -0.45), (-0.45, low + 0.45), (1.45, low + 0.45), (1.45, -0.45)]
    mesh = plate(
        rounded(outline, [0.3, 0, 0.3, 0, 0, 0.4], 1),
        [rounded(hole, 0.2, 1)],
        thickness=t,
        plane="xz",
        origin=(0, t / 2, 0),
    )
    w, h = TAPE[0] * 0.7, TAPE[1]
    return [
        solid("plate", "link", mesh, "L3"),
        _hinge("ql3", ql3, "x", 3.5),
        _tape("ql3", (3.4, t + h, w), (-0.05, t / 2, top - w / 2)),
        _tape("qfb3", (w, t + h, 1.3), (right - w / 2, t / 2, qfb3[2])),
    ]


def _l4(qfb2, foot, t) -> list[Piece]:
    """The leg: a bracket in the plane of its two hinges, and the leg across it."""
    y, top = qfb2[1], qfb2[2] - HINGE_GAP
    start = np.array([0.0, y + 1.05, top - 0.55])
    end = np.array([0.0, foot[1], foot[2] + FOOT_RADIUS])
    down = (end - start) / np.linalg.norm(end - start)
    length = float(np.linalg.norm(end - start))

    def edge(z):  # y of the leg's plane at height z
        return start[1] + (z - start[2]) / down[2] * down[1]

    bracket = plate(
        rounded(
            [
                *((HINGE_GAP, -0.7), (2.6, -1.0), (5.6, -3.2), (edge(-4.9), -4.9)),
                *((edge(0.9), 0.9), (y + 1.1, top), (y - 1.15, top)),
                *((y - 1.3, 0.95), (HINGE_GAP, 0.7)),
            ],
            [0, 1.2, 1.2, 0, 0, 0, 0, 0.3, 0],
            1,
        ),
        [
            rounded([(1.0, -0.35), (2.5, -0.45), (4.1, -1.4), (4.1, 0.4)], 0.25, 1),
            rounded([(4.7, -1.8), (6.5, -3.2), (6.5, 0.5), (4.7, 0.5)], 0.3, 1),
        ],
        thickness=t,
        plane="yz",
    )
    axes = np.array([[1, 0, 0], down, np.cross([1, 0, 0], down)])
    shape = [
        *((0.75, 0.0), (0.85, 1.6), (0.35, 4.2), (0.2, 7.5), (0.24, length)),
        *((-0.24, length), (-0.75, 9.3), (-2.0, 6.4), (-2.75, 4.0), (-2.6, 1.4)),
        *((-1.9, 0.0),),
    ]
    blade = plate(
        rounded(shape, [0.3, 1, 2, 2, 0, 0, 2, 2, 1.5, 1.2, 0.4], 1),
        [
            rounded([(0.2, 1.0), (-0.1, 3.5), (-1.9, 1.9), (-1.7, 0.8)], 0.35, 1),
            rounded([(-2.1, 2.6), (-0.25, 4.4), (-0.35, 7.0), (-1.6, 5.6)], 0.6, 1),
        ],
        thickness=LEG_THICKNESS,
        plane=axes,
        origin=start,
    )
    w, h = TAPE
    return [
        solid("plates", "leg", merge([bracket, blade]), "L4"),
        _hinge("qfb3", (0, 0, 0), "z", 1.4),
        _hinge("qfb2", qfb2, "y", 2.3),
        _tape("qfb3", (t + h, w, 1.3), (0, HINGE_GAP + w / 2, 0)),
        _tape("qfb2", (t + h, 2.2, w), (0, y, top - w / 2)),
        ball("foot", "foot", FOOT_RADIUS, end),
        rod("sock", "foot", FOOT_RADIUS, 0.9, (0, end[1], end[2] + 0.45), "z"),
    ]
