"""The requested motion of a planned robot, drawn into its scene in Meshcat.

Paths of the feet are red, of the COM blue, of the COP on the ground green; support
polygons are drawn as outlines at some times.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from pydrake.geometry import Rgba
from scipy.spatial import ConvexHull, QhullError

from drakebots.view.scene import Scene

ROOT = "/drakebots/motion"
RED, BLUE = Rgba(0.85, 0.12, 0.1), Rgba(0.1, 0.3, 0.85)
GREEN, CYAN = Rgba(0.1, 0.65, 0.2), Rgba(0.1, 0.65, 0.7)
MOMENTS = 6
"""Number of times at which the support polygon is drawn."""


def draw_motion(scene: Scene, data: xr.Dataset) -> list[str]:
    """Draws what the dataset of a plan holds; returns the names of what was drawn."""
    drawn = []

    def line(
        name: str, meaning: str, points: np.ndarray, colour: Rgba, width: float = 3.0
    ) -> None:
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) < 2:
            return
        scene.meshcat.SetLine(
            f"{ROOT}/{name}", np.asfortranarray(points.T), width, colour
        )
        scene.caption.add(colour, meaning)
        drawn.append(name)

    if "desired_foot" in data:
        for k, foot in enumerate(data.foot.values):
            asked = data.desired_foot.values[:, k]
            line(f"foot/{foot}", "requested paths of the feet", asked, RED)
    if "desired_com" in data:
        asked = data.desired_com.values
        line("com", "requested path of the centre of mass", asked, BLUE)
    height = 2e-3
    # The COP of the space-time program is smooth; that of single steps is not.
    name = next((n for n in ("planned_cop", "cop") if n in data), None)
    if name is not None:
        cop = data[name].values
        path = np.column_stack([cop, np.full(len(cop), height)])
        line("cop", "path of the centre of pressure", path, GREEN, 2.0)
    for k, polygon in support_polygons(data).items():
        closed = np.vstack([polygon, polygon[:1]])
        path = np.column_stack([closed, np.full(len(closed), height)])
        line(f"support/{k}", "support polygons at some times", path, CYAN, 2.0)
    return drawn


def support_polygons(data: xr.Dataset) -> dict[int, np.ndarray]:
    """Convex hulls (h, 2) [m] of the patches on the ground, by sample.

    One for each change of the feet on the ground, at most `MOMENTS` of them.
    """
    if "contact" not in data or "patch_position" not in data:
        return {}
    contact = data.contact.values > 0
    stems = [str(p).replace("/", "_").rpartition("_")[0] for p in data.patch.values]
    feet = [str(f) for f in data.foot.values]
    owner = np.array([feet.index(s) if s in feet else -1 for s in stems])
    change = np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1
    frames = np.r_[0, change][:: max(1, -(-(len(change) + 1) // MOMENTS))]
    out = {}
    for k in frames.tolist():
        down = (owner >= 0) & contact[k][np.maximum(owner, 0)]
        points = data.patch_position.values[k][down][:, :2]
        try:
            out[k] = points[ConvexHull(points).vertices]
        except (QhullError, ValueError):
            continue
    return out
