"""Surfaces as manifold3d's solids and back, for cutting and joining."""

from __future__ import annotations

import numpy as np

from drakebots.design.surface import Surface
from drakebots.errors import InvalidInput

CRUMB = 1e-10
"""Largest volume of a crumb [m^3]: 0.1 mm^3."""


def to_manifold(surface: Surface, name: str = "surface"):
    """The solid within a closed surface.

    Raises:
        InvalidInput: unless the surface is closed, outward and not empty.
    """
    import manifold3d as m

    body = m.Manifold(
        m.Mesh64(
            vert_properties=surface.vertices,
            tri_verts=surface.triangles.astype(np.uint64),
        )
    )
    if body.status() != m.Error.NoError:
        raise InvalidInput(f"{name}: not a closed surface ({body.status().name})")
    if body.is_empty() or body.volume() <= 0:
        raise InvalidInput(
            f"{name}: encloses {body.volume():.3g} m^3; turn its triangles outward"
        )
    return body


def to_surface(body) -> Surface:
    """The boundary of a solid, outward [m]."""
    mesh = body.to_mesh64()
    return Surface(
        np.array(mesh.vert_properties[:, :3]), np.array(mesh.tri_verts, dtype=np.int64)
    )


def contains(body, p: np.ndarray) -> bool:
    """Whether a point (3,) lies inside, by the parity of crossings of a ray."""
    p = np.asarray(p, float)
    # Oblique, so that no edge of a regular grid is met.
    end = p + 10.0 * np.array([0.5403, 0.2971, 0.7873])
    return len(body.ray_cast(p.tolist(), end.tolist())) % 2 == 1


def heavy_parts(body) -> list:
    """The connected parts, without the crumbs that cuts along faces leave."""
    return [part for part in body.decompose() if abs(part.volume()) > CRUMB]


def face_on_plane(surface: Surface, p: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Triangles that lie in a plane (m,), within 0.1 um."""
    on = np.abs((surface.vertices - p) @ normal) < 1e-7
    return on[surface.triangles].all(axis=1)
