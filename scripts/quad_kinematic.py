"""Fig. 18: is a plan from kinematics alone as steady as ours?

python scripts/quad_kinematic.py -o out
python scripts/quad_kinematic.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import kinematic_figure
from drakebots.robots.quads.experiments_kinematic import kinematic


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", kinematic, kinematic_figure, argv)


if __name__ == "__main__":
    main()
