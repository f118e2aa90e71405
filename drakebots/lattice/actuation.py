"""Which mechanisms a set of actuators drives, and which it leaves or fights over.

An actuator between two nodes reads its change of length off the amplitudes a of the
mechanisms, e = G a. The rank of G (M, m) against M and m tells all: m - rank
mechanisms are left to elasticity, M - rank actuators cannot be set freely.
Source: ours; the paper refuses two controls on one plane only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.errors import InvalidInput
from drakebots.lattice.lattice import Lattice
from drakebots.lattice.mechanisms import Mechanism, Mechanisms
from drakebots.lattice.pom import Control

_ZERO = 1e-9


def actuator_nodes(lattice: Lattice, actuators: Sequence[Control]) -> np.ndarray:
    """Rows of the lower and the upper node of each actuator (M, 2).

    Raises:
        InvalidInput: when one of them is not in the lattice, naming the actuator.
    """
    rows = []
    for actuator in actuators:
        try:
            rows.append([lattice.node(actuator.node), lattice.node(actuator.other)])
        except InvalidInput as error:
            raise InvalidInput(f"actuator {actuator.name!r}: {error}") from None
    return np.array(rows, int).reshape(-1, 2)


def extension_rows(
    lattice: Lattice, actuators: Sequence[Control], basis: np.ndarray
) -> np.ndarray:
    """G (M, m): by how much a unit of each mechanism extends each actuator."""
    nodes, axes = actuator_nodes(lattice, actuators), [a.axis for a in actuators]
    along = basis.reshape(len(lattice.nodes), 3, -1)
    return along[nodes[:, 1], axes] - along[nodes[:, 0], axes]


def dependent(actuators: Sequence[Control], G: np.ndarray) -> list[str]:
    """One line for each actuator that those before it settle, saying which."""
    lines, kept = [], []
    for i, row in enumerate(G):
        name = actuators[i].name
        if np.abs(row).max(initial=0.0) < _ZERO:
            lines.append(f"actuator {name!r} moves no mechanism; place it elsewhere")
            continue
        if kept:
            share = np.linalg.lstsq(G[kept].T, row, rcond=None)[0]
            if np.abs(share @ G[kept] - row).max() < 1e-7 * np.abs(row).max():
                others = [
                    repr(actuators[k].name)
                    for k, s in zip(kept, share)
                    if abs(s) > 1e-7
                ]
                lines.append(
                    f"actuator {name!r} is settled by {' and '.join(others)}; "
                    "leave one out"
                )
                continue
        kept.append(i)
    return lines


@dataclass(frozen=True, eq=False)
class Actuation:
    """What actuators do to the mechanisms of a lattice.

    Attributes:
        rank: mechanisms they drive independently.
        free: mechanisms beyond that, left to the beams' stiffness.
        idle: mechanisms that no actuator touches.
        conflicts: one line for each actuator that the others settle.
    """

    rank: int
    free: int
    idle: tuple[Mechanism, ...]
    conflicts: tuple[str, ...]

    def report(self) -> str:
        """For printing."""
        lines = [f"{self.rank} mechanisms driven, {self.free} left to elasticity"]
        lines += [f"  not driven: {m.name}" for m in self.idle]
        return "\n".join([*lines, *self.conflicts])


def actuation(mechanisms: Mechanisms, actuators: Sequence[Control]) -> Actuation:
    """Rank test of actuators on a lattice's mechanisms.

    Raises:
        InvalidInput: when an actuator's node is not in the lattice.
    """
    G = extension_rows(mechanisms.lattice, actuators, mechanisms.basis)
    conflicts = dependent(actuators, G)
    rank = len(actuators) - len(conflicts)
    touched = np.abs(G).max(axis=0, initial=0.0) > _ZERO
    idle = tuple(m for m, hit in zip(mechanisms.all, touched) if not hit)
    return Actuation(rank, len(mechanisms.all) - rank, idle, tuple(conflicts))
