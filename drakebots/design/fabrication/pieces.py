"""The skin cut into the pieces that are cast: one for each limb, two of the torso.

The filled body is cut by planes, one near each hip and one through the torso. The skin
of a piece is that part less the cavity, its core the part of the cavity within it. So
the volumes of the pieces add up to the shell's. Source: the paper, section 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import ConvexHull, cKDTree

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.fabrication.demould import held_back
from drakebots.design.geometry import (
    Surface,
    contains,
    frame_of,
    heavy_parts,
    to_manifold,
    to_surface,
)
from drakebots.design.skeleton import Link, Skeleton
from drakebots.fem.mesh import connected_pieces

_ALONG = np.linspace(0.0, 0.7, 15)
"""Places of the planes that are tried, along a limb's first long link from its hip."""

_SHIFTS = 1e-4 * np.array([0, 1, -1, 2, -2])
"""Shifts of a plane that almost meets vertices or edges [m]."""

_TILTS = np.radians([0.0, 15.0, 30.0])
"""Angles by which these planes lean outward [rad]."""

_WIDER = 1.5
"""Largest area of a section over the limb's smallest, which is often in a groove."""


@dataclass(frozen=True)
class Opening:
    """A plane on which a piece was cut.

    Attributes:
        p_W: a point of the plane (3,) [m].
        normal: unit normal of the plane, out of the piece (3,).
        radius: distance from p_W within which the opening lies [m].
    """

    p_W: np.ndarray
    normal: np.ndarray
    radius: float = np.inf

    def faces(self, surface: Surface) -> np.ndarray:
        """Whether each triangle of a surface lies in the opening, to 0.1 um (m,)."""
        on = np.abs((surface.vertices - self.p_W) @ self.normal) < 1e-7
        near = np.linalg.norm(surface.middles - self.p_W, axis=1) < self.radius
        return on[surface.triangles].all(axis=1) & near


@dataclass(frozen=True)
class SkinPiece:
    """A piece of skin, at rest in the robot's frame.

    Attributes:
        name: its name, e.g. "FL", "tail", "torso_left".
        skin: surface of what is cast.
        filled: surface of the skin with the cavity within it.
        core: surface of that cavity; None where there is none.
        openings: planes on which it was cut; that through the torso comes first.
    """

    name: str
    skin: Surface
    filled: Surface
    core: Surface | None
    openings: tuple[Opening, ...]

    @property
    def volume(self) -> float:
        """Volume of the skin [m^3]."""
        return self.skin.volume

    def on_openings(self, surface: Surface) -> np.ndarray:
        """Whether each triangle of a surface lies in one of the openings (m,)."""
        on = np.zeros(len(surface.triangles), bool)
        for opening in self.openings:
            on |= opening.faces(surface)
        return on


def skin_pieces(
    outer: Surface,
    inner: Surface,
    skeleton: Skeleton,
    folds: np.ndarray = np.zeros((0, 4, 3)),
) -> dict[str, SkinPiece]:
    """Cuts a skin into pieces, by name: "FL", ... for limbs, "tail", "torso_left", ...

    A limb is cut near its hip, where its section is not much larger than elsewhere and,
    if possible, outside the folding regions. The torso is cut upright along its middle
    or level, whichever leaves less undercut in bowls pulled across the cut.

    Args:
        outer, inner: the skin's surfaces.
        skeleton: skeleton at rest inside it.
        folds: corners of the tets in folds (k, 4, 3) [m].

    Raises:
        InvalidInput: for surfaces that are open, or if the inner is not inside the
            outer.
        NoSolution: when no plane separates a limb (named) from the rest.
    """
    whole, cavity = to_manifold(outer, "outer skin"), to_manifold(inner, "inner skin")
    if (cavity - whole).volume() > 1e-9 * whole.volume():
        raise InvalidInput("skin: the inner surface is not inside the outer one")
    limbs, openings, net = {}, {}, _Net(outer)
    for name in limbs_of(skeleton):
        limbs[name], openings[name] = _cut_limb(whole, net, skeleton, name, folds)
    torso = whole
    for body in limbs.values():
        torso = torso - body
    total = torso.volume() + sum(body.volume() for body in limbs.values())
    if abs(total - whole.volume()) > 1e-6 * whole.volume():
        raise NoSolution("skin pieces: limbs overlap; separate their skins")
    pieces = {
        name: _piece(name, body, cavity, (openings[name],))
        for name, body in limbs.items()
    }
    ends = tuple(replace(o, normal=-o.normal) for o in openings.values())
    return pieces | _cut_torso(torso, cavity, skeleton, ends)


def bowl_undercut(piece: SkinPiece) -> float:
    """Undercut of a bowl whose mould parts at its first opening, 0 to 1.

    The upper half leaves away from the opening; the lower half, with the core on it,
    leaves through the opening. The undercut is the area held back over all area, of
    outside and inside.
    """
    d = -piece.openings[0].normal
    both = held_back(piece.filled, d, ~piece.on_openings(piece.filled))
    if piece.core is not None:
        inside = ~piece.on_openings(piece.core)
        both += held_back(piece.core, -d, inside, piece.skin, -1.0)
    return float(both[0] / both[1])


def _piece(name, body, cavity, openings):
    skin, core = body - cavity, body ^ cavity
    inside = None if core.is_empty() else to_surface(core)
    return SkinPiece(name, to_surface(skin), to_surface(body), inside, openings)


def _cut_torso(torso, cavity, skeleton, ends):
    """The two pieces of the torso, by the plane with the least undercut."""
    middle = _middle_of(skeleton.links[0])
    low, high = (np.array(torso.bounding_box()[k : k + 3]) for k in (0, 3))
    planes = [(np.array([0.0, 1.0, 0.0]), middle, ("torso_left", "torso_right"))]
    for share in (0.35, 0.45, 0.55, 0.65):
        p = np.array([middle[0], middle[1], low[2] + share * (high - low)[2]])
        planes.append((np.array([0.0, 0.0, 1.0]), p, ("torso_top", "torso_bottom")))
    best, least = None, np.inf
    for normal, p, names in planes:
        pair = {}
        halves = torso.split_by_plane(normal.tolist(), float(p @ normal))
        for body, name, n in zip(halves, names, (-normal, normal)):
            parts = heavy_parts(body)
            if len(parts) != 1:
                break
            body = parts[0]
            filled = to_surface(body)
            near = tuple(o for o in ends if o.faces(filled).any())
            pair[name] = _piece(name, body, cavity, (Opening(p, n), *near))
        if len(pair) < 2 or any(
            len(heavy_parts(to_manifold(k.skin))) != 1 for k in pair.values()
        ):
            continue
        undercut = np.mean([bowl_undercut(piece) for piece in pair.values()])
        if undercut < least:
            best, least = pair, undercut
    if best is None:
        raise NoSolution("skin pieces: no plane cuts the torso into two pieces")
    return best


# Cutting off a limb by a plane near its hip.


def limbs_of(skeleton: Skeleton) -> dict[str, list[Link]]:
    """Chains of links from the torso outward, by the name of their piece."""
    torso = skeleton.links[0].name
    chains = {}
    for link in skeleton.links[1:]:
        if link.parent == torso:
            chain = [link]
            while below := [k for k in skeleton.links if k.parent == chain[-1].name]:
                chain.append(below[0])
            chains[link.name.split("_")[0]] = chain
    return chains


def _middle_of(link: Link) -> np.ndarray:
    """Middle of a link's axis at rest (3,) [m]."""
    return (link.p_WA + link.p_WB) / 2


def _cut_limb(whole, net: _Net, skeleton: Skeleton, name: str, folds: np.ndarray):
    """The solid of a limb, and its opening near the hip.

    Of the planes whose section is not much larger than the limb's smallest one, those
    clear of folds come first, then the nearest to the hip, then the least tilted.

    Args:
        whole: the filled body.
        net: edges of its surface.
        skeleton, name: the limb.
        folds: corners of the folds' tets (k, 4, 3) [m].

    Raises:
        InvalidInput: when the limb's end is outside the body.
        NoSolution: when no plane separates the limb from the rest.
    """
    chains = limbs_of(skeleton)
    torso = skeleton.links[0]
    chain = chains[name]
    # A hip is too short to be cut.
    link = next(k for k in chain if k.length > 0.04 or k is chain[-1])
    tip = _middle_of(chain[-1])
    if not contains(whole, tip):
        raise InvalidInput(f"skin pieces: link {chain[-1].name} is not inside the skin")
    other = [_middle_of(chains[k][-1]) for k in chains if k != name] + [
        _middle_of(torso)
    ]
    along = (link.p_WB - link.p_WA) / link.length
    out = np.array([0.0, np.sign(link.p_WA[1]), 0.0])
    out -= (out @ along) * along
    found = []
    for tilt in _TILTS if np.linalg.norm(out) > 0.1 else _TILTS[:1]:
        normal = np.cos(tilt) * along + np.sin(tilt) * out
        normal /= np.linalg.norm(normal)
        for s in _ALONG * link.length:
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
        if area > _WIDER * least:
            continue
        for shift in _SHIFTS:
            at = p + shift * normal
            body = _beyond(whole, at, normal, tip)
            if body is None or any(contains(body, q) for q in other):
                break
            if is_sound(whole - body):
                return body, Opening(at, -normal, float(1.05 * reach))
    raise NoSolution(
        f"skin pieces: no plane across limb {name} separates it from the rest; its "
        "skin must get narrower beyond the hip"
    )


def is_sound(body):
    """Whether a solid is one part, the same when its triangles are read again.

    Where a cut meets a vertex or an edge almost, it may leave triangles that are not.
    """
    again = to_manifold(to_surface(body))
    same = abs(again.volume() - body.volume()) < 1e-6 * body.volume()
    return same and len(heavy_parts(again)) == 1


def _beyond(whole, p, normal, tip):
    """The connected part beyond a plane that contains the tip, or None."""
    ahead, _ = whole.split_by_plane(normal.tolist(), float(p @ normal))
    for part in ahead.decompose():
        if part.volume() > 0 and contains(part, tip):
            return part
    return None


class _Net:
    """The edges of a surface, which show quickly what lies beyond a plane."""

    def __init__(self, surface: Surface):
        self.x, edges = surface.vertices, surface.edges
        # Each edge once: in a closed surface it has both directions.
        self.edges = edges[edges[:, 0] < edges[:, 1]]
        self.tree = cKDTree(self.x)

    def section(self, p, normal, tip, other):
        """Points where a plane cuts the part with the tip (n, 3) [m].

        Returns None unless the plane separates that part from the other points.
        """
        height = (self.x - p) @ normal
        a, b = self.edges.T
        ahead = (height[a] > 0) & (height[b] > 0)
        label = connected_pieces(self.edges[ahead], len(self.x))[1]
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
    """Whether a plane cuts tets of a fold near the ring in which it cuts the limb."""
    if not len(folds):
        return False
    height = (folds - p) @ normal
    cut = (height.min(axis=1) < -1e-6) & (height.max(axis=1) > 1e-6)
    centre = ring.mean(axis=0)
    reach = np.linalg.norm(ring - centre, axis=1).max()
    near = np.linalg.norm(folds.mean(axis=1) - centre, axis=1) < 1.2 * reach
    return bool((cut & near).any())
