"""The printed parts of a skeleton as triangle meshes, one a link.

Each part is the union of its link's printed boxes and bracing, less the motor
bays' openings and the pilot holes, in the link's frame. The pilot holes go through
the bays' end walls along the shaft, where the servo's screws are; their diameter is
`build.pilot_hole` whatever else is edited (paper, Fig. 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import meshio
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import replacing
from drakebots.design.skeleton import Build, Link, Plate, Skeleton, Solid

# The printed parts as STEP files for CAD programs; needs cadquery, an extra.


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
        for size, p_GV in solid.boxes():
            boxes.append(_cad_box(cq, solid, size, p_GV))
        if solid.name.endswith("_bay"):
            cuts.append(_cad_box(cq, solid, solid.hole * [1, 1, 1.001], np.zeros(3)))
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


def _cad_box(cq, solid, size, p_GV):
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


DRAIN = 0.004
"""Diameter of the holes that drain closed tubes [m]."""

_RING = 0.05  # deep enough to pass a bracing ring over the hole
_STEP = 1e-3  # along a hole, where plates are looked for

JOIN = 1e-5
"""Growth of each box [m], so that boxes that touch become one body."""

SIDES_OF_A_HOLE = 24
"""Segments of a pilot hole's circle in the meshes."""


@dataclass(frozen=True)
class Hole:
    """A round hole: middle, unit axis (3,) in the link, diameter, depth [m]."""

    p_BH: np.ndarray
    axis: np.ndarray
    diameter: float
    depth: float


@dataclass(frozen=True)
class Part:
    """A printed part.

    Attributes:
        link: its name.
        vertices, triangles: closed surface in the link's frame (n, 3) [m], (t, 3),
            outward.
        volume: [m^3].
        holes: the pilot holes.
    """

    link: str
    vertices: np.ndarray
    triangles: np.ndarray
    volume: float
    holes: tuple[Hole, ...]


def pilot_holes(link: Link, build: Build) -> tuple[Hole, ...]:
    """Four a motor bay, beside the servo's body."""
    holes = []
    along, across = build.servo.screws
    for bay in (s for s in link.solids if s.name.endswith("_bay")):
        # Through a bracing ring over the screws, too.
        depth = bay.size[2] + 2 * build.rib_reach
        for x in (-0.5, 0.5):
            for y in (-0.5, 0.5):
                p = bay.p_BG + bay.R_BG @ [x * along, y * across, 0.0]
                hole = Hole(p, bay.R_BG[:, 2], build.pilot_hole, depth)
                holes.append(_through_plates(link, hole, bay.size[2]))
    return tuple(holes)


def _through_plates(link: Link, hole: Hole, across: float) -> Hole:
    """The hole, out of the plates that it meets on either side of a part.

    Args:
        across: size of that part along the hole [m].
    """
    made = [s for s in link.solids if isinstance(s, Plate)]
    if not made:
        return hole
    s = across / 2 + np.arange(0.0, 0.3, _STEP)
    reach = []
    for sign in (-1, 1):
        p_B = hole.p_BH + sign * s[:, None] * hole.axis
        away = np.min([one.distance(p_B) for one in made], axis=0)
        out = np.flatnonzero(away > hole.diameter / 2)
        end = s[out[0]] if len(out) else s[-1]
        reach.append(max(hole.depth / 2, end + 2 * _STEP))
    back, ahead = reach
    middle = hole.p_BH + (ahead - back) / 2 * hole.axis
    return replace(hole, p_BH=middle, depth=back + ahead)


def drain_holes(link: Link) -> tuple[Hole, ...]:
    """One across each tube, which would be a closed void: resin and cables."""
    return tuple(
        _through_plates(
            link, Hole(s.p_BG, s.R_BG[:, 0], DRAIN, s.size[0] + _RING), s.size[0]
        )
        for s in link.solids
        if s.kind == "shell" and s.name.endswith(("beam", "strut")) and s.hole.all()
    )


def printed(link: Link) -> list[Solid | Plate]:
    """The boxes and plates of a link that are printed."""
    return [s for s in link.solids if s.kind in ("shell", "rib")]


def link_part(link: Link, build: Build) -> Part:
    """The part of one link.

    Raises:
        InvalidInput: when the result is empty, not closed, in loose pieces or has
            closed voids.
    """
    import manifold3d as m

    boxes, openings = [], []
    for solid in printed(link):
        if isinstance(solid, Plate):
            boxes.append(solid.body(JOIN / 2))
            continue
        for size, p_GV in solid.boxes():
            boxes.append(_box(m, solid, size + JOIN, p_GV))
        if solid.name.endswith("_bay"):
            openings.append(_box(m, solid, solid.hole * [1, 1, 1.001], np.zeros(3)))
    holes = pilot_holes(link, build)
    drills = [_drill(m, hole) for hole in (*holes, *drain_holes(link))]
    body = m.Manifold.batch_boolean(boxes, m.OpType.Add)
    cut = openings + drills
    if cut:
        body -= m.Manifold.batch_boolean(cut, m.OpType.Add)
    if body.is_empty() or body.status() != m.Error.NoError:
        raise InvalidInput(f"part {link.name}: empty or not closed ({body.status()})")
    # A closed void inside counts as a piece of negative volume.
    pieces = [1e6 * piece.volume() for piece in body.decompose()]
    pieces = [volume for volume in pieces if abs(volume) > 1e-3]
    if len(pieces) > 1:
        sizes = ", ".join(f"{volume:.2g}" for volume in pieces)
        raise InvalidInput(
            f"part {link.name}: loose pieces or closed voids of {sizes} cm^3; move "
            "what does not touch the rest, or thicken build.wall"
        )
    mesh = body.to_mesh64()
    return Part(
        link.name,
        np.array(mesh.vert_properties[:, :3]),
        np.array(mesh.tri_verts, dtype=np.int64),
        float(body.volume()),
        holes,
    )


def parts(skeleton: Skeleton, build: Build) -> tuple[Part, ...]:
    """All printed parts, in the order of the links."""
    return tuple(link_part(link, build) for link in skeleton.links)


def write_parts(skeleton: Skeleton, build: Build, folder: Path | str) -> list[Path]:
    """Writes LINK.stl for every link, in millimetres as printers read them."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for part in parts(skeleton, build):
        path = folder / f"{part.link}.stl"
        mesh = meshio.Mesh(1e3 * part.vertices, [("triangle", part.triangles)])
        with replacing(path) as temporary:
            meshio.write(temporary, mesh, file_format="stl", binary=True)
        paths.append(path)
    return paths


def _frame(R, p) -> np.ndarray:
    return np.column_stack([R, p])


def _box(m, solid, size, p_GV):
    p = solid.p_BG + solid.R_BG @ p_GV
    return m.Manifold.cube(size.tolist(), True).transform(_frame(solid.R_BG, p))


def _drill(m, hole):
    # Beyond both faces, so that no skin is left over them.
    length, radius = 1.2 * hole.depth, hole.diameter / 2
    z = hole.axis
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    tool = m.Manifold.cylinder(length, radius, radius, SIDES_OF_A_HOLE, True)
    return tool.transform(_frame(R, hole.p_BH))
