"""All figures of the voxel paper, ours, with the numbers behind them.

    facts = draw_figures(Path("out"))

Source: Tebyani et al., "A Geometric Kinematic Model for Flexible Voxel-Based
Robots" (2022), Figs. 1 to 7.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from voxel_loss import plot_dissipation, plot_loss_table, plot_valid_radius
from voxel_numbers import (
    PAPER_LOSS,
    RobotTemplates,
    candidate_rows,
    checked,
    loss_map,
    loss_rows,
    neighbours_max,
    robot_templates,
    targets_recovered,
)
from voxel_planes import groups, plot_layers, plot_numbering, plot_pair
from voxel_robot import plot_robot, plot_templates

from drakebots.core.files import check_output
from drakebots.lattice.pom import PlaneCheck

FIGURES = (
    *("fig1", "fig2", "fig2_table", "fig2_radius"),
    *("fig3", "fig4", "fig5", "fig6_7"),
)
"""Pictures, as voxel_NAME.png."""

WIDTHS = tuple(range(2, 13))
RATIOS = (10, 15, 20, 25, 30, 36, 42.43, 50, 60, 80, 100, 140)
"""Of the map: n [voxels] and L/d."""

QUICK_WIDTHS, QUICK_RATIOS = (2, 4, 6), (20, 42.43, 100)
QUICK_TABLE = ((2, 1, 2), (4, 1, 4), (2, 2, 2), (4, 4, 4))


def figure_files(folder: Path) -> dict[str, Path]:
    """Where the figures go; each is checked to be writable.

    Raises:
        FileProblem: when one is not.
    """
    files = {name: Path(folder) / f"voxel_{name}.png" for name in FIGURES}
    for path in files.values():
        check_output(path)
    return files


def draw_figures(folder: Path, *, quick: bool = False) -> dict[str, Any]:
    """Draws all figures.

    Args:
        folder: to write to, which is there.
        quick: fewer blocks in the table and the map.

    Returns:
        Numbers by figure, for JSON; shares are of 1.

    Raises:
        FileProblem: when a file cannot be written.
    """
    files = figure_files(folder)
    pair, cube = checked((2, 1, 2), (2, 1, 1)), checked((2, 2, 2), (2, 1, 1))
    plot_pair(pair, files["fig1"])
    plot_layers(cube, files["fig3"])
    plot_numbering(files["fig4"])
    blocks = {
        "2x1x2": pair,
        "4x4x3": checked((4, 4, 3), (4, 1, 1)),
        "8x1x8": checked((8, 1, 8), (8, 1, 7)),
    }
    if not quick:
        blocks["12x1x12"] = checked((12, 1, 12), (12, 1, 11))
    widths, ratios = (QUICK_WIDTHS, QUICK_RATIOS) if quick else (WIDTHS, RATIOS)
    losses = loss_map(widths, ratios)
    rows = loss_rows(QUICK_TABLE if quick else None)
    plot_dissipation(blocks, losses, files["fig2"])
    plot_loss_table(rows, files["fig2_table"])
    plot_valid_radius(losses, files["fig2_radius"])
    templates = robot_templates()
    plot_robot(templates, files["fig5"])
    plot_templates(templates, files["fig6_7"])
    exact = losses.ratio_at(PAPER_LOSS)
    return {
        "fig1": plane_facts(pair),
        "fig2": {
            "paper_loss": PAPER_LOSS,
            "table": rows,
            "candidates": candidate_rows(),
            "widths": losses.widths.tolist(),
            "slenderness": losses.ratios.tolist(),
            "max_loss": losses.loss.tolist(),
            "slenderness_at_4.9_%": {
                str(n): None if np.isnan(r) else float(r)
                for n, r in zip(losses.widths, exact)
            },
        },
        "fig3": plane_facts(cube) | layer_facts(cube),
        "fig5": {"gait_from_its_node_motions_error_m": targets_recovered()},
        "fig6": template_facts(templates),
        "files": {name: str(path) for name, path in files.items()},
    }


def plane_facts(check: PlaneCheck) -> dict[str, Any]:
    """Numbers of one actuated plane."""
    return {
        "max_loss": check.max_loss,
        "mean_loss": check.mean_loss,
        "neighbours_max": neighbours_max(check),
        "slope": check.slope,
        "signs_right": check.signs_right,
        "energy": check.shares,
        "force_N_per_mm": 1e-3 * check.force,
    }


def layer_facts(check: PlaneCheck) -> dict[str, float]:
    """Largest motion by layer, as a share of the actuator's."""
    size = np.linalg.norm(check.actual, axis=1)
    return {
        name.replace(" ", "_"): float(size[rows].max(initial=0.0))
        for name, rows in groups(check).items()
    }


def template_facts(templates: RobotTemplates) -> dict[str, float]:
    """How well the gait's node motions agree, and the actuators' largest force."""
    found = templates.agreement
    return {
        "slope": found.slope,
        "rms_mm": 1e3 * found.rms,
        "max_mm": 1e3 * found.max,
        "largest_force_N": float(np.abs(templates.force).max()),
    }
