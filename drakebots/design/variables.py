"""Design variables of a skinned robot, and how its skin's stiffness follows them.

    skin = SkinResponse(design, joints)
    skin.changed(variable, 1e-6).stiffness

Let A be the tangent of the skin at rest, U the displacements of its nodes per turn of a
joint, and J those of its glue. Then K = U' A U is the stiffness against the joints. U
minimises this energy for the given J, so its own change does not count to first order,
and the derivative needs no further factorization:

    dK/dp = U' dA/dp U + 2 sym(dJ/dp' (A U)_c)

with (.)_c the rows of the glue, and dA/dp from two assemblies of the mesh whose rest
positions move with p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.design.problem import Design, DesignProblem
from drakebots.design.skeleton import Link, Plate, Skeleton, edit, parameter
from drakebots.design.skin import in_folds, teeth
from drakebots.fem.assembly import build_model, force_and_tangent
from drakebots.fem.mesh import TetMesh
from drakebots.fem.solver import make_solver
from drakebots.skin.coupled import rest_tangent


def shore_a(hardness: float) -> float:
    """Young's modulus of a rubber of this Shore A hardness [Pa] (Gent 1958, eq. 4)."""
    S = hardness
    return 1e6 * 0.0981 * (56 + 7.62336 * S) / (0.137505 * (254 - 2.54 * S))


@dataclass(frozen=True)
class DesignVariable:
    """Design variable: a parameter that may be changed, with its bounds, in SI."""

    name: str
    unit: str
    value: float
    low: float
    high: float

    @property
    def range(self) -> float:
        """Length of the range."""
        return self.high - self.low

    def shown(self, value: float) -> str:
        """A value in mm or MPa."""
        factor, unit = (1e3, "mm") if self.unit == "m" else (1e-6, "MPa")
        return f"{factor * value:.3g} {unit}"


LIMBS = ("front.upper", "front.lower", "hind.upper", "hind.lower")
"""Links whose lengths may be changed, in designs whose body follows the skeleton."""


def design_variables(problem: DesignProblem) -> tuple[DesignVariable, ...]:
    """The design variables of a design.

    * wall: 2 to 5.5 mm. The thinnest wall that can be printed is 1 mm; between links
      and body there are 6 mm;
    * modulus: that of silicones for moulds, Shore A 10 to 30;
    * fold depth, if the skin has folds: 4 to 10 mm; deeper teeth cannot be meshed
      (docs/design.md);
    * lengths of links (LIMBS), if the body follows the skeleton: 15 % shorter or
      longer, but not shorter than their motors.

    Raises:
        InvalidInput: for a parameter that is outside its bounds already.
    """
    skin, stiffness = problem.skin, problem.skin.material.youngs_modulus
    out = [
        DesignVariable("wall", "m", skin.wall, 2e-3, 5.5e-3),
        DesignVariable("modulus", "Pa", stiffness, shore_a(10), shore_a(30)),
    ]
    if skin.folds.depth:
        out.append(DesignVariable("fold depth", "m", skin.folds.depth, 4e-3, 10e-3))
    if problem.body is not None:
        for name in LIMBS:
            length = float(parameter(problem.template, name))
            low = max(0.85 * length, 1.02 * problem.template.build.shortest)
            if low < length:
                out.append(DesignVariable(name, "m", length, low, 1.15 * length))
    for k in out:
        if not k.low <= k.value <= k.high:
            raise InvalidInput(
                f"{problem.name}: {k.name} of {k.value:g} {k.unit} is outside "
                f"{k.low:g} to {k.high:g}, where it can be made; change it first"
            )
    return tuple(out)


# The stiffness of the skin.


class ChangedSkin(NamedTuple):
    """A skin after a change of a design variable.

    Attributes:
        stiffness: K against the m joints (m, m) [N m/rad].
        node_mass: masses of the nodes (N,) [kg].
        nodes: their rest positions (N, 3) [m].
        skeleton: the skeleton at rest, if that has changed, too.
    """

    stiffness: np.ndarray
    node_mass: np.ndarray
    nodes: np.ndarray
    skeleton: Skeleton | None = None


class SkinResponse:
    """The stiffness K of a skin against m joints, and how it changes with the design.

    Args:
        design: the design, whose skin has N nodes, g of them glued to links.
        joints: names of its joints, in the order of K.

    Attributes:
        fem: the skin's finite elements.
        links: link of each glued node (g,).
        glue: numbers of the glued nodes (g,).
        U: displacements of the nodes per turn of each joint (3 N, m) [m/rad].
    """

    def __init__(self, design: Design, joints: tuple[str, ...]):
        self.design, self.joints = design, joints
        self.fem = build_model(design.shell.mesh, design.materials)
        self.links = [link for link, ids in design.glue.items() for _ in ids]
        self.glue = np.concatenate([np.asarray(i, int) for i in design.glue.values()])
        self._dofs = (3 * self.glue[:, None] + np.arange(3)).ravel()
        self._solver = make_solver(self.fem.pattern, self._dofs, threads=1)
        self._solver.factor(rest_tangent(self.fem))
        J = self._turns(design.skeleton, self.fem.rest)
        zero = np.zeros((self.fem.rest.size, J.shape[1]))
        self.U = self._solver.expand(self._solver.reduce(zero)[0], J)

    def carried(self, before: Skeleton, after: Skeleton) -> np.ndarray:
        """Displacements of the glue (g, 3) [m] when the links change their lengths.

        Each glued node keeps its place along the axis of its link.

        Args:
            before, after: the skeletons at rest, before and after the change.
        """
        p, out = self.fem.rest[self.glue], np.empty((len(self.glue), 3))
        for row, name in enumerate(self.links):
            old, new = before.link(name), after.link(name)
            axis = old.p_WB - old.p_WA
            t = np.clip((p[row] - old.p_WA) @ axis / max(axis @ axis, 1e-12), 0, 1)
            out[row] = (1 - t) * (new.p_WA - old.p_WA) + t * (new.p_WB - old.p_WB)
        return out

    def extended(self, move: np.ndarray) -> np.ndarray:
        """Displacements of all nodes (N, 3) [m] for those of the glue (g, 3) [m].

        The rest of the skin takes its static equilibrium, linearized at rest.
        """
        state, _ = self._solver.reduce(np.zeros(self.fem.rest.size))
        return self._solver.expand(state, move.ravel()).reshape(-1, 3)

    def moved(
        self, x: np.ndarray | None = None, skeleton: Skeleton | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """K (m, m) [N m/rad] and the nodes' masses (N,) [kg] with moved rest positions.

        Only the rows of U at the glue change with the positions; the others stay. The
        error of K is then of second order in that of U, so its derivative is exact.

        Args:
            x: rest positions of the nodes (N, 3) [m], by default those of the design.
            skeleton: skeleton that goes with x, by default that of the design.
        """
        mesh, fem, U = self.design.shell.mesh, self.fem, self.U
        if x is not None:
            moved = TetMesh(x, mesh.tets, mesh.region)
            fem = build_model(moved, self.design.materials)
            U = U.copy()
            U[self._dofs] = self._turns(skeleton or self.design.skeleton, x)
        values = force_and_tangent(fem, fem.rest)[1]
        AU = np.stack([fem.pattern.multiply(values, u) for u in U.T], axis=1)
        K = U.T @ AU
        return (K + K.T) / 2, fem.node_mass

    def _turns(self, skeleton: Skeleton, x: np.ndarray) -> np.ndarray:
        """J (3 g, m) [m/rad], displacements of the glue per turn of each joint."""
        return skeleton.hinge_columns(self.links, x[self.glue], self.joints)

    def changed(self, variable: DesignVariable, step: float) -> ChangedSkin:
        """The skin with one design variable changed by a step, on the same mesh."""
        design, x = self.design, self.fem.rest
        if variable.name == "modulus":
            K, mass = self.moved()
            return ChangedSkin(K * (1 + step / variable.value), mass, x)
        if variable.name in LIMBS:
            before = design.template.skeleton()
            value = variable.value + step
            after = edit(design.template, {variable.name: value}).skeleton()
            x = x + self.extended(self.carried(before, after))
            after = _with_plates(after, design.skeleton)
            return ChangedSkin(*self.moved(x, after), x, after)
        velocity = wall_velocity if variable.name == "wall" else fold_velocity
        x = x + step * velocity(design)
        return ChangedSkin(*self.moved(x), x)


def wall_velocity(design: Design) -> np.ndarray:
    """Change of the vertices' positions per change of the wall's thickness (N, 3).

    The outside stays, and the inside moves inwards; the soles keep their thickness.
    """
    shell = design.shell
    x, n = shell.mesh.vertices, len(shell.outer_vertices)
    layers = len(x) // n - 1
    across = x[shell.inner_vertices] - x[shell.outer_vertices]
    thick = np.linalg.norm(across, axis=1, keepdims=True)
    across = np.where(thick < 1.3 * design.problem.skin.wall, across / thick, 0.0)
    return np.concatenate([across * (k / layers) for k in range(layers + 1)])


def fold_velocity(design: Design) -> np.ndarray:
    """Change of the vertices' positions per change of the folds' depth (N, 3).

    The grooves move inwards. Cuffs, which get wider with the depth, move outwards.
    """
    mesh, settings = design.shell.mesh, design.problem.skin.folds
    x, out = mesh.vertices, np.zeros_like(mesh.vertices)
    cuff = settings.cuff if design.problem.body is not None else 0.0
    regions = teeth(design.folds, settings)
    middles = np.array([fold.p_W for fold in design.folds])
    for region in np.unique(mesh.region[in_folds(mesh)]):
        ids = np.unique(mesh.tets[mesh.region == region])
        k = np.linalg.norm(middles - x[ids].mean(axis=0), axis=1).argmin()
        along, radial = regions[k].coordinates(x[ids])
        radius = np.maximum(np.linalg.norm(radial, axis=1), 1e-9)
        grooves = regions[k].profile(along) / settings.depth
        outwards = (cuff if design.folds[k].radius else 0.0) - grooves
        out[ids] = outwards[:, None] * (radial / radius[:, None])
    return out


def _with_plates(skeleton: Skeleton, braced: Skeleton) -> Skeleton:
    """A skeleton with the bracing plates of another one."""

    def solids(link: Link) -> Iterator[Any]:
        yield from link.solids
        yield from (s for s in braced.link(link.name).solids if isinstance(s, Plate))

    return skeleton.with_solids(solids)
