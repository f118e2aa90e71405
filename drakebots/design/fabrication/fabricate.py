"""Everything from which a robot is built: skin pieces, moulds, printed parts, lists.

A printed part is the union of its link's printed boxes and bracing, less the openings
of the motor bays and the pilot holes, in the link's frame. The pilot holes go through
the end walls of the bays along the shaft, where the servo's screws are; their diameter
is `build.pilot_hole`, whatever else is edited (paper, Fig. 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import manifold3d as m
import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.core.files import make_folder, replacing, write_csv
from drakebots.core.installed import extra, version_of
from drakebots.core.run import Progress, silent
from drakebots.design.fabrication.moulds import Mould, two_part_mould
from drakebots.design.fabrication.pieces import SkinPiece, limbs_of, skin_pieces
from drakebots.design.geometry import Surface, frame_of, to_surface, write_surface
from drakebots.design.problem import Design
from drakebots.design.skeleton import (
    Build,
    Hinge,
    Link,
    Plate,
    Skeleton,
    Solid,
    Trimmed,
)
from drakebots.design.skin import in_folds

_CHANNELS = 32
"""Number of channels of the paper's servo board (section 6.2)."""

_DRAIN = 0.004
"""Diameter of the holes that drain closed tubes [m]."""

_RING = 0.05
"""Length of a drain hole beyond its tube, to pass a bracing ring over it [m]."""

_STEP = 1e-3
"""Distance of the points along a hole at which plates are looked for [m]."""

_JOIN = 1e-5
"""Distance by which boxes are enlarged, so that those that touch are joined [m]."""

_SIDES = 24
"""Number of segments of a round hole in the meshes."""


@dataclass(frozen=True)
class Fabrication:
    """Pieces, moulds and files for the fabrication of a design.

    Attributes:
        pieces: pieces of skin, by name.
        moulds: their moulds, by the same names.
        paths: paths of all files.
    """

    pieces: Mapping[str, SkinPiece]
    moulds: Mapping[str, Mould]
    paths: tuple[Path, ...]


def fabricate(
    design: Design, folder: Path | str, *, progress: Progress | None = None
) -> Fabrication:
    """Writes everything from which a robot is built (paper, section 6.2).

    In millimetres: skin/PIECE.stl in the robot's frame, one for each limb and two for
    the torso; moulds/PIECE_upper.stl, _lower and, where the core is loose, _core, each
    lying on its parting plane; links/LINK.stl in the link's frame, and .step where
    cadquery is installed. Lists: skin_pieces.csv, bill_of_materials.csv, servo_map.csv.
    Except for the dates in .step files they depend on the design only. Each file is
    complete or missing.

    Args:
        design: the robot.
        folder: folder of the files; made if it is missing.
        progress: called before each step with its name, the number of steps done and
            the number of all steps.

    Raises:
        InvalidInput: for a skin that cannot be cut.
        NoSolution: when a piece cannot be separated from the rest.
        FileProblem: when a file cannot be written.
    """
    folder, skeleton, build = Path(folder), design.skeleton, design.template.build
    end, progress = len(limbs_of(skeleton)) + 4, progress or silent
    progress("skin pieces", 0, end)
    shell, mesh = design.shell, design.shell.mesh
    folds = mesh.vertices[mesh.tets[in_folds(mesh)]]
    pieces = skin_pieces(shell.outer, shell.inner, skeleton, folds)
    moulds = {}
    for k, (name, piece) in enumerate(pieces.items(), 1):
        progress(f"mould {name}", k, end)
        moulds[name] = two_part_mould(piece)
    progress("files", end - 1, end)
    # Nothing is written before all of it is made.
    bodies = {folder / "skin" / f"{k}.stl": piece.skin for k, piece in pieces.items()}
    for name, mould in moulds.items():
        for part, surface in mould.bodies.items():
            bodies[folder / "moulds" / f"{name}_{part}.stl"] = surface
    for link in skeleton.links:
        bodies[folder / "links" / f"{link.name}.stl"] = link_part(link, build)
    for path, surface in bodies.items():
        make_folder(path.parent)
        write_surface(path, surface, "mm")
    paths = list(bodies)
    if version_of("cadquery") is not None:
        paths += write_step(skeleton, build, folder / "links")
    for name, rows in (
        ("bill_of_materials", bill_of_materials(skeleton, build)),
        ("servo_map", servo_map(skeleton)),
        ("skin_pieces", piece_rows(pieces, moulds, design.materials[0].density)),
    ):
        values = (row.values() for row in rows)
        paths.append(write_csv(folder / f"{name}.csv", rows[0], values))
    return Fabrication(pieces, moulds, tuple(paths))


# The lists: pieces to cast, things to buy and print, and how the servos are wired.


def piece_rows(
    pieces: Mapping[str, SkinPiece], moulds: Mapping[str, Mould], density: float
) -> list[dict[str, object]]:
    """Volume, mass, mould, undercut of each piece; masses add up to the skin's."""
    rows = []
    for name, piece in pieces.items():
        mould = moulds[name]
        rows.append(
            {
                "piece": name,
                "silicone_cm3": round(1e6 * piece.volume, 3),
                "silicone_g": round(1e3 * density * piece.volume, 3),
                "mould_parts": len(mould.bodies),
                "mould_mm": " x ".join(f"{1e3 * side:.0f}" for side in mould.size),
                "undercut_outside": round(mould.parting.undercut, 4),
                "undercut": round(mould.undercut, 4),
                "undercut_without_core": round(mould.undercut_without_core, 4),
                "vents": len(mould.vents),
            }
        )
    return rows


def bill_of_materials(skeleton: Skeleton, build: Build) -> list[dict[str, object]]:
    """Rows item, kind, count, mass_each_kg, note; the masses add up to the skeleton's.

    Screws are listed without mass.
    """
    rows = []

    def add(item, kind, count, mass, note):
        row = {"item": item, "kind": kind, "count": count}
        rows.append(row | {"mass_each_kg": round(float(mass), 6), "note": note})

    for link in skeleton.links:
        mass = link.mass_of("shell") + link.mass_of("rib")
        note = f"SLA resin, {mass / build.density * 1e6:.1f} cm^3"
        add(link.name, "printed part", 1, mass, note)
    servos = {hinge.servo for hinge in skeleton.hinges}
    for servo in sorted(servos, key=lambda s: s.name):
        count = sum(hinge.servo == servo for hinge in skeleton.hinges)
        add(servo.name, "servo", count, servo.mass, f"{servo.effort:g} N m")
    for link in skeleton.links:
        for solid in (s for s in link.solids if s.kind == "payload"):
            size = " x ".join(f"{1e3 * side:g}" for side in solid.size)
            add(solid.name, "payload", 1, solid.mass, f"{size} mm")
    note = f"pilot holes {1e3 * build.pilot_hole:g} mm"
    add("self-tapping screw", "screw", 4 * len(skeleton.hinges), 0.0, note)
    return rows


def servo_map(skeleton: Skeleton) -> list[dict[str, object]]:
    """Rows joint, channel, servo, direction, zero_deg, lower_deg, upper_deg.

    The angle of a servo's shaft about its outward direction, counted from the start of
    its travel, is zero_deg + direction x the joint's angle; see
    :func:`_shaft_direction`.

    Raises:
        InvalidInput: for more joints than the board has channels, or limits beyond a
            servo's travel.
    """
    if len(skeleton.hinges) > _CHANNELS:
        raise InvalidInput(
            f"servo map: {len(skeleton.hinges)} joints, but the board has {_CHANNELS} "
            "channels; add a second board"
        )
    rows = []
    for channel, hinge in enumerate(skeleton.hinges):
        zero = hinge.servo.travel / 2
        if max(-hinge.lower, hinge.upper) > zero:
            raise InvalidInput(
                f"joint {hinge.name}: limits exceed the travel of {hinge.servo.name}"
            )
        rows.append(
            {
                "joint": hinge.name,
                "channel": channel,
                "servo": hinge.servo.name,
                "direction": _shaft_direction(hinge),
                "zero_deg": round(float(np.degrees(zero)), 6),
                "lower_deg": round(float(np.degrees(hinge.lower)), 6),
                "upper_deg": round(float(np.degrees(hinge.upper)), 6),
            }
        )
    return rows


def _shaft_direction(hinge: Hinge) -> int:
    """1 where the servo's shaft points along the joint's axis, -1 where against it.

    Shafts point out of the robot: those of pitch joints to their side, those of
    abduction joints to their end, where the hip's horn is, and those of yaw joints up.
    """
    along = int(np.argmax(np.abs(hinge.axis)))
    if along == 2:
        return 1
    return 1 if hinge.p_WJ[along] * hinge.axis[along] > 0 else -1


# The printed parts, one for each link.


@dataclass(frozen=True)
class Hole:
    """A round hole.

    Attributes:
        p_BH: its middle in the link (3,) [m].
        axis: its axis in the link, a unit vector (3,).
        diameter: its diameter [m].
        depth: its length [m].
    """

    p_BH: np.ndarray
    axis: np.ndarray
    diameter: float
    depth: float


def link_part(link: Link, build: Build) -> Surface:
    """The closed surface of the printed part of one link, in the link's frame [m].

    Raises:
        InvalidInput: when it is empty, not closed, in loose pieces or has closed voids.
    """

    def prism(plate):
        return [plate.body(_JOIN / 2)]

    boxes, cuts = _printed(link, Solid.box, prism, _stretched, _JOIN)
    cuts += [_drill(hole) for hole in (*pilot_holes(link, build), *_drain_holes(link))]
    body = m.Manifold.batch_boolean(boxes, m.OpType.Add)
    if cuts:
        body -= m.Manifold.batch_boolean(cuts, m.OpType.Add)
    # A closed void counts as a piece of negative volume.
    pieces = [1e6 * piece.volume() for piece in body.decompose()]
    pieces = [volume for volume in pieces if abs(volume) > 1e-3]
    if len(pieces) != 1:
        sizes = ", ".join(f"{volume:.2g}" for volume in pieces)
        raise InvalidInput(
            f"part {link.name}: loose pieces or closed voids of {sizes} cm^3; move "
            "what does not touch the rest, or make build.wall thicker"
        )
    return to_surface(body)


def _stretched(solid: Trimmed) -> m.Manifold:
    """A trimmed box, stretched along its sides so that it is enlarged like a box."""
    R = solid.R_BG @ np.diag(1 + _JOIN / solid.size) @ solid.R_BG.T
    return solid.body().transform(np.column_stack([R, solid.p_BG - R @ solid.p_BG]))


def _printed(link: Link, box, prisms, faces, more: float = 0.0) -> tuple[list, list]:
    """Bodies that the printed part of a link is made of, and those of its bays.

    Args:
        link: the link.
        box: the body of a solid, of a size, at a place in the solid's frame.
        prisms: the bodies of a plate.
        faces: the body of a trimmed solid.
        more: by how much boxes are larger [m].
    """
    bodies, bays = [], []
    for solid in (s for s in link.solids if s.kind in ("shell", "rib")):
        if isinstance(solid, Plate):
            bodies += prisms(solid)
            continue
        if isinstance(solid, Trimmed):
            bodies.append(faces(solid))
        else:
            bodies += [box(solid, size + more, p_GV) for size, p_GV in solid.boxes()]
        if solid.name.endswith("_bay"):
            bays.append(box(solid, solid.hole * [1, 1, 1.001], np.zeros(3)))
    return bodies, bays


# Holes.


def pilot_holes(link: Link, build: Build) -> tuple[Hole, ...]:
    """The pilot holes of a link: four for each motor bay, beside the servo's body."""
    holes = []
    along, across = build.servo.screws
    for bay in (s for s in link.solids if s.name.endswith("_bay")):
        # They also go through a bracing ring over the screws.
        depth = bay.size[2] + 2 * build.rib_reach
        for x, y in product((-0.5, 0.5), repeat=2):
            p = bay.p_BG + bay.R_BG @ [x * along, y * across, 0.0]
            hole = Hole(p, bay.R_BG[:, 2], build.pilot_hole, depth)
            holes.append(_through_plates(link, hole, bay.size[2]))
    return tuple(holes)


def _drain_holes(link: Link) -> tuple[Hole, ...]:
    """A hole across each tube, for resin and cables; it would be a closed void."""
    holes = []
    for s in link.solids:
        if s.kind == "shell" and s.name.endswith(("beam", "strut")) and s.hole.all():
            hole = Hole(s.p_BG, s.R_BG[:, 0], _DRAIN, s.size[0] + _RING)
            holes.append(_through_plates(link, hole, s.size[0]))
    return tuple(holes)


def _through_plates(link: Link, hole: Hole, across: float) -> Hole:
    """The hole, extended through the plates that it meets beside a solid.

    Args:
        link: link with the plates.
        hole: hole through the solid.
        across: size of the solid along the hole [m].
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


def _drill(hole: Hole) -> m.Manifold:
    # It extends beyond both faces, so that no film is left over them.
    length, radius = 1.2 * hole.depth, hole.diameter / 2
    tool = m.Manifold.cylinder(length, radius, radius, _SIDES, True)
    return tool.transform(np.column_stack([frame_of(hole.axis), hole.p_BH]))


# STEP files for CAD programs; they need cadquery, an extra.


def write_step(skeleton: Skeleton, build: Build, folder: Path | str) -> list[Path]:
    """Writes LINK.step for every link, in millimetres, with holes as true cylinders.

    Raises:
        InvalidInput: when cadquery is not installed.
    """
    cadquery = extra("cadquery")
    make_folder(folder)
    folder, paths = Path(folder), []
    for link in skeleton.links:
        paths.append(folder / f"{link.name}.step")
        shape = cadquery.Workplane(obj=_step_shape(cadquery, link, build))
        with replacing(paths[-1]) as part:
            cadquery.exporters.export(shape, str(part), "STEP")
    return paths


def _step_shape(cq, link: Link, build: Build):
    """The printed part of a link as a solid of CadQuery [mm]: boxes minus holes."""

    def box(solid, size, p_GV):
        p = 1e3 * (solid.p_BG + solid.R_BG @ p_GV)
        x, z = solid.R_BG[:, 0], solid.R_BG[:, 2]
        plane = cq.Plane(cq.Vector(*p), cq.Vector(*x), cq.Vector(*z))
        return cq.Workplane(plane).box(*(1e3 * size)).val()

    def cylinder(hole):
        length = 1.2 * hole.depth
        foot = cq.Vector(*(1e3 * (hole.p_BH - length / 2 * hole.axis)))
        radius = 1e3 * hole.diameter / 2
        return cq.Solid.makeCylinder(radius, 1e3 * length, foot, cq.Vector(*hole.axis))

    kinds = (partial(kind, cq) for kind in (_step_prisms, _step_faces))
    boxes, cuts = _printed(link, box, *kinds)
    cuts += [cylinder(h) for h in (*pilot_holes(link, build), *_drain_holes(link))]
    body = boxes[0].fuse(*boxes[1:]) if len(boxes) > 1 else boxes[0]
    return body.cut(*cuts) if cuts else body


def _step_prisms(cq, plate: Plate):
    def wire(contour):
        flat = np.column_stack([contour, np.full(len(contour), -plate.thickness / 2)])
        points = 1e3 * (plate.p_BG + flat @ plate.R_BG.T)
        return cq.Wire.makePolygon([cq.Vector(*p) for p in points], close=True)

    along = cq.Vector(*(1e3 * plate.thickness * plate.R_BG[:, 2]))
    return [
        cq.Solid.extrudeLinear(wire(outline), [wire(hole) for hole in holes], along)
        for outline, holes in plate.pieces()
    ]


def _step_faces(cq, solid: Trimmed):
    x = 1e3 * solid.shape.vertices
    faces = [
        cq.Face.makeFromWires(
            cq.Wire.makePolygon([cq.Vector(*p) for p in x[triangle]], close=True)
        )
        for triangle in solid.shape.triangles
    ]
    return cq.Solid.makeSolid(cq.Shell.makeShell(faces))
