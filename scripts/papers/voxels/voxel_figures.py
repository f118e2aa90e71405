"""The voxel paper's figures 1 to 7, ours, and the numbers behind them.

python scripts/papers/voxels/voxel_figures.py -o out      # some 15 seconds
python scripts/papers/voxels/voxel_figures.py -o out --quick
python scripts/papers/voxels/voxel_figures.py -o out --markers marks_cm.npy

The last one also draws the authors' recording of the robot's markers, which has no
licence and so is read where you have it: MotionCapture/marks_cm.npy of their public
repository VOXELS.

Source: Tebyani et al., "A Geometric Kinematic Model for Flexible Voxel-Based Robots"
(2022).

JSON: fig1, fig2, fig3, fig5, fig6.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from plane_check import PlaneCheck
from voxel_loss import (
    PAPER_LOSS,
    LossMap,
    candidate_rows,
    checked,
    loss_map,
    loss_rows,
    neighbours_max,
    plot_dissipation,
    plot_loss_table,
    plot_valid_radius,
)
from voxel_planes import groups, plot_layers, plot_numbering, plot_pair
from voxel_robot import (
    RobotTemplates,
    plot_recording,
    plot_robot,
    plot_templates,
    read_recording,
    robot_templates,
    targets_recovered,
)

from drakebots.cli.output import one_line_errors, print_table
from drakebots.core.files import check_output

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

WIDTHS = tuple(range(2, 13))
RATIOS = (10, 15, 20, 25, 30, 36, 42.43, 50, 60, 80, 100, 140)
"""n [voxels] and L/d of the map."""

QUICK_WIDTHS, QUICK_RATIOS = (2, 4, 6), (20, 42.43, 100)
QUICK_TABLE = ((2, 1, 2), (4, 1, 4), (2, 2, 2), (4, 4, 4))


class Numbers:
    """Numbers that the figures show, computed once.

    Args:
        quick: whether the table and the map have fewer blocks.
    """

    def __init__(self, quick: bool = False):
        self.quick = quick

    @cached_property
    def pair(self) -> PlaneCheck:
        """The block of Fig. 1."""
        return checked((2, 1, 2), (2, 1, 1))

    @cached_property
    def cube(self) -> PlaneCheck:
        """The block of Fig. 3."""
        return checked((2, 2, 2), (2, 1, 1))

    @cached_property
    def blocks(self) -> dict[str, PlaneCheck]:
        """The blocks of Fig. 2."""
        found = {
            "2x1x2": self.pair,
            "4x4x3": checked((4, 4, 3), (4, 1, 1)),
            "8x1x8": checked((8, 1, 8), (8, 1, 7)),
        }
        if not self.quick:
            found["12x1x12"] = checked((12, 1, 12), (12, 1, 11))
        return found

    @cached_property
    def losses(self) -> LossMap:
        """The map of losses over size and slenderness."""
        if self.quick:
            return loss_map(QUICK_WIDTHS, QUICK_RATIOS)
        return loss_map(WIDTHS, RATIOS)

    @cached_property
    def rows(self) -> list[dict]:
        """The table of losses."""
        return loss_rows(QUICK_TABLE if self.quick else None)

    @cached_property
    def templates(self) -> RobotTemplates:
        """The robot's gait by both models."""
        return robot_templates()


FIGURES: dict[str, Callable[[Numbers, Path], Path]] = {
    "fig1": lambda n, path: plot_pair(n.pair, path),
    "fig2": lambda n, path: plot_dissipation(n.blocks, n.losses, path),
    "fig2_table": lambda n, path: plot_loss_table(n.rows, path),
    "fig2_radius": lambda n, path: plot_valid_radius(n.losses, path),
    "fig3": lambda n, path: plot_layers(n.cube, path),
    "fig4": lambda n, path: plot_numbering(path),
    "fig5": lambda n, path: plot_robot(n.templates, path),
    "fig6_7": lambda n, path: plot_templates(n.templates, path),
}
"""Function that draws each figure, as voxel_NAME.png."""


def draw_figures(
    folder: Path, *, quick: bool = False, markers: Path | None = None
) -> dict[str, Any]:
    """Draws all figures.

    Args:
        folder: the folder, made where it is missing.
        quick: fewer blocks in the table and the map.
        markers: a recording for Fig. 7, as voxel_fig7.png.

    Returns:
        Numbers by figure, for JSON; shares are of 1.

    Raises:
        FileProblem: when a file cannot be written.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    files = {name: Path(folder) / f"voxel_{name}.png" for name in FIGURES}
    for path in files.values():
        check_output(path)
    numbers, recorded = Numbers(quick), {}
    if markers is not None:
        recording = read_recording(markers)
        files["fig7"] = plot_recording(recording, Path(folder) / "voxel_fig7.png")
        recorded = {
            "rescale": recording.body.rescale,
            "half_range_mm": (1e3 * recording.half_range).tolist(),
        }
    for name, draw in FIGURES.items():
        draw(numbers, files[name])
    losses = numbers.losses
    exact = losses.ratio_at(PAPER_LOSS)
    return {
        "fig1": plane_facts(numbers.pair),
        "fig2": {
            "paper_loss": PAPER_LOSS,
            "table": numbers.rows,
            "candidates": candidate_rows(),
            "widths": losses.widths.tolist(),
            "slenderness": losses.ratios.tolist(),
            "max_loss": losses.loss.tolist(),
            "slenderness_at_4.9_%": {
                str(n): None if np.isnan(r) else float(r)
                for n, r in zip(losses.widths, exact)
            },
        },
        "fig3": plane_facts(numbers.cube) | layer_facts(numbers.cube),
        "fig5": {"gait_from_its_node_motions_error_m": targets_recovered()},
        "fig6": template_facts(numbers.templates),
        "fig7": recorded,
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
    """Agreement of the gait's node motions, and the actuators' largest force."""
    found = templates.agreement
    return {
        "slope": found.slope,
        "rms_mm": 1e3 * found.rms,
        "max_mm": 1e3 * found.max,
        "largest_force_N": float(np.abs(templates.force).max()),
    }


def main(argv: Sequence[str] | None = None) -> dict:
    """Draws the figures; prints tables and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="fewer blocks")
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    parser.add_argument("--markers", type=Path, help="recorded markers (.npy), in cm")
    args = parser.parse_args(argv)
    facts = draw_figures(args.output, quick=args.quick, markers=args.markers)
    for row in facts["fig2"]["table"]:
        title = f"{row['block']}: losses, ours and facts'"
        print_table(title, {k: v for k, v in row.items() if k != "block"})
    if facts["fig7"]:
        print_table("Fig. 7: the recording", facts["fig7"])
    for title, key in (
        ("Fig. 1: 2x1x2", "fig1"),
        ("Fig. 3: 2x2x2", "fig3"),
        ("Figs. 6, 7: the robot", "fig6"),
    ):
        print_table(title, facts[key])
    return parser.report(facts)


if __name__ == "__main__":
    with one_line_errors("voxel_figures"):
        main()
