"""The paper's walking robot: a 2x2x2 core, two front voxels, four actuators.

It faces +x+y. Each front voxel hangs on one node of the core and carries a foot that
can be lifted; the back feet stand under the core. Planes of motion hold for the core.
A front voxel moves as one rigid part with the voxel of the core it hangs on:

    x(node) = x(attachment) + w x (node - attachment),

with the tilt w of the core's voxel. This motion has the least energy, since the four
beams on either side of the shared node then keep their shape. Source: Tebyani et al.
(2022), section 3 and Fig. 5; the places of the voxels follow from the authors' nodes,
the extension to the front voxels is ours (the frame gives the foot 10.3 mm, this model
10 mm, at 5 mm of the attachment).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated

import numpy as np

from drakebots.core.checks import positive
from drakebots.core.fields import checked
from drakebots.lattice.pom import (
    Conflict,
    Control,
    Kinematics,
    PlanesOfMotion,
    bounded_controls,
    linear_c,
    place_of,
    stroke_conflicts,
    table,
)
from drakebots.lattice.shape import AXES, Lattice, block, rotations
from drakebots.model import given

MODEL = "voxel"
"""The name of the robot's model in the models folder."""

Place = tuple[int, int, int]

ACTUATORS = (
    Control((2, 1, 1), 2, "blue"),
    Control((1, 2, 1), 2, "yellow"),
    Control((2, 3, 1), 2, "red"),
    Control((3, 2, 1), 2, "green"),
)
"""The four vertical actuators, in the order of every gait table."""

MARKERS: Mapping[str, Place] = {
    "yr": (1, 3, 4),
    "yb": (1, 1, 4),
    "gb": (3, 1, 4),
    "gr": (3, 3, 4),
}
"""Nodes on top, each named after the two actuators that move it."""

FRONT: Mapping[str, tuple[Place, Place]] = {
    "FR": ((2, 1, 0), (4, 3, 1)),
    "FL": ((1, 2, 0), (3, 4, 1)),
}
"""Voxel of each front foot and the node it hangs on."""

FEET: Mapping[str, Place] = {
    "FL": (3, 5, 0),
    "FR": (5, 3, 0),
    "BL": (1, 3, 0),
    "BR": (3, 1, 0),
}
"""Lowest nodes, which stand on the ground."""


@checked(eq=False)
class VoxelRobot:
    """The robot's kinematics.

    Raises:
        InvalidInput: for a pitch or stroke that is not > 0, or an ideality outside
            (0, 1].
    """

    pitch: Annotated[float, positive("m")] = given(MODEL, "pitch")
    """Edge of a voxel; by default that of params.yaml."""
    stroke: Annotated[float, positive("m")] = given(MODEL, "stroke")
    """Largest displacement of an actuator's lower node in either direction; the
    actuator changes its length by twice that. By default that of params.yaml."""
    ideality: float = 1.0
    """Share of the motion that reaches the nodes without an actuator."""

    def __post_init__(self):
        self.core_model  # noqa: B018  refuses a bad ideality now

    @cached_property
    def core(self) -> Lattice:
        """The 2x2x2 block."""
        return block(2, 2, 2, self.pitch)

    @cached_property
    def lattice(self) -> Lattice:
        """All ten voxels, the core's first, then FR's and FL's."""
        front = [voxel for voxel, _ in FRONT.values()]
        return Lattice(np.vstack([self.core.voxels, front]), self.pitch)

    @cached_property
    def core_model(self) -> PlanesOfMotion:
        """Planes of motion of the core, with all its nodes as effectors."""
        return PlanesOfMotion(self.core, ACTUATORS, ideality=self.ideality)

    @cached_property
    def J(self) -> np.ndarray:
        """Displacements of all nodes per control (3 N, 4), the front's included."""
        core, lattice = self.core, self.lattice
        J = np.zeros((len(lattice.nodes), 3, len(ACTUATORS)))
        inner = self.core_model.J.reshape(-1, 3, len(ACTUATORS))
        J[[lattice.node(n) for n in core.nodes]] = inner
        # Tilts of the core's voxels (V, 3, M) [1 / half pitch].
        turns = rotations(core, PlanesOfMotion(core, ACTUATORS).J)
        turns = turns.reshape(-1, 3, len(ACTUATORS))
        for voxel, at in FRONT.values():
            held = core.node(at)
            turn = turns[core.voxel_of(held)[0]]
            row = int(np.flatnonzero((lattice.voxels == voxel).all(axis=1))[0])
            for node in lattice.voxel_nodes[row]:
                arm = lattice.nodes[node] - np.array(at)
                J[node] = inner[held] + self.ideality * np.cross(turn.T, arm).T
        return J.reshape(-1, len(ACTUATORS))

    def displacements(self, u, nodes: Sequence[Place] | None = None) -> np.ndarray:
        """Displacements of nodes in the body's frame.

        Args:
            u: displacements of the actuators' lower nodes (T, 4) or (4,) [m].
            nodes: places of the nodes (E, 3) [half pitches]; by default all.

        Returns:
            (T, E, 3) [m].

        Raises:
            InvalidInput: for u of another shape or not finite, or no such node.
        """
        u = table(u, len(ACTUATORS), "u", "actuator")
        J = self.J.reshape(-1, 3, len(ACTUATORS))
        if nodes is not None:
            J = J[[self.lattice.node(place_of(n)) for n in nodes]]
        return np.einsum("nkm,tm->tnk", J, u)

    def c_code(self, targets: Sequence[Control] = ()) -> str:
        """C of the kinematics, for the robot's board: `displacements(u, x)` gives those
        of all nodes (3 N,) from the actuators' (4,), and `controls(w, u)` the least
        squares for the targets w (W,), without strokes [m].

        Raises:
            InvalidInput: for a target that is not in the lattice.
        """
        rows = [3 * self.lattice.node(c.node) + c.axis for c in targets]
        maps = {"displacements": self.J, "controls": np.linalg.pinv(self.J[rows])}
        return "\n".join(linear_c(name, A) for name, A in maps.items() if A.size)

    def reach(self, targets: Sequence[Control], values) -> Kinematics:
        """Actuators for requested motions of any nodes, the front feet included.

        Args:
            targets: components of node motions, W of them, such as
                Control(FEET["FL"], "z", "FL"). The components of a front foot's
                motion depend on each other; targets that contradict each other are
                met in least squares.
            values: displacements of the targets (T, W), or (W,) for one pose [m].

        Returns:
            All nodes of `lattice` as effectors; conflicts of kind "stroke", and
            "unreachable" for a target that is missed by more than 1 % of the largest
            target even without strokes.

        Raises:
            InvalidInput: for no such node, or a table of another shape or not finite.
        """
        w = table(values, len(targets), "values", "target")
        J = self.J.reshape(-1, 3, len(ACTUATORS))
        S = [J[self.lattice.node(c.node), c.axis] for c in targets]
        S = np.reshape(S, (-1, len(ACTUATORS)))
        unbounded, u, limit = bounded_controls(S, w, self.stroke)
        gap = np.abs(unbounded @ S.T - w)
        found = stroke_conflicts(ACTUATORS, unbounded, limit)
        for i, target in enumerate(targets):
            poses = np.flatnonzero(gap[:, i] > 0.01 * np.abs(w).max())
            if len(poses):
                what = f"{AXES[target.axis]} of {target.name!r}"
                why = "no actuator moves it"
                if S[i].any():
                    why = "it contradicts other targets"
                text = f"{what} is missed by {gap[:, i].max():.4g} m: {why}"
                found.append(Conflict("unreachable", text, int(poses[0])))
        return Kinematics(u, self.displacements(u), u @ S.T, tuple(found))
