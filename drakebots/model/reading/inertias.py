"""Inertias that no rigid body can have, and the nearest that one can."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from drakebots.model.reading.findings import Findings

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""The moments and products of inertia, in the order of an upper triangle."""

SLACK = 1e-9
"""How far rounding may take a moment beyond what is physical, relative to the trace."""

POINT = 1e-5
"""A radius of gyration below this is that of a point [m]: its inertia is zero."""


def nearest_inertia(
    inertia: np.ndarray, mass: float
) -> tuple[np.ndarray | None, float]:
    """The inertia of a rigid body that is nearest to a matrix with the same axes.

    The principal moments I1 <= I2 <= I3 of a body have I1 >= 0 and I3 <= I1 + I2: they
    are sums of two each of the second moments of mass, J = (I1 + I2 + I3)/2 - I >= 0.
    Where J3 < 0, the moments are moved along (1, 1, -1), the shortest way to
    I3 = I1 + I2.

    Args:
        inertia: symmetric (3, 3) [kg m2].
        mass: of the body [kg].

    Returns:
        The inertia (3, 3), and how far it was moved relative to the largest moment;
        the same one and 0 for one that a body can have. None for one with a negative
        moment, which is no error of rounding or of measurement.
    """
    if inertia.any() and np.abs(inertia).max() < mass * POINT**2:
        return np.zeros((3, 3)), 0.0
    moments, axes = _principal(inertia)
    trace = np.abs(moments).sum()
    if moments[0] < -SLACK * trace:
        return None, 0.0
    moments = np.maximum(moments, 0.0)
    excess = moments[2] - moments[0] - moments[1]
    if excess <= SLACK * trace:
        return inertia, 0.0
    # A little further, so that rounding cannot lead back.
    step = excess / 3 + SLACK * trace
    moved = moments + step * np.array([1.0, 1.0, -1.0])
    near = axes @ np.diag(moved) @ axes.T
    return (near + near.T) / 2, float(step * np.sqrt(3) / moments[2])


def principal_inertia(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments (3,), which a body can have, and their axes (3, 3), a rotation.

    Args:
        inertia: symmetric (3, 3) [kg m^2]; a diagonal one keeps its axes.
    """
    if np.array_equal(inertia, np.diag(np.diag(inertia))):
        moments, axes = np.diag(inertia).copy(), np.eye(3)
    else:
        moments, axes = _principal(inertia)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
    # Rounding may leave a thin rod a little beyond what is possible.
    order = np.argsort(moments)
    moments = np.maximum(moments, 0.0)
    moments[order[2]] = min(moments[order[2]], moments[order[0]] + moments[order[1]])
    return moments, axes


def _principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (3,) and -vectors (3, 3) of a finite one, however large or small.

    Unscaled, the squares of large numbers overflow, and LAPACK may not converge.
    """
    size = np.abs(inertia).max() or 1.0
    moments, axes = np.linalg.eigh(inertia / size)
    return size * moments, axes


def repair_inertia(
    link: str, mass: float, moments: Mapping[str, float], findings: Findings
) -> dict[str, float]:
    """The moments of a link that have to change, by their names in :data:`MOMENTS`.

    Args:
        link: its name.
        mass: its mass [kg].
        moments: those of the file [kg m2].
        findings: what is changed is noted; what cannot be meant is a problem.
    """
    xx, xy, xz, yy, yz, zz = (moments[key] for key in MOMENTS)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass < 0:
        return {}  # That is a problem already.
    if mass == 0 and inertia.any():
        # Drake would replace both, by those of a ball of 1 kg.
        findings.note("an inertia without a mass is not used", link)
        return dict.fromkeys(MOMENTS, 0.0)
    if not np.isfinite(inertia).all():
        findings.problem(f"link {link!r} has an inertia that is not finite; correct it")
        return {}
    near, change = nearest_inertia(inertia, mass)
    if near is None:
        diagonal = ", ".join(f"{value:.3g}" for value in _principal(inertia)[0])
        findings.problem(
            f"link {link!r} has a negative inertia (principal moments {diagonal} "
            "kg m2); correct it"
        )
        return {}
    if change > 0:
        line = "an inertia that no body has is replaced by the nearest one"
        findings.note(line, f"{link} (by {100 * change:.2g} %)")
    if near is inertia:
        return {}
    return dict(zip(MOMENTS, near[np.triu_indices(3)].tolist()))
