"""The file that puts a skin on a skeleton: `robot.skin.yaml` beside `robot.sdf`.

In SI; the mesh lies in the world as the skeleton stands in its default pose, with
`joints` set:

    mesh: skin.vtu
    material: {kind: neo-hookean, youngs_modulus: 8.0e5, poisson_ratio: 0.46}
    regions:                       # what differs in a region of the mesh
      2: {youngs_modulus: 1.2e5}
    second_order: [1]              # regions of P2 tets
    joints: {knee: 0.2}            # rest pose [rad, m]
    glue:
      thigh: [12, 13, 40]          # vertices on each link, or, in their place,
      # radius: 0.005              # all within this of a link's collision geometry
      # between: leave             # refuse | nearest | leave
    servos: {stiffness: 40, damping: 1}   # of every actuated joint; limits: the SDF's
    patches:                       # contact points of each foot, on its link
      front_left: {body: foot_fl, points: [[0, 0, -0.05], [0.02, 0, -0.05]]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import yaml

from drakebots.core.errors import (
    DrakebotsError,
    InvalidInput,
    ModelProblem,
    UnknownName,
)
from drakebots.core.files import read_yaml, replacing
from drakebots.fem.material import Material
from drakebots.skin.frame import BETWEEN

# What a `.skin.yaml` tells: glue, servos, contact points and the skin they are of.


def _empty() -> Mapping:
    return MappingProxyType({})


@dataclass(frozen=True)
class GlueRadius:
    """Glue all vertices within a radius of the links' collision geometry.

    Attributes:
        radius: [m].
        between: what to do with a vertex near two links; see
            :func:`~drakebots.skin.frame.glue.glue_by_radius`.

    Raises:
        InvalidInput, UnknownName: for a radius not > 0, or an unknown choice.
    """

    radius: float
    between: str = "leave"

    def __post_init__(self):
        if not (isinstance(self.radius, (int, float)) and np.isfinite(self.radius)):
            raise InvalidInput(f"glue radius {self.radius!r} must be a number of m")
        if self.radius <= 0:
            raise InvalidInput(f"glue radius = {self.radius} m must be > 0, e.g. 0.005")
        if self.between not in BETWEEN:
            raise UnknownName(
                "choice for a vertex between links", self.between, BETWEEN
            )


@dataclass(frozen=True)
class ServoGains:
    """Position servos on all actuated joints.

    Attributes:
        stiffness: [N m/rad].
        damping: [N m s/rad].

    Raises:
        InvalidInput: unless both are finite and >= 0.
    """

    stiffness: float = 40.0
    damping: float = 1.0

    def __post_init__(self):
        for name in ("stiffness", "damping"):
            value = getattr(self, name)
            good = isinstance(value, (int, float)) and np.isfinite(value) and value >= 0
            if not good:
                raise InvalidInput(f"servos {name} {value!r} must be a number >= 0")


@dataclass(frozen=True)
class Patches:
    """Where a foot meets the ground.

    Attributes:
        foot: name.
        body: its link.
        p_BC: contact points in the link's frame (k, 3) [m].

    Raises:
        InvalidInput: unless the points are finite and of that shape.
    """

    foot: str
    body: str
    p_BC: np.ndarray

    def __post_init__(self):
        try:
            points = np.array(self.p_BC, dtype=float)
        except (TypeError, ValueError):
            points = np.zeros(0)
        if points.ndim != 2 or points.shape[1:] != (3,) or not len(points):
            raise InvalidInput(
                f"patches {self.foot}: points need rows of three numbers"
            )
        if not np.isfinite(points).all():
            raise InvalidInput(f"patches {self.foot}: points must be finite")
        points.setflags(write=False)
        object.__setattr__(self, "p_BC", points)


@dataclass(frozen=True)
class SkinDescription:
    """The contents of a `.skin.yaml` file.

    Attributes:
        mesh: tet mesh, a path relative to the file.
        material: of all regions but those in `regions`.
        regions: materials of some regions of the mesh.
        second_order: regions of P2 tets.
        joints: rest pose of joints of one coordinate, others by default [rad, m].
        glue: vertices on each link, or a radius.
        servos: gains.
        patches: contact points by foot.
    """

    mesh: str
    glue: Mapping[str, tuple[int, ...]] | GlueRadius
    material: Material = field(default_factory=Material)
    regions: Mapping[int, Material] = field(default_factory=_empty)
    second_order: tuple[int, ...] = ()
    joints: Mapping[str, float] = field(default_factory=_empty)
    servos: ServoGains = field(default_factory=ServoGains)
    patches: tuple[Patches, ...] = ()


_KEYS = {
    "mesh",
    "material",
    "regions",
    "second_order",
    "joints",
    "glue",
    "servos",
    "patches",
}


def read_skin(path: Path) -> SkinDescription:
    """Reads a `.skin.yaml`.

    Raises:
        ModelProblem: naming the file and the entry that is wrong.
    """
    try:
        raw = read_yaml(path, ModelProblem)
    except ModelProblem as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise ModelProblem(
                path, "no such file; `drakebots attach SKELETON SKIN` writes one"
            ) from error
        raise
    try:
        return parse_skin(raw)
    except (DrakebotsError, TypeError, ValueError, OverflowError) as error:
        raise ModelProblem(path, str(error)) from error


def parse_skin(raw: Any) -> SkinDescription:
    """The description in a parsed YAML document.

    Raises:
        InvalidInput, UnknownName: for an unknown key, a missing entry or a bad
            value.
    """
    raw = _mapping(raw, "the file", _KEYS)
    if not isinstance(raw.get("mesh"), str):
        raise InvalidInput("needs `mesh: file`, the skin's tets")
    if "glue" not in raw:
        raise InvalidInput("needs `glue`, vertices by link or a radius")
    material = _made(Material, raw.get("material", {}), "material")
    regions = {
        _integer(region, "region"): _made(Material, row, f"region {region}", material)
        for region, row in _mapping(raw.get("regions", {}), "regions").items()
    }
    return SkinDescription(
        mesh=raw["mesh"],
        glue=_glue(raw["glue"]),
        material=material,
        regions=regions,
        second_order=tuple(
            _integer(k, "second_order") for k in _list(raw, "second_order")
        ),
        joints={
            str(name): _number(value, f"joint {name}")
            for name, value in _mapping(raw.get("joints", {}), "joints").items()
        },
        servos=_made(ServoGains, raw.get("servos", {}), "servos"),
        patches=tuple(
            _patches(str(name), row)
            for name, row in _mapping(raw.get("patches", {}), "patches").items()
        ),
    )


def write_skin(path: Path, skin: SkinDescription) -> None:
    """Writes a `.skin.yaml` that reads back equal; atomically."""
    glue = skin.glue
    if isinstance(glue, GlueRadius):
        glue = asdict(glue)
    else:
        glue = {link: [int(v) for v in ids] for link, ids in glue.items()}
    raw: dict[str, Any] = {"mesh": skin.mesh, "material": _told(skin.material)}
    if skin.regions:
        raw["regions"] = {
            int(k): _told(m, skin.material) for k, m in skin.regions.items()
        }
    if skin.second_order:
        raw["second_order"] = list(map(int, skin.second_order))
    if skin.joints:
        raw["joints"] = {name: float(value) for name, value in skin.joints.items()}
    raw["servos"] = asdict(skin.servos)
    if skin.patches:
        raw["patches"] = {
            one.foot: {"body": one.body, "points": one.p_BC.tolist()}
            for one in skin.patches
        }
    raw["glue"] = glue
    text = "# A skin on a skeleton; see drakebots/skin/file/description.py. SI.\n"
    text += yaml.safe_dump(raw, sort_keys=False, default_flow_style=None, width=100)
    with replacing(path) as part:
        part.write_text(text)


def _told(material: Material, usual: Material | None = None) -> dict[str, Any]:
    usual = Material() if usual is None else usual
    out = {
        f.name: getattr(material, f.name)
        for f in fields(Material)
        if getattr(material, f.name) != getattr(usual, f.name)
    }
    if "ogden_terms" in out:
        out["ogden_terms"] = [list(map(float, term)) for term in out["ogden_terms"]]
    return out


def _made(kind, row, where: str, usual=None):
    names = {f.name for f in fields(kind)}
    values = {} if usual is None else {n: getattr(usual, n) for n in names}
    values |= _mapping(row, where, names)
    if "ogden_terms" in values:
        values["ogden_terms"] = _pairs(values["ogden_terms"], where)
    if not isinstance(values.get("kind", ""), str):
        raise InvalidInput(f"{where} kind: {values['kind']!r} must be a name")
    for name, value in values.items():
        if name not in ("kind", "ogden_terms"):
            values[name] = _number(value, f"{where} {name}")
    return kind(**values)


def _pairs(raw, where):
    try:
        return tuple((float(a), float(b)) for a, b in raw)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{where} ogden_terms: needs pairs of numbers") from error


def _glue(raw):
    raw = _mapping(raw, "glue")
    if "radius" in raw:
        return GlueRadius(**_mapping(raw, "glue", {"radius", "between"}))
    if not raw:
        raise InvalidInput("glue: no vertices; name some on at least one link")
    out = {}
    for link, ids in raw.items():
        if not isinstance(ids, list):
            raise InvalidInput(f"glue {link}: needs a list of vertices")
        out[str(link)] = tuple(_integer(v, f"glue {link}") for v in ids)
    return out


def _patches(name, row):
    row = _mapping(row, f"patches {name}", {"body", "points"})
    if not ({"body", "points"} <= set(row)):
        raise InvalidInput(f"patches {name}: needs body and points")
    return Patches(name, str(row["body"]), row["points"])


def _mapping(raw, where, known=None) -> Mapping:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{where}: needs `name: value` entries")
    for key in raw:
        if known is not None and key not in known:
            raise UnknownName(f"entry of {where}", key, known)
    return raw


def _list(raw, key):
    value = raw.get(key, [])
    if not isinstance(value, list):
        raise InvalidInput(f"{key}: needs a list")
    return value


def _number(value, where) -> float:
    # YAML reads 8e5 without a point as text.
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if isinstance(value, bool) or not np.isfinite(number):
        raise InvalidInput(f"{where}: {value!r} must be a finite number")
    return number


def _integer(value, where) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{where}: {value!r} must be an integer")
    return value
