"""The skin cut into the pieces that are cast: one a limb, two of the torso.

The filled body is cut by planes, one near each hip and one through the torso; of
each part the skin is the part less the cavity, the core the part within the cavity.
So the pieces' volumes add up to the shell's. Source: the paper, section 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.design.fabrication.demould import blocked, lifted
from drakebots.design.fabrication.limb_cut import (
    Opening,
    SurfaceNet,
    cut_limb,
    limbs_of,
    middle_of,
)
from drakebots.design.geometry import Surface, heavy_parts, to_manifold, to_surface
from drakebots.design.skeleton import Skeleton
from drakebots.design.skin import Shell
from drakebots.fem.mesh import TetMesh, surface_triangles


@dataclass(frozen=True)
class SkinPiece:
    """A piece of skin, at rest in the robot's frame.

    Attributes:
        name: e.g. "FL", "tail", "torso_left".
        skin: what is cast.
        filled: skin and the cavity within.
        core: the cavity within; None where there is none.
        openings: the planes it was cut on, a torso's own first.
    """

    name: str
    skin: Surface
    filled: Surface
    core: Surface | None
    openings: tuple[Opening, ...]

    @property
    def volume(self) -> float:
        """Of the skin [m^3]."""
        return self.skin.volume

    def on_openings(self, surface: Surface) -> np.ndarray:
        """Triangles of a surface that lie in the openings (m,)."""
        on = np.zeros(len(surface.triangles), bool)
        for opening in self.openings:
            on |= opening.faces(surface)
        return on


def skin_surfaces(mesh: TetMesh) -> tuple[Surface, Surface]:
    """Outer and inner surface of a wall of tets, both outward.

    Raises:
        InvalidInput: unless the boundary has just these two parts.
    """
    whole = to_manifold(Surface(mesh.vertices, surface_triangles(mesh)), "skin")
    parts = sorted(whole.decompose(), key=lambda part: part.volume())
    if len(parts) != 2 or not parts[0].volume() < 0 < parts[1].volume():
        raise InvalidInput(
            f"skin: its boundary has {len(parts)} parts, needs an outer and an inner"
        )
    inner, outer = map(to_surface, parts)
    return outer, Surface(inner.vertices, inner.triangles[:, ::-1])


def skin_pieces(
    shell: Shell | TetMesh | tuple[Surface, Surface], skeleton: Skeleton
) -> dict[str, SkinPiece]:
    """Cuts the skin; a limb or tail gets its foot's name, e.g. "FL" or "tail".

    A limb is cut where its section is a limb's, nearest the hip, where possible
    outside the folding regions. The torso is cut upright along its middle or
    level, whichever leaves less undercut in bowls pulled across the cut.

    Args:
        shell: or its mesh (region 1 the folds), or its outer and inner surface.
        skeleton: at rest, inside.

    Raises:
        InvalidInput: for surfaces that are open, or an inner one not inside.
        NoSolution: when no plane parts a limb from the rest (named).
    """
    outer, inner, folds = _surfaces(shell)
    whole, cavity = to_manifold(outer, "outer skin"), to_manifold(inner, "inner skin")
    if (cavity - whole).volume() > 1e-9 * whole.volume():
        raise InvalidInput("skin: the inner surface is not inside the outer one")
    limbs, openings, net = {}, {}, SurfaceNet(outer)
    for name in limbs_of(skeleton):
        limbs[name], openings[name] = cut_limb(whole, net, skeleton, name, folds)
    torso = whole
    for body in limbs.values():
        torso = torso - body
    total = torso.volume() + sum(body.volume() for body in limbs.values())
    if abs(total - whole.volume()) > 1e-6 * whole.volume():
        raise NoSolution("skin pieces: limbs overlap; part their skins")
    pieces = {
        name: _piece(name, body, cavity, (openings[name],))
        for name, body in limbs.items()
    }
    ends = tuple(replace(o, normal=-o.normal) for o in openings.values())
    return pieces | _cut_torso(torso, cavity, skeleton, ends)


def bowl_undercut(piece: SkinPiece) -> float:
    """Undercut of a bowl parted at its first opening, 0 to 1.

    The upper half leaves away from the opening, the lower half, with the core on
    it, through the opening. Area held back over area, of outside and inside.
    """
    d = -piece.openings[0].normal
    held = area = 0.0
    for surface, side, way, what in (
        (piece.filled, 1.0, d, piece.filled),
        (piece.core, -1.0, -d, piece.skin),
    ):
        if surface is None:
            continue
        use = ~piece.on_openings(surface)
        a = surface.areas[use]
        area += a.sum()
        held += a @ blocked(lifted(surface, side)[use], way, what)
    return float(held / area)


def _surfaces(shell):
    if isinstance(shell, tuple):
        outer, inner = shell
        return outer, inner, np.zeros((0, 4, 3))
    mesh = shell.mesh if isinstance(shell, Shell) else shell
    if isinstance(shell, Shell):
        outer, inner = shell.outer, shell.inner
    else:
        outer, inner = skin_surfaces(mesh)
    return outer, inner, mesh.vertices[mesh.tets[mesh.region == 1]]


def _piece(name, body, cavity, openings):
    skin, core = body - cavity, body ^ cavity
    return SkinPiece(
        name,
        to_surface(skin),
        to_surface(body),
        None if core.is_empty() else to_surface(core),
        openings,
    )


def _cut_torso(torso, cavity, skeleton, ends):
    """The two pieces with the least undercut."""
    middle = middle_of(skeleton.links[0])
    low, high = (np.array(torso.bounding_box()[k : k + 3]) for k in (0, 3))
    planes = [(np.array([0.0, 1.0, 0.0]), middle, ("torso_left", "torso_right"))]
    for share in (0.35, 0.45, 0.55, 0.65):
        p = np.array([middle[0], middle[1], low[2] + share * (high - low)[2]])
        planes.append((np.array([0.0, 0.0, 1.0]), p, ("torso_top", "torso_bottom")))
    best, least = None, np.inf
    for normal, p, names in planes:
        pair = {}
        for body, name, n in zip(
            torso.split_by_plane(normal.tolist(), float(p @ normal)),
            names,
            (-normal, normal),
        ):
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
