"""Fig. 16: do the beetle's motors keep their limit while it walks?

python scripts/papers/quads/quad_torque_limits.py -o out
python scripts/papers/quads/quad_torque_limits.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_beetle import torque_limits
from quad_figures import torque_figure
from quad_table import main as run_experiment


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", torque_limits, torque_figure, argv)


if __name__ == "__main__":
    main()
