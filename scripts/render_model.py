"""Draws a model as Meshcat shows it, with light and shadow, into a PNG.

    python scripts/render_model.py hamr -o hamr.png
    python scripts/render_model.py my_robot.urdf -o robot.png --camera 1 -1 0.6

Needs Chromium or Chrome, which runs without a window. Whatever its size, the
model is scaled to about a metre in the scene and stands on the ground.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib.image
import numpy as np
from pydrake.geometry import (
    Cylinder,
    Meshcat,
    MeshcatParams,
    MeshcatVisualizer,
    MeshcatVisualizerParams,
    Rgba,
    Role,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

from drakebots.errors import DrakebotsError, FileProblem, InvalidInput
from drakebots.models import Model, load

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--force-device-scale-factor=2",
    "--virtual-time-budget=8000",
)
TIMEOUT = 120  # for the browser [s]
VIEW = (0.72, -0.90, 0.58)  # default camera, in half diagonals of the model
SCENE = [  # of the scene with the model scaled to a half diagonal of 0.5 m
    ("/Grid", "visible", False),
    ("/Axes", "visible", False),
    ("/Background/<object>", "top_color", [0.98, 0.98, 0.99]),
    ("/Background/<object>", "bottom_color", [0.86, 0.87, 0.89]),
    ("/Lights/AmbientLight/<object>", "intensity", 1.0),
    ("/Lights/FillLight/<object>", "intensity", 0.5),
    ("/Lights/PointLightPositiveX/<object>", "intensity", 3.0),
    ("/Lights/PointLightNegativeX/<object>", "intensity", 4.0),
    ("/Lights/SpotLight", "visible", True),
    ("/Lights/SpotLight/<object>", "position", [0.5, -1.0, 3.0]),
    ("/Lights/SpotLight/<object>", "decay", 0.0),
    ("/Lights/SpotLight/<object>", "angle", 0.6),
    ("/Lights/SpotLight/<object>", "penumbra", 1.0),
    ("/Lights/SpotLight/<object>", "intensity", 2.6),
    ("/Lights/SpotLight/<object>", "castShadow", True),
    ("/Lights/SpotLight/<object>", "shadow.mapSize.width", 4096.0),
    ("/Lights/SpotLight/<object>", "shadow.mapSize.height", 4096.0),
    ("/Lights/SpotLight/<object>", "shadow.bias", -0.0005),
    ("/Lights/SpotLight/<object>", "shadow.radius", 5.0),
    ("/Cameras/default/rotated/<object>", "fov", 40.0),
]


def scene_html(model: Model, *, camera=None, target=None) -> str:
    """The page that shows a model at its default positions.

    Args:
        model: from :func:`drakebots.load`.
        camera, target: where to look from and at (3,), in the world [m]; None
            for a view from the front right of the model's middle.

    Raises:
        InvalidInput: when there is nothing to draw.
    """
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    model.add_to(plant, close_loops=False)
    plant.Finalize()
    if not np.isfinite([*(camera or ()), *(target or ())]).all():
        raise InvalidInput("camera and target must be finite, in m")
    meshcat = Meshcat(MeshcatParams(show_stats_plot=False))
    params = MeshcatVisualizerParams()
    params.role = Role.kIllustration
    MeshcatVisualizer.AddToBuilder(builder, scene_graph, meshcat, params)
    diagram = builder.Build()
    context = diagram.CreateDefaultContext()
    low, high = _bounds(scene_graph, scene_graph.GetMyContextFromRoot(context))
    if not np.all(low < high):
        raise InvalidInput(f"{model.path}: has no visual geometry to draw")
    middle, reach = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
    ground = np.array([middle[0], middle[1], low[2]])
    scale = 0.5 / reach
    meshcat.SetTransform("/drake", _scaling(scale, ground))
    target = middle if target is None else np.asarray(target, float)
    camera = (
        target + 2 * reach * np.array(VIEW)
        if camera is None
        else np.asarray(camera, float)
    )
    meshcat.SetObject("/ground", Cylinder(30.0, 0.01), Rgba(0.86, 0.87, 0.89))
    meshcat.SetTransform("/ground", RigidTransform([0, 0, -0.005]))
    for path, name, value in SCENE:
        meshcat.SetProperty(path, name, value)
    meshcat.SetCameraPose(scale * (camera - ground), scale * (target - ground))
    diagram.ForcedPublish(context)
    hidden = "<style>.dg {display: none !important}</style></head>"
    return meshcat.StaticHtml().replace("</head>", hidden, 1)


def render(html: str, size: tuple[int, int]) -> np.ndarray:
    """The page as pixels (height, width, 3) in 0..1, drawn at twice the size.

    Raises:
        InvalidInput: without a browser, or when it draws nothing.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise InvalidInput(
            "drawing needs a browser; install one of " + ", ".join(BROWSERS)
        )
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
        page.write_text(html)
        window = f"--window-size={size[0]},{size[1]}"
        command = [browser, *FLAGS, window, f"--screenshot={shot}", page.as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=True)
            pixels = matplotlib.image.imread(shot)[..., :3]
        except (subprocess.SubprocessError, OSError) as error:
            raise InvalidInput(f"{browser} drew nothing: {error}") from error
    w, h = size
    if pixels.shape != (2 * h, 2 * w, 3):
        raise InvalidInput(f"{browser} cannot draw {w} x {h} pixels; try 1200 x 800")
    return pixels.reshape(h, 2, w, 2, 3).mean((1, 3))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="name, or path of a URDF, SDF, ...")
    parser.add_argument("-o", "--output", type=Path, default=Path("model.png"))
    for name in ("--camera", "--target"):
        parser.add_argument(name, type=float, nargs=3, metavar=("X", "Y", "Z"))
    parser.add_argument(
        "--size", type=int, nargs=2, default=(1200, 800), metavar=("W", "H")
    )
    args = parser.parse_args(argv)
    try:
        html = scene_html(load(args.model), camera=args.camera, target=args.target)
        pixels = render(html, tuple(args.size))
        _save(args.output, pixels)
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(args.output)
    return 0


def _save(path: Path, pixels: np.ndarray) -> None:
    try:
        options = {"optimize": True}
        matplotlib.image.imsave(path, pixels, format="png", pil_kwargs=options)
    except OSError as error:
        raise FileProblem(path, f"cannot be written ({error.strerror})") from error


def _bounds(scene_graph, context) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner of all visual geometry in the world (3,) [m]."""
    query = scene_graph.get_query_output_port().Eval(context)
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for geometry in query.inspector().GetAllGeometryIds(Role.kIllustration):
        box = query.ComputeObbInWorld(geometry)
        if box is None:  # a half space
            continue
        reach = np.abs(box.pose().rotation().matrix()) @ box.half_width()
        low = np.minimum(low, box.center() - reach)
        high = np.maximum(high, box.center() + reach)
    return low, high


def _scaling(scale: float, origin: np.ndarray) -> np.ndarray:
    """The matrix (4, 4) that takes p to scale (p - origin)."""
    matrix = scale * np.eye(4)
    matrix[:3, 3] = -scale * origin
    matrix[3, 3] = 1.0
    return matrix


if __name__ == "__main__":
    sys.exit(main())
