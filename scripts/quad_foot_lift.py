"""Fig. 10: the beetle lifts one foot, then two; is the COP in the polygon?

python scripts/quad_foot_lift.py -o out
python scripts/quad_foot_lift.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import lift_figure
from drakebots.robots.quads.experiments_beetle import foot_lift


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", foot_lift, lift_figure, argv)


if __name__ == "__main__":
    main()
