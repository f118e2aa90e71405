"""Fig. 4: does the QPCC of a frame converge in ten iterations?

python scripts/papers/quads/quad_qpcc.py -o out
python scripts/papers/quads/quad_qpcc.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_beetle import qpcc_frames
from quad_figures import qpcc_figure
from quad_table import main as run_experiment


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", qpcc_frames, qpcc_figure, argv)


if __name__ == "__main__":
    main()
