"""A flat printed plate of any outline: a bracing ring trimmed to the skin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import manifold3d as m
import numpy as np

from drakebots.design.geometry import Surface


@dataclass(frozen=True)
class Plate:
    """A prism fixed in a link B; beside boxes, one of a link's solids.

    Attributes:
        name: within its link.
        contours: of its section in G's x-y plane, outlines counterclockwise, holes
            clockwise (n, 2) [m]; the section's centroid is G's origin.
        thickness: along G's z, half on each side [m].
        p_BG, R_BG: its frame, at its centre of mass, in the link.
        mass: [kg].
        kind: "rib", bracing.
    """

    name: str
    contours: tuple[np.ndarray, ...]
    thickness: float
    p_BG: np.ndarray
    R_BG: np.ndarray
    mass: float
    kind: str = "rib"

    @cached_property
    def area(self) -> float:
        """Of the section [m^2]."""
        return section_moments(self.contours)[0]

    @property
    def volume(self) -> float:
        """[m^3]."""
        return self.area * self.thickness

    @cached_property
    def inertia(self) -> np.ndarray:
        """About the centre of mass, in the link (3, 3) [kg m^2]."""
        area, _, second = section_moments(self.contours)
        xx, yy, xy = second * self.mass / area
        zz = self.mass * self.thickness**2 / 12
        about_G = np.array([[yy + zz, -xy, 0], [-xy, xx + zz, 0], [0, 0, xx + yy]])
        return self.R_BG @ about_G @ self.R_BG.T

    @cached_property
    def size(self) -> np.ndarray:
        """Sides of the box about G that holds it (3,) [m]."""
        half = np.abs(np.concatenate(self.contours)).max(axis=0)
        return np.array([*(2 * half), self.thickness])

    def corners(self) -> np.ndarray:
        """Of the outlines on both faces, in the link (2 n, 3) [m]."""
        flat = np.concatenate(self.contours)
        sides = [np.column_stack([flat, np.full(len(flat), s)]) for s in (-0.5, 0.5)]
        p_G = np.concatenate(sides) * [1.0, 1.0, self.thickness]
        return self.p_BG + p_G @ self.R_BG.T

    def surface(self, grow: float = 0.0) -> Surface:
        """Closed, outward, in the link [m].

        Args:
            grow: by which it is larger on every side [m].
        """
        mesh = self.body(grow).to_mesh64()
        return Surface(
            np.array(mesh.vert_properties[:, :3]),
            np.array(mesh.tri_verts, dtype=np.int64),
        )

    def body(self, grow: float = 0.0):
        """As a solid of manifold3d, in the link [m]."""
        flat = self._section()
        if grow:
            flat = flat.offset(1e3 * grow, m.JoinType.Miter)
        height = self.thickness + 2 * grow
        prism = flat.extrude(1e3 * height).translate([0, 0, -5e2 * height])
        return prism.transform(np.column_stack([1e-3 * self.R_BG, self.p_BG]))

    def pieces(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """The section's connected pieces: an outline and its holes (n, 2) [m] each."""
        found = []
        for piece in self._section().decompose():
            loops = [np.array(c) / 1e3 for c in piece.to_polygons()]
            loops.sort(key=lambda c: -section_moments((c,))[0])
            found.append((loops[0], loops[1:]))
        return found

    def _section(self):
        # In mm: the library's 2D operations round to 1e-8 of the unit.
        return m.CrossSection([1e3 * c for c in self.contours])

    def distance(self, p_B: np.ndarray) -> np.ndarray:
        """From points (n, 3) in the link to the plate (n,) [m]; 0 inside it."""
        p_G = (np.asarray(p_B, float) - self.p_BG) @ self.R_BG
        across = np.maximum(np.abs(p_G[:, 2]) - self.thickness / 2, 0.0)
        return np.hypot(distance_in_plane(self.contours, p_G[:, :2]), across)


def plate(name, contours, thickness, p_BC, R_BC, density) -> Plate:
    """A plate of a material; `contours` about C, any point of its middle plane."""
    area, middle, _ = section_moments(contours)
    about = tuple(np.asarray(c, float) - middle for c in contours)
    p_BG = p_BC + R_BC[:, :2] @ middle
    mass = float(density * area * thickness)
    return Plate(name, about, float(thickness), p_BG, R_BC, mass)


def section_moments(contours) -> tuple[float, np.ndarray, np.ndarray]:
    """Area [m^2], centroid (2,) [m], integrals of x^2, y^2 and x y (3,) [m^4].

    By Green's theorem over the contours' edges; about the origin.
    """
    area, first, second = 0.0, np.zeros(2), np.zeros(3)
    for contour in contours:
        x, y = contour.T
        u, v = np.roll(x, -1), np.roll(y, -1)
        cross = x * v - u * y
        area += cross.sum() / 2
        first += [cross @ (x + u) / 6, cross @ (y + v) / 6]
        second += [
            cross @ (x * x + x * u + u * u) / 12,
            cross @ (y * y + y * v + v * v) / 12,
            cross @ (x * v + 2 * x * y + 2 * u * v + u * y) / 24,
        ]
    return float(area), first / area, second


def distance_in_plane(contours, points: np.ndarray) -> np.ndarray:
    """From points (n, 2) to a section (n,) [m]; 0 inside it."""
    best = np.full(len(points), np.inf)
    turns = np.zeros(len(points), int)
    for contour in contours:
        for a, b in zip(contour, np.roll(contour, -1, axis=0)):
            d, r = b - a, points - a
            s = np.clip(r @ d / max(d @ d, 1e-30), 0, 1)
            away = r - s[:, None] * d
            best = np.minimum(best, np.einsum("ni,ni->n", away, away))
            left = d[0] * r[:, 1] - d[1] * r[:, 0]
            up = (a[1] <= points[:, 1]) & (points[:, 1] < b[1]) & (left > 0)
            down = (b[1] <= points[:, 1]) & (points[:, 1] < a[1]) & (left < 0)
            turns += up.astype(int) - down.astype(int)
    return np.where(turns > 0, 0.0, np.sqrt(best))
