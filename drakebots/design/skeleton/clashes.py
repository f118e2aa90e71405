"""Solids of a skeleton that overlap at rest."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import manifold3d as m
import numpy as np

from drakebots.design.skeleton.plates import Plate
from drakebots.design.skeleton.skeleton import Skeleton


@dataclass(frozen=True)
class Clash:
    """Two solids, "link/solid", and how deep they overlap [m]."""

    A: str
    B: str
    depth: float


def clashes(skeleton: Skeleton, tolerance: float = 1e-4) -> list[Clash]:
    """Pairs of solids of different links that overlap at rest, deepest first.

    Also a motor or payload and a bracing ring of one link. The depth is that of the
    separating-axis test; a solid with a hole through it counts as its four sides. Of
    a plate it is the least side, in its frame, of the box around the overlap.

    Args:
        skeleton: at rest.
        tolerance: overlaps up to this are left out [m].
    """
    rows = [
        (link.name, solid, link.origin + solid.p_BG)
        for link in skeleton.links
        for solid in link.solids
    ]
    found = []
    for (a, A, p), (b, B, q) in itertools.combinations(rows, 2):
        kinds = {A.kind, B.kind}
        if a == b and not ("rib" in kinds and kinds & {"servo", "payload"}):
            continue
        reach = np.linalg.norm(A.size) + np.linalg.norm(B.size)
        if np.linalg.norm(p - q) > reach / 2:
            continue
        depth = _depth(A, p, B, q)
        if depth > tolerance:
            found.append(Clash(f"{a}/{A.name}", f"{b}/{B.name}", float(depth)))
    return sorted(found, key=lambda clash: -clash.depth)


def _depth(A, p, B, q) -> float:
    if isinstance(A, Plate):
        return _plate_overlap(A, p, B, q)
    if isinstance(B, Plate):
        return _plate_overlap(B, q, A, p)
    return max(
        box_overlap(a, A.R_BG, p + A.R_BG @ s, b, B.R_BG, q + B.R_BG @ t)
        for a, s in solid_boxes(A)
        for b, t in solid_boxes(B)
    )


def _plate_overlap(plate, p, other, q) -> float:
    """Of a plate at p and a solid at q; 0 when apart."""
    if isinstance(other, Plate):
        bodies = [other.body().translate((q - other.p_BG).tolist())]
    else:
        bodies = [
            m.Manifold.cube(size.tolist(), True).transform(
                np.column_stack([other.R_BG, q + other.R_BG @ p_GV])
            )
            for size, p_GV in solid_boxes(other)
        ]
    mine = plate.body().translate((p - plate.p_BG).tolist())
    deepest = 0.0
    for body in bodies:
        both = (mine ^ body).transform(np.column_stack([plate.R_BG.T, np.zeros(3)]))
        if not both.is_empty():
            box = np.array(both.bounding_box())
            deepest = max(deepest, float((box[3:] - box[:3]).min()))
    return deepest


def solid_boxes(solid) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sizes and middles, in the solid's frame, of boxes that fill it.

    Four sides around a hole that goes through, else the outer box.
    """
    through = np.flatnonzero((solid.cavity >= solid.size) & (solid.cavity > 0))
    if not through.size:
        return [(solid.size, np.zeros(3))]
    a, b = (i for i in range(3) if i != through[0])
    sides = []
    for i, j, full in ((a, b, True), (b, a, False)):
        thick = (solid.size[i] - solid.hole[i]) / 2
        for sign in (1, -1):
            size, p = solid.size.copy(), np.zeros(3)
            size[i] = thick
            if not full:
                size[j] = solid.hole[j]
            p[i] = sign * (solid.size[i] - thick) / 2
            sides.append((size, p))
    return sides


def box_overlap(size_A, R_A, p_A, size_B, R_B, p_B) -> float:
    """Depth of two boxes' overlap by separating axes [m]; negative when apart."""
    edges = np.cross(R_A.T[:, None, :], R_B.T[None, :, :]).reshape(-1, 3)
    norm = np.linalg.norm(edges, axis=1)
    edges = edges[norm > 1e-6] / norm[norm > 1e-6, None]
    axes = np.vstack([R_A.T, R_B.T, edges])
    reach = np.abs(axes @ R_A) @ (size_A / 2) + np.abs(axes @ R_B) @ (size_B / 2)
    return float((reach - np.abs(axes @ (p_B - p_A))).min())
