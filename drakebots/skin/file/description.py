"""The file of a skin on a skeleton: `robot.skin.yaml` beside `robot.sdf`, in SI.

The mesh is given in the world frame, with the skeleton in its default pose except for
the positions in `joints`:

    mesh: skin.vtu
    unit: mm                       # of the mesh: m (default), cm or mm
    material: {kind: neo-hookean, youngs_modulus: 8.0e5, poisson_ratio: 0.46}
    regions:                       # changes in a region of the mesh
      2: {youngs_modulus: 1.2e5}
    second_order: [1]              # regions of P2 tets
    joints: {knee: 0.2}            # rest pose [rad, m]
    glue:
      thigh: [12, 13, 40]          # vertices on each link, or instead:
      # radius: 0.005              # all vertices this near to collision geometry
      # between: leave             # refuse | nearest | leave
    servos: {stiffness: 40, damping: 1}   # of every actuated joint; limits are the
        SDF's
    cavities: {lung: 1200}         # any vertex of a closed inner surface, or its
                                   # triangles, [[1, 2, 3], ...]
    patches:                       # contact points of each foot, on its link
      front_left: {body: foot_fl, points: [[0, 0, -0.05], [0.02, 0, -0.05]]}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import yaml

from drakebots.core.checks import non_negative, one_of, positive
from drakebots.core.convert import as_yaml, build, changed, from_yaml
from drakebots.core.errors import InvalidInput, ModelProblem
from drakebots.core.fields import checked
from drakebots.core.files import TOP, Fields, read_yaml, reading, write_text
from drakebots.fem.material import Material
from drakebots.skin.coupled import Patches
from drakebots.skin.coupled.glue import BETWEEN

UNITS = ("m", "cm", "mm")
"""Units of a mesh."""

MODULI = (1e3, 1e13)
"""Smallest and largest Young's modulus of a skin [Pa]: gels, and ten diamonds."""


@checked("glue")
class GlueRadius:
    """Glues all vertices within a radius of the links' collision geometry.

    Raises:
        InvalidInput, UnknownName: for a radius not > 0, or an unknown choice.
    """

    radius: Annotated[float, positive("m")]
    """Largest distance from a link's surface."""
    between: Annotated[str, one_of("choice for a vertex between links", BETWEEN)] = (
        "leave"
    )
    """Choice for a vertex near two links; see
    :func:`~drakebots.skin.coupled.glue.glue_by_radius`."""


@checked("servos")
class ServoGains:
    """Gains of the position servos of all actuated joints.

    Raises:
        InvalidInput: unless both are finite and >= 0.
    """

    stiffness: Annotated[float, non_negative("N m/rad")] = 40.0
    """Stiffness of the servos."""
    damping: Annotated[float, non_negative("N m s/rad")] = 1.0
    """Damping of the servos."""


@checked()
class SkinDescription:
    """The contents of a `.skin.yaml` file.

    Raises:
        InvalidInput, UnknownName: for a modulus that no solid has, or another unit.
    """

    mesh: str
    """Path of the tet mesh, relative to the file."""
    glue: Mapping[str, tuple[int, ...]] | GlueRadius
    """Vertices on each link, or a radius."""
    material: Material = field(default_factory=Material)
    """Material of all regions except those in `regions`."""
    regions: Mapping[int, Material] = field(default_factory=dict)
    """Materials of some regions of the mesh."""
    second_order: tuple[int, ...] = ()
    """Regions of P2 tets."""
    joints: Mapping[str, float] = field(default_factory=dict)
    """Rest positions of joints of one coordinate [rad, m]; those of the model by
    default."""
    servos: ServoGains = field(default_factory=ServoGains)
    """Gains of the servos."""
    patches: tuple[Patches, ...] = ()
    """Contact points of the feet."""
    cavities: Mapping[str, int | tuple[tuple[int, ...], ...]] = field(
        default_factory=dict
    )
    """Cavities by name: any vertex of the closed inner surface, or its triangles."""
    unit: Annotated[str | None, one_of("unit", UNITS)] = None
    """Unit of the mesh, "m", "cm" or "mm"; None for m, which is refused where the mesh
    is a hundred times as large as the skeleton."""

    def __post_init__(self):
        for where, one in {"": self.material, **self.regions}.items():
            check_modulus(f"region {where} " * (where != ""), one.youngs_modulus)


def check_modulus(where: str, value: float) -> None:
    """Refuses a Young's modulus [Pa] that no solid has.

    Raises:
        InvalidInput: with what was probably meant.
    """
    low, high = MODULI
    if not low <= value <= high:
        raise InvalidInput(
            f"{where}youngs_modulus {value:g} Pa: no solid has it; it is in Pa, "
            f"{low:g} to {high:g} (silicone of 0.7 MPa: 7e5)"
        )


def read_skin(path: Path) -> SkinDescription:
    """Reads a `.skin.yaml`.

    Raises:
        ModelProblem: naming the file and the entry that is wrong.
    """
    if not os.path.exists(path):
        raise ModelProblem(
            path, "no such file; `drakebots attach SKELETON SKIN` writes one"
        )
    with reading(path, ModelProblem):
        return parse_skin(read_yaml(path, ModelProblem))


def parse_skin(raw: Any) -> SkinDescription:
    """The description in a parsed YAML document.

    Raises:
        InvalidInput, UnknownName: for an unknown key, a missing entry or a bad
            value.
    """
    top = Fields(raw, TOP, [f.name for f in fields(SkinDescription)])
    if not isinstance(top.get("mesh", None), str):
        raise InvalidInput("needs `mesh: file`, the skin's tets")
    if "glue" not in top:
        raise InvalidInput("needs `glue`, vertices by link or a radius")
    patches = top.fields("patches").raw.items()
    own = {
        "glue": _glue(top.fields("glue").raw),
        "patches": tuple(_patches(name, row) for name, row in patches),
    }
    regions = top.get("regions", {})
    Fields(regions, "regions")  # refuses what is no mapping; the keys stay numbers
    rest = {k: v for k, v in top.raw.items() if k not in (*own, "regions")}
    skin = changed(SkinDescription(top.get("mesh"), **own), rest, "")
    materials = {
        from_yaml(int, k, "region"): changed(skin.material, row, f"region {k}")
        for k, row in regions.items()
    }
    return replace(skin, regions=materials)


def _glue(raw: dict[str, Any]) -> Mapping[str, tuple[int, ...]] | GlueRadius:
    if "radius" in raw:
        return build(GlueRadius, raw, "glue")
    if not raw:
        raise InvalidInput("glue: no vertices; name some on at least one link")
    return from_yaml(Mapping[str, tuple[int, ...]], raw, "glue")


def _patches(name, raw):
    row = Fields(raw, f"patches {name}", ("body", "points"))
    return Patches(name, row.text("body"), row.get("points"))


def write_skin(path: Path, skin: SkinDescription) -> None:
    """Writes atomically a `.skin.yaml` that reads back as an equal description."""
    usual, regions = skin.material, skin.regions.items()
    said = as_yaml(skin) | {
        "material": _differences(usual, Material()),
        "regions": {int(k): _differences(one, usual) for k, one in regions},
        "patches": {
            one.foot: {"body": one.body, "points": one.p_BC.tolist()}
            for one in skin.patches
        },
    }
    raw = {k: said[k] for k in _ORDER if said[k] or k == "material"}
    text = "# A skin on a skeleton; see drakebots/skin/file/description.py. SI.\n"
    text += yaml.safe_dump(raw, sort_keys=False, default_flow_style=None, width=100)
    write_text(path, text)


_ORDER = (
    *("mesh", "unit", "material", "regions", "second_order", "joints", "servos"),
    *("cavities", "patches", "glue"),
)
"""Order of the entries in a file that is written."""


def _differences(material: Material, usual: Material) -> dict[str, Any]:
    """What a file says of a material that differs from another."""
    told = as_yaml(usual)
    return {name: v for name, v in as_yaml(material).items() if v != told[name]}
