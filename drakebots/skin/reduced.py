"""A reduced skin: links, modes, and few quadrature and mass points.

robot = load_skinned("beetle")
skin = train_reduced(robot, runs)          # runs: snapshots of the full skin
write_reduced(skin, "beetle.reduced.npz")
stepper = reduced_stepper(robot, skin, 5e-3)

Its coordinates are the plant's q and y (r,), r some tens; see
:mod:`drakebots.skin.reduced_shape` (shape), :mod:`~drakebots.skin.reduced_basis`
(modes), :mod:`~drakebots.skin.cubature` (points).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from drakebots.errors import FileProblem
from drakebots.results.container import replacing
from drakebots.skin.cubature import Points
from drakebots.skin.reduced_basis import SkinRun, learn_basis, limb_of
from drakebots.skin.reduced_points import (
    ReducedOptions,
    elastic_points,
    mass_points,
    training_states,
)
from drakebots.skin.reduced_shape import (
    LinkMotion,
    SparseWeights,
    blended,
    harmonic_weights,
)
from drakebots.skin.robot import SkinnedRobot

FORMAT = 1


@dataclass(frozen=True)
class ReducedSkin:
    """What a reduced frame needs, and the modes of the whole skin to draw it.

    Attributes:
        links: names.
        rest: of all nodes (N, 3) [m].
        weights: of the links (N, L).
        modes: Phi (N, 3, r) [m/sqrt(J)].
        domain: of each mode (r,).
        point_nodes, point_gradients, point_weights, point_row: the cubature, as
            :class:`~drakebots.skin.cubature.Points`, weights in m^3.
        point_domain: whose modes and the base's move it (m,).
        mass_nodes: which nodes carry mass (p,).
        masses: how much (p,) [kg].
        errors: of training: energy the modes leave by domain, then the cubature's
            relative residual by domain, then that of the masses (2 D + 1,).
    """

    links: tuple[str, ...]
    rest: np.ndarray
    weights: np.ndarray
    modes: np.ndarray
    domain: np.ndarray
    point_nodes: np.ndarray
    point_gradients: np.ndarray
    point_weights: np.ndarray
    point_row: np.ndarray
    point_domain: np.ndarray
    mass_nodes: np.ndarray
    masses: np.ndarray
    errors: np.ndarray

    @property
    def size(self) -> int:
        """How many modes, r."""
        return self.modes.shape[2]

    @property
    def points(self) -> Points:
        """The cubature."""
        return Points(
            self.point_nodes, self.point_gradients, self.point_weights, self.point_row
        )

    def positions(self, y: np.ndarray, motion: LinkMotion) -> np.ndarray:
        """All nodes (N, 3) [m]."""
        points = self.rest + self.modes @ y
        return blended(points, SparseWeights.of(self.weights), motion)


def train_reduced(
    robot: SkinnedRobot,
    runs: Sequence[SkinRun],
    options: ReducedOptions = ReducedOptions(),
) -> ReducedSkin:
    """A reduced skin out of runs of the full one.

    Args:
        robot: whose skin.
        runs: of :func:`~drakebots.skin.reduced_basis.snapshots`.
        options: sizes and tolerances.

    Raises:
        InvalidInput: for runs of another skin, or too few shapes.
    """
    model, names = robot.fem, tuple(robot.glue.by_body())
    weights = harmonic_weights(model, robot.glue, names)
    limb = limb_of(robot.plant, names)
    basis = learn_basis(
        model,
        weights,
        limb,
        runs,
        limb_modes=options.limb_modes,
        base_modes=options.base_modes,
    )
    states = training_states(basis, runs, options)
    points, domain, off = elastic_points(model, basis, states, options)
    nodes, masses, mass_off = mass_points(model, basis, states, options)
    return ReducedSkin(
        links=names,
        rest=model.rest,
        weights=weights,
        modes=basis.modes,
        domain=basis.domain,
        point_nodes=points.nodes,
        point_gradients=points.gradients,
        point_weights=points.weights,
        point_row=points.row,
        point_domain=domain,
        mass_nodes=nodes,
        masses=masses,
        errors=np.concatenate([basis.left, off, [mass_off]]),
    )


def write_reduced(skin: ReducedSkin, path: str | Path) -> None:
    """Writes a trained skin (npz), atomically.

    Raises:
        FileProblem: when the file cannot be written.
    """
    table = {f.name: np.asarray(getattr(skin, f.name)) for f in fields(skin)}
    with replacing(path) as part, open(part, "wb") as file:
        np.savez_compressed(file, format=FORMAT, **table)


def read_reduced(path: str | Path) -> ReducedSkin:
    """Reads what :func:`write_reduced` wrote.

    Raises:
        FileProblem: for a file that is missing, or of other contents.
    """
    names = [f.name for f in fields(ReducedSkin)]
    try:
        with np.load(path, allow_pickle=False) as file:
            if "format" not in file or int(file["format"]) != FORMAT:
                raise FileProblem(
                    path, "is no reduced skin of this version; train again"
                )
            table = {name: file[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise FileProblem(
            path, f"cannot be read as a reduced skin ({error}); train again"
        ) from error
    table["links"] = tuple(map(str, table["links"]))
    return ReducedSkin(**table)
