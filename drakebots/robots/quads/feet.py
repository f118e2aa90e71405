"""Feet of a skinned robot: contact points on links, soles, and their Jacobians.

The paper groups each sole into five patches ("Computational Design of Skinned
Quad-Robots", section 5.3); their forces act on the foot's link (end of 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context

from drakebots.errors import InvalidInput
from drakebots.multibody.loops import find_body
from drakebots.skin.entries import Patches


@dataclass(frozen=True)
class Feet:
    """Contact patches by foot, and which way each sole looks.

    Attributes:
        patches: one a foot (F,).
        normal_B: the ground's normal in each foot's link at rest (F, 3).

    Raises:
        InvalidInput: without feet, for a foot listed twice, or other shapes.
    """

    patches: tuple[Patches, ...]
    normal_B: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "patches", tuple(self.patches))
        if not self.patches:
            raise InvalidInput("feet: none; add `patches` to the skin's YAML")
        if len(set(self.names)) < len(self.patches):
            raise InvalidInput(f"feet: one is listed twice among {list(self.names)}")
        normal = np.asarray(self.normal_B, float)
        if normal.shape != (len(self.patches), 3) or not np.isfinite(normal).all():
            raise InvalidInput(f"feet: needs a normal for each, got {normal.shape}")
        object.__setattr__(self, "normal_B", normal)

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the feet."""
        return tuple(one.foot for one in self.patches)

    @property
    def foot_of(self) -> np.ndarray:
        """The foot of each patch (P,)."""
        return np.repeat(np.arange(len(self)), [len(p.p_BC) for p in self.patches])

    @property
    def patch_names(self) -> tuple[str, ...]:
        """foot/number of each patch (P,)."""
        return tuple(
            f"{one.foot}/{k}" for one in self.patches for k in range(len(one.p_BC))
        )


def make_feet(
    plant: MultibodyPlant, context: Context, patches: Sequence[Patches]
) -> Feet:
    """Feet whose soles face the ground, z = 0, in the context's pose.

    Raises:
        UnknownName: for a link that does not exist.
        InvalidInput: as :class:`Feet`.
    """
    normals = [
        plant.EvalBodyPoseInWorld(context, find_body(plant, one.body))
        .rotation()
        .matrix()[2]
        for one in patches
    ]
    return Feet(tuple(patches), np.array(normals).reshape(-1, 3))


@dataclass(frozen=True)
class FeetFrame:
    """Feet in one pose; Jacobians in the plant's velocities, world frame.

    Attributes:
        p: patches (P, 3) [m].
        J: dp = J dq (3 P, nv).
        tip, J_tip: the end effectors, the mean of a foot's patches (F, 3) [m],
            (3 F, nv).
        normal, J_normal: of the soles (F, 3), (3 F, nv).
    """

    p: np.ndarray
    J: np.ndarray
    tip: np.ndarray
    J_tip: np.ndarray
    normal: np.ndarray
    J_normal: np.ndarray


def feet_frame(plant: MultibodyPlant, context: Context, feet: Feet) -> FeetFrame:
    """The feet at the context's q."""
    world, nv = plant.world_frame(), plant.num_velocities()
    rows: dict[str, list] = {
        name: [] for name in ("p", "J", "tip", "J_tip", "normal", "J_normal")
    }
    for one, n_B in zip(feet.patches, feet.normal_B):
        frame = find_body(plant, one.body).body_frame()
        p_BC = np.ascontiguousarray(one.p_BC.T)
        p = plant.CalcPointsPositions(context, frame, p_BC, world).T
        J = plant.CalcJacobianTranslationalVelocity(
            context, JacobianWrtVariable.kV, frame, p_BC, world, world
        ).reshape(len(p), 3, nv)
        spin = plant.CalcJacobianAngularVelocity(
            context, JacobianWrtVariable.kV, frame, world, world
        )
        n = frame.CalcPoseInWorld(context).rotation().matrix() @ n_B
        rows["p"].append(p)
        rows["J"].append(J.reshape(-1, nv))
        rows["tip"].append(p.mean(axis=0)[None])
        rows["J_tip"].append(J.mean(axis=0))
        rows["normal"].append(n[None])
        # dn = omega x n.
        rows["J_normal"].append(np.cross(spin.T, n).T)
    return FeetFrame(**{name: np.concatenate(part) for name, part in rows.items()})
