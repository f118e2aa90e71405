"""Fig. 18: is a plan from kinematics alone as steady as ours?

python scripts/papers/quads/quad_kinematic.py -o out
python scripts/papers/quads/quad_kinematic.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_figures import kinematic_figure
from quad_kinematic_plan import kinematic
from quad_table import main as run_experiment


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "beetle", kinematic, kinematic_figure, argv)


if __name__ == "__main__":
    main()
