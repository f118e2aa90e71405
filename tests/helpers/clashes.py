"""Clashes: solids of a skeleton that overlap at rest."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import manifold3d as m
import numpy as np

from drakebots.design.skeleton import Plate, Skeleton


@dataclass(frozen=True)
class Clash:
    """Two solids that overlap.

    Attributes:
        A, B: the solids, as "link/solid".
        depth: depth of the overlap [m].
    """

    A: str
    B: str
    depth: float


def clashes(skeleton: Skeleton, tolerance: float = 1e-4) -> list[Clash]:
    """Pairs of solids of different links that overlap at rest, deepest first.

    Of a single link, a servo or the payload may clash with a bracing ring too. The
    depth of two boxes is that of the separating-axis test, where a box with a hole
    through it counts as its four sides. The depth of a plate's overlap is the shortest
    side, in the plate's frame, of the box around it.

    Args:
        skeleton: at rest.
        tolerance: depth up to which overlaps are left out [m].
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
        for a, s in A.boxes()
        for b, t in B.boxes()
    )


def _plate_overlap(plate, p, other, q) -> float:
    """Depth of the overlap of a plate at p and a solid at q [m]; 0 when apart."""
    if isinstance(other, Plate):
        bodies = [other.body().translate((q - other.p_BG).tolist())]
    else:
        bodies = [
            m.Manifold.cube(size.tolist(), True).transform(
                np.column_stack([other.R_BG, q + other.R_BG @ p_GV])
            )
            for size, p_GV in other.boxes()
        ]
    mine = plate.body().translate((p - plate.p_BG).tolist())
    deepest = 0.0
    for body in bodies:
        both = (mine ^ body).transform(np.column_stack([plate.R_BG.T, np.zeros(3)]))
        if not both.is_empty():
            box = np.array(both.bounding_box())
            deepest = max(deepest, float((box[3:] - box[:3]).min()))
    return deepest


def box_overlap(size_A, R_A, p_A, size_B, R_B, p_B) -> float:
    """Depth of the overlap of two boxes, by separating axes [m]; < 0 when apart."""
    edges = np.cross(R_A.T[:, None, :], R_B.T[None, :, :]).reshape(-1, 3)
    norm = np.linalg.norm(edges, axis=1)
    edges = edges[norm > 1e-6] / norm[norm > 1e-6, None]
    axes = np.vstack([R_A.T, R_B.T, edges])
    reach = np.abs(axes @ R_A) @ (size_A / 2) + np.abs(axes @ R_B) @ (size_B / 2)
    return float((reach - np.abs(axes @ (p_B - p_A))).min())
