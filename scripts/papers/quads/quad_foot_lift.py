"""Fig. 10: the beetle lifts one foot, then two; is the COP in the polygon?

python scripts/papers/quads/quad_foot_lift.py -o out
python scripts/papers/quads/quad_foot_lift.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_beetle import foot_lift
from quad_figures import lift_figure
from quad_table import main as run_experiment


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", foot_lift, lift_figure, argv)


if __name__ == "__main__":
    main()
