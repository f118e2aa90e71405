"""Draws a model as Meshcat shows it, with light and shadow, into a PNG.

    python scripts/render_model.py hamr -o hamr.png
    python scripts/render_model.py my_robot.urdf -o robot.png --camera 1 -1 0.6

Needs Chromium or Chrome, which runs without a window.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.image

from drakebots import load
from drakebots.core.errors import DrakebotsError
from drakebots.core.files import replacing
from drakebots.view import make_scene, screenshot


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="name, or path of a URDF, SDF, ...")
    parser.add_argument("-o", "--output", type=Path, default=Path("model.png"))
    for name in ("--camera", "--target"):
        parser.add_argument(
            name, type=float, nargs=3, metavar=("X", "Y", "Z"), help="[m]"
        )
    parser.add_argument(
        "--size", type=int, nargs=2, default=(1200, 800), metavar=("W", "H")
    )
    args = parser.parse_args(argv)
    try:
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
