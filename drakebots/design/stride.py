"""Puts the legs of an animal in mid-stride side by side, where a robot's are at rest.

A robot's left and right limbs are mirror images at rest; a scanned or modelled animal
often walks, lifts a foot or spreads a leg. Of a pair of legs with the lines L(s) and
R(s) of their centres, from the foot (s = 0) to where they meet the body (s = 1), both
are moved to

    M(s) = (L(s) + P R(s)) / 2,    P the reflection across y = 0,

with their feet on the ground; y = 0 is the plane of symmetry of the trunk. Sections
keep their shape and stay horizontal, so that a leg that was tilted by 25 degrees
becomes a tenth thicker in that direction. The body follows smoothly: beside the legs,
up to the height of the hips, the displacement u of the surface is harmonic on its graph
of edges, sum_j (u_j - u_i) / |x_j - x_i| = 0.

    animal = side_by_side(stand(surface))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from drakebots.core.errors import NoSolution
from drakebots.design.animal import Animal, Cells, Leg, interpolated, stand
from drakebots.design.geometry import Surface

LEAST = 0.1
"""Distance of a leg from its mean line, over its height, below which a pair stands side
by side: 6 degrees."""

LOWEST = 0.35
"""Height up to which legs must be distinct to be moved, over their height."""

_HIPS = 0.35
"""Height of the hips above the legs' tops, over the legs' height."""

_NEAR = 0.6
"""Length of the body that follows a leg, to its front and rear, over its height."""

_FOOT = 0.2
"""Height of a foot, over its leg's."""

_SHARES = np.linspace(0.0, 1.0, 101)
"""Values of s at which mean lines are made."""

_MIRROR = np.array([1.0, -1.0, 1.0])


def side_by_side(animal: Animal) -> Animal:
    """The animal with each pair of legs side by side; the same if they are already.

    Args:
        animal: standing, with its legs.

    Returns:
        The animal with the moved surface, and a note for each pair that was moved.

    Raises:
        NoSolution: when a leg that must be moved is joined with another far below the
            body, or the moved surface has no four legs.
    """
    moved, notes = {}, []
    surface, legs = _centred(animal)
    legs = {name: _without_belly(leg) for name, leg in legs.items()}
    for end, name in (("F", "front"), ("R", "hind")):
        left, right = legs[end + "L"], legs[end + "R"]
        shifts = _shifts(left, right)
        height = (left.top + right.top) / 2
        most = max(float(np.linalg.norm(s, axis=1).max()) for s in shifts)
        if most < LEAST * height:
            continue
        moved |= {end + "L": shifts[0], end + "R": shifts[1]}
        share = 100 * most / height
        notes.append(
            f"the {name} legs differ left and right: they are moved side by side, each "
            f"by up to {share:.0f} % of its height"
        )
    if not moved:
        return animal
    surface = _moved(surface, legs, moved)
    try:
        found = stand(surface, "x", "z")
    except NoSolution as error:
        raise NoSolution(f"{error} (after {'; '.join(notes)})") from None
    # At a top that is one side's only, the two sides would differ again.
    legs = {name: _without_belly(leg) for name, leg in found.legs.items()}
    return replace(found, legs=legs, notes=(*animal.notes, *notes))


def _centred(animal: Animal) -> tuple[Surface, dict[str, Leg]]:
    """Surface and legs with y = 0 where most of the body is symmetric.

    An animal is placed with y = 0 in the middle of its feet, which is nearer to a leg
    that is spread. Its plane of symmetry is the one across which most voxels have an
    image inside: half the peak of sum_xz inside(y) * inside(y), where * convolves. If
    the middle of the feet is within a voxel of it, y = 0 stays.
    """
    cells = Cells.of(animal.surface)
    h, n = cells.h, 2 * cells.inside.shape[1]
    f = np.fft.rfft(cells.inside.astype(np.float32), n, axis=1)
    images = np.fft.irfft((f**2).sum(axis=(0, 2)), n)
    k = int(np.argmax(images))
    a, b, c = images[[k - 1, k, (k + 1) % n]]
    y = cells.origin[1] + h * (k + (a - c) / (2 * (a - 2 * b + c))) / 2
    if abs(y) < h:
        return animal.surface, dict(animal.legs)
    shift = np.array([0.0, y, 0.0])
    legs = {name: leg.moved(-shift) for name, leg in animal.legs.items()}
    return Surface(animal.surface.vertices - shift, animal.surface.triangles), legs


def _without_belly(leg: Leg) -> Leg:
    """A leg up to where a belly joins its sections, and their centre jumps.

    The belly lies on the plane of symmetry; a jump alone does not decide, since the
    centre of a shin that is nearly level moves by more than its radius, too.
    """
    joined = int(np.argmin(leg.across[::-1]))  # number of the highest that reach it
    end = max(len(leg.line) - joined, 2)
    return replace(leg, line=leg.line[:end], across=leg.across[:end])


def _shifts(left: Leg, right: Leg) -> tuple[np.ndarray, np.ndarray]:
    """Displacements from both legs' lines to their mean line (n, 3), (k, 3) [m]."""
    mean = (_at(left, _SHARES) + _at(right, _SHARES) * _MIRROR) / 2
    mean[:, 2] = _SHARES * (left.top + right.top) / 2  # from the ground up
    shifts = []
    for leg, mirror in ((left, 1.0), (right, _MIRROR)):
        s = _share(leg)
        shifts.append(interpolated(s, _SHARES, mean) * mirror - leg.line)
    return shifts[0], shifts[1]


def _share(leg: Leg) -> np.ndarray:
    """Share of the way from foot to top of the points of a line (n,)."""
    z = leg.line[:, 2]
    return (z - z[0]) / (z[-1] - z[0])


def _at(leg: Leg, share: np.ndarray) -> np.ndarray:
    """Points of a line at shares of the way to its top (n, 3) [m]."""
    return interpolated(share, _share(leg), leg.line)


def _moved(
    surface: Surface, legs: Mapping[str, Leg], shifts: Mapping[str, np.ndarray]
) -> Surface:
    """The surface whose legs are displaced as their lines, and whose body follows."""
    x = surface.vertices
    graph = _graph(surface)
    vertices = _legs_of(legs, set(shifts), x, graph)
    u, free, own = np.zeros_like(x), np.zeros(len(x), bool), np.zeros(len(x), bool)
    for name, leg in legs.items():
        leg_only = vertices[name]
        own[leg_only] = True
        if name not in shifts:
            continue
        u[leg_only] = interpolated(x[leg_only, 2], leg.line[:, 2], shifts[name])
        height = leg.top - leg.line[0, 2]
        near = np.abs(x[:, 0] - leg.line[-1, 0]) < _NEAR * height
        low = x[:, 2] < leg.top + _HIPS * height
        free |= near & low & (np.sign(leg.line[-1, 1]) * x[:, 1] > 0)
    fixed, free = np.flatnonzero(own | ~free), np.flatnonzero(free & ~own)
    if len(free):
        degree = np.asarray(graph.sum(axis=1)).ravel()
        L = csr_array(diags_array(degree) - graph)[free]
        u[free] = spsolve(L[:, free].tocsc(), -(L[:, fixed] @ u[fixed]))
    return Surface(x + u, surface.triangles)


def _graph(surface: Surface) -> csr_array:
    """Inverse lengths of the edges, symmetric (n, n) [1/m]."""
    x = surface.vertices
    i, j = surface.edges.T
    weight = 1 / np.maximum(np.linalg.norm(x[i] - x[j], axis=1), 1e-9)
    n = len(x)
    one = coo_array((weight, (i, j)), shape=(n, n)).tocsr()
    return one.maximum(one.T).tocsr()


def _legs_of(
    legs: Mapping[str, Leg], moved: set[str], x: np.ndarray, graph: csr_array
) -> dict[str, np.ndarray]:
    """Vertices of each leg, as far up as no moved leg is connected with one below it.

    Raises:
        NoSolution: when a moved leg is connected with another below LOWEST, or has no
            vertices.
    """
    joined: list[str] = []
    for share in np.arange(1.0, LOWEST - 0.01, -0.05):
        found = {k: _below(leg, x, graph, share) for k, leg in legs.items()}
        if empty := [name for name in moved if not len(found[name])]:
            raise NoSolution(
                f"surface: the foot of the leg {min(empty)} has no vertices, so that "
                "it cannot be moved beside the other; give a finer surface"
            )
        joined = [
            f"{a} and {b}"
            for a, b in combinations(sorted(found), 2)
            if {a, b} & moved and np.intersect1d(found[a], found[b]).size
        ]
        if not joined:
            return found
    raise NoSolution(
        f"surface: the legs {', '.join(joined)} are joined below {100 * LOWEST:.0f} % "
        "of their height, so that they cannot be moved side by side; cut out of the "
        "surface what joins them, or let the animal stand straight"
    )


def _below(leg: Leg, x: np.ndarray, graph: csr_array, share: float) -> np.ndarray:
    """Vertices that are connected to a foot below a share of the leg's height (n,)."""
    bottom, height = leg.line[0, 2], leg.top - leg.line[0, 2]
    below = np.flatnonzero(x[:, 2] < bottom + share * height)
    _, part = connected_components(graph[below][:, below], directed=False)
    low, high = leg.sole
    over_sole = ((x[below, :2] >= low) & (x[below, :2] <= high)).all(axis=1)
    foot = part[over_sole & (x[below, 2] < bottom + _FOOT * height)]
    return below[part == np.bincount(foot).argmax()] if len(foot) else below[:0]
