"""Fig. 4: does the QPCC of a frame converge in ten iterations?

python scripts/quad_qpcc.py -o out
python scripts/quad_qpcc.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from drakebots.cli.quad_experiments import main as run_experiment
from drakebots.plots_quad_experiments import qpcc_figure
from drakebots.robots.quads.experiments_beetle import qpcc_frames


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", qpcc_frames, qpcc_figure, argv)


if __name__ == "__main__":
    main()
