"""Fig. 2: how far planes of motion carry, over size and slenderness of a block.

Source: Tebyani et al., "A Geometric Kinematic Model for Flexible Voxel-Based Robots"
(2022), which shows one block and says "up to 4.9 %". The table of losses was measured
before, with another program (frame elements of SciPy, PFEA's sections).

A module without a command: `voxel_figures.py` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from plane_check import PlaneCheck, check_plane, rule_radius

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import Control
from drakebots.lattice.shape import PRESETS, Strut, block
from drakebots.plots import check_ending, save

COLOURS = ("#1f5fa8", "#d1495b", "#2a9d6f", "#e08e26", "#7a4fa3", "#5f6673")
TOLERANCES = (0.01, 0.05, 0.1, 0.2)

PAPER_LOSS = 0.049
""""Only up to 4.9 % of displacement is lost to other modes", Fig. 2."""

Size = tuple[int, int, int]
Place = tuple[int, int, int]

LOSS_TABLE: dict[Size, tuple[Place, tuple[float | None, ...]]] = {
    (2, 1, 2): ((2, 1, 1), (0.0033, 0.0022, 0.001, 0.002)),
    (3, 1, 3): ((2, 1, 1), (0.0408, 0.0185, 0.012, None)),
    (4, 1, 4): ((4, 1, 3), (0.0461, 0.029, 0.012, 0.028)),
    (6, 1, 6): ((6, 1, 5), (0.114, 0.089, 0.024, None)),
    (8, 1, 8): ((8, 1, 7), (0.213, 0.177, 0.036, 0.17)),
    (12, 1, 12): ((12, 1, 11), (0.438, 0.38, 0.058, 0.37)),
    (2, 2, 2): ((2, 1, 1), (0.0040, 0.0027, 0.162, 0.002)),
    (4, 2, 4): ((4, 1, 3), (0.0467, 0.032, 0.123, None)),
    (4, 4, 4): ((4, 3, 3), (0.0442, 0.033, 0.124, 0.031)),
    (6, 6, 6): ((6, 5, 5), (0.117, 0.102, 0.103, None)),
    (8, 4, 8): ((8, 3, 7), (0.227, 0.20, 0.101, 0.19)),
}
"""Blocks, the actuator's lower node (it pushes z), and what was measured before at
L/d 42.4: largest and mean loss, largest motion of other layers, axial energy."""

FACTS = ("max_loss", "mean_loss", "neighbours_max", "axial_energy")

CANDIDATES: tuple[tuple[Size, Place], ...] = (
    ((4, 1, 4), (4, 1, 3)),
    ((4, 4, 4), (4, 3, 3)),
    ((4, 3, 3), (4, 1, 1)),
    ((4, 4, 3), (4, 1, 1)),
    ((4, 4, 3), (4, 3, 1)),
    ((4, 2, 3), (4, 1, 1)),
)
"""Blocks some four voxels wide, for the paper's 4.9 %."""


def strut_of(ratio: float, length: float) -> Strut:
    """A square strut of FERVOR's material with L/d = ratio, for L in m.

    Raises:
        InvalidInput: for a ratio that is not > 1.
    """
    if not (np.isfinite(ratio) and ratio > 1):
        raise InvalidInput(f"L/d must be > 1, got {ratio}")
    return Strut(length / ratio, length / ratio)


def checked(size: Size, node: Place, ratio: float | None = None) -> PlaneCheck:
    """A block with one actuator along z; ratio L/d, FERVOR's if None."""
    lattice = block(*size)
    strut = Strut() if ratio is None else strut_of(ratio, lattice.beam_length)
    return check_plane(lattice, Control(node, 2), strut)


def neighbours_max(check: PlaneCheck) -> float:
    """Largest component of a motion off the plane, as a share of the actuator's."""
    return float(np.abs(check.actual[np.isnan(check.loss)]).max(initial=0.0))


def loss_rows(sizes: Sequence[Size] | None = None) -> list[dict]:
    """The table of losses, ours beside what was measured before.

    Args:
        sizes: of `LOSS_TABLE`; None for all.

    Raises:
        InvalidInput: for a block that is not in the table.
    """
    rows = []
    for size in LOSS_TABLE if sizes is None else sizes:
        if tuple(size) not in LOSS_TABLE:
            raise InvalidInput(f"the table has no block {size}")
        node, facts = LOSS_TABLE[tuple(size)]
        check = checked(size, node)
        ours = (
            check.max_loss,
            check.mean_loss,
            neighbours_max(check),
            check.shares["axial"],
        )
        row: dict = {"block": "x".join(map(str, size)), "signs": check.signs_right}
        for name, value, fact in zip(FACTS, ours, facts):
            row[name], row[f"{name}_facts"] = value, fact
        rows.append(row)
    return rows


def candidate_rows() -> list[dict]:
    """Largest loss of blocks some four voxels wide at L/d 42.4, and of one large."""
    rows = [
        {
            "block": "x".join(map(str, size)),
            "actuator": list(node),
            "slenderness": 42.43,
            "max_loss": checked(size, node).max_loss,
        }
        for size, node in CANDIDATES
    ]
    large = checked((8, 4, 8), (8, 3, 7), 100.0)
    last = {"block": "8x4x8", "actuator": [8, 3, 7], "slenderness": 100.0}
    return [*rows, last | {"max_loss": large.max_loss}]


def dissipation(check: PlaneCheck) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Displacement left by distance from the actuator, as in Fig. 2.

    Returns:
        Distances (D,) [voxels]; mean and least share of the planes' displacement
        that nodes at that distance make (D,).
    """
    inside = ~np.isnan(check.loss)
    steps = np.unique(check.distance[inside])
    left = [1 - check.loss[inside & (check.distance == d)] for d in steps]
    return steps, np.array([v.mean() for v in left]), np.array([v.min() for v in left])


@dataclass(frozen=True, eq=False)
class LossMap:
    """Largest loss in blocks n x 1 x n, their actuator as central as it can be.

    Attributes:
        widths: n (W,) [voxels].
        ratios: L/d (R,), rising.
        loss: (W, R).
    """

    widths: np.ndarray
    ratios: np.ndarray
    loss: np.ndarray

    def ratio_at(self, loss: float) -> np.ndarray:
        """L/d at which each width's loss is that (W,); NaN outside the map."""
        found = []
        for row in self.loss:
            # Falls about as (L/d)^-2: straight on logarithmic axes.
            x, y = np.log(row[::-1]), np.log(self.ratios[::-1])
            found.append(np.interp(np.log(loss), x, y, np.nan, np.nan))
        return np.exp(found)

    def width_at(self, loss: float) -> np.ndarray:
        """The widest block of the map whose loss is at most that (R,); 0 if none."""
        good = self.loss <= loss
        return np.where(good, self.widths[:, None], 0).max(axis=0)


def loss_map(widths: Sequence[int], ratios: Sequence[float]) -> LossMap:
    """Losses of blocks over size and slenderness, by the frame.

    Raises:
        InvalidInput: for a width < 2 or an L/d that is not > 1.
    """
    if min(widths, default=0) < 2 or not len(ratios):
        raise InvalidInput("the map needs widths >= 2 voxels, and some L/d")
    ratios = np.sort(np.asarray(ratios, float))
    loss = []
    for n in map(int, widths):
        middle = 2 * (n // 2)
        node = (middle, 1, middle - 1)
        loss.append([checked((n, 1, n), node, r).max_loss for r in ratios])
    return LossMap(np.array(widths, int), ratios, np.array(loss))


# --- pictures ---------------------------------------------------------------


def plot_dissipation(
    checks: dict[str, PlaneCheck], losses: LossMap, path: str | Path
) -> Path:
    """Fig. 2: displacement left by distance, and the largest loss of any block.

    Args:
        checks: actuated blocks by name.
        losses: map over size and slenderness.
        path: to write to.

    Raises:
        InvalidInput: for no block, or an ending that is no plot's.
    """
    check_ending(path)
    if not checks:
        raise InvalidInput("give at least one block")
    figure = Figure(figsize=(13.5, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.axhline(100, color="#333", lw=1, ls="--", label="planes of motion")
    for i, (name, check) in enumerate(checks.items()):
        distance, mean, least = dissipation(check)
        colour = COLOURS[i % len(COLOURS)]
        label = f"{name}: loses {check.max_loss:.2%} at most"
        left.plot(distance, 100 * mean, "o-", color=colour, label=label, ms=4)
        left.fill_between(distance, 100 * least, 100 * mean, color=colour, alpha=0.15)
    paper = 100 * (1 - PAPER_LOSS)
    left.axhline(paper, color="#888", lw=1, ls=":")
    left.annotate(
        "paper: up to 4.9 % lost",
        (1, paper),
        xycoords=("axes fraction", "data"),
        xytext=(-4, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
        color="#555",
    )
    left.set(
        xlabel="distance from the actuator in its plane [voxels]",
        ylabel="displacement [% of the actuator's]",
        title="displacement dissipation, by the frame (L/d 42.4)",
    )
    left.set_ylim(least.min() * 100 - 25, 102)  # room for the legend
    left.legend(fontsize=8, loc="lower left", title="line: mean; shade: to the least")
    left.grid(alpha=0.3)
    draw_map(figure, right, losses)
    return save(figure, path)


def draw_map(figure, axis, losses: LossMap) -> None:
    """The largest loss as a heat map with numbers, and where it is the paper's."""
    columns, rows = np.arange(len(losses.ratios)), np.arange(len(losses.widths))
    percent = 100 * losses.loss
    shown = axis.pcolormesh(
        columns, rows, percent, cmap="YlOrRd", norm=LogNorm(0.1, 100)
    )
    for i in rows:
        for k in columns:
            value = percent[i, k]
            text = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
            axis.text(
                *(k, i),
                text + "!" * int(value > 100),
                ha="center",
                va="center",
                fontsize=7,
                zorder=3,
                color="white" if value > 12 else "#222",
            )
    exact = losses.ratio_at(PAPER_LOSS)
    inside = np.isfinite(exact)
    # Columns stand for L/d; in between they are even in its logarithm.
    place = np.interp(np.log(exact[inside]), np.log(losses.ratios), columns)
    axis.plot(place, rows[inside], color="#1f4fd8", lw=2, zorder=2)
    axis.set_xticks(columns, [f"{r:.3g}" for r in losses.ratios], fontsize=8)
    axis.set_yticks(rows, [f"{n}" for n in losses.widths], fontsize=8)
    axis.set(
        xlabel="slenderness L/d",
        ylabel="n of a block n x 1 x n [voxels]",
        title="largest loss [%], actuator in the middle; blue: 4.9 %"
        + "\n! over 100 %: a node moves against what planes of motion say"
        * bool((percent > 100).any()),
    )
    figure.colorbar(shown, ax=axis, label="largest loss [%]", format="%g")


def plot_loss_table(rows: Sequence[dict], path: str | Path) -> Path:
    """Blocks row by row: largest and mean loss and spill, ours beside the facts.

    Args:
        rows: of `loss_rows`.
        path: to write to.
    """
    check_ending(path)
    columns = (
        ("max_loss", "largest loss"),
        ("mean_loss", "mean loss"),
        ("neighbours_max", "largest motion\nof other layers"),
        ("axial_energy", "axial energy"),
    )
    figure = Figure(figsize=(12.5, 0.34 * len(rows) + 1.5), layout="constrained")
    axes = figure.subplots(1, len(columns), sharey=True)
    place = np.arange(len(rows))
    for axis, (key, title) in zip(axes, columns):
        ours = 100 * np.array([row[key] for row in rows])
        facts = np.array([row[f"{key}_facts"] or np.nan for row in rows], float) * 100
        axis.barh(place, ours, color="#9db8d9", label="ours")
        axis.plot(facts, place, "|", color="#c0182a", ms=13, mew=2, label="facts")
        most = max(ours.max(), np.nanmax(facts))
        for y, a, b in zip(place, ours, facts):
            text = f"{a:.2f}" + ("" if np.isnan(b) else f"  ({b:.3g})")
            axis.text(max(a, np.nan_to_num(b)) + 0.03 * most, y, text, fontsize=7.5,
                      va="center")  # fmt: skip
        axis.set_xlim(0, 1.5 * most)
        axis.set(xlabel="[%]")
        axis.set_title(title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(place, [row["block"] for row in rows])
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=2, fontsize=8,
                  loc="outside upper left")  # fmt: skip
    return save(figure, path)


def plot_valid_radius(losses: LossMap, path: str | Path) -> Path:
    """Draws the validity of planes of motion over slenderness, for several tolerances.

    Lines: the rule c(n) (d/L)^2. Dots: half the widest block of the map that the
    frame finds within the tolerance; none where the map's widest still holds.
    """
    check_ending(path)
    figure = Figure(figsize=(7.4, 5), layout="constrained")
    axis = figure.subplots()
    length = block(1, 1, 1).beam_length
    low, high = losses.ratios[[0, -1]]
    ratios = np.geomspace(low, high, 60)
    for tolerance, colour in zip(TOLERANCES, COLOURS):
        radius = [rule_radius(strut_of(r, length), length, tolerance) for r in ratios]
        axis.plot(ratios, radius, color=colour, label=f"loss within {tolerance:.0%}")
        widest = losses.width_at(tolerance)
        seen = (widest > 0) & (widest < losses.widths.max())
        axis.plot(losses.ratios[seen], widest[seen] / 2, "o", color=colour, ms=5)
    for name, strut in PRESETS.items():
        ratio = length / strut.d2
        axis.axvline(ratio, color="#999", lw=0.8, ls=":")
        label = "FERVOR" if strut == Strut() else name
        axis.text(
            *(ratio, 0.985, f" {label}"),
            rotation=90,
            fontsize=7,
            color="#666",
            va="top",
            ha="right",
            transform=axis.get_xaxis_transform(),
        )
    axis.set_xscale("log")
    ticks = [r for r in (10, 15, 20, 30, 40, 60, 80, 100, 140) if low <= r <= high]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_ylim(0, losses.widths.max() / 2 + 0.5)
    axis.set(
        xlabel="slenderness L/d",
        ylabel="half width of the block [voxels]",
        title="valid radius of planes of motion (line: rule, dots: whole blocks)",
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="lower right")
    return save(figure, path)
