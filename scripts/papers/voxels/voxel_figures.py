"""The voxel paper's figures 1 to 7, ours, and the numbers behind them.

python scripts/papers/voxels/voxel_figures.py -o out      # some 15 seconds
python scripts/papers/voxels/voxel_figures.py -o out --quick
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from voxel_plots import draw_figures

from drakebots.cli.output import one_line_errors, plain, print_table


def main(argv: Sequence[str] | None = None) -> dict:
    """Draws the figures; prints tables and one JSON object, and returns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    parser.add_argument("--quick", action="store_true", help="fewer blocks")
    args = parser.parse_args(argv)
    facts = draw_figures(args.output, quick=args.quick)
    for row in facts["fig2"]["table"]:
        title = f"{row['block']}: losses, ours and facts'"
        print_table(title, {k: v for k, v in row.items() if k != "block"})
    for title, key in (
        ("Fig. 1: 2x1x2", "fig1"),
        ("Fig. 3: 2x2x2", "fig3"),
        ("Figs. 6, 7: the robot", "fig6"),
    ):
        print_table(title, facts[key])
    print(json.dumps(plain(facts)))
    return facts


if __name__ == "__main__":
    with one_line_errors("voxel_figures"):
        main()
