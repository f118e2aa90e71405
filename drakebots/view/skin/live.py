"""A deforming skin live in Meshcat, drawn on request.

view = SkinView(stage.meshcat, triangles, colour_scale("stress", values))
view.show(positions, stress)
"""

from __future__ import annotations

import base64
import io
import json

import numpy as np
from matplotlib.figure import Figure
from pydrake.common import MemoryFile
from pydrake.geometry import InMemoryMesh, Mesh, Meshcat
from pydrake.math import RigidTransform, RotationMatrix

from drakebots.core.errors import InvalidInput
from drakebots.view.scene import ROOT, VIEW, Stage
from drakebots.view.skin.colour import ColourScale, linear_rgb
from drakebots.view.skin.page import drawn_surface

SKIN = f"{ROOT}/skin"
"""Path of the mesh."""

BOARD = "/skin_scale"
"""Path of a served scene's colour scale."""

OPACITY = 0.6

_LOOK = {  # one layer, smooth: of `view_skin_page` what properties can say
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
        if not 0 <= opacity <= 1:
            raise InvalidInput(f"opacity must be within 0..1, got {opacity}")
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
        positions, values = np.asarray(positions), np.asarray(values)
        if positions.shape != (self.count, 3) or values.shape != (self.count,):
            raise InvalidInput(
                f"the skin has {self.count} vertices; got positions "
                f"{positions.shape} and values {values.shape}"
            )
        x, shown = positions[self.vertices], values[self.vertices]
        if not (np.isfinite(x).all() and np.isfinite(shown).all()):
            raise InvalidInput("the skin's positions and values must be finite")
        self.meshcat.SetTriangleColorMesh(
            self.path,
            np.asfortranarray(x.T, float),
            self._faces,
            np.asfortranarray(linear_rgb(self.scale.rgb(shown)).T),
        )
        # A new object forgets the properties of the old one.
        self.meshcat.SetProperty(
            f"{self.path}/<object>", "modulated_opacity", self.opacity
        )
        for name, value in _LOOK.items():
            self.meshcat.SetProperty(f"{self.path}/<object>", name, value)


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
    towards = np.array(towards, float) / np.linalg.norm(towards)
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    turned = RotationMatrix(np.stack([right, np.cross(towards, right), towards], 1))
    # In scene units, where all that is shown has a half diagonal of 0.5.
    middle = stage.scale * (stage.middle - stage.ground) - 0.55 * right
    stage.meshcat.SetObject(path, Mesh(_board(scale)))
    stage.meshcat.SetTransform(path, RigidTransform(turned, middle))


def _board(scale: ColourScale, height: float = 0.6) -> InMemoryMesh:
    """A glTF board of `height`, in its x-y plane, with the scale on it."""
    picture = _picture(scale)
    width = height * 0.4
    x, y = width / 2, height / 2
    corners = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]], np.float32)
    # glTF's y is up; Drake turns it about x to its own z.
    corners = corners[:, [0, 2, 1]] * [1, 1, -1]
    texture = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], np.float32)
    faces = np.array([0, 1, 2, 0, 2, 3], np.uint16)
    blobs = [corners.astype(np.float32).tobytes(), texture.tobytes(), faces.tobytes()]
    starts = np.concatenate([[0], np.cumsum([len(b) for b in blobs])])
    content = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["KHR_materials_unlit"],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [
            {
                "primitives": [
                    {
                        "attributes": {"POSITION": 0, "TEXCOORD_0": 1},
                        "indices": 2,
                        "material": 0,
                    }
                ]
            }
        ],
        "materials": [
            {
                "pbrMetallicRoughness": {"baseColorTexture": {"index": 0}},
                "extensions": {"KHR_materials_unlit": {}},
                "doubleSided": True,
            }
        ],
        "textures": [{"source": 0}],
        "images": [{"uri": _data("image/png", picture)}],
        "buffers": [
            {
                "uri": _data("application/octet-stream", b"".join(blobs)),
                "byteLength": int(starts[-1]),
            }
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": int(s), "byteLength": len(b)}
            for s, b in zip(starts, blobs)
        ],
        "accessors": [
            {
                "bufferView": 0,
                "componentType": 5126,
                "count": 4,
                "type": "VEC3",
                "min": corners.min(axis=0).tolist(),
                "max": corners.max(axis=0).tolist(),
            },
            {"bufferView": 1, "componentType": 5126, "count": 4, "type": "VEC2"},
            {"bufferView": 2, "componentType": 5123, "count": 6, "type": "SCALAR"},
        ],
    }
    text = json.dumps(content)
    return InMemoryMesh(mesh_file=MemoryFile(text, ".gltf", "skin_scale.gltf"))


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _picture(scale: ColourScale) -> bytes:
    """The scale with numbers and unit as PNG, 2 wide to 5 high."""
    figure = Figure(figsize=(2, 5), dpi=120, facecolor="white")
    axes = figure.add_axes((0.36, 0.06, 0.18, 0.87))
    ramp = np.linspace(0, scale.top, 256)
    high = scale.top / scale.unit_size
    axes.imshow(
        scale.rgb(ramp)[:, None], origin="lower", aspect="auto", extent=(0, 1, 0, high)
    )
    axes.set(xticks=[], yticks=scale.ticks)
    axes.set_yticklabels([f"{tick:.4g}" for tick in scale.ticks], fontsize=13)
    axes.yaxis.tick_right()
    figure.text(0.2, 0.5, scale.label, rotation=90, va="center", ha="center", size=14)
    if scale.note:
        figure.text(0.5, 0.965, scale.note, ha="center", va="center", size=10)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
