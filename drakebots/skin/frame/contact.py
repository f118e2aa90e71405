"""Feet on the ground: contact points of links, implicit in the frame.

At a point that moves by dp = J dq over the frame, from height z,

    f_n = max(0, k (h - z - dp_z) - c dp_z/dt),  c only below the ground
    f_t = -min(mu f_n/|dp_t|, mu f_n/(v_s dt)) dp_t

a damped spring and Coulomb friction that sticks by creeping slower than v_s, all at
the frame's end; so a stiff ground is stable at any dt. The friction's f_n is found
by repeating the solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.framework import Context

from drakebots.core.errors import InvalidInput
from drakebots.model import find_body
from drakebots.skin.file import Patches
from drakebots.skin.frame.laws import Law, SmallFrame, minimise

FRICTION_TRIES, FRICTION_ERROR = 10, 1e-3
"""Solves to find the friction's normal forces, and their relative change at the end."""


@dataclass(frozen=True)
class PatchContact:
    """Compliant ground under contact points of links.

    Attributes:
        friction: Coulomb's mu.
        stiffness: k of each point [N/m].
        damping: c of each point, against approach and leaving [N s/m].
        slip_speed: v_s, below which friction is viscous [m/s].
        height: h of the ground [m].

    Raises:
        InvalidInput: for a value out of range.
    """

    friction: float = 0.8
    stiffness: float = 2e4
    damping: float = 50.0
    slip_speed: float = 1e-3
    height: float = 0.0

    def __post_init__(self):
        for name, least in (
            ("friction", 0.0),
            ("stiffness", None),
            ("damping", 0.0),
            ("slip_speed", None),
        ):
            value = getattr(self, name)
            good = value > 0 if least is None else value >= least
            if not (np.isfinite(value) and good):
                sign = ">" if least is None else ">="
                raise InvalidInput(f"patch contact {name} = {value}: must be {sign} 0")
        if not np.isfinite(self.height):
            raise InvalidInput(f"patch contact height = {self.height}: must be finite")

    def law(
        self,
        plant: MultibodyPlant,
        context: Context,
        patches: Sequence[Patches],
        dt: float,
    ) -> PatchLaw:
        """The law of the points at the context's q, without friction yet."""
        p, J = patch_points(plant, context, patches)
        depth = self.height - p[:, 2]
        damping = np.where(depth > 0, self.damping / dt, 0.0)
        return PatchLaw(
            J, self.stiffness * depth, self.stiffness + damping, np.zeros(len(p)), self
        )


@dataclass(frozen=True)
class PatchLaw(Law):
    """Contact points in one frame.

    Attributes:
        rows: J (3 k, nv).
        constant: k (h - z) (k,) [N].
        gain: k + c/dt (k,) [N/m].
        bound: mu f_n of the friction (k,) [N].
        contact: whose numbers these are.
        step: v_s dt [m].
    """

    rows: np.ndarray
    constant: np.ndarray
    gain: np.ndarray
    bound: np.ndarray
    contact: PatchContact
    step: float = 0.0

    def _parts(self, y):
        y = y.reshape(-1, 3)
        wish = self.constant - self.gain * y[:, 2]
        slide = np.linalg.norm(y[:, :2], axis=1)
        return y, wish, slide

    def energy(self, y: np.ndarray) -> float:
        """Of springs and friction [J]."""
        _, wish, slide = self._parts(y)
        normal = np.maximum(wish, 0) ** 2 / (2 * self.gain)
        s = max(self.step, 1e-300)
        drag = np.where(slide < s, slide**2 / (2 * s), slide - s / 2)
        return float((normal + self.bound * drag).sum())

    def force(self, y: np.ndarray) -> np.ndarray:
        """On the links, flat (3 k,) [N], world."""
        y, wish, slide = self._parts(y)
        f = np.empty_like(y)
        f[:, 2] = np.maximum(wish, 0.0)
        rate = self.bound / np.maximum(np.maximum(slide, self.step), 1e-300)
        f[:, :2] = -rate[:, None] * y[:, :2]
        return f.ravel()

    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """Block diagonal (3 k, 3 k)."""
        y, wish, slide = self._parts(y)
        n = len(y)
        K, i = np.zeros((n, 3, n, 3)), np.arange(n)
        K[i, 2, i, 2] = np.where(wish > 0, self.gain, 0.0)
        rate = self.bound / np.maximum(np.maximum(slide, self.step), 1e-300)
        # Sliding, friction resists across the slip only.
        along = y[:, :2] / np.maximum(slide, 1e-300)[:, None]
        along[slide <= self.step] = 0.0
        for a in range(2):
            for b in range(2):
                K[i, a, i, b] = rate * ((a == b) - along[:, a] * along[:, b])
        return K.reshape(3 * n, 3 * n)

    def on_links(self, dq: np.ndarray) -> np.ndarray:
        """Forces of a frame's dq (nv,), on the links (k, 3) [N], world."""
        return self.force(self.rows @ dq).reshape(-1, 3)

    def rubbing(self, normal: np.ndarray, dt: float) -> PatchLaw:
        """The same points with friction of normal forces (k,) [N]."""
        c = self.contact
        return PatchLaw(
            self.rows,
            self.constant,
            self.gain,
            c.friction * np.maximum(normal, 0.0),
            c,
            c.slip_speed * dt,
        )


def patch_points(
    plant: MultibodyPlant, context: Context, patches: Sequence[Patches]
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of all contact points (k, 3) [m] and their Jacobian (3 k, nv)."""
    world, points, rows = plant.world_frame(), [], []
    for patch in patches:
        frame = find_body(plant, patch.body).body_frame()
        p = np.ascontiguousarray(patch.p_BC.T)
        points.append(plant.CalcPointsPositions(context, frame, p, world).T)
        rows.append(
            plant.CalcJacobianTranslationalVelocity(
                context, JacobianWrtVariable.kV, frame, p, world, world
            )
        )
    nv = plant.num_velocities()
    if not points:
        return np.zeros((0, 3)), np.zeros((0, nv))
    return np.concatenate(points), np.concatenate(rows)


def find_friction(
    system: SmallFrame,
    laws: Sequence[Law],
    patch: PatchLaw,
    r: np.ndarray,
    dt: float,
    z: np.ndarray | None = None,
) -> tuple[np.ndarray, PatchLaw]:
    """A frame with laws and rubbing contact points.

    Args:
        system, laws, r: as :func:`~drakebots.skin.frame.laws.minimise`.
        patch: the points, with the friction to start from.
        dt: [s].
        z: to start from; R^-1 r by default.

    Returns:
        z (nv + 3 p,) as minimise, and the points with the friction it was found with.

    Raises:
        NoSolution: as minimise.
    """
    z, law = system.back(r) if z is None else z, patch
    for _ in range(FRICTION_TRIES):
        patch = law
        z = minimise(system, [*laws, patch], r, z)
        normal = patch.on_links(z[: system.nv])[:, 2]
        bound = patch.contact.friction * normal
        change = np.abs(bound - patch.bound).max(initial=0.0)
        if change <= FRICTION_ERROR * bound.max(initial=0.0):
            break
        law = patch.rubbing(normal, dt)
    return z, patch


def minimise_rubbing(
    system: SmallFrame,
    laws: Sequence[Law],
    patch: PatchLaw,
    r: np.ndarray,
    dt: float,
) -> tuple[np.ndarray, np.ndarray]:
    """z of :func:`find_friction`, and the points' forces on the links (k, 3) [N]."""
    z, patch = find_friction(system, laws, patch, r, dt)
    return z, patch.on_links(z[: system.nv])
