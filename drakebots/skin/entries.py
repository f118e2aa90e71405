"""What a `.skin.yaml` tells: glue, servos, contact points and the skin they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from drakebots.errors import InvalidInput, UnknownName
from drakebots.fem.materials import Material
from drakebots.skin.glue import BETWEEN


def _empty() -> Mapping:
    return MappingProxyType({})


@dataclass(frozen=True)
class GlueRadius:
    """Glue all vertices within a radius of the links' collision geometry.

    Attributes:
        radius: [m].
        between: what to do with a vertex near two links; see
            :func:`~drakebots.skin.glue.glue_by_radius`.

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
