"""Fig. 15: the cow walks within 3.13 N m.

python scripts/quad_cow.py -o out
python scripts/quad_cow.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import walk_figure
from drakebots.robots.quads.experiments_walks import cow


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "cow", cow, walk_figure, argv)


if __name__ == "__main__":
    main()
