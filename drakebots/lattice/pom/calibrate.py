"""Calibration: gains of planes of motion and offsets, fitted to measured markers.

Markers are measured in the laboratory, where the robot walks and turns. As in the
paper, the mean of the markers is subtracted, then their common rotation in polar
coordinates:

    y_j = x_j - mean x,  turn = mean_j (angle y_j - angle y0_j),  B(x)_j = R(-turn) y_j

The same map B takes mean and common rotation out of what planes of motion predict,
which is then fitted by least squares (Gauss-Newton) with a gain g_i of each plane and
an offset b_j of each marker:

    B(x)_j(t) = B(x0 + J g u(t))_j + b_j

Source: Tebyani et al. (2022), section 3.2, for the body frame; the fit is ours, for
its outlook on calibration.

Measurements are read from a CSV file with one line for each frame of the recording. A
column is the displacement u of an actuator, by its lower node in half pitches and its
push axis, or one coordinate of a marker, by its node:

    actuator 2 1 1 z [mm],marker 1 3 4 x [mm],marker 1 3 4 y [mm],marker 3 1 4 x [mm],
    5,12.1,94.3,88.2,...
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from drakebots.core.checks import check_value, numeric, positive
from drakebots.core.convert import plain
from drakebots.core.errors import InvalidInput, check_names
from drakebots.core.fields import checked
from drakebots.core.files import (
    TOP,
    Fields,
    csv_table,
    read_yaml,
    reading,
    write_text,
)
from drakebots.core.units import si_factor
from drakebots.lattice.pom.pom import Control, PlanesOfMotion, table
from drakebots.lattice.shape import Lattice

_STEPS = 12
"""Gauss-Newton steps; B is nearly linear, so each gains about two digits."""

# --- measurements -----------------------------------------------------------


LENGTHS = ("m", "cm", "mm", "um")
"""Units that a table may be written in."""


def length_factor(unit: str) -> float:
    """The factor from a unit of length to m.

    Raises:
        UnknownName: for another unit.
    """
    check_names("unit of length", [unit], LENGTHS)
    return si_factor(unit)


def read_lengths(path: str | Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns of a CSV file, and their values (T, n) [m].

    Raises:
        FileProblem: for a file that cannot be read.
        InvalidInput: naming the head or the line that is malformed.
        UnknownName: for a unit that is not one of length.
    """
    with reading(path):
        text = Path(path).read_text()
    heads, values = csv_table(text)
    names, factors = [], []
    for head in heads:
        match = re.fullmatch(r"([^\[\]]+?)\s*(?:\[([^\]]*)\])?", head)
        if not match:
            raise InvalidInput(f"head {head!r} is not a name and a [unit]")
        names.append(match[1])
        factors.append(length_factor(match[2] or "m"))
    return names, values * np.array(factors)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Commands and measurements, frame by frame.

    Attributes:
        controls: the actuators, M of them.
        nodes: places of the marked nodes (n, 3) [half pitches].
        u: displacements of the actuators' lower nodes (T, M) [m].
        markers: positions of the markers in the laboratory (T, n, 2 or 3) [m].
    """

    controls: tuple[Control, ...]
    nodes: tuple[tuple[int, int, int], ...]
    u: np.ndarray
    markers: np.ndarray

    def model(self, lattice: Lattice) -> PlanesOfMotion:
        """The planes of motion of a lattice with these actuators and markers.

        Raises:
            InvalidInput: for a node that is not in the lattice, or two actuators on
                one plane.
        """
        return PlanesOfMotion(lattice, self.controls, self.nodes)


_HEAD = re.compile(r"(actuator|marker) (\d+) (\d+) (\d+) ([xyz])")


def read_measurements(path: str | Path) -> Measurements:
    """Reads the measurements for :func:`calibrate` from a CSV file.

    Raises:
        FileProblem: for a file that cannot be read or is malformed; one line that
            names the column or line.
    """
    with reading(path):
        return _measurements(*read_lengths(path))


def _measurements(heads: list[str], values: np.ndarray) -> Measurements:
    columns: dict[tuple[str, tuple[int, int, int], str], np.ndarray] = {}
    for head, column in zip(heads, values.T):
        match = _HEAD.fullmatch(head)
        if match is None:
            raise InvalidInput(
                f"column {head!r} must be `actuator X Y Z AXIS` or `marker X Y Z AXIS`"
            )
        kind, *node, axis = match.groups()
        place = kind, tuple(map(int, node)), axis
        if place in columns:
            raise InvalidInput(f"column {head!r} appears twice; keep one")
        columns[place] = column
    driven = [place for place in columns if place[0] == "actuator"]
    nodes = tuple(dict.fromkeys(node for kind, node, _ in columns if kind == "marker"))
    axes = "xyz" if any(("marker", node, "z") in columns for node in nodes) else "xy"
    for node, axis in product(nodes, axes):
        if ("marker", node, axis) not in columns:
            name = " ".join(map(str, node))
            raise InvalidInput(f"marker {name} has no column for {axis}; add it")
    if not driven or len(nodes) < 2:
        raise InvalidInput("needs at least one actuator and two markers")
    markers = [[columns["marker", node, axis] for axis in axes] for node in nodes]
    controls = tuple(Control(node, axis) for _, node, axis in driven)
    u = np.array([columns[place] for place in driven]).T
    return Measurements(controls, nodes, u, np.array(markers).transpose(2, 0, 1))


# --- the body's frame -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BodyFrame:
    """Markers in the body's frame.

    Attributes:
        displacement: displacements of the markers from their rest (T, n, D) [m].
        centre: mean of the markers in the laboratory (T, D) [m].
        turn: common rotation about the vertical since rest (T,) [rad].
        rescale: the authors' factor for amplitudes, a ratio of variances over time,
            each the mean of all markers: of a marker's distance from the markers'
            mean, over that of its distance from its own mean place in the body's
            frame; 1 when nothing moves. It is not applied. Source: the program that
            the authors publish beside their recording, on which it is 2.25.
    """

    displacement: np.ndarray
    centre: np.ndarray
    turn: np.ndarray
    rescale: float


def _marker_table(markers, count: int) -> np.ndarray:
    """Markers as a finite array (T, n, 2 or 3).

    Raises:
        InvalidInput: naming the frame and the marker that are not.
    """
    data = check_value("markers", markers, numeric()).astype(float)
    if data.ndim != 3 or data.shape[1] != count or data.shape[2] not in (2, 3):
        raise InvalidInput(
            f"markers must be (T, {count}, 2 or 3), one column per marker: {data.shape}"
        )
    if not len(data):
        raise InvalidInput("markers hold no frame; record at least one")
    bad = np.argwhere(~np.isfinite(data))
    if len(bad):
        raise InvalidInput(
            f"marker {bad[0, 1]} is lost in frame {bad[0, 0]}; drop that frame or "
            "fill it in"
        )
    return data


def body_frame(markers, rest) -> BodyFrame:
    """Removes the body's mean motion and rotation from marker positions.

    Args:
        markers: positions in the laboratory (T, n, D), D = 2 (x, y) or 3 [m].
        rest: positions at rest in the model's axes (n, D) [m]; only the shape about
            the mean counts.

    Raises:
        InvalidInput: for fewer than two markers, one in the middle of the others
            (it has no angle), or a table of another shape or not finite.
    """
    rest = np.asarray(rest, float)
    if rest.ndim != 2 or len(rest) < 2 or not np.isfinite(rest).all():
        raise InvalidInput(f"rest must be (n, 2 or 3), n >= 2, got {rest.shape}")
    data = _marker_table(markers, len(rest))
    if data.shape[2] != rest.shape[1]:
        raise InvalidInput("markers and rest differ in dimension; give both 2 or 3")
    shape = rest - rest.mean(axis=0)
    radius = np.linalg.norm(shape[:, :2], axis=1)
    if radius.min() < 1e-9:
        raise InvalidInput(
            f"marker {int(np.argmin(radius))} lies in the middle of the others and has "
            "no angle; leave it out"
        )
    centre = data.mean(axis=1)
    y = data - centre[:, None]
    angle = np.arctan2(y[:, :, 1], y[:, :, 0]) - np.arctan2(shape[:, 1], shape[:, 0])
    # Deviations from the common rotation are small: no jump by 2 pi.
    common = np.angle(np.exp(1j * angle).mean(axis=1))
    turn = common + np.angle(np.exp(1j * (angle - common[:, None]))).mean(axis=1)
    c, s = np.cos(turn), np.sin(turn)
    back = y.copy()
    back[:, :, 0] = c[:, None] * y[:, :, 0] + s[:, None] * y[:, :, 1]
    back[:, :, 1] = c[:, None] * y[:, :, 1] - s[:, None] * y[:, :, 0]
    moved = back - shape
    before = np.linalg.norm(y[..., :2], axis=2).var(axis=0).mean()
    strayed = (moved - moved.mean(axis=0))[..., :2]
    after = np.linalg.norm(strayed, axis=2).var(axis=0).mean()
    moves = after > 1e-20 * radius.max() ** 2  # more than rounding
    rescale = float(before / after) if moves else 1.0
    return BodyFrame(moved, centre, np.unwrap(turn), rescale)


def _projected(field: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Displacements (..., n, D) minus mean and common rotation, to first order."""
    shape = (rest - rest.mean(axis=0))[:, :2]
    field = field - field.mean(axis=-2, keepdims=True)
    across = np.stack([-shape[:, 1], shape[:, 0]], axis=1)
    turn = (field[..., :2] * across).sum(axis=-1) / (shape**2).sum(axis=1)
    field = field.copy()
    field[..., :2] -= turn.mean(axis=-1)[..., None, None] * across
    return field


# --- the fit ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Calibration:
    """Planes of motion fitted to markers.

    Attributes:
        model: planes of motion with the markers as effectors.
        gains: gains of the planes (M,); NaN for one that does not move any marker.
        deviation: standard deviation of the gains, for independent noise (M,).
        offsets: offsets of the markers (n, D) [m].
        ideality: the one gain for all planes that fits best.
        residual: root mean square residual with gains and offsets [m].
        uncalibrated: root mean square residual with gains 1 and offsets [m].
        body: the markers in the body's frame.
    """

    model: PlanesOfMotion
    gains: np.ndarray
    deviation: np.ndarray
    offsets: np.ndarray
    ideality: float
    residual: float
    uncalibrated: float
    body: BodyFrame

    def predict(self, u) -> np.ndarray:
        """Displacements of the markers in the body's frame (T, n, D) [m].

        Args:
            u: displacements of the controls (T, M) [m].
        """
        u = table(u, len(self.gains), "u", "control")
        size = self.offsets.shape[1]
        return _response(self.model, u, np.nan_to_num(self.gains), size) + self.offsets

    def report(self) -> str:
        """Gains, residuals and the paper's rescaling, for printing."""
        lines = [
            f"ideality {self.ideality:.3f}; residual {self.residual * 1e3:.3f} mm, "
            f"uncalibrated {self.uncalibrated * 1e3:.3f} mm; the paper would rescale "
            f"by {self.body.rescale:.3f}"
        ]
        names = [control.name for control in self.model.controls]
        for name, gain, sigma in zip(names, self.gains, self.deviation):
            lines.append(f"{name}: gain {gain:.3f} +- {sigma:.3f}")
        return "\n".join(lines)

    def facts(self) -> dict[str, Any]:
        """The calibration as plain numbers in SI, by name; null for an unseen gain."""
        names = [control.name for control in self.model.controls]
        nodes = self.model.lattice.nodes[self.model.effector_nodes].tolist()
        places = [" ".join(map(str, node)) for node in nodes]
        return plain(
            {
                "gains": dict(zip(names, self.gains.tolist())),
                "deviation": dict(zip(names, self.deviation.tolist())),
                "ideality": self.ideality,
                "residual_m": self.residual,
                "uncalibrated_m": self.uncalibrated,
                "offsets_m": dict(zip(places, self.offsets.tolist())),
                "rescale": self.body.rescale,
            }
        )

    def save(self, path: str | Path) -> Path:
        """Writes :meth:`facts` as JSON, atomically.

        Raises:
            FileProblem: when it cannot be written; nothing is left behind.
        """
        return write_text(path, json.dumps(self.facts(), indent=2) + "\n")


@checked("gains")
class Gains:
    """Gains of actuators, as :meth:`Calibration.save` stores them.

    Raises:
        InvalidInput: for a gain that is not > 0.
    """

    word = "FILE"
    gains: Mapping[str, float | None]
    """The gains by the actuators' names, or nodes and axes: "(2, 1, 1) z"."""

    @classmethod
    def from_file(cls, path: str | Path) -> Gains:
        """The gains of a calibration's file.

        Raises:
            FileProblem: for a file that cannot be read, or holds no gains.
        """
        with reading(path):
            return cls(Fields(read_yaml(Path(path)), TOP).get("gains"))

    def of(self, controls: Sequence[Control]) -> np.ndarray:
        """The gains of some actuators (M,), whatever they are named.

        Raises:
            InvalidInput: for an actuator without one, or one that no marker shows.
        """
        own = {c.name: Control(c.node, c.axis).name for c in controls}
        names = [name if name in self.gains else own[name] for name in own]
        check_names("actuator of the calibration", names, self.gains)
        what = "gain of {} (no marker shows it where there is none)"
        found = [check_value(what.format(n), self.gains[n], positive()) for n in names]
        return np.array(found)


def _rest(model: PlanesOfMotion, size: int) -> np.ndarray:
    return model.lattice.positions[model.effector_nodes][:, :size]


def _response(model: PlanesOfMotion, u, gains, size: int) -> np.ndarray:
    """B(x0 + J g u) minus the rest (T, n, D)."""
    moved = model.positions(u * gains)[..., :size]
    return body_frame(moved, _rest(model, size)).displacement


def calibrate(model: PlanesOfMotion, u, markers) -> Calibration:
    """Fits gains and offsets to markers measured in the laboratory.

    Args:
        model: planes of motion whose effectors are the marked nodes, n of them.
        u: displacements of the controls (T, M) [m].
        markers: positions in the laboratory (T, n, 2 or 3) [m].

    Raises:
        InvalidInput: for tables of different length, shape or not finite, too few
            frames, controls that do not move, or controls that move so alike that
            their gains cannot be distinguished, naming one.
    """
    controls, n = model.controls, len(model.effector_nodes)
    u = table(u, len(controls), "u", "control")
    data = _marker_table(markers, n)
    if len(data) != len(u):
        raise InvalidInput(
            f"{len(u)} rows of controls, {len(data)} frames of markers; give as many"
        )
    size = data.shape[2]
    rest = _rest(model, size)
    body = body_frame(data, rest)
    each = u * np.eye(len(controls))[:, None]  # (M, T, M): one at a time
    slopes = _projected(model.displacements(each)[..., :size], rest)
    # The offsets fit the means, the gains the deviations from them.
    A = _centred(slopes.reshape(len(controls), len(u), -1)).reshape(len(controls), -1).T
    shown = np.linalg.norm(A, axis=0) > 1e-12
    _tell_apart(controls, A, shown)
    # Each frame has lost the body's place and turn.
    freedom = (len(u) - 1) * (rest.size - size - 1) - shown.sum()
    if freedom < 1:
        raise InvalidInput(f"{len(u)} frames are too few to fit gains; record more")

    def residual(gains) -> np.ndarray:
        gap = body.displacement - _response(model, u, gains, size)
        return _centred(gap.reshape(len(u), -1)).ravel()

    gains, together = np.zeros(len(controls)), 0.0
    row = A.sum(axis=1)
    for _ in range(_STEPS):
        gains[shown] += np.linalg.lstsq(A[:, shown], residual(gains), rcond=None)[0]
        together += row @ residual(np.full(len(controls), together)) / (row @ row)
    rms = float(np.sqrt((residual(gains) ** 2).mean()))
    deviation = np.full(len(controls), np.nan)
    inverse = np.linalg.inv(A[:, shown].T @ A[:, shown])
    deviation[shown] = rms * np.sqrt(A.shape[0] / freedom * np.diag(inverse))
    offsets = (body.displacement - _response(model, u, gains, size)).mean(axis=0)
    uncalibrated = float(np.sqrt((residual(np.ones(len(controls))) ** 2).mean()))
    gains = np.where(shown, gains, np.nan)
    misses = together, rms, uncalibrated
    return Calibration(model, gains, deviation, offsets, *misses, body)


def _centred(rows: np.ndarray) -> np.ndarray:
    """Rows (..., T, k) minus their mean over time."""
    return rows - rows.mean(axis=-2, keepdims=True)


def _tell_apart(controls: Sequence, A: np.ndarray, shown: np.ndarray) -> None:
    if not shown.any():
        raise InvalidInput("no control moves any marker; record a gait")
    kept: list[int] = []
    for i in np.flatnonzero(shown):
        trial = A[:, [*kept, i]] / np.linalg.norm(A[:, [*kept, i]], axis=0)
        if np.linalg.svd(trial, compute_uv=False)[-1] < 1e-6:
            raise InvalidInput(
                f"the gain of control {controls[i].name!r} cannot be told apart from "
                "those of others in this recording; move them differently or leave "
                "it out"
            )
        kept.append(i)
