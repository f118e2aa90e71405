"""What a skin beside a plant keeps from step to step, as one vector for a Context.

    [x (3 N), xdot (3 N), v (nv), tau (nv), wrenches (6 l), time, held]

Positions and velocities of the nodes at the start of the step under way; the plant's
velocities then, and the forces that act on joints and links over the step, if any are
held; that start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drakebots.fem.dynamics import SkinState


@dataclass(frozen=True)
class ExchangeState:
    """Where things lie in the vector.

    Attributes:
        nodes: N of the skin.
        velocities: nv of the plant.
        links: l with glue.
    """

    nodes: int
    velocities: int
    links: int

    def pack(
        self,
        skin: SkinState,
        velocity: np.ndarray | None = None,
        force: np.ndarray | None = None,
        wrenches: np.ndarray | None = None,
    ) -> np.ndarray:
        """The vector; without velocity, force and wrenches none are held."""
        held = velocity is not None
        if not held:
            velocity = force = np.zeros(self.velocities)
            wrenches = np.zeros((self.links, 6))
        parts = (skin.positions, skin.velocities, velocity, force, wrenches)
        ends = [skin.time, float(held)]
        return np.concatenate([*(part.ravel() for part in parts), ends])

    def skin(self, state: np.ndarray) -> SkinState:
        """The skin at the start of the step under way; a copy."""
        N = self.nodes
        return SkinState(
            self.time(state),
            state[: 3 * N].reshape(-1, 3).copy(),
            state[3 * N : 6 * N].reshape(-1, 3).copy(),
        )

    def time(self, state: np.ndarray) -> float:
        """Of that start [s]."""
        return float(state[-2])

    def held(self, state: np.ndarray) -> bool:
        """Whether a step is under way, whose forces are held."""
        return bool(state[-1])

    def velocity(self, state: np.ndarray) -> np.ndarray:
        """Of the plant at that start (nv,)."""
        return self._parts(state)[0]

    def force(self, state: np.ndarray) -> np.ndarray:
        """Generalized, on the joints (nv,) [N m, N]."""
        return self._parts(state)[1]

    def wrenches(self, state: np.ndarray) -> np.ndarray:
        """Torque and force on each link at its origin (l, 6) [N m, N]."""
        return self._parts(state)[2].reshape(-1, 6)

    def _parts(self, state):
        nv = self.velocities
        return np.split(state[6 * self.nodes : -2], [nv, 2 * nv])
