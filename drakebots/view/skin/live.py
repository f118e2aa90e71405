"""A deforming skin in Meshcat, drawn on request, and what its colours mean.

scale = colour_scale("stress", skin_values(result.data, "stress"))
view = SkinView(stage.meshcat, rest, triangles, scale)
view.show(positions, stress)
"""

from __future__ import annotations

import io

import numpy as np
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from pydrake.common import MemoryFile
from pydrake.geometry import InMemoryMesh, Mesh, Meshcat
from pydrake.math import RigidTransform, RotationMatrix
from scipy.spatial.transform import Rotation

from drakebots.core.checks import array, between, check_value
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.lazy import late
from drakebots.fem.mesh import checked_arrays, connected_pieces
from drakebots.results import require
from drakebots.view.page import ColourScale, linear_rgb
from drakebots.view.scene import ROOT, VIEW, Stage, axes_of_view

trimesh, pillow = late("trimesh"), late("PIL.Image")

SKIN = f"{ROOT}/skin"
"""Path of the mesh."""

BOARD = "/skin_scale"
"""Path of a served scene's colour scale."""

OPACITY = 0.6

_HALF = 0.12, 0.3
"""Half the width and height of the board, where the scene's half diagonal is 0.5."""

_LOOK = {  # one layer, smooth: of a page's skin what properties can say
    "material.flatShading": False,
    "material.toneMapped": False,
    "material.depthWrite": True,
    "material.needsUpdate": True,
    "renderOrder": 2.0,
}


class SkinView:
    """The surface of a skin in a Meshcat scene, half-transparent.

    Args:
        meshcat: the server.
        rest: positions of the mesh's vertices at rest (N, 3) [m].
        triangles: its surface (F, 3), outward; closed inner walls are not drawn.
        scale: of the colours.
        path: of the mesh.
        opacity: within 0..1.

    Raises:
        InvalidInput: for wrong shapes, no triangles or such an opacity.
    """

    def __init__(
        self,
        meshcat: Meshcat,
        rest: np.ndarray,
        triangles: np.ndarray,
        scale: ColourScale,
        *,
        path: str = SKIN,
        opacity: float = OPACITY,
    ):
        check_value("opacity", opacity, between(0, 1))
        self.meshcat, self.scale, self.path = meshcat, scale, path
        self.opacity, self.count = opacity, len(rest)
        self.vertices, corners = drawn_surface(rest, triangles)
        self._faces = np.asfortranarray(corners.T)
        self.show(rest, np.zeros(self.count))

    def show(self, positions: np.ndarray, values: np.ndarray) -> None:
        """Draws the skin at positions (N, 3) [m] in colours of values (N,) [SI].

        Raises:
            InvalidInput: for other shapes or what is not finite.
        """
        points, numbers = array((self.count, 3), "m"), array((self.count,))
        positions = check_value("the skin's positions", positions, points)
        values = check_value("the skin's values", values, numbers)
        rgb = linear_rgb(self.scale.rgb(values[self.vertices]))
        x, colours = (np.asfortranarray(a.T) for a in (positions[self.vertices], rgb))
        self.meshcat.SetTriangleColorMesh(self.path, x, self._faces, colours)
        # A new object forgets the properties of the old one.
        for name, value in ({"modulated_opacity": self.opacity} | _LOOK).items():
            self.meshcat.SetProperty(f"{self.path}/<object>", name, value)


def drawn_surface(rest: np.ndarray, triangles: np.ndarray) -> tuple:
    """The surface without closed inner walls, which nobody sees.

    A closed piece of an outward surface with negative volume bounds a cavity.

    Args:
        rest: vertices (N, 3) [m].
        triangles: outward (F, 3).

    Returns:
        The numbers (V,) of the vertices drawn, and triangles (f, 3) of those.

    Raises:
        InvalidInput: for no triangles, or a corner that is no vertex.
    """
    rest, triangles = checked_arrays("skin", "triangle", rest, triangles, 3)
    piece = connected_pieces(triangles, len(rest))[1][triangles[:, 0]]
    around = rest - rest.mean(axis=0)
    a, b, c = around[triangles].swapaxes(0, 1)
    volume = np.bincount(piece, np.einsum("fk,fk->f", a, np.cross(b, c)))
    seen = triangles[volume[piece] > 0]
    if not len(seen):  # an open sheet may have any sign
        seen = triangles
    used, corners = np.unique(seen, return_inverse=True)
    return used, corners.reshape(-1, 3)


def draw_scale(
    stage: Stage, scale: ColourScale, *, towards=VIEW, path: str = BOARD
) -> None:
    """Puts the colour scale to the left of what is shown.

    Args:
        stage: to draw on.
        scale: to draw.
        towards: direction to the camera (3,) that it faces, not vertical.
        path: of the board.
    """
    stage.meshcat.SetObject(path, Mesh(_board(scale)))
    stage.meshcat.SetTransform(path, _place(stage, towards))


def scale_corners(stage: Stage, towards=VIEW) -> np.ndarray:
    """Corners (4, 3) [m] in the world of the board of :func:`draw_scale`."""
    x, y = _HALF
    corners = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]])
    return (_place(stage, towards) @ corners.T).T / stage.scale + stage.ground


def _place(stage: Stage, towards) -> RigidTransform:
    """The pose of the board, in scene units."""
    axes = axes_of_view(towards)
    # All that is shown has a half diagonal of 0.5.
    middle = stage.scale * (stage.middle - stage.ground) - 0.55 * axes[0]
    return RigidTransform(RotationMatrix(axes.T), middle)


def _board(scale: ColourScale) -> InMemoryMesh:
    """A glTF board in its x-y plane, with the scale on it."""
    x, y = _HALF
    # glTF's y is up; Drake turns it about x to its own z.
    corners = [[-x, 0, y], [x, 0, y], [x, 0, -y], [-x, 0, -y]]
    # It shines by itself, whatever lights the scene.
    material = trimesh.visual.material.PBRMaterial(
        emissiveTexture=pillow.open(io.BytesIO(_picture(scale))),
        emissiveFactor=[1, 1, 1],
        baseColorFactor=[0, 0, 0, 255],
        doubleSided=True,
    )
    uv, faces = [[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 1, 2], [0, 2, 3]]
    texture = trimesh.visual.TextureVisuals(uv=uv, material=material)
    board = trimesh.Trimesh(corners, faces, visual=texture, process=False)
    files = trimesh.exchange.gltf.export_gltf(board.scene(), embed_buffers=True)
    text = files["model.gltf"].decode()
    return InMemoryMesh(mesh_file=MemoryFile(text, ".gltf", "skin_scale.gltf"))


def _picture(scale: ColourScale) -> bytes:
    """The scale with numbers and unit as PNG, 2 wide to 5 high."""
    figure = Figure(figsize=(2, 5), dpi=120, facecolor="white")
    ends = Normalize(0.0, scale.top / scale.unit_size)
    colours = ScalarMappable(ends, scale.colours)
    axes = figure.add_axes((0.36, 0.06, 0.18, 0.87))
    bar = figure.colorbar(colours, cax=axes, ticks=scale.ticks, format="%.4g")
    bar.ax.tick_params(labelsize=13)
    figure.text(0.2, 0.5, scale.label, rotation=90, va="center", ha="center", size=14)
    figure.text(0.5, 0.965, scale.note, ha="center", va="center", size=10)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


# --- colours ----------------------------------------------------------------

_LABELS = {"stress": "von Mises stress", "displacement": "displacement from rest shape"}
"""What the quantities are that can colour a skin."""

_UNITS = {
    "stress": ((1e6, "MPa"), (1e3, "kPa"), (1.0, "Pa")),
    "displacement": ((1.0, "m"), (1e-3, "mm"), (1e-6, "um")),
}
_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_MAP = "YlOrRd"  # pale where there is little: the skeleton is seen there

SHARE = 99.0
"""The scale's top is the round number at or above this percentile; a few
vertices in a fold would take all the colours otherwise."""


def colour_scale(quantity: str, values: np.ndarray) -> ColourScale:
    """The scale for values >= 0, of any shape (SI), from 0 to a round number.

    Raises:
        UnknownName: for a quantity that can colour no skin.
        InvalidInput: for values that are not finite.
    """
    check_names("colour", [quantity], _LABELS)
    values = np.asarray(values)
    if not values.size or not np.isfinite(values).all():
        raise InvalidInput(f"the skin's {quantity}: needs finite values")
    largest = float(values.max())
    high = float(np.percentile(values, SHARE))
    # All at zero: any scale will do.
    top = round_up(high if high > 0 else largest) if largest > 0 else 1.0
    units = _UNITS[quantity]
    size, unit = next((one for one in units if top >= one[0]), units[-1])
    note = f"largest {largest / size:.3g} {unit}" if largest > top else ""
    return ColourScale(_LABELS[quantity], top, unit, size, _MAP, note)


def round_up(value: float) -> float:
    """The smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times 10^k that is >= value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(min(m * power for m in _ROUND if m * power >= value * (1 - 1e-9)))


def skin_values(data: xr.Dataset, quantity: str) -> np.ndarray:
    """The coloured quantity at each vertex (skin_time, vertex), in SI.

    Args:
        data: with skin_stress, or skin_position and skin_rest.
        quantity: "stress": von Mises; "displacement": the distance |x - (R X + p)|
            from the shape at rest, X, in the pose (R, p) that fits best (least
            squares): a body that only moves as a whole has none.

    Raises:
        UnknownName: for another quantity.
        InvalidInput: when the data lack it.
    """
    check_names("colour", [quantity], _LABELS)
    needs = "skin_stress" if quantity == "stress" else "skin_position skin_rest"
    require(data, needs, f"skin to colour by {quantity}")
    if quantity == "stress":
        return data.skin_stress.transpose("skin_time", "vertex").values
    places = data.skin_position.transpose("skin_time", "vertex", "axis").values
    rest = data.skin_rest.transpose("vertex", "axis").values
    return np.stack([_away(rest.astype(float), x.astype(float)) for x in places])


def _away(rest: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Distances (V,) from the rest shape, best placed (Kabsch's rotation)."""
    at, to = rest - rest.mean(axis=0), x - x.mean(axis=0)
    turn, _ = Rotation.align_vectors(to, at)
    return np.linalg.norm(to - turn.apply(at), axis=1)
