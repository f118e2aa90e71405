"""Contacts of the patches with the ground, as linear rows of a step's QP.

1. States of a patch: it is free, sticks or slides, eqs. (15)-(17). Let
   f = [f_x, f_y, f_n] be the force on a patch, y its displacement from its anchor on
   the ground, D_k = +x, +y, -x, -y the four directions of the friction pyramid, F_k
   the friction along them and n the normal. The complementarity of eq. (12) between f
   and y has ten linear pieces. Each has as many free forces s (f = T s) as equations
   R y = 0, so that the torques determine the forces:

       free      f = 0;                                        y_n >= 0
       stick     y = 0;                                        mu f_n >= sum F
       slide k   f = s (n + mu D_k), y_n = 0;                  s >= 0, l + D_j y >= 0
       edge k    f along D_k and D_k+1, y_n = 0, D_k y = D_k+1 y;   F >= 0, l >= 0

   with the slip l = -D_k y >= 0. "slide k" has its friction along D_k and moves against
   it; "edge k" has friction between D_k and D_k+1. Beyond each inequality lies another
   piece.

2. The centre of pressure (COP) stays inside the support polygon, eq. (5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from drakebots.core.checks import check_value, non_negative
from drakebots.core.errors import InvalidInput

# --- centre of pressure -----------------------------------------------------
#
# COP = sum f_n p / sum f_n. An edge of the polygon with inward normal e and offset d
# requires e . COP >= d + margin; multiplied by sum f_n > 0 this is linear in the
# forces:
#
#     sum_j f_nj (e . p_j - d - margin) >= 0
#
# The paper computes the COP from the motion of the COM as Megaro et al. do. On flat
# ground both agree, by the balance of momentum, except for the rate of angular
# momentum, which their formula neglects.


def support_edges(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the convex hull of points on the ground.

    Args:
        points: (k, 2) or (k, 3) [m]; z is ignored.

    Returns:
        Inward normals (h, 2) and offsets (h,), e . x >= d inside [m].

    Raises:
        InvalidInput: for fewer than three points, or all on one line.
    """
    points = np.asarray(points, float)[:, :2]
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise InvalidInput(
            f"support polygon: {len(points)} points span no area; put a foot with "
            "at least three patches on the ground"
        ) from error
    return -hull.equations[:, :2], hull.equations[:, 2]


def cop_rows(p: np.ndarray, bearing: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """Rows C (h, 3 P) with C f >= 0 if the COP is inside the support polygon.

    Args:
        p: positions of all contacts (P, 3) [m].
        bearing: mask of contacts that span the support polygon (P,), of bool.
        margin: smallest distance from its edges [m]; limited to 0.45 of the polygon's
            least width, so that some room is left.

    Raises:
        InvalidInput: for a margin < 0, or a polygon without area.
    """
    check_value("COP margin", margin, non_negative("m"))
    normals, offsets = support_edges(p[np.asarray(bearing, bool)])
    room = p[np.asarray(bearing, bool)][:, :2] @ normals.T - offsets
    margin = min(margin, 0.45 * float(room.max(axis=0).min()))
    rows = np.zeros((len(normals), len(p), 3))
    rows[:, :, 2] = (p[:, :2] @ normals.T - offsets - margin).T
    return rows.reshape(len(normals), -1)


def centre_of_pressure(p: np.ndarray, force: np.ndarray) -> np.ndarray:
    """COP (2,) [m] of forces (P, 3) [N] at p (P, 3) [m]; NaN without normal force."""
    total = force[:, 2].sum()
    if total <= 0:
        return np.full(2, np.nan)
    return force[:, 2] @ p[:, :2] / total


def cop_margin(p: np.ndarray, bearing: np.ndarray, force: np.ndarray) -> float:
    """Distance of the COP from the nearest edge of the polygon, negative outside [m].

    NaN without normal force or without a polygon. Arguments as of :func:`cop_rows` and
    :func:`centre_of_pressure`.
    """
    cop = centre_of_pressure(p, force)
    try:
        normals, offsets = support_edges(p[np.asarray(bearing, bool)])
    except InvalidInput:
        return np.nan
    return float((normals @ cop - offsets).min())


# --- states of a patch ------------------------------------------------------

FREE, STICK = 0, 1
SLIDE, EDGE = 2, 6
"""Numbers of the pieces: SLIDE + k has friction along direction k, EDGE + k between k
and k + 1."""

NAMES = (
    *("free", "stick", "slide +x", "slide +y", "slide -x", "slide -y"),
    *("slide +x+y", "slide -x+y", "slide -x-y", "slide +x-y"),
)
"""Names of the pieces, in the order of their numbers."""

DIRECTIONS = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
"""The directions D_k (4, 3) of the friction pyramid."""

NORMAL = np.array([0.0, 0, 1])


@dataclass(frozen=True)
class Piece:
    """One linear piece of a patch's complementarity.

    Attributes:
        T: f = T s (3, r).
        R: R y = 0 (r, 3).
        on_f: inequalities of the force, on_f f >= 0 (i, 3).
        on_y: inequalities of the displacement, on_y y >= 0 (j, 3).
        beyond: piece on the other side of each inequality (i + j,), those of on_f
            first.
    """

    T: np.ndarray
    R: np.ndarray
    on_f: np.ndarray
    on_y: np.ndarray
    beyond: tuple[int, ...]


@lru_cache(maxsize=64)
def pieces(friction: float) -> tuple[Piece, ...]:
    """The ten pieces in the order of NAMES, for a coefficient of friction mu > 0."""
    none, D, n = np.zeros((0, 3)), DIRECTIONS, NORMAL
    nxt = [D[(k + 1) % 4] for k in range(4)]
    edges = range(EDGE, EDGE + 4)
    faces = np.array([friction * n - D[k] - nxt[k] for k in range(4)])
    out = [
        Piece(np.zeros((3, 0)), none, none, n[None], (STICK,)),
        Piece(np.eye(3), np.eye(3), np.vstack([n, faces]), none, (FREE, *edges)),
    ]
    for k in range(4):
        # l -+ D_k+1 y; their sum is 2 l.
        side = np.array([-D[k] + nxt[k], -D[k] - nxt[k]])
        beyond = (FREE, EDGE + k, EDGE + (k - 1) % 4)
        T = (n + friction * D[k])[:, None]
        out.append(Piece(T, n[None], n[None], side, beyond))
    for k in range(4):
        # f_n = (F_k + F_k+1) / mu; F_k = (mu f_n + (D_k - D_k+1) f) / 2.
        T = np.stack([D[k] + n / friction, nxt[k] + n / friction], axis=1)
        R = np.array([n, D[k] - nxt[k]])
        on_f = np.array([(n * friction + s * (D[k] - nxt[k])) / 2 for s in (1, -1)])
        beyond = (SLIDE + (k + 1) % 4, SLIDE + k, STICK)
        out.append(Piece(T, R, on_f, -(D[k] + nxt[k])[None] / 2, beyond))
    return tuple(out)


def behind(here: int, other: int, y: np.ndarray) -> int:
    """The piece that a patch enters when it crosses an inequality.

    It is `other`, except that a patch slides if it touches down while it moves along
    the ground.

    Args:
        here: present piece.
        other: piece on the other side of the inequality.
        y: displacement of the patch (3,) [m].
    """
    if here == FREE and other == STICK:
        along = DIRECTIONS @ y
        k = int(np.argmin(along))
        if along[k] < 0:
            return SLIDE + k
    return other


def label(force: np.ndarray, friction: float) -> np.ndarray:
    """Eq. (19): piece (P,) of patches from the forces that hold them (P, 3) [N]."""
    normal, side = force[:, 2], np.linalg.norm(force[:, :2], axis=1)
    k = np.argmax(force @ DIRECTIONS.T, axis=1)
    out = np.where(friction * normal > side, STICK, SLIDE + k)
    return np.where(normal <= 0, FREE, out)


def piece_of(force: np.ndarray, y: np.ndarray, friction: float) -> np.ndarray:
    """Pieces (k,) of contacts, from complementary forces and displacements (k, 3)."""
    small = 1e-9 * (1 + np.abs(force).max(initial=0.0))
    out = np.full(len(force), FREE)
    for i, (f, move) in enumerate(zip(force, y)):
        if f[2] <= small:
            continue
        F, along = DIRECTIONS @ f, DIRECTIONS @ move
        k = int(np.argmax(F))
        room = friction * f[2] - np.abs(f[:2]).sum()
        if room > small or -along[k] <= 1e-9 * (1 + np.abs(move).max()):
            out[i] = STICK
        elif F[(k + 1) % 4] > small:
            out[i] = EDGE + k
        elif F[(k - 1) % 4] > small:
            out[i] = EDGE + (k - 1) % 4
        else:
            out[i] = SLIDE + k
    return out


def residual(force: np.ndarray, y: np.ndarray, friction: float) -> np.ndarray:
    """Largest violation of the complementarity of eq. (12) of each patch (P,) [N].

    The natural residual |min(a, b)| of each pair a >= 0, b >= 0, a b = 0, with y
    as a force and l = max(0, -min D'y), which violates least.

    Args:
        force: f (P, 3) [N].
        y: displacement divided by the compliance (P, 3) [N].
        friction: mu.
    """
    F = np.maximum(force @ DIRECTIONS.T, 0.0)
    along = y @ DIRECTIONS.T
    slip = np.maximum(0.0, -along.min(axis=1))
    return np.max(
        [
            np.abs(np.minimum(force[:, 2], y[:, 2])),
            *np.abs(np.minimum(F, along + slip[:, None])).T,
            np.abs(np.minimum(slip, friction * force[:, 2] - F.sum(axis=1))),
        ],
        axis=0,
    )
