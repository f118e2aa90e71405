"""Finds a robot's standing pose, and draws it: the stage `stand` of the zoo.

    python scripts/tools/robot_zoo/stand.py my_robot.urdf --picture robot.png

The last line is one JSON object. A pose counts though it could not be drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.image
import numpy as np
from browser import screenshot
from pydrake.multibody.plant import MultibodyPlant

from drakebots.cli.output import one_line_errors, print_json
from drakebots.core.errors import DrakebotsError
from drakebots.core.files import replacing
from drakebots.formats import load
from drakebots.model import Model
from drakebots.multibody import Posture, find_posture
from drakebots.view import make_scene

SIZE = (480, 360)
"""Of the picture [pixels]."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="name, or path of a URDF, SDF, MJCF")
    parser.add_argument("--picture", type=Path, help="to draw (.png)")
    parser.add_argument("--free-base", action="store_true", help="free a fixed base")
    args = parser.parse_args(argv)
    with one_line_errors("stand"):
        model = load(args.model, free_base=args.free_base)
        posture = find_posture(model)
        facts = {
            "source": posture.source,
            "height_m": float(posture.X_WB.translation()[2]),
            "joints": dict(posture.joints),
            "residuals": dict(posture.residuals),
            "message": "; ".join(filter(None, [*posture.faults, posture.reservation])),
        }
        if args.picture is not None:
            try:
                draw(model, posture, args.picture)
            except DrakebotsError as error:
                facts["not_drawn"] = str(error)
    print_json(facts)
    return 0 if posture.stands else 1


def draw(model: Model, posture: Posture, path: Path) -> None:
    """Draws a model in a pose, on the ground.

    Raises:
        InvalidInput: when it has no geometry, or the browser draws nothing.
        FileProblem: when the picture cannot be written.
    """
    plant = MultibodyPlant(1e-3)
    model.add_to(plant, close_loops=False)
    plant.Finalize()
    scene = make_scene(model, positions=positions_of(plant, posture), ground_height=0.0)
    with replacing(path) as part:
        matplotlib.image.imsave(part, screenshot(scene.html(), SIZE), format="png")


def positions_of(plant: MultibodyPlant, posture: Posture) -> np.ndarray:
    """A pose as the positions (nq,) of a finalized plant with a free base, in SI."""
    context = plant.CreateDefaultContext()
    q = plant.GetPositions(context)
    for name, value in posture.joints.items():
        q[plant.GetJointByName(name).position_start()] = value
    plant.SetPositions(context, q)
    for index in plant.GetFloatingBaseBodies():
        plant.SetFreeBodyPose(context, plant.get_body(index), posture.X_WB)
    return plant.GetPositions(context)


if __name__ == "__main__":
    sys.exit(main())
