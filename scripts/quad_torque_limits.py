"""Fig. 16: do the beetle's motors keep their limit while it walks?

python scripts/quad_torque_limits.py -o out
python scripts/quad_torque_limits.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import torque_figure
from drakebots.robots.quads.experiments_beetle import torque_limits


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", torque_limits, torque_figure, argv)


if __name__ == "__main__":
    main()
