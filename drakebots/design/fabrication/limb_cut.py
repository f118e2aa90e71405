"""Where a limb's skin is cut off: a plane near its hip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull, cKDTree

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.fabrication.demould import frame_of
from drakebots.design.geometry import Surface, contains, face_on_plane
from drakebots.design.skeleton import Link, Skeleton

ALONG = np.linspace(0.0, 0.7, 15)
"""Planes tried, as fractions of a limb's first long link from its hip."""

TILTS = np.radians([0.0, 15.0, 30.0])
"""Their leaning outward from across the limb."""

WIDER = 1.5
"""A limb's section may be so much larger than its least one, often in a groove."""


@dataclass(frozen=True)
class Opening:
    """A plane the piece was cut on.

    Attributes:
        p_W: a point of it [m].
        normal: unit, out of the piece.
        radius: the opening lies within this distance of p_W [m].
    """

    p_W: np.ndarray
    normal: np.ndarray
    radius: float = np.inf

    def faces(self, surface: Surface) -> np.ndarray:
        """Triangles of a surface that lie in the opening (m,)."""
        on = face_on_plane(surface, self.p_W, self.normal)
        middle = surface.vertices[surface.triangles].mean(axis=1)
        return on & (np.linalg.norm(middle - self.p_W, axis=1) < self.radius)


def limbs_of(skeleton: Skeleton) -> dict[str, list[Link]]:
    """Chains of links from the torso out, by the name of their piece."""
    torso = skeleton.links[0].name
    chains = {}
    for link in skeleton.links[1:]:
        if link.parent == torso:
            chain = [link]
            while below := [k for k in skeleton.links if k.parent == chain[-1].name]:
                chain.append(below[0])
            chains[link.name.split("_")[0]] = chain
    return chains


def middle_of(link: Link) -> np.ndarray:
    """Middle of a link's axis at rest (3,) [m]."""
    return (link.p_WA + link.p_WB) / 2


def cut_limb(whole, net: SurfaceNet, skeleton: Skeleton, name: str, folds: np.ndarray):
    """A limb's solid and its opening, near the hip.

    Of planes whose section is hardly wider than the limb's least one: first those
    clear of folds, then the nearest to the hip, then the least leaning.

    Args:
        whole, net: the filled body, and its surface's edges.
        skeleton, name: which limb.
        folds: corners of the folds' tets (k, 4, 3) [m].

    Raises:
        InvalidInput: when the limb's end is outside the body.
        NoSolution: when no plane parts the limb from the rest.
    """
    chains = limbs_of(skeleton)
    torso = skeleton.links[0]
    chain = chains[name]
    # A hip is too short to be cut across.
    link = next(k for k in chain if k.length > 0.04 or k is chain[-1])
    tip = middle_of(chain[-1])
    if not contains(whole, tip):
        raise InvalidInput(f"skin pieces: link {chain[-1].name} is not inside the skin")
    other = [middle_of(chains[k][-1]) for k in chains if k != name] + [middle_of(torso)]
    along = (link.p_WB - link.p_WA) / link.length
    out = np.array([0.0, np.sign(link.p_WA[1]), 0.0])
    out -= (out @ along) * along
    found = []
    for tilt in TILTS if np.linalg.norm(out) > 0.1 else TILTS[:1]:
        normal = np.cos(tilt) * along + np.sin(tilt) * out
        normal /= np.linalg.norm(normal)
        for s in ALONG * link.length:
            p = link.p_WA + s * along
            ring = net.section(p, normal, tip, other)
            if ring is not None:
                across = ring @ frame_of(normal)[:, :2]
                area = ConvexHull(across).volume
                crossed = _crosses(folds, p, normal, ring)
                reach = np.linalg.norm(ring - p, axis=1).max()
                found.append((crossed, s, abs(tilt), area, reach, p, normal))
    least = min((k[3] for k in found), default=0.0)
    for *_, area, reach, p, normal in sorted(found, key=lambda k: k[:3]):
        if area > WIDER * least:
            continue
        body = _beyond(whole, p, normal, tip)
        if body is not None and not any(contains(body, q) for q in other):
            return body, Opening(p, -normal, float(1.05 * reach))
    raise NoSolution(
        f"skin pieces: no plane across limb {name} parts it from the rest; its "
        "skin must narrow beyond the hip"
    )


def _beyond(whole, p, normal, tip):
    """The connected part beyond a plane that holds the tip; None if there is none."""
    ahead, _ = whole.split_by_plane(normal.tolist(), float(p @ normal))
    for part in ahead.decompose():
        if part.volume() > 0 and contains(part, tip):
            return part
    return None


class SurfaceNet:
    """The surface's edges, which tell quickly what lies beyond a plane."""

    def __init__(self, surface: Surface):
        self.x, f = surface.vertices, surface.triangles
        # Each edge once: a closed surface runs it both ways.
        edges = np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]])
        self.edges = edges[edges[:, 0] < edges[:, 1]]
        self.tree = cKDTree(self.x)

    def section(self, p, normal, tip, other):
        """Where the plane cuts the part with the tip (n, 3); None unless the plane
        parts it from the other points."""
        height = (self.x - p) @ normal
        a, b = self.edges.T
        ahead = (height[a] > 0) & (height[b] > 0)
        n = len(self.x)
        graph = coo_array((np.ones(ahead.sum()), (a[ahead], b[ahead])), shape=(n, n))
        label = connected_components(graph, directed=False)[1]
        mine = label == label[self.tree.query(tip)[1]]
        if mine[self.tree.query(np.array(other))[1]].any():
            return None
        cut = (mine[a] & (height[b] <= 0)) | (mine[b] & (height[a] <= 0))
        if (tip - p) @ normal <= 0 or cut.sum() < 3:
            return None
        i, j = a[cut], b[cut]
        t = height[i] / (height[i] - height[j])
        return self.x[i] + t[:, None] * (self.x[j] - self.x[i])


def _crosses(folds, p, normal, ring):
    """Whether the plane cuts tets of a fold within the ring it cuts."""
    if not len(folds):
        return False
    height = (folds - p) @ normal
    cut = (height.min(axis=1) < -1e-6) & (height.max(axis=1) > 1e-6)
    centre = ring.mean(axis=0)
    reach = np.linalg.norm(ring - centre, axis=1).max()
    near = np.linalg.norm(folds.mean(axis=1) - centre, axis=1) < 1.2 * reach
    return bool((cut & near).any())
