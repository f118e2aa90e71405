"""Natural modes of frames: K v = (2 pi f)^2 M v."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.lattice.frame.model import Frame, Supports
from drakebots.lattice.frame.solve import Factored, actuator_rows, elimination_order


@dataclass(frozen=True, eq=False)
class FrameModes:
    """Natural modes, lowest first.

    Attributes:
        frequency: undamped (k,) [Hz]; about 0 for rigid motions.
        shapes: motions of the nodes (k, N, 6), of unit modal mass [kg^-1/2].
        mass: total of beams and nodes [kg].
    """

    frequency: np.ndarray
    shapes: np.ndarray
    mass: float


def frame_modes(
    frame: Frame,
    supports: Supports | None = None,
    count: int = 10,
    *,
    lumped: bool = False,
    node_mass: np.ndarray | float = 0.0,
    tension: np.ndarray | None = None,
) -> FrameModes:
    """The lowest modes, by Lanczos' method about a shift below zero.

    Args:
        frame: nodes and beams.
        supports: what is held; actuators keep their extension. Left out: the
            frame floats, and six modes are rigid motions.
        count: number of modes.
        lumped: beams' masses at their ends in place of the consistent matrix.
        node_mass: further mass at each node, one for all or (N,) [kg].
        tension: axial forces (B,) whose stress stiffness is added [N].

    Raises:
        InvalidInput: for a count the frame does not have, a mass < 0.
        NoSolution: when the modes are not found.
    """
    if supports is None:
        supports = Supports(np.zeros((len(frame), 6), dtype=bool), floating=True)
    elements = frame.elements
    free = ~supports.held.ravel()
    rows = actuator_rows(frame, supports)[:, free]
    rows = rows[(rows != 0).any(axis=1)]
    most = int(free.sum()) - len(rows)
    if not 1 <= count < most:
        raise InvalidInput(f"modes: count must be 1..{most - 1}, got {count}")
    extra = np.broadcast_to(np.asarray(node_mass, dtype=float), len(frame))
    if not (np.isfinite(extra) & (extra >= 0)).all():
        raise InvalidInput("modes: node_mass must be >= 0 kg")
    K = frame.stiffness
    if tension is not None:
        K = K + frame.assemble(elements.geometric(tension))
    diagonal = np.zeros((len(frame), 6))
    diagonal[:, :3] = extra[:, None]
    M = frame.assemble(elements.mass(lumped)) + scipy.sparse.diags(diagonal.ravel())
    K, M = K.tocsc()[free][:, free], M.tocsc()[free][:, free]
    # A shift below zero keeps the matrix regular with rigid motions. It is the
    # scale of one beam bending: far from zero for rounding, near for Lanczos.
    beam = elements.EI1 / (elements.rho * elements.area * elements.length**4)
    shift = -float(np.median(beam))
    factor = Factored(K - shift * M, elimination_order(frame, free), rows)
    inverse = LinearOperator(
        K.shape, lambda b: factor.solve(b.reshape(-1, 1))[0].ravel()
    )
    start = inverse @ np.random.default_rng(0).standard_normal(K.shape[0])
    try:
        squared, found = eigsh(
            K, count, M, sigma=shift, OPinv=inverse, v0=start, which="LM"
        )
    except ArpackError as error:
        raise NoSolution("the modes were not found; ask for fewer") from error
    order = np.argsort(squared)
    shapes = np.zeros((count, 6 * len(frame)))
    shapes[:, free] = found[:, order].T
    return FrameModes(
        frequency=np.sqrt(np.maximum(squared[order], 0.0)) / (2 * np.pi),
        shapes=shapes.reshape(count, -1, 6),
        mass=float(elements.masses.sum() + extra.sum()),
    )
