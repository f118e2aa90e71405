"""Fig. 15: the cow walks within 3.13 N m.

python scripts/papers/quads/quad_cow.py -o out
python scripts/papers/quads/quad_cow.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_figures import walk_figure
from quad_table import main as run_experiment
from quad_trots import cow


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "cow", cow, walk_figure, argv)


if __name__ == "__main__":
    main()
