"""Servos with limits and feet on the ground: forces implicit in a coupled time step.

A law is a force along rows P of the skeleton's velocities that depends on y = P dq, the
motion in the time step, and is -psi'(y) of a convex potential psi. A step with laws is
the minimum of

    z' R z/2 - r' z + sum psi(P dq),  z = [dq, u_p]

found by Newton's method on the small system of :mod:`drakebots.skin.coupled.equations`,
so that the skin is factored once per step.

A servo whose torque saturates, with gains k and d, targets q_d and v_d, and a given
torque tau_0, has the torque at the end of the step

    tau = clip(a - g y, -limit, limit),  a = k (q_d - q) + d v_d + tau_0,  g = k + d/dt

A contact point at height z that moves by dp = J dq above ground of height h has

    f_n = max(0, k (h - z - dp_z) - c dp_z/dt),  c only below the ground
    f_t = -min(mu f_n/|dp_t|, mu f_n/(v_s dt)) dp_t

a damped spring, and Coulomb friction that sticks by creeping slower than v_s, all at
the end of the step; so a stiff ground is stable at any dt. The f_n in the friction is
found by repeated solves (:func:`find_friction`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Protocol

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.core.checks import array, check_value, non_negative, positive
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.fields import checked
from drakebots.multibody import Flat, Terrain, contact_axes
from drakebots.skin.coupled.equations import ScaledCholesky
from drakebots.skin.coupled.skeleton import Servo, points_on

TOLERANCE = 1e-10
"""Largest residual over the largest force, in scaled coordinates."""

MAX_ITERATIONS = 300

FRICTION_TRIES, FRICTION_ERROR = 10, 1e-3
"""Largest number of solves for the normal forces in the friction, and the relative
change of these at which they end."""


class SmallSystem(Protocol):
    """The small system R z = r of a time step of a full or a reduced skin.

    Attributes:
        nv: number of velocities of the skeleton, the first of z.
        matrix: R.
    """

    nv: int
    matrix: np.ndarray

    def right_side(self, torques=None, forces=None) -> np.ndarray:
        """r for torques (m,) and contact forces (p, 3) [N]."""

    def back(self, r: np.ndarray) -> np.ndarray:
        """R^-1 r."""


class Law(ABC):
    """A force along rows of the skeleton's velocities, or of all of z.

    Attributes:
        rows: P (n, nv), or (n, nv + 3 p).
        start: y at z = 0 (n,), y = start + P z.
    """

    rows: np.ndarray
    start: np.ndarray | float = 0.0

    @abstractmethod
    def energy(self, y: np.ndarray) -> float:
        """psi(y) [J]."""

    @abstractmethod
    def force(self, y: np.ndarray) -> np.ndarray:
        """-psi'(y) (n,) [N, N m]."""

    @abstractmethod
    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """psi''(y) (n, n), positive semidefinite."""


def minimise(
    system: SmallSystem, laws: Sequence[Law], r: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """z (nv + 3 p,) of a time step with laws.

    Args:
        system: small system of the step.
        laws: any number of laws.
        r: right-hand side (nv + 3 p,).
        z: initial guess.

    Raises:
        NoSolution: when Newton's method does not converge.
    """
    R = system.matrix
    scale = 1 / np.sqrt(np.diag(R))

    def merit(z):
        own = sum(law.energy(_along(law, z)) for law in laws)
        return 0.5 * z @ (R @ z) - r @ z + own

    def gradient(z):
        g = R @ z - r
        size = max(np.abs(scale * r).max(), np.abs(scale * (R @ z)).max())
        for law in laws:
            push = law.rows.T @ law.force(_along(law, z))
            n = len(push)
            g[:n] -= push
            size = max(size, np.abs(scale[:n] * push).max(initial=0.0))
        return g, np.abs(scale * g).max() / max(size, 1e-300)

    g, error = gradient(z)
    for _ in range(MAX_ITERATIONS):
        if error <= TOLERANCE:
            return z
        if not np.isfinite(error):
            break
        H = R.copy()
        for law in laws:
            n = law.rows.shape[1]
            H[:n, :n] += law.rows.T @ law.stiffness(_along(law, z)) @ law.rows
        step = -ScaledCholesky(H).solve(g)
        now, slope, t = merit(z), g @ step, 1.0
        while t > 1e-6:
            trial = gradient(z + t * step)
            # Near the solution energies differ by rounding only, so the gradient
            # decides; far from it a smaller gradient may lie at a larger energy, and
            # steps that accept it can cycle.
            better = merit(z + t * step) <= now + 1e-4 * t * slope
            if better or (error < 1e-5 and trial[1] < 0.5 * error):
                break
            t *= 0.5
        else:
            # No step lowers either: z is as accurate as rounding permits.
            if error < 1e-6:
                return z
            break
        z, (g, error) = z + t * step, trial
    raise NoSolution(f"coupled step: servos and contacts not solved ({error:.1e})")


def _along(law, z):
    """y = start + P z, of the skeleton's part of z where P has no more columns."""
    return law.start + law.rows @ z[: law.rows.shape[1]]


# Servos.


@dataclass(frozen=True)
class ClippedLaw(Law):
    """Springs within limits, f = clip(a - g y, lower, upper).

    Saturating servos, in whose rows B' (m, nv) y is the change of the joints in the
    step; or contact, which pushes only.

    Attributes:
        rows: P (m, nv).
        constant: a (m,) [N m, N].
        gain: g (m,) [N m/rad, N/m].
        lower, upper: limits of the force (m,) [N m, N]; infinite for none.
    """

    rows: np.ndarray
    constant: np.ndarray
    gain: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray | float = 0.0

    def _unlimited(self, y):
        return self.constant - self.gain * y

    def force(self, y: np.ndarray) -> np.ndarray:
        """Torques or forces (m,) [N m, N]."""
        return np.clip(self._unlimited(y), self.lower, self.upper)

    def energy(self, y: np.ndarray) -> float:
        """Quadratic within the limits, linear beyond [J]."""
        unlimited, force = self._unlimited(y), self.force(y)
        constant = self.gain == 0
        gain = np.where(constant, 1.0, self.gain)
        spring = force * (unlimited - force / 2) / gain
        return float(np.where(constant, -force * y, spring).sum())

    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """g where no limit is reached (m, m)."""
        free = self._unlimited(y)
        within = (free > self.lower) & (free < self.upper)
        return np.diag(np.where(within, self.gain, 0.0))


def servo_law(
    B: np.ndarray,
    servo: Servo,
    q: np.ndarray,
    dt: float,
    limit: np.ndarray,
    torques: np.ndarray | None = None,
) -> ClippedLaw:
    """The law of servos.

    Args:
        B: map of torques to generalized forces (nv, m).
        servo: gains and targets.
        q: joint positions at the start of the step (m,) [rad].
        dt: time step [s].
        limit: largest torques (m,) [N m].
        torques: given torques that add to the servos' within the limits (m,) [N m].

    Raises:
        InvalidInput: for sizes that do not fit.
    """
    a = servo.torques(q)
    if torques is not None:
        a = a + torques
    return ClippedLaw(B.T, a, servo.stiffness + servo.damping / dt, -limit, limit)


# Contact points on the ground.


@dataclass(frozen=True)
class Patches:
    """Contact points of one foot.

    Attributes:
        foot: name of the foot.
        body: name of its link.
        p_BC: contact points in the link's frame (k, 3) [m].

    Raises:
        InvalidInput: unless the points are finite and of that shape.
    """

    foot: str
    body: str
    p_BC: np.ndarray

    def __post_init__(self):
        what = f"patches {self.foot}: points"
        points = check_value(what, self.p_BC, array((None, 3), "m"))
        if not len(points):
            raise InvalidInput(f"{what}: needs at least one")
        object.__setattr__(self, "p_BC", points)


@checked("ground")
class CompliantGround:
    """Damped springs and friction that sticks by creeping.

    Raises:
        InvalidInput: for a value out of range.
    """

    friction: Annotated[float, non_negative()] = 0.8
    """Coulomb's coefficient mu."""
    stiffness: Annotated[float, positive("N/m")] = 2e4
    """Stiffness k at each point."""
    damping: Annotated[float, non_negative("N s/m")] = 50.0
    """Damping c at each point, in both directions."""
    slip_speed: Annotated[float, positive("m/s")] = 1e-3
    """Speed v_s below which friction is viscous."""
    terrain: Terrain = field(default_factory=Flat)
    """Shape of the ground."""


class PatchContact(CompliantGround):
    """Compliant ground under the contact points of links."""

    def law(
        self,
        plant: MultibodyPlant,
        context: Context,
        patches: Sequence[Patches],
        dt: float,
    ) -> PatchLaw:
        """The law of the points at the context's q, without friction."""
        p, J = patch_points(plant, context, patches)
        _, phi, n = self.terrain.near(p, np.inf)
        return self.at(J, n, -phi, np.full(len(p), self.friction), dt)

    def at(self, J, normal, depth, friction, dt: float) -> PatchLaw:
        """The law of points with a motion J dq.

        Args:
            J: Jacobian of the points (3 k, nv).
            normal: normals of what they touch (k, 3).
            depth: their depths at the start of the step (k,) [m].
            friction: Coulomb's coefficients (k,).
            dt: time step [s].
        """
        axes = contact_axes(normal)
        J = (axes @ J.reshape(len(axes), 3, -1)).reshape(J.shape)
        damping = np.where(depth > 0, self.damping / dt, 0.0)
        gain, none = self.stiffness + damping, np.zeros(len(depth))
        push, slip = self.stiffness * depth, self.slip_speed * dt
        return PatchLaw(J, push, gain, none, friction, slip, axes)


@dataclass(frozen=True)
class PatchLaw(Law):
    """Contact points in one time step; y is their displacement (3 k,) [m].

    Attributes:
        rows: J (3 k, nv).
        constant: k (h - z) (k,) [N].
        gain: k + c/dt (k,) [N/m].
        bound: bound mu f_n of the friction (k,) [N].
        friction: mu (k,).
        step: v_s dt [m].
        axes: tangents and normals of the points, in which y is (k, 3, 3).
    """

    rows: np.ndarray
    constant: np.ndarray
    gain: np.ndarray
    bound: np.ndarray
    friction: np.ndarray
    step: float
    axes: np.ndarray
    start: np.ndarray | float = 0.0

    def _parts(self, y):
        y = y.reshape(-1, 3)
        normal = self.constant - self.gain * y[:, 2]
        return y, normal, np.linalg.norm(y[:, :2], axis=1)

    def energy(self, y: np.ndarray) -> float:
        """Energy of springs and friction [J]."""
        _, normal, slide = self._parts(y)
        spring = np.maximum(normal, 0) ** 2 / (2 * self.gain)
        s = max(self.step, 1e-300)
        drag = np.where(slide < s, slide**2 / (2 * s), slide - s / 2)
        return float((spring + self.bound * drag).sum())

    def force(self, y: np.ndarray) -> np.ndarray:
        """Forces on the links, flat (3 k,) [N], in the axes of the points."""
        y, normal, slide = self._parts(y)
        f = np.empty_like(y)
        f[:, 2] = np.maximum(normal, 0.0)
        rate = self.bound / np.maximum(np.maximum(slide, self.step), 1e-300)
        f[:, :2] = -rate[:, None] * y[:, :2]
        return f.ravel()

    def stiffness(self, y: np.ndarray) -> np.ndarray:
        """-d force/dy (3 k, 3 k), block diagonal [N/m]."""
        y, normal, slide = self._parts(y)
        n = len(y)
        K, i = np.zeros((n, 3, n, 3)), np.arange(n)
        K[i, 2, i, 2] = np.where(normal > 0, self.gain, 0.0)
        rate = self.bound / np.maximum(np.maximum(slide, self.step), 1e-300)
        # A sliding point's friction changes only across the slip.
        along = y[:, :2] / np.maximum(slide, 1e-300)[:, None]
        along[slide <= self.step] = 0.0
        for a in range(2):
            for b in range(2):
                K[i, a, i, b] = rate * ((a == b) - along[:, a] * along[:, b])
        return K.reshape(3 * n, 3 * n)

    def on_links(self, dq: np.ndarray) -> np.ndarray:
        """Forces on the links (k, 3) [N], world, for dq (nv,)."""
        local = self.force(self.rows @ dq).reshape(-1, 3)
        return np.einsum("cij,ci->cj", self.axes, local)

    def with_friction(self, normal: np.ndarray) -> PatchLaw:
        """The same points with the friction of normal forces (k,) [N]."""
        return replace(self, bound=self.friction * np.maximum(normal, 0.0))

    def beside(self, other: PatchLaw | None) -> PatchLaw:
        """These points, and then those of another law."""
        if other is None:
            return self
        names = ("rows", "constant", "gain", "bound", "friction", "axes")
        both = {k: np.concatenate([getattr(self, k), getattr(other, k)]) for k in names}
        return replace(self, **both)


def patch_points(
    plant: MultibodyPlant, context: Context, patches: Sequence[Patches]
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of all contact points (k, 3) [m] and their Jacobian (3 k, nv)."""
    return points_on(plant, context, ((each.body, each.p_BC) for each in patches))


def find_friction(
    system: SmallSystem,
    laws: Sequence[Law],
    patch: PatchLaw,
    r: np.ndarray,
    z: np.ndarray | None = None,
) -> tuple[np.ndarray, PatchLaw]:
    """Solves a time step with laws and contact points whose friction is unknown.

    Args:
        system, laws, r: as for :func:`minimise`.
        patch: the points, with an initial guess of the friction.
        dt: time step [s].
        z: initial guess; R^-1 r by default.

    Returns:
        z (nv + 3 p,) of :func:`minimise`, and the points with the friction at z.

    Raises:
        NoSolution: as for :func:`minimise`.
    """
    z, law = system.back(r) if z is None else z, patch
    for _ in range(FRICTION_TRIES):
        patch = law
        z = minimise(system, [*laws, patch], r, z)
        normal = patch.force(patch.rows @ z[: system.nv])[2::3]
        bound = patch.friction * normal
        change = np.abs(bound - patch.bound).max(initial=0.0)
        if change <= FRICTION_ERROR * bound.max(initial=0.0):
            break
        law = patch.with_friction(normal)
    return z, patch
