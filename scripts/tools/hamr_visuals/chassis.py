"""Shape of HAMR-VI's chassis: frame, circuit board, eight actuators.

The actuators lie along x, bend along y and are wide along z: that is the way
the tips move, and the only way the four lift actuators, whose bases reach past
the middle, pass one another (which is why front and rear ones differ in y).
Outlines, cut-outs and the board's parts are ours. Lengths in mm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drakebots.robots.hamr.model import LEGS, mirror

from .actuator import actuator_pieces, mm
from .leg import HINGE_GAP, plate_thickness
from .parameters import HamrParameters
from .pieces import Piece, block, solid
from .sdf import joint_origin
from .shapes import Mesh, box, merge, plate, rectangle, rounded, symmetric

# Ours: nothing published was found.
FRAME = 0.25  # thickness of the frame's plates
BOARD = 0.3  # thickness of the circuit board
TOP, BOTTOM = 3.2, -3.4  # the top plate's lower and the bottom plate's upper face
BULKHEAD = 15.4  # x of the front and rear bulkheads
RIB = 1.3  # x of the ribs that carry the actuators' bases


def chassis_pieces(parameters: HamrParameters) -> list[Piece]:
    """The pieces of the chassis."""
    parts = [*_plates(parameters), *_uprights(parameters)]
    half = solid("frame_front", "carbon", merge(parts), "chassis_half")
    return [
        half,
        replace(half.half_turn(), name="frame_rear"),
        *_board(),
        *_actuators(parameters),
    ]


def _edges(parameters: HamrParameters) -> tuple[float, float, float, float]:
    """x of the nose, y of the side, x of its end, z of its lower edge."""
    loop = {row.name: mm(row.p_A) for row in parameters.loops}
    return (
        float(mm(parameters.number("body_length"))) / 2,
        float(loop["qs3"][1]),
        float(loop["qs3"][0]) - HINGE_GAP,
        float(loop["ql3"][2]) + HINGE_GAP,
    )


def _plates(parameters: HamrParameters) -> list[Mesh]:
    """The front halves of the top and bottom plates."""
    nose, side, hip, _ = _edges(parameters)
    outer = side + 0.25
    edge = [(nose, 3.6), (20.3, 5.9), (15.6, 8.6), (hip + 0.4, outer), (0, outer)]
    lid = plate(
        rounded(symmetric(edge, 1), [0.8, 0.8, 0.8, 0.8, 0, 0, 0.8, 0.8, 0.8, 0.8], 1),
        _two(
            rounded(rectangle(3.9, 0.8, 11.6, 5.6), 0.5, 1),
            rounded([(6.5, 6.3), (11.9, 6.3), (11.9, 9.0), (7.4, 9.0)], 0.5, 1),
            rounded([(12.6, 0.8), (14.4, 0.8), (14.4, 7.4), (12.6, 8.4)], 0.4, 1),
            rounded([(0.5, 7.2), (5.4, 7.2), (6.1, 9.0), (0.5, 9.0)], 0.5, 1),
        ),
        thickness=FRAME,
        origin=(0, 0, TOP + FRAME / 2),
    )
    edge = [(BULKHEAD + 0.2, 3.4), (12.4, 5.7), (0, 5.7)]
    floor = plate(
        rounded(symmetric(edge, 1), [0.6, 0.6, 0, 0, 0.6, 0.6], 1),
        _two(
            rounded(rectangle(3.2, 0.8, 11.4, 4.7), 0.5, 1),
            rounded(rectangle(12.2, 0.8, 14.6, 3.2), 0.5, 1),
        ),
        thickness=FRAME,
        origin=(0, 0, BOTTOM - FRAME / 2),
    )
    return [lid, floor]


def _uprights(parameters: HamrParameters) -> list[Mesh]:
    """The left side wall, and front rib, bulkhead and keels."""
    nose, side, hip, below = _edges(parameters)
    t = plate_thickness(parameters)
    windows = [(1.8, 1.1), (6.0, 1.1), (5.4, 2.75), (1.8, 2.75)]
    others = [(6.8, 1.1), (11.4, 1.1), (10.6, 2.75), (6.2, 2.75)]
    wall = plate(
        [(-hip, below), (hip, below), (hip, TOP), (-hip, TOP)],
        [
            rounded([(s * u, v) for u, v in window], 0.35, 1)
            for window in (windows, others)
            for s in (1, -1)
        ],
        thickness=t,
        plane="xz",
        origin=(0, side - t / 2, 0),
    )
    arm = [(5.5, BOTTOM), (5.9, -0.4), (side - t, below + 0.3), (side - t, TOP)]
    gap = [(6.2, 0.6), (8.9, 1.4), (8.9, TOP - 0.5), (6.2, TOP - 0.5)]
    rib = plate(
        symmetric(arm, 0),
        [rounded([(s * u, v) for u, v in gap], 0.4, 1) for s in (1, -1)],
        thickness=FRAME,
        plane="yz",
        origin=(RIB, 0, 0),
    )
    bulkhead = plate(
        symmetric([(3.5, BOTTOM), (7.6, TOP)], 0),
        [rounded(symmetric([(2.3, BOTTOM + 0.9), (5.2, TOP - 0.9)], 0), 0.6, 1)],
        thickness=FRAME,
        plane="yz",
        origin=(BULKHEAD, 0, 0),
    )
    tip, low = nose - 1.0, BULKHEAD + 0.8
    keel = plate(
        [(BULKHEAD, BOTTOM), (tip, TOP - 0.5), (tip, TOP), (BULKHEAD, TOP)],
        [rounded([(low, -1.7), (tip - 1.9, TOP - 0.8), (low, TOP - 0.8)], 0.4, 1)],
        thickness=FRAME,
        plane="xz",
        origin=(0, 3.3, 0),
    )
    return [wall, rib, bulkhead, keel, keel.mirrored(1)]


def _two(*windows):
    """Each window on either side."""
    return [[(u, s * v) for u, v in window] for window in windows for s in (1, -1)]


def _board() -> list[Piece]:
    """The circuit board: front and rear boards, a spine, and the drivers' board."""
    z = TOP + FRAME
    quarter = [(21.9, 3.2), (19.9, 5.2), (15.0, 7.9), (15.0, 0.55), (3.3, 0.55)]
    quarter += [(3.3, 6.4)]
    outline = symmetric(symmetric(quarter, 0), 1)
    board = plate(outline, thickness=BOARD, origin=(0, 0, z + BOARD / 2))
    top = z + BOARD
    pads = [
        box((x - 0.22, s * 5.4 - 0.45, top), (x + 0.22, s * 5.4 + 0.45, top + 0.03))
        for x in np.linspace(-2.4, 2.4, 6)
        for s in (1, -1)
    ]
    pads += [
        box((x - 0.4, y - 0.22, top), (x + 0.4, y + 0.22, top + 0.03))
        for y in np.linspace(-2.4, 2.4, 6)
        for x in (-20.9, 20.9)
    ]
    pads += [
        box((min(a, b), y - 0.08, top), (max(a, b), y + 0.08, top + 0.015))
        for y in (-0.25, 0.25)
        for a, b in ((3.0, 16.0), (-16.0, -3.0))
    ]
    chips = [
        ("driver", (4.0, 4.0, 0.75), (0, 0)),
        ("front_chip", (2.6, 2.6, 0.6), (17.3, 0)),
        ("rear_chip_left", (2.2, 1.8, 0.55), (-17.2, 2.4)),
        ("rear_chip_right", (2.2, 1.8, 0.55), (-17.2, -2.4)),
    ]
    parts = [(name, "chip", size, at) for name, size, at in chips]
    parts += [
        (f"{name}_leads", "solder", (x + 0.5, y + 0.5, 0.15), at)
        for name, (x, y, _), at in chips
    ]
    parts.append(("front_sensor", "solder", (1.4, 1.4, 0.5), (18.0, 3.6)))
    parts += [
        (f"capacitor_{k}", "passive", (0.5, 0.9, 0.45), (x, y))
        for k, (x, y) in enumerate(
            (
                *((-2.4, 3.6), (-1.2, 3.6), (0, 3.6), (1.2, 3.6), (2.4, 3.6)),
                *((-1.8, -3.6), (0, -3.6), (1.8, -3.6), (16.0, -4.6), (17.2, -4.6)),
                *((-16.0, 5.2), (-16.0, -5.2), (-19.2, 0)),
            )
        )
    ]
    return [
        solid("board", "board", board, "board"),
        solid("pads", "gold", merge(pads), "pads"),
        *(
            block(name, color, size, (x, y, top + size[2] / 2))
            for name, color, size, (x, y) in parts
        ),
    ]


def _actuators(parameters: HamrParameters) -> list[Piece]:
    pieces = []
    for kind, joint in (("s", "qsact"), ("l", "qlact")):
        drawn = actuator_pieces(parameters, kind)
        for leg in LEGS:
            p = mm(joint_origin(leg, joint, parameters))
            front = mirror(leg)[0] > 0
            for piece in drawn:
                placed = piece if front else piece.half_turn()
                at = tuple(np.add(placed.p, p).tolist())
                pieces.append(replace(placed, name=f"{leg}{kind}_{piece.name}", p=at))
    return pieces
