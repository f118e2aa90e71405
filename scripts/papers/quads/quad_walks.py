"""Fig. 12: the monster walks at 0.11 and at 0.06 m/s.

python scripts/papers/quads/quad_walks.py -o out
python scripts/papers/quads/quad_walks.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_figures import walk_figure
from quad_table import main as run_experiment
from quad_trots import walks


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "monster", walks, walk_figure, argv)


if __name__ == "__main__":
    main()
