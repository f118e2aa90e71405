"""Fig. 15: the cow walks within 3.13 N m.

python scripts/quad_cow.py -o out
python scripts/quad_cow.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import walk_figure
from drakebots.robots.quads.experiments_walks import cow

MODULUS = 0.1
"""Of the model's: 70 kPa and 28 kPa in the folds. With the model's own the skin holds
the legs with more than the motors' torque (docs/quads.md)."""


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "cow", cow, walk_figure, argv, modulus=MODULUS)


if __name__ == "__main__":
    main()
