"""A small sprawled robot in a soft box, as files, for tests of planning.

The skeleton is that of tests/helpers/quad_skeletons.py; the skin is a box about
the torso whose corners hold on to the upper legs.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from drakebots.fem.material import Material
from drakebots.fem.mesh import TetMesh, box_mesh, write_mesh
from drakebots.model import skin_path
from drakebots.robots.quads import Problem, plan
from drakebots.robots.quads.robot import load_planned
from drakebots.skin.file import ServoGains, SkinDescription, write_skin
from drakebots.skin.file.description import Patches
from tests.helpers.quad_skeletons import LEGS, sprawled_sdf

VISUAL = (
    '<visual name="v"><geometry><box><size>0.02 0.02 0.02</size></box></geometry>'
    "</visual>"
)
BOX, CELLS = np.array([0.30, 0.24, 0.06]), (5, 4, 1)
RUBBER = Material(youngs_modulus=5e4, poisson_ratio=0.4, density=200.0)


def small_quad(folder: Path, *, effort: float = 1.96) -> Path:
    """Writes small.sdf and what belongs to it; the SDF's path."""
    path = Path(folder) / "small.sdf"
    text = sprawled_sdf(effort=effort, mass=2.0)
    text = text.replace('model name="skeleton"', 'model name="small"')
    path.write_text(text.replace("</inertial></link>", f"</inertial>{VISUAL}</link>"))
    box = box_mesh(tuple(BOX), CELLS)
    vertices = box.vertices - BOX / 2 + [0, 0, 0.17]
    write_mesh(Path(folder) / "small.vtu", TetMesh(vertices, box.tets))
    away = np.abs(vertices - [0, 0, 0.17])
    inner = (away[:, :2] < [0.10, 0.07]).all(axis=1)
    glue = {"torso": np.flatnonzero(inner).tolist()}
    for leg, (x, y) in LEGS.items():
        corner = np.array([BOX[0] / 2 * x, BOX[1] / 2 * y])
        near = np.linalg.norm(vertices[:, :2] - corner, axis=1) < 0.03
        glue[f"{leg}_upper"] = np.flatnonzero(near).tolist()
    shin = 0.02 / np.hypot(0.5, 1)
    grid = np.array([[0, 0], [1, 1], [-1, 1], [-1, -1], [1, -1]]) * [0.025, 0.02]
    patches = tuple(
        Patches(
            leg,
            f"{leg}_foot",
            np.array([0.5 * x * shin, y * shin, -0.11])
            + np.hstack([grid, np.zeros((5, 1))]),
        )
        for leg, (x, y) in LEGS.items()
    )
    skin = SkinDescription(
        mesh="small.vtu",
        material=RUBBER,
        glue=glue,
        servos=ServoGains(40.0, 0.6),
        patches=patches,
    )
    write_skin(skin_path(path), skin)
    return path


@lru_cache
def planned_lift() -> tuple[Path, Path]:
    """A foot lifted by the small robot: its SDF and the plan, made once a session."""
    folder = Path(tempfile.mkdtemp(prefix="small_quad"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    model = small_quad(folder)
    path = folder / "lift.nc"
    problem = Problem(model=str(model), motion="lift_single", more={"duration": 1.0})
    plan(problem, path=path)
    return model, path


@lru_cache
def small_robot():
    """The small robot in both forms."""
    return load_planned(planned_lift()[0])
