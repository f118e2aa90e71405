"""Which vertices of a skin are glued to which link, at its bracing.

The paper's "bracing units" (section 6.2, Fig. 9): printed parts between skin and
skeleton; the glue vertices are those that touch them. Here: of the vertices near a
plate (:mod:`~drakebots.design.bracing.plates`), away from the joints (folds), `target`
are chosen, spread evenly; each belongs to the link of the plate nearest to it. Where
the skeleton still has a template's rings, a vertex belongs to the link whose axis is
nearest, near a ring's station. Vertices above a sole are glued to the foot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.geometry import Surface
from drakebots.design.skeleton import Link, Plate, Skeleton, Solid

# Which vertices a bracing unit can hold: a limb's lie around that limb.
#
# The link whose axis is nearest is not always the one a vertex belongs to: a belly
# lies nearer to the thighs than to the middle of the torso. Glued to them it would hold
# both legs together.

REACH = 1.5
"""A limb's vertices end at this many times its radius from its axis."""

SECTORS = 24
"""Around a link's axis, in which its radius is measured."""

MIDDLE = (0.25, 0.9)
"""Of a link's length, where it is measured: away from the bent skin of its joints."""


def around_limbs(vertices: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    """Whether a vertex may be glued to the link whose axis is nearest (n,).

    Those of torso, struts, feet and tail may. Those of a limb's upper and lower links
    may within REACH times the limb's radius, the median over SECTORS around the axis
    of the nearest vertex, which a neighbouring belly or leg does not change.

    Args:
        vertices: of the skin's inside, at rest (n, 3) [m].
        skeleton: inside it.
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
        middle = (share >= MIDDLE[0]) & (share <= MIDDLE[1])
        able[mine] = away <= REACH * _radius(away[middle], angle[middle])
    return able


def _distance(points, p_A, p_B):
    d = p_B - p_A
    s = np.clip((points - p_A) @ d / (d @ d), 0, 1)
    return np.linalg.norm(points - p_A - s[:, None] * d, axis=1)


def _polar(points, link: Link):
    """Share of a link's length, distance from its axis, angle about it (n,)."""
    along = (link.p_WB - link.p_WA) / link.length
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    side /= np.linalg.norm(side)
    offset = points - link.p_WA
    x, y = offset @ side, offset @ np.cross(along, side)
    return offset @ along / link.length, np.hypot(x, y), np.arctan2(y, x)


def _radius(away, angle) -> float:
    """Median over the sectors of the nearest vertex; inf without vertices."""
    if not len(away):
        return np.inf
    sector = np.floor((angle + np.pi) / (2 * np.pi) * SECTORS).astype(int) % SECTORS
    nearest = np.full(SECTORS, np.inf)
    np.minimum.at(nearest, sector, away)
    return float(np.median(nearest[np.isfinite(nearest)]))


@dataclass(frozen=True)
class _Axis:
    link: int
    p_WA: np.ndarray
    p_WB: np.ndarray
    stations: tuple[float, ...]


def brace_vertices(
    vertices: np.ndarray,
    skeleton: Skeleton,
    target: int,
    *,
    radius: float = 0.02,
    touch: float = 0.01,
    joint_clearance: float = 0.025,
    inner: np.ndarray | None = None,
    least: int = 1,
) -> dict[str, np.ndarray]:
    """Chooses the glue vertices of a skin at rest.

    Args:
        vertices: of the skin, in the robot's frame at rest (n, 3) [m].
        skeleton: inside it.
        target: number of vertices to glue; met exactly where there are as many.
        radius: half the length of a ring's region along its link [m]; for rings.
        touch: farthest that a vertex may be from the plate it is glued to [m], for
            plates; about an edge of the mesh.
        joint_clearance: distance kept from a joint, along the axes of the links
            that meet there [m]; half the length of a folding region.
        inner: whether a vertex lies on the skin's inside, where bracing units
            touch it (n,); all by default.
        least: vertices of a link that has a ring or plate, where there are as many.

    Returns:
        By link, the vertices glued to it, ascending; on one link each.

    Raises:
        InvalidInput: for a target that is not > 0, fewer vertices near the bracing
            than asked for (names how many there are and the remedy), or none near
            the plates of a link.
    """
    vertices = np.asarray(vertices, float)
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.isfinite(vertices).all():
        raise InvalidInput(
            f"bracing: vertices of shape {vertices.shape}, needs (n, 3) finite numbers"
        )
    if target <= 0 or not (min(radius, touch) > 0 and joint_clearance >= 0):
        raise InvalidInput(
            "bracing: target, radius and touch must be > 0, joint_clearance >= 0"
        )
    allowed = np.ones(len(vertices), bool) if inner is None else np.asarray(inner, bool)
    if allowed.shape != (len(vertices),):
        raise InvalidInput(f"bracing: inner has shape {allowed.shape}, one a vertex")
    plated = any(isinstance(s, Plate) for k in skeleton.links for s in k.solids)
    if plated:
        owner, able = _at_plates(vertices, skeleton, touch, joint_clearance)
    else:
        owner, able = _owners(vertices, skeleton, radius, joint_clearance)
    candidates = np.flatnonzero(able & allowed)
    if len(candidates) < target:
        what, reach = ("touch", touch) if plated else ("radius", radius)
        raise InvalidInput(
            f"bracing: {len(candidates)} vertices lie near the rings of "
            f"{skeleton.name}, {target} are asked for; take a {what} larger than "
            f"{reach:.3g} m, a smaller joint_clearance or a finer skin"
        )
    groups = [candidates[owner[candidates] == k] for k in range(len(skeleton.links))]
    for link, group in zip(skeleton.links, groups):
        if not len(group) and any(isinstance(s, Plate) for s in link.solids):
            raise InvalidInput(
                f"bracing: no vertex within {1e3 * touch:.1f} mm of the plates of "
                f"{link.name} can be glued; move its stations away from the folds"
            )
    shares = _shares([len(g) for g in groups], target, least)
    return {
        link.name: np.sort(group[_spread(vertices[group], share)])
        for link, group, share in zip(skeleton.links, groups, shares)
        if share
    }


def mean_edge(surface: Surface) -> float:
    """Of a surface's triangles [m]."""
    corners = surface.vertices[surface.triangles]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())


def glue_distance(
    skeleton: Skeleton, vertices: np.ndarray, glue: Mapping[str, np.ndarray]
) -> float:
    """The largest distance of a glue vertex from the plates of its link [m].

    Args:
        skeleton: with plates.
        vertices: of the skin at rest (n, 3) [m].
        glue: vertices by link.
    """
    return max(
        float(plate_distances(vertices[ids], skeleton.link(name)).max())
        for name, ids in glue.items()
    )


def plate_distances(vertices: np.ndarray, link: Link) -> np.ndarray:
    """From points to a link's bracing plates or its foot's plate (n,) [m].

    Args:
        vertices: in the robot's frame at rest (n, 3) [m].
        link: inf everywhere for one without plates.
    """
    p_B = np.asarray(vertices, float) - link.origin
    best = np.full(len(p_B), np.inf)
    for solid in link.solids:
        if isinstance(solid, Plate):
            best = np.minimum(best, solid.distance(p_B))
        elif solid.name == "plate":
            best = np.minimum(best, _box_distance(solid, p_B))
    return best


def _box_distance(solid: Solid, p_B):
    away = np.abs((p_B - solid.p_BG) @ solid.R_BG) - solid.size / 2
    return np.linalg.norm(np.maximum(away, 0.0), axis=1)


def _at_plates(vertices, skeleton, touch, joint_clearance):
    """The link of the plate nearest to each vertex, and whether it touches that."""
    distance = np.array([plate_distances(vertices, k) for k in skeleton.links])
    owner = np.argmin(distance, axis=0)
    able = ~_in_fold(vertices, skeleton, owner, joint_clearance)
    _soles(vertices, skeleton, owner, able)
    near = distance[owner, np.arange(len(vertices))] <= touch
    return owner, able & near


def _owners(vertices, skeleton, radius, joint_clearance):
    """The link of each vertex, and whether it lies near one of its rings."""
    axes = [axis for k, link in enumerate(skeleton.links) for axis in _axes(k, link)]
    distance = np.empty((len(vertices), len(axes)))
    near = np.empty((len(vertices), len(axes)), bool)
    for column, axis in enumerate(axes):
        d = axis.p_WB - axis.p_WA
        s = (vertices - axis.p_WA) @ d / (d @ d)
        foot = axis.p_WA + np.clip(s, 0, 1)[:, None] * d
        distance[:, column] = np.linalg.norm(vertices - foot, axis=1)
        away = np.abs(s[:, None] - np.array(axis.stations)) * np.linalg.norm(d)
        near[:, column] = (away <= radius).any(axis=1)
    best = np.argmin(distance, axis=1)
    rows = np.arange(len(vertices))
    owner = np.array([axis.link for axis in axes])[best]
    able = near[rows, best] & ~_in_fold(vertices, skeleton, owner, joint_clearance)
    _soles(vertices, skeleton, owner, able)
    return owner, able


def _axes(k: int, link: Link):
    # A hip is all joint: nothing is glued to it, but it owns what lies around it.
    yield _Axis(k, link.p_WA, link.p_WB, link.stations or (np.inf,))
    for p_WA, p_WB in link.struts:
        yield _Axis(k, p_WA, p_WB, (0.6, 1.0))


def _in_fold(vertices, skeleton, owner, clearance):
    """Whether a vertex is near a joint of its link, along its axis or the other's."""
    fold = np.zeros(len(vertices), bool)
    index = {link.name: k for k, link in enumerate(skeleton.links)}
    for hinge in skeleton.hinges:
        child = skeleton.link(hinge.child)
        parent = skeleton.link(hinge.parent)
        for link in (child, parent):
            mine = owner == index[link.name]
            if link.parent is None:
                # The torso's axis does not pass its joints: a ball around them.
                away = np.linalg.norm(vertices - hinge.p_WJ, axis=1)
                fold |= mine & (away <= 2 * clearance)
                continue
            d = (link.p_WB - link.p_WA) / link.length
            away = np.abs((vertices - hinge.p_WJ) @ d)
            fold |= mine & (away <= clearance)
    return fold


def _soles(vertices, skeleton, owner, able):
    """Glues what lies on a foot's plate; folds do not reach it."""
    index = {link.name: k for k, link in enumerate(skeleton.links)}
    for sole in skeleton.soles:
        link = skeleton.link(sole.link)
        p = vertices - (link.origin + sole.p_BP[4])
        # As high as the plate's top, with the sole's skin below.
        top = max(
            (s.p_BG[2] + s.size[2] / 2 for s in link.solids if s.name == "plate"),
            default=0.0,
        )
        height = top - sole.p_BP[4, 2]
        on = (np.abs(p[:, 2]) <= height + 1e-9) & (
            np.abs(p[:, :2]) <= np.array(sole.size) / 2 + 0.012
        ).all(axis=1)
        owner[on] = index[sole.link]
        able[on] = True
        able[(owner == index[sole.link]) & ~on] = False


def _shares(sizes, target, least=1):
    """Splits a target in proportion to sizes, by largest remainders."""
    sizes = np.array(sizes)
    exact = target * sizes / sizes.sum()
    share = np.floor(exact).astype(int)
    # Every link that has a ring gets a few, if the target allows.
    least = min(least, target // max(np.count_nonzero(sizes), 1))
    floor = np.minimum(least, sizes)
    share = np.minimum(np.maximum(share, floor), sizes)
    while share.sum() < target:
        share[np.argmax(np.where(share < sizes, exact - share, -np.inf))] += 1
    while share.sum() > target:
        share[np.argmax(np.where(share > floor, share - exact, -np.inf))] -= 1
    return share


def _spread(points, count):
    """Indices of `count` points far from each other (farthest-point sampling)."""
    if not count:
        return np.zeros(0, dtype=int)
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        step = np.linalg.norm(points - points[chosen[-1]], axis=1)
        distance = np.minimum(distance, step)
        distance[chosen] = -1.0
    return np.array(chosen)
