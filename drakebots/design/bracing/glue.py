"""Choice of the vertices of a skin that are glued to each link.

The paper's "bracing units" (section 6.2, Fig. 9) are printed parts between skin and
skeleton; the glue vertices are those that touch them. Here, of the vertices near a
bracing plate (:mod:`~drakebots.design.bracing.plates`) and away from the joints, where
the skin folds, `target` are chosen, spread evenly; each belongs to the link of the
plate nearest to it. Vertices above a sole are glued to the foot.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.geometry import Surface, frame_of
from drakebots.design.skeleton import Link, Plate, Skeleton
from drakebots.design.skin import Shell, SkinSettings, in_folds

TOUCH = 0.5
"""Largest distance of glue from its plate, over the mean edge of the skin's inside."""

_LEAST = 6
"""Smallest number of glue vertices of a link with bracing; fewer let it slip."""

_REACH = 1.5
"""Distance from a limb's axis to its farthest vertices, over the limb's radius."""

_SECTORS = 24
"""Number of sectors around a link's axis in which its radius is measured."""

_MIDDLE = (0.25, 0.9)
"""Part of a link's length where its radius is measured: away from bent skin."""


def glue_by_link(
    shell: Shell, skeleton: Skeleton, skin: SkinSettings, *, fewer: bool = False
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Glue vertices by link: on the inside of the skin, on a plate, none in a fold.

    Args:
        shell: the wall.
        skeleton: skeleton with plates.
        skin: settings of the skin, with the number of vertices to glue.
        fewer: whether fewer vertices than requested will do, where plates touch fewer.

    Returns:
        the vertices by link, and a note where they are fewer.
    """
    mesh = shell.mesh
    inner = np.zeros(len(mesh.vertices), bool)
    inner[shell.inner_vertices] = True
    inner[np.unique(mesh.tets[in_folds(mesh)])] = False
    ids = np.flatnonzero(inner)
    inner[ids] = around_limbs(mesh.vertices[ids], skeleton)
    touch = TOUCH * mean_edge(shell.inner)
    glue = brace_vertices(mesh.vertices, skeleton, skin, touch, inner, fewer)
    count, notes = sum(map(len, glue.values())), []
    bare = [link.name for link in skeleton.links if link.name not in glue]
    bare = [name for name in bare if not name.endswith("_hip")]
    if count < skin.glue:
        notes.append(
            f"{count} vertices are glued, not {skin.glue}: plates touch no more"
        )
    if bare:
        notes.append(f"no skin is glued to {', '.join(bare)}")
    return glue, tuple(notes)


def brace_vertices(
    vertices: np.ndarray,
    skeleton: Skeleton,
    skin: SkinSettings,
    touch: float,
    inner: np.ndarray | bool = True,
    fewer: bool = False,
) -> dict[str, np.ndarray]:
    """Chooses the glue vertices of a skin at rest.

    Args:
        vertices: vertices of the skin, in the robot's frame at rest (n, 3) [m].
        skeleton: skeleton inside it, with plates.
        skin: settings of the skin: the number of vertices to glue, met exactly where
            there are as many, and the length of folding regions, which they leave out.
        touch: largest distance of a vertex from the plate it is glued to [m]; about
            an edge of the mesh.
        inner: whether a vertex lies on the skin's inside, where plates touch it (n,);
            all by default.
        fewer: whether fewer vertices than that, and none on a link, will do.

    Returns:
        By link, the vertices glued to it, ascending; each on one link.

    Raises:
        InvalidInput: for fewer vertices near the plates than requested (gives their
            number and the remedy), or for none near the plates of a link.
    """
    owner, able = _at_plates(vertices, skeleton, touch, skin.folds.length / 2 + 0.004)
    candidates, target = np.flatnonzero(able & inner), skin.glue
    if fewer and len(candidates):
        target = min(target, len(candidates))
    if len(candidates) < target:
        raise InvalidInput(
            f"bracing: {len(candidates)} vertices lie near the plates of "
            f"{skeleton.name}, and {target} are requested; use a touch larger than "
            f"{touch:.3g} m, shorter folds or a finer skin"
        )
    groups = [candidates[owner[candidates] == k] for k in range(len(skeleton.links))]
    for link, group in zip(skeleton.links, groups):
        plated = any(isinstance(s, Plate) for s in link.solids)
        if plated and not len(group) and not fewer:
            raise InvalidInput(
                f"bracing: no vertex within {1e3 * touch:.1f} mm of the plates of "
                f"{link.name} can be glued; move its stations away from the folds"
            )
    shares = _shares([len(g) for g in groups], target)
    return {
        link.name: np.sort(group[_spread(vertices[group], share)])
        for link, group, share in zip(skeleton.links, groups, shares)
        if share
    }


# The link that a vertex belongs to.


def _at_plates(vertices, skeleton, touch, joint_clearance):
    """The link of the plate nearest to each vertex, and whether it touches that plate.

    What lies on a foot's plate belongs to the foot; folds do not reach it.
    """
    distance = np.array([plate_distances(vertices, k) for k in skeleton.links])
    owner = np.argmin(distance, axis=0)
    index = {link.name: k for k, link in enumerate(skeleton.links)}
    able = ~_in_fold(vertices, skeleton, owner, index, joint_clearance)
    for sole in skeleton.soles:
        foot = skeleton.link(sole.link)
        p = vertices - (foot.origin + sole.p_BP[4])
        # Up to the top of the plate, with the sole's skin below it.
        top = max(
            (s.p_BG[2] + s.size[2] / 2 for s in foot.solids if s.name == "plate"),
            default=0.0,
        )
        on = np.abs(p[:, 2]) <= top - sole.p_BP[4, 2] + 1e-9
        on &= (np.abs(p[:, :2]) <= np.array(sole.size) / 2 + 0.012).all(axis=1)
        owner[on] = index[sole.link]
        able[on] = True
        able[(owner == index[sole.link]) & ~on] = False
    return owner, able & (distance[owner, np.arange(len(vertices))] <= touch)


def _in_fold(vertices, skeleton, owner, index, clearance):
    """Whether a vertex is near a joint of its link, along that link's axis."""
    fold = np.zeros(len(vertices), bool)
    for hinge in skeleton.hinges:
        for name in (hinge.child, hinge.parent):
            link, mine = skeleton.link(name), owner == index[name]
            if link.parent is None:
                # The torso's axis does not pass its joints: a ball around them.
                away = np.linalg.norm(vertices - hinge.p_WJ, axis=1)
                fold |= mine & (away <= 2 * clearance)
                continue
            d = (link.p_WB - link.p_WA) / link.length
            fold |= mine & (np.abs((vertices - hinge.p_WJ) @ d) <= clearance)
    return fold


def around_limbs(vertices: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    """Whether a vertex may be glued to the link whose axis is nearest (n,).

    That link is not always the one a vertex belongs to: a belly is nearer to the
    thighs than to the middle of the torso, and glued to them it would hold both legs
    together. So vertices may be glued to a limb's upper and lower links only within
    1.5 times the limb's radius. That is the median, over sectors around the axis, of
    the distance of the nearest vertex, which a belly or a leg beside it does not
    change.

    Args:
        vertices: vertices of the skin's inside, at rest (n, 3) [m].
        skeleton: skeleton inside it.
    """
    axes = [(k, link.p_WA, link.p_WB) for k, link in enumerate(skeleton.links)]
    axes += [(k, *s) for k, link in enumerate(skeleton.links) for s in link.struts]
    distance = np.stack([_distance(vertices, a, b) for _, a, b in axes], axis=1)
    owner = np.array([k for k, _, _ in axes])[distance.argmin(axis=1)]
    limbs = {sole.foot for sole in skeleton.soles}
    able = np.ones(len(vertices), bool)
    for k, link in enumerate(skeleton.links):
        limb, _, part = link.name.partition("_")
        if limb not in limbs or part not in ("upper", "lower"):
            continue
        mine = owner == k
        share, away, angle = _polar(vertices[mine], link)
        middle = (share >= _MIDDLE[0]) & (share <= _MIDDLE[1])
        able[mine] = away <= _REACH * _radius(away[middle], angle[middle])
    return able


def _distance(points, p_A, p_B):
    d = p_B - p_A
    s = np.clip((points - p_A) @ d / (d @ d), 0, 1)
    return np.linalg.norm(points - p_A - s[:, None] * d, axis=1)


def _polar(points, link: Link):
    """Share of a link's length, distance from its axis, angle about it (n,)."""
    x, y, z = ((points - link.p_WA) @ frame_of(link.p_WB - link.p_WA)).T
    return z / link.length, np.hypot(x, y), np.arctan2(y, x)


def _radius(away, angle) -> float:
    """Median over the sectors of the nearest vertex; inf without vertices."""
    if not len(away):
        return np.inf
    sector = np.floor((angle + np.pi) / (2 * np.pi) * _SECTORS).astype(int) % _SECTORS
    nearest = np.full(_SECTORS, np.inf)
    np.minimum.at(nearest, sector, away)
    return float(np.median(nearest[np.isfinite(nearest)]))


# Distances from plates.


def glue_distance(
    skeleton: Skeleton, vertices: np.ndarray, glue: Mapping[str, np.ndarray]
) -> float:
    """The largest distance of a glue vertex from the plates of its link [m].

    Args:
        skeleton: skeleton with plates.
        vertices: vertices of the skin at rest (n, 3) [m].
        glue: glue vertices by link.
    """
    return max(
        float(plate_distances(vertices[ids], skeleton.link(name)).max())
        for name, ids in glue.items()
    )


def plate_distances(vertices: np.ndarray, link: Link) -> np.ndarray:
    """Distance of points from the bracing plates of a link and the plate of a foot.

    Args:
        vertices: points in the robot's frame at rest (n, 3) [m].
        link: the link.

    Returns:
        distances (n,) [m]; inf for a link without plates.
    """
    p_B = np.asarray(vertices, float) - link.origin
    best = np.full(len(p_B), np.inf)
    for solid in link.solids:
        if isinstance(solid, Plate) or solid.name == "plate":
            best = np.minimum(best, solid.distance(p_B))
    return best


def mean_edge(surface: Surface) -> float:
    """Mean length of the edges of a surface's triangles [m]."""
    corners = surface.vertices[surface.triangles]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())


# Choosing evenly.


def _shares(sizes, target):
    """Splits a target in proportion to sizes, by largest remainders."""
    sizes = np.array(sizes)
    exact = target * sizes / sizes.sum()
    share = np.floor(exact).astype(int)
    # Every link with a plate gets a few, if the target allows.
    least = min(_LEAST, target // max(np.count_nonzero(sizes), 1))
    floor = np.minimum(least, sizes)
    share = np.minimum(np.maximum(share, floor), sizes)
    while share.sum() < target:
        share[np.argmax(np.where(share < sizes, exact - share, -np.inf))] += 1
    while share.sum() > target:
        share[np.argmax(np.where(share > floor, share - exact, -np.inf))] -= 1
    return share


def _spread(points, count):
    """Indices of `count` > 0 points far from each other, by farthest-point sampling."""
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        step = np.linalg.norm(points - points[chosen[-1]], axis=1)
        distance = np.minimum(distance, step)
        distance[chosen] = -1.0
    return np.array(chosen)
