"""The shapes of links: meshes that Drake can use, made from those it cannot.

Drake takes collision shapes from .obj, .gltf and .vtk, and draws .obj and .gltf. Robot
files name .stl and .dae. Those are converted to .obj, once: the copy lies in a cache
under a name made from the content of the mesh. A collision mesh becomes its convex
hull, which is what Drake's point contact makes of any mesh, for every plant anew; so
large .obj files become theirs, too. Shapes without a size, and meshes that are not
found, are dropped.

Conventions are those of ROS (RViz): Collada's unit counts, its up axis does not.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import re
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import scipy
from pydrake.geometry import Mesh

from drakebots.core.errors import DrakebotsWarning, ModelProblem, one_line
from drakebots.core.files import cache_folder, write_text
from drakebots.core.lazy import late
from drakebots.formats.read.files import Packages
from drakebots.formats.read.findings import Findings
from drakebots.formats.read.limits import check_content
from drakebots.formats.read.tree import floats, name_file, named_file, said

trimesh = late("trimesh")

MAX_BYTES = 200_000_000
"""A larger mesh is refused before it is read."""

MAX_FACES = 30_000
"""A drawn mesh with more triangles is made coarser."""

LARGE = 100_000
"""Size of a collision mesh [bytes] above which its convex hull takes its place."""

_VERSION = 2
"""Part of the names in the cache; another one when the conversion changes."""

_UPRIGHT = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""Vectors (n, 3) of a frame whose y is up, times this, are in one whose z is."""

_DRAWN = (".obj", ".gltf")
_TOUCHED = (".obj", ".gltf", ".vtk")


@dataclass(frozen=True)
class Part:
    """A triangle mesh of one color.

    Attributes:
        vertices: (num_vertices, 3), in the unit of the file's mesh.
        faces: vertices of the triangles (num_faces, 3).
        rgba: color (4,) in 0 .. 1; None for the one that the model gives.
    """

    vertices: np.ndarray
    faces: np.ndarray
    rgba: np.ndarray | None = None


def visual_mesh(path: Path) -> Path:
    """A mesh to draw: the file itself where Drake draws it, else a converted copy.

    Raises:
        ModelProblem: for a file that is no mesh, or has nothing to draw.
    """
    path = check_mesh_file(path)
    if path.suffix.lower() in _DRAWN:
        return _with_own_files(_hull_known(path))
    return _converted(path, "visual", lambda: [coarser(p) for p in read_parts(path)])


def collision_mesh(path: Path, *, hull: bool = True) -> Path:
    """A mesh to touch: the file itself where Drake takes it, else a converted copy.

    Args:
        path: the mesh.
        hull: whether its convex hull will do; hydroelastic contact needs the surface.

    Raises:
        ModelProblem: for a file that is no mesh, or has no volume and no surface.
    """
    path = check_mesh_file(path)
    large = hull and path.suffix.lower() == ".obj" and path.stat().st_size > LARGE
    if path.suffix.lower() in _TOUCHED and not large:
        # It is drawn, too, where a model has nothing else to draw.
        return _with_own_files(_hull_known(path))
    kind = "hull" if hull else "surface"
    return _converted(
        path, kind, lambda: [join(read_parts(path), hull=hull)], colors=False
    )


def obj_mesh(path: Path) -> Path:
    """A mesh that Drake uses as .obj without materials: itself, or a converted copy.

    Raises:
        ModelProblem: for a file that cannot be read.
    """
    path = check_mesh_file(path)
    if path.suffix.lower() == ".obj":
        return path
    whole = lambda: [join(read_parts(path), hull=False)]  # noqa: E731
    return _converted(path, "plain", whole, colors=False)


def check_mesh_file(path: Path) -> Path:
    """The path of a mesh file that can be read.

    Raises:
        ModelProblem: for a folder, a pipe, a device, a file that is too large, or the
            pointer of Git LFS to one.
    """
    if not os.path.isfile(path):
        raise ModelProblem(path, "is no file")
    if path.stat().st_size > MAX_BYTES:
        raise ModelProblem(path, f"is larger than {MAX_BYTES // 1_000_000} MB")
    with open(path, "rb") as file:
        check_content(path, file.read(100))
    return path


def _hull_known(path: Path) -> Path:
    """The path, if Drake can make the convex hull, which gives it the mesh's size.

    That it can is marked in the cache.
    """
    mark = mesh_cache() / f"{path.stem}-good{_VERSION}-{_digest(path)}"
    if os.path.isfile(mark):
        return path
    try:
        Mesh(str(path)).GetConvexHull()
    except (RuntimeError, ValueError, SystemExit) as error:
        raise ModelProblem(
            path, f"cannot be used by Drake ({one_line(error)})"
        ) from error
    mark.touch()
    return path


def _with_own_files(path: Path) -> Path:
    """A mesh that names no file but its own, as Meshcat copies what a mesh names.

    That are the library of materials of an .obj, the library's textures, and the
    buffers and images of a .gltf. An .obj goes without all its materials, and takes the
    color of the model, where one of its libraries is missing (Meshcat complains of each
    that it cannot open), is no library, or is no file near the mesh.

    Raises:
        ModelProblem: for a .gltf that names a file which is not below its folder.
    """
    if path.suffix.lower() == ".vtk":
        return path
    if path.suffix.lower() == ".gltf":
        for uri in _gltf_files(path):
            if not _belongs(path, path.parent / uri, folders=1):
                raise ModelProblem(
                    path, f"names {uri}, which is not below its folder; move it there"
                )
        return path
    text = path.read_text(encoding="utf-8", errors="replace")
    # As Drake looks for libraries: anywhere in the text, and up to a space.
    libraries = re.findall(r"mtllib\s+[\\\"]*([^\s\\\"]+)", text)
    lost = [x for x in libraries if not _is_library(path, path.parent / x)]
    if not lost:
        return path
    if any(os.path.exists(path.parent / name) for name in lost):
        warnings.warn(
            f"{path}: drawn without its materials; {lost[0]} must be a library of "
            "materials below the folder that holds the mesh's, and its pictures too",
            DrakebotsWarning,
            stacklevel=2,
        )
    target = mesh_cache() / f"{path.stem}-plain{_VERSION}-{_digest(path)}.obj"
    if not os.path.isfile(target):
        lines = re.compile(r"^.*mtllib.*$|^usemtl\b.*$", re.MULTILINE)
        write_text(target, lines.sub("", text))
    return target


_LIBRARY_WORDS = re.compile(
    r"(newmtl|K[adse]|T[fr]|N[si]|d|illum|sharpness|P[a-z]+|aniso[a-z]*|norm|disp|decal"
    r"|bump|refl|map_\w+)\b|#|$"
)
"""Beginnings of the lines of a library of materials."""

_PICTURES = re.compile(
    rb"\x89PNG|\xff\xd8\xff|BM|GIF8|RIFF....WEBP|\xabKTX|II\*|MM\0", re.S
)
"""Beginnings of the files of pictures."""


def _is_library(mesh: Path, library: Path) -> bool:
    """Whether a file is a library of materials that Meshcat may copy into a page."""
    if not _belongs(mesh, library) or library.stat().st_size > MAX_BYTES:
        return False
    lines = library.read_text(encoding="utf-8", errors="replace").splitlines()
    if not all(_LIBRARY_WORDS.match(line.strip()) for line in lines):
        return False
    named = [
        library.parent / word.strip("\"'")
        for line in lines
        if re.match(r"\s*(map_|bump|disp|decal|refl|norm)", line)
        for word in (*line.split()[1:], *line.split(maxsplit=1)[1:])
    ]
    return all(_is_picture(mesh, file) for file in named if os.path.lexists(file))


def _is_picture(mesh: Path, file: Path) -> bool:
    if not _belongs(mesh, file):
        return False
    with open(file, "rb") as content:
        return _PICTURES.match(content.read(12)) is not None


def _belongs(mesh: Path, file: Path, *, folders: int = 2) -> bool:
    """Whether a file lies below the mesh's folder, or below one that holds that."""
    try:
        near = Path(os.path.realpath(mesh.parent))
        for _ in range(folders - 1):
            near = near if near.parent == Path("/") else near.parent
        real = Path(os.path.realpath(file))
        return os.path.isfile(real) and near != Path("/") and real.is_relative_to(near)
    except (OSError, ValueError):
        return False


def _gltf_files(path: Path) -> list[str]:
    """Other files that a .gltf refers to."""
    try:
        top = json.loads(path.read_bytes())
        parts = [*top.get("buffers", []), *top.get("images", [])]
        uris = [str(part["uri"]) for part in parts if "uri" in part]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ModelProblem(path, f"is no glTF ({one_line(error)[:80]})") from error
    return [unquote(uri) for uri in uris if not uri.startswith("data:")]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:24]


# --- the cache ---


def mesh_cache() -> Path:
    """The folder of the converted meshes: in the user's cache, or a temporary one.

    Some users have no home that can be written to.
    """
    folder = cache_folder("meshes")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _temporary()
    return folder if os.access(folder, os.W_OK) else _temporary()


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="drakebots-meshes-"))


def _converted(path: Path, kind: str, make, *, colors: bool = True) -> Path:
    """The .obj of a mesh file in the cache; made where it is not there yet."""
    target = mesh_cache() / f"{path.stem}-{kind}{_VERSION}-{_digest(path)}.obj"
    if not os.path.isfile(target):
        write_obj(target, make(), colors=colors)
        try:
            _hull_known(target)
        except ModelProblem as error:
            target.unlink()
            raise ModelProblem(path, "has no surface that Drake can use") from error
    return target


# --- reading and writing ---


def read_parts(path: Path) -> list[Part]:
    """The parts of a mesh file, in the frame and the unit that a model gives it.

    Raises:
        ModelProblem: for a file that trimesh cannot read, or without triangles.
    """
    path = check_mesh_file(path)
    ending = path.suffix.lower().lstrip(".")
    data = path.read_bytes()
    if ending == "dae":
        data = _without_textures(data)
    # The buffers of a .gltf may be files beside it.
    beside = trimesh.resolvers.FilePathResolver(path) if ending == "gltf" else None
    try:
        scene = trimesh.load_scene(io.BytesIO(data), file_type=ending, resolver=beside)
        meshes = [m for m in scene.dump() if isinstance(m, trimesh.Trimesh)]
    except ImportError as error:
        raise ModelProblem(path, f"cannot be read without {error.name}") from error
    except Exception as error:
        # trimesh has no error of its own, and its readers raise all kinds.
        known = ", ".join(sorted(trimesh.available_formats()))
        message = f"cannot be read as a mesh ({one_line(error)[:80]}); trimesh reads "
        raise ModelProblem(path, message + known) from error
    unit = _collada_unit(scene) if ending == "dae" else 1.0
    # The y of glTF is up: Drake turns it about x, as do Blender and rviz.
    turn = _UPRIGHT if ending in ("gltf", "glb") else np.eye(3)
    parts = [
        Part(mesh.vertices @ (unit * turn), np.asarray(mesh.faces), _color(mesh))
        for mesh in meshes
        if len(mesh.faces) and np.isfinite(mesh.vertices).all()
    ]
    if not parts:
        raise ModelProblem(path, "has no triangles")
    return parts


def _without_textures(collada: bytes) -> bytes:
    """A Collada file with grey in the place of textures.

    pycollada leaves out the triangles of a material whose texture it cannot find.
    """
    grey = b"<color>0.7 0.7 0.7 1</color>"
    texture = rb"<texture\b[^>]*?(/>|>.*?</texture>)"
    collada = re.sub(texture, grey, collada, flags=re.DOTALL)
    return re.sub(rb"<newparam\b.*?</newparam>", b"", collada, flags=re.DOTALL)


def _collada_unit(scene: trimesh.Scene) -> float:
    """Collada's unit of length [m]."""
    try:
        return float(trimesh.units.unit_conversion(scene.units or "meters", "meters"))
    except (KeyError, ValueError):
        return 1.0


def _color(mesh: trimesh.Trimesh) -> np.ndarray | None:
    """The color (4,) of a mesh; the mean one where each triangle has its own."""
    if not mesh.visual.defined:
        return None
    if mesh.visual.kind == "texture":
        rgba = mesh.visual.material.main_color
    else:
        rgba = mesh.visual.vertex_colors.mean(axis=0)
    return np.asarray(rgba, float) / 255


def join(parts: Sequence[Part], *, hull: bool) -> Part:
    """All parts as one, without a color; as the convex hull, if it has a volume."""
    both = zip(*((part.vertices, part.faces) for part in parts))
    vertices, faces = trimesh.util.append_faces(*map(list, both))
    if hull:
        try:
            convex = trimesh.convex.convex_hull(vertices)
        except (scipy.spatial.QhullError, ValueError):
            return Part(vertices, faces)  # flat
        return Part(np.asarray(convex.vertices), np.asarray(convex.faces))
    return Part(vertices, faces)


def coarser(part: Part, max_faces: int = MAX_FACES) -> Part:
    """A part with at most so many triangles: vertices merged in the cells of a grid.

    The vertices in a cell become one, at their mean; triangles with two corners in a
    cell go. The grid is made coarser until few enough triangles are left.
    Source: Rossignac and Borrel 1993, Multi-resolution 3D approximations.
    """
    low = part.vertices.min(axis=0)
    size = float(np.ptp(part.vertices, axis=0).max())
    cells, faces, vertices = 256.0, part.faces, part.vertices
    while len(faces) > max_faces:
        x, y, z = np.floor((part.vertices - low) / size * cells).astype(np.int64).T
        _, which, counts = np.unique(
            (x << 40) | (y << 20) | z, return_inverse=True, return_counts=True
        )
        sums = [np.bincount(which, part.vertices[:, k]) for k in range(3)]
        vertices = np.column_stack(sums) / counts[:, None]
        faces = which[part.faces]
        faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
        cells *= min(0.8, 0.95 * np.sqrt(max_faces / max(len(faces), 1)))
    return Part(vertices, faces, part.rgba)


def write_obj(path: Path, parts: Sequence[Part], *, colors: bool = True) -> None:
    """Writes parts as .obj, and their colors as an .mtl beside it."""
    lines, materials, first = [], [], 1
    if colors and any(part.rgba is not None for part in parts):
        library = path.with_suffix(".mtl")
        lines.append(f"mtllib {library.name}")
        for k, part in enumerate(parts):
            r, g, b, a = (0.8, 0.8, 0.8, 1.0) if part.rgba is None else part.rgba
            materials.append(
                f"newmtl part{k}\nKd {r:.4g} {g:.4g} {b:.4g}\nd {a:.4g}\nillum 1\n"
            )
        write_text(library, "".join(materials))
    for k, part in enumerate(parts):
        if materials:
            lines.append(f"usemtl part{k}")
        lines += [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in part.vertices]
        lines += [f"f {i} {j} {k}" for i, j, k in part.faces + first]
        first += len(part.vertices)
    write_text(path, "\n".join(lines) + "\n")


# --- the shapes of a link ---

SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
}
"""Attributes of a shape that must be > 0; Drake stops where one is not."""

SHAPES = {*SIZES, "sphere", "mesh", "drake:capsule", "drake:ellipsoid"}
"""The shapes of a URDF for Drake."""


def repair_shapes(link: ET.Element, packages: Packages, findings: Findings) -> None:
    """Drops the shapes of a link that cannot be used, and replaces meshes.

    A link that loses all that was drawn of it is drawn by its collision shapes.

    Args:
        link: of a URDF or SDF.
        packages: folders of meshes.
        findings: to add to.
    """
    name = link.get("name", "")
    drawn = link.find("visual") is not None
    for kind in ("visual", "collision"):
        for element in link.findall(kind):
            if not _usable(element, name, packages, findings):
                link.remove(element)
    if drawn and link.find("visual") is None:
        for k, collision in enumerate(link.findall("collision")):
            link.append(_as_visual(collision, f"{name}_collision_{k}"))
            findings.note("drawn by its collision shape", name)


def _usable(
    element: ET.Element, link: str, packages: Packages, findings: Findings
) -> bool:
    geometry = element.find("geometry")
    shape = None if geometry is None or not len(geometry) else geometry[0]
    if shape is None:
        findings.note(f"a <{element.tag}> without a shape is left out", link)
        return False
    if shape.tag == "mesh":
        return _usable_mesh(shape, element, packages, findings)
    sizes = [floats(said(shape, key)) for key in SIZES.get(shape.tag, ())]
    # Drake names what is no number.
    if any(numbers and not all(x > 0 for x in numbers) for numbers in sizes):
        findings.note(f"a <{shape.tag}> without a size is left out", link)
        return False
    return True


def _usable_mesh(
    mesh: ET.Element, element: ET.Element, packages: Packages, findings: Findings
) -> bool:
    uri, kind = named_file(mesh), element.tag
    path = packages.find(uri)
    if path is None:
        line = f"a {kind} mesh is not found"
        if uri.startswith(("package://", "model://")):
            line += f" (--package {uri.split('/')[2]}=FOLDER says where)"
        findings.note(f"{line} and left out", uri.rpartition("/")[2] or uri)
        return False
    try:
        if kind == "visual":
            usable = visual_mesh(path)
        else:
            usable = collision_mesh(path, hull=not _is_hydroelastic(element))
    except ModelProblem as error:
        _, _, reason = str(error).partition(": ")
        findings.note(f"a {kind} mesh is left out, which {reason}", path.name)
        return False
    if usable != path or not packages.is_plain(uri, path):
        name_file(mesh, f"file://{usable}")
    return True


def _is_hydroelastic(collision: ET.Element) -> bool:
    tags = ("drake:rigid_hydroelastic", "drake:compliant_hydroelastic")
    return any(element.tag in tags for element in collision.iter())


def _as_visual(collision: ET.Element, name: str) -> ET.Element:
    """A <visual> of the shape and the pose of a <collision>."""
    visual = ET.Element("visual", {"name": name})
    kept = ("origin", "pose", "geometry")
    visual.extend(copy.deepcopy(e) for e in collision if e.tag in kept)
    return visual
