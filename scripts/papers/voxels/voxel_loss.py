"""How far planes of motion carry: Fig. 2, its map over size and slenderness.

Source of Fig. 2: Tebyani et al., "A Geometric Kinematic Model for Flexible
Voxel-Based Robots" (2022), which shows one block and says "up to 4.9 %".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from voxel_numbers import PAPER_LOSS, LossMap, dissipation, strut_of

from drakebots.core.errors import InvalidInput
from drakebots.lattice.pom import PlaneCheck, rule_radius
from drakebots.lattice.shape import PRESETS, Strut, block
from drakebots.plots import check_ending, save

COLOURS = ("#1f5fa8", "#d1495b", "#2a9d6f", "#e08e26", "#7a4fa3", "#5f6673")
TOLERANCES = (0.01, 0.05, 0.1, 0.2)


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
            axis.text(
                *(k, i),
                f"{value:.1f}" if value < 9.95 else f"{value:.0f}",
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
        title="largest loss [%], actuator in the middle; blue: 4.9 %",
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
    """How far planes of motion hold over slenderness, for several tolerances.

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
