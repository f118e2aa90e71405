"""The printed parts as STEP files for CAD programs; needs cadquery, an extra."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drakebots.design.clashes import solid_boxes
from drakebots.design.parts import drain_holes, pilot_holes, printed
from drakebots.design.plates import Plate
from drakebots.design.skeleton import Link, Skeleton
from drakebots.design.template_parameters import Build
from drakebots.errors import InvalidInput
from drakebots.results.container import replacing


def write_step(skeleton: Skeleton, build: Build, folder: Path | str) -> list[Path]:
    """Writes LINK.step for every link, in millimetres, holes as true cylinders.

    Raises:
        InvalidInput: when cadquery is not installed.
    """
    try:
        import cadquery
    except ImportError:
        raise InvalidInput(
            "STEP files need cadquery: pip install cadquery; STL files do not"
        ) from None
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for link in skeleton.links:
        path = folder / f"{link.name}.step"
        shape = _shape(cadquery, link, build)
        with replacing(path) as temporary:
            cadquery.exporters.export(
                cadquery.Workplane(obj=shape), str(temporary), "STEP"
            )
        paths.append(path)
    return paths


def _shape(cq, link: Link, build: Build):
    boxes, cuts = [], []
    for solid in printed(link):
        if isinstance(solid, Plate):
            boxes += _prisms(cq, solid)
            continue
        for size, p_GV in solid_boxes(solid):
            boxes.append(_box(cq, solid, size, p_GV))
        if solid.name.endswith("_bay"):
            cuts.append(_box(cq, solid, solid.hole * [1, 1, 1.001], np.zeros(3)))
    for hole in (*pilot_holes(link, build), *drain_holes(link)):
        length = 1.2 * hole.depth
        foot = 1e3 * (hole.p_BH - length / 2 * hole.axis)
        cuts.append(
            cq.Solid.makeCylinder(
                1e3 * hole.diameter / 2,
                1e3 * length,
                cq.Vector(*foot),
                cq.Vector(*hole.axis),
            )
        )
    body = boxes[0].fuse(*boxes[1:]) if len(boxes) > 1 else boxes[0]
    return body.cut(*cuts) if cuts else body


def _box(cq, solid, size, p_GV):
    p = 1e3 * (solid.p_BG + solid.R_BG @ p_GV)
    x, z = solid.R_BG[:, 0], solid.R_BG[:, 2]
    plane = cq.Plane(cq.Vector(*p), cq.Vector(*x), cq.Vector(*z))
    return cq.Workplane(plane).box(*(1e3 * size)).val()


def _prisms(cq, plate: Plate):
    def wire(contour):
        flat = np.column_stack([contour, np.full(len(contour), -plate.thickness / 2)])
        points = 1e3 * (plate.p_BG + flat @ plate.R_BG.T)
        return cq.Wire.makePolygon([cq.Vector(*p) for p in points], close=True)

    along = cq.Vector(*(1e3 * plate.thickness * plate.R_BG[:, 2]))
    return [
        cq.Solid.extrudeLinear(wire(outline), [wire(hole) for hole in holes], along)
        for outline, holes in plate.pieces()
    ]
