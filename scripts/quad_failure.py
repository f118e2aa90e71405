"""Failure case: the monster of twice the mass; does another footfall repair it?

python scripts/quad_failure.py -o out
python scripts/quad_failure.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import failure_figure
from drakebots.robots.quads.experiments_failure import failure


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "monster", failure, failure_figure, argv)


if __name__ == "__main__":
    main()
