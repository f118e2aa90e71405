"""The line inside a body: where limbs run, for the template to follow.

The body's voxels are thinned to curves (Lee, Kashyap and Chu 1994, in
scikit-image) in place of the mesh contraction the paper cites; twigs shorter than
the limb is thick are pruned and the branches smoothed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import map_coordinates
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra
from skimage.morphology import skeletonize

from drakebots.design.distance_grid import DistanceGrid
from drakebots.design.surface import Surface
from drakebots.errors import InvalidInput


@dataclass(frozen=True)
class SkeletalLine:
    """Points and edges of a curve graph inside a body.

    Attributes:
        points: (k, 3) [m].
        edges: (e, 2).
        radius: distance of each point from the skin (k,) [m].
        ends: points of one edge: feet, head, tail.
        junctions: points of three edges or more.
    """

    points: np.ndarray
    edges: np.ndarray
    radius: np.ndarray
    ends: np.ndarray
    junctions: np.ndarray

    def path(self, start: int, stop: int) -> np.ndarray:
        """Points of the shortest way along the line, both ends included."""
        graph = _graph(self.points, self.edges)
        _, before = dijkstra(
            graph, directed=False, indices=start, return_predecessors=True
        )
        if start != stop and before[stop] < 0:
            raise InvalidInput(f"skeletal line: no way from {start} to {stop}")
        way = [stop]
        while way[-1] != start:
            way.append(int(before[way[-1]]))
        return np.array(way[::-1])


def skeletal_line(
    body: DistanceGrid | Surface, spacing: float | None = None, smooth: int = 8
) -> SkeletalLine:
    """The skeletal line of a body.

    Args:
        body: signed distance, or a closed surface.
        spacing: of the voxels [m]; 1/100 of the body's length by default.
        smooth: passes that draw each point to the middle of its neighbours.

    Raises:
        InvalidInput: for a spacing that is not > 0 or leaves no voxel inside.
    """
    grid = body if isinstance(body, DistanceGrid) else DistanceGrid.from_surface(body)
    inside = np.argwhere(grid.values < 0)
    if not len(inside):
        raise InvalidInput("skeletal line: the body has no inside on its grid")
    low, high = inside.min(axis=0), inside.max(axis=0)
    length = (high - low).max() * grid.spacing
    spacing = length / 100 if spacing is None else spacing
    if not (np.isfinite(spacing) and spacing > 0):
        raise InvalidInput(f"skeletal line spacing {spacing} m: must be > 0")
    step = spacing / grid.spacing
    axes = [
        np.arange(a - 2 * step, b + 2 * step + step, step) for a, b in zip(low, high)
    ]
    where = np.stack(np.meshgrid(*axes, indexing="ij"))
    phi = map_coordinates(grid.values, where, order=1, mode="nearest")
    voxels = np.argwhere(skeletonize(phi < 0))
    if len(voxels) < 2:
        raise InvalidInput(
            f"skeletal line: {len(voxels)} voxels of {spacing * 1e3:g} mm are left; "
            "take a smaller spacing"
        )
    start = grid.origin + grid.spacing * np.array([a[0] for a in axes])
    points = start + spacing * voxels
    edges = _voxel_edges(voxels)
    points, edges = _largest(points, edges)
    points, edges = _prune(points, edges, -grid(points))
    points = _smooth(points, edges, smooth)
    degree = np.bincount(edges.ravel(), minlength=len(points))
    return SkeletalLine(
        points=points,
        edges=edges,
        radius=-grid(points),
        ends=np.flatnonzero(degree == 1),
        junctions=np.flatnonzero(degree >= 3),
    )


def _graph(points, edges):
    length = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    n = len(points)
    return coo_array((length, (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()


def _voxel_edges(voxels):
    """A spanning tree of the 26-neighbours, short edges first.

    Thinned curves meet in clumps of voxels; the tree removes their small loops,
    and with them a body's true handles, which limbs do not have.
    """
    n = len(voxels)
    index = {tuple(v): i for i, v in enumerate(voxels.tolist())}
    offsets = [
        (i, j, k)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        for k in (-1, 0, 1)
        if (i, j, k) > (0, 0, 0)
    ]
    offsets.sort(key=lambda o: (np.abs(o).sum(), o))
    root = list(range(n))

    def find(a):
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        return a

    edges = []
    for o in offsets:
        for v, i in index.items():
            j = index.get((v[0] + o[0], v[1] + o[1], v[2] + o[2]))
            if j is not None and find(i) != find(j):
                root[find(i)] = find(j)
                edges.append((i, j))
    return np.array(edges).reshape(-1, 2)


def _keep(points, edges, mask):
    number = np.cumsum(mask) - 1
    kept = edges[mask[edges].all(axis=1)]
    return points[mask], number[kept]


def _largest(points, edges):
    label = connected_components(_graph(points, edges), directed=False)[1]
    return _keep(points, edges, label == np.argmax(np.bincount(label)))


def _prune(points, edges, radius):
    """Takes off twigs that do not leave the ball around their junction."""
    while True:
        n = len(points)
        degree = np.bincount(edges.ravel(), minlength=n)
        around = [[] for _ in range(n)]
        for a, b in edges.tolist():
            around[a].append(b)
            around[b].append(a)
        shortest, twig = np.inf, None
        for end in np.flatnonzero(degree == 1):
            way = [int(end)]
            while degree[way[-1]] < 3:
                ahead = [w for w in around[way[-1]] if w not in way[-2:]]
                if not ahead:
                    break
                way.append(ahead[0])
            if degree[way[-1]] < 3:
                continue
            length = np.linalg.norm(np.diff(points[way], axis=0), axis=1).sum()
            if length < 1.1 * radius[way[-1]] and length < shortest:
                shortest, twig = length, way[:-1]
        if twig is None:
            return points, edges
        mask = np.ones(n, bool)
        mask[twig] = False
        points, edges = _keep(points, edges, mask)
        radius = radius[mask]


def _smooth(points, edges, passes):
    points = points.copy()
    n = len(points)
    degree = np.bincount(edges.ravel(), minlength=n)
    inner = degree >= 2
    for _ in range(passes):
        total = np.zeros_like(points)
        np.add.at(total, edges[:, 0], points[edges[:, 1]])
        np.add.at(total, edges[:, 1], points[edges[:, 0]])
        mean = total[inner] / degree[inner, None]
        points[inner] += 0.5 * (mean - points[inner])
    return points
