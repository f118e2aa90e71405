"""Puts a skin on a skeleton: glues by radius, checks, and describes the result.

found = attach("robot.urdf", "skin.vtk", GlueRadius(0.005))
write_skin(path, found.description_for(path))
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.multibody.tree import BodyIndex

from drakebots.core.errors import InvalidInput
from drakebots.fem import RegionLocking, locking
from drakebots.fem.material import SILICONE, Material
from drakebots.fem.mesh import connected_pieces
from drakebots.model import load
from drakebots.skin.file.description import GlueRadius, ServoGains, SkinDescription
from drakebots.skin.file.robot import SkinnedRobot, load_skinned


@dataclass(frozen=True)
class Attachment:
    """A skin on a skeleton, checked.

    Attributes:
        robot: both, ready to simulate.
        mesh: absolute path of the skin's mesh.
        locking: estimate of the locking of each region.
    """

    robot: SkinnedRobot
    mesh: Path
    locking: tuple[RegionLocking, ...]

    def description_for(self, path: Path) -> SkinDescription:
        """The description to write at a path, with the mesh's path relative to it."""
        mesh = os.path.relpath(self.mesh, Path(path).resolve().parent)
        return replace(self.robot.skin, mesh=mesh)

    def report(self) -> dict[str, Any]:
        """Masses, glue by link, mesh, locking and sizes as JSON-able values in SI."""
        robot = self.robot
        links = _link_origins(robot)
        return robot.report() | {
            "mesh_check": str(robot.mesh_report).splitlines()[0],
            "worst_quality": robot.mesh_report.worst_quality,
            "pieces": robot.mesh_report.pieces,
            "locking": [str(row) for row in self.locking],
            "plate_bending_factor": max(row.factor for row in self.locking),
            "wall_m": min(row.thickness for row in self.locking),
            "edge_m": list(robot.mesh_report.edge_m),
            "skeleton_size_m": np.ptp(links, axis=0).tolist(),
        }


def _link_origins(robot: SkinnedRobot) -> np.ndarray:
    """Origins of the links in the rest pose (n, 3) [m]."""
    plant, context = robot.plant, robot.context
    plant.SetPositions(context, robot.rest_positions)
    bodies = [plant.get_body(BodyIndex(k)) for k in range(1, plant.num_bodies())]
    return np.array(
        [plant.EvalBodyPoseInWorld(context, body).translation() for body in bodies]
    )


def attach(
    skeleton: str | Path,
    mesh: str | Path,
    glue: GlueRadius,
    *,
    material: Material | None = None,
    second_order: Iterable[int] = (),
    servos: ServoGains | None = None,
    unit: str | None = None,
    path: Path | None = None,
) -> Attachment:
    """Glues a skin to a skeleton in its default pose.

    Args:
        skeleton: name or path, as for :func:`drakebots.load`.
        mesh: file of the tets, with the skeleton in its default pose.
        glue: radius, and the choice for vertices between links.
        material: material of all regions; silicone by default.
        second_order: regions of P2 tets.
        servos: gains of the servos.
        unit: unit of the mesh; see :class:`SkinDescription`.
        path: where the description is to be written, for errors.

    Raises:
        DrakebotsError: for any fault of the input: a file that cannot be read, a mesh
            that cannot be computed on, a skin far from the skeleton, a vertex near two
            links, ...
    """
    model = load(skeleton)
    mesh = Path(mesh).resolve()
    description = SkinDescription(
        mesh=str(mesh),
        glue=glue,
        material=SILICONE if material is None else material,
        second_order=tuple(second_order),
        servos=ServoGains() if servos is None else servos,
        unit=unit,
    )
    robot = load_skinned(model, description, path=path)
    if robot.mesh_report.pieces > 1:
        middle = _loose_piece(robot)
        if middle is not None:
            raise InvalidInput(
                f"{mesh}: the piece of the skin at {middle} touches no link, nothing "
                "holds it; remove it or use a larger glue radius"
            )
    return Attachment(robot, mesh, locking(robot.fem))


def _loose_piece(robot: SkinnedRobot) -> list[float] | None:
    """The centre of a piece of the skin without glue [m], or None."""
    n = len(robot.mesh.vertices)
    count, piece = connected_pieces(robot.mesh.tets, n)
    vertices = robot.glue.vertices
    held = np.unique(piece[vertices[vertices < n]])
    loose = np.setdiff1d(np.arange(count), held)
    if not len(loose):
        return None
    return robot.mesh.vertices[piece == loose[0]].mean(axis=0).round(4).tolist()
