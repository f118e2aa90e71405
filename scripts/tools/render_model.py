"""Draws a model as Meshcat shows it, or the skin of a result, into a PNG.

    python scripts/tools/render_model.py hamr -o hamr.png
    python scripts/tools/render_model.py my_robot.urdf -o robot.png --camera 1 -1 0.6
    python scripts/tools/render_model.py plan.nc --time 0.6 -o plan.png

A model needs Chromium or Chrome, which runs without a window; a skin does not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.image
import numpy as np
from robot_zoo.browser import screenshot

from drakebots import load, load_result
from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.files import replacing
from drakebots.formats import terrain_of
from drakebots.multibody import Flat, Terrain
from drakebots.plots import Solid, shaded, turned
from drakebots.view import make_scene

GRAIN, ROUND = 3e-3, 0.06
"""Distance of the drawn points of the ground, and how far it is drawn around a skin
[m]."""


def ground_under(terrain: Terrain, x: np.ndarray) -> Solid:
    """The ground around points (n, 3), as a grid of triangles."""
    low, high = x[:, :2].min(axis=0) - ROUND, x[:, :2].max(axis=0) + ROUND
    across, along = (np.arange(a, b, GRAIN) for a, b in zip(low, high))
    px, py = np.meshgrid(across, along, indexing="ij")
    points = np.stack([px, py, terrain.heights(px, py)], axis=-1)
    k = np.arange(px.size).reshape(px.shape)
    a, b, c, d = k[:-1, :-1], k[1:, :-1], k[1:, 1:], k[:-1, 1:]
    corners = [[a, b, c], [a, c, d]]
    faces = np.concatenate([np.stack(f, axis=-1).reshape(-1, 3) for f in corners])
    return Solid(points.reshape(-1, 3), faces, (0.78, 0.82, 0.86))


def skin_pixels(path: str, time: float, size: tuple[int, int]) -> np.ndarray:
    """A result's skin at the sample nearest to a time [s], on its ground unless that is
    flat.

    Raises:
        DrakebotsError: for a result that cannot be read, or has no skin.
    """
    result = load_result(path)
    data, terrain = result.data, terrain_of(result)
    if "skin_position" not in data:
        raise InvalidInput(f"{path}: holds no skin to draw")
    shapes = data.skin_position.transpose("skin_time", "vertex", "axis")
    x = shapes.sel(skin_time=time, method="nearest").values.astype(float)
    skin = Solid(x, data.skin_triangle.values, (0.93, 0.85, 0.70))
    solids = [skin] if terrain == Flat() else [ground_under(terrain, x), skin]
    return shaded([turned(solids, -35)], size)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="name, or path of a URDF, SDF, ..., or result")
    parser.add_argument("-o", "--output", type=Path, default=Path("model.png"))
    for name in ("--camera", "--target"):
        parser.add_argument(
            name, type=float, nargs=3, metavar=("X", "Y", "Z"), help="[m]"
        )
    parser.add_argument(
        "--size", type=int, nargs=2, default=(1200, 800), metavar=("W", "H")
    )
    parser.add_argument("--time", type=float, default=0.0, help="in a result (.nc) [s]")
    args = parser.parse_args(argv)
    try:
        if args.model.endswith(".nc"):
            pixels = skin_pixels(args.model, args.time, tuple(args.size))
        else:
            scene = make_scene(load(args.model))
            scene.look(args.camera, args.target)
            pixels = screenshot(scene.html(), tuple(args.size))
        with replacing(args.output) as part:
            matplotlib.image.imsave(
                part, pixels, format="png", pil_kwargs={"optimize": True}
            )
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
