"""Feet of a skinned robot: patches on links, and their Jacobians.

The paper divides each sole into five patches ("Computational Design of Skinned
Quad-Robots", section 5.3); their forces act on the foot's link (end of 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context

from drakebots.core.checks import array, check, check_types
from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.skin.file import Patches


@dataclass(frozen=True)
class Feet:
    """Patches of each foot, and the normals of the soles.

    Attributes:
        patches: the patches of each foot (F,).
        normal_B: normal of each sole in its link, the ground's normal at rest (F, 3).

    Raises:
        InvalidInput: without feet, for a foot listed twice, or other shapes.
    """

    patches: tuple[Patches, ...]
    normal_B: np.ndarray

    def __post_init__(self):
        check_types(self, "feet")
        object.__setattr__(self, "patches", tuple(self.patches))
        if not self.patches:
            raise InvalidInput("feet: none; add `patches` to the skin's YAML file")
        if len(set(self.names)) < len(self.patches):
            raise InvalidInput(f"feet: one is listed twice in {list(self.names)}")
        check(self, "feet", normal_B=array((len(self.patches), 3)))

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the feet."""
        return tuple(one.foot for one in self.patches)

    @property
    def foot_of(self) -> np.ndarray:
        """Index of the foot of each patch (P,)."""
        return np.repeat(np.arange(len(self)), [len(p.p_BC) for p in self.patches])

    @property
    def patch_names(self) -> tuple[str, ...]:
        """Name "foot/number" of each patch (P,)."""
        return tuple(
            f"{one.foot}/{k}" for one in self.patches for k in range(len(one.p_BC))
        )


def make_feet(
    plant: MultibodyPlant, context: Context, patches: Sequence[Patches]
) -> Feet:
    """Feet whose soles are parallel to the ground z = 0 in the context's pose.

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
class FeetKinematics:
    """Kinematics of the feet in one pose, in the world frame.

    Jacobians refer to the plant's velocities.

    Attributes:
        p, J: positions of the patches (P, 3) [m], and their Jacobian (3 P, nv).
        tip, J_tip: end effectors, the means of each foot's patches (F, 3) [m], and
            their Jacobian (3 F, nv).
        normal, J_normal: normals of the soles (F, 3), and their Jacobian (3 F, nv).
    """

    p: np.ndarray
    J: np.ndarray
    tip: np.ndarray
    J_tip: np.ndarray
    normal: np.ndarray
    J_normal: np.ndarray


def feet_kinematics(
    plant: MultibodyPlant, context: Context, feet: Feet
) -> FeetKinematics:
    """Kinematics of the feet at the context's q."""
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
    return FeetKinematics(**{name: np.concatenate(part) for name, part in rows.items()})
